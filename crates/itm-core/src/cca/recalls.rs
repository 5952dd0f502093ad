//! Computes the recalls of every width of an embedding at once, to choose the parameters.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

use crate::Pairs;

/// Number of queries scored at a time: 128 · 25,000 scores are 26 MB.
const QUERIES: usize = 128;

/// rSum of both directions for the cosines of the first `w` columns, for each `w` of `widths` (ascending).
///
/// The scores of a width are the scores of the previous width plus a product of the new columns. Queries without a true
/// item do not count. Ties go to the smaller index, as everywhere. It runs on one thread, because the other threads
/// compute other points of the grid.
pub(super) fn rsum_by_width(
    images: MatRef<'_, f64>, // [n, d]
    texts: MatRef<'_, f64>,  // [m, d]
    pairs: &Pairs,
    widths: &[usize],
) -> Vec<f64> {
    let i2t = direction(images, texts, widths, |image| pairs.texts_of(image));
    let t2i = direction(texts, images, widths, |text| pairs.images_of(text));
    i2t.iter().zip(t2i).map(|(a, b)| a + b).collect()
}

/// The sum of R@1, R@5 and R@10 in percent, for each width.
fn direction<'a>(
    queries: MatRef<'_, f64>,
    items: MatRef<'_, f64>,
    widths: &[usize],
    truth: impl Fn(usize) -> &'a [usize],
) -> Vec<f64> {
    let mut hits = vec![0usize; widths.len()];
    let norms = inverse_norms(items, widths);
    let asked = (0..queries.nrows()).filter(|&query| !truth(query).is_empty()).count();
    for first in (0..queries.nrows()).step_by(QUERIES) {
        let count = QUERIES.min(queries.nrows() - first);
        let tile = queries.subrows(first, count);
        let mut scores = Mat::<f64>::zeros(items.nrows(), count); // one column per query
        let mut from = 0;
        for (k, &to) in widths.iter().enumerate() {
            let (new_items, new) = (items.subcols(from, to - from), tile.subcols(from, to - from));
            matmul(&mut scores, Accum::Add, new_items, new.transpose(), 1.0, Par::Seq);
            let hits_of =
                |q: usize| hits_within(scores.col_as_slice(q), &norms[k], truth(first + q));
            hits[k] += (0..count).map(hits_of).sum::<usize>();
            from = to;
        }
    }
    hits.iter().map(|&hits| 100.0 * hits as f64 / asked as f64).collect()
}

/// Ranks from this one on (counted from 0) miss even R@10.
const MISSED: usize = 10;

/// How many of the top 1, top 5 and top 10 contain the best true item.
fn hits_within(products: &[f64], norms: &[f64], truth: &[usize]) -> usize {
    let score = |item: usize| products[item] * norms[item];
    let better = |a: usize, b: usize| if score(b) > score(a) { b } else { a };
    let Some(best) = truth.iter().copied().reduce(better) else { return 0 }; // texts of an image ascend
    let (threshold, after) = (score(best), best + 1);
    let mut rank = ahead(&products[..best], &norms[..best], |score| score >= threshold);
    if rank < MISSED {
        rank += ahead(&products[after..], &norms[after..], |score| score > threshold);
    }
    [1, 5, MISSED].iter().filter(|&&k| rank < k).count()
}

/// Number of items that pass. Counting may stop at [`MISSED`] or above.
fn ahead(products: &[f64], norms: &[f64], passes: impl Fn(f64) -> bool) -> usize {
    let mut count = 0;
    for (products, norms) in products.chunks(256).zip(norms.chunks(256)) {
        count += products.iter().zip(norms).filter(|(p, n)| passes(*p * *n)).count();
        if count >= MISSED {
            break;
        }
    }
    count
}

/// `1 / |row|` of the first `w` columns, for each width; 0 for a row of zeros.
fn inverse_norms(rows: MatRef<'_, f64>, widths: &[usize]) -> Vec<Vec<f64>> {
    let mut squares = vec![0.0; rows.nrows()];
    let mut from = 0;
    let mut norms = Vec::with_capacity(widths.len());
    for &to in widths {
        for column in from..to {
            squares.iter_mut().enumerate().for_each(|(i, s)| *s += rows[(i, column)].powi(2));
        }
        norms.push(squares.iter().map(|&s| if s > 0.0 { s.sqrt().recip() } else { 0.0 }).collect());
        from = to;
    }
    norms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2 images and 3 texts. At width 1 only signs count, at width 2 angles.
    #[test]
    fn golden_two_widths() {
        let images = Mat::from_fn(2, 2, |i, k| [[1.0, 0.0], [1.0, 2.0]][i][k]);
        let texts = Mat::from_fn(3, 2, |i, k| [[3.0, 0.0], [2.0, 3.0], [-1.0, 1.0]][i][k]);
        let pairs = Pairs::new(2, vec![0, 1, 1]).unwrap();
        // Width 1, i2t: image 0 → texts 0, 1 tie, its own first: hit. Image 1 → text 1 is second: R@5 only.
        // t2i: texts 0, 1 tie over both images, text 2 ties at −1: image 0 always first, so 1 of 3 at R@1.
        let width_1 = (50.0 + 100.0 + 100.0) + (100.0 / 3.0 + 100.0 + 100.0);
        // Width 2: every item is nearest to its own pair.
        let got = rsum_by_width(images.as_ref(), texts.as_ref(), &pairs, &[1, 2]);
        assert!((got[0] - width_1).abs() < 1e-9, "{got:?}, want {width_1}");
        assert!((got[1] - 600.0).abs() < 1e-9, "{got:?}");
    }

    /// Judged pairs: a text that is true of no image does not count.
    #[test]
    fn golden_a_text_without_an_image() {
        let images = Mat::from_fn(2, 1, |i, _| [1.0, -1.0][i]);
        let texts = Mat::from_fn(2, 1, |i, _| [2.0, 1.0][i]);
        let pairs = Pairs::judged(2, vec![vec![0], vec![]]).unwrap();
        assert_eq!(rsum_by_width(images.as_ref(), texts.as_ref(), &pairs, &[1]), [600.0]);
    }

    /// By hand: up to 599 items are better than the true item, or the true item is one of 300 equals, which rank by
    /// index.
    #[test]
    fn a_rank_is_counted_over_all_items() {
        let hits = |products: &[f64], truth: usize| {
            hits_within(products, &vec![1.0; products.len()], &[truth])
        };
        let falling: Vec<f64> = (0..600).map(|i| -f64::from(i)).collect();
        assert_eq!(
            [0, 1, 4, 5, 9, 10, 300].map(|item| hits(&falling, item)),
            [3, 2, 2, 1, 1, 0, 0]
        );
        let rising: Vec<f64> = (0..600).map(f64::from).collect();
        assert_eq!([599, 590, 589, 0].map(|item| hits(&rising, item)), [3, 1, 0, 0]);
        assert_eq!([0, 9, 10, 299].map(|item| hits(&[0.5; 300], item)), [3, 1, 0, 0]);
    }

    #[test]
    fn a_query_without_truth_does_not_count() {
        let images = Mat::from_fn(2, 1, |i, _| [1.0, -1.0][i]);
        let texts = Mat::from_fn(1, 1, |_, _| 2.0);
        let pairs = Pairs::new(2, vec![0]).unwrap();
        assert_eq!(rsum_by_width(images.as_ref(), texts.as_ref(), &pairs, &[1]), [600.0]);
    }
}
