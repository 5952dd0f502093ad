//! Tests of the log-sums.

use super::super::tests::{SHAPES, everywhere, tiles, unit};
use super::*;

/// Straight from the equation, two passes over whole rows.
fn naive(row: &[f32], beta: f64) -> f64 {
    let z: Vec<_> = row.iter().map(|&s| beta * f64::from(s)).collect();
    let most = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if z.is_empty() { most } else { most + z.iter().map(|z| (z - most).exp()).sum::<f64>().ln() }
}

#[test]
fn as_by_the_equation_with_the_same_bits_everywhere() {
    for (n, m, d) in SHAPES {
        let (v, w) = (unit(n, d, 1), unit(m, d, 2));
        let tiles = tiles(&v, &w, d);
        let scores = tiles.scores();
        let columns = scores.transpose();
        for beta in [0.0, 1.0, 30.0, -30.0, 1e4, 1e30] {
            let sums = tiles.run(&ExpSums::new(beta));
            let close = |got: f64, row: &[f32]| {
                let want = naive(row, beta);
                got == want || (got - want).abs() < 1e-12 * want.abs().max(1.0)
            };
            for i in 0..n {
                assert!(close(sums.images[i], scores.row(i)), "β = {beta}, image {i}");
            }
            for j in 0..m {
                assert!(close(sums.texts[j], columns.row(j)), "β = {beta}, text {j}");
            }
            everywhere(&tiles, |tiles| assert_eq!(tiles.run(&ExpSums::new(beta)), sums));
        }
    }
}

/// Worked by hand: log(e⁰ + e¹) = 1.3132616875182228; e¹⁰⁰⁰ overflows unless the maximum is taken out.
#[test]
fn golden_of_two_scores() {
    let tiles = tiles(&[1.0, 1000.0], &[0.0, 1.0], 1);
    let sums = tiles.run(&ExpSums::new(1.0));
    assert!((sums.images[0] - 1.313_261_687_518_222_8).abs() < 1e-15);
    assert_eq!(sums.images[1], 1000.0);
    assert!((sums.texts[0] - 2f64.ln()).abs() < 1e-15);
    assert_eq!(sums.texts[1], 1000.0);
}

/// One loud image must not swallow the small sums of the quiet ones beside it.
#[test]
fn a_wide_block_keeps_its_quiet_rows() {
    let v: Vec<_> = (0..300).map(|i| if i == 70 { 1.0 } else { 1e-4 * i as f32 }).collect();
    let tiles = tiles(&v, &[1.0, 0.5], 1);
    let scores = tiles.scores();
    let sums = tiles.run(&ExpSums::new(1e5));
    for i in 0..300 {
        let want = naive(scores.row(i), 1e5);
        assert!((sums.images[i] - want).abs() <= 1e-12 * want.max(1.0), "image {i}");
    }
}

#[test]
fn with_shifts_as_by_the_equation_with_the_same_bits_everywhere() {
    for (n, m, d) in SHAPES {
        let (v, w) = (unit(n, d, 1), unit(m, d, 2));
        let tiles = tiles(&v, &w, d);
        let scores = tiles.scores();
        for (beta, size) in [(0.0, 1.0), (30.0, 5.0), (1.0, 2000.0)] {
            let shifts = |k: usize, seed| -> Vec<f64> {
                unit(k, 1, seed).into_iter().map(|x| size * f64::from(x)).collect()
            };
            let (x, y) = (shifts(n, 3), shifts(m, 4));
            let consumer = ExpSums::new(beta).with_shifts(x.clone(), y.clone());
            let sums = tiles.run(&consumer);
            let z = |i: usize, j: usize| beta * f64::from(scores.row(i)[j]) + x[i] + y[j];
            let close = |got: f64, z: Vec<f64>| {
                let most = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let want = most + z.iter().map(|z| (z - most).exp()).sum::<f64>().ln();
                z.is_empty() || (got - want).abs() < 1e-12 * want.abs().max(1.0)
            };
            for i in 0..n {
                assert!(close(sums.images[i], (0..m).map(|j| z(i, j)).collect()), "image {i}");
            }
            for j in 0..m {
                assert!(close(sums.texts[j], (0..n).map(|i| z(i, j)).collect()), "text {j}");
            }
            everywhere(&tiles, |tiles| assert_eq!(tiles.run(&consumer), sums));
            assert_eq!(scores.run(&consumer).unwrap(), sums);
        }
    }
}

