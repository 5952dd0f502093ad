//! Rows of embeddings before scoring, and warnings about odd rows.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use rayon::prelude::*;

use crate::words::{count, first_ten};

/// Above this mean resultant length, embeddings count as collapsed.
///
/// ```text
/// R = ‖ (1/n) Σᵢ xᵢ/‖xᵢ‖ ‖        R² = mean cosine over all pairs of rows
/// ```
///
/// At 0.999 the mean cosine is 0.998. The remaining differences between rows are of the size of the step of half precision
/// just below one, 2⁻¹¹ = 0.0005. The narrow cones of trained encoders are far from this limit (CLIP on COCO and Flickr8k:
/// 0.71 to 0.75; a VSE model trained from scratch: 0.11).
const COLLAPSED: f64 = 0.999;

/// The length of the rows of embeddings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    /// One, so that products are cosines; rows of zeros stay zero.
    #[default]
    Unit,
    /// The length that they have.
    Raw,
}

/// Rows of `dim` values, each divided by its norm in f64; rows of zeros stay zero.
///
/// # Panics
/// If `dim` is 0, the last row is incomplete, or a value is not finite.
///
/// ```
/// assert_eq!(hubness::rows::unit(2, &[3.0, -4.0, 0.0, 0.0]), [0.6, -0.8, 0.0, 0.0]);
/// ```
pub fn unit(dim: usize, values: &[f32]) -> Vec<f32> {
    check(dim, values);
    let fill = |at: usize, row: &mut [f64]| {
        row.iter_mut().zip(&values[at * dim..]).for_each(|(x, &v)| *x = f64::from(v));
    };
    scaled(values.len() / dim, dim, Length::Unit, fill).0
}

/// Possible faults of embeddings, one line each: rows of zeros, equal rows, all rows pointing nearly the same way.
///
/// # Panics
/// If the values are not whole rows, or one is not finite.
pub fn warnings(place: &str, dim: usize, values: &[f32]) -> Vec<String> {
    check(dim, values);
    let collapsed = resultant(dim, values).filter(|&length| length > COLLAPSED).map(|length| {
        format!("{place}: collapsed: all rows point nearly the same way (mean resultant length {length:.5})")
    });
    let all = [zeros(place, dim, values), duplicates(place, dim, values), collapsed];
    all.into_iter().flatten().collect()
}

fn check(dim: usize, values: &[f32]) {
    let n = values.len();
    assert!(dim > 0 && n.is_multiple_of(dim), "{n} values in rows of {dim}");
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        panic!("row {}, column {}: {} has no unit length", at / dim, at % dim, values[at]);
    }
}

/// Rows as f32, and their norms before the scaling: NaN for a row that is not finite. `fill` writes one row.
pub(crate) fn scaled(
    rows: usize,
    dim: usize,
    length: Length,
    fill: impl Fn(usize, &mut [f64]) + Sync,
) -> (Vec<f32>, Vec<f64>) {
    let mut values = vec![0.0f32; rows * dim];
    let norms = values.par_chunks_exact_mut(dim).enumerate().map_init(
        || vec![0.0; dim],
        |row, (at, out)| {
            fill(at, row);
            let norm = norm(row);
            let by = if length == Length::Unit && norm > 0.0 { norm } else { 1.0 };
            out.iter_mut().zip(&*row).for_each(|(v, x)| *v = (x / by) as f32);
            if out.iter().all(|v| v.is_finite()) { norm } else { f64::NAN }
        },
    );
    let norms = norms.collect();
    (values, norms)
}

