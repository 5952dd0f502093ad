//! The backward pass: from the gradient of the scores to the gradients of the rows of both sides.
//!
//! A hinge with hardest negatives leaves most pairs without a gradient, and these pairs are skipped. For a few pairs,
//! the products `dV = dSᵀ U` and `dU = dS V` are computed block by block. For many pairs, each is one product.

#![allow(clippy::needless_range_loop)] // lanes and registers are counted

use rayon::prelude::*;

use super::pair::{PairScratch, SHORTEST, attended, effect, forward, times_gram};
use super::weights::{Lane, weigh, weigh_backward};
use super::{Batch, Cosine, Inputs, Item, Negative, Pool, Rule, Side, Spreads, longest};
use crate::blocks::written;
use crate::dispatch::multiversion;
use crate::math::{LANES, mul_add};
use crate::matrix::Matrix;
use crate::product::{Into, Threads, product, product_new};

/// Gradients of V, `[n, r, d]`, and of U, `[words of all texts, d]`, from the gradient of `S`, `[n, m]`. The products and
/// Gram matrices must come from V and U.
///
/// # Panics
/// As [`forward`](super::forward), or if the rows or the gradient have another size.
pub(crate) fn backward(
    inputs: &Inputs,
    [v, u]: [&[f32]; 2],
    rule: &Rule,
    thresholds: &[f32],
    grad: &[f32],
) -> [Vec<f32>; 2] {
    /// A single pair takes as long as three pairs in a product of all pairs.
    const MANY: usize = 3;
    let batch = Batch::new(inputs, rule, thresholds);
    let (n, m) = (batch.images.len(), batch.texts.len());
    assert_eq!(grad.len(), n * m, "values of the gradient");
    let (r, words) = (longest(inputs.regions), inputs.words.iter().sum::<usize>());
    let width = u.len() / words.max(1);
    let (got, want) = ([u.len(), v.len()], [words * width, n * r * width]);
    assert_eq!(got, want, "{words} words and {n} · {r} regions of {width} values");
    let parts: Vec<ImagePart> = grad
        .par_chunks_exact(m.max(1))
        .enumerate()
        .map_init(PairScratch::default, |scratch, (i, grad)| batch.part(scratch, i, r, grad))
        .collect();
    let back = Back { batch: &batch, parts: &parts, v, u, r, width };
    let pairs: usize = parts.iter().map(|part| part.texts.len()).sum();
    if pairs * MANY > n * m { back.by_all() } else { back.by_pairs() }
}

/// The part of one image in the gradients.
struct ImagePart {
    /// The texts with a gradient, in order, each with the start of its values in `products` and in `word_grams`.
    texts: Vec<(usize, [usize; 2])>,
    /// `[words of these texts, r]`
    products: Vec<f32>,
    /// `[r, r]`
    region_gram: Vec<f32>,
    /// If regions are queries: `[words, words]` of each text. If words are queries: only the diagonals.
    word_grams: Vec<f32>,
}

impl ImagePart {
    /// The starts of a text's values in `products` and in `word_grams`.
    fn find(&self, text: usize) -> Option<[usize; 2]> {
        let at = self.texts.binary_search_by_key(&text, |found| found.0).ok()?;
        Some(self.texts[at].1)
    }
}

/// From the gradients of products and Gram matrices to the gradients of rows.
struct Back<'a> {
    batch: &'a Batch<'a>,
    /// The part of each image.
    parts: &'a [ImagePart],
    v: &'a [f32],
    u: &'a [f32],
    r: usize,
    width: usize,
}

