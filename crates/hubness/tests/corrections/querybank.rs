//! Traps of query-bank normalisation.

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

/// Worked by hand, β = 1: item 0 is active, item 1 is not; L = log(e^0.5 + 1) and log(1 + e^-0.25).
#[test]
fn golden_of_active_and_inactive_rows() {
    let bank = ScoreMatrix::from_rows([[0.5, 0.0], [0.0, -0.25]]);
    let test = ScoreMatrix::from_rows([[0.5, 0.25], [0.25, 0.5]]);
    let qb = QueryBank { beta: 1.0, ..QueryBank::default() };
    let fit = qb.fit(&HeldOutBank(&bank), &test, D).unwrap();
    let got = corrected(fit.map(), D, &test).concat();
    let l = [(0.5f64.exp() + 1.0).ln(), (1.0 + (-0.25f64).exp()).ln()];
    let want = [0.5 - l[0], 0.25 - l[1], 0.25, 0.5];
    got.into_iter().zip(want).for_each(|(a, b)| assert!((a - b).abs() < 1e-14, "{a}, {b}"));
}

#[test]
fn what_is_dynamic_and_k_change_what_comes_out() {
    let x = Inputs::random(D, -0.4, 0.6, 4);
    let u = |qb: QueryBank| {
        ranking(qb.fit(&HeldOutBank(&x.bank), &x.test, D).unwrap().map(), D, &x.test)
    };
    let one = QueryBank::default();
    assert_ne!(u(one), u(QueryBank { dynamic: false, ..one }));
    assert_ne!(u(one), u(QueryBank { k: 3, ..one }));
    assert_ne!(u(one), u(QueryBank { beta: 5.0, ..one }));
    // Every item is active.
    assert_eq!(u(QueryBank { k: 41, ..one }), u(QueryBank { dynamic: false, ..one }));
}

/// Items 0 and 1 tie; the smaller index is the best, and it is not active.
#[test]
fn the_best_item_follows_the_global_tie_rule() {
    let bank = ScoreMatrix::from_rows([[0.1, 0.9, 0.2]]);
    let fit = |test: &ScoreMatrix| {
        let fit = QueryBank::default().fit(&HeldOutBank(&bank), test, D).unwrap();
        ranking(fit.map(), D, test)[0].clone()
    };
    assert_eq!(fit(&ScoreMatrix::from_rows([[0.5, 0.5, 0.1]])), [0, 1, 2]);
    assert_eq!(fit(&ScoreMatrix::from_rows([[0.0, -0.0, -0.5]])), [0, 1, 2]);
    assert_ne!(fit(&ScoreMatrix::from_rows([[0.4, 0.5, 0.1]]))[0], 1);
}

#[test]
fn a_tie_within_the_bank_makes_the_smaller_index_active() {
    let bank = ScoreMatrix::from_rows([[0.5, 0.5]]);
    let test = ScoreMatrix::from_rows([[0.6, 0.1], [0.1, 0.6]]);
    let fit = QueryBank::default().fit(&HeldOutBank(&bank), &test, D).unwrap();
    let u = corrected(fit.map(), D, &test);
    assert!(u[0][0] < 20.0 * 0.6 - 1.0, "active: less β·0.5");
    assert!((u[1][1] - 20.0 * f64::from(0.6f32)).abs() < 1e-12, "not active");
}

/// The largest f32 is about e^88.7.
#[test]
fn large_exponents_do_not_overflow() {
    let x = Inputs::random(D, -0.4, 0.6, 5);
    let large = x.map(|s| changed(s, |_, _, s| s * 1000.0));
    let u = |x: &Inputs<ScoreMatrix>, beta| {
        let qb = QueryBank { beta, ..QueryBank::default() };
        corrected(qb.fit(&HeldOutBank(&x.bank), &x.test, D).unwrap().map(), D, &x.test)
    };
    assert!(u(&large, 1000.0).iter().flatten().all(|u| u.is_finite()));
    // If all scores of a column are far lower, nothing underflows to −∞ either.
    let low = x.map(|s| changed(s, |_, _, s| s - 1.0));
    assert!(u(&low, 1000.0).iter().flatten().all(|u| u.is_finite()));
}

/// β multiplies the stored score: for logits of scale 64, the same β is a 64th.
#[test]
fn beta_multiplies_the_stored_score() {
    let x = Inputs::random(D, -0.4, 0.6, 6);
    let logits = x.map(|s| changed(s, |_, _, s| 64.0 * s));
    let u = |x: &Inputs<ScoreMatrix>, beta| {
        let qb = QueryBank { beta, ..QueryBank::default() };
        corrected(qb.fit(&HeldOutBank(&x.bank), &x.test, D).unwrap().map(), D, &x.test)
    };
    assert_eq!(u(&x, 64.0), u(&logits, 1.0));
}

#[test]
fn what_is_no_number_is_refused() {
    let s = random(5, 4, -0.5, 0.5, 4);
    let error = |qb: QueryBank| qb.fit(&TestQueries(&s), &s, D).unwrap_err().to_string();
    let qb = QueryBank::default();
    for beta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let want = format!("β of QB-Norm: expected a number above 0 and below 1e200, got {beta}");
        assert_eq!(error(QueryBank { beta, ..qb }), want);
    }
    assert_eq!(
        error(QueryBank { k: 0, ..qb }),
        "k of QB-Norm: expected at least 1 neighbour, got 0"
    );
}