/// The norm of a row, even if its squares overflow or underflow.
fn norm(row: &[f64]) -> f64 {
    let sum: f64 = row.iter().map(|x| x * x).sum();
    if sum.is_finite() && sum > 1e-280 {
        return sum.sqrt();
    }
    let largest = row.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * row.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

fn is_zero(row: &[f32]) -> bool {
    row.iter().all(|&v| v == 0.0)
}

pub(crate) fn zeros(place: &str, dim: usize, values: &[f32]) -> Option<String> {
    let rows = values.chunks(dim).enumerate().filter(|(_, row)| is_zero(row));
    let zeros: Vec<_> = rows.map(|(at, _)| at).collect();
    let (n, first) = (count(zeros.len(), "row"), first_ten(&zeros));
    (!zeros.is_empty()).then(|| format!("{place}: {n} of zeros only, kept as they are: {first}"))
}

/// Names rows that equal an earlier row. −0 equals 0; rows of zeros have their own warning.
pub(crate) fn duplicates(place: &str, dim: usize, values: &[f32]) -> Option<String> {
    let hash = |row: &[f32]| {
        let mut hasher = DefaultHasher::new();
        row.iter().for_each(|v| hasher.write_u32((v + 0.0).to_bits())); // −0 + 0 = 0
        hasher.finish()
    };
    let row = |at: usize| &values[at * dim..(at + 1) * dim];
    let hashes: Vec<_> = values.par_chunks(dim).map(hash).collect();
    let mut earlier: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut equal = Vec::new();
    for (at, hash) in hashes.into_iter().enumerate().filter(|&(at, _)| !is_zero(row(at))) {
        let seen = earlier.entry(hash).or_default();
        match seen.iter().find(|&&first| row(first) == row(at)) {
            Some(first) => equal.push(format!("{at} = {first}")),
            None => seen.push(at),
        }
    }
    let (n, first) = (count(equal.len(), "row"), first_ten(&equal));
    let verb = if equal.len() == 1 { "equals" } else { "equal" };
    (!equal.is_empty()).then(|| format!("{place}: {n} {verb} an earlier one: {first}"))
}

/// Mean resultant length of the rows that are not zero, if there are at least two.
fn resultant(dim: usize, values: &[f32]) -> Option<f64> {
    let mut sum = vec![0.0; dim];
    let mut rows = 0;
    for row in values.chunks(dim) {
        let row: Vec<_> = row.iter().map(|&v| f64::from(v)).collect();
        let norm = norm(&row);
        if norm > 0.0 {
            rows += 1;
            sum.iter_mut().zip(&row).for_each(|(s, v)| *s += v / norm);
        }
    }
    (rows > 1).then(|| norm(&sum) / f64::from(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_neither_overflow_nor_vanish() {
        for scale in [1e300, 1.0, 1e-300] {
            let got = norm(&[3.0 * scale, -4.0 * scale]) / scale;
            assert!((got - 5.0).abs() < 1e-12, "{scale}: {got}");
        }
        assert_eq!((norm(&[0.0, -0.0]), norm(&[f64::INFINITY, 1.0])), (0.0, f64::INFINITY));
    }

    /// By hand: unit rows (1, 0) and (0, 1), mean (½, ½), length √½; a row of zeros has no direction.
    #[test]
    fn golden_mean_resultant_length() {
        let got = resultant(2, &[2.0, 0.0, 0.0, 0.0, 0.0, 5.0]).unwrap();
        assert!((got - 0.5f64.sqrt()).abs() < 1e-12, "{got}");
        assert_eq!(resultant(2, &[2.0, 0.0]), None);
        assert_eq!(resultant(2, &[2.0, 0.0, -1.0, 0.0]), Some(0.0));
    }

    #[test]
    #[should_panic(expected = "3 values in rows of 2")]
    fn an_incomplete_row_is_refused() {
        unit(2, &[1.0, 2.0, 3.0]);
    }

    #[test]
    fn what_is_odd_is_counted_by_row() {
        let rows = [1.0, 0.0, 0.0, 0.0, 1.0, -0.0, 1.0, 0.0];
        let want = [
            "x: 1 row of zeros only, kept as they are: 1",
            "x: 2 rows equal an earlier one: 2 = 0, 3 = 0",
            "x: collapsed: all rows point nearly the same way (mean resultant length 1.00000)",
        ];
        assert_eq!(warnings("x", 2, &rows), want);
        assert!(warnings("x", 2, &[1.0, 0.0, 0.0, 1.0]).is_empty());
    }
}
