//! The functions between the two linear maps of a transformer block.
//!
//! ```text
//! Gelu        y = x Φ(x) = max(x, 0) − |x| Φ(−|x|)      dy/dx = Φ(x) + x φ(x)
//! QuickGelu   y = x σ(1.702 x)
//! GeluTanh    y = ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
//! ```
//!
//! with the distribution function Φ and the density φ of the normal distribution. The form with the tail Φ(−|x|) has no
//! cancellation for negative x. As ½ (1 + tanh u) = σ(2u), the last two are one function with other constants:
//!
//! ```text
//! y = x σ(u),   u = a x + b x³        dy/dx = σ(u) + x σ(u) (1 − σ(u)) (a + 3 b x²)
//! ```

#[cfg(feature = "burn")]
use serde::{Deserialize, Serialize};

use crate::blocks;
use crate::dispatch::multiversion;
use crate::lanes::{each, each_with};
use crate::math::{clamp, mul_add, normal, sigmoid};

/// x within ±64: beyond, σ(u) is at its limit, and x² may overflow. NaN stays.
#[inline(always)]
fn near(x: f32) -> f32 {
    clamp(x, -64.0, 64.0)
}

/// A function between the two linear maps of a transformer block. Their values differ by at most 0.021.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "burn", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
pub enum Activation {
    /// The exact form, by erf: ViT, BERT, and the CLIP models of LAION.
    #[default]
    Gelu,
    /// With a sigmoid: the CLIP models of OpenAI.
    QuickGelu,
    /// With a hyperbolic tangent: SigLIP.
    GeluTanh,
}

impl Activation {
    /// The constants a and b of `x σ(a x + b x³)`; none for the exact form.
    pub(crate) fn constants(self) -> Option<[f32; 2]> {
        const STEEP: f32 = 2.0 * std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2; // 2 √(2/π)
        match self {
            Self::Gelu => None,
            Self::QuickGelu => Some([1.702, 0.0]),
            Self::GeluTanh => Some([STEEP, STEEP * 0.044_715]),
        }
    }

    /// y, with an error below 3e-7 · max(1, |y|).
    pub fn forward(self, x: &[f32]) -> Vec<f32> {
        blocks::changed(x, |_, block| forward_block(block, self.constants()))
    }

    /// [`forward`](Self::forward) in place.
    pub(crate) fn forward_in_place(self, x: &mut [f32]) {
        blocks::change(x, |_, block| forward_block(block, self.constants()));
    }

    /// Turns the gradient of y into the gradient of x.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn backward(self, x: &[f32], grad: &mut [f32]) {
        assert_eq!(grad.len(), x.len(), "values side by side");
        blocks::change(grad, |k, grad| {
            let x = &x[k * blocks::BLOCK..][..grad.len()];
            backward_block(grad, x, self.constants());
        });
    }
}

multiversion! {
    fn forward_block[FMA](values: &mut [f32], constants: Option<[f32; 2]>) {
        match constants {
            None => each(values, |_, x| {
                let (a, tail, _) = normal::<FMA>(x.abs()); // beyond 12, |y − max(x, 0)| < 1e-31
                let positive = if x > 0.0 { x } else { 0.0 };
                positive - a * tail
            }),
            Some([a, b]) => each(values, |_, x| {
                let c = near(x);
                let s = sigmoid::<FMA>(c * mul_add::<FMA>(b, c * c, a));
                if x > 0.0 { x * s } else { c * s }
            }),
        }
    }
}

