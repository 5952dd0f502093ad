//! One training step.

use std::cell::Cell;

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_core::data::WordVectors;
use itm_core::encoders::InputDropout;
use itm_core::learn::{
    Batch, Images, Learner, Numbers, Observe, Schedule as Rates, Step, Updates, at_least_one,
};
use itm_core::start::Start;
use itm_core::{Error, Result, host};
use itm_kernels::{AdamOptions, CrossProducts, matmul, random};

use crate::attention::{Attention, Phase};
use crate::boundary::Boundary;
use crate::config::{NaafConfig, Score};
use crate::mining::{Captions, Schedule, mine, word_scores};
use crate::model::{Encoders, Padded, RegionBatch};
use crate::objective::loss;

/// Parts of a step's seed.
mod stream {
    pub(super) const REGIONS: u64 = 1;
    pub(super) const WORDS: u64 = 2;
    pub(super) const MINING: u64 = 3;
}

/// A model in training: encoders, optimiser and boundary. Train it with the functions of [`itm_core::learn::Method`].
///
/// The seed of a step determines its dropout and, if the config has it, the random incorrect image. The same batches with the same
/// seeds in the same order give the same weights.
#[derive(Debug, Clone)]
pub struct Naaf {
    pub(crate) config: NaafConfig,
    pub(crate) learner: Learner<Encoders>,
    pub(crate) boundary: Boundary,
    pub(crate) steps_per_epoch: Option<u64>,
}

impl Naaf {
    /// Random encoders, as a function of `config.train.seed`.
    ///
    /// `region_dim` is the width of a region. `vocabulary` counts words: their numbers are below it. `device` may be with or without
    /// autodiff; the step differentiates in both cases.
    ///
    /// # Errors
    /// If the config holds a value that cannot be trained with, or a size is 0.
    pub fn new(
        config: &NaafConfig,
        region_dim: usize,
        vocabulary: usize,
        device: &Device,
    ) -> Result<Self> {
        config.check()?;
        at_least_one("region_dim, the width of a region", region_dim)?;
        at_least_one("vocabulary", vocabulary)?;
        let seed = config.train.seed;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let encoders = Encoders::new(&config.model, region_dim, vocabulary, seed, &device);
        let learner = Learner::new(encoders, options(config));
        let (config, boundary) = (config.clone(), Boundary::default());
        Ok(Self { config, learner, boundary, steps_per_epoch: None })
    }

    /// Sets the number of steps per epoch, which `schedule = "cosine"` needs.
    pub fn with_epochs_of(self, steps: usize) -> Self {
        Self { steps_per_epoch: Some(steps as u64), ..self }
    }

