//! The score of one image and one text from their products, with all data in the cache.

#![allow(clippy::needless_range_loop)] // lanes and registers are counted

use super::weights::{Lane, Norms, best, dot, has_nan, weigh};
use super::{Cosine, Item, Negative, Pool, Rule, Spreads};
use crate::dispatch::multiversion;
#[cfg(target_arch = "x86_64")]
use crate::dispatch::{Level, level};
use crate::math::{LANES, mul_add};

/// The smallest denominator of a cosine.
pub(super) const SHORTEST: f32 = 1e-8;

/// A quadratic form below this share of the mean of the keys' squares is summed in f64.
const CANCELS: f32 = 0.01;

/// Memory of a pair. Every matrix is `[q, lanes]`, with zeros as padding. A scratch serves only one batch, because
/// keys that it already holds are not loaded again.
#[derive(Default)]
pub(super) struct PairScratch {
    pub(super) queries: usize,
    pub(super) keys: usize,
    /// The item whose keys are loaded.
    loaded: Option<usize>,
    pub(super) s: Vec<Lane>,
    pub(super) w: Vec<Lane>,
    /// `w G`
    pub(super) y: Vec<Lane>,
    /// Gram matrix of the keys, `[keys, lanes]`, and its diagonal.
    pub(super) gram: Vec<Lane>,
    pub(super) squares: Vec<Lane>,
    /// `‖q‖²`, `x_q` and the contribution of each query.
    pub(super) lengths: Vec<f32>,
    pub(super) x: Vec<f32>,
    pub(super) parts: Vec<f32>,
    pub(super) shared: Norms,
}

impl PairScratch {
    /// Sets the sizes for a pair, the Gram matrix of its keys and the squares of its queries. The products keep old
    /// values until they are written; the padding is 0.
    pub(super) fn start(&mut self, [queries, keys]: [Item; 2], of: usize) {
        self.queries = queries.count;
        if self.loaded != Some(of) {
            self.load_keys(keys);
            self.loaded = Some(of);
        }
        let size = queries.count * self.shared.real.len();
        for matrix in [&mut self.s, &mut self.w, &mut self.y] {
            matrix.resize(size, [0.0; LANES]);
        }
        let diagonal = |q: usize| queries.gram.values[q * queries.gram.stride + q];
        self.lengths.clear();
        self.lengths.extend((0..queries.count).map(diagonal));
        for row in [&mut self.x, &mut self.parts] {
            row.clear();
            row.resize(queries.count, 0.0);
        }
    }

    fn load_keys(&mut self, Item { count: keys, gram, .. }: Item) {
        let lanes = keys.div_ceil(LANES);
        self.keys = keys;
        self.s.clear(); // a former product may be padding now
        for (row, size) in [
            (&mut self.squares, lanes),
            (&mut self.shared.real, lanes),
            (&mut self.gram, keys * lanes),
        ] {
            row.clear();
            row.resize(size, [0.0; LANES]);
        }
        self.shared.real.as_flattened_mut()[..keys].fill(1.0);
        for (k, row) in self.gram.chunks_exact_mut(lanes).enumerate() {
            row.as_flattened_mut()[..keys].copy_from_slice(&gram.values[k * gram.stride..][..keys]);
            self.squares.as_flattened_mut()[k] = gram.values[k * gram.stride + k];
        }
    }

    /// Products of one query, padding included.
    pub(super) fn row(&mut self, query: usize) -> &mut [f32] {
        let lanes = self.shared.real.len();
        self.s[query * lanes..(query + 1) * lanes].as_flattened_mut()
    }
}

multiversion! {
    /// The score of the pair that the scratch holds.
    pub(super) fn forward[FMA](
        scratch: &mut PairScratch,
        rule: &Rule,
        t: f32,
        spread: &[f32],
        score: &mut f32,
    ) {
        best(&scratch.s, &mut scratch.shared);
        if let Some(negative) = &rule.negative {
            negatives(scratch, negative, t, spread);
        }
        if let Some(cosine) = &rule.cosine {
            cosines::<FMA>(scratch, cosine, t);
        }
        if let Some(weights) = &rule.relevance {
            let PairScratch { s, w, shared, parts, .. } = scratch;
            let lanes = shared.real.len();
            weigh::<FMA>(weights, t, s, shared, w);
            for ((s, w), part) in s.chunks_exact(lanes).zip(w.chunks_exact(lanes)).zip(parts) {
                *part += dot::<FMA>(s, w);
            }
        }
        *score = pooled(&rule.pool, &scratch.parts);
    }
}

/// Computes `x_q`, and adds the negative branch to the part of each query.
#[inline(always)]
fn negatives(scratch: &mut PairScratch, negative: &Negative, t: f32, spread: &[f32]) {
    let PairScratch { s, shared, x, parts, .. } = scratch;
    let rows = s.chunks_exact(shared.real.len());
    for ((x, best), s) in x.iter_mut().zip(&shared.best).zip(rows) {
        *x = if has_nan(s) { f32::NAN } else { best - t };
    }
    for (q, part) in parts.iter_mut().enumerate() {
        if let Some(value) = effect(negative, x, spread, q) {
            *part += value;
        }
    }
}

/// The value of a query in the negative branch, if the query counts.
#[inline(always)]
pub(super) fn effect(negative: &Negative, x: &[f32], spread: &[f32], q: usize) -> Option<f32> {
    let (mask, value) = match &negative.spread {
        None => (x[q], x[q]),
        Some(by) => {
            let row = &spread[q * x.len()..(q + 1) * x.len()];
            let mixed = row.iter().zip(x).map(|(p, x)| p * x).sum::<f32>();
            (mixed, if by.what == Spreads::Mask { x[q] } else { mixed })
        }
    };
    let hidden = negative.masked && mask >= 0.0; // a NaN is not
    (!hidden).then_some(value)
}

