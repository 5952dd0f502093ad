//! Refilling: tokens drawn for the targets of masked sentences (Eq. 2).

use itm_core::{Error, Result};
use rand::RngExt;

use crate::masking::Masking;

/// A model that fills in masked words beside one image.
pub trait Generator {
    /// Number of tokens, V.
    fn vocabulary(&self) -> usize;

    /// Logits at the targets, row after row, in ascending positions within a row: `[targets, V]`.
    ///
    /// # Errors
    /// The errors of the model.
    fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>>;
}

/// How targets are refilled.
///
/// ```text
/// for every target p of row k, L times, independently:   token ~ softmax(logits_p / τ)
/// ```
///
/// | symbol | here | value of the paper |
/// |---|---|---|
/// | L | `draws` | 20 |
/// | τ | `temperature` | 1.5 |
///
/// All targets are refilled, also kept and randomised ones. Every other position keeps its original token.
/// Refill `l` of row `k` is row `k·L + l` of the result.
///
/// # Departures
/// Departure 11: the paper searches τ among 1.0 and 1.5; the program's default is 2.0. Departure 13: the whole
/// vocabulary can be drawn, as in the released program; `forbid` excludes tokens.
///
/// ```
/// use tags_dc::{Masking, Purpose, Refill};
///
/// let row = Masking { ids: vec![101, 103, 102], labels: vec![None, Some(7), None] };
/// let mut logits = vec![f32::NEG_INFINITY; 200];
/// logits[9] = 0.0; // the only token with a chance
/// let refill = Refill { draws: 2, temperature: 1.5, forbid: vec![] };
/// let mut rng = Purpose::Refills.stream(1, 0);
/// let rows = refill.draw(&[row], &logits, 200, &mut rng)?;
/// assert_eq!(rows, [[101, 9, 102], [101, 9, 102]]);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Refill {
    /// Refills per masked row.
    pub draws: usize,
    /// A value above 1 flattens the distribution, a value below 1 sharpens it.
    pub temperature: f64,
    /// Tokens that are never drawn (`forbid_special`): `[PAD] [UNK] [CLS] [SEP] [MASK]` and ids without a word.
    pub forbid: Vec<u32>,
}

/// The most draws of one masking.
const MOST_DRAWS: usize = 1_000_000;

impl Refill {
    /// Draws from given logits. In training the loss computes them.
    ///
    /// # Errors
    /// If `draws` is 0, the temperature is not above zero, a row has not one label per token, the number of logits is not
    /// `[targets, vocabulary]`, a logit is NaN or +∞, a forbidden token is outside the vocabulary, or no token can be drawn at a
    /// target.
    pub fn draw(
        &self,
        rows: &[Masking],
        logits: &[f32],
        vocabulary: usize,
        rng: &mut impl RngExt,
    ) -> Result<Vec<Vec<u32>>> {
        self.check(vocabulary)?;
        let targets = self.targets(rows)?;
        let fits = targets.len().checked_mul(vocabulary) == Some(logits.len());
        let expected = format_args!("{} × {vocabulary} logits", targets.len());
        Error::unless(fits, "refill", expected, logits.len())?;
        let mut drawn = vec![];
        for ((k, p), logits) in targets.into_iter().zip(logits.chunks(vocabulary.max(1))) {
            let sums = self.cumulative(logits, k, p)?;
            drawn.extend((0..self.draws).map(|_| token(&sums, rng.random())));
        }
        self.fill(rows, &drawn)
    }

