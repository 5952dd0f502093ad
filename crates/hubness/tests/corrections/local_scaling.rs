//! Traps of local scaling and NICDM.

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

/// Worked by hand with quarters: the bank's distances to item 0 are 0.25, 0.5, 0.75. With k = 2, σ = 0.5, μ = 0.375.
/// The query's distance is 0.5.
#[test]
fn golden_of_two_items() {
    let bank = ScoreMatrix::from_rows([[0.75, 0.0], [0.25, 0.25], [0.5, 0.5]]);
    let test = ScoreMatrix::from_rows([[0.5, 0.25]]);
    for (form, want) in [
        (LocalForm::LocalScaling, 0.5f64.ln() - 2.0 * 0.5f64.ln()),
        (LocalForm::Nicdm, 0.375f64.ln() / 2.0 - 0.5f64.ln()),
    ] {
        let fit = LocalScaling { form, k: 2 }.fit(&HeldOutBank(&bank), &test, D).unwrap();
        let got = fit.map().rescore(0, 0, 0.5);
        assert!((got - want).abs() < 1e-15, "{form:?}: {got}, {want}");
    }
}

#[test]
fn forms_and_k_differ() {
    let x = Inputs::random(D, -0.4, 0.6, 52);
    let u = |of: LocalScaling| {
        ranking(of.fit(&HeldOutBank(&x.bank), &x.test, D).unwrap().map(), D, &x.test)
    };
    assert_ne!(u(LocalScaling::default()), u(LocalScaling::nicdm()));
    assert_ne!(u(LocalScaling::default()), u(LocalScaling { k: 5, ..LocalScaling::default() }));
    // k is clipped to the bank.
    let k = |k| u(LocalScaling { k, ..LocalScaling::nicdm() });
    assert_eq!(k(30), k(1000));
}

/// No neighbour is skipped as the query itself: with k = 1 the nearest neighbour counts.
#[test]
fn the_nearest_neighbour_is_not_left_out() {
    let bank = ScoreMatrix::from_rows([[0.75], [0.5]]);
    let of = LocalScaling { k: 1, ..LocalScaling::default() };
    let fit = of.fit(&HeldOutBank(&bank), &bank, D).unwrap();
    assert!((fit.map().rescore(0, 0, 0.0) - 0.25f64.ln()).abs() < 1e-15);
}

#[test]
fn distance_zero_is_best_and_widths_have_a_floor() {
    let perfect = constant(3, 2, 1.0);
    for form in [LocalForm::LocalScaling, LocalForm::Nicdm] {
        let of = LocalScaling { form, k: 2 };
        let fit = of.fit(&TestQueries(&perfect), &perfect, D).unwrap();
        let u = |s| fit.map().rescore(0, 0, s);
        assert!(u(1.0) > u(1.0f32.next_down()), "{form:?}");
        // Rounding may lift a cosine above 1.
        assert_eq!((u(1.0f32.next_up()), u(1.0).is_finite()), (u(1.0), true));
    }
    let fit = LocalScaling { k: 1, ..LocalScaling::default() }
        .fit(&TestQueries(&perfect), &perfect, D)
        .unwrap();
    assert!((fit.map().rescore(0, 0, 0.0) - 1e-12f64.ln()).abs() < 1e-12);
}

/// A pass over products, with a fit on cosines: distances below 0 counted as 0, and the smallest index came first.
#[test]
fn a_pass_over_other_scores_is_refused() {
    let good = random(5, 4, -0.5, 0.9, 54);
    let mut values = good.values().to_vec();
    values[7] = 12.1;
    let (other, pairs) =
        (ScoreMatrix::new(5, 4, values).unwrap(), Pairs::judged(5, vec![vec![0]; 4]));
    let of = LocalScaling { k: 2, ..LocalScaling::nicdm() };
    let [i2t, t2i] = Direction::BOTH.map(|d| of.fit(&TestQueries(&good), &good, d).unwrap());
    assert!(pass::top(&good, &i2t, 2).is_ok());
    for line in [
        pass::top(&other, &i2t, 2).unwrap_err(),
        pass::ranks(&other, &pairs.unwrap(), &i2t, &t2i).unwrap_err(),
        t2i.apply(&other).unwrap_err(),
    ] {
        let want = "scores: expected cosines, because distances are 1 − s, got 12.1";
        assert_eq!(line.to_string(), want);
    }
}

#[test]
fn what_cannot_be_cosines_is_refused() {
    let s = random(5, 4, 1.5, 3.0, 53);
    let error = LocalScaling::default().fit(&TestQueries(&s), &s, D).unwrap_err().to_string();
    assert!(
        error.starts_with("bank: expected cosines, because distances are 1 − s, got "),
        "{error}"
    );
    let good = constant(5, 4, 0.5);
    let error = LocalScaling::default().fit(&HeldOutBank(&good), &s, D).unwrap_err().to_string();
    assert!(error.starts_with("test: expected cosines"), "{error}");
    let none = LocalScaling { k: 0, ..LocalScaling::default() };
    let error = none.fit(&TestQueries(&good), &good, D).unwrap_err().to_string();
    assert_eq!(error, "k of local scaling: expected at least 1 neighbour, got 0");
}
