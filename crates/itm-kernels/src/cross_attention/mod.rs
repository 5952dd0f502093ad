//! Attention between words and regions: scores of every image with every text, from the products of words and regions.
//!
//! ```text
//! s_qk = q·k        a query q of one side, a key k of the other: words query regions, or regions query words
//! x_q  = max_k s_qk − t
//! neg_q = x_q · 1[x̂_q < 0],   x̂_q = x_q,  or  Σ_p softmax_p(λ q·p) x_p  over the queries p of the same side
//! w_qk = e_qk / (Σ_k e_qk + 1e-8),   e_qk = exp(λ (s_qk − t)) · 1[s_qk > t]      (KeyWeights::Above)
//! w_qk = softmax_k(λ b_qk),   b_qk = φ(s_qk) / (‖φ(s)‖ + 1e-8),   φ(s) = s above 0, leak · s below      (KeyWeights::Softmax)
//! cos_q = Σ_k w_qk s_qk / max(‖q‖ √(wᵀ G w), 1e-8),   G = K Kᵀ:  the cosine of q and Σ_k w_qk k
//! rel_q = Σ_k w_qk s_qk                              with separate weights
//! S = mean, sum, maximum or soft maximum over q of neg_q + cos_q + rel_q
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | s | `products` | `[words of all texts, n · r]` |
//! | G of the regions, of the words | `region_grams`, `word_grams` | `[n, r, r]`, `[m, l, l]` |
//! | t | `thresholds` | `[m]`, one per text |
//! | S | the result | `[n, m]` |
//!
//! Texts follow each other without padding. Images are padded to r regions, and Gram matrices to the largest count.
//! Attended vectors `Σ w k` are never computed, so all data of a pair stays in the cache. The bits of a score depend
//! only on its image and its text.
//!
//! The quadratic form `wᵀ G w` is summed in f32. If keys nearly cancel (the form is below a hundredth of the mean of
//! their squares), it is summed again in f64, because the f32 sum would be mostly rounding error.

mod all;
mod gradient;
mod pair;
mod parts;
mod weights;

use std::ops::Range;

use rayon::prelude::*;

pub use all::{ItemRows, scores};
pub(crate) use gradient::backward;
use pair::PairScratch;
pub use parts::{Parts, parts};

/// A side of the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The words of a text.
    Words,
    /// The regions of an image.
    Regions,
}

/// How products become scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The side of the queries. The items of the other side are the keys.
    pub queries: Side,
    /// The negative value that a query without a matching key adds to the score.
    pub negative: Option<Negative>,
    /// The cosine of a query and its attended vector.
    pub cosine: Option<Cosine>,
    /// The weighted mean of a query's products.
    pub relevance: Option<KeyWeights>,
    /// How the values of the queries become one score.
    pub pool: Pool,
}

/// The branch of queries without a match.
#[derive(Debug, Clone, PartialEq)]
pub struct Negative {
    /// Whether only queries below the threshold count; otherwise all queries count.
    pub masked: bool,
    /// Whether similar queries share their values.
    pub spread: Option<Propagation>,
}

/// Propagation among the queries of one item. It is for inference: its weights have no gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct Propagation {
    /// λ of the softmax.
    pub scale: f32,
    /// What propagation replaces.
    pub what: Spreads,
}

/// What propagation replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spreads {
    /// Only whether a query counts: `x_q · 1[x̂_q < 0]`, which may be positive.
    Mask,
    /// Whether a query counts, and its value: `x̂_q · 1[x̂_q < 0]`.
    ValueAndMask,
}

/// The branch of attended vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Cosine {
    /// How a query weighs the keys.
    pub weights: KeyWeights,
    /// Whether ‖q‖ is taken as 1, not computed.
    pub unit_queries: bool,
}

/// How a query weighs the keys.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyWeights {
    /// Exponentials of the products above the threshold. A query without such a product has weights of 0.
    Above {
        /// λ
        scale: f32,
    },
    /// A softmax over the keys.
    Softmax {
        /// λ
        scale: f32,
        /// Slope of φ below 0: 1 leaves products as they are.
        leak: f32,
        /// The items over which ‖φ(s)‖ is taken.
        norm: Norm,
    },
}

/// The items over which products are normalised before a softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// No normalisation.
    None,
    /// Over the queries, for each key.
    Queries,
}

/// How the values of the queries become one score.
#[derive(Debug, Clone, PartialEq)]
pub enum Pool {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The largest.
    Max,
    /// `ln(Σ exp(λ x)) / λ`: a sum, not a mean.
    LogSumExp {
        /// λ
        scale: f32,
    },
}

