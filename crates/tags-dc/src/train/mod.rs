//! Training: anchors and their negatives, losses, one update.
//!
//! | part | here |
//! |---|---|
//! | a model in training | [`TagsDc`] |
//! | texts with `[CLS]` and `[SEP]`, where captions are words | [`Marks`] |
//! | negatives out of the training split, the hardest of those drawn | `retrieval` |
//! | Eq. 1 to 5 | `objective` |

mod method;
mod objective;
mod retrieval;
mod state;
#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;

use burn::optim::GradientsParams;
use burn::tensor::Device;
use itm_core::data::Regions;
use itm_core::learn::{Batch, Items, Learner, Numbers, Step, check_texts};
use itm_core::{Error, Result};
use itm_kernels::{AdamOptions, Decayed, Noise, random};

use self::objective::Losses;
use self::retrieval::Anchors;
use crate::config::TagsDcConfig;
use crate::model::Uniter;
use crate::{MaskBy, Masked, Masker, Purpose, Streams};

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
}

/// A UNITER in training. It learns as an [`itm_core::learn::Method`].
///
/// ```text
/// L = λ_ITM L_ITM + λ_MLM L_MLM        each the mean over the anchors of a step
/// ```
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
        let masker = Masker::new(MaskBy::Words, config.masking.rate, marks.mask(), 2..words)?;
        let shape = config.shape(region_dim, marks.tokens());
        shape.check()?;
        let model = Uniter::seeded(&shape, config.train.seed, &device);
        let learner = Learner::new(model, options(config));
        Ok(Self { config: config.clone(), learner, marks, masker, updates: updates as u64 })
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
            if loss.mlm > 0.0 {
                let masked = self.maskings(&train, &anchors, seed)?;
                let noise = Noise::Seeded(random::derive(seed, stream::WORDS));
                losses.masked(model, &masked, regions, loss.mlm, noise)?;
            }
            losses
        };
        let Losses { value, mut numbers, active } = losses;
        let value = value.expect("a loss above 0, as the config was checked");
        let rate = self.config.train.rate(self.learner.steps() + 1, self.updates);
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

    /// The maskings of each anchor's caption, with its image.
    fn maskings(
        &self,
        train: &Items,
        anchors: &[usize],
        seed: u64,
    ) -> Result<Vec<(usize, Vec<Masked>)>> {
        let of = |(number, &caption): (u64, &usize)| {
            let mut rng = Streams { seed, round: 0 }.of(Purpose::Masks, number);
            let tokens = self.marks.around(&train.texts[caption]);
            let rows =
                self.masker.maskings(&tokens, &[], self.config.masking.maskings, &mut rng)?;
            Ok((train.pairs.image_of(caption), rows))
        };
        (0..).zip(anchors).map(of).collect()
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
