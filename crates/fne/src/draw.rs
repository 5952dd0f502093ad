//! The draw of Eq. 15: one candidate per anchor, with probability proportional to its weight.

use itm_core::{Error, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws one column per row, column j of row i with probability `ρ[i,j] / Σ_j ρ[i,j]` (Eq. 15).
///
/// | symbol | here      | shape          |
/// |--------|-----------|----------------|
/// | ρ      | `weights` | `[b, columns]` |
///
/// Returns the b columns. The sums are in f64. The same seed draws the same columns on every machine. The function never
/// draws a column of weight 0. Each direction needs its own seed: with one seed for both, row i of both directions takes the
/// same random number, so the two draws are not independent.
///
/// # Errors
/// If `weights` are not whole rows of `columns`, if a weight is negative or not finite, or if all weights of a row are 0. The
/// weights of [`weights`](crate::weights()) always have a positive sum.
///
/// ```
/// let weights = [0.0, 1.0, 0.0, /* row 1 */ 0.5, 0.0, 0.5];
/// let columns = fne::draw(&weights, 3, 7)?;
/// assert_eq!(columns[0], 1);
/// assert_ne!(columns[1], 1);
/// # Ok::<(), fne::Error>(())
/// ```
pub fn draw(weights: &[f32], columns: usize, seed: u64) -> Result<Vec<usize>> {
    let expected = format_args!("whole rows of {columns} columns, at least one column");
    let fits = columns > 0 && weights.len().is_multiple_of(columns);
    Error::unless(fits, "weights", expected, format_args!("{} values", weights.len()))?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rows = weights.chunks_exact(columns).enumerate();
    rows.map(|(i, row)| {
        let valid = |w: &f32| (*w >= 0.0) & (*w < f32::INFINITY);
        // A fold has no branch for each weight, as `all` has.
        if !row.iter().fold(true, |all, w| all & valid(w)) {
            let j = row.iter().take_while(|w| valid(w)).count();
            let place = format!("weight of row {i}, column {j}");
            return Err(Error::invalid(place, "a finite number of at least 0", row[j]));
        }
        let u: f64 = rng.random();
        let nothing = || Error::invalid(format!("weights of row {i}"), "a sum above 0", 0);
        pick(row, u).ok_or_else(nothing)
    })
    .collect()
}

/// The column in which the cumulative weight first exceeds `u` of the total, `u` in [0, 1); `None` if the total is 0.
fn pick(row: &[f32], u: f64) -> Option<usize> {
    let total: f64 = positive(row).map(|(_, w)| f64::from(w)).sum();
    let mut rest = u * total;
    let mut last = None;
    for (j, w) in positive(row) {
        rest -= f64::from(w);
        last = Some(j);
        if rest < 0.0 {
            break;
        }
    }
    last // rounding may leave a tiny `rest`: the last column of positive weight takes it
}

/// The columns of positive weight, in order. A margin leaves a few dozen of thousands, so columns are looked at 16 at a time.
fn positive(row: &[f32]) -> impl Iterator<Item = (usize, f32)> {
    let parts = row.chunks(16).enumerate();
    let parts = parts.filter(|(_, part)| part.iter().fold(0, |bits, w| bits | w.to_bits()) != 0);
    parts.flat_map(|(k, part)| (16 * k..).zip(part.iter().copied())).filter(|&(_, w)| w > 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// χ² over 1e5 draws: 7 classes of positive weight, 6 degrees of freedom, 22.46 at p = 0.001.
    #[test]
    fn trap_17_draws_follow_the_weights() {
        let weights = [0.0, 1.0, 0.37, 0.0, 0.61, 0.88, 0.05, 0.5, 0.99, 0.0];
        let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let n = 100_000;
        let many: Vec<f32> = weights.iter().copied().cycle().take(n * weights.len()).collect();
        let mut count = [0usize; 10];
        for j in draw(&many, weights.len(), 3407).unwrap() {
            count[j] += 1;
        }
        let mut chi2 = 0.0;
        for (j, &w) in weights.iter().enumerate() {
            let expected = n as f64 * f64::from(w) / total;
            if w == 0.0 {
                assert_eq!(count[j], 0, "column {j} of weight 0 was drawn");
            } else {
                chi2 += (count[j] as f64 - expected).powi(2) / expected;
            }
        }
        assert!(chi2 < 22.46, "χ² = {chi2}");
        let of = |seed| draw(&many, 10, seed).unwrap();
        assert_eq!(of(3407), of(3407));
        assert_ne!(of(3407), of(3408));
    }

    /// By hand: weights 1, 0, 2 fill [0, 1/3) and [1/3, 1).
    #[test]
    fn golden_cumulative() {
        let row = [1.0, 0.0, 2.0];
        for (u, want) in [(0.0, 0), (0.33, 0), (0.34, 2), (0.999_999_999, 2)] {
            assert_eq!(pick(&row, u), Some(want), "u = {u}");
        }
        assert_eq!(pick(&[1.0, 0.0], 1.0), Some(0), "never past the last positive weight");
        let mut long = [0.0; 40];
        [3, 17, 39].into_iter().for_each(|j| long[j] = 1.0);
        assert_eq!([0.1, 0.5, 0.9].map(|u| pick(&long, u)), [Some(3), Some(17), Some(39)]);
    }

    #[test]
    fn trap_19_weight_zero_is_never_drawn_and_an_empty_row_is_refused() {
        assert_eq!(draw(&[0.0, 0.0, 1e-30], 3, 0).unwrap(), [2]);
        assert_eq!(pick(&[0.0, 0.0], 0.5), None);
        let refused = |weights: &[f32], columns| draw(weights, columns, 0).unwrap_err().to_string();
        let line = refused(&[1.0, 0.0, 0.0, 0.0], 2);
        assert_eq!(line, "weights of row 1: expected a sum above 0, got 0");
        for bad in [f32::NAN, f32::INFINITY, -0.5] {
            let line = refused(&[1.0, 2.0, 1.0, bad], 2);
            let expected = "weight of row 1, column 1: expected a finite number of at least 0";
            assert_eq!(line, format!("{expected}, got {bad}"));
        }
        let expected = "whole rows of 2 columns, at least one column";
        assert_eq!(refused(&[1.0; 3], 2), format!("weights: expected {expected}, got 3 values"));
        assert!(refused(&[1.0; 3], 0).starts_with("weights: expected whole rows of 0 columns"));
        assert!(draw(&[], 2, 0).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn only_positive_weights(row in vec(prop_oneof![Just(0.0f32), 0.0f32..1.0], 1..40), seed: u64) {
            prop_assume!(row.iter().any(|&w| w > 0.0));
            let j = draw(&row, row.len(), seed).unwrap()[0];
            prop_assert!(row[j] > 0.0);
        }

        /// Scaling all weights changes no draw.
        #[test]
        fn scale_free(row in vec(0.01f32..1.0, 2..20), seed: u64) {
            let double: Vec<f32> = row.iter().map(|w| 4.0 * w).collect();
            let of = |row: &[f32]| draw(row, row.len(), seed).unwrap();
            prop_assert_eq!(of(&row), of(&double));
        }
    }
}
