//! Nearest neighbour normalisation (NNN): each score minus a share of the mean of the item's nearest scores.

use crate::csls::means;
use crate::directed::{DirectedScores, at_least_one};
use crate::{Affine, Bank, BankFit, Correction, Direction, Error};

/// With a larger α, every score would be lost beside the correction: an f64 has 16 digits.
pub(crate) const LARGEST_ALPHA: f64 = 1e6;

/// Nearest neighbour normalisation (EMNLP 2024).
///
/// ```text
/// u(q, j) = s(q, j) − α·r(j)      r(j) = mean of the k largest z(b, j) over the bank b
/// ```
///
/// | symbol | here           | shape                      |
/// |--------|----------------|----------------------------|
/// | z      | `bank.scores()`| bank queries × items       |
/// | α      | `alpha`        | 0 is nearest neighbours    |
/// | k      | `k`            | clipped to the bank's size |
///
/// α = 1/2 with the test queries as the bank ranks as CSLS (`item`). Scores are used as given: where
/// embeddings are not normalised, `r` grows with the item's norm.
///
/// # Departures
/// The class of the authors' program has the defaults α = 0.5 and k = 256; its README and example have 0.75
/// and 128, which are our defaults. The program fails when k is larger than the bank.
///
/// ```
/// use hubness::{Direction, HeldOutBank, Nnn, ScoreMatrix};
///
/// let bank = ScoreMatrix::from_rows([[0.8, 0.1], [0.6, 0.2], [0.1, 0.3]]);
/// let nnn = Nnn { alpha: 0.5, k: 2 }.fit(&HeldOutBank(&bank), Direction::I2t)?;
/// assert!((nnn.map().rescore(0, 0, 0.5) - (0.5 - 0.5 * 0.7)).abs() < 1e-7); // r = (0.8 + 0.6) / 2
/// assert_eq!(nnn.setting().to_string(), "held-out bank");
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nnn {
    /// How much of the mean is subtracted, α.
    pub alpha: f64,
    /// How many of the bank's best queries count in the mean of an item.
    pub k: usize,
}

impl Default for Nnn {
    fn default() -> Self {
        Self { alpha: 0.75, k: 128 }
    }
}

impl Nnn {
    /// Fits on a bank, in one pass.
    ///
    /// # Errors
    /// If the bank is empty, k is 0, α is negative, above 10⁶ or not finite, or a mean is not finite.
    pub fn fit<B: Bank>(&self, bank: &B, direction: Direction) -> BankFit<B> {
        at_least_one("k of NNN", self.k)?;
        let (place, alpha) = ("α of NNN", self.alpha);
        let fits = alpha.is_finite() && alpha >= 0.0;
        Error::unless(fits, place, "a finite number, 0 or more", alpha)?;
        let expected = format_args!("at most {LARGEST_ALPHA:e}");
        Error::unless(alpha <= LARGEST_ALPHA, place, expected, format_args!("{alpha:e}"))?;
        let bank = DirectedScores::new("bank", bank.scores(), direction)?;
        let means = means(&bank.best_queries(self.k)?, self.k);
        let mut means = bank.finite("item", "mean of its nearest scores", means)?;
        means.iter_mut().for_each(|mean| *mean *= alpha);
        Ok(Correction::new(direction, Affine::of_items(1.0, means)))
    }
}
