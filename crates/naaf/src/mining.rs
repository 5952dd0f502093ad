//! Mining of matched and mismatched word scores, and the updates of the boundary: Eq. 1, 2, 13 and 14.

use itm_core::learn::{above_zero, at_least_one, within};
use itm_core::{Error, Result};
use itm_kernels::{HostProducts, random};
use serde::{Deserialize, Serialize};

use crate::boundary::{Boundary, Form, ScoreDistribution, ln_alpha_star, lower_bound, optimal};

/// When the boundary moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// After each caption, the longest first. The next caption is scored with the new boundary (released program).
    PerCaption,
    /// Once, after the batch.
    PerBatch,
}

/// Which image gives the mismatched word scores of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NegativeImage {
    /// The image of the batch with the lowest score (released program).
    LeastSimilar,
    /// The other image with the highest score. A second copy of the own image in the batch counts as another image.
    Hardest,
    /// A random other image. A second copy of the own image in the batch counts as another image.
    Random,
}

/// The score of a word with an incorrect image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WordPool {
    /// The score of the best region, Eq. 14.
    Max,
    /// The mean over the regions: Table 4, "w/o up. neg. samp.".
    Mean,
}

/// Whether α is set to α* (Eq. 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlphaStar {
    /// Never (released program).
    Off,
    /// From this epoch, counted from 0: the boundary moves to `[μ⁺ − 3σ⁺]₊` at every update where α* exists, by `smoothing`.
    FromEpoch(usize),
}

/// What replaces a boundary above 1. No cosine is above 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AboveOne {
    /// 0 (released program).
    Zero,
    /// The old boundary.
    Keep,
}

/// Which boundary is used outside of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InferenceBoundary {
    /// t_s: the smoothed `μ⁺ − 3σ⁺` (released program).
    LowerBound,
    /// t, as in training (paper).
    Training,
}

/// Options of the boundary's updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MiningConfig {
    /// When the boundary moves.
    pub schedule: Schedule,
    /// Weight of the new boundary; the old boundary has the rest.
    pub smoothing: f64,
    /// The boundary moves only if more than this number of words is sampled.
    pub min_words: usize,
    /// Whether fewer sampled words set t and t_s to 0.
    pub reset_below_min_words: bool,
    /// Which image gives the mismatched word scores.
    pub negative_image: NegativeImage,
    /// The score of a word with that image.
    pub negative_word_pool: WordPool,
    /// α of Eq. 3.
    pub alpha: f64,
    /// Whether α is set to α* (Eq. 5).
    pub alpha_star: AlphaStar,
    /// How Eq. 4 is computed.
    pub form: Form,
    /// What replaces a boundary above 1.
    pub above_one: AboveOne,
    /// The boundary of inference.
    pub inference_boundary: InferenceBoundary,
}

impl MiningConfig {
    /// Refuses a value out of range.
    ///
    /// # Errors
    /// The error names the key of the value.
    pub(crate) fn check(&self) -> Result<()> {
        within("mining.smoothing", self.smoothing, "in (0, 1]", |x| x > 0.0 && x <= 1.0)?;
        at_least_one("mining.min_words", self.min_words)?;
        above_zero("mining.alpha", self.alpha)
    }
}

impl Boundary {
    /// The boundary of inference.
    pub(crate) fn inference(&self, config: &MiningConfig) -> f64 {
        match config.inference_boundary {
            InferenceBoundary::LowerBound => self.t_s,
            InferenceBoundary::Training => self.t,
        }
    }

    /// Moves t and t_s by the samples. If Eq. 4 has no solution, both stay.
    fn update(&mut self, config: &MiningConfig, epoch: usize, matched: &[f32], mismatched: &[f32]) {
        (self.matched, self.mismatched) =
            (ScoreDistribution::of(matched), ScoreDistribution::of(mismatched));
        let (matched, mismatched) = (&self.matched, &self.mismatched);
        self.ln_alpha_star = ln_alpha_star(matched, mismatched);
        let lower = lower_bound(matched);
        let adjusts = matches!(config.alpha_star, AlphaStar::FromEpoch(from) if epoch >= from);
        let solved = match self.ln_alpha_star {
            Some(_) if adjusts => Some(lower), // the solution with α*
            _ => optimal(matched, mismatched, config.alpha.ln(), config.form),
        };
        let Some(solved) = solved else { return };
        let moved = |old: f64, new: f64| {
            let new = match config.above_one {
                AboveOne::Keep if new > 1.0 => old,
                _ if (0.0..=1.0).contains(&new) => new,
                _ => 0.0,
            };
            config.smoothing * new + (1.0 - config.smoothing) * old
        };
        (self.t, self.t_s) = (moved(self.t, solved), moved(self.t_s, lower));
    }
}

