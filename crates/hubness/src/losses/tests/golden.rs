//! `tests/reference/hal.py`: double precision, every neighbourhood sorted separately.

use std::collections::BTreeSet;

use super::*;

fn golden() -> Value {
    let golden: Value =
        serde_json::from_str(include_str!("../../../tests/golden/hal.json")).unwrap();
    assert_eq!(golden["margin"], MARGIN);
    golden
}

fn cases(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn ids(case: &Value) -> Option<Vec<i64>> {
    case["ids"].as_array().map(|ids| ids.iter().map(|id| id.as_i64().unwrap()).collect())
}

fn options(case: &Value, weighted: &Value) -> HubOptions {
    let option = |key: &str| weighted[key].clone();
    HubOptions {
        neighbours: case["k"].as_u64().unwrap() as usize,
        reweight: serde_json::from_value(option("reweight")).unwrap(),
        exclude: serde_json::from_value(option("exclude")).unwrap(),
        detach: option("detach").as_bool().unwrap(),
    }
}

fn siblings<'a>(ids: &'a Option<Vec<i64>>, case: &Value) -> Siblings<'a> {
    match case["masked"].as_bool().unwrap() {
        true => Siblings::Masked(ids.as_deref().unwrap()),
        false => Siblings::Negatives,
    }
}

#[test]
fn golden_sum_and_max() {
    for case in cases(&golden()["hinges"]) {
        let (s, ids) = (floats(&case["s"]), ids(case));
        for plain in cases(&case["plain"]) {
            let name = format!("{}, {plain}", case["name"]);
            let of = siblings(&ids, plain);
            let loss = if plain["hardest"].as_bool().unwrap() { max } else { sum };
            let (value, grad) = value_and_gradient(&s, |s| total(loss(s, MARGIN, of)));
            close(&name, &[value], &[plain["loss"].as_f64().unwrap()], 1e-5);
            close(&name, &grad, &numbers(&plain["grad"]), 1e-5);
        }
    }
}