/// Products of a batch, their Gram matrices and counts; see the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[words of all texts, n · r]`
    pub products: &'a [f32],
    /// `[n, r, r]`
    pub region_grams: &'a [f32],
    /// `[m, l, l]`
    pub word_grams: &'a [f32],
    /// Regions of each image, `[n]`; r is the largest.
    pub regions: &'a [usize],
    /// Words of each text, `[m]`; l is the largest.
    pub words: &'a [usize],
}

/// `S`, `[n, m]`.
///
/// # Panics
/// If sizes do not fit, a count is 0, or a threshold is not finite.
pub fn forward(inputs: &Inputs, rule: &Rule, thresholds: &[f32]) -> Vec<f32> {
    let batch = Batch::new(inputs, rule, thresholds);
    let m = inputs.words.len();
    let mut to = vec![0.0; inputs.regions.len() * m];
    batch.fill(&mut to, m, 0..m, 0..m);
    to
}

/// Scores of one text with every image, with this threshold, `[n]`: one column of [`forward`].
///
/// # Panics
/// As [`forward`], or if there is no such text.
pub(crate) fn column(inputs: &Inputs, rule: &Rule, text: usize, threshold: f32) -> Vec<f32> {
    let m = inputs.words.len();
    assert!(text < m, "text {text} of {m}");
    let mut thresholds = vec![0.0; m];
    thresholds[text] = threshold;
    let batch = Batch::new(inputs, rule, &thresholds);
    let mut to = vec![0.0; inputs.regions.len()];
    batch.fill(&mut to, 1, 0..1, text..text + 1);
    to
}

fn longest(counts: &[usize]) -> usize {
    counts.iter().copied().max().unwrap_or(0)
}

/// Starts of consecutive items, and the end of the last item.
fn starts(counts: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(counts.scan(0, |end, count| {
        *end = usize::checked_add(*end, count).expect("as many rows as memory can hold");
        Some(*end)
    }));
    starts
}

/// Refuses thresholds that are not finite, or not one per text.
pub(crate) fn check_thresholds(thresholds: &[f32], texts: usize) {
    assert_eq!(thresholds.len(), texts, "thresholds of the texts");
    if let Some(bad) = thresholds.iter().find(|t| !t.is_finite()) {
        panic!("a threshold of {bad}");
    }
}

/// The layout of the products: rows are words, and columns are regions in panels of `width` columns.
#[derive(Clone, Copy)]
struct Products<'a> {
    values: &'a [f32],
    row: usize,
    width: usize,
    panel: usize,
}

/// A Gram matrix inside a larger slice.
#[derive(Clone, Copy)]
struct Gram<'a> {
    values: &'a [f32],
    stride: usize,
}

/// An image or a text: its first column or row among the products, its number of columns or rows, and its Gram matrix.
#[derive(Clone, Copy)]
struct Item<'a> {
    first: usize,
    count: usize,
    gram: Gram<'a>,
}

/// Everything that the scores of some images and texts need.
struct Batch<'a> {
    rule: &'a Rule,
    products: Products<'a>,
    images: Vec<Item<'a>>,
    texts: Vec<Item<'a>>,
    thresholds: &'a [f32],
    /// Weights among the queries of each item, `[q, q]`; empty without propagation.
    spreads: Vec<Vec<f32>>,
}