/// The captions of a batch, for mining.
#[derive(Debug, Clone, Copy)]
pub struct MiningBatch<'a> {
    /// Number of words of each caption.
    pub lengths: &'a [usize],
    /// Index of each caption's own image in the batch.
    pub own: &'a [usize],
    /// Epoch, counted from 0.
    pub epoch: usize,
    /// Seed of a random negative image.
    pub seed: u64,
}

/// What [`mine`] did with each caption of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// The boundary that the caption was scored with, `[captions]`.
    pub thresholds: Vec<f32>,
    /// The incorrect image whose words were sampled beside the words of the own image, `[captions]`; `None` for a caption that was not
    /// sampled.
    pub incorrect: Vec<Option<usize>>,
}

impl Sampling {
    /// Numbers of the sampled captions.
    pub(crate) fn captions(&self) -> impl Iterator<Item = usize> {
        (0..self.incorrect.len()).filter(|&c| self.incorrect[c].is_some())
    }
}

/// Scores a batch caption by caption, and moves the boundary.
///
/// ```text
/// for each caption, the longest first:
///     scores of all images with the current t
///     if its own image is first: best scores of its words with this image → S⁺ (Eq. 13), with an incorrect image → S⁻ (Eq. 14)
///     if more than 200 words are sampled: t moves to the solution of Eq. 4 for all of S⁺ and S⁻, t_s to μ⁺ − 3σ⁺
///     if fewer than 200 are sampled: t = t_s = 0
/// ```
///
/// | argument | what |
/// |---|---|
/// | `column(c, t)` | scores of caption `c` with all images and boundary `t`, as plain numbers: `HostProducts::column`. An image that is no caption's own image competes too |
/// | `words(i, c, pool)` | one number per word of caption `c` with image `i`: [`word_scores`] |
///
/// ```
/// use naaf::{Boundary, MiningBatch, MiningConfig, Preset, mine};
///
/// // Two images with a caption of three words each. A word's best region: 0.6 in the own image, 0.1 in the other one.
/// let best = |image: usize, caption: usize, word: usize| {
///     (if image == caption { 0.6 } else { 0.1 }) + 0.02 * word as f32
/// };
/// let config = MiningConfig { min_words: 2, ..MiningConfig::preset(Preset::Default) };
/// let captions = MiningBatch { lengths: &[3, 3], own: &[0, 1], epoch: 0, seed: 1 };
/// let score = |i, c, t: f32| (0..3).map(|w| best(i, c, w) - t).sum::<f32>() / 3.0;
/// let column = |c: usize, t: f32| vec![score(0, c, t), score(1, c, t)];
///
/// let mut boundary = Boundary::default(); // save it with the weights: it implements serde
/// let sampling = mine(&mut boundary, &config, &captions, column, |i, c, _| {
///     (0..3).map(|w| best(i, c, w)).collect()
/// })?;
/// assert_eq!(sampling.thresholds[0], 0.0); // the first caption saw the old boundary
/// assert_eq!(sampling.incorrect, [Some(1), Some(0)]); // both captions were ranked right
/// assert!(0.1 < boundary.t && boundary.t < 0.6); // between the two kinds of words
/// # Ok::<(), naaf::Error>(())
/// ```
///
/// # Departures
/// A caption has no incorrect image if its own image is the only image of the batch, or if all images have the same score. Such a
/// caption is not sampled. The released program then takes the caption's own image. Among equal scores the own image of the earlier caption
/// comes first, and images that are no caption's own come last, in their order.
///
/// # Errors
/// If an option is out of range, t or t_s is not in [0, 1], lengths and own images differ in number, `column` does not give one finite score for each image, or
/// `words` does not give one finite number for each word. The boundary is then unchanged.
pub fn mine(
    boundary: &mut Boundary,
    config: &MiningConfig,
    captions: &MiningBatch,
    mut column: impl FnMut(usize, f32) -> Vec<f32>,
    words: impl Fn(usize, usize, WordPool) -> Vec<f32>,
) -> Result<Sampling> {
    config.check()?;
    boundary.check()?;
    let MiningBatch { lengths, own, epoch, .. } = *captions;
    let expected = format_args!("{}, one per caption", lengths.len());
    Error::unless(lengths.len() == own.len(), "own images of the captions", expected, own.len())?;
    let old = boundary;
    let boundary = &mut old.clone();
    let at_least = own.iter().max().map_or(0, |most| most.saturating_add(1));
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&c| std::cmp::Reverse(lengths[c]));
    let mut images = vec![];
    let mut sampling =
        Sampling { thresholds: vec![0.0; own.len()], incorrect: vec![None; own.len()] };
    let (mut matched, mut mismatched) = (vec![], vec![]);
    let per_caption = config.schedule == Schedule::PerCaption;
    for &c in &order {
        sampling.thresholds[c] = boundary.t as f32;
        let scores = column(c, sampling.thresholds[c]);
        let named = format_args!("scores of caption {c}");
        let expected = format_args!("at least {at_least}, one per image");
        Error::unless(scores.len() >= at_least, named, expected, scores.len())?;
        if images.is_empty() {
            images = in_order_of_ties(order.iter().map(|&c| own[c]), scores.len());
        }
        let expected = format_args!("{}, one per image", images.len());
        Error::unless(scores.len() == images.len(), named, expected, scores.len())?;
        Error::unless_finite(&scores, |_| named.to_string(), "finite numbers")?;
        let words = |image, pool| of_words(words(image, c, pool), image, c, lengths[c]);
        if first_by(&images, |a, b| scores[a] > scores[b]) == Some(own[c])
            && let Some(other) =
                incorrect(config.negative_image, &images, own[c], &scores, captions.seed, c)
        {
            matched.extend(words(own[c], WordPool::Max)?);
            mismatched.extend(words(other, config.negative_word_pool)?);
            sampling.incorrect[c] = Some(other);
            if per_caption && matched.len() > config.min_words {
                boundary.update(config, epoch, &matched, &mismatched);
            }
        }
        if per_caption {
            reset(boundary, config, matched.len());
        }
    }
    if !per_caption {
        if matched.len() > config.min_words {
            boundary.update(config, epoch, &matched, &mismatched);
        }
        reset(boundary, config, matched.len());
    }
    old.clone_from(boundary);
    Ok(sampling)
}

