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
    }
}

/// The correction that an entry names; none if it is refused.
fn fit<B: Bank>(entry: &Value, x: &Inputs<ScoreMatrix>, bank: &B) -> Option<AnyCorrection> {
    let (d, test, p) = (x.direction, &x.test, &entry["params"]);
    let f = |name: &str| p[name].as_f64().unwrap();
    let k = || count(&p["k"]);
    let sinkhorn = || Sinkhorn {
        epsilon: f("eps"),
        iterations: count(&p["item_updates"]) - 1,
        tolerance: 0.0,
    };
    let dual = |dynamic, k| DualBank {
        query_beta: f("b1"),
        item_beta: f("b2"),
        query_k: k,
        item_k: k,
        dynamic,
    };
    let items = &x.item_bank;
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
            let dynamic = p["dynamic"].as_bool().unwrap();
            let qb = QueryBank { beta: f("beta"), k: k(), dynamic };
            qb.fit(bank, test, d).unwrap().into_any()
        }
        "dual_is" => dual(false, 1).fit(bank, items, test, d).unwrap().into_any(),
        "dual_dis" => dual(true, k()).fit(bank, items, test, d).unwrap().into_any(),
        "sinkhorn" => sinkhorn().fit(bank, d).unwrap().correction.into_any(),
        "mp_empirical" => EmpiricalProximity::default().fit(bank, test, d).unwrap().into_any(),
        "mp_gaussian" => GaussianProximity.fit(bank, test, d).unwrap().into_any(),
        method @ ("local_scaling" | "nicdm") => {
            let form = match method {
                "nicdm" => LocalForm::Nicdm,
                _ => LocalForm::LocalScaling,
            };
            LocalScaling { form, k: k() }.fit(bank, test, d).unwrap().into_any()
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
            let fitted = match entry["source"].as_str().unwrap() {
                "test" | "none" => fit(entry, &x, &TestQueries(&x.test)),
                _ => fit(entry, &x, &HeldOutBank(&x.bank)),
            };
            let Some(correction) = fitted else { continue };
            let name = format!(
                "{}, {} {} {}, {direction}",
                case["name"], entry["method"], entry["params"], entry["source"]
            );
            let u = corrected(correction.map(), direction, &x.test);
            let (n, m) = (u.len(), u[0].len());
            let values = numbers(&entry[direction.queries("i2t", "t2i")]);
            let at = |q: usize, j: usize| direction.queries(q * m + j, j * n + q);
            let places = (0..n).flat_map(|q| (0..m).map(move |j| at(q, j)));
            let want: Vec<f64> = places.map(|at| values[at]).collect();
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

            compared += 1;
        }
    }
    assert!(compared >= 150, "only {compared} compared");
}
