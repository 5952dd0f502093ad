//! Sparse rows of both sides, before the maps.

use crate::text::Terms;

/// One image or text: its inputs and their values, ascending by input.
pub(super) type SparseRow = Vec<(usize, f64)>;

/// Binary term frequency times inverse document frequency, at unit length; empty if the text has no known term.
pub(super) fn text_row(terms: &Terms, text: &str) -> SparseRow {
    let value = |number: u32| (number as usize, terms.idf()[number as usize]);
    let mut row: SparseRow = terms.numbers(text).into_iter().map(value).collect();
    let norm = row.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
    row.iter_mut().for_each(|(_, value)| *value /= norm);
    row
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
        assert_eq!(text_row(&terms, "dogs a, a dog!"), [(0, common / norm), (1, rarer / norm)]);
        assert_eq!(text_row(&terms, "a cat"), [(0, 1.0)]);
        assert_eq!(text_row(&terms, "cat"), []);
    }
}