multiversion! {
    fn backward_block[FMA](grad: &mut [f32], x: &[f32], constants: Option<[f32; 2]>) {
        match constants {
            None => each_with(grad, x, |_, g, x| {
                let (a, tail, density) = normal::<FMA>(x.abs());
                let negative = tail - a * density; // dy/dx at −|x|; at |x| it is 1 minus this
                g * if x > 0.0 { 1.0 - negative } else { negative }
            }),
            Some([a, b]) => each_with(grad, x, |_, g, x| {
                let x = near(x);
                let s = sigmoid::<FMA>(x * mul_add::<FMA>(b, x * x, a));
                let slope = x * mul_add::<FMA>(3.0 * b, x * x, a);
                g * mul_add::<FMA>(slope * (1.0 - s), s, s)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::LANES;
    use crate::tests::{
        f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst,
    };

    const ALL: [(Activation, &str); 3] = [
        (Activation::Gelu, "gelu"),
        (Activation::QuickGelu, "quick_gelu"),
        (Activation::GeluTanh, "gelu_tanh"),
    ];

    /// Values and derivatives in double precision, from `tests/reference/kernels.py`; the last register is not full.
    #[test]
    fn golden_on_every_instruction_set() {
        let g = golden("kernels");
        let (x, c) = (f32s(&g["gelu_x"]), f32s(&g["gelu_c"]));
        assert_ne!(x.len() % LANES, 0);
        on_every_instruction_set(|| {
            for (f, name) in ALL {
                let y = f.forward(&x);
                let want = &g[&format!("{name}_y")];
                let error = worst(&y, want);
                assert!(error < 3e-7, "{name}: y is off by {error:e}");
                for ((x, y), want) in x.iter().zip(&y).zip(want) {
                    let error = (f64::from(*y) / want - 1.0).abs();
                    let good = *x >= 0.0 || error < 1e-5 || want.abs() < 1e-35;
                    assert!(good, "{name} of {x} is {y}, not {want}");
                }
                let mut in_place = x.clone();
                f.forward_in_place(&mut in_place);
                assert_eq!(in_place, y);
                let mut d = c.clone();
                f.backward(&x, &mut d);
                let error = worst(&d, &g[&format!("{name}_dx")]);
                assert!(error < 2e-6, "{name}: the gradient is off by {error:e}");
            }
        });
    }

    #[test]
    fn limits_and_nan() {
        let x = [1e30, f32::INFINITY, -1e30, f32::NEG_INFINITY, f32::NAN, 0.0, 1e-30];
        on_every_instruction_set(|| {
            let y = Activation::Gelu.forward(&x);
            assert_eq!(y[..2], x[..2]);
            assert!(y[2].abs() < 1e-31 && y[3].abs() < 1e-31 && y[4].is_nan());
            assert!(y[5] == 0.0 && (y[6] / 0.5e-30 - 1.0).abs() < 3e-7);
            let mut d = [2.0; 7];
            Activation::Gelu.backward(&x, &mut d);
            assert_eq!(d[..2], [2.0, 2.0]);
            assert!(d[2].abs() < 1e-29 && d[3].abs() < 1e-29 && d[4].is_nan());
            assert!(d[5..].iter().all(|d| (d - 1.0).abs() < 1e-6), "half the gradient at 0");
            for f in [Activation::QuickGelu, Activation::GeluTanh] {
                let y = f.forward(&x);
                assert_eq!(y[..2], x[..2], "{f:?}");
                assert!(y[2].abs() < 1e-28 && y[3].abs() < 1e-28 && y[4].is_nan(), "{f:?} {y:?}");
                let mut d = [2.0; 7];
                f.backward(&x, &mut d);
                assert_eq!(d[..2], [2.0, 2.0], "{f:?}");
                assert!(d[2].abs() < 1e-28 && d[3].abs() < 1e-28 && d[4].is_nan(), "{f:?} {d:?}");
            }
        });
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let x = random(40_000, 1);
        on_every_thread_count(|| {
            let mut d = random(x.len(), 2);
            Activation::Gelu.backward(&x, &mut d);
            [Activation::Gelu.forward(&x), d].concat()
        });
    }

    #[test]
    #[should_panic(expected = "values side by side")]
    fn another_size_is_refused() {
        Activation::QuickGelu.backward(&[1.0; 3], &mut [1.0; 2]);
    }
}
