//! What a service does: it saves a correction, loads it, and corrects one query at a time.

use hubness::*;

use crate::common::*;

/// Calls `check` for every correction over random inputs: its name, the correction, and the scores of each query with all items.
fn each(mut check: impl FnMut(&str, &AnyCorrection, &ScoreMatrix)) {
    for direction in Direction::BOTH {
        let x = Inputs::random(direction, 0.01, 0.6, 7);
        let rows = direction.queries(x.test.clone(), x.test.transpose());
        for (name, fit) in all(&x) {
            check(name, &fit, &rows);
        }
    }
}

/// Values of all queries, one query after the other.
fn one_by_one(fit: &AnyCorrection, rows: &ScoreMatrix) -> Result<Vec<Vec<f64>>> {
    (0..rows.images()).map(|query| fit.of_query(rows.row(query))).collect()
}

#[test]
fn a_query_alone_gets_the_values_that_it_gets_among_all() {
    let mut served = 0;
    each(|name, fit, rows| {
        let alone = one_by_one(fit, rows);
        let direction = fit.direction();
        let test = direction.queries(rows.clone(), rows.transpose());
        assert!(alone.unwrap() == corrected(fit.map(), direction, &test), "{name}, {direction}");
        served += 1;
    });
    assert_eq!(served, 2 * 16);
}

/// The forms that refuse. The inclusive and item forms serve single queries, with the same bits as over all queries.
#[test]
fn forms_with_values_of_each_query_refuse() {
    let x = Inputs::random(Direction::I2t, 0.01, 0.6, 9);
    let row = x.test.row(4);
    let csls = |form| csls_form(&x.test, Direction::I2t, 3, form).unwrap();
    let is = |form| inverted_softmax_form(&x.test, Direction::I2t, 30.0, form).unwrap();
    for refuses in
        [csls(CslsForm::Lample), csls(CslsForm::Printed), is(InvertedSoftmaxForm::Exclusive)]
    {
        let line = "correction: expected one that serves queries outside its fit (not exclusive IS, or CSLS with the query's mean), got \
                    one that holds only values of the queries of its fit";
        assert_eq!(refuses.of_query(row).unwrap_err().to_string(), line);
    }
    for serves in [csls(CslsForm::Item), is(InvertedSoftmaxForm::Inclusive)] {
        let all = corrected(serves.map(), Direction::I2t, &x.test);
        assert_eq!(serves.of_query(row).unwrap(), all[4]);
    }
}

/// Refused: scores that a fit would refuse, and a wrong number of scores.
#[test]
fn scores_that_are_not_of_the_items_are_refused() {
    each(|name, fit, rows| {
        let items = rows.texts();
        let refused = |row: &[f32]| fit.of_query(row).unwrap_err().to_string();
        let few =
            format!("scores of a query: expected one for each of {items} items, got {}", items - 1);
        assert_eq!(refused(&rows.row(0)[1..]), few, "{name}");
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut row = rows.row(0).to_vec();
            row[2] = bad;
            let line = format!("score of a query with item 2: expected a finite number, got {bad}");
            assert_eq!(refused(&row), line, "{name}");
        }
        let mut row = rows.row(0).to_vec();
        if name.starts_with("local scaling") || name.starts_with("NICDM") {
            row[2] = 1.5;
            let line = "scores of a query: expected cosines, because distances are 1 − s, got 1.5";
            assert_eq!(refused(&row), line, "{name}");
        }
    });
}

/// A correction as saved JSON.
fn saved<K: Knowledge>(fit: Correction<K>) -> std::result::Result<String, String> {
    serde_json::to_string(&fit).map_err(|error| error.to_string())
}

/// Every correction that is fitted on a bank.
fn held_out(x: &Inputs<ScoreMatrix>) -> Vec<(&'static str, Correction<HeldOut>)> {
    let (d, bank, test) = (x.direction, HeldOutBank(&x.bank), &x.test);
    let local = LocalScaling { k: 5, ..LocalScaling::default() };
    let dis = DualBank { query_beta: 20.0, item_beta: 10.0, dynamic: true, ..DualBank::default() };
    let items = &x.item_bank;
    vec![
        ("CSLS", csls(&bank, d, 3).unwrap()),
        ("IS", inverted_softmax(&bank, d, 300.0).unwrap()), // with a fine part
        ("NNN", Nnn::default().fit(&bank, d).unwrap()),
        ("Sinkhorn", Sinkhorn::default().fit(&bank, d).unwrap().correction),
        ("QB-Norm", QueryBank::default().fit(&bank, test, d).unwrap()),
        ("Dual-IS", DualBank { dynamic: false, ..dis }.fit(&bank, items, test, d).unwrap()),
        ("Dual-DIS", dis.fit(&bank, items, test, d).unwrap()),
        ("Gaussian", GaussianProximity.fit(&bank, test, d).unwrap()),
        ("empirical", EmpiricalProximity::default().fit(&bank, test, d).unwrap()),
        ("local scaling", local.fit(&bank, test, d).unwrap()),
        ("NICDM", LocalScaling::nicdm().fit(&bank, test, d).unwrap()),
    ]
}