    /// Puts given tokens at the targets: `tokens` are `[targets, L]`, the targets in the order of [`Generator::logits`]. Whoever draws in
    /// another way, or compares with another program, gives that program's tokens.
    ///
    /// # Errors
    /// If `draws` is 0, a row has not one label per token, or there are not L tokens for each target.
    ///
    /// ```
    /// use tags_dc::{Masking, Refill};
    ///
    /// let row = Masking { ids: vec![101, 103, 103, 102], labels: vec![None, Some(7), Some(8), None] };
    /// let refill = Refill { draws: 2, temperature: 1.5, forbid: vec![] };
    /// let rows = refill.fill(&[row], &[20, 21, 30, 31])?;
    /// assert_eq!(rows, [[101, 20, 30, 102], [101, 21, 31, 102]]);
    /// # Ok::<(), itm_core::Error>(())
    /// ```
    pub fn fill(&self, rows: &[Masking], tokens: &[u32]) -> Result<Vec<Vec<u32>>> {
        let targets = self.targets(rows)?;
        let fits = targets.len().checked_mul(self.draws) == Some(tokens.len());
        let expected = format_args!("{} × {} tokens", targets.len(), self.draws);
        Error::unless(fits, "refill", expected, tokens.len())?;
        let mut filled: Vec<Vec<u32>> =
            rows.iter().flat_map(|row| vec![row.ids.clone(); self.draws]).collect();
        for ((k, p), tokens) in targets.into_iter().zip(tokens.chunks(self.draws)) {
            let own = &mut filled[k * self.draws..(k + 1) * self.draws];
            own.iter_mut().zip(tokens).for_each(|(row, &token)| row[p] = token);
        }
        Ok(filled)
    }

    /// Row and position of each target.
    fn targets(&self, rows: &[Masking]) -> Result<Vec<(usize, usize)>> {
        let fits = (1..=MOST_DRAWS).contains(&self.draws);
        Error::unless(fits, "refill.draws", format_args!("1 to {MOST_DRAWS}"), self.draws)?;
        if let Some(k) = rows.iter().position(|row| row.labels.len() != row.ids.len()) {
            let expected = format!("{} labels, one per token", rows[k].ids.len());
            return Err(Error::invalid(format!("row {k}"), expected, rows[k].labels.len()));
        }
        let of = |(k, row): (usize, &Masking)| row.targets().map(|p| (k, p)).collect::<Vec<_>>();
        Ok(rows.iter().enumerate().flat_map(of).collect())
    }

    fn check(&self, vocabulary: usize) -> Result<()> {
        let tau = self.temperature;
        let fits = tau > 0.0 && tau.is_finite();
        Error::unless(fits, "refill.temperature", "a number above zero", tau)?;
        self.forbid.iter().try_for_each(|&token| {
            let expected = format_args!("tokens below {vocabulary}");
            Error::unless((token as usize) < vocabulary, "refill.forbid", expected, token)
        })
    }

    /// `Σ_{j ≤ i} exp((logit_j − max) / τ)` in f64: in f32 the tail of 28,996 terms would be lost beside the sum.
    fn cumulative(&self, logits: &[f32], row: usize, at: usize) -> Result<Vec<f64>> {
        let refused = |expected, got: &dyn std::fmt::Display| {
            Err(Error::invalid(format!("row {row}, position {at}"), expected, got))
        };
        if let Some(bad) = logits.iter().position(|x| x.is_nan() || *x == f32::INFINITY) {
            return refused("finite logits", &format!("{} for token {bad}", logits[bad]));
        }
        let mut weights: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
        self.forbid.iter().for_each(|&token| weights[token as usize] = f64::NEG_INFINITY);
        let max = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if max == f64::NEG_INFINITY {
            return refused("a token that can be drawn", &"none");
        }
        let mut sum = 0.0;
        for weight in &mut weights {
            sum += ((*weight - max) / self.temperature).exp();
            *weight = sum;
        }
        Ok(weights)
    }
}

/// The first token whose cumulative sum is above the share `u` of the total. A token without weight is never the first.
fn token(sums: &[f64], u: f64) -> u32 {
    let total = sums[sums.len() - 1];
    let at = sums.partition_point(|&sum| sum <= u * total);
    let last = || sums.partition_point(|&sum| sum < total); // if u · total rounds up to the total
    (if at < sums.len() { at } else { last() }) as u32
}

#[cfg(test)]
mod tests;
