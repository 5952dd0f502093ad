//! Traps of DBNorm.

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

fn dual() -> DualBank {
    DualBank { query_beta: 20.0, item_beta: 10.0, ..DualBank::default() }
}

fn dis() -> DualBank {
    DualBank { dynamic: true, ..dual() }
}

fn u(of: DualBank, x: &Inputs<ScoreMatrix>) -> Vec<Vec<f64>> {
    let fit = of.fit(&HeldOutBank(&x.bank), &x.item_bank, &x.test, x.direction).unwrap();
    corrected(fit.map(), x.direction, &x.test)
}

/// The expected values come from the equation, each factor separately.
#[test]
fn the_test_queries_are_scored_and_both_factors_are_independent() {
    let x = Inputs::random(D, -0.4, 0.6, 21);
    let (b1, b2) = (20.0, 10.0);
    let sum = |s: &ScoreMatrix, beta: f64, j: usize| {
        lse((0..s.images()).map(|b| beta * f64::from(s.row(b)[j])))
    };
    let active = |s: &ScoreMatrix, j: usize| (0..s.images()).any(|b| s.ranking(b)[0] == j);
    let (got_is, got_dis) = (u(dual(), &x), u(dis(), &x));
    assert_eq!(got_is.len(), x.test.images());
    let mut kinds = [0; 4];
    for q in 0..x.test.images() {
        let top = x.test.ranking(q)[0];
        let holds = (active(&x.bank, top), active(&x.item_bank, top));
        kinds[usize::from(holds.0) + 2 * usize::from(holds.1)] += 1;
        for j in 0..x.test.texts() {
            let (lq, lg) = (sum(&x.bank, b1, j), sum(&x.item_bank, b2, j));
            let s = (b1 + b2) * f64::from(x.test.row(q)[j]);
            assert!((got_is[q][j] - (s - lq - lg)).abs() < 1e-11);
            let less = if holds.0 { lq } else { 0.0 } + if holds.1 { lg } else { 0.0 };
            assert!((got_dis[q][j] - (s - less)).abs() < 1e-11, "query {q}, item {j}");
        }
    }
    assert!(kinds.iter().all(|&k| k > 0), "all four kinds of queries occur: {kinds:?}");
}

#[test]
fn dual_dis_is_dual_is_where_every_item_is_active() {
    let x = Inputs::random(D, -0.4, 0.6, 22);
    let all = x.test.texts();
    let full = DualBank { query_k: all, item_k: all, ..dis() };
    assert_eq!(u(full, &x), u(dual(), &x));
    assert_ne!(u(dis(), &x), u(dual(), &x));
    // It is not enough if all items are active in one bank only.
    assert_ne!(u(DualBank { item_k: all, ..dis() }, &x), u(dual(), &x));
    assert_ne!(u(DualBank { query_k: all, ..dis() }, &x), u(dual(), &x));
}

#[test]
fn k_above_the_other_items_and_a_beta_of_nothing_are_no_trouble() {
    let x = Inputs::random(D, -0.4, 0.6, 25);
    let fit = |of: DualBank| of.fit(&HeldOutBank(&x.bank), &x.item_bank, &x.test, D).unwrap();
    let large = DualBank { query_k: 1000, item_k: 1000, ..dis() };
    let (large, all) = (fit(large), fit(dual()));
    assert_eq!(corrected(large.map(), D, &x.test), corrected(all.map(), D, &x.test));
    let none = fit(DualBank { item_beta: 0.0, ..dual() });
    let qb = QueryBank { dynamic: false, ..QueryBank::default() };
    let qb = qb.fit(&HeldOutBank(&x.bank), &x.test, D).unwrap();
    assert_eq!(corrected(none.map(), D, &x.test), corrected(qb.map(), D, &x.test));
}

#[test]
fn what_is_no_number_is_refused() {
    let s = constant(3, 4, 0.5);
    let error = |of: DualBank| of.fit(&TestQueries(&s), &s, &s, D).unwrap_err().to_string();
    let none = DualBank { query_beta: 0.0, item_beta: 0.0, ..dual() };
    assert_eq!(error(none), "β₁ + β₂ of DBNorm: expected a number above 0, got 0");
    let nan = DualBank { item_beta: f64::NAN, ..dual() };
    assert_eq!(error(nan), "β₂ of DBNorm: expected a number from 0, below 1e200, got NaN");
    let k = DualBank { item_k: 0, ..dual() };
    assert_eq!(error(k), "k of DBNorm's item bank: expected at least 1 neighbour, got 0");
}