#[test]
fn a_loaded_correction_gives_the_same_bits() {
    for direction in Direction::BOTH {
        let x = Inputs::random(direction, 0.01, 0.6, 8);
        let rows = direction.queries(x.test.clone(), x.test.transpose());
        for (name, fit) in held_out(&x) {
            let (all, alone) = (corrected(fit.map(), direction, &x.test), one_by_one(&fit, &rows));
            let file = saved(fit).unwrap();
            let loaded: Correction<HeldOut> = serde_json::from_str(&file).unwrap();
            assert_eq!((loaded.direction(), loaded.setting()), (direction, Setting::HeldOut));
            assert!(corrected(loaded.map(), direction, &x.test) == all, "{name}, {direction}");
            assert_eq!(one_by_one(&loaded, &rows).unwrap(), alone.unwrap(), "{name}, {direction}");
            assert_eq!(saved(loaded).unwrap(), file, "{name}");

            let other = serde_json::from_str::<Correction<Transductive>>(&file).unwrap_err();
            let line = "setting of the correction: expected transductive, got held-out bank";
            assert!(other.to_string().starts_with(line), "{name}: {other}");
        }
    }
}

/// CSLS with the query's mean is saved too, with the values of its queries.
#[test]
fn values_of_single_queries_are_saved() {
    let x = Inputs::random(Direction::T2i, 0.01, 0.6, 8);
    let fit = csls_form(&x.test, Direction::T2i, 3, CslsForm::Lample).unwrap();
    let want = fit.apply(&x.test).unwrap();
    let loaded: Correction<Transductive> = serde_json::from_str(&saved(fit).unwrap()).unwrap();
    assert_eq!(loaded.apply(&x.test).unwrap(), want);
    let few = x.some(&[0, 1]).test;
    let line = "queries of direction t2i: expected the 41 whose values the correction holds, got 2";
    assert_eq!(loaded.apply(&few).unwrap_err().to_string(), line);
}

#[test]
fn what_cannot_be_saved_says_so() {
    let x = Inputs::random(Direction::I2t, 0.01, 0.6, 8);
    let form = InvertedSoftmaxForm::Exclusive;
    let exclusive = inverted_softmax_form(&x.test, x.direction, 30.0, form);
    let line = "correction: expected one that can be saved (not exclusive IS, or a map of your own), got another";
    assert_eq!(saved(exclusive.unwrap()).unwrap_err(), line);
}

