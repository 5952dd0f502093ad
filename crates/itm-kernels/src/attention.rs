//! Self-attention with several heads, from packed queries, keys and values; no matrix of scores is kept.
//!
//! ```text
//! a_ij = exp(q_i·k_j / √w) / Σ_{j′<n} exp(q_i·k_j′ / √w)      j < n, the row's number of keys
//! y_i  = Σ_j m_ij a_ij v_j                                    m: 1, or dropout's 0 and 1 / (1 − p)
//!
//! dV = (m ⊙ a)ᵀ G,   dA = m ⊙ (G Vᵀ),   dS = a ⊙ (dA − Σ_j a dA) / √w,   dQ = dS K,   dK = dSᵀ Q
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | q, k, v | thirds of the rows of `qkv` | `[b, l, 3d]`, heads side by side within each |
//! | w | width of a head | d / heads |
//! | y | the result | `[b, l, d]` |
//! | G | `grad` | `[b, l, d]` |
//!
//! With a causal mask query i attends to the keys j ≤ i only.
//!
//! One head of one row is one task. It computes the scores of a block of queries at a time, in memory that stays in
//! the cache. The backward pass recomputes the scores from `qkv`, so the saved memory grows with the length and not
//! with its square. The order of each sum is fixed.
//!
//! In bf16 the operands of all seven products are rounded: q, k, v, m ⊙ a, G and dS. The rest is f32.

mod plain;
mod rounded;

use rounded::HeadScratch;

use crate::blocks::{written, written_with};
use crate::dispatch::multiversion;
use crate::math::{LANES, exp, load, store};
use crate::matrix::Matrix;
use crate::precision::Precision;
use crate::random;

/// The settings of attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Heads {
    /// Number of heads.
    pub heads: usize,
    /// Number of keys of each row, `[b]`: queries attend to this number of positions, from the first on.
    pub keys: Vec<usize>,
    /// Whether a query attends only to its own position and to those before it.
    pub causal: bool,
    /// Share of the weights that is dropped, and the seed of the mask.
    pub dropout: Option<(f32, u64)>,
    /// Precision of the operands of all products. Softmax, its gradient and all sums are f32.
    pub precision: Precision,
}

impl Heads {
    /// The number of positions, l.
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn steps(&self, qkv: &[f32], d: usize) -> usize {
        let b = self.keys.len();
        assert!(self.heads > 0 && d.is_multiple_of(self.heads), "{} heads for {d}", self.heads);
        let step = b.checked_mul(3).and_then(|n| n.checked_mul(d)).unwrap_or(usize::MAX);
        let l = qkv.len() / step.max(1);
        let n = qkv.len();
        assert!(n == l * step, "{n} values for queries, keys and values of {b} rows of {l} × {d}");
        if let Some((rate, _)) = self.dropout {
            assert!((0.0..1.0).contains(&rate), "dropout {rate}, not in 0 to 1");
        }
        self.check_keys(l);
        l
    }

    /// Refuses a number of keys that is 0 or more than the steps.
    pub(crate) fn check_keys(&self, l: usize) {
        for (row, &n) in self.keys.iter().enumerate() {
            assert!((1..=l).contains(&n), "row {row}: {n} keys, not 1 to {l}");
        }
    }

    /// Softmax of the scores of the queries from `first` on, in place. A key that is not attended to gets weight 0.
    fn softmax(&self, one: &Head, first: usize, scores: &mut [f32]) {
        let (n, scale) = (one.keys, one.scale());
        if !self.causal {
            return softmax(scores, n, scale);
        }
        for (query, row) in scores.chunks_exact_mut(n).enumerate() {
            let (seen, later) = row.split_at_mut((first + query + 1).min(n));
            let count = seen.len();
            softmax(seen, count, scale);
            later.fill(0.0);
        }
    }

    /// Multipliers of the weights of some queries. A position of the mask is (pair, query, key).
    fn mask(&self, one: &Head, first: usize, mask: &mut [f32]) {
        let Some((rate, seed)) = self.dropout else { return };
        for (query, row) in mask.chunks_exact_mut(one.keys).enumerate() {
            let start = ((one.pair * one.l + first + query) * one.l) as u64;
            for (key, m) in row.iter_mut().enumerate() {
                *m = random::keep(seed, start + key as u64, rate);
            }
        }
    }
}

/// `y`, `[b, l, d]`.
///
/// # Panics
/// If the shapes do not fit, a row's number of keys is 0 or more than `l`, or the dropout is not in `[0, 1)`.
pub fn forward(qkv: &[f32], d: usize, heads: &Heads) -> Vec<f32> {
    forward_in(heads.precision.here(), qkv, d, heads)
}

fn forward_in(precision: Precision, qkv: &[f32], d: usize, heads: &Heads) -> Vec<f32> {
    let l = heads.steps(qkv, d);
    let w = d / heads.heads;
    let (n, one) = (heads.keys.len() * l * d, |pair| Head::new(qkv, l, d, pair, heads));
    let parts = match precision {
        Precision::F32 => written(n, l * w, |pair, to| plain::forward(&one(pair), heads, to)),
        Precision::Bf16 => written_with(n, l * w, HeadScratch::default, |scratch, pair, to| {
            rounded::forward(&one(pair), heads, scratch, to);
        }),
    };
    side_by_side(&parts, l, w, heads.heads, 1)
}

/// Gradient of `qkv` from the gradient of `y`.
///
/// # Panics
/// If the shapes do not fit, a row's number of keys is 0 or more than `l`, or the dropout is not in `[0, 1)`.
pub fn backward(qkv: &[f32], d: usize, grad: &[f32], heads: &Heads) -> Vec<f32> {
    backward_in(heads.precision.here(), qkv, d, grad, heads)
}