/// All images, each once: the own images of the captions in their order, then the others.
fn in_order_of_ties(own: impl Iterator<Item = usize>, images: usize) -> Vec<usize> {
    let mut listed = vec![false; images];
    own.chain(0..images).filter(|&i| !std::mem::replace(&mut listed[i], true)).collect()
}

/// Refuses scores that are not one finite number per word.
fn of_words(scores: Vec<f32>, image: usize, caption: usize, words: usize) -> Result<Vec<f32>> {
    let named = format_args!("words of caption {caption} with image {image}");
    let fits = scores.len() == words;
    Error::unless(fits, named, format_args!("{words} numbers"), scores.len())?;
    Error::unless_finite(&scores, |_| named.to_string(), "finite numbers")?;
    Ok(scores)
}

fn reset(boundary: &mut Boundary, config: &MiningConfig, words: usize) {
    if config.reset_below_min_words && words < config.min_words {
        (boundary.t, boundary.t_s) = (0.0, 0.0);
    }
}

/// The incorrect image of a caption.
fn incorrect(
    which: NegativeImage,
    images: &[usize],
    own: usize,
    scores: &[f32],
    seed: u64,
    caption: usize,
) -> Option<usize> {
    let others: Vec<usize> = images.iter().copied().filter(|&i| i != own).collect();
    match which {
        NegativeImage::LeastSimilar => {
            first_by(images, |a, b| scores[a] < scores[b]).filter(|&i| i != own)
        }
        NegativeImage::Hardest => first_by(&others, |a, b| scores[a] > scores[b]),
        NegativeImage::Random => {
            let at = random::unit(seed, caption as u64) * others.len() as f32;
            others.get(at as usize).copied()
        }
    }
}

/// The best image by `ahead`; the first one of a tie.
fn first_by(images: &[usize], ahead: impl Fn(usize, usize) -> bool) -> Option<usize> {
    images.iter().copied().reduce(|best, i| if ahead(i, best) { i } else { best })
}

/// One number for each word of a caption with an image: the score of its best region, or the mean over the regions.
///
/// # Panics
/// If the products have no such image or caption.
pub fn word_scores(
    products: &HostProducts,
    image: usize,
    caption: usize,
    pool: WordPool,
) -> Vec<f32> {
    let of = |row: &[f32]| match pool {
        WordPool::Max => row.iter().fold(f32::NEG_INFINITY, |m, &s| m.max(s)),
        WordPool::Mean => row.iter().sum::<f32>() / row.len() as f32,
    };
    products.pair(image, caption).map(of).collect()
}

#[cfg(test)]
mod tests;
