//! One image and one text backwards: the gradient of a score to its products and Gram matrices.

#![allow(clippy::needless_range_loop)] // lanes and registers are counted

use super::pair::{Scratch, attended, effect, forward, is_long, times_gram};
use super::weights::{Lane, weigh, weigh_backward};
use super::{Batch, Cosine, Item, Negative, Pool, Rule, Side, Spreads};
use crate::dispatch::multiversion;
use crate::math::{LANES, mul_add};

/// What one image gives to the gradients.
pub(super) struct Part {
    /// `[words of all texts, r]`
    pub(super) products: Vec<f32>,
    /// `[r, r]`
    pub(super) region_gram: Vec<f32>,
    /// Where regions ask: `[words, words]` of each text. Where words ask: the diagonals.
    pub(super) word_grams: Vec<f32>,
}

/// Gradients of a pair, laid out as the scratch.
#[derive(Default)]
struct Gradients {
    s: Vec<Lane>,
    w: Vec<Lane>,
    /// Of the keys' Gram matrix, `[keys, lanes]`.
    gram: Vec<Lane>,
    /// Of `‖q‖²`, of each query's part, of `wᵀ G w`.
    lengths: Vec<f32>,
    parts: Vec<f32>,
    squares: Vec<f32>,
}

impl Gradients {
    fn start(&mut self, scratch: &Scratch) {
        for (matrix, like) in
            [(&mut self.s, &scratch.s), (&mut self.w, &scratch.s), (&mut self.gram, &scratch.gram)]
        {
            matrix.clear();
            matrix.resize(like.len(), [0.0; LANES]);
        }
        for row in [&mut self.lengths, &mut self.parts, &mut self.squares] {
            row.clear();
            row.resize(scratch.queries, 0.0);
        }
    }
}

impl Batch<'_> {
    /// Gradients for one image's scores.
    pub(super) fn image_gradients(&self, scratch: &mut Scratch, i: usize, grad: &[f32]) -> Part {
        let r = self.images.iter().map(|image| image.count).max().unwrap_or(0);
        let words = self.texts.iter().map(|text| text.count);
        let asks = self.rule.queries;
        let (all, kept) = (words.clone().sum::<usize>(), words.map(|n| self.kept(n)).sum());
        let mut part = Part {
            products: vec![0.0; all * r],
            region_gram: vec![0.0; r * r],
            word_grams: vec![0.0; kept],
        };
        let (mut own, mut kept, mut score) = (Gradients::default(), 0, 0.0);
        for (c, &g) in grad.iter().enumerate() {
            let Item { first: row, count: words, .. } = self.texts[c];
            let to_words = &mut part.word_grams[kept..kept + self.kept(words)];
            kept += to_words.len();
            if g == 0.0 {
                continue; // most pairs of a hinge
            }
            let spread = self.load(scratch, i, c);
            forward(scratch, self.rule, self.thresholds[c], spread, &mut score); // the parts, for the pool
            own.start(scratch);
            pool_backward(&self.rule.pool, &scratch.parts, g, &mut own.parts);
            backward(scratch, self.rule, self.thresholds[c], spread, &mut own);
            let lanes = scratch.shared.real.len() * LANES;
            let (s, gram) = (own.s.as_flattened(), own.gram.as_flattened());
            let products = &mut part.products[row * r..(row + words) * r];
            match asks {
                Side::Words => {
                    for (to, s) in products.chunks_exact_mut(r).zip(s.chunks_exact(lanes)) {
                        to[..scratch.keys].copy_from_slice(&s[..scratch.keys]);
                    }
                    add(&mut part.region_gram, r, gram, lanes, scratch.keys);
                    to_words.copy_from_slice(&own.lengths);
                }
                Side::Regions => {
                    for (word, to) in products.chunks_exact_mut(r).enumerate() {
                        for (to, s) in to.iter_mut().zip(s.chunks_exact(lanes)) {
                            *to = s[word];
                        }
                    }
                    for (k, d) in own.lengths.iter().enumerate() {
                        part.region_gram[k * r + k] += d;
                    }
                    add(to_words, words, gram, lanes, words);
                }
            }
        }
        part
    }

    /// Values of a text in [`Part::word_grams`].
    fn kept(&self, words: usize) -> usize {
        if self.rule.queries == Side::Words { words } else { words * words }
    }

    /// Adds an image's part to the gradient of a text's Gram matrix, `[l, l]`.
    pub(super) fn add_word_gram(&self, text: usize, parts: &[f32], to: &mut [f32]) {
        let l = to.len().isqrt();
        let before: usize = self.texts[..text].iter().map(|t| self.kept(t.count)).sum();
        let words = self.texts[text].count;
        let part = &parts[before..before + self.kept(words)];
        if self.rule.queries == Side::Words {
            part.iter().enumerate().for_each(|(k, d)| to[k * l + k] += d);
        } else {
            add(to, l, part, words, words);
        }
    }
}

/// Adds a matrix of `n` rows and columns to another; the strides differ.
fn add(to: &mut [f32], to_stride: usize, from: &[f32], stride: usize, n: usize) {
    for (to, from) in to.chunks_mut(to_stride).zip(from.chunks(stride)).take(n) {
        to[..n].iter_mut().zip(&from[..n]).for_each(|(to, from)| *to += from);
    }
}

