//! Sparse rows of both sides, before the maps.

use crate::data::Features;
use crate::text::Terms;

/// One image or text: its inputs and their values, ascending by input.
pub(super) type SparseRow = Vec<(usize, f64)>;

/// Binary term frequency times inverse document frequency, at unit length, beside a given row. Without a known term only the given
/// row, which may be empty.
pub(super) fn text_row(terms: &Terms, text: &str, given: &[f32]) -> SparseRow {
    let value = |number: u32| (number as usize, terms.idf()[number as usize]);
    let mut row: SparseRow = terms.numbers(text).into_iter().map(value).collect();
    let norm = row.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
    row.iter_mut().for_each(|(_, value)| *value /= norm);
    row.extend((terms.len()..).zip(given.iter().map(|&x| f64::from(x))));
    row
}

/// The row of each caption, as [`text_row`].
pub(super) fn text_rows(terms: &Terms, captions: &[String], given: &Features) -> Vec<SparseRow> {
    let row = |(k, text): (usize, &String)| text_row(terms, text, given.row(k));
    captions.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: `a` is in 3 of 3 captions, `dog` and `run` are in 2, `cat` is in 1 and is dropped.
    #[test]
    fn golden_unit_rows() {
        let terms = Terms::fit(&["a dog runs, runs", "dogs a", "A cat running"], 2, 10);
        let (common, rarer) = (1.0, (4.0f64 / 3.0).ln() + 1.0);
        let norm = (common * common + rarer * rarer).sqrt();
        assert_eq!(
            text_row(&terms, "dogs a, a dog!", &[]),
            [(0, common / norm), (1, rarer / norm)]
        );
        assert_eq!(text_row(&terms, "a cat", &[0.5]), [(0, 1.0), (3, 0.5)]);
        assert_eq!(text_row(&terms, "cat", &[]), []);
    }
}
