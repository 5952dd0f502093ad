//! Masking by phrase or by word: which tokens of a sentence become targets, and which tokens are in their place until the refill.

mod probabilities;

use std::ops::Range;

use itm_core::{Error, Result};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

pub use probabilities::label_probabilities;
use probabilities::phrase_probabilities;

use crate::words::distinct;

/// What is masked together (Table 2, "w/ WM").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MaskBy {
    /// The phrases of the sentence.
    #[default]
    Phrases,
    /// Each token separately.
    Words,
}

/// A sentence with targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masking {
    /// The tokens as the model reads them, `[CLS]` and `[SEP]` included.
    pub ids: Vec<u32>,
    /// At a target the original token, elsewhere `None` (−1 in the released program).
    pub labels: Vec<Option<u32>>,
}

impl Masking {
    /// Positions of the targets, ascending. Tokens that were kept or randomised are targets too: all targets are refilled.
    pub fn targets(&self) -> impl Iterator<Item = usize> {
        self.labels.iter().enumerate().filter_map(|(at, label)| label.map(|_| at))
    }
}

/// Draws the targets of a sentence.
///
/// ```text
/// freq(p) = #{s : p ∈ s}        P_s = mean over p ∈ s of rate / freq(p)
/// by phrases: every phrase s with probability P_s; none → one phrase, uniformly
/// by words:   every token with probability rate;   none → the first token, always as [MASK]
/// at a target: 80 % [MASK], 10 % a uniform token of the range, 10 % the token itself
/// ```
///
/// | symbol | here | value of the paper |
/// |---|---|---|
/// | rate | `rate` | 0.15, before the fallback |
/// | `[MASK]` | `mask` | 103 |
/// | `v_range` | `range` | 106..28996 |
///
/// Tokens outside every phrase are never masked by phrases. The chance that a token becomes a target is
/// [`label_probabilities`]: well above 15 % in a short sentence.
///
/// ```
/// use tags_dc::{MaskBy, Masker, Purpose};
///
/// let masker = Masker::new(MaskBy::Phrases, 0.15, 103, 106..28996)?;
/// let tokens = [101, 138, 3058, 3676, 1204, 102]; // [CLS] A brown dog jumps [SEP]
/// let phrases = [vec![1], vec![2], vec![3]]; // positions without [CLS]
/// let mut rng = Purpose::Masks.stream(1, 17);
/// let masked = masker.maskings(&tokens, &phrases, 20, &mut rng)?;
/// assert_eq!(masked.len(), 20);
/// assert!(masked.iter().all(|row| row.labels[1].is_none() && row.targets().count() > 0));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Masker {
    by: MaskBy,
    rate: f64,
    mask: u32,
    range: Range<u32>,
}

/// The most maskings of one sentence.
const MOST_MASKINGS: usize = 1_000_000;

impl Masker {
    /// # Errors
    /// If the rate is outside (0, 1], or the range is empty.
    pub fn new(by: MaskBy, rate: f64, mask: u32, range: Range<u32>) -> Result<Self> {
        check_rate(rate)?;
        let got = format_args!("{}..{}", range.start, range.end);
        Error::unless(!range.is_empty(), "masking.range", "at least one token", got)?;
        Ok(Self { by, rate, mask, range })
    }

    /// `count` independent maskings of one sentence (K). `tokens` includes `[CLS]` and `[SEP]`; position 0 of a phrase is the token after
    /// `[CLS]`. Empty phrases are left out. In a sentence without phrases each token is a phrase.
    ///
    /// # Errors
    /// If the sentence has no token between `[CLS]` and `[SEP]`, or phrases are masked and a position is not such a token,
    /// or `count` is above 1,000,000.
    pub fn maskings(
        &self,
        tokens: &[u32],
        phrases: &[Vec<usize>],
        count: usize,
        rng: &mut impl RngExt,
    ) -> Result<Vec<Masking>> {
        let expected = format_args!("at most {MOST_MASKINGS}");
        Error::unless(count <= MOST_MASKINGS, "maskings", expected, count)?;
        let words = tokens.len().saturating_sub(2);
        Error::unless(words > 0, "sentence", "a token between [CLS] and [SEP]", "none")?;
        let phrases = match self.by {
            MaskBy::Phrases => checked(phrases, words)?,
            MaskBy::Words => Vec::new(),
        };
        let chances = phrase_probabilities(&phrases, self.rate);
        let one = |_| match self.by {
            MaskBy::Phrases => self.by_phrases(tokens, &phrases, &chances, rng),
            MaskBy::Words => self.by_words(tokens, rng),
        };
        Ok((0..count).map(one).collect())
    }

    fn by_phrases(
        &self,
        tokens: &[u32],
        phrases: &[Vec<usize>],
        chances: &[f64],
        rng: &mut impl RngExt,
    ) -> Masking {
        let mut order: Vec<usize> = (0..phrases.len()).collect();
        order.shuffle(rng);
        let mut chosen: Vec<usize> =
            order.iter().copied().filter(|&s| rng.random::<f64>() < chances[s]).collect();
        if chosen.is_empty() {
            chosen.push(order[0]);
        }
        let mut masked = untouched(tokens);
        for &word in chosen.iter().flat_map(|&s| &phrases[s]) {
            self.target(&mut masked, tokens, word + 1, rng); // position 0 is [CLS]
        }
        masked
    }

    fn by_words(&self, tokens: &[u32], rng: &mut impl RngExt) -> Masking {
        let mut masked = untouched(tokens);
        for at in 1..tokens.len() - 1 {
            if rng.random::<f64>() < self.rate {
                self.target(&mut masked, tokens, at, rng);
            }
        }
        if masked.targets().next().is_none() {
            masked.labels[1] = Some(tokens[1]);
            masked.ids[1] = self.mask;
        }
        masked
    }

    fn target(&self, masked: &mut Masking, tokens: &[u32], at: usize, rng: &mut impl RngExt) {
        if masked.labels[at].is_some() {
            return; // an earlier phrase has this position
        }
        masked.labels[at] = Some(tokens[at]);
        let u = rng.random::<f64>();
        if u < 0.8 {
            masked.ids[at] = self.mask;
        } else if u < 0.9 {
            masked.ids[at] = rng.random_range(self.range.clone());
        }
    }
}

fn check_rate(rate: f64) -> Result<()> {
    Error::unless(rate > 0.0 && rate <= 1.0, "masking.rate", "a share in (0, 1]", rate)
}

fn untouched(tokens: &[u32]) -> Masking {
    Masking { ids: tokens.to_vec(), labels: vec![None; tokens.len()] }
}

/// The phrases that are not empty, with each position once. Without such a phrase, every token is a phrase.
fn checked(phrases: &[Vec<usize>], words: usize) -> Result<Vec<Vec<usize>>> {
    for (number, phrase) in phrases.iter().enumerate() {
        if let Some(at) = phrase.iter().find(|&&at| at >= words) {
            let place = format!("phrase {number}");
            return Err(Error::invalid(place, format!("positions below {words}"), at));
        }
    }
    let kept = phrases.iter().filter(|phrase| !phrase.is_empty()).cloned().map(distinct);
    let kept: Vec<Vec<usize>> = kept.collect();
    Ok(if kept.is_empty() { (0..words).map(|at| vec![at]).collect() } else { kept })
}

#[cfg(test)]
mod tests;