fn pool_backward(pool: &Pool, parts: &[f32], g: f32, to: &mut [f32]) {
    match *pool {
        Pool::Mean => to.fill(g / parts.len() as f32),
        Pool::Sum => to.fill(g),
        Pool::Max => {
            let first = (1..parts.len()).fold(0, |m, k| if parts[k] > parts[m] { k } else { m });
            to[first] = g;
        }
        Pool::LogSumExp { scale } => {
            let most = parts.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x));
            to.iter_mut().zip(parts).for_each(|(to, &x)| *to = (scale * (x - most)).exp());
            let share = g / to.iter().sum::<f32>();
            to.iter_mut().for_each(|to| *to *= share);
        }
    }
}

multiversion! {
    fn backward[FMA](scratch: &mut Scratch, rule: &Rule, t: f32, spread: &[f32], own: &mut Gradients) {
        if let Some(negative) = &rule.negative {
            negatives_backward(scratch, negative, spread, own);
        }
        if let Some(cosine) = &rule.cosine {
            weigh::<FMA>(&cosine.weights, t, &scratch.s, &mut scratch.shared, &mut scratch.w);
            times_gram::<FMA>(scratch);
            cosines_backward::<FMA>(scratch, cosine, own);
            let Scratch { s, w, shared, .. } = scratch;
            weigh_backward::<FMA>(&cosine.weights, s, shared, w, &mut own.w, &mut own.s);
        }
        if let Some(weights) = &rule.relevance {
            let Scratch { s, w, shared, .. } = scratch;
            let lanes = shared.real.len();
            weigh::<FMA>(weights, t, s, shared, w);
            for q in 0..own.parts.len() {
                let g = own.parts[q];
                for at in q * lanes..(q + 1) * lanes {
                    for k in 0..LANES {
                        own.w[at][k] = g * s[at][k];
                        own.s[at][k] = mul_add::<FMA>(g, w[at][k], own.s[at][k]);
                    }
                }
            }
            weigh_backward::<FMA>(weights, s, shared, w, &mut own.w, &mut own.s);
        }
    }
}

/// Into the first of a query's largest products.
#[inline(always)]
fn negatives_backward(scratch: &Scratch, negative: &Negative, spread: &[f32], own: &mut Gradients) {
    let n = scratch.queries;
    let lanes = scratch.shared.real.len() * LANES;
    let shares_value = negative.spread.as_ref().is_some_and(|by| by.what == Spreads::ValueAndMask);
    for q in 0..n {
        if effect(negative, &scratch.x, spread, q).is_none() {
            continue;
        }
        let g = own.parts[q];
        let mut give = |p: usize, g: f32| {
            let row = &scratch.s.as_flattened()[p * lanes..][..scratch.keys];
            let first = (1..row.len()).fold(0, |m, k| if row[k] > row[m] { k } else { m });
            own.s.as_flattened_mut()[p * lanes + first] += g;
        };
        if shares_value {
            (0..n).for_each(|p| give(p, spread[q * n + p] * g));
        } else {
            give(q, g);
        }
    }
}

/// `f = a / (√Q ‖q‖)`: into the products, the weights, `Q = wᵀ G w` and `‖q‖²`.
#[inline(always)]
fn cosines_backward<const FMA: bool>(scratch: &Scratch, cosine: &Cosine, own: &mut Gradients) {
    let lanes = scratch.shared.real.len();
    for q in 0..scratch.queries {
        let (along, squares, norm) = attended::<FMA>(scratch, cosine, q);
        let long = is_long(norm);
        let d_along = own.parts[q] / if long { norm } else { 1e-8 };
        let d_half = if long { -0.5 * d_along * along } else { 0.0 };
        let d_squares = if long { d_half / squares } else { 0.0 };
        if long && !cosine.unit_queries {
            own.lengths[q] += d_half / scratch.lengths[q];
        }
        own.squares[q] = d_squares;
        for at in q * lanes..(q + 1) * lanes {
            for k in 0..LANES {
                own.w[at][k] =
                    mul_add::<FMA>(d_along, scratch.s[at][k], 2.0 * d_squares * scratch.y[at][k]);
                own.s[at][k] = mul_add::<FMA>(d_along, scratch.w[at][k], own.s[at][k]);
            }
        }
    }
    outer::<FMA>(scratch, &own.squares, &mut own.gram);
}

/// `gram += Σ_q d_q w_q w_qᵀ`, some rows at a time.
#[inline(always)]
fn outer<const FMA: bool>(scratch: &Scratch, d: &[f32], gram: &mut [Lane]) {
    const ROWS: usize = 8;
    let lanes = scratch.shared.real.len();
    for (block, gram) in gram.chunks_mut(ROWS * lanes).enumerate() {
        let rows = gram.len() / lanes;
        for lane in 0..lanes {
            let mut sums = [[0.0; LANES]; ROWS];
            for (&d, w) in d.iter().zip(scratch.w.chunks_exact(lanes)) {
                // Eight keys are half a lane; past the last one the weights are 0.
                let own = &w.as_flattened()[block * ROWS..][..ROWS];
                let column = w[lane];
                for r in 0..ROWS {
                    let a = d * own[r];
                    for c in 0..LANES {
                        sums[r][c] = mul_add::<FMA>(a, column[c], sums[r][c]);
                    }
                }
            }
            for r in 0..rows {
                for c in 0..LANES {
                    gram[r * lanes + lane][c] += sums[r][c];
                }
            }
        }
    }
}
