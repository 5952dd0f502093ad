//! Training: anchors and their negatives, losses, one update.
//!
//! | part | here |
//! |---|---|
//! | a model in training | [`TagsDc`] |
//! | texts with `[CLS]` and `[SEP]`, where captions are words | [`Marks`] |
//! | negatives from the training split: drawn, scored, the hardest kept | `retrieval` |
//! | synthetic sentences: refilled, filtered, scored, the best kept | `synthetic` |
//! | captions and negatives as rows of a batch, for your own loop | [`Pool`], [`PoolRows`] |
//! | sentences and words judged after training | [`Assessment`] |
//! | the same word by word as a reader sees them, and against a truth | [`SentenceText`], [`SentenceShares`] |
//! | Eq. 1 to 5 and 7 to 10 | `objective` |

mod assessment;
mod captions;
mod evidence;
mod learnt;
mod marks;
mod method;
mod models;
mod objective;
#[cfg(feature = "page")]
mod page;
mod pools;
mod retrieval;
mod sentences;
mod shares;
mod synthetic;
#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Device;
use itm_core::data::Regions;
use itm_core::learn::{Batch, Images, Items, Trainer, check_texts, precision_of};
use itm_core::start::Start;
use itm_core::{Error, Result};
use itm_kernels::{Noise, random};

pub use self::assessment::{Assessment, WordAssessment};
pub use self::marks::Marks;
#[cfg(feature = "page")]
pub use self::page::{PairSentences, page};
pub use self::pools::{Pool, PoolRows};
pub use self::sentences::{Caption, SentenceText, WordText};
pub use self::shares::{FurtherShares, SentenceCounts, SentenceShares, Verdicts};

use self::learnt::Learnt;
use self::models::Models;
use self::objective::Losses;
use self::retrieval::Anchors;
use self::synthetic::TextMaskings;
use crate::config::{GeneratorKind, Published, Sampling, TagsDcConfig};
use crate::model::Uniter;
use crate::{CaptionWords, MaskBy, Masker, Purpose};

/// The streams that the seed of a step is split into.
mod stream {
    pub(super) const PAIRS: u64 = 1;
    pub(super) const WORDS: u64 = 2;
    pub(super) const SYNTHETIC: u64 = 3;
    pub(super) const HEADS: u64 = 4;
}

/// Some captions of a step, whose losses are computed together.
struct MicroBatch<'a> {
    /// The number of this part in the step.
    number: usize,
    captions: &'a [usize],
    train: Items<'a>,
    regions: &'a Regions,
}

impl MicroBatch<'_> {
    fn noise(&self, seed: u64, stream: u64) -> Noise {
        let seed = random::derive(seed, stream);
        Noise::Seeded(match self.number {
            0 => seed,
            part => random::derive(seed, part as u64),
        })
    }
}

/// A UNITER in training. It learns as an [`itm_core::learn::Method`].
///
/// ```text
/// L = λ_ITM L_ITM + λ_MLM L_MLM + λ_ISTM L_ISTM + λ_WoD L_WoD + λ_WoC L_WoC        Eq. 10
/// ```
///
/// Each loss is the mean over the anchors of a step. A loss with weight 0 is not computed. TAGS has `wod = woc = 0`; TAGS-DC begins with the
/// weights of TAGS and has all five losses. At that start the word heads are made from these weights, once.
///
/// Masks, negatives and dropout are drawn from the seed of a step. The same batches in the same order give the same weights.
#[derive(Debug, Clone)]
pub struct TagsDc {
    config: TagsDcConfig,
    learner: Trainer<Models>,
    marks: Marks,
    masker: Masker,
    /// Updates of the whole run.
    updates: u64,
    /// Position lists of each training caption's phrases.
    phrases: Option<Arc<Vec<Vec<Vec<usize>>>>>,
    /// The words of all captions of each training image, also of captions that are not in the split.
    caption_words: Option<Arc<Vec<CaptionWords>>>,
    /// Learnt from the training split, if the filter needs it.
    learnt: Arc<Learnt>,
    /// The static generator.
    fixed: Option<Uniter>,
}