    /// Begins with these maps instead of random weights. Call it before the first step.
    ///
    /// # Errors
    /// If the encoder of captions is not a table of words, the maps are of another shape, or a step was made.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        self.with_encoders(|encoders| encoders.with_start(start))
    }

    /// Begins with given vectors, such as GloVe's, for the words that have one. Call it before the first step.
    ///
    /// # Errors
    /// If the encoder of captions is not a recurrent unit, the vectors are of another width or vocabulary, or a step was made.
    pub fn with_vectors(self, vectors: &WordVectors) -> Result<Self> {
        self.with_encoders(|encoders| encoders.with_vectors(vectors))
    }

    fn with_encoders(self, change: impl FnOnce(Encoders) -> Result<Encoders>) -> Result<Self> {
        if self.learner.steps() > 0 {
            let got = format!("a model after step {}", self.learner.steps());
            return Err(Error::invalid("start or vectors", "a model before its first step", got));
        }
        let learner = Learner::new(change(self.learner.into_module())?, options(&self.config));
        Ok(Self { learner, ..self })
    }

    /// The config that this model was made with.
    pub fn config(&self) -> &NaafConfig {
        &self.config
    }

    /// The encoders.
    pub fn encoders(&self) -> &Encoders {
        self.learner.module()
    }

    /// The learnt boundary.
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// One update of the encoders and of the boundary.
    pub(crate) fn step_by(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        let regions = self.check(batch)?;
        let (train, encoders) = (&self.config.train, self.encoders());
        let dropout = |share, part| InputDropout::On { share, seed: random::derive(seed, part) };
        let of_regions = dropout(train.region_dropout, stream::REGIONS);
        let of_words = dropout(train.word_dropout, stream::WORDS);
        let mut boundary = self.boundary.clone();
        let (scores, mut numbers) = match self.config.model.score {
            Score::Global => {
                let images = encoders.image_means(regions, of_regions);
                let texts = encoders.text_means(batch.texts, of_words);
                (matmul(images, texts.transpose()), Numbers::default())
            }
            Score::Attention => {
                let images = encoders.regions(regions, of_regions);
                let texts = encoders.words(batch.texts, of_words);
                self.attended(images, texts, &mut boundary, seed)?
            }
        };
        let plain = asks(observe).then(|| host(scores.clone().inner()));
        let loss = loss(&self.config.loss, self.learner.epoch(), scores, batch.image_ids);
        let draws = match (observe, plain) {
            (Observe::Against(truth), Some(scores)) => {
                Some(loss.draws(&self.config.loss, batch, &scores, &truth.by_id()))
            }
            _ => None,
        };
        let (rate, active) = (self.rate()?, loss.active);
        let [loss, grad_norm] = self.learner.update(rate, loss.value, |encoders, loss| {
            GradientsParams::from_grads(loss.backward(), encoders)
        })?;
        self.boundary = boundary; // only after a successful update
        numbers.add(&Numbers::from([("learning_rate", rate)]));
        Ok(Step { loss, grad_norm, active, numbers, draws, candidates: None })
    }

    /// Scores by attention, with gradients. The boundary moves as the schedule says.
    fn attended(
        &self,
        images: Padded,
        texts: Padded,
        boundary: &mut Boundary,
        seed: u64,
    ) -> Result<(Tensor<2>, Numbers)> {
        let products = CrossProducts::new(images.rows, &images.counts, texts.rows, &texts.counts);
        let (rule, b) = (self.config.attention.rule(Phase::Training), texts.counts.len());
        let Attention::Naaf(_) = self.config.attention else {
            return Ok((products.scores(&rule, &vec![0.0; b]), Numbers::default()));
        };
        let (mining, host_products) = (&self.config.mining, products.host());
        let own: Vec<usize> = (0..b).collect();
        let epoch = self.learner.epoch();
        let seed = random::derive(seed, stream::MINING);
        let captions = Captions { lengths: &texts.counts, own: &own, epoch, seed };
        let sampled = Cell::new((0, 0)); // numbers of captions and of their words
        let words = |image: usize, caption: usize, pool| {
            if image == own[caption] {
                let (captions, words) = sampled.get();
                sampled.set((captions + 1, words + texts.counts[caption]));
            }
            word_scores(&host_products, image, caption, pool)
        };
        let scores = match mining.schedule {
            Schedule::PerCaption => {
                let column = |c: usize, t: f32| host_products.column(&rule, c, t);
                let thresholds = mine(boundary, mining, &captions, column, words)?;
                products.scores(&rule, &thresholds)
            }
            Schedule::PerBatch => {
                // One boundary for all captions: all scores are computed at once, and mining reads them.
                let scores = products.scores(&rule, &vec![boundary.t as f32; b]);
                let values = host(scores.clone().inner());
                let column = |c: usize, _: f32| (0..b).map(|i| values[i * b + c]).collect();
                mine(boundary, mining, &captions, column, words)?;
                scores
            }
        };
        Ok((scores, numbers(boundary, sampled.get(), b)))
    }

    /// Refuses a batch that cannot be trained with. Returns its regions.
    fn check<'a>(&self, batch: &Batch<'a>) -> Result<RegionBatch<'a>> {
        let b = batch.image_ids.len();
        at_least_one("pairs of the batch", b)?;
        count("texts of the batch", b, batch.texts.len())?;
        count("caption numbers of the batch", b, batch.caption_ids.len())?;
        if let Images::Regions { width, counts, values } = batch.images {
            count("region counts of the batch", b, counts.len())?;
            let all = counts.iter().sum::<usize>() * width;
            if values.len() != all {
                let expected = format!("{all} values, as the counts say");
                return Err(Error::invalid("regions of the batch", expected, values.len()));
            }
        }
        batch.pairs()?;
        self.encoders().check_texts(batch.texts)?;
        let expected = self.region_dim();
        let refused = |got: String| {
            Err(Error::invalid("images", format!("regions of width {expected}"), got))
        };
        match batch.images {
            Images::Regions { width, counts, values } if width == expected => {
                if let Some(image) = counts.iter().position(|&n| n == 0) {
                    let place = format!("image {image} of the batch");
                    return Err(Error::invalid(place, "at least 1 region", 0));
                }
                Ok(RegionBatch { counts, values })
            }
            Images::Regions { width, .. } => refused(width.to_string()),
            other => refused(other.kind().into()),
        }
    }

    /// The rate of the next update.
    fn rate(&self) -> Result<f64> {
        let train = &self.config.train;
        if train.schedule == Rates::Steps {
            return Ok(train.rate(self.learner.epoch()));
        }
        let steps = self.steps_per_epoch.ok_or_else(|| {
            let got = "\"cosine\" for epochs of unknown length";
            Error::invalid("train.schedule", "the number of steps of an epoch", got)
        })?;
        let updates = Updates { made: self.learner.steps(), all: train.epochs as u64 * steps };
        Ok(train.schedule.rate(train.learning_rate, 0, updates))
    }

    pub(crate) fn region_dim(&self) -> usize {
        self.encoders().image.dims()[0]
    }
}

/// Refuses a number of items other than the number of pairs.
fn count(what: &str, pairs: usize, got: usize) -> Result<()> {
    if got == pairs {
        return Ok(());
    }
    Err(Error::invalid(what, format!("{pairs}, one per pair"), got))
}

/// What a step reports about the boundary. `captions` counts the captions ranked right, `words` their words.
fn numbers(boundary: &Boundary, (captions, words): (usize, usize), b: usize) -> Numbers {
    let Boundary { t, t_s, matched, mismatched, ln_alpha_star } = boundary;
    let mut numbers = Numbers::from([
        ("t", *t),
        ("t_s", *t_s),
        ("words_sampled", words as f64),
        ("ranked_right", captions as f64 / b as f64),
    ]);
    if matched.count > 0 {
        numbers.add(&Numbers::from([
            ("matched_mean", matched.mean),
            ("matched_deviation", matched.deviation),
            ("mismatched_mean", mismatched.mean),
            ("mismatched_deviation", mismatched.deviation),
        ]));
    }
    if let Some(ln_alpha_star) = ln_alpha_star {
        numbers.add(&Numbers::from([("ln_alpha_star", *ln_alpha_star)]));
    }
    numbers
}

fn asks(observe: Observe) -> bool {
    matches!(observe, Observe::Against(_))
}

fn options(config: &NaafConfig) -> AdamOptions {
    let clip = config.train.grad_clip;
    AdamOptions { clip: (clip > 0.0).then_some(clip), ..AdamOptions::default() }
}

#[cfg(test)]
mod tests;
