//! Golden values of `tests/reference/hubness.py`, which follows the equations in Python and SciPy.

use hubness::*;
use serde_json::Value;

use crate::common::*;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn matrix(case: &Value, name: &str, images: &str, texts: &str) -> ScoreMatrix {
    let values = numbers(&case[name]).into_iter().map(|x| x as f32).collect();
    ScoreMatrix::new(count(&case[images]), count(&case[texts]), values).unwrap()
}

fn inputs(case: &Value, direction: Direction) -> Inputs<ScoreMatrix> {
    let bank_i2t = matrix(case, "bank_i2t", "bank_images", "texts");
    let bank_t2i = matrix(case, "bank_t2i", "images", "bank_texts");
    let items_i2t = matrix(case, "items_i2t", "bank_texts", "texts");
    let items_t2i = matrix(case, "items_t2i", "images", "bank_images");
    Inputs {
        direction,
        test: matrix(case, "scores", "images", "texts"),
        bank: direction.queries(bank_i2t, bank_t2i),
        item_bank: direction.queries(items_i2t, items_t2i),
        test_items: constant(1, 1, 0.0),
        bank_bank: matrix(case, "bank_bank", "bank_images", "bank_texts"),
    }
}

/// The correction that an entry names; none if it is refused. `values`: ranks, or distances d′.
fn fit<B: Bank>(
    entry: &Value,
    x: &Inputs<ScoreMatrix>,
    bank: &B,
    values: LocalValues,
) -> Option<AnyCorrection> {
    let (d, test, p) = (x.direction, &x.test, &entry["params"]);
    let f = |name: &str| p[name].as_f64().unwrap();
    let k = || count(&p["k"]);
    let sinkhorn = || Sinkhorn {
        epsilon: f("eps"),
        iterations: count(&p["item_updates"]) - 1,
        tolerance: 0.0,
        order: SinkhornOrder::ItemFirst,
    };
    let dual = |dynamic, k| DualBank {
        query_beta: f("b1"),
        item_beta: f("b2"),
        query_k: k,
        item_k: k,
        dynamic,
        inactive: if p["raw_product"] == true { Inactive::RawProduct } else { Inactive::DropBias },
    };
    let items = ItemBank::HeldOut(&x.item_bank);
    Some(match entry["method"].as_str().unwrap() {
        "nns" => Correction::none(test, d).into_any(),
        "csls" => {
            let form = match p["variant"].as_str().unwrap() {
                "item" => CslsForm::Item,
                "lample" => CslsForm::Lample,
                "printed" => CslsForm::Printed,
                other => panic!("form {other}"),
            };
            csls_form(test, d, k(), form).unwrap().into_any()
        }
        // With a single query, the inverted softmax is 1 for every item: refused.
        "is" if d.queries(test.images(), test.texts()) < 2 => return None,
        "is" => inverted_softmax(bank, d, f("beta")).unwrap().into_any(),
        "is_exclusive" => {
            let exclusive = InvertedSoftmaxForm::Exclusive;
            inverted_softmax_form(test, d, f("beta"), exclusive).unwrap().into_any()
        }
        "nnn" => Nnn { alpha: f("alpha"), k: k() }.fit(bank, d).unwrap().into_any(),
        "qbnorm" => {
            let row_scale = match p["row_scale"].as_str().unwrap() {
                "program" => RowScale::Program,
                "common" => RowScale::Common,
                other => panic!("row scale {other}"),
            };
            let dynamic = p["dynamic"].as_bool().unwrap();
            let qb = QueryBank { beta: f("beta"), k: k(), dynamic, row_scale };
            qb.fit(bank, test, d).unwrap().into_any()
        }
        "dual_is" => dual(false, 1).fit(bank, items, test, d).unwrap().into_any(),
        "dual_dis" => dual(true, k()).fit(bank, items, test, d).unwrap().into_any(),
        "sinkhorn" if entry["source"] == "both" => {
            sinkhorn().fit_with_items(bank, &x.bank_bank, d).unwrap().correction.into_any()
        }
        "sinkhorn" => sinkhorn().fit(bank, d).unwrap().correction.into_any(),
        "sinkhorn_transposed" => {
            // For t2i, the fit has images as queries. For i2t, the matrix is transposed, and so is the result.
            let s = d.items(test.clone(), test.transpose());
            let turned = sinkhorn().fit_both(&TestQueries(&s)).unwrap().t2i.into_any();
            AnyCorrection::new(
                d,
                turned.setting(),
                Box::new(turned.map().affine().unwrap().clone()),
            )
        }
        "mp_empirical" => EmpiricalProximity::default().fit(bank, test, d).unwrap().into_any(),
        "mp_gaussian" => GaussianProximity.fit(bank, test, d).unwrap().into_any(),
        method @ ("local_scaling" | "nicdm") => {
            let form = match method {
                "nicdm" => LocalForm::Nicdm,
                _ => LocalForm::LocalScaling,
            };
            LocalScaling { form, k: k(), values }.fit(bank, test, d).unwrap().into_any()
        }
        other => panic!("no such method: {other}"),
    })
}