impl<'a> Batch<'a> {
    fn new(inputs: &Inputs<'a>, rule: &'a Rule, thresholds: &'a [f32]) -> Self {
        let Inputs { products, region_grams, word_grams, regions, words } = *inputs;
        let (n, m, r, l) = (regions.len(), words.len(), longest(regions), longest(words));
        let first = starts(words.iter().copied());
        let fits = |values: &[f32], sizes: [usize; 3]| {
            let n = sizes.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
            n == Some(values.len())
        };
        let (got, of_texts) = (products.len(), first[m]);
        let whole = fits(products, [of_texts, n, r]);
        assert!(whole, "{got} products of {of_texts} words and {n} images");
        for (what, grams, [k, size]) in
            [("images of regions", region_grams, [n, r]), ("texts of words", word_grams, [m, l])]
        {
            let (got, whole) = (grams.len(), fits(grams, [k, size, size]));
            assert!(whole, "{got} Gram values: {k} {what}, at most {size}");
        }
        let item = |first: usize, count: usize, grams: &'a [f32], k: usize, size: usize| {
            let values = &grams[k * size * size..(k + 1) * size * size];
            Item { first, count, gram: Gram { values, stride: size } }
        };
        let image = |(i, &count): (usize, &usize)| item(i * r, count, region_grams, i, r);
        let text = |(c, &count): (usize, &usize)| item(first[c], count, word_grams, c, l);
        let images = regions.iter().enumerate().map(image).collect();
        let texts = words.iter().enumerate().map(text).collect();
        let products = Products { values: products, row: n * r, width: (n * r).max(1), panel: 0 };
        Self::of(rule, products, images, texts, thresholds)
    }

    fn of(
        rule: &'a Rule,
        products: Products<'a>,
        images: Vec<Item<'a>>,
        texts: Vec<Item<'a>>,
        thresholds: &'a [f32],
    ) -> Self {
        check_thresholds(thresholds, texts.len());
        for (name, items) in [("image", &images), ("text", &texts)] {
            for (k, item) in items.iter().enumerate() {
                assert!(item.count > 0, "{name} {k} has nothing to compare");
            }
        }
        let asking = if rule.queries == Side::Words { &texts } else { &images };
        let spreads = match rule.negative.as_ref().and_then(|negative| negative.spread.as_ref()) {
            Some(spread) => {
                asking.iter().map(|item| softmax(item.gram, item.count, spread.scale)).collect()
            }
            None => vec![],
        };
        Self { rule, products, images, texts, thresholds, spreads }
    }

    /// Writes the scores of every image with some texts to these places of the image's row of `m` scores.
    fn fill(&self, to: &mut [f32], m: usize, places: Range<usize>, texts: Range<usize>) {
        let rows = to.par_chunks_exact_mut(m.max(1)).enumerate();
        rows.for_each_init(PairScratch::default, |scratch, (i, row)| {
            for (c, score) in texts.clone().zip(&mut row[places.clone()]) {
                let spread = self.load(scratch, i, c);
                pair::forward(scratch, self.rule, self.thresholds[c], spread, score);
            }
        });
    }

    /// Loads the pair into the scratch, and returns the weights of its propagation.
    fn load(&self, scratch: &mut PairScratch, i: usize, c: usize) -> &[f32] {
        let (image, text) = (self.images[i], self.texts[c]);
        let spread = |k: usize| self.spreads.get(k).map_or(&[][..], Vec::as_slice);
        match self.rule.queries {
            Side::Words => {
                scratch.start([text, image], i);
                self.products.each_row(text, image, |word, at, values| {
                    scratch.row(word)[at..at + values.len()].copy_from_slice(values);
                });
                spread(c)
            }
            Side::Regions => {
                scratch.start([image, text], c);
                self.products.each_row(text, image, |word, at, values| {
                    for (k, &value) in values.iter().enumerate() {
                        scratch.row(at + k)[word] = value;
                    }
                });
                spread(i)
            }
        }
    }
}

impl Products<'_> {
    /// Calls `take(word, first region, values)` for runs of neighbouring regions.
    fn each_row(&self, text: Item, image: Item, mut take: impl FnMut(usize, usize, &[f32])) {
        let mut at = 0;
        while at < image.count {
            let column = image.first + at;
            let (panel, inside) = (column / self.width, column % self.width);
            let n = (self.width - inside).min(image.count - at);
            for k in 0..text.count {
                let start = panel * self.panel + (text.first + k) * self.row + inside;
                take(k, at, &self.values[start..start + n]);
            }
            at += n;
        }
    }
}

/// Rows of `softmax(scale · gram)`, `[n, n]`.
fn softmax(gram: Gram, n: usize, scale: f32) -> Vec<f32> {
    let mut to = Vec::with_capacity(n * n);
    for row in gram.values.chunks(gram.stride).take(n) {
        let most = row[..n].iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x));
        let e: Vec<f32> = row[..n].iter().map(|&x| (scale * (x - most)).exp()).collect();
        let sum: f32 = e.iter().sum();
        to.extend(e.into_iter().map(|e| e / sum));
    }
    to
}

/// The settings of the operation.
#[cfg(feature = "burn")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CrossSpec {
    pub(crate) rule: Rule,
    /// Regions of each image, `[n]`.
    pub(crate) regions: Vec<usize>,
    /// Words of each text, `[m]`.
    pub(crate) words: Vec<usize>,
    /// Threshold of each text.
    pub(crate) thresholds: Vec<f32>,
}

#[cfg(test)]
pub(crate) mod tests;
