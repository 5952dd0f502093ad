//! Rows of a file: embeddings of unit length, or scores.

use std::ops::Range;

use itm_core::data::{Features, Repeats};
use itm_core::{Error, Result, ScoreMatrix};

use super::array::Array;
use super::messages::Messages;
use crate::rows::{Length, duplicates, scaled, warnings, zeros};
use crate::words::{count, first_ten};

/// Every `every`-th row of a file as f32. Unless `length` is raw, each row is divided by its norm in f64. Warns about zero,
/// equal and collapsed rows.
///
/// # Errors
/// If a row holds NaN or infinity, in the file or as f32. The error counts all such rows and names the first ten.
pub(crate) fn embeddings(
    array: &Array,
    every: usize,
    length: Length,
    messages: &mut Messages,
) -> Result<Features> {
    let (features, norms) = read(array, 0..array.rows() / every, every, length)?;
    let place = array.place();
    if length == Length::Unit {
        let finite = norms.iter().filter(|&&norm| norm > 0.0);
        let (low, high) =
            finite.fold((f64::INFINITY, 0.0f64), |(low, high), &n| (low.min(n), high.max(n)));
        if high - 1.0 > 1e-3 || 1.0 - low > 1e-3 && low.is_finite() {
            let norms = format!("norms were {low:.4} to {high:.4}");
            messages.notes.push(format!("{place}: rows scaled to unit length, {norms}"));
        }
    }
    messages.warnings.extend(warnings(place, features.dim, &features.values));
    Ok(features)
}

/// Every `every`-th row of a file as a score matrix.
///
/// # Errors
/// As [`embeddings`].
pub(crate) fn scores(array: &Array, every: usize, messages: &mut Messages) -> Result<ScoreMatrix> {
    let (features, _) = read(array, 0..array.rows() / every, every, Length::Raw)?;
    let (place, dim, values) = (array.place(), features.dim, &features.values);
    messages.warnings.extend(zeros(place, dim, values));
    messages.warnings.extend(duplicates(place, dim, values));
    let first = features.values[0];
    if features.values.len() > 1 && features.values.iter().all(|&v| v == first) {
        messages.warnings.push(format!("{}: all scores are {first}", array.place()));
    }
    ScoreMatrix::new(features.rows(), features.dim, features.values)
}

/// How many times in succession each image is stored, if more than once.
pub(crate) fn repeats(array: &Array) -> Option<Repeats> {
    let same = |row: usize, other: usize| array.row_bytes(row) == array.row_bytes(other);
    Repeats::of(array.rows(), array.dim(), same, |row, out| array.row_into(row, out))
}

/// Some rows of a file, as [`embeddings`] reads all.
///
/// # Errors
/// As [`embeddings`].
pub(crate) fn some_rows(array: &Array, rows: Range<usize>, length: Length) -> Result<Features> {
    Ok(read(array, rows, 1, length)?.0)
}

/// The rows, and their norms in the file.
fn read(
    array: &Array,
    range: Range<usize>,
    every: usize,
    length: Length,
) -> Result<(Features, Vec<f64>)> {
    let (rows, dim) = (range.len(), array.dim());
    let place = |at: usize| (range.start + at) * every;
    // At most twice the size of the file, whose length was checked.
    let (values, norms) = scaled(rows, dim, length, |at, row| array.row_into(place(at), row));
    let bad: Vec<_> = (0..rows).filter(|&at| norms[at].is_nan()).map(place).collect();
    let got = format!("NaN or infinity in {}: {}", count(bad.len(), "row"), first_ten(&bad));
    Error::unless(bad.is_empty(), array.place(), "finite numbers (in f32)", got)?;
    Ok((Features { dim, values }, norms))
}

#[cfg(test)]
mod tests {
    use super::super::tests::files::npy;
    use super::*;

    fn repeats_of(bytes: Vec<u8>) -> Option<usize> {
        let repeats = repeats(&Array::parse("x", None, bytes).unwrap())?;
        assert!(repeats.exact);
        Some(repeats.every)
    }

    /// Each of four images encoded three times; the copies differ by `noise` of the length of a row.
    #[test]
    fn repeats_may_differ_by_rounding() {
        let of = |noise: f32| {
            let row = |at: usize| [1.0 + noise * (at % 3) as f32, (at / 3) as f32 * 0.3];
            let values: Vec<_> = (0..12).flat_map(row).collect();
            repeats(&Array::parse("x", None, npy(&[12, 2], &values)).unwrap())
        };
        assert_eq!(of(0.0), Some(Repeats { every: 3, exact: true }));
        assert_eq!(of(2e-4), Some(Repeats { every: 3, exact: false }));
        assert_eq!(of(2e-2), None);
    }

    #[test]
    fn repeats_are_a_divisor_of_all_groups() {
        let groups = |sizes: &[usize]| {
            let rows = sizes.iter().enumerate().flat_map(|(at, &n)| vec![at as f32; n]);
            let values: Vec<_> = rows.collect();
            repeats_of(npy(&[values.len(), 1], &values))
        };
        assert_eq!(groups(&[5, 5, 5]), Some(5));
        assert_eq!(groups(&[5, 10, 5]), Some(5), "two images that are equal");
        assert_eq!(groups(&[5, 5, 4]), None);
        assert_eq!(groups(&[5, 1]), None);
        assert_eq!(groups(&[6]), None, "all rows equal: collapsed");
        assert_eq!(groups(&[1]), None);
        assert_eq!(groups(&[2, 2]), Some(2));
    }
}
