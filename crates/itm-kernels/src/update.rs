//! One-pass updates of parameters: Adam, the moving average, and the sum of squares that clipping needs.
//!
//! Each function works on blocks of a fixed size, so no result depends on the number of threads.

use rayon::prelude::*;

use crate::dispatch::multiversion;

/// Values per task: 64 KiB of each operand.
const BLOCK: usize = 16384;

/// Factors of one Adam update, computed in double precision and rounded once.
///
/// ```text
/// m ← m + (1−β₁)(c g − m),   v ← β₂ v + (1−β₂)(c g)²
/// θ ← (1 − η λ) θ − η/(1−β₁ᵗ) · m / (√v / √(1−β₂ᵗ) + ε)
/// ```
///
/// | symbol | here |
/// |---|---|
/// | c | `scale` |
/// | 1 − β₁ | `rest_1` |
/// | β₂, 1 − β₂ | `beta_2`, `rest_2` |
/// | 1 − η λ | `keep` |
/// | η / (1 − β₁ᵗ) | `rate` |
/// | 1 / √(1 − β₂ᵗ) | `bias_2` |
/// | ε | `epsilon` |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamStep {
    /// Factor of every gradient: 1, or less if the norm was clipped.
    pub scale: f32,
    /// Share of the gradient in the first moment.
    pub rest_1: f32,
    /// Share of the second moment that stays.
    pub beta_2: f32,
    /// Share of the squared gradient in the second moment.
    pub rest_2: f32,
    /// Share of the parameter that decay leaves.
    pub keep: f32,
    /// Rate of the step, corrected for a first moment that began at 0.
    pub rate: f32,
    /// Correction of the root of a second moment that began at 0: a factor, not a divisor.
    pub bias_2: f32,
    /// Prevents a division by a second moment of 0.
    pub epsilon: f32,
}

impl AdamStep {
    /// The factors of update number `t` of a parameter, counted from 1.
    ///
    /// # Panics
    /// If β₁ or β₂ is not in `[0, 1)`, ε, the decay or the scale is negative or not finite, the rate is not finite, or `t` is 0.
    pub fn new(betas: [f64; 2], epsilon: f64, decay: f64, rate: f64, scale: f64, t: u64) -> Self {
        for (what, value, most) in [
            ("β₁", betas[0], 1.0),
            ("β₂", betas[1], 1.0),
            ("ε", epsilon, f64::MAX),
            ("λ", decay, f64::MAX),
            ("c", scale, f64::MAX),
        ] {
            assert!((0.0..most).contains(&value), "{what} of Adam: {value}, not in 0 to {most:e}");
        }
        assert!(t > 0 && rate.is_finite(), "update {t} at the rate {rate}");
        let t = i32::try_from(t).unwrap_or(i32::MAX); // βᵗ is 0 long before
        let bias = betas.map(|beta| 1.0 - beta.powi(t));
        Self {
            scale: scale as f32,
            rest_1: (1.0 - betas[0]) as f32,
            beta_2: betas[1] as f32,
            rest_2: (1.0 - betas[1]) as f32,
            keep: (1.0 - rate * decay) as f32,
            rate: (rate / bias[0]) as f32,
            bias_2: bias[1].sqrt().recip() as f32,
            epsilon: epsilon as f32,
        }
    }

    /// The same factors, but ε is added to the root before its correction, and decay comes after the update.
    ///
    /// ```text
    /// θ ← (1 − η λ)(θ − η/(1−β₁ᵗ) · m / ((√v + ε) / √(1−β₂ᵗ)))
    /// ```
    pub(crate) fn of_bert(self) -> Self {
        Self { epsilon: self.epsilon * self.bias_2, rate: self.rate * self.keep, ..self }
    }
}

/// One update in place of a parameter and its moments; see [`AdamStep`].
///
/// # Panics
/// If the four slices differ in length.
pub fn adam(
    theta: &mut [f32],
    grad: &[f32],
    first: &mut [f32],
    second: &mut [f32],
    step: &AdamStep,
) {
    let n = theta.len();
    let lengths = [grad.len(), first.len(), second.len()];
    assert_eq!(lengths, [n; 3], "gradient and moments of a parameter of {n} values");
    theta
        .par_chunks_mut(BLOCK)
        .zip(grad.par_chunks(BLOCK))
        .zip(first.par_chunks_mut(BLOCK).zip(second.par_chunks_mut(BLOCK)))
        .for_each(|((theta, grad), (first, second))| {
            adam_block(theta, grad, first, second, *step);
        });
}

/// Moving average in place: `target ← m target + (1 − m) online`.
///
/// # Panics
/// If the two slices differ in length, or `m` is not in `[0, 1]`.
pub fn ema(target: &mut [f32], online: &[f32], m: f64) {
    assert_eq!(target.len(), online.len(), "values of a parameter and of its average");
    assert!((0.0..=1.0).contains(&m), "momentum {m}, not in 0 to 1");
    target.par_chunks_mut(BLOCK).zip(online.par_chunks(BLOCK)).for_each(|(target, online)| {
        ema_block(target, online, m as f32, (1.0 - m) as f32);
    });
}

/// `Σ x²` in double precision: first within blocks, then over the blocks in their order.
pub(crate) fn sum_of_squares(values: &[f32]) -> f64 {
    let block = |values: &[f32]| {
        let mut sums = [0.0; 8];
        squares_block(values, &mut sums);
        sums.iter().sum::<f64>()
    };
    let blocks: Vec<f64> = values.par_chunks(BLOCK).map(block).collect();
    blocks.iter().sum()
}