fn backward_in(
    precision: Precision,
    qkv: &[f32],
    d: usize,
    grad: &[f32],
    heads: &Heads,
) -> Vec<f32> {
    let l = heads.steps(qkv, d);
    assert_eq!(grad.len() * 3, qkv.len(), "values of the gradient");
    let w = d / heads.heads;
    let (n, one) = (heads.keys.len() * l * 3 * d, |pair| Head::new(qkv, l, d, pair, heads));
    let parts = match precision {
        Precision::F32 => written(n, 3 * l * w, |pair, to| {
            plain::backward(&one(pair), heads, grad, thirds(to));
        }),
        Precision::Bf16 => written_with(n, 3 * l * w, HeadScratch::default, |scratch, pair, to| {
            rounded::backward(&one(pair), heads, grad, scratch, thirds(to));
        }),
    };
    side_by_side(&parts, l, w, heads.heads, 3)
}

/// One head of one row: where its queries, keys and values are.
struct Head<'a> {
    qkv: &'a [f32],
    pair: usize,
    /// Steps, width of all heads, width of one head.
    l: usize,
    d: usize,
    w: usize,
    /// First position of the row in `qkv`, and first column of the head in a position.
    row: usize,
    column: usize,
    keys: usize,
}

/// Queries, keys or values.
#[derive(Clone, Copy)]
enum Which {
    Query = 0,
    Key = 1,
    Value = 2,
}

impl<'a> Head<'a> {
    fn new(qkv: &'a [f32], l: usize, d: usize, pair: usize, heads: &Heads) -> Self {
        let w = d / heads.heads;
        let (row, head) = (pair / heads.heads, pair % heads.heads);
        let keys = heads.keys[row];
        Self { qkv, pair, l, d, w, row: row * l, column: head * w, keys }
    }

    /// Queries, keys or values of `n` positions.
    fn part(&self, which: Which, first: usize, n: usize) -> Matrix<'a> {
        let start = (self.row + first) * 3 * self.d + which as usize * self.d + self.column;
        Matrix::strided(&self.qkv[start..], [n, self.w], [3 * self.d, 1])
    }

    /// The gradient of y at `n` positions.
    fn grad<'g>(&self, grad: &'g [f32], first: usize, n: usize) -> Matrix<'g> {
        let start = (self.row + first) * self.d + self.column;
        Matrix::strided(&grad[start..], [n, self.w], [self.d, 1])
    }

    /// 1 / √w
    fn scale(&self) -> f32 {
        1.0 / (self.w as f32).sqrt()
    }
}

/// The places of dq, dk and dv of one head.
fn thirds(to: &mut [f32]) -> [&mut [f32]; 3] {
    let third = to.len() / 3;
    let (dq, rest) = to.split_at_mut(third);
    let (dk, dv) = rest.split_at_mut(third);
    [dq, dk, dv]
}

/// Reorders the parts of every pair, from `[b, heads, parts, l, w]` to `[b, l, parts, heads, w]`.
fn side_by_side(from: &[f32], l: usize, w: usize, heads: usize, parts: usize) -> Vec<f32> {
    written(from.len(), parts * heads * w, |k, to| {
        let (row, step) = (k / l, k % l);
        for (at, to) in to.chunks_exact_mut(w).enumerate() {
            let (part, head) = (at / heads, at % heads);
            let start = (((row * heads + head) * parts + part) * l + step) * w;
            to.copy_from_slice(&from[start..start + w]);
        }
    })
}

multiversion! {
    /// Softmax of rows of `n` scores, in place.
    fn softmax[FMA](scores: &mut [f32], n: usize, scale: f32) {
        for row in scores.chunks_exact_mut(n) {
            let mut highest = [f32::NEG_INFINITY; LANES];
            let (whole, tail) = row.as_chunks::<LANES>();
            for x in whole {
                for k in 0..LANES {
                    highest[k] = if x[k] > highest[k] { x[k] } else { highest[k] };
                }
            }
            let most = highest.iter().chain(tail).fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m });
            let mut sums = [0.0f32; LANES];
            let (whole, tail) = row.as_chunks_mut::<LANES>();
            for x in whole {
                for k in 0..LANES {
                    x[k] = exp::<FMA>((x[k] - most) * scale);
                    sums[k] += x[k];
                }
            }
            let mut sum = sums.iter().sum::<f32>();
            for x in tail {
                *x = exp::<FMA>((*x - most) * scale);
                sum += *x;
            }
            let share = 1.0 / sum;
            row.iter_mut().for_each(|x| *x *= share);
        }
    }
}

multiversion! {
    /// `da ← a ⊙ (da − Σ a da) · scale`, row by row.
    fn softmax_backward[FMA](a: &[f32], da: &mut [f32], n: usize, scale: f32) {
        for (a, da) in a.chunks_exact(n).zip(da.chunks_exact_mut(n)) {
            let mut sums = [0.0f32; LANES];
            for j in (0..n).step_by(LANES) {
                let (x, y) = (load(a, j), load(da, j));
                for k in 0..LANES {
                    sums[k] += x[k] * y[k];
                }
            }
            let along = sums.iter().sum::<f32>();
            for j in (0..n).step_by(LANES) {
                let (x, mut y) = (load(a, j), load(da, j));
                for k in 0..LANES {
                    y[k] = x[k] * (y[k] - along) * scale;
                }
                store(da, j, y);
            }
        }
    }
}

fn multiply(to: &mut [f32], by: &[f32]) {
    to.iter_mut().zip(by).for_each(|(x, m)| *x *= m);
}

#[cfg(test)]
mod tests;
