//! Training: anchors and their negatives, losses, one update.
//!
//! | part | here |
//! |---|---|
//! | a model in training | [`TagsDc`] |
//! | texts with `[CLS]` and `[SEP]`, where captions are words | [`Marks`] |
//! | negatives out of the training split, the hardest of those drawn | `retrieval` |
//! | synthetic sentences: refilled, filtered, the best | `synthetic` |
//! | sentences and words judged after training | [`Judged`], [`JudgedPool`] |
//! | Eq. 1 to 5 and 7 to 10 | `objective` |

mod judged;
mod method;
mod objective;
mod retrieval;
mod state;
mod synthetic;
#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;

use std::sync::Arc;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use itm_core::data::Regions;
use itm_core::learn::{Batch, Items, Learner, Numbers, Step, check_texts};
use itm_core::{Error, Result, host};
use itm_kernels::{AdamOptions, Decayed, Noise, random};

pub use self::judged::{Judged, JudgedPool, JudgedWord};

use self::objective::{Losses, word_logits};
use self::retrieval::Anchors;
use self::synthetic::{Maker, MaskedText};
use crate::config::{FilterKind, GeneratorKind, Sampling, TagsDcConfig};
use crate::model::Uniter;
use crate::{MaskBy, Masker, Purpose, SiblingStatistics, Streams};

/// The tokens around the words of a caption, where these are numbers of a vocabulary of words: `[PAD]` is 0, `[UNK]` 1, words follow, and
/// `[CLS]`, `[SEP]` and `[MASK]` come behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// Numbers of the vocabulary.
    pub vocabulary: u32,
}

impl Marks {
    /// Tokens in all.
    pub fn tokens(self) -> usize {
        self.vocabulary as usize + 3
    }

    /// `[MASK]`.
    pub fn mask(self) -> u32 {
        self.vocabulary + 2
    }

    /// `[PAD] [UNK] [CLS] [SEP] [MASK]`.
    pub fn special(self) -> [u32; 5] {
        [0, 1, self.vocabulary, self.vocabulary + 1, self.mask()]
    }

    /// `[CLS]`, the words, `[SEP]`.
    ///
    /// ```
    /// # #[cfg(feature = "flex")] {
    /// use tags_dc::train::Marks;
    ///
    /// assert_eq!(Marks { vocabulary: 10 }.around(&[4, 7]), [10, 4, 7, 11]);
    /// # }
    /// ```
    pub fn around(self, words: &[u32]) -> Vec<u32> {
        [&[self.vocabulary], words, &[self.vocabulary + 1]].concat()
    }
}

/// Seeds of a step: parts of its own.
mod stream {
    pub(super) const PAIRS: u64 = 1;
    pub(super) const WORDS: u64 = 2;
    pub(super) const SYNTHETIC: u64 = 3;
    pub(super) const HEADS: u64 = 4;
}

/// A UNITER in training. It learns as an [`itm_core::learn::Method`].
///
/// ```text
/// L = λ_ITM L_ITM + λ_MLM L_MLM + λ_ISTM L_ISTM + λ_WoD L_WoD + λ_WoC L_WoC        Eq. 10
/// ```
///
/// Each is the mean over the anchors of a step. A weight of 0 leaves a loss out, and what only it needs. TAGS is `wod = woc = 0`; TAGS-DC
/// begins with the weights of TAGS and has all five. The heads of words are made of these weights then, once.
///
/// Masks, negatives and dropout are random by the seed of a step. The same batches in the same order give the same weights.
#[derive(Debug, Clone)]
pub struct TagsDc {
    config: TagsDcConfig,
    learner: Learner<Uniter>,
    marks: Marks,
    masker: Masker,
    /// Updates of the whole run.
    updates: u64,
    /// Position lists of each training caption's phrases.
    phrases: Option<Arc<Vec<Vec<Vec<usize>>>>>,
    /// Learnt from the training captions, where the filter asks for it.
    siblings: Arc<SiblingStatistics>,
    /// The static generator.
    generator: Option<Uniter>,
}