/// The error line for a file with this map.
fn refused(map: &str) -> String {
    let file = format!(r#"{{"direction":"i2t","setting":"held_out","map":{map}}}"#);
    let line = serde_json::from_str::<Correction<HeldOut>>(&file).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line.split(" at line").next().unwrap_or_default().to_owned()
}

#[test]
fn a_damaged_affine_map_is_refused() {
    let map = |scale: &str, items: &str, fine: &str, groups: &str, by_best: &str| {
        refused(&format!(
            r#"{{"affine":{{"scale":{scale},"items":{items},"fine":{fine},"queries":[],"groups":{groups},"by_best":{by_best}}}}}"#
        ))
    };
    for (got, want) in [
        (
            map("0", "[[1]]", "[]", "[]", "[]"),
            "scale of the correction: expected a number above 0, got 0",
        ),
        (
            map("1", "[[1,2]]", "[1]", "[]", "[]"),
            "fine of the correction: expected one value for each of 2 items, got 1",
        ),
        (
            map("1", "[[1,2],[1]]", "[]", "[]", "[]"),
            "items of the correction: expected one value for each of 2 items, got 1",
        ),
        (
            map("1", "[]", "[]", "[]", "[]"),
            "items of the correction: expected at least one group, got 0",
        ),
        (
            map("1", "[[]]", "[]", "[]", "[]"),
            "items of the correction: expected at least one, got 0",
        ),
        (
            map("1", "[[1,2]]", "[]", "[1]", "[]"),
            "groups of the correction: expected numbers below 1, got 1",
        ),
        (
            map("1", "[[1,2]]", "[]", "[]", "[0,3]"),
            "groups of the correction: expected numbers below 1, got 3",
        ),
        (
            map("1", "[[1,2]]", "[]", "[]", "[0]"),
            "by_best of the correction: expected one value for each of 2 items, got 1",
        ),
        (map("1", "[[null,2]]", "[]", "[]", "[]"), "invalid type: null, expected f64"), // how JSON writes NaN
    ] {
        assert_eq!(got, want);
    }
    assert!(refused(r#"{"affine":{"scale":1,"other":2}}"#).starts_with("unknown field `other`"));
    assert!(refused(r#"{"csls":{}}"#).starts_with("unknown variant `csls`"));
    let both = r#"{"direction":"both","setting":"held_out","map":{}}"#;
    let line = serde_json::from_str::<Correction<HeldOut>>(both).unwrap_err().to_string();
    assert!(line.starts_with("unknown variant `both`"), "{line}");
}

/// Every other map that can be saved, with one part damaged at a time.
#[test]
fn a_damaged_part_is_refused() {
    let x = Inputs::random(Direction::I2t, 0.01, 0.6, 8);
    let file = |wanted: &str| {
        let fit = held_out(&x).into_iter().find(|(name, _)| *name == wanted).unwrap().1;
        serde_json::from_str::<serde_json::Value>(&saved(fit).unwrap()).unwrap()
    };
    let damaged = |name: &str, part: &str, value: serde_json::Value| {
        let mut file = file(name);
        let at = format!("/map/{part}");
        *file.pointer_mut(&at).unwrap_or_else(|| panic!("{name} has no {at}")) = value;
        let line = serde_json::from_value::<Correction<HeldOut>>(file).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    use serde_json::json;
    for (name, part, value, want) in [
        (
            "Gaussian",
            "gaussian_proximity/items/3/sd",
            json!(0.0),
            "sd of items of the correction, value 3: expected a finite number of at least 1e-6, got 0",
        ),
        (
            "Gaussian",
            "gaussian_proximity/queries/0/mean",
            json!(null),
            "invalid type: null, expected f64",
        ),
        (
            "Gaussian",
            "gaussian_proximity/items",
            json!([]),
            "items of the correction: expected at least one, got 0",
        ),
        (
            "empirical",
            "empirical_proximity/rows/width",
            json!(0),
            "rows of the correction: expected whole lists of 0 scores, at least one score each, got 943 scores",
        ),
        (
            "empirical",
            "empirical_proximity/rows/scores/1",
            json!(9.0),
            "rows of the correction, list 0: expected scores in ascending order, got another order",
        ),
        (
            "empirical",
            "empirical_proximity/columns/width",
            json!(10),
            "columns of the correction: expected one list for each of 41 items, got 123 lists",
        ),
        (
            "local scaling",
            "local_scaling/items/2",
            json!(-1.0),
            "items of the correction, value 2: expected a finite number of at least 1e-12, got -1",
        ),
    ] {
        assert_eq!(damaged(name, part, value), want, "{name}, {part}");
    }
}

/// A map made by hand is checked wherever a correction meets scores.
#[test]
fn a_map_that_does_not_fit_itself_is_refused() {
    let scores = ScoreMatrix::from_rows([[0.9, 0.3], [0.7, 0.6]]);
    let map = Affine { groups: vec![0, 1], ..Affine::of_items(1.0, vec![0.0, 0.5]) };
    let fit = Correction::<Plain>::new(Direction::I2t, map);
    let line = "groups of the correction: expected numbers below 1, got 1";
    let message = |error: Error| error.to_string();
    assert_eq!(fit.apply(&scores).map_err(message), Err(line.into()));
    assert_eq!(fit.of_query(&[0.1, 0.2]).map_err(message), Err(line.into()));
    assert_eq!(pass::top(&scores, &fit, 1).map_err(message), Err(line.into()));
    let map = Affine::of_items(1.0, vec![0.0, f64::NAN]);
    let fit = Correction::<Plain>::new(Direction::I2t, map);
    let line = "items of the correction, value 1: expected a finite number, got NaN";
    assert_eq!(fit.apply(&scores).map_err(message), Err(line.into()));
}