/// Our Sinkhorn scores are divided by ε and differ by a constant. Our scores from counts have a small
/// addition that breaks ties.
fn compare(name: &str, entry: &Value, got: &[f64], want: &[f64], cell: f64) {
    let method = entry["method"].as_str().unwrap();
    if method.starts_with("sinkhorn") {
        let epsilon = entry["params"]["eps"].as_f64().unwrap();
        let got: Vec<_> = got.iter().map(|u| u * epsilon).collect();
        assert!(same_but_for_a_constant(&got, want, 1e-11), "{name}");
        return;
    }
    for (&got, want) in got.iter().zip(want) {
        // The reference has the value of Eq. 5, ours is its logarithm.
        let got = if method == "is_exclusive" { got.exp() } else { got };
        let near = match method {
            "mp_empirical" => (0.0..cell).contains(&(got - want + 1e-15)),
            _ => (got - want).abs() <= 1e-11 * want.abs().max(1.0),
        };
        assert!(near, "{name}: got {got}, want {want}");
    }
}

#[test]
fn as_the_reference_in_values_and_ranks() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/hubness.json");
    let file = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let golden: Value = serde_json::from_str(&file).unwrap();
    let mut compared = 0;
    for case in golden["cases"].as_array().unwrap() {
        let owner: Vec<_> = case["image_of_text"].as_array().unwrap().iter().map(count).collect();
        for (entry, direction) in case["methods"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|entry| Direction::BOTH.map(|direction| (entry, direction)))
        {
            let x = inputs(case, direction);
            let fitted = |values| match entry["source"].as_str().unwrap() {
                "test" | "none" => fit(entry, &x, &TestQueries(&x.test), values),
                _ => fit(entry, &x, &HeldOutBank(&x.bank), values),
            };
            let Some(correction) = fitted(LocalValues::Rank) else { continue };
            let name = format!(
                "{}, {} {} {}, {direction}",
                case["name"], entry["method"], entry["params"], entry["source"]
            );
            let u = corrected(correction.map(), direction, &x.test);
            let (n, m) = (u.len(), u[0].len());
            let flat = |golden: &str| {
                let values = numbers(&entry[golden]);
                let at = |q: usize, j: usize| direction.queries(q * m + j, j * n + q);
                (0..n).flat_map(|q| (0..m).map(move |j| at(q, j))).map(|at| values[at]).collect()
            };
            let want: Vec<f64> = flat(direction.queries("i2t", "t2i"));
            let bank = direction.queries(x.bank.images(), x.bank.texts());
            let cell = match entry["source"] == "test" {
                true => 1.0 / (n * m) as f64,
                false => 1.0 / (bank * m) as f64,
            };
            compare(&name, entry, &u.concat(), &want, cell);

            let ranks: Vec<_> = orders(&u)
                .iter()
                .enumerate()
                .map(|(q, order)| {
                    let is_true = |j: &usize| match direction {
                        Direction::I2t => owner[*j] == q,
                        Direction::T2i => owner[q] == *j,
                    };
                    order.iter().position(is_true).unwrap()
                })
                .collect();
            let golden = direction.queries("i2t_ranks", "t2i_ranks");
            let want: Vec<_> = entry[golden].as_array().unwrap().iter().map(count).collect();
            assert_eq!(ranks, want, "{name}");

            let golden = direction.queries("full_i2t", "full_t2i");
            if !entry[golden].is_null() {
                let full = fitted(LocalValues::Full).unwrap();
                let u = corrected(full.map(), direction, &x.test).concat();
                let want: Vec<f64> = flat(golden);
                let minus: Vec<_> = want.iter().map(|d| -d).collect();
                compare(&name, entry, &u, &minus, 0.0);
            }
            compared += 1;
        }
    }
    assert!(compared >= 150, "only {compared} compared");
}