/// Computes weights and `w G`, and adds the cosine to the part of each query.
#[inline(always)]
fn cosines<const FMA: bool>(scratch: &mut PairScratch, cosine: &Cosine, t: f32) {
    weigh::<FMA>(&cosine.weights, t, &scratch.s, &mut scratch.shared, &mut scratch.w);
    times_gram(scratch);
    for q in 0..scratch.queries {
        let (along, _, norm) = attended::<FMA>(scratch, cosine, q);
        scratch.parts[q] += along / if norm > SHORTEST { norm } else { SHORTEST };
    }
}

/// `Σ w s`, `wᵀ G w` and the product of the norms, which may be 0.
#[inline(always)]
pub(super) fn attended<const FMA: bool>(
    scratch: &PairScratch,
    cosine: &Cosine,
    q: usize,
) -> (f32, f32, f32) {
    let lanes = scratch.shared.real.len();
    let at = q * lanes..(q + 1) * lanes;
    let (s, w, y) = (&scratch.s[at.clone()], &scratch.w[at.clone()], &scratch.y[at]);
    let mut squares = dot::<FMA>(w, y);
    if squares < CANCELS * dot::<FMA>(w, &scratch.squares) {
        squares = in_double(w.as_flattened(), &scratch.gram, lanes, scratch.keys);
    }
    let squares = if squares > 0.0 { squares } else { 0.0 };
    let length = if cosine.unit_queries { 1.0 } else { scratch.lengths[q] };
    let length = if length > 0.0 { length } else { 0.0 };
    (dot::<FMA>(w, s), squares, squares.sqrt() * length.sqrt())
}

/// The quadratic form, its terms and their sum in f64.
#[inline(never)]
fn in_double(w: &[f32], gram: &[Lane], lanes: usize, keys: usize) -> f32 {
    let mut total = 0.0;
    for (row, &a) in gram.chunks_exact(lanes).zip(w).take(keys) {
        let terms = row.as_flattened().iter().zip(w);
        let along: f64 = terms.map(|(&g, &b)| f64::from(g) * f64::from(b)).sum();
        total += f64::from(a) * along;
    }
    total as f32
}

/// `y = w G`
pub(super) fn times_gram(scratch: &mut PairScratch) {
    let PairScratch { w, y, gram, shared, .. } = scratch;
    rows_times_gram(w, y, gram, shared.real.len());
}

multiversion! {
    /// Computes as many columns at a time as registers hold. Sums that do not fit would go through memory at every step.
    fn rows_times_gram[FMA](w: &[Lane], y: &mut [Lane], gram: &[Lane], lanes: usize) {
        #[cfg(target_arch = "x86_64")]
        let most = if level() == Level::Avx512 { 3 } else { 1 };
        #[cfg(not(target_arch = "x86_64"))]
        let most = 1;
        let mut first = 0;
        while first < lanes {
            first += match most.min(lanes - first) {
                1 => columns::<FMA, 1>(w, y, gram, lanes, first),
                2 => columns::<FMA, 2>(w, y, gram, lanes, first),
                _ => columns::<FMA, 3>(w, y, gram, lanes, first),
            };
        }
    }
}

/// Computes `L` lanes of columns, four queries at a time, and returns `L`.
#[inline(always)]
fn columns<const FMA: bool, const L: usize>(
    w: &[Lane],
    y: &mut [Lane],
    gram: &[Lane],
    lanes: usize,
    first: usize,
) -> usize {
    for (w, y) in w.chunks(4 * lanes).zip(y.chunks_mut(4 * lanes)) {
        let rows = w.len() / lanes;
        // A missing row repeats the last row; its result is not kept.
        let of = |r: usize| w[r.min(rows - 1) * lanes..][..lanes].as_flattened();
        let mut sums = [[[0.0; LANES]; L]; 4];
        let terms = gram.chunks_exact(lanes).zip(of(0)).zip(of(1)).zip(of(2)).zip(of(3));
        for ((((g, &a), &b), &c), &d) in terms {
            // A copy, because the compiler makes vectors only of values that nothing else can change.
            let g: [Lane; L] = *g[first..].first_chunk().expect("L lanes from the first on");
            let x = [a, b, c, d];
            for r in 0..4 {
                for l in 0..L {
                    for k in 0..LANES {
                        sums[r][l][k] = mul_add::<FMA>(x[r], g[l][k], sums[r][l][k]);
                    }
                }
            }
        }
        for (y, sums) in y.chunks_exact_mut(lanes).zip(sums) {
            y[first..first + L].copy_from_slice(&sums);
        }
    }
    L
}

#[inline(always)]
fn pooled(pool: &Pool, parts: &[f32]) -> f32 {
    let most =
        || parts.iter().fold(f32::NEG_INFINITY, |m, &x| if x <= m || m.is_nan() { m } else { x });
    match *pool {
        Pool::Mean => parts.iter().sum::<f32>() / parts.len() as f32,
        Pool::Sum => parts.iter().sum(),
        Pool::Max => most(),
        Pool::LogSumExp { scale } => {
            let most = most();
            let sum: f32 = parts.iter().map(|&x| (scale * (x - most)).exp()).sum();
            most + sum.ln() / scale
        }
    }
}
