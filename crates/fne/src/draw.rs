//! The draw of Eq. 15: one candidate per anchor, with probability proportional to its weight.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws one column per row, column j of row i with probability `w[i,j] / Σ_j w[i,j]`.
///
/// | symbol | here      | shape          |
/// |--------|-----------|----------------|
/// | ρ      | `weights` | `[b, columns]` |
///
/// Sums in f64; the same seed draws the same columns on every machine. A column of weight 0 is
/// never drawn.
///
/// # Panics
/// If a row's weights do not sum to a positive finite number (the fallback of
/// [`weights`](crate::weights()) sees to that), or are not whole rows.
///
/// ```
/// let weights = [0.0, 1.0, 0.0, /* row 1 */ 0.5, 0.0, 0.5];
/// let columns = fne::draw(&weights, 3, 7);
/// assert_eq!(columns[0], 1);
/// assert_ne!(columns[1], 1);
/// ```
pub fn draw(weights: &[f32], columns: usize, seed: u64) -> Vec<usize> {
    assert!(columns > 0 && weights.len().is_multiple_of(columns), "weights are rows of {columns}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    weights
        .chunks_exact(columns)
        .enumerate()
        .map(|(i, row)| {
            let u: f64 = rng.random();
            pick(row, u).unwrap_or_else(|| panic!("row {i}: weights sum to no positive number"))
        })
        .collect()
}

/// The column in which the cumulative weight first exceeds `u` of the total, `u` in [0, 1).
fn pick(row: &[f32], u: f64) -> Option<usize> {
    let total: f64 = row.iter().copied().map(f64::from).sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let mut rest = u * total;
    let mut last = None;
    for (j, &w) in row.iter().enumerate() {
        if w > 0.0 {
            rest -= f64::from(w);
            last = Some(j);
            if rest < 0.0 {
                break;
            }
        }
    }
    last // rounding may leave a crumb of `rest`: the last column of positive weight takes it
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
        for j in draw(&many, weights.len(), 3407) {
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
        assert_eq!(draw(&many, 10, 3407), draw(&many, 10, 3407));
        assert_ne!(draw(&many, 10, 3407), draw(&many, 10, 3408));
    }

    /// By hand: weights 1, 0, 2 fill [0, 1/3) and [1/3, 1).
    #[test]
    fn golden_cumulative() {
        let row = [1.0, 0.0, 2.0];
        for (u, want) in [(0.0, 0), (0.33, 0), (0.34, 2), (0.999_999_999, 2)] {
            assert_eq!(pick(&row, u), Some(want), "u = {u}");
        }
        assert_eq!(pick(&[1.0, 0.0], 1.0), Some(0), "never past the last positive weight");
    }

    #[test]
    fn trap_19_weight_zero_is_never_drawn_and_an_empty_row_is_refused() {
        assert_eq!(draw(&[0.0, 0.0, 1e-30], 3, 0), [2]);
        assert_eq!(pick(&[0.0, 0.0], 0.5), None);
        assert_eq!(pick(&[f32::NAN, 1.0], 0.5), None);
        assert!(std::panic::catch_unwind(|| draw(&[0.0, 0.0], 2, 0)).is_err());
    }

    proptest! {
        #[test]
        fn only_positive_weights(row in vec(prop_oneof![Just(0.0f32), 0.0f32..1.0], 1..40), seed: u64) {
            prop_assume!(row.iter().any(|&w| w > 0.0));
            let j = draw(&row, row.len(), seed)[0];
            prop_assert!(row[j] > 0.0);
        }

        /// Scaling all weights changes no draw.
        #[test]
        fn scale_free(row in vec(0.01f32..1.0, 2..20), seed: u64) {
            let double: Vec<f32> = row.iter().map(|w| 4.0 * w).collect();
            prop_assert_eq!(draw(&row, row.len(), seed), draw(&double, row.len(), seed));
        }
    }
}
