//! Traps of mutual proximity.

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

/// Worked by hand, in eighths: row 0 is 1, 2, 2, and column 1 of the bank is 2, 3, 1. Both counts are strict.
#[test]
fn equal_scores_are_not_smaller() {
    let test = ScoreMatrix::from_rows([[0.125, 0.25, 0.25]]);
    let bank = ScoreMatrix::from_rows([[0.0, 0.25, 0.5], [0.0, 0.375, 0.5], [0.0, 0.125, 0.25]]);
    let fit = EmpiricalProximity::default().fit(&HeldOutBank(&bank), &test, D).unwrap();
    let u = corrected(fit.map(), D, &test)[0].clone();
    // F = 0, 1/3, 1/3; G = 3/3, 1/3, 0/3. F/(m·p) is added to each product.
    for (got, want) in u.iter().zip([0.0, 1.0 / 9.0 + 1.0 / 27.0, 1.0 / 27.0]) {
        assert!((got - want).abs() < 1e-15, "{got}, {want}");
    }
}

#[test]
fn zeros_of_both_signs_are_equal() {
    let test = ScoreMatrix::from_rows([[0.0, -0.0, 0.5]]);
    let bank = ScoreMatrix::from_rows([[-0.0, 0.0, 0.0], [-1.0, -1.0, 0.0]]);
    let fit = EmpiricalProximity::default().fit(&HeldOutBank(&bank), &test, D).unwrap();
    let u = corrected(fit.map(), D, &test)[0].clone();
    assert_eq!(u[0], u[1]);
}

/// The expected counts of each query come from loops over all scores; equal counts are ordered by score, then by index.
#[test]
fn ties_of_counts_are_broken_by_the_score_then_by_the_index() {
    for direction in Direction::BOTH {
        let mut tied = 0;
        for seed in 61..65 {
            // Some twenty values: ties everywhere.
            let x = Inputs::random(direction, 0.0, 0.02, seed);
            let (s, z) = (&x.test, &x.bank);
            let queries = |s: &ScoreMatrix| direction.queries(s.clone(), s.transpose());
            let (s, z) = (queries(s), queries(z));
            let (m, p) = (s.texts(), z.images());
            let held_out = HeldOutBank(&x.bank);
            let empirical =
                EmpiricalProximity::default().fit(&held_out, &x.test, direction).unwrap();
            let got = ranking(empirical.map(), direction, &x.test);
            assert_eq!(got.len(), s.images());
            for (q, got) in got.iter().enumerate() {
                let row = s.row(q);
                let product = |j: usize| {
                    let below = (0..m).filter(|&other| row[other] < row[j]).count();
                    below * (0..p).filter(|&b| z.row(b)[j] < row[j]).count()
                };
                let count: Vec<_> = (0..m).map(product).collect();
                let mut want: Vec<_> = (0..m).collect();
                want.sort_by(|&a, &b| count[b].cmp(&count[a]).then(row[b].total_cmp(&row[a])));
                assert_eq!(*got, want, "{direction}, query {q}");
                let neighbours = want.windows(2);
                tied += neighbours
                    .filter(|w| count[w[0]] == count[w[1]] && row[w[0]] > row[w[1]])
                    .count();
            }
        }
        assert!(tied > 50, "only {tied} ties that the score breaks");
    }
}

#[test]
fn too_many_scores_are_refused_with_another_form_named() {
    let s = random(5, 4, -0.5, 0.5, 62);
    let few = EmpiricalProximity { most_entries: 19 };
    let error = few.fit(&TestQueries(&s), &s, D).unwrap_err().to_string();
    let want = "mutual proximity: expected at most 19 scores held at once (GaussianProximity holds none), got 20";
    assert_eq!(error, want);
    assert!(EmpiricalProximity { most_entries: 20 }.fit(&TestQueries(&s), &s, D).is_ok());
    // 60 × 2,000,000 scores without a matrix: tiles of one-dimensional embeddings.
    use itm_core::tiles::{Embeddings, Tiles};
    let (v, w) = (vec![1.0; 60], vec![1.0; 2_000_000]);
    let images = Embeddings::new("images", 60, 1, &v).unwrap();
    let tiles = Tiles::new(images, Embeddings::new("texts", 2_000_000, 1, &w).unwrap()).unwrap();
    let error = EmpiricalProximity::default().fit(&TestQueries(&tiles), &tiles, D).unwrap_err();
    assert!(error.to_string().contains("GaussianProximity"), "{error}");
}

