//! Weights of the AAAI loss from a memory bank: constants, computed as logarithms in double precision.

use serde::{Deserialize, Serialize};

/// Constants of the bank's weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BankOptions {
    /// α of the positives' weights.
    pub alpha: f64,
    /// β of the negatives' weights.
    pub beta: f64,
    /// e₁, with α. It cancels: no value changes a weight.
    pub ep1: f64,
    /// e₂, with β.
    pub ep2: f64,
    /// Neighbours in the bank.
    pub mb_k: usize,
    /// Share of the training batches that make a bank.
    pub mb_rate: f64,
    /// Whether β also multiplies e₂, and e₂ also shifts the positives, as α and e₁ do. Then e₂ cancels too.
    pub consistent_offsets: bool,
}

impl Default for BankOptions {
    /// The values of the released code.
    fn default() -> Self {
        Self {
            alpha: 40.0,
            beta: 40.0,
            ep1: 0.2,
            ep2: 0.1,
            mb_k: 250,
            mb_rate: 0.05,
            consistent_offsets: false,
        }
    }
}

/// Scores of a batch against a bank that holds none of its pairs; row-major.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BankScores {
    /// Entries n of the bank.
    pub entries: usize,
    /// Images of the batch against texts of the bank, `[b, n]`.
    pub to_texts: Vec<f32>,
    /// Texts of the batch against images of the bank, `[b, n]`.
    pub to_images: Vec<f32>,
}

/// W and w of the bank form.
///
/// ```text
/// a_i, b_t   the k_b largest of to_texts, to_images;  p_j = S_jj
/// A_i = Σ_l exp(β a_il − e₂),   B_t = Σ_l exp(β b_tl − e₂)
/// W_it = (A_i + B_t) / (A_i + B_t + exp(β p_i) + exp(β p_t)),   W_ii = 0
/// A⁺_i = Σ_l exp(α (a_il − e₁)),   B⁺_i = Σ_l exp(α (b_il − e₁))
/// w_i  = 1 − exp(α (p_i − e₁)) / (exp(α (p_i − e₁)) + A⁺_i + B⁺_i)
/// ```
///
/// `k_b` is `mb_k`, or b where the *batch* is smaller than `mb_k` (released), and never more than the bank holds.
///
/// # Departures
/// `consistent_offsets` writes `exp(β (a − e₂))` and `exp(β (p − e₂))`: the offset then cancels.
#[derive(Debug, Clone, PartialEq)]
pub struct BankWeights {
    /// W, `[b, b]`
    pub negatives: Vec<f32>,
    /// w, `[b]`
    pub positives: Vec<f32>,
}

impl BankWeights {
    /// The weights for the scores `[b, b]` of a batch.
    ///
    /// # Panics
    /// If the scores are not square, the bank is empty, its scores are not for `b` pairs, `mb_k` is 0, or another number of the
    /// options is not finite.
    pub fn new(scores: &[f32], bank: &BankScores, options: &BankOptions) -> Self {
        let (b, n) = (scores.len().isqrt(), bank.entries);
        assert!(b * b == scores.len(), "{} scores are not square", scores.len());
        for (name, values) in [("to_texts", &bank.to_texts), ("to_images", &bank.to_images)] {
            let got = values.len();
            assert!(
                n > 0 && b.checked_mul(n) == Some(got),
                "{name}: {got} scores of {b} pairs and {n} entries"
            );
        }
        let BankOptions { alpha, beta, ep1, ep2, mb_k, consistent_offsets, .. } = *options;
        assert!(mb_k > 0, "mb_k: expected at least 1, got 0");
        for (name, value) in [("alpha", alpha), ("beta", beta), ("ep1", ep1), ("ep2", ep2)] {
            assert!(value.is_finite(), "{name}: expected a finite number, got {value}");
        }
        let kept = b.min(mb_k).min(n);
        let nearest = |values: &[f32]| -> Vec<Vec<f64>> {
            values.chunks_exact(n).map(|row| largest(row, kept)).collect()
        };
        let (a, c) = (nearest(&bank.to_texts), nearest(&bank.to_images));
        let p: Vec<f64> = (0..b).map(|j| f64::from(scores[j * b + j])).collect();
        let sums = |rows: &[Vec<f64>], z: &dyn Fn(f64) -> f64| -> Vec<f64> {
            rows.iter().map(|row| log_sum_exp(row.iter().map(|&x| z(x)))).collect()
        };

        let own_offset = if consistent_offsets { ep2 } else { 0.0 };
        let bank_offset = if consistent_offsets { beta * ep2 } else { ep2 };
        let of_bank = |x: f64| beta * x - bank_offset;
        let (of_a, of_c) = (sums(&a, &of_bank), sums(&c, &of_bank));
        let own: Vec<f64> = p.iter().map(|&p| beta * (p - own_offset)).collect();
        let weight = |i: usize, t: usize| {
            if i == t { 0.0 } else { sigmoid(plus(of_a[i], of_c[t]) - plus(own[i], own[t])) }
        };
        let strict = |x: f64| alpha * (x - ep1);
        let (of_a, of_c) = (sums(&a, &strict), sums(&c, &strict));
        let positive = |j: usize| sigmoid(plus(of_a[j], of_c[j]) - strict(p[j]));
        Self {
            negatives: (0..b * b).map(|k| weight(k / b, k % b) as f32).collect(),
            positives: (0..b).map(|j| positive(j) as f32).collect(),
        }
    }
}

/// The k largest, in descending order.
fn largest(row: &[f32], k: usize) -> Vec<f64> {
    let mut row = row.to_vec();
    if k < row.len() {
        row.select_nth_unstable_by(k, |a, b| b.total_cmp(a));
        row.truncate(k);
    }
    row.sort_unstable_by(|a, b| b.total_cmp(a)); // one order of summation
    row.into_iter().map(f64::from).collect()
}

fn log_sum_exp(z: impl Iterator<Item = f64> + Clone) -> f64 {
    let peak = z.clone().fold(f64::NEG_INFINITY, f64::max);
    peak + z.map(|z| (z - peak).exp()).sum::<f64>().ln()
}

fn plus(a: f64, b: f64) -> f64 {
    log_sum_exp([a, b].into_iter())
}

fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}