impl TagsDc {
    /// A model for captions of these tokens, with random weights, a function of the seed. If `model.published` names a file, training begins
    /// with its weights. `updates` is the number of updates of the whole run, which the learning rate depends on.
    ///
    /// `device` may be with or without autodiff; the model adds autodiff if it is missing.
    ///
    /// # Errors
    /// If the config has a value that cannot be trained with, the tokens have no word, a mark or a word is not among the tokens, the file
    /// cannot be read, its tensors have other sizes than the config and the tokens require, or the device cannot compute in
    /// `train.precision`.
    pub fn new(
        config: &TagsDcConfig,
        region_dim: usize,
        marks: Marks,
        updates: usize,
        device: &Device,
    ) -> Result<Self> {
        config.check()?;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        marks.check()?;
        let masking = &config.masking;
        let masker = Masker::new(masking.by, masking.rate, marks.mask(), marks.words())?;
        let shape = config.shape(region_dim, marks.tokens);
        shape.check()?;
        precision_of("train.precision", config.train.precision, &device)?;
        let model = || -> Result<Uniter> {
            let model = match &config.model.published {
                Some(Published { weights, .. }) => Uniter::open(weights, &shape, &device)?.0,
                None => Uniter::seeded(&shape, config.train.seed, &device),
            };
            Ok(model.with_precision(config.train.precision))
        };
        let has_own = config.synthetic.generator == GeneratorKind::Own;
        let (matcher, own) = (model()?, has_own.then(model).transpose()?);
        let models = Models { matcher: matcher.clone(), own: own.map(Uniter::without_word_heads) };
        let new = Self {
            config: config.clone(),
            learner: Trainer::new(models, config.train.optimizer()),
            marks,
            masker,
            updates: updates as u64,
            phrases: None,
            caption_words: None,
            learnt: Arc::default(),
            fixed: None,
        };
        Ok(new.begun(matcher))
    }

    /// The same model with the phrases of each training caption, as lists of word positions. Masking by phrases needs them. In a caption
    /// without phrases each word is a phrase. `masking.duplicates` says whether identical lists are kept once or all.
    pub fn with_phrases(self, phrases: impl IntoIterator<Item = Vec<Vec<usize>>>) -> Self {
        let duplicates = self.config.masking.duplicates;
        let phrases = phrases.into_iter().map(|lists| duplicates.of(lists)).collect();
        Self { phrases: Some(Arc::new(phrases)), ..self }
    }