multiversion! {
    // Never fused: memory is the limit, and so every instruction set gives the same bits.
    fn adam_block[_FMA](
        theta: &mut [f32],
        grad: &[f32],
        first: &mut [f32],
        second: &mut [f32],
        step: crate::update::AdamStep,
    ) {
        let all = theta.iter_mut().zip(grad).zip(first.iter_mut().zip(second.iter_mut()));
        for ((x, &g), (m, v)) in all {
            let g = g * step.scale;
            *m += step.rest_1 * (g - *m);
            *v = step.beta_2 * *v + step.rest_2 * (g * g);
            *x = step.keep * *x - step.rate * (*m / (v.sqrt() * step.bias_2 + step.epsilon));
        }
    }
}

multiversion! {
    // As above.
    fn ema_block[_FMA](target: &mut [f32], online: &[f32], m: f32, rest: f32) {
        target.iter_mut().zip(online).for_each(|(t, &o)| *t = *t * m + o * rest);
    }
}

multiversion! {
    /// Adds to eight sums side by side. A product of two `f32` is exact in `f64`.
    fn squares_block[_FMA](values: &[f32], sums: &mut [f64; 8]) {
        let (eights, tail) = values.as_chunks::<8>();
        for eight in eights {
            for k in 0..8 {
                sums[k] += f64::from(eight[k]) * f64::from(eight[k]);
            }
        }
        for (sum, &x) in sums.iter_mut().zip(tail) {
            *sum += f64::from(x) * f64::from(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    fn random(n: usize, seed: u64) -> Vec<f32> {
        (0..n as u64).map(|k| unit(seed, k) - 0.5).collect()
    }

    /// First step by hand: g = 2 · 0.5 = 1, m = 0.1, v = 0.001, both corrected to 1; θ = 0.98 · 3 − 0.1 · 1 / (1 + 1).
    #[test]
    fn golden_first_step() {
        let step = AdamStep::new([0.9, 0.999], 1.0, 0.2, 0.1, 0.5, 1);
        let (mut x, mut m, mut v) = ([3.0], [0.0], [0.0]);
        adam(&mut x, &[2.0], &mut m, &mut v, &step);
        let want = [(x[0], 2.89), (m[0], 0.1), (v[0], 0.001)];
        assert!(want.iter().all(|(got, want)| (got - want).abs() < 1e-6), "{want:?}");
    }

    /// First step by hand, with ε added to √v = √0.001 and decay last: 0.98 · (3 − 0.1 · 1 / ((√0.001 + 1) / √0.001)).
    #[test]
    fn golden_first_step_of_bert() {
        let step = AdamStep::new([0.9, 0.999], 1.0, 0.2, 0.1, 0.5, 1).of_bert();
        let mut x = [3.0];
        adam(&mut x, &[2.0], &mut [0.0], &mut [0.0], &step);
        let root = 0.001f64.sqrt();
        let want = 0.98 * (3.0 - 0.1 * root / (root + 1.0));
        assert!((f64::from(x[0]) - want).abs() < 1e-6, "{} and {want}", x[0]);
    }

    /// By hand, and over the edge of a block.
    #[test]
    fn golden_average_and_squares() {
        let mut target = vec![1.0; BLOCK + 3];
        ema(&mut target, &vec![5.0; BLOCK + 3], 0.75);
        assert!(target.iter().all(|&t| t == 2.0));
        assert_eq!(sum_of_squares(&target), 4.0 * (BLOCK + 3) as f64);
        assert!((sum_of_squares(&[3e30, 4e30]).sqrt() / 5e30 - 1.0).abs() < 1e-7);
        assert!(sum_of_squares(&[1.0, f32::NAN]).is_nan());
    }

    /// Neither the number of threads nor the instruction set changes a bit.
    #[test]
    fn threads_and_instruction_sets_change_no_bit() {
        let n = 3 * BLOCK + 77;
        let all = || {
            let (mut x, mut m, mut v) = (random(n, 1), random(n, 2), random(n, 3));
            v.iter_mut().for_each(|v| *v = v.abs());
            let step = AdamStep::new([0.9, 0.999], 1e-8, 0.1, 0.01, 0.7, 3);
            adam(&mut x, &random(n, 4), &mut m, &mut v, &step);
            ema(&mut m, &x, 0.995);
            (sum_of_squares(&x).to_bits(), x, m, v)
        };
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let want = pool(3).install(all);
        assert!(pool(1).install(all) == want);
        #[cfg(target_arch = "x86_64")]
        for level in [crate::dispatch::Level::Avx2, crate::dispatch::Level::Baseline] {
            let got = pool(1).install(|| {
                crate::dispatch::FORCED.set(Some(level));
                all()
            });
            assert!(got == want, "{level:?}");
        }
    }

    #[test]
    #[should_panic(expected = "c of Adam: NaN, not in 0 to")]
    fn a_scale_of_nan_is_refused() {
        AdamStep::new([0.9, 0.999], 1e-8, 0.0, 0.01, f64::NAN, 1);
    }

    #[test]
    #[should_panic(expected = "gradient and moments of a parameter of 2 values")]
    fn moments_of_another_length_are_refused() {
        let step = AdamStep::new([0.9, 0.999], 1e-8, 0.0, 0.01, 1.0, 1);
        adam(&mut [0.0; 2], &[0.0; 2], &mut [0.0; 1], &mut [0.0; 2], &step);
    }
}
