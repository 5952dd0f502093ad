//! The weights that a query gives to each key, and their gradients.
//!
//! Loops over lanes read copies of their values. For such loops the compiler makes vectors; for values that other
//! code might change it makes branches.

#![allow(clippy::needless_range_loop)] // lanes are counted

use super::{KeyWeights, Norm};
use crate::lanes::sum;
use crate::math::{LANES, exp, mul_add};

/// Added to a sum or a norm before a division by it.
const TINY: f32 = 1e-8;

/// Keys side by side: one AVX-512 register.
pub(super) type Lane = [f32; LANES];

/// Values that the weights of one pair share.
#[derive(Default)]
pub(super) struct Norms {
    /// 1 for a key, 0 for padding.
    pub(super) real: Vec<Lane>,
    /// The largest product of each query.
    pub(super) best: Vec<f32>,
    /// `‖φ(s)‖` of each key, its factor `1 / (‖φ(s)‖ + 1e-8)`, and sums of the gradient. Without a norm the factor is 1.
    roots: Vec<Lane>,
    shares: Vec<Lane>,
    along: Vec<Lane>,
}

#[inline(always)]
pub(super) fn dot<const FMA: bool>(a: &[Lane], b: &[Lane]) -> f32 {
    let mut sums = [0.0; LANES];
    for (&a, &b) in a.iter().zip(b) {
        for k in 0..LANES {
            sums[k] = mul_add::<FMA>(a[k], b[k], sums[k]);
        }
    }
    sum(sums)
}

/// Whether there is a NaN. The padding has none.
#[inline(always)]
pub(super) fn has_nan(values: &[Lane]) -> bool {
    let mut found = [0; LANES];
    for &x in values {
        for k in 0..LANES {
            found[k] |= u32::from(x[k].is_nan());
        }
    }
    found.iter().fold(0, |any, found| any | found) != 0
}

/// The largest value that belongs to a key. It passes over NaN.
#[inline(always)]
fn largest(values: &[Lane], real: &[Lane]) -> f32 {
    let mut most = [f32::NEG_INFINITY; LANES];
    for (&x, &real) in values.iter().zip(real) {
        for k in 0..LANES {
            let x = if real[k] > 0.0 { x[k] } else { f32::NEG_INFINITY };
            most[k] = if x > most[k] { x } else { most[k] };
        }
    }
    let mut half = LANES / 2; // halves against halves, not one after another
    while half > 0 {
        for k in 0..half {
            most[k] = if most[k + half] > most[k] { most[k + half] } else { most[k] };
        }
        half /= 2;
    }
    most[0]
}

/// Writes the largest product of each query to [`Norms::best`], for thresholds and shifts.
#[inline(always)]
pub(super) fn best(s: &[Lane], shared: &mut Norms) {
    let Norms { real, best, .. } = shared;
    best.resize(s.len() / real.len(), 0.0);
    for (best, s) in best.iter_mut().zip(s.chunks_exact(real.len())) {
        *best = largest(s, real);
    }
}

#[inline(always)]
fn leaky(x: f32, leak: f32) -> f32 {
    if x > 0.0 { x } else { leak * x }
}

/// Weights of all queries, `[q, lanes]`, 0 on the padding.
#[inline(always)]
pub(super) fn weigh<const FMA: bool>(
    weights: &KeyWeights,
    t: f32,
    s: &[Lane],
    shared: &mut Norms,
    w: &mut [Lane],
) {
    let lanes = shared.real.len();
    match *weights {
        KeyWeights::Above { scale } => {
            let rows = s.chunks_exact(lanes).zip(w.chunks_exact_mut(lanes));
            for ((s, w), &best) in rows.zip(&shared.best) {
                above::<FMA>(s, &shared.real, best, scale, t, w);
            }
        }
        KeyWeights::Softmax { scale, leak, norm } => {
            shared.shares.clear();
            shared.shares.resize(lanes, [1.0; LANES]);
            if norm == Norm::Queries {
                norms_of_keys::<FMA>(s, leak, shared);
            }
            for (s, w) in s.chunks_exact(lanes).zip(w.chunks_exact_mut(lanes)) {
                for ((&s, &share), b) in s.iter().zip(&shared.shares).zip(w.iter_mut()) {
                    for k in 0..LANES {
                        b[k] = leaky(s[k], leak) * share[k];
                    }
                }
                softmax::<FMA>(w, &shared.real, scale);
            }
        }
    }
}

/// Exponentials above the threshold, divided by their sum. The exponents are shifted by the largest product, and the
/// 1e-8 is scaled to match.
#[inline(always)]
fn above<const FMA: bool>(
    s: &[Lane],
    real: &[Lane],
    most: f32,
    scale: f32,
    t: f32,
    w: &mut [Lane],
) {
    if most <= t {
        return w.fill([0.0; LANES]);
    }
    let mut sums = [0.0; LANES];
    for ((&s, &real), w) in s.iter().zip(real).zip(w.iter_mut()) {
        for k in 0..LANES {
            let e = exp::<FMA>(scale * (s[k] - most));
            w[k] = if s[k] > t && real[k] > 0.0 { e } else { 0.0 };
            sums[k] += w[k];
        }
    }
    let share = 1.0 / (sum(sums) + TINY * exp::<FMA>(-scale * (most - t)));
    for w in w {
        for k in 0..LANES {
            w[k] *= share;
        }
    }
}

