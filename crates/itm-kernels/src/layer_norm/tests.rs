use super::*;
use crate::tests::{f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst};

/// Values and gradients in double precision, from `tests/reference/kernels.py`: rows with large offsets, tiny rows
/// and huge rows.
#[test]
fn golden_on_every_instruction_set() {
    let g = golden("kernels");
    let [x, gamma, beta, c] = ["x", "gamma", "beta", "c"].map(|k| f32s(&g[&format!("norm_{k}")]));
    let norm = Norm { gamma: &gamma, beta: &beta, epsilon: 1e-12 };
    assert_ne!(gamma.len() % LANES, 0);
    on_every_instruction_set(|| {
        let (y, saved) = forward(&x, norm);
        let error = worst(&y, &g["norm_y"]);
        assert!(error < 2e-6, "y is off by {error:e}");
        let mut d = c.clone();
        let (d_gamma, d_beta) = backward(&x, &gamma, &saved, &mut d);
        for (row, (d, want)) in
            d.chunks(gamma.len()).zip(g["norm_d_x"].chunks(gamma.len())).enumerate()
        {
            let largest = want.iter().fold(0.0f64, |m, w| m.max(w.abs()));
            let error = d.iter().zip(want).map(|(&d, w)| (f64::from(d) - w).abs());
            let error = crate::tests::largest(error) / largest;
            assert!(largest > 0.0 && error < 4e-6, "dx of row {row} is off by {error:e} of it");
        }
        for (name, got) in [("gamma", d_gamma), ("beta", d_beta)] {
            let error = worst(&got, &g[&format!("norm_d_{name}")]);
            assert!(error < 3e-6, "gradient of {name} is off by {error:e}");
        }
    });
}

/// Every width from 2 to 69 against double precision. The values are random: −1, 1, −1, … would hide a lost value.
#[test]
fn every_width() {
    for d in 2..70 {
        let (x, gamma, beta) = (random(3 * d, 1), random(d, 2), random(d, 3));
        let norm = Norm { gamma: &gamma, beta: &beta, epsilon: 1e-5 };
        on_every_instruction_set(|| {
            let (y, _) = forward(&x, norm);
            for (x, y) in x.chunks(d).zip(y.chunks(d)) {
                let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / d as f64;
                let square = |&v: &f32| (f64::from(v) - mean).powi(2);
                let variance = x.iter().map(square).sum::<f64>() / d as f64;
                for k in 0..d {
                    let unit = (f64::from(x[k]) - mean) / (variance + 1e-5).sqrt();
                    let want = unit * f64::from(gamma[k]) + f64::from(beta[k]);
                    assert!((f64::from(y[k]) - want).abs() < 1e-6, "width {d}, value {k}");
                }
            }
        });
    }
}

#[test]
fn constant_huge_and_nan_rows() {
    let x = [[7.25; 4], [3e38, -3e38, 3e38, 1.0], [1.0, f32::NAN, 2.0, 3.0], [0.0; 4]].concat();
    let (gamma, beta) = ([2.0; 4], [1.0, 2.0, 3.0, 4.0]);
    let norm = Norm { gamma: &gamma, beta: &beta, epsilon: 1e-12 };
    on_every_instruction_set(|| {
        let (y, saved) = forward(&x, norm);
        assert_eq!(y[..4], beta, "a constant row");
        assert_eq!((&y[12..], saved[11]), (&beta[..], 1e6), "a row of zeros: 1 / √1e-12");
        assert!(y[8..12].iter().all(|v| v.is_nan()), "a NaN is not hidden");
        for huge in [[1e25, -3e25, 2e25, 5e24], [1e28, -3e28, 2e28, 5e27]] {
            let (y, saved) = forward(&huge, norm);
            let mut d = [1.0, 2.0, 3.0, 4.0];
            backward(&huge, &gamma, &saved, &mut d);
            assert_eq!((&y[..], d), (&beta[..], [0.0; 4]));
        }
    });
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (n, d) = (301, 150);
    let (x, gamma, beta) = (random(n * d, 1), random(d, 2), random(d, 3));
    on_every_thread_count(|| {
        let norm = Norm { gamma: &gamma, beta: &beta, epsilon: 1e-12 };
        let (y, saved) = forward(&x, norm);
        let mut grad = random(n * d, 4);
        let (d_gamma, d_beta) = backward(&x, &gamma, &saved, &mut grad);
        [y, saved, grad, d_gamma, d_beta].concat()
    });
}

#[test]
#[should_panic(expected = "7 values in rows of 2")]
fn a_broken_row_is_refused() {
    forward(&[0.0; 7], Norm { gamma: &[1.0; 2], beta: &[0.0; 2], epsilon: 1e-5 });
}
