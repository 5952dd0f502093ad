//! Refilling: tokens drawn for the targets of masked sentences (Eq. 2).

use itm_core::{Error, Result};
use rand::RngExt;
use serde::{Deserialize, Serialize};

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

/// In which order the targets of a masking are refilled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefillOrder {
    /// All at once, independently of each other, as in the paper.
    #[default]
    Together,
    /// One after another, from left to right: the model sees each drawn token before the next one is drawn.
    InTurn,
}

impl RefillOrder {
    /// Whether the targets are refilled as in the paper.
    #[cfg(feature = "burn")]
    pub(crate) fn is_together(&self) -> bool {
        *self == Self::Together
    }
}

/// How targets are refilled.
///
/// ```text
/// for every target p of row k, L times, independently:   token ~ softmax(logits_p / τ)
/// ```
///
/// In turn, the logits of target p are those beside the tokens that this refill has already at the targets before p.
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
/// use tags_dc::{Masking, Purpose, Refill, RefillOrder, Streams};
///
/// let row = Masking { ids: vec![101, 103, 102], labels: vec![None, Some(7), None] };
/// let mut logits = vec![f32::NEG_INFINITY; 200];
/// logits[9] = 0.0; // the only token with a chance
/// let refill = Refill { draws: 2, temperature: 1.5, forbid: vec![], order: RefillOrder::Together };
/// let mut rng = Streams { seed: 1, round: 0 }.of(Purpose::Refills, 0);
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
    /// In which order [`of`](Self::of) refills the targets.
    pub order: RefillOrder,
}

/// The most draws of one masking.
const MOST_DRAWS: usize = 1_000_000;

impl Refill {
    /// Computes the generator's logits and draws: once for all targets, or once for each target in turn.
    ///
    /// # Errors
    /// As [`draw`](Self::draw); also the errors of the generator.
    pub(crate) fn of(
        &self,
        rows: &[Masking],
        generator: &mut impl Generator,
        rng: &mut impl RngExt,
    ) -> Result<Vec<Vec<u32>>> {
        let v = generator.vocabulary();
        if self.order == RefillOrder::Together {
            let logits = generator.logits(rows)?;
            return self.draw(rows, &logits, v, rng);
        }
        let targets: Vec<Vec<usize>> = rows.iter().map(|row| row.targets().collect()).collect();
        let firsts: Vec<Masking> =
            rows.iter().zip(&targets).map(|(row, at)| only(&row.ids, row, at.first())).collect();
        let logits = generator.logits(&firsts)?;
        let mut filled = self.draw(&firsts, &logits, v, rng)?;
        let one = Self { draws: 1, ..self.clone() };
        for turn in 1..targets.iter().map(Vec::len).max().unwrap_or(0) {
            let of = |k: usize| targets[k / self.draws].get(turn);
            let going: Vec<usize> = (0..filled.len()).filter(|&k| of(k).is_some()).collect();
            let asked: Vec<Masking> =
                going.iter().map(|&k| only(&filled[k], &rows[k / self.draws], of(k))).collect();
            let logits = generator.logits(&asked)?;
            for (k, row) in going.into_iter().zip(one.draw(&asked, &logits, v, rng)?) {
                filled[k] = row;
            }
        }
        Ok(filled)
    }

    /// Draws from given logits, for all targets at once. In training the loss computes them.
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
        if let Some(k) = rows.iter().position(|row| row.labels.len() != row.ids.len()) {
            let expected = format!("{} labels, one per token", rows[k].ids.len());
            return Err(Error::invalid(format!("row {k}"), expected, rows[k].labels.len()));
        }
        let targets: usize = rows.iter().map(|row| row.targets().count()).sum();
        if targets.checked_mul(vocabulary) != Some(logits.len()) {
            let expected = format!("{targets} × {vocabulary} logits");
            return Err(Error::invalid("refill", expected, logits.len()));
        }
        let mut filled: Vec<Vec<u32>> =
            rows.iter().flat_map(|row| vec![row.ids.clone(); self.draws]).collect();
        let places =
            rows.iter().enumerate().flat_map(|(k, row)| row.targets().map(move |p| (k, p)));
        for ((k, p), logits) in places.zip(logits.chunks(vocabulary.max(1))) {
            let sums = self.cumulative(logits, k, p)?;
            for row in &mut filled[k * self.draws..(k + 1) * self.draws] {
                row[p] = token(&sums, rng.random());
            }
        }
        Ok(filled)
    }

    fn check(&self, vocabulary: usize) -> Result<()> {
        if !(1..=MOST_DRAWS).contains(&self.draws) {
            return Err(Error::invalid("refill.draws", format!("1 to {MOST_DRAWS}"), self.draws));
        }
        let tau = self.temperature;
        if !(tau > 0.0 && tau.is_finite()) {
            return Err(Error::invalid("refill.temperature", "a number above zero", tau));
        }
        match self.forbid.iter().find(|&&token| token as usize >= vocabulary) {
            Some(token) => {
                let expected = format!("tokens below {vocabulary}");
                Err(Error::invalid("refill.forbid", expected, token))
            }
            None => Ok(()),
        }
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
        for &token in &self.forbid {
            weights[token as usize] = f64::NEG_INFINITY;
        }
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

/// A row of these tokens, with at most one of the targets of `row`.
fn only(ids: &[u32], row: &Masking, target: Option<&usize>) -> Masking {
    let label = |at: usize| row.labels[at].filter(|_| target == Some(&at));
    Masking { ids: ids.to_vec(), labels: (0..row.labels.len()).map(label).collect() }
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
