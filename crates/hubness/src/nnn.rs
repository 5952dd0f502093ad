//! Nearest neighbour normalisation (NNN): each score minus a share of the mean of the item's nearest scores.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::bank::Marker;
use crate::directed::{DirectedScores, at_least_one};
use crate::{Affine, Bank, Correction, Direction, Error, Knowledge, Result};

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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// If the bank is empty, k is 0, α is negative or not finite, or a mean is not finite.
    pub fn fit<B: Bank>(&self, bank: &B, direction: Direction) -> Result<Correction<B::Knowledge>> {
        self.with(&NearestMeans::new(bank, direction, self.k)?)
    }

    /// Fits on means that were computed before; the same means serve any number of α and k.
    ///
    /// # Errors
    /// If α is negative or not finite, or [`NearestMeans::of`] fails for k.
    pub fn with<K: Knowledge>(&self, means: &NearestMeans<K>) -> Result<Correction<K>> {
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return Err(Error::invalid("α of NNN", "a finite number, 0 or more", self.alpha));
        }
        let bias = means.of(self.k)?.into_iter().map(|r| self.alpha * r).collect();
        Ok(Correction::new(means.direction, Affine::of_items(1.0, bias)))
    }
}

/// The mean of every item's k nearest queries, for every k up to some `most`: one pass serves a sweep over k.
///
/// ```text
/// sums[j, k] = Σ of the k largest z(b, j)      r(j) = sums[j, k] / k
/// ```
#[derive(Debug, Clone)]
pub struct NearestMeans<K> {
    direction: Direction,
    bank: usize,
    most: usize,
    sums: Vec<f64>, // [items, most]
    knowledge: Marker<K>,
}

impl<K: Knowledge> NearestMeans<K> {
    /// Computes the means in one pass that keeps the `most` largest scores of every item.
    ///
    /// # Errors
    /// If the bank is empty, `most` is 0, or a score among the largest is infinite.
    pub fn new<B: Bank<Knowledge = K>>(
        bank: &B,
        direction: Direction,
        most: usize,
    ) -> Result<Self> {
        at_least_one("k of NNN", most)?;
        let side = DirectedScores::new("bank", bank.scores(), direction)?;
        let best = side.best_queries(most)?;
        let mut sums = Vec::with_capacity(side.items() * best.k());
        for item in 0..side.items() {
            let mut sum = 0.0;
            sums.extend(best.scores(item).iter().map(|&score| {
                sum += f64::from(score);
                sum
            }));
        }
        let all: Vec<_> = sums.chunks(best.k()).map(|sums| sums[best.k() - 1]).collect();
        side.finite("item", "sum of its nearest scores", &all)?;
        let (bank, most) = (side.queries(), best.k());
        Ok(Self { direction, bank, most, sums, knowledge: PhantomData })
    }

    /// The direction of the means.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The largest number of neighbours.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The mean of each item's `k` largest scores, or of the whole bank if it is smaller.
    ///
    /// # Errors
    /// If `k` is 0, or above [`most`](Self::most) in a larger bank.
    pub fn of(&self, k: usize) -> Result<Vec<f64>> {
        at_least_one("k of NNN", k)?;
        let k = k.min(self.bank);
        if k > self.most {
            return Err(Error::invalid("k of NNN", format!("at most {}", self.most), k));
        }
        Ok(self.sums.chunks(self.most).map(|sums| sums[k - 1] / k as f64).collect())
    }
}