impl TagsDc {
    /// Random weights, a function of the seed; `updates` is what a whole run makes of them, which the rate depends on.
    ///
    /// `device` is one without autodiff or with; the step differentiates by itself.
    ///
    /// # Errors
    /// If the config holds a value nothing can be trained with, or the vocabulary has no word.
    pub fn new(
        config: &TagsDcConfig,
        region_dim: usize,
        vocabulary: usize,
        updates: usize,
        device: &Device,
    ) -> Result<Self> {
        config.check()?;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let words = u32::try_from(vocabulary)
            .map_err(|_| Error::invalid("vocabulary", "as many words as fit a u32", vocabulary))?;
        let marks = Marks { vocabulary: words };
        let masking = &config.masking;
        let masker = Masker::new(masking.by, masking.rate, marks.mask(), 2..words)?;
        let shape = config.shape(region_dim, marks.tokens());
        shape.check()?;
        let model = Uniter::seeded(&shape, config.train.seed, &device);
        let new = Self {
            config: config.clone(),
            learner: Learner::new(model.clone(), options(config)),
            marks,
            masker,
            updates: updates as u64,
            phrases: None,
            siblings: Arc::default(),
            generator: None,
        };
        Ok(new.begun(model))
    }

    /// The same model with the phrases of each training caption, as lists of positions of its words: what is masked by phrases needs them.
    /// A caption without a phrase has one for each word. Of identical lists as many stay as `masking.duplicates` says.
    pub fn with_phrases(self, phrases: impl IntoIterator<Item = Vec<Vec<usize>>>) -> Self {
        let duplicates = self.config.masking.duplicates;
        let phrases = phrases.into_iter().map(|lists| duplicates.of(lists)).collect();
        Self { phrases: Some(Arc::new(phrases)), ..self }
    }

    /// Before the first step, with these weights: heads that the losses need are made of them unless they are there, heads that no loss
    /// needs go, and a static generator keeps them.
    fn begun(self, model: Uniter) -> Self {
        let synthetic = self.config.loss.synthetic();
        let kept = synthetic && self.config.synthetic.generator == GeneratorKind::Static;
        let model = match self.config.loss.words() {
            true => model.with_word_heads(),
            false => model.without_word_heads(),
        };
        let generator = kept.then(|| model.valid());
        Self { learner: self.learner.begun(model), generator, ..self }
    }

    /// The config it was made with.
    pub fn config(&self) -> &TagsDcConfig {
        &self.config
    }

    /// The model.
    pub fn model(&self) -> &Uniter {
        self.learner.module()
    }

    /// The tokens around a caption's words.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Texts as the model reads them.
    fn marked(&self, texts: &[Vec<u32>]) -> Vec<Vec<u32>> {
        texts.iter().map(|text| self.marks.around(text)).collect()
    }

    /// One update.
    fn step_by(&mut self, batch: &Batch, seed: u64) -> Result<Step> {
        batch.pairs()?;
        let train = batch.train.ok_or_else(|| {
            Error::invalid("batch", "the training split behind it, for negatives", "none")
        })?;
        let (regions, anchors) = self.check(batch, &train)?;
        self.learn_siblings(&train);
        let losses = {
            let mut losses = Losses::default();
            let (loss, model) = (&self.config.loss, self.model());
            if loss.itm > 0.0 {
                let retrieval = &self.config.retrieval;
                let anchors = Anchors::new(&anchors, retrieval, &train, seed);
                let pairs = anchors.hardest(model, self.marks, &train, regions, retrieval.kept)?;
                let noise = Noise::Seeded(random::derive(seed, stream::PAIRS));
                losses.retrieved(model, &pairs, (regions, self.marks, &train), loss, noise)?;
            }
            if loss.mlm > 0.0 || loss.synthetic() {
                self.word_losses(&mut losses, &train, regions, &anchors, seed)?;
            }
            losses
        };
        let Losses { value, mut numbers, active } = losses;
        let rate = self.config.train.rate(self.learner.steps() + 1, self.updates);
        let Some(value) = value else {
            return Err(self.learner.refuse("a synthetic sentence that passes the filter", 0.0));
        };
        let [loss, grad_norm] = self.learner.update(rate, value, |model, loss| {
            GradientsParams::from_grads(loss.backward(), model)
        })?;
        numbers.add(&Numbers::from([("learning_rate", rate)]));
        Ok(Step { loss, grad_norm, active, numbers, draws: None, candidates: None })
    }

