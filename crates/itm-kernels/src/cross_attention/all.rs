//! All pairs of many images and many texts, tile by tile: one matrix product per tile, then the pairs of the tile.

use std::ops::Range;

use rayon::prelude::*;

use super::{Batch, Gram, Item, Products, Rule, starts};
use crate::blocks::{size, zeros};
use crate::matrix::Matrix;
use crate::panels::{self, Panels, WIDTH};
use crate::product::{Threads, product_new};

/// Regions per tile: their panels stay in the last-level cache. A single image may have more.
const REGIONS: usize = 4608;

/// Words per tile. A single text may have more.
const WORDS: usize = 512;

/// Rows of consecutive items without padding, and the Gram matrix of each item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemRows {
    width: usize,
    values: Vec<f32>,
    /// First row of each item, and the end of the last.
    starts: Vec<usize>,
    grams: Vec<f32>,
    gram_starts: Vec<usize>,
}

impl ItemRows {
    /// Takes `[rows of all items, width]` and computes the Gram matrices, on all threads.
    ///
    /// # Panics
    /// If the values do not fit the counts, the width is 0, or an item has no row.
    pub fn new(values: Vec<f32>, width: usize, counts: &[usize]) -> Self {
        let first = starts(counts.iter().copied());
        let (rows, got) = (first[counts.len()], values.len());
        let fits = width > 0 && rows.checked_mul(width) == Some(got);
        assert!(fits, "{rows} rows of {width} in {got} values");
        assert!(counts.iter().all(|&count| count > 0), "an item without a row");
        let gram_starts = starts(counts.iter().map(|count| count * count));
        let own = |k: usize| {
            let (n, at) = (counts[k], first[k] * width);
            let rows = Matrix::new(&values[at..at + n * width], n, width);
            product_new(Threads::This, rows, rows.t())
        };
        let grams: Vec<Vec<f32>> = (0..counts.len()).into_par_iter().map(own).collect();
        Self { width, values, starts: first, grams: grams.concat(), gram_starts }
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of rows of an item.
    fn count(&self, item: usize) -> usize {
        self.starts[item + 1] - self.starts[item]
    }

    /// Values of some items.
    fn some(&self, items: Range<usize>) -> &[f32] {
        &self.values[self.starts[items.start] * self.width..self.starts[items.end] * self.width]
    }

    fn gram(&self, item: usize) -> Gram<'_> {
        let values = &self.grams[self.gram_starts[item]..self.gram_starts[item + 1]];
        Gram { values, stride: self.count(item) }
    }

    /// Items for a batch: the first row, counted from the first row of the first item, the number of rows, and the
    /// Gram matrix.
    fn placed(&self, items: Range<usize>) -> Vec<Item<'_>> {
        let first = self.starts[items.start];
        let item =
            |k| Item { first: self.starts[k] - first, count: self.count(k), gram: self.gram(k) };
        items.map(item).collect()
    }

    /// The range cut into runs of at most `rows` rows, but at least one item.
    fn runs(&self, items: Range<usize>, rows: usize) -> Vec<Range<usize>> {
        let mut runs = vec![];
        let mut start = items.start;
        for k in items.clone() {
            if k > start && self.starts[k + 1] - self.starts[start] > rows {
                runs.push(start..k);
                start = k;
            }
        }
        if start < items.end {
            runs.push(start..items.end);
        }
        runs
    }
}

/// Scores of a range of images with a range of texts, `[images, texts]`, with one threshold.
///
/// # Panics
/// If the widths differ, a range goes beyond the items, the threshold is not finite, or memory cannot hold the scores.
pub fn scores(
    images: &ItemRows,
    texts: &ItemRows,
    ranges: [Range<usize>; 2],
    threshold: f32,
    rule: &Rule,
) -> Vec<f32> {
    assert_eq!(images.width, texts.width, "widths of regions and words");
    let [some_images, some_texts] = ranges;
    for (what, some, all) in [("images", &some_images, images), ("texts", &some_texts, texts)] {
        let inside = some.start <= some.end && some.end <= all.items();
        assert!(inside, "{what} {some:?} of {}", all.items());
    }
    assert!(threshold.is_finite(), "a threshold of {threshold}");
    let m = some_texts.len();
    let mut to = zeros(size(some_images.len(), m));
    if m == 0 {
        return to;
    }
    let runs = texts.runs(some_texts.clone(), WORDS);
    let mut products = Vec::new();
    for group in images.runs(some_images.clone(), REGIONS) {
        let panels = Panels::of_rows(images.some(group.clone()), images.width);
        let to =
            &mut to[(group.start - some_images.start) * m..(group.end - some_images.start) * m];
        for run in &runs {
            let left = blocks(texts.some(run.clone()), texts.width);
            let rows = left.len() / texts.width;
            products.resize(panels.count() * rows * WIDTH, 0.0);
            panels.product(&mut products, &left);
            let products =
                Products { values: &products, row: WIDTH, width: WIDTH, panel: rows * WIDTH };
            let thresholds = vec![threshold; run.len()];
            let batch = Batch::of(
                rule,
                products,
                images.placed(group.clone()),
                texts.placed(run.clone()),
                &thresholds,
            );
            let places = run.start - some_texts.start..run.end - some_texts.start;
            batch.fill(to, m, places, 0..run.len());
        }
    }
    to
}

/// Rows as blocks of a left operand, with zeros after the last row.
fn blocks(rows: &[f32], width: usize) -> Vec<f32> {
    let mut to = vec![0.0; (rows.len() / width).next_multiple_of(panels::ROWS) * width];
    to.par_chunks_exact_mut(panels::ROWS * width)
        .zip(rows.par_chunks(panels::ROWS * width))
        .for_each(|(to, rows)| panels::block(to, rows, width));
    to
}

#[cfg(test)]
mod tests {
    use super::super::{Pool, Side};
    use super::*;

    /// More values than addresses: a panic, not the end of the process.
    #[test]
    #[should_panic(expected = "no memory for 70368744177664 values")]
    fn scores_beyond_memory_are_refused() {
        let n = 1 << 23;
        let (values, starts) = (vec![0.0; n], (0..=n).collect());
        let rows = ItemRows { width: 1, values, starts, grams: vec![], gram_starts: vec![] };
        let (queries, pool) = (Side::Words, Pool::Mean);
        let rule = Rule { queries, negative: None, cosine: None, relevance: None, pool };
        scores(&rows, &rows, [0..n, 0..n], 0.0, &rule);
    }
}