#[test]
fn shifts_of_zero_change_no_bit() {
    for (n, m, d) in SHAPES {
        let (v, w) = (unit(n, d, 1), unit(m, d, 2));
        let tiles = tiles(&v, &w, d);
        for beta in [1.0, -30.0, 1e4] {
            let shifted = ExpSums::new(beta).with_shifts(vec![0.0; n], vec![0.0; m]);
            assert_eq!(tiles.run(&shifted), tiles.run(&ExpSums::new(beta)));
        }
    }
}

/// Worked by hand: a masked image counts nowhere; a masked text is empty, and so is its sum.
#[test]
fn scores_of_minus_infinity_add_nothing() {
    let (n, m) = (130, 3);
    let value = |at: usize| if at / m == 1 || at % m == 2 { f32::NEG_INFINITY } else { 0.5 };
    // A matrix refuses such scores; consumers that exclude pairs pass them on in tiles.
    let run = |n: usize, m: usize, scores: Vec<f32>| {
        let consumer = ExpSums::new(2.0);
        let (mut total, mut lane) = (consumer.start(0..n, 0..m), consumer.start(0..n, 0..m));
        consumer.tile(&mut lane, &Tile::new(0..n, 0..m, &scores, m));
        consumer.merge(&mut total, lane);
        consumer.finish(total)
    };
    let sums = run(n, m, (0..n * m).map(value).collect());
    let nothing = f64::NEG_INFINITY;
    assert_eq!((sums.images[1], sums.texts[2]), (nothing, nothing));
    for image in (0..n).filter(|&i| i != 1) {
        assert!((sums.images[image] - (1.0 + 2f64.ln())).abs() < 1e-14);
    }
    for text in 0..2 {
        assert!((sums.texts[text] - (1.0 + 129f64.ln())).abs() < 1e-14);
    }
    let one = run(1, 2, vec![0.5, f32::NEG_INFINITY]);
    assert_eq!(one, BothSides { first: [0, 0], images: vec![1.0], texts: vec![1.0, nothing] });
}

/// The log-sum of one exponent is that exponent, for any neighbours.
#[test]
fn a_single_image_or_text_has_exact_sums() {
    let w = unit(700, 1, 5);
    let one = [0.7];
    let tiles = tiles(&one, &w, 1);
    let scores = tiles.scores();
    for beta in [30.0, 1e5] {
        let exact: Vec<_> = scores.values().iter().map(|&s| beta * f64::from(s)).collect();
        assert_eq!(tiles.run(&ExpSums::new(beta)).texts, exact);
        assert_eq!(scores.transpose().run(&ExpSums::new(beta)).unwrap().images, exact);
        let shifted = ExpSums::new(beta).with_shifts(vec![0.5], vec![0.25; 700]);
        let exact: Vec<_> = exact.iter().map(|z| z + 0.5 + 0.25).collect();
        everywhere(&tiles, |tiles| assert_eq!(tiles.run(&shifted).texts, exact));
    }
}

#[test]
#[should_panic(expected = "shifts of (2, 4), scores of (2, 3) images and texts")]
fn too_many_shifts_are_noticed() {
    let sums = ExpSums::new(1.0).with_shifts(vec![0.0; 2], vec![0.0; 4]);
    tiles(&[1.0, 2.0], &[0.0, 1.0, 2.0], 1).run(&sums);
}

#[test]
#[should_panic(expected = "a shift of inf cannot be added")]
fn a_shift_that_is_no_number() {
    let _ = ExpSums::new(1.0).with_shifts(vec![f64::INFINITY], vec![]);
}

#[test]
fn the_exponential_is_good_to_the_last_bits() {
    for step in 0..70_000 {
        let x = -0.01 * f64::from(step) - 1e-3 / f64::from(step + 1);
        assert!((exp(x) / x.exp() - 1.0).abs() < 1e-15, "exp({x}) = {}", exp(x));
    }
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(-1e300), exp(-700.0));
    assert_eq!(exp(f64::NEG_INFINITY), exp(-700.0));
}

#[test]
#[should_panic(expected = "β = NaN is not a number")]
fn a_beta_that_is_no_number() {
    let _ = ExpSums::new(f64::NAN);
}
