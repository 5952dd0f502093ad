//! Rows of embeddings as the rest uses them: finite, of unit length, and what is odd about them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use itm_core::data::Features;
use itm_core::{Error, Result, ScoreMatrix};
use rayon::prelude::*;

use super::array::Array;
use super::loaded::Messages;
use super::text::{count, first_ten};

/// Above this mean resultant length embeddings count as collapsed.
///
/// ```text
/// R = ‖ (1/n) Σᵢ xᵢ/‖xᵢ‖ ‖        R² = mean cosine over all pairs of rows
/// ```
///
/// At 0.999 the mean cosine is 0.998: what is left to tell rows apart is of the size of half precision's step just
/// below one, 2⁻¹¹ = 0.0005. The narrow cones of trained encoders are far from it (CLIP on COCO and Flickr8k: 0.71 to 0.75;
/// a VSE model trained from scratch: 0.11).
const COLLAPSED: f64 = 0.999;

/// What is done to the length of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    /// Every row is divided by its norm, in f64, whatever the norm was; rows of zeros stay zero.
    #[default]
    Unit,
    /// Rows stay as they are.
    Raw,
}

/// Every `every`-th row of a file as f32, of unit length unless `length` is raw; warns of zero, equal and collapsed rows.
///
/// # Errors
/// If a row holds NaN or infinity, in the file or as f32: all such rows are counted, the first ten named.
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
    zeros(place, &norms, messages);
    duplicates(place, &features, messages);
    if let Some(length) = resultant(&features).filter(|&length| length > COLLAPSED) {
        messages.warn(format!(
            "{place}: collapsed: all rows point nearly the same way (mean resultant length {length:.5})"
        ));
    }
    Ok(features)
}

/// Every `every`-th row of a file as a score matrix.
///
/// # Errors
/// As [`embeddings`].
pub(crate) fn scores(array: &Array, every: usize, messages: &mut Messages) -> Result<ScoreMatrix> {
    let (features, norms) = read(array, every, Length::Raw)?;
    zeros(array.place(), &norms, messages);
    duplicates(array.place(), &features, messages);
    let first = features.values[0];
    if features.values.len() > 1 && features.values.iter().all(|&v| v == first) {
        messages.warn(format!("{}: all scores are {first}", array.place()));
    }
    ScoreMatrix::new(features.rows(), features.dim, features.values)
}

/// How often each image is stored in a row, if it is stored more than once: rows equal in every bit, in groups whose
/// sizes have a common divisor above 1. A file with all rows equal is collapsed, not repeated.
pub(crate) fn repeats(array: &Array) -> Option<usize> {
    let (mut common, mut size) = (0, 1);
    for row in 1..array.rows() {
        if array.row_bytes(row) == array.row_bytes(row - 1) {
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
    (common > 1 && common < array.rows()).then_some(common)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rows, and the norms they had.
fn read(array: &Array, every: usize, length: Length) -> Result<(Features, Vec<f64>)> {
    let (rows, dim) = (array.rows() / every, array.dim());
    let mut values = vec![0.0f32; rows * dim]; // at most twice the file: its length was checked
    let norms: Vec<f64> = values
        .par_chunks_exact_mut(dim)
        .enumerate()
        .map_init(
            || vec![0.0; dim],
            |row, (at, out)| {
                array.row_into(at * every, row);
                let norm = norm(row);
                let by = if length == Length::Unit && norm > 0.0 { norm } else { 1.0 };
                out.iter_mut().zip(&*row).for_each(|(v, x)| *v = (x / by) as f32);
                if out.iter().all(|v| v.is_finite()) { norm } else { f64::NAN }
            },
        )
        .collect();
    let bad: Vec<_> = (0..rows).filter(|&at| norms[at].is_nan()).map(|at| at * every).collect();
    if !bad.is_empty() {
        let got = format!("NaN or infinity in {}: {}", count(bad.len(), "row"), first_ten(&bad));
        return Err(Error::invalid(array.place(), "finite numbers (in f32)", got));
    }
    Ok((Features { dim, values }, norms))
}

/// Over- and underflow of the squares is no reason to refuse a row.
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

fn zeros(place: &str, norms: &[f64], messages: &mut Messages) {
    let zeros: Vec<_> = (0..norms.len()).filter(|&row| norms[row] == 0.0).collect();
    if !zeros.is_empty() {
        let (n, first) = (count(zeros.len(), "row"), first_ten(&zeros));
        messages.warn(format!("{place}: {n} of zeros only, kept as they are: {first}"));
    }
}

/// Rows equal to an earlier one; −0 is 0, rows of zeros have their own warning.
fn duplicates(place: &str, features: &Features, messages: &mut Messages) {
    let hash = |row: usize| {
        let mut hasher = DefaultHasher::new();
        features.row(row).iter().for_each(|v| hasher.write_u32((v + 0.0).to_bits())); // −0 + 0 = 0
        hasher.finish()
    };
    let hashes: Vec<_> = (0..features.rows()).into_par_iter().map(hash).collect();
    let mut earlier: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut equal = Vec::new();
    for (row, hash) in hashes.into_iter().enumerate() {
        if features.row(row).iter().all(|&v| v == 0.0) {
            continue;
        }
        let seen = earlier.entry(hash).or_default();
        match seen.iter().find(|&&first| features.row(first) == features.row(row)) {
            Some(first) => equal.push(format!("{row} = {first}")),
            None => seen.push(row),
        }
    }
    if !equal.is_empty() {
        let n = count(equal.len(), "row");
        let verb = if equal.len() == 1 { "equals" } else { "equal" };
        messages.warn(format!("{place}: {n} {verb} an earlier one: {}", first_ten(&equal)));
    }
}

/// Mean resultant length of the rows that are not zero, if there are two.
fn resultant(features: &Features) -> Option<f64> {
    let mut sum = vec![0.0; features.dim];
    let mut rows = 0;
    for at in 0..features.rows() {
        let row: Vec<_> = features.row(at).iter().map(|&v| f64::from(v)).collect();
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
    use super::super::testing::{npy, rows};
    use super::*;

    fn repeats_of(bytes: Vec<u8>) -> Option<usize> {
        repeats(&Array::parse("x", None, bytes).unwrap())
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
        let of = |bytes| {
            let array = Array::parse("x", None, bytes).unwrap();
            resultant(&read(&array, 1, Length::Raw).unwrap().0)
        };
        let got = of(rows([[2.0, 0.0], [0.0, 0.0], [0.0, 5.0]])).unwrap();
        assert!((got - 0.5f64.sqrt()).abs() < 1e-12, "{got}");
        assert_eq!(of(rows([[2.0, 0.0]])), None);
        let opposite = of(rows([[2.0, 0.0], [-1.0, 0.0]])).unwrap();
        assert_eq!(opposite, 0.0);
    }
}