    /// The regions of the split, and the captions of the batch as anchors.
    fn check<'a>(&self, batch: &Batch, train: &Items<'a>) -> Result<(&'a Regions, Vec<usize>)> {
        let regions = train.images.regions(self.model().shape.features)?;
        check_texts(batch.texts, Some(self.config.model.positions - 2))?;
        let caption = |&id: &i64| match usize::try_from(id) {
            Ok(caption) if caption < train.texts.len() => Ok(caption),
            _ => {
                let expected = format!("one of {} captions", train.texts.len());
                Err(Error::invalid("caption of the batch", expected, id))
            }
        };
        Ok((regions, batch.caption_ids.iter().map(caption).collect::<Result<_>>()?))
    }

    /// Masked words and synthetic sentences.
    fn word_losses(
        &self,
        losses: &mut Losses,
        train: &Items,
        regions: &Regions,
        anchors: &[usize],
        seed: u64,
    ) -> Result<()> {
        let TagsDcConfig { loss, synthetic, .. } = &self.config;
        let noise = |part| Noise::Seeded(random::derive(seed, part));
        let masked = self.maskings(train, anchors, seed)?;
        let model = self.model();
        let logits = match loss.mlm > 0.0 {
            true => Some(losses.masked(model, &masked, regions, loss.mlm, noise(stream::WORDS))?),
            false => None,
        };
        if !loss.synthetic() {
            return Ok(());
        }
        let drawn_from = |model: &Uniter, noise| -> Result<Vec<f32>> {
            Ok(host(word_logits(model, &masked, regions, noise)?))
        };
        let logits = match (&self.generator, synthetic.sampling, logits) {
            (Some(generator), ..) => drawn_from(generator, Noise::Off)?,
            (None, Sampling::Evaluation, _) => drawn_from(&model.valid(), Noise::Off)?,
            (None, Sampling::Training, Some(logits)) => logits,
            (None, Sampling::Training, None) => drawn_from(&model.valid(), noise(stream::WORDS))?,
        };
        let maker = Maker::new(synthetic, self.marks, &self.siblings);
        let (pools, shares) = maker.pools(&masked, &logits, model, (train, regions), seed)?;
        losses.numbers.add(&shares);
        let ways = (synthetic.share_forward, synthetic.released_positive);
        let noise = [noise(stream::SYNTHETIC), noise(stream::HEADS)];
        losses.synthetic(model, &pools, regions, loss, ways, noise)
    }

    /// The maskings of each anchor's caption.
    fn maskings(&self, train: &Items, anchors: &[usize], seed: u64) -> Result<Vec<MaskedText>> {
        let masking = &self.config.masking;
        let phrases = match (masking.by, &self.phrases) {
            (MaskBy::Words, _) => None,
            (MaskBy::Phrases, Some(phrases)) if phrases.len() == train.texts.len() => Some(phrases),
            (MaskBy::Phrases, phrases) => {
                let expected = format!("those of {} training captions", train.texts.len());
                let got = phrases.as_ref().map_or("none".into(), |all| all.len().to_string());
                return Err(Error::invalid("phrases, which masking.by asks for", expected, got));
            }
        };
        let masked = |(number, &text): (u64, &usize)| {
            let mut rng = Streams { seed, round: 0 }.of(Purpose::Masks, number);
            let tokens = self.marks.around(&train.texts[text]);
            let phrases = phrases.map_or(&[][..], |all| &all[text]);
            let rows = self.masker.maskings(&tokens, phrases, masking.maskings, &mut rng);
            Ok(MaskedText {
                image: train.pairs.image_of(text),
                text,
                rows: rows.map_err(of(text))?,
            })
        };
        (0..).zip(anchors).map(masked).collect()
    }

    /// Learns once which words name one thing, if the filter asks for it.
    fn learn_siblings(&mut self, train: &Items) {
        let asked = self.config.synthetic.filter == FilterKind::Siblings;
        if asked && self.config.loss.synthetic() && self.siblings.is_empty() {
            let of = |image| -> Vec<Vec<u32>> {
                let texts = train.pairs.texts_of(image).iter();
                texts.map(|&text| train.texts[text].clone()).collect()
            };
            let images: Vec<_> = (0..train.pairs.images()).map(of).collect();
            self.siblings = Arc::new(SiblingStatistics::fit(&images));
        }
    }
}

/// What an error of a caption is called.
fn of(caption: usize) -> impl FnOnce(Error) -> Error {
    move |error| match error {
        Error::Invalid { place, expected, got } => {
            Error::Invalid { place: format!("caption {caption}, {place}"), expected, got }
        }
        other => other,
    }
}

fn options(config: &TagsDcConfig) -> AdamOptions {
    let clip = config.train.grad_clip;
    AdamOptions {
        betas: [0.9, 0.98],
        epsilon: 1e-6,
        weight_decay: config.train.weight_decay,
        decayed: Decayed::Matrices,
        clip: (clip > 0.0).then_some(clip),
    }
}
