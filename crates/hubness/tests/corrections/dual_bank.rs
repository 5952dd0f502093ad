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
    let items = ItemBank::HeldOut(&x.item_bank);
    let fit = of.fit(&HeldOutBank(&x.bank), items, &x.test, x.direction).unwrap();
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
fn test_items_as_the_item_bank_leave_themselves_out() {
    for direction in Direction::BOTH {
        let x = Inputs::random(direction, -0.4, 0.6, 23);
        let bank = HeldOutBank(&x.bank);
        let fit = |items: ItemBank<'_>| dual().fit(&bank, items, &x.test, direction);
        let own = fit(ItemBank::TestItems(&x.test_items)).unwrap();
        let literal = fit(ItemBank::HeldOut(&x.test_items)).unwrap();
        let (own, literal) = (own.map().affine().unwrap(), literal.map().affine().unwrap());
        // The bias is LQ + LG. The literal form has exp(β₂·1) more in the sum of LG.
        for j in 0..x.test_items.images() {
            let at = |h: usize| direction.queries((h, j), (j, h));
            let z = |h: usize| 10.0 * f64::from(x.test_items.row(at(h).0)[at(h).1]);
            let others = lse((0..x.test_items.images()).filter(|&h| h != j).map(z));
            let all = lse((0..x.test_items.images()).map(z));
            let apart = literal.items[0][j] - own.items[0][j];
            assert!((apart - (all - others)).abs() < 1e-11 && apart > 0.1, "{direction}, {j}");
        }
    }
}

#[test]
fn k_above_the_other_items_and_a_beta_of_nothing_are_no_trouble() {
    let x = Inputs::random(D, -0.4, 0.6, 25);
    let fit = |of: DualBank| {
        let items = ItemBank::TestItems(&x.test_items);
        of.fit(&HeldOutBank(&x.bank), items, &x.test, D).unwrap()
    };
    let large = DualBank { query_k: 1000, item_k: 1000, ..dis() };
    let (large, all) = (fit(large), fit(dual()));
    assert_eq!(corrected(large.map(), D, &x.test), corrected(all.map(), D, &x.test));
    let none = fit(DualBank { item_beta: 0.0, ..dual() });
    let qb = QueryBank { dynamic: false, ..QueryBank::default() };
    let qb = qb.fit(&HeldOutBank(&x.bank), &x.test, D).unwrap();
    assert_eq!(corrected(none.map(), D, &x.test), corrected(qb.map(), D, &x.test));
}

/// Items 0 and 1 are nearest to each other. Item 2 is nearest only to itself, and its own row must not
/// make it active.
#[test]
fn a_test_item_does_not_make_itself_active() {
    let texts = ScoreMatrix::from_rows([[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.2, 1.0]]);
    let bank = ScoreMatrix::from_rows([[0.9, 0.1, 0.1]]);
    let test = ScoreMatrix::from_rows([[0.1, 0.2, 0.6], [0.1, 0.6, 0.2]]);
    let items = ItemBank::TestItems(&texts);
    let fit = dis().fit(&HeldOutBank(&bank), items, &test, D).unwrap();
    let u = corrected(fit.map(), D, &test);
    assert!((u[0][2] - 30.0 * f64::from(0.6f32)).abs() < 1e-12, "neither factor holds");
    assert!(u[1][1] < 30.0 * 0.6 - 1.0, "the item factor holds");
    let one = constant(1, 1, 0.5);
    let error = dis().fit(&HeldOutBank(&one), ItemBank::TestItems(&one), &one, D).unwrap_err();
    let want = "item bank: expected two or more test items against themselves, got 1 × 1";
    assert_eq!(error.to_string(), want);
}

/// Worked by hand: no factor holds, so the product is the square of the raw score.
#[test]
fn raw_product_is_literal_and_needs_positive_scores() {
    let raw = DualBank { inactive: Inactive::RawProduct, ..dis() };
    let x = Inputs::random(D, 0.05, 0.6, 24);
    assert_ne!(u(raw, &x), u(dis(), &x));
    assert_ne!(orders(&u(raw, &x)), orders(&u(dis(), &x)), "not only the values");

    let bank = ScoreMatrix::from_rows([[0.9, 0.1]]);
    let test = ScoreMatrix::from_rows([[0.25, 0.5]]);
    let items = ItemBank::HeldOut(&bank);
    let fit = raw.fit(&HeldOutBank(&bank), items, &test, D).unwrap();
    assert!((fit.map().rescore(0, 1, 0.5) - 0.25f64.ln()).abs() < 1e-15);
    // One factor holds: e^{β₁ s} / e^{β₁ 0.9} times s.
    let other = ScoreMatrix::from_rows([[0.1, 0.9]]);
    let fit = raw.fit(&HeldOutBank(&other), items, &test, D).unwrap();
    let want = 20.0 * 0.5 - 20.0 * f64::from(0.9f32) + 0.5f64.ln();
    assert!((fit.map().rescore(0, 1, 0.5) - want).abs() < 1e-13);

    for bad in [0.0, -0.25] {
        let test = ScoreMatrix::from_rows([[bad, 0.5]]);
        let error = raw.fit(&HeldOutBank(&bank), items, &test, D).unwrap_err().to_string();
        let want = format!(
            "test: expected scores above 0, because the raw product takes logarithms, got {bad}"
        );
        assert_eq!(error, want);
        assert!(dis().fit(&HeldOutBank(&bank), items, &test, D).is_ok());
    }
}

#[test]
fn what_is_no_number_is_refused() {
    let s = constant(3, 4, 0.5);
    let error = |of: DualBank| {
        let items = ItemBank::HeldOut(&s);
        of.fit(&TestQueries(&s), items, &s, D).unwrap_err().to_string()
    };
    let none = DualBank { query_beta: 0.0, item_beta: 0.0, ..dual() };
    assert_eq!(error(none), "β₁ + β₂ of DBNorm: expected a number above 0, got 0");
    let nan = DualBank { item_beta: f64::NAN, ..dual() };
    assert_eq!(error(nan), "β₂ of DBNorm: expected a finite number, 0 or more, got NaN");
    let k = DualBank { item_k: 0, ..dual() };
    assert_eq!(error(k), "k of DBNorm's item bank: expected at least 1 neighbour, got 0");
}