    /// The same model with the weights of closed-form CCA ([`Uniter::with_start`]), before the first step.
    ///
    /// # Errors
    /// If a map is of another shape, or a value is not finite.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        let Models { matcher, own } = self.learner.module().clone();
        let own = own.map(|own| own.with_start(start)).transpose()?;
        let learner = self.learner.begun(Models { matcher: matcher.clone(), own });
        let learnt = Arc::new(Learnt::with_start(start));
        let mut matcher = matcher.with_start(start)?;
        if self.config.model.prior.is_some() {
            matcher = matcher.with_prior(start)?;
        }
        Ok(Self { learner, learnt, ..self }.begun(matcher))
    }

    /// The config of the model.
    pub fn config(&self) -> &TagsDcConfig {
        &self.config
    }

    /// The tokens around a caption's words.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// The losses of a part of a step. Each loss is the mean over the part's captions.
    fn losses(&self, anchors: Anchors, part: &MicroBatch, seed: u64) -> Result<Losses> {
        let (mut losses, model) = (Losses::default(), self.model());
        let TagsDcConfig { loss, retrieval, .. } = &self.config;
        let MicroBatch { train, regions, .. } = part;
        if loss.itm > 0.0 {
            let pairs = anchors.with_hardest(model, self.marks, train, regions, retrieval.kept)?;
            let noise = part.noise(seed, stream::PAIRS);
            losses.retrieved(model, &pairs, (regions, self.marks, train), loss, noise)?;
        }
        if loss.mlm > 0.0 || loss.synthetic() {
            self.word_losses(&mut losses, part, seed)?;
        }
        Ok(losses)
    }

    /// Checks a batch. Returns the regions of the split, and the batch's captions as anchors.
    fn check<'a>(&self, batch: &Batch, train: &Items<'a>) -> Result<(&'a Regions, Vec<usize>)> {
        let regions = train.images.regions(self.model().shape.features)?;
        check_texts(batch.texts, Some(self.config.model.positions - self.marks.added()))?;
        let caption = |&id: &i64| {
            let known = usize::try_from(id).ok().filter(|&caption| caption < train.texts.len());
            let expected = || format!("one of {} captions", train.texts.len());
            known.ok_or_else(|| Error::invalid("caption of the batch", expected(), id))
        };
        let captions: Vec<usize> = batch.caption_ids.iter().map(caption).collect::<Result<_>>()?;
        let has_regions = matches!(batch.images, Images::Regions { .. });
        Error::unless(has_regions, "images of the batch", "regions, as in the split", "others")?;
        for (row, &caption) in batch.texts.iter().zip(&captions) {
            let expected = format_args!("the words of caption {caption} of the split");
            let same = *row == &train.texts[caption][..];
            Error::unless(same, "texts of the batch", expected, "others")?;
        }
        self.check_captions(train, &captions)?;
        Ok((regions, captions))
    }

    /// Checks captions of the split.
    fn check_captions(&self, train: &Items, captions: &[usize]) -> Result<()> {
        let texts: Vec<_> = captions.iter().map(|&k| self.marks.around(&train.texts[k])).collect();
        self.model().shape.check_texts(&texts, |k| format!("caption {}", captions[k]))
    }

    /// Masked words and synthetic sentences.
    fn word_losses(&self, losses: &mut Losses, part: &MicroBatch, seed: u64) -> Result<()> {
        let TagsDcConfig { loss, synthetic, .. } = &self.config;
        let MicroBatch { number, captions, train, regions } = part;
        let noise = |stream| part.noise(seed, stream);
        let (first, count) = (number * self.config.train.micro_batch, self.config.masking.maskings);
        let masked = self.maskings(train, captions, (first, count), seed)?;
        let model = self.model();
        let words = noise(stream::WORDS);
        let mlm = || losses.masked(model, &masked, Some(regions), loss.mlm, words);
        let logits = (loss.mlm > 0.0).then(mlm).transpose()?;
        if !loss.synthetic() {
            return Ok(());
        }
        let drawn_from = |model: &Uniter, noise| self.filled(model, &masked, regions, noise);
        let logits = match (self.generator(), synthetic.sampling, logits) {
            (Some(generator), ..) => drawn_from(&generator.valid(), Noise::Off)?,
            (None, Sampling::Evaluation, _) => drawn_from(&model.valid(), Noise::Off)?,
            (None, Sampling::Training, Some(logits)) => logits,
            (None, Sampling::Training, None) => drawn_from(&model.valid(), words)?,
        };
        let told = self.caption_words_of(train)?;
        let (pools, shares) = self.pools(&masked, &logits, model, (train, regions, told), seed)?;
        losses.numbers.add(&shares);
        let ways = (synthetic.share_forward, synthetic.released_positive);
        let noise = [noise(stream::SYNTHETIC), noise(stream::HEADS)];
        losses.synthetic(model, &pools, regions, loss, ways, noise)
    }

    /// `count` maskings of each of these captions. `first` is the number of the first caption in its step.
    fn maskings(
        &self,
        train: &Items,
        captions: &[usize],
        (first, count): (usize, usize),
        seed: u64,
    ) -> Result<Vec<TextMaskings>> {
        let masking = &self.config.masking;
        let phrases = match (masking.by, &self.phrases) {
            (MaskBy::Words, _) => None,
            (MaskBy::Phrases, Some(phrases)) if phrases.len() == train.texts.len() => Some(phrases),
            (MaskBy::Phrases, phrases) => {
                let expected = format!("phrases of {} training captions", train.texts.len());
                let got = phrases.as_ref().map_or("none".into(), |all| all.len().to_string());
                return Err(Error::invalid("masking.by = \"phrases\"", expected, got));
            }
        };
        let masked = |(number, &text): (u64, &usize)| {
            let mut rng = Purpose::Masks.stream(seed, number);
            let tokens = self.marks.around(&train.texts[text]);
            let phrases = phrases.map_or(&[][..], |all| &all[text]);
            let rows = self.masker.maskings(&tokens, phrases, count, &mut rng);
            let rows = rows.map_err(Error::inside(format!("caption {text}")))?;
            Ok(TextMaskings { number, image: train.pairs.image_of(text), text, rows })
        };
        (first as u64..).zip(captions).map(masked).collect()
    }
}
