//! Rows of a file: embeddings of unit length, or scores.

use std::fmt;

use itm_core::data::Features;
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
    let (features, norms) = read(array, every, length)?;
    let place = array.place();
    if length == Length::Unit {
        let finite = norms.iter().filter(|&&norm| norm > 0.0);
        let (low, high) =
            finite.fold((f64::INFINITY, 0.0f64), |(low, high), &n| (low.min(n), high.max(n)));
        if high - 1.0 > 1e-3 || 1.0 - low > 1e-3 && low.is_finite() {
            let norms = format!("norms were {low:.4} to {high:.4}");
            messages.note(format!("{place}: rows scaled to unit length, {norms}"));
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
    let (features, _) = read(array, every, Length::Raw)?;
    let (place, dim, values) = (array.place(), features.dim, &features.values);
    messages.warnings.extend(zeros(place, dim, values));
    messages.warnings.extend(duplicates(place, dim, values));
    let first = features.values[0];
    if features.values.len() > 1 && features.values.iter().all(|&v| v == first) {
        messages.warn(format!("{}: all scores are {first}", array.place()));
    }
    ScoreMatrix::new(features.rows(), features.dim, features.values)
}

/// Rows whose difference is at most this part of their length are one image that was encoded several times: half
/// precision, other batches and other cores differ by less, two photographs by far more.
const ROUNDING: f64 = 1e-3;

/// How often an image is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeats {
    /// Rows in succession.
    pub(crate) every: usize,
    /// Whether they are equal in every bit; otherwise up to rounding.
    pub(crate) exact: bool,
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.exact {
            true => "rows equal in every bit",
            false => "rows equal up to rounding, at most 0.001 of their length",
        })
    }
}

/// How many times in succession each image is stored, if more than once: rows are equal, in groups whose sizes have a common
/// divisor above 1. A file with all rows equal is collapsed, not repeated.
pub(crate) fn repeats(array: &Array) -> Option<Repeats> {
    let same = |row: usize, first: usize| array.row_bytes(row) == array.row_bytes(first);
    if let Some(every) = groups(array.rows(), same) {
        return Some(Repeats { every, exact: true });
    }
    let (mut one, mut other) = (vec![0.0; array.dim()], vec![0.0; array.dim()]);
    let near = |row: usize, first: usize| {
        array.row_into(row, &mut one);
        array.row_into(first, &mut other);
        let squares = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>();
        let apart = squares(&mut one.iter().zip(&other).map(|(a, b)| a - b));
        apart <= ROUNDING * ROUNDING * squares(&mut other.iter().copied()) // false for NaN
    };
    groups(array.rows(), near).map(|every| Repeats { every, exact: false })
}

/// The common divisor above 1 of the sizes of groups of equal rows. `same` compares a row with the first of its group.
fn groups(rows: usize, mut same: impl FnMut(usize, usize) -> bool) -> Option<usize> {
    let (mut common, mut size) = (0, 1);
    for row in 1..rows {
        if same(row, row - size) {
            size += 1;
        } else {
            common = gcd(common, size);
            size = 1;
            if common == 1 {
                return None;
            }
        }
    }
    common = gcd(common, size);
    (common > 1 && common < rows).then_some(common)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rows, and their norms in the file.
fn read(array: &Array, every: usize, length: Length) -> Result<(Features, Vec<f64>)> {
    let (rows, dim) = (array.rows() / every, array.dim());
    // At most twice the size of the file, whose length was checked.
    let (values, norms) = scaled(rows, dim, length, |at, row| array.row_into(at * every, row));
    let bad: Vec<_> = (0..rows).filter(|&at| norms[at].is_nan()).map(|at| at * every).collect();
    if !bad.is_empty() {
        let got = format!("NaN or infinity in {}: {}", count(bad.len(), "row"), first_ten(&bad));
        return Err(Error::invalid(array.place(), "finite numbers (in f32)", got));
    }
    Ok((Features { dim, values }, norms))
}

#[cfg(test)]
mod tests {
    use super::super::testing::npy;
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