impl Back<'_> {
    /// One product per side.
    fn by_all(&self) -> [Vec<f32>; 2] {
        let (r, columns) = (self.r, self.parts.len() * self.r);
        let of_text = |(c, text): (usize, &Item)| (0..text.count).map(move |word| (c, word));
        let words: Vec<_> = self.batch.texts.iter().enumerate().flat_map(of_text).collect();
        let products = written(words.len() * columns, columns, |k, row| {
            let (c, word) = words[k];
            for (part, to) in self.parts.iter().zip(row.chunks_exact_mut(r)) {
                if let Some([at, _]) = part.find(c) {
                    to.copy_from_slice(&part.products[at + word * r..][..r]);
                }
            }
        });
        let products = Matrix::new(&products, words.len(), columns);
        let u = Matrix::new(self.u, words.len(), self.width);
        let regions = product_new(Threads::All, products.t(), u);
        let words = product_new(Threads::All, products, Matrix::new(self.v, columns, self.width));
        self.add([regions, words], |_, _| (), |_, _| ())
    }

    /// One product per pair and side.
    fn by_pairs(&self) -> [Vec<f32>; 2] {
        let (r, width) = (self.r, self.width);
        let block = |i: usize, c: usize, at: usize| {
            let (words, regions) = (self.batch.texts[c].count, self.batch.images[i].count);
            Matrix::strided(&self.parts[i].products[at..at + words * r], [words, regions], [r, 1])
        };
        let to_image = |i: usize, to: &mut [f32]| {
            for &(c, [at, _]) in &self.parts[i].texts {
                let words = Matrix::new(self.words(c), self.batch.texts[c].count, width);
                product(Threads::This, to, Into::Add, block(i, c, at).t(), words);
            }
        };
        let to_text = |c: usize, to: &mut [f32]| {
            for (i, part) in self.parts.iter().enumerate() {
                if let Some([at, _]) = part.find(c) {
                    let regions = Matrix::new(self.regions(i), self.batch.images[i].count, width);
                    product(Threads::This, to, Into::Add, block(i, c, at), regions);
                }
            }
        };
        let zeros = [self.v, self.u].map(|rows| vec![0.0; rows.len()]);
        self.add(zeros, to_image, to_text)
    }

    /// Adds the gradients through the Gram matrices, and the caller's gradients for each image and each text.
    fn add(
        &self,
        [mut regions, mut words]: [Vec<f32>; 2],
        to_image: impl Fn(usize, &mut [f32]) + Sync,
        to_text: impl Fn(usize, &mut [f32]) + Sync,
    ) -> [Vec<f32>; 2] {
        let images = regions.par_chunks_exact_mut((self.r * self.width).max(1));
        images.enumerate().for_each(|(i, to)| {
            let to = &mut to[..self.regions(i).len()];
            to_image(i, to);
            add_gram(to, &self.parts[i].region_gram, self.r, self.regions(i), self.width);
        });
        let mut rest = &mut words[..];
        let texts = (0..self.batch.texts.len()).map(|c| {
            let (text, after) = std::mem::take(&mut rest).split_at_mut(self.words(c).len());
            rest = after;
            text
        });
        texts.collect::<Vec<_>>().into_par_iter().enumerate().for_each(|(c, to)| {
            to_text(c, to);
            add_gram(to, &self.word_gram(c), self.batch.texts[c].count, self.words(c), self.width);
        });
        [regions, words]
    }

    /// Rows of an image, without padding.
    fn regions(&self, i: usize) -> &[f32] {
        let first = i * self.r * self.width;
        &self.v[first..first + self.batch.images[i].count * self.width]
    }

    /// Rows of a text.
    fn words(&self, c: usize) -> &[f32] {
        let Item { first, count, .. } = self.batch.texts[c];
        &self.u[first * self.width..(first + count) * self.width]
    }

    /// The gradient of a text's Gram matrix, summed over all images.
    fn word_gram(&self, c: usize) -> Vec<f32> {
        let n = self.batch.texts[c].count;
        let mut to = vec![0.0; n * n];
        for part in self.parts {
            let Some([_, at]) = part.find(c) else { continue };
            let from = &part.word_grams[at..at + self.batch.kept(n)];
            if self.batch.rule.queries == Side::Words {
                from.iter().enumerate().for_each(|(k, d)| to[k * n + k] += d);
            } else {
                add(&mut to, n, from, n, n);
            }
        }
        to
    }
}

/// `to += (D + Dᵀ) rows`, where D is the gradient of a Gram matrix whose rows are `stride` apart.
fn add_gram(to: &mut [f32], d: &[f32], stride: usize, rows: &[f32], width: usize) {
    if d.iter().all(|&d| d == 0.0) {
        return;
    }
    let n = rows.len() / width;
    let both = |at: usize| d[at / n * stride + at % n] + d[at % n * stride + at / n];
    let both: Vec<f32> = (0..n * n).map(both).collect();
    product(Threads::This, to, Into::Add, Matrix::new(&both, n, n), Matrix::new(rows, n, width));
}

