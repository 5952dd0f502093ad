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
//! One head of one row is one task. It computes the scores of a block of queries at a time, in memory that stays in
//! the cache. The backward pass recomputes the scores from `qkv`, so the saved memory grows with the length and not
//! with its square. The order of each sum is fixed.

use crate::blocks::written;
use crate::dispatch::multiversion;
use crate::math::{LANES, exp, load, store};
use crate::product::{Into, Matrix, Threads, product, transposed_here};
use crate::random;

/// Queries of one block: their scores stay in the second-level cache.
const QUERIES: usize = 128;

/// The settings of attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Heads {
    /// Number of heads.
    pub heads: usize,
    /// Number of keys of each row, `[b]`: queries attend to this number of positions, from the first on.
    pub keys: Vec<usize>,
    /// Share of the weights that is dropped, and the seed of the mask.
    pub dropout: Option<(f32, u64)>,
}

impl Heads {
    /// `(l, d)`.
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn sizes(&self, qkv: &[f32], d: usize) -> (usize, usize) {
        let b = self.keys.len();
        assert!(self.heads > 0 && d.is_multiple_of(self.heads), "{} heads for {d}", self.heads);
        let l = qkv.len() / (b * 3 * d).max(1);
        assert_eq!(qkv.len(), b * l * 3 * d, "queries, keys and values of {b} rows of {l} × {d}");
        for (row, &n) in self.keys.iter().enumerate() {
            assert!((1..=l).contains(&n), "row {row}: {n} keys, not 1 to {l}");
        }
        (l, d)
    }

    /// Multipliers of the weights of some queries. A position of the mask is (pair, query, key).
    fn mask(&self, pair: usize, l: usize, first: usize, n: usize, mask: &mut [f32]) {
        let Some((rate, seed)) = self.dropout else { return };
        for (query, row) in mask.chunks_exact_mut(n).enumerate() {
            let start = ((pair * l + first + query) * l) as u64;
            for (key, m) in row.iter_mut().enumerate() {
                *m = random::keep(seed, start + key as u64, rate);
            }
        }
    }
}

/// `y`, `[b, l, d]`.
///
/// # Panics
/// If the shapes do not fit, or a row's number of keys is 0 or more than `l`.
pub fn forward(qkv: &[f32], d: usize, heads: &Heads) -> Vec<f32> {
    let (l, d) = heads.sizes(qkv, d);
    let w = d / heads.heads;
    let parts = written(heads.keys.len() * l * d, l * w, |pair, to| {
        let one = Pair::new(qkv, l, d, pair, heads);
        let n = one.keys;
        let mut scores = vec![0.0; QUERIES.min(l) * n];
        let mut mask = one.scratch(&scores);
        for (first, to) in (0..l).step_by(QUERIES).zip(to.chunks_mut(QUERIES * w)) {
            let scores = &mut scores[..to.len() / w * n];
            one.weights(first, scores);
            if let Some(mask) = &mut mask {
                let mask = &mut mask[..scores.len()];
                heads.mask(pair, l, first, n, mask);
                multiply(scores, mask);
            }
            let weights = Matrix::new(scores, to.len() / w, n);
            product(Threads::This, to, Into::Replace, weights, one.values());
        }
    });
    side_by_side(&parts, l, w, heads.heads, 1)
}

/// Gradient of `qkv` from the gradient of `y`.
///
/// # Panics
/// If the shapes do not fit, or a row's number of keys is 0 or more than `l`.
pub fn backward(qkv: &[f32], d: usize, grad: &[f32], heads: &Heads) -> Vec<f32> {
    let (l, d) = heads.sizes(qkv, d);
    assert_eq!(grad.len() * 3, qkv.len(), "values of the gradient");
    let w = d / heads.heads;
    let parts = written(heads.keys.len() * l * 3 * d, 3 * l * w, |pair, to| {
        let (dq, rest) = to.split_at_mut(l * w);
        let (dk, dv) = rest.split_at_mut(l * w);
        Pair::new(qkv, l, d, pair, heads).backward(grad, heads, [dq, dk, dv]);
    });
    side_by_side(&parts, l, w, heads.heads, 3)
}

/// One head of one row.
struct Pair<'a> {
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
    /// `[w, keys]`
    keys_t: Vec<f32>,
    dropout: bool,
}

impl<'a> Pair<'a> {
    fn new(qkv: &'a [f32], l: usize, d: usize, pair: usize, heads: &Heads) -> Self {
        let w = d / heads.heads;
        let (row, head) = (pair / heads.heads, pair % heads.heads);
        let keys = heads.keys[row];
        let dropout = heads.dropout.is_some();
        let (row, column, keys_t) = (row * l, head * w, Vec::new());
        let mut one = Self { qkv, pair, l, d, w, row, column, keys, keys_t, dropout };
        one.keys_t = transposed_here(one.part(1, 0, keys));
        one
    }

    /// Queries (0), keys (1) or values (2) of some positions.
    fn part(&self, which: usize, first: usize, n: usize) -> Matrix<'a> {
        let from = (self.row + first) * 3 * self.d + which * self.d + self.column;
        Matrix::strided(&self.qkv[from..], n, self.w, 3 * self.d)
    }

    fn values(&self) -> Matrix<'a> {
        self.part(2, 0, self.keys)
    }

    fn scratch(&self, like: &[f32]) -> Option<Vec<f32>> {
        self.dropout.then(|| vec![0.0; like.len()])
    }

    /// Attention weights of some queries.
    fn weights(&self, first: usize, scores: &mut [f32]) {
        let queries = self.part(0, first, scores.len() / self.keys);
        let keys = Matrix::new(&self.keys_t, self.w, self.keys);
        product(Threads::This, scores, Into::Replace, queries, keys);
        softmax(scores, self.keys, 1.0 / (self.w as f32).sqrt());
    }

    fn backward(&self, grad: &[f32], heads: &Heads, [dq, dk, dv]: [&mut [f32]; 3]) {
        let &Self { l, d, w, keys: n, .. } = self;
        let values_t = transposed_here(self.values());
        let [mut a, mut da] = [(); 2].map(|()| vec![0.0; QUERIES.min(l) * n]);
        let mut mask = self.scratch(&a);
        let (dk, dv) = (&mut dk[..n * w], &mut dv[..n * w]);
        for (first, dq) in (0..l).step_by(QUERIES).zip(dq.chunks_mut(QUERIES * w)) {
            let rows = dq.len() / w;
            let (a, da) = (&mut a[..rows * n], &mut da[..rows * n]);
            self.weights(first, a);
            let grad = &grad[(self.row + first) * d + self.column..];
            let grad = Matrix::strided(grad, rows, w, d);
            let values_t = Matrix::new(&values_t, w, n);
            product(Threads::This, da, Into::Replace, grad, values_t);
            let how = if first == 0 { Into::Replace } else { Into::Add };
            if let Some(mask) = &mut mask {
                let mask = &mut mask[..rows * n];
                heads.mask(self.pair, l, first, n, mask);
                multiply(da, mask);
                multiply(mask, a);
                product(Threads::This, dv, how, Matrix::new(mask, rows, n).t(), grad);
            } else {
                product(Threads::This, dv, how, Matrix::new(a, rows, n).t(), grad);
            }
            softmax_backward(a, da, n, 1.0 / (w as f32).sqrt());
            let ds = Matrix::new(da, rows, n);
            product(Threads::This, dq, Into::Replace, ds, self.part(1, 0, n));
            product(Threads::This, dk, how, ds.t(), self.part(0, first, rows));
        }
    }
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
