//! How many queries an item may serve.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The definition of an item's fair share of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum CapacityScale {
    /// `x = max(1, queries/items)`: an image has the capacity of its five stored copies.
    #[default]
    #[cfg_attr(feature = "cli", value(help = "max(1, queries / items)"))]
    Balanced,
    /// `x = 1`: the paper's listing as printed. With five texts per image, at most a fifth of the text queries
    /// get an answer at K = 1.
    #[cfg_attr(feature = "cli", value(help = "One"))]
    Literal,
}

/// How many queries may hold an item.
///
/// ```text
/// cap = round(λ·k·x)      half away from zero;   λ = ∞: no bound
/// ```
///
/// | symbol | here     |                                            |
/// |--------|----------|--------------------------------------------|
/// | λ      | `lambda` | 1 is greedy matching, ∞ nearest neighbours |
/// | k      | `k`      | items per query                            |
/// | x      | `scale`  | [`CapacityScale`]                          |
///
/// # Errors
/// If `lambda` is NaN or negative.
///
/// ```
/// use hubness::{CapacityScale::*, capacity};
///
/// assert_eq!(capacity(2.5, 1, 1000, 5000, Balanced)?, 3); // more items than queries: x = 1
/// assert_eq!(capacity(1.0, 10, 5000, 1000, Balanced)?, 50);
/// assert_eq!(capacity(1.0, 10, 5000, 1000, Literal)?, 10);
/// assert_eq!(capacity(f64::INFINITY, 10, 5000, 1000, Literal)?, usize::MAX);
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn capacity(
    lambda: f64,
    k: usize,
    queries: usize,
    items: usize,
    scale: CapacityScale,
) -> Result<usize> {
    Error::unless(lambda >= 0.0, "capacity of greedy matching", "λ of at least 0", lambda)?;
    if lambda.is_infinite() {
        return Ok(usize::MAX); // for any k
    }
    let each = lambda * k as f64;
    let balances = scale == CapacityScale::Balanced && queries > items && items > 0;
    // The multiplication comes before the division, so that halves are exact.
    let share = if balances { each * queries as f64 / items as f64 } else { each };
    Ok(share.round() as usize) // a cast saturates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trap "RGM `round`": λ = 2.5, k = 1 gives 3; rounding half to even would give 2.
    #[test]
    fn rgm_round() {
        let literal = |lambda, k| capacity(lambda, k, 10, 10, CapacityScale::Literal).unwrap();
        assert_eq!(literal(2.5, 1), 3);
        assert_eq!(literal(0.5, 1), 1);
        assert_eq!(literal(0.49, 1), 0);
        assert_eq!(literal(1.3, 5), 7); // 6.5
        assert_eq!(literal(0.0, 10), 0);
        assert_eq!(literal(-0.0, 10), 0);
    }

    #[test]
    fn balanced_counts_queries_an_item_and_never_less_than_one() {
        let both = |n, m| {
            [CapacityScale::Literal, CapacityScale::Balanced]
                .map(|s| capacity(1.0, 5, n, m, s).unwrap())
        };
        assert_eq!(both(5000, 1000), [5, 25]);
        assert_eq!(both(1000, 5000), [5, 5]);
        assert_eq!(both(13, 10), [5, 7]); // 5 · 13 / 10 = 6.5
        assert_eq!(both(3, 0), [5, 5]);
        assert_eq!(CapacityScale::default(), CapacityScale::Balanced);
    }

    #[test]
    fn lambda_is_a_number_of_at_least_zero() {
        for (bad, shown) in [(f64::NAN, "NaN"), (-0.1, "-0.1"), (f64::NEG_INFINITY, "-inf")] {
            let error = capacity(bad, 1, 1, 1, CapacityScale::Literal).unwrap_err().to_string();
            let want =
                format!("capacity of greedy matching: expected λ of at least 0, got {shown}");
            assert_eq!(error, want);
        }
        for k in [0, 1, usize::MAX] {
            let no_bound = capacity(f64::INFINITY, k, 3, 0, CapacityScale::Balanced).unwrap();
            assert_eq!(no_bound, usize::MAX);
        }
        assert_eq!(capacity(1e300, 10, 2, 1, CapacityScale::Balanced).unwrap(), usize::MAX);
    }
}