/// Gradients of a pair, with the layout of the scratch.
#[derive(Default)]
struct PairGradients {
    s: Vec<Lane>,
    w: Vec<Lane>,
    /// Gradient of the Gram matrix of the keys, `[keys, lanes]`.
    gram: Vec<Lane>,
    /// Gradients of `‖q‖²`, of each query's part and of `wᵀ G w`.
    lengths: Vec<f32>,
    parts: Vec<f32>,
    squares: Vec<f32>,
}

impl PairGradients {
    fn start(&mut self, scratch: &PairScratch) {
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
    /// The part of one image, from the gradient of its scores.
    fn part(&self, scratch: &mut PairScratch, i: usize, r: usize, grad: &[f32]) -> ImagePart {
        let mut part = ImagePart {
            texts: vec![],
            products: vec![],
            region_gram: vec![0.0; r * r],
            word_grams: vec![],
        };
        let (mut own, mut score) = (PairGradients::default(), 0.0);
        for (c, &g) in grad.iter().enumerate() {
            if g == 0.0 {
                continue; // most pairs of a hinge
            }
            let words = self.texts[c].count;
            let [at, gram_at] = [part.products.len(), part.word_grams.len()];
            part.texts.push((c, [at, gram_at]));
            part.products.resize(at + words * r, 0.0);
            part.word_grams.resize(gram_at + self.kept(words), 0.0);
            let (products, to_words) = (&mut part.products[at..], &mut part.word_grams[gram_at..]);
            let spread = self.load(scratch, i, c);
            forward(scratch, self.rule, self.thresholds[c], spread, &mut score); // the parts, for the pool
            own.start(scratch);
            pool_backward(&self.rule.pool, &scratch.parts, g, &mut own.parts);
            pair_backward(scratch, self.rule, self.thresholds[c], spread, &mut own);
            let lanes = scratch.shared.real.len() * LANES;
            let (s, gram) = (own.s.as_flattened(), own.gram.as_flattened());
            match self.rule.queries {
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

    /// Number of values of a text in [`ImagePart::word_grams`].
    fn kept(&self, words: usize) -> usize {
        if self.rule.queries == Side::Words { words } else { words * words }
    }
}

/// Adds a matrix of `n` rows and columns to a matrix with another stride.
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
    /// Gradients of the pair that the scratch holds.
    fn pair_backward[FMA](scratch: &mut PairScratch, rule: &Rule, t: f32, spread: &[f32], own: &mut PairGradients) {
        if let Some(negative) = &rule.negative {
            negatives_backward(scratch, negative, spread, own);
        }
        if let Some(cosine) = &rule.cosine {
            weigh::<FMA>(&cosine.weights, t, &scratch.s, &mut scratch.shared, &mut scratch.w);
            times_gram(scratch);
            cosines_backward::<FMA>(scratch, cosine, own);
            let PairScratch { s, w, shared, .. } = scratch;
            weigh_backward::<FMA>(&cosine.weights, s, shared, w, &mut own.w, &mut own.s);
        }
        if let Some(weights) = &rule.relevance {
            let PairScratch { s, w, shared, .. } = scratch;
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

/// Adds the gradient to the first of a query's largest products.
#[inline(always)]
fn negatives_backward(
    scratch: &PairScratch,
    negative: &Negative,
    spread: &[f32],
    own: &mut PairGradients,
) {
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

/// From the gradient of `f = a / (√Q ‖q‖)` to the products, the weights, `Q = wᵀ G w` and `‖q‖²`.
#[inline(always)]
fn cosines_backward<const FMA: bool>(
    scratch: &PairScratch,
    cosine: &Cosine,
    own: &mut PairGradients,
) {
    let lanes = scratch.shared.real.len();
    for q in 0..scratch.queries {
        let (along, squares, norm) = attended::<FMA>(scratch, cosine, q);
        let long = norm > SHORTEST;
        let d_along = own.parts[q] / if long { norm } else { SHORTEST };
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
fn outer<const FMA: bool>(scratch: &PairScratch, d: &[f32], gram: &mut [Lane]) {
    const ROWS: usize = 8;
    let lanes = scratch.shared.real.len();
    for (block, gram) in gram.chunks_mut(ROWS * lanes).enumerate() {
        let rows = gram.len() / lanes;
        for lane in 0..lanes {
            let mut sums = [[0.0; LANES]; ROWS];
            for (&d, w) in d.iter().zip(scratch.w.chunks_exact(lanes)) {
                // Eight keys are half a lane. After the last key the weights are 0.
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