/// `‖φ(s)‖` over the queries, for each key.
#[inline(always)]
fn norms_of_keys<const FMA: bool>(s: &[Lane], leak: f32, shared: &mut Norms) {
    let lanes = shared.real.len();
    shared.roots.clear();
    shared.roots.resize(lanes, [0.0; LANES]);
    for s in s.chunks_exact(lanes) {
        for (&s, squares) in s.iter().zip(shared.roots.iter_mut()) {
            let mut sums = *squares;
            for k in 0..LANES {
                let a = leaky(s[k], leak);
                sums[k] = mul_add::<FMA>(a, a, sums[k]);
            }
            *squares = sums;
        }
    }
    for (root, share) in shared.roots.iter_mut().zip(shared.shares.iter_mut()) {
        for k in 0..LANES {
            root[k] = root[k].sqrt();
            share[k] = 1.0 / (root[k] + TINY);
        }
    }
}

#[inline(always)]
fn softmax<const FMA: bool>(row: &mut [Lane], real: &[Lane], scale: f32) {
    let most = largest(row, real);
    let mut sums = [0.0; LANES];
    for (x, &real) in row.iter_mut().zip(real) {
        for k in 0..LANES {
            // The padding may exceed the largest value. It is replaced first, because 0 · ∞ is NaN.
            let x_k = if real[k] > 0.0 { x[k] } else { most };
            x[k] = exp::<FMA>(scale * (x_k - most)) * real[k];
            sums[k] += x[k];
        }
    }
    let share = 1.0 / sum(sums);
    for x in row {
        for k in 0..LANES {
            x[k] *= share;
        }
    }
}

/// Adds the gradient of the products to `ds`, from the gradient `dw` of the weights. `shared` must come from
/// [`weigh`]; `dw` is overwritten.
#[inline(always)]
pub(super) fn weigh_backward<const FMA: bool>(
    weights: &KeyWeights,
    s: &[Lane],
    shared: &mut Norms,
    w: &[Lane],
    dw: &mut [Lane],
    ds: &mut [Lane],
) {
    let lanes = shared.real.len();
    let scale = match *weights {
        KeyWeights::Above { scale } | KeyWeights::Softmax { scale, .. } => scale,
    };
    for (w, dw) in w.chunks_exact(lanes).zip(dw.chunks_exact_mut(lanes)) {
        let along = dot::<FMA>(w, dw);
        for (w, dw) in w.iter().zip(dw) {
            for k in 0..LANES {
                dw[k] = scale * w[k] * (dw[k] - along);
            }
        }
    }
    let KeyWeights::Softmax { leak, norm, .. } = *weights else {
        for (ds, dw) in ds.iter_mut().zip(dw) {
            for k in 0..LANES {
                ds[k] += dw[k];
            }
        }
        return;
    };
    match norm {
        Norm::None => {
            for ((ds, s), db) in ds.iter_mut().zip(s).zip(dw) {
                for k in 0..LANES {
                    ds[k] += if s[k] > 0.0 { db[k] } else { leak * db[k] };
                }
            }
        }
        Norm::Queries => through_norms_of_keys::<FMA>(leak, s, shared, dw, ds),
    }
}

/// `da = db / (n + ε) − a · Σ_q(db a) / (n (n + ε)²)`, then through φ. If a norm is 0, the second term is 0.
#[inline(always)]
fn through_norms_of_keys<const FMA: bool>(
    leak: f32,
    s: &[Lane],
    shared: &mut Norms,
    db: &[Lane],
    ds: &mut [Lane],
) {
    let lanes = shared.real.len();
    shared.along.clear();
    shared.along.resize(lanes, [0.0; LANES]);
    for (s, db) in s.chunks_exact(lanes).zip(db.chunks_exact(lanes)) {
        for ((s, db), along) in s.iter().zip(db).zip(shared.along.iter_mut()) {
            for k in 0..LANES {
                along[k] = mul_add::<FMA>(db[k], leaky(s[k], leak), along[k]);
            }
        }
    }
    for ((along, root), share) in shared.along.iter_mut().zip(&shared.roots).zip(&shared.shares) {
        for k in 0..LANES {
            let slope = share[k] * share[k] / root[k];
            along[k] = if root[k] > 0.0 { along[k] * slope } else { 0.0 };
        }
    }
    for ((ds, s), db) in
        ds.chunks_exact_mut(lanes).zip(s.chunks_exact(lanes)).zip(db.chunks_exact(lanes))
    {
        let terms = ds.iter_mut().zip(s).zip(db);
        for (((ds, s), db), (along, share)) in terms.zip(shared.along.iter().zip(&shared.shares)) {
            for k in 0..LANES {
                let da = db[k] * share[k] - leaky(s[k], leak) * along[k];
                ds[k] += if s[k] > 0.0 { da } else { leak * da };
            }
        }
    }
}