/// Factors, HAL, MAX + HAL and their gradients for every option.
#[test]
fn golden_reweighted() {
    let mut checked = 0;
    for case in cases(&golden()["hinges"]) {
        let (s, ids) = (floats(&case["s"]), ids(case));
        for weighted in cases(&case["weighted"]) {
            let options = options(case, weighted);
            let name = format!("{}, {options:?}", case["name"]);
            let factors = host(hub_factors(square(&s), &options));
            close(&name, &factors, &numbers(&weighted["weights"]), 1e-5);
            for case in cases(&weighted["losses"]) {
                let of = siblings(&ids, case);
                let loss = if case["hardest"].as_bool().unwrap() { max_hal } else { hal };
                let (value, grad) =
                    value_and_gradient(&s, |s| total(loss(s, MARGIN, of, &options)));
                close(&name, &[value], &[case["loss"].as_f64().unwrap()], 1e-5);
                close(&name, &grad, &numbers(&case["grad"]), 1e-5);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 8 * 2 * (8 + 1), "eight matrices, one of them with masks too");
}

/// Every option of Eq. 4 and of the hinges gives another loss or another gradient than the default.
#[test]
fn every_option_of_the_hinges_changes_the_output() {
    let golden = golden();
    let find = |name: &str| {
        let cases = cases(&golden["hinges"]);
        cases.iter().find(|case| case["name"] == name).unwrap()
    };
    let s = floats(&find("random")["s"]);
    let of = |options: HubOptions| {
        let (value, grad) =
            value_and_gradient(&s, |s| total(hal(s, MARGIN, Siblings::Negatives, &options)));
        [vec![value], grad].concat()
    };
    let default = HubOptions::default();
    let changed = [
        HubOptions { neighbours: 1, ..default },
        HubOptions { reweight: ReweightScope::Negatives, ..default },
        HubOptions { exclude: Exclusion::Positive, ..default },
        HubOptions { detach: true, ..default },
    ];
    for options in changed {
        assert!(differ(&of(options), &of(default)), "{options:?}");
    }
    let siblings = find("siblings");
    let (s, ids) = (floats(&siblings["s"]), ids(siblings).unwrap());
    type Loss = fn(Tensor<2>, f64, Siblings) -> [Tensor<2>; 2];
    let losses: Vec<Loss> =
        vec![sum, max, |s, m, of| hal(s, m, of, &HubOptions::default()), |s, m, of| {
            max_hal(s, m, of, &HubOptions::default())
        }];
    let mut seen = BTreeSet::new();
    for loss in losses {
        let value = |of| value_and_gradient(&s, |s| total(loss(s, MARGIN, of))).0;
        let (all, masked) = (value(Siblings::Negatives), value(Siblings::Masked(&ids)));
        assert!(masked < all - 1e-4, "{masked} of {all}");
        seen.insert(all.to_bits());
    }
    assert_eq!(seen.len(), 4, "four losses of one matrix");
}

fn exponents(case: &Value) -> AaaiOptions {
    let number = |key: &str| case[key].as_f64().unwrap();
    AaaiOptions { local_alpha: number("g"), local_ep: number("e") }
}

#[test]
fn golden_aaai_local() {
    for case in cases(&golden()["aaai"]["local"]) {
        let (name, s, options) =
            (case["name"].as_str().unwrap(), floats(&case["s"]), exponents(case));
        close(name, &host(aaai_local(square(&s), &options)), &numbers(&case["terms"]), 2e-6);
        let (_, grad) = value_and_gradient(&s, |s| aaai_local(s, &options).mean());
        close(name, &grad, &numbers(&case["grad"]), 1e-5);
    }
}

fn bank_options(o: &Value) -> BankOptions {
    let number = |key: &str| o[key].as_f64().unwrap();
    BankOptions {
        alpha: number("alpha"),
        beta: number("beta"),
        ep1: number("e1"),
        ep2: number("e2"),
        mb_rate: 0.05,
        mb_k: o["mb_k"].as_u64().unwrap() as usize,
        consistent_offsets: o["consistent_offsets"].as_bool().unwrap(),
    }
}

fn bank_scores(case: &Value) -> BankScores {
    BankScores {
        entries: case["n"].as_u64().unwrap() as usize,
        to_texts: floats(&case["to_texts"]),
        to_images: floats(&case["to_images"]),
    }
}

#[test]
fn golden_aaai_bank() {
    for case in cases(&golden()["aaai"]["bank"]) {
        let (name, s) = (case["name"].as_str().unwrap(), floats(&case["s"]));
        let (options, bank) = (bank_options(&case["options"]), bank_scores(case));
        let weights = BankWeights::new(&s, &bank, &options);
        close(name, &weights.negatives, &numbers(&case["W"]), 1e-6);
        close(name, &weights.positives, &numbers(&case["w"]), 1e-6);
        let exponents = exponents(&case["options"]);
        let terms = |s| aaai_bank(s, &bank, &exponents, &options);
        close(name, &host(terms(square(&s))), &numbers(&case["terms"]), 2e-6);
        let (_, grad) = value_and_gradient(&s, |s| terms(s).mean());
        close(name, &grad, &numbers(&case["grad"]), 1e-5);
    }
}

#[test]
fn every_option_of_the_aaai_loss_changes_the_output() {
    let golden = golden();
    let case = &cases(&golden["aaai"]["bank"])[0];
    let (s, bank) = (floats(&case["s"]), bank_scores(case));
    let of = |exponents: AaaiOptions, options: BankOptions| {
        host(aaai_bank(square(&s), &bank, &exponents, &options))
    };
    // With α = β = 40 only the nearest neighbour counts.
    let (coco, released) =
        (AaaiOptions::COCO, BankOptions { alpha: 4.0, beta: 4.0, ..BankOptions::default() });
    let plain = of(coco, released);
    assert!(differ(&of(AaaiOptions::FLICKR30K, released), &plain));
    assert!(differ(&host(aaai_local(square(&s), &coco)), &plain));
    let local = |o| host(aaai_local(square(&s), &o));
    assert!(differ(&local(AaaiOptions::FLICKR30K), &local(coco)));
    for options in [
        BankOptions { alpha: 10.0, ..released },
        BankOptions { beta: 10.0, ..released },
        BankOptions { mb_k: 1, ..released },
        BankOptions { consistent_offsets: true, ..released },
        BankOptions { ep2: 2.0, ..released },
    ] {
        assert!(differ(&of(coco, options), &plain), "{options:?}");
    }
    // e₁ cancels in the paper and in the program: 1 − x/(x + y) has the same factor in x and y.
    assert!(!differ(&of(coco, BankOptions { ep1: 0.4, ..released }), &plain));
}

#[test]
fn golden_order_similarity() {
    let golden = &golden()["order"];
    let d = golden["d"].as_u64().unwrap() as usize;
    let (images, texts) =
        (matrix(&floats(&golden["images"]), d), matrix(&floats(&golden["texts"]), d));
    let s = order_similarity(images.clone(), texts.clone());
    close("s", &host(s.clone()), &numbers(&golden["s"]), 1e-6);
    let grads = (s * matrix(&floats(&golden["weights"]), 2).detach()).sum().backward();
    let grad = |x: &Tensor<2>| host(x.grad(&grads).unwrap());
    close("∂i", &grad(&images), &numbers(&golden["images_grad"]), 1e-5);
    close("∂t", &grad(&texts), &numbers(&golden["texts_grad"]), 1e-5);
}
