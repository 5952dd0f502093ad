//! GELU in its exact form.
//!
//! ```text
//! y = x Φ(x) = max(x, 0) − |x| Φ(−|x|)          dy/dx = Φ(x) + x φ(x)
//! ```
//!
//! with the distribution function Φ and the density φ of the normal distribution. The form with the tail Φ(−|x|) has no
//! cancellation for negative x.

use crate::blocks;
use crate::dispatch::multiversion;
use crate::lanes::{Lanes, LanesMut, step};
use crate::math::{LANES, normal};

/// Largest |x| for which the tail is computed, as in [`normal`]. Beyond it |y − max(x, 0)| < 1e-31.
const LIMIT: f32 = 12.0;

/// `x Φ(x)`, with an error below 3e-7 · max(1, |y|).
pub fn forward(x: &[f32]) -> Vec<f32> {
    blocks::changed(x, |_, block| forward_block(block))
}

/// [`forward`] in place.
pub fn forward_in_place(x: &mut [f32]) {
    blocks::change(x, |_, block| forward_block(block));
}

/// Turns the gradient of y into the gradient of x.
///
/// # Panics
/// If the sizes differ.
pub fn backward(x: &[f32], grad: &mut [f32]) {
    blocks::change_beside(grad, x, backward_block);
}

multiversion! {
    fn forward_block[FMA](values: &mut [f32]) {
        let mut values = LanesMut::<LANES>::new(values, 0.0);
        for part in values.parts() {
            for values in part {
                step();
                let (x, mut y) = (*values, [0.0; LANES]);
                for k in 0..LANES {
                    let a = x[k].abs();
                    let (tail, _) = normal::<FMA>(a);
                    let a = if a > LIMIT { LIMIT } else { a };
                    let positive = if x[k] > 0.0 { x[k] } else { 0.0 };
                    y[k] = positive - a * tail;
                }
                *values = y;
            }
        }
        values.finish();
    }
}

multiversion! {
    fn backward_block[FMA](grad: &mut [f32], x: &[f32]) {
        let (x, mut grad) = (Lanes::<LANES>::new(x, 0.0), LanesMut::<LANES>::new(grad, 0.0));
        for (x, grad) in x.parts().into_iter().zip(grad.parts()) {
            for (x, grad) in x.iter().zip(grad) {
                step();
                let (x, mut g) = (*x, *grad);
                for k in 0..LANES {
                    let a = x[k].abs();
                    let (tail, density) = normal::<FMA>(a);
                    let a = if a > LIMIT { LIMIT } else { a };
                    let negative = tail - a * density; // dy/dx at −|x|; at |x| it is 1 minus this
                    g[k] *= if x[k] > 0.0 { 1.0 - negative } else { negative };
                }
                *grad = g;
            }
        }
        grad.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst,
    };

    /// Values and derivatives in double precision, from `tests/reference/kernels.py`; the last register is not full.
    #[test]
    fn golden_on_every_instruction_set() {
        let g = golden("kernels");
        let (x, c) = (f32s(&g["gelu_x"]), f32s(&g["gelu_c"]));
        assert_ne!(x.len() % LANES, 0);
        on_every_instruction_set(|| {
            let y = forward(&x);
            let error = worst(&y, &g["gelu_y"]);
            assert!(error < 3e-7, "y is off by {error:e}");
            for ((x, y), want) in x.iter().zip(&y).zip(&g["gelu_y"]) {
                let error = (f64::from(*y) / want - 1.0).abs();
                assert!(*x >= 0.0 || error < 6e-6, "y of {x} is {y}, not {want}");
            }
            let mut in_place = x.clone();
            forward_in_place(&mut in_place);
            assert_eq!(in_place, y);
            let mut d = c.clone();
            backward(&x, &mut d);
            let error = worst(&d, &g["gelu_dx"]);
            assert!(error < 5e-7, "the gradient is off by {error:e}");
        });
    }

    #[test]
    fn limits_and_nan() {
        let x = [1e30, f32::INFINITY, -1e30, f32::NEG_INFINITY, f32::NAN, 0.0, 1e-30];
        on_every_instruction_set(|| {
            let y = forward(&x);
            assert_eq!(y[..2], x[..2]);
            assert!(y[2].abs() < 1e-31 && y[3].abs() < 1e-31 && y[4].is_nan());
            assert!(y[5] == 0.0 && (y[6] / 0.5e-30 - 1.0).abs() < 3e-7);
            let mut d = [2.0; 7];
            backward(&x, &mut d);
            assert_eq!(d[..2], [2.0, 2.0]);
            assert!(d[2].abs() < 1e-29 && d[3].abs() < 1e-29 && d[4].is_nan());
            assert!(d[5..].iter().all(|d| (d - 1.0).abs() < 1e-6), "half the gradient at 0");
        });
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let x = random(40_000, 1);
        on_every_thread_count(|| {
            let mut d = random(x.len(), 2);
            backward(&x, &mut d);
            [forward(&x), d].concat()
        });
    }

    #[test]
    #[should_panic(expected = "values side by side")]
    fn another_size_is_refused() {
        backward(&[1.0; 3], &mut [1.0; 2]);
    }
}