/// Both factors round to 1 in f32 and, for the larger scores, in f64.
#[test]
fn saturated_factors_do_not_tie() {
    let test = changed(&random(40, 30, -0.1, 0.1, 63), |i, j, s| match (i, j) {
        (0, 3) => 0.9,
        (0, 7) => 0.95,
        _ => s,
    });
    let bank = random(50, 30, -0.1, 0.1, 64);
    let fit = GaussianProximity.fit(&HeldOutBank(&bank), &test, D).unwrap();
    let u = |j: usize| fit.map().rescore(1, j, test.row(0)[j]); // row 1 itself has no such large scores
    assert!(u(7) > u(3) && u(3) > -1e-15, "{} and {}", u(7), u(3));
}

/// Row moments are over items, column moments over queries, in population form.
#[test]
fn gaussian_moments_are_those_of_row_and_column() {
    for direction in Direction::BOTH {
        let x = Inputs::random(direction, -0.4, 0.6, 65);
        let queries = |s: &ScoreMatrix| direction.queries(s.clone(), s.transpose());
        let (s, z) = (queries(&x.test), queries(&x.bank));
        let moments = |values: Vec<f64>| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            (mean, (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt())
        };
        let phi = |z: f64| (0.5 * libm::erfc(-z / 2f64.sqrt())).ln();
        let fit = GaussianProximity.fit(&HeldOutBank(&x.bank), &x.test, direction).unwrap();
        let u = corrected(fit.map(), direction, &x.test);
        let mut no_row_factor = Vec::new();
        for (q, got) in u.iter().enumerate() {
            let row = moments(s.row(q).iter().map(|&s| f64::from(s)).collect());
            let mut columns = Vec::new();
            for (j, got) in got.iter().enumerate() {
                let column = (0..z.images()).map(|b| f64::from(z.row(b)[j])).collect();
                let (score, column) = (f64::from(s.row(q)[j]), moments(column));
                let factor = |(mean, sd): (f64, f64)| phi((score - mean) / sd);
                let want = factor(row) + factor(column);
                assert!((got - want).abs() < 1e-11 * want.abs().max(1.0), "{got}, {want}");
                columns.push(factor(column));
            }
            no_row_factor.push(columns);
        }
        assert_ne!(orders(&u), orders(&no_row_factor), "the row factor varies within a row");
    }
}

/// With a large offset, plain sums of squares would lose all digits.
#[test]
fn moments_do_not_cancel() {
    let small = random(200, 100, -0.5, 0.5, 66);
    let offset = changed(&small, |_, _, s| s + 4096.0); // exact: scores are multiples of 1/1024
    let u = |s: &ScoreMatrix| {
        corrected(GaussianProximity.fit(&TestQueries(s), s, D).unwrap().map(), D, s)
    };
    for (a, b) in u(&small).concat().iter().zip(u(&offset).concat()) {
        assert!((a - b).abs() < 1e-9, "{a}, {b}");
    }
}

#[test]
fn a_constant_column_has_the_floor_as_its_deviation() {
    let s = constant(70, 3, 0.3);
    let fit = GaussianProximity.fit(&TestQueries(&s), &s, D).unwrap();
    assert!((fit.map().rescore(0, 0, 0.3) - 2.0 * 0.5f64.ln()).abs() < 1e-15, "z = 0 twice");
    // 2e-6 above 0.3: z is about 2, because f32 rounds 0.3 + 2e-6.
    let up = 0.3 + 2e-6f32;
    let z = (f64::from(up) - f64::from(0.3f32)) / 1e-6;
    let want = 2.0 * (0.5 * libm::erfc(-z / 2f64.sqrt())).ln();
    assert!((fit.map().rescore(0, 0, up) - want).abs() < 1e-9);
    let infinite = Masked { scores: &s, value: f32::NEG_INFINITY, at: |i, j| (i, j) == (1, 2) };
    let error = GaussianProximity.fit(&TestQueries(&infinite), &infinite, D).unwrap_err();
    let want = "bank, item 2: expected a finite deviation of its scores, got NaN";
    assert_eq!(error.to_string(), want);
}

#[test]
fn the_two_forms_differ() {
    let x = Inputs::random(D, -0.4, 0.6, 67);
    let bank = HeldOutBank(&x.bank);
    let gaussian = GaussianProximity.fit(&bank, &x.test, D).unwrap();
    let empirical = EmpiricalProximity::default().fit(&bank, &x.test, D).unwrap();
    let [a, b] = [gaussian, empirical].map(|fit| ranking(fit.map(), D, &x.test));
    assert_ne!(a, b);
}
