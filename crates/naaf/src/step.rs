//! One training step.

mod parts;

use std::borrow::Cow;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_core::encoders::InputDropout;
use itm_core::learn::{Batch, ImageItems, Images, Numbers, Observe, Step, Trainer};
use itm_core::towers::{Encoders, ImageInput, StepInputs, TowerDropout};
use itm_core::{Error, Result, host};
use itm_kernels::{AdamOptions, CrossProducts, DecayRule, Noise, matmul, random};

use crate::attention::{Attention, Phase};
use crate::boundary::Boundary;
use crate::config::{NaafConfig, NaafTrainConfig, Score};
use crate::mining::{MiningBatch, Sampling, Schedule, mine, word_scores};
use crate::model::{NaafEncoders, PaddedRows, RegionEncoder};
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
    pub(crate) learner: Trainer<NaafEncoders>,
    pub(crate) boundary: Boundary,
}

impl Naaf {
    /// Random encoders, as a function of `config.train.seed`, and a boundary of 0.
    ///
    /// `region_dim` is the width of a region; it is unused with `model.towers`. `vocabulary` counts words: their numbers are below it.
    /// `device` may be with or without autodiff; the step differentiates in both cases.
    ///
    /// # Errors
    /// If the config holds a value that cannot be trained with, a size is 0, or the config does not begin with random weights
    /// (`model.start = "cca"`, `model.word_vectors = "given"`, as in the presets of the paper and the program): see
    /// [`from_encoders`](Self::from_encoders). With `model.towers`, also if published weights are missing, damaged, or of another size
    /// than the config says, or the device cannot compute in `train.precision`.
    pub fn new(
        config: &NaafConfig,
        region_dim: usize,
        vocabulary: usize,
        device: &Device,
    ) -> Result<Self> {
        config.model.check_random()?;
        let NaafConfig { model, train, .. } = config;
        let encoders = if let Some(pair) = model.pair() {
            config.check()?;
            NaafEncoders::of_towers(&pair, train, vocabulary, &device.clone().autodiff())?
        } else {
            NaafEncoders::new(model, region_dim, vocabulary, train.seed, device)?
        };
        Self::from_encoders(config, encoders, Boundary::default())
    }

    /// Given encoders and a given boundary, before the first step: random encoders that begin with word vectors
    /// ([`NaafEncoders::with_vectors`]) or with closed-form CCA ([`NaafEncoders::with_start`]), or encoders trained elsewhere.
    ///
    /// ```
    /// use itm_core::data::WordVectors;
    /// use naaf::{Boundary, Device, Naaf, NaafConfig, NaafEncoders, Preset};
    ///
    /// let mut config = NaafConfig::preset(Preset::Paper); // it begins with given vectors
    /// (config.model.embed_dim, config.model.word_dim) = (16, 2);
    /// assert!(Naaf::new(&config, 3, 5, &Device::flex()).is_err()); // random vectors
    ///
    /// let vectors = WordVectors { width: 2, vocabulary: 5, rows: vec![(4, vec![0.3, 0.4])] };
    /// let encoders = NaafEncoders::new(&config.model, 3, 5, config.train.seed, &Device::flex())?;
    /// let naaf = Naaf::from_encoders(&config, encoders.with_vectors(&vectors)?, Boundary::default())?;
    /// # Ok::<(), naaf::Error>(())
    /// ```
    ///
    /// Which parts of given towers learn, and their precision, is what the encoders hold: `train.parts` and `train.precision` change only
    /// what [`new`](Self::new) makes.
    ///
    /// # Errors
    /// If the config holds a value that cannot be trained with, the encoders are of another kind or width than it says, or t or t_s is not
    /// in [0, 1].
    pub fn from_encoders(
        config: &NaafConfig,
        encoders: NaafEncoders,
        boundary: Boundary,
    ) -> Result<Self> {
        config.check()?;
        encoders.check(&config.model)?;
        boundary.check()?;
        let learns = encoders.devices().iter().all(Device::is_autodiff);
        let encoders = if learns { encoders } else { encoders.train() };
        let learner = learner(encoders, &config.train);
        Ok(Self { config: config.clone(), learner, boundary })
    }

    /// Sets the number of steps per epoch, which `schedule = "cosine"` needs.
    pub fn with_epochs_of(mut self, steps: usize) -> Self {
        self.learner.steps_of_epoch = Some(steps as u64);
        self
    }

    /// The config that this model was made with.
    pub fn config(&self) -> &NaafConfig {
        &self.config
    }

    /// The encoders.
    pub fn encoders(&self) -> &NaafEncoders {
        self.learner.module()
    }

    /// The learnt boundary.
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// One update of the encoders and of the boundary.
    pub(crate) fn step_by(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        let texts = self.check(batch)?;
        let (regions, texts) = (batch.images, &*texts);
        let (train, encoders) = (&self.config.train, self.encoders());
        let dropout = |share, part| InputDropout { share, noise: Noise::Seeded(seed).part(part) };
        let of_regions = dropout(train.region_dropout, stream::REGIONS);
        let of_words = dropout(train.word_dropout, stream::WORDS);
        let pair = self.config.model.pair();
        let prepared = pair.as_ref().map(|pair| pair.image.prepared(regions, texts.len()));
        let parts = prepared.as_ref().and_then(|images| self.parts(images, texts));
        let encode = parts::encoder(texts, [of_regions, of_words].map(TowerDropout::inside));
        let embedded = parts.as_ref().map(|(towers, inputs)| inputs.embed(towers, &encode));
        let [images, words] = match &embedded {
            Some(rows) => parts::padded(rows, encoders.lengths(texts), self.config.model.embed_dim),
            None => [encoders.mapped(regions, of_regions), encoders.sums(texts, of_words)],
        };
        let mut boundary = self.boundary.clone();
        let (scores, mut numbers) = match self.config.model.score {
            Score::Global => {
                (matmul(images.means(), words.means().transpose()), Numbers::default())
            }
            Score::Attention => self.attended(images.unit(), words.unit(), &mut boundary, seed)?,
        };
        let plain = (observe == Observe::Negatives).then(|| host(scores.clone().inner()));
        let epoch = self.learner.epoch;
        let loss = loss(&self.config.loss, epoch, scores, batch.image_ids);
        let negatives = plain.map(|scores| loss.negatives(&self.config.loss, batch, &scores));
        let done = self.learner.done(train.epochs);
        let rate = train.schedule.rate(train.learning_rate, train.rate(epoch), done)?;
        let active = loss.active;
        let [loss, grad_norm] =
            self.learner.update(rate, loss.value, |encoders, loss| match parts.zip(embedded) {
                Some(((towers, inputs), rows)) => inputs.gradients(&towers, rows, loss, &encode),
                None => GradientsParams::from_grads(loss.backward(), encoders),
            })?;
        self.boundary = boundary; // only after a successful update
        numbers.add(&Numbers::from([("learning_rate", rate)]));
        Ok(Step { loss, grad_norm, active, numbers, negatives })
    }

    /// The towers, if the encoders are towers, and the batch in parts of `train.micro_batch` pairs.
    fn parts<'a>(
        &self,
        images: &'a ImageInput<'a>,
        texts: &[Cow<[u32]>],
    ) -> Option<(Encoders, StepInputs<'a>)> {
        let (towers, config) = (self.encoders().towers()?, self.config.model.towers.as_ref()?);
        let size = self.config.train.micro_batch();
        let inputs = StepInputs::new(images, texts, size, (&towers.text, &config.text));
        Some((towers, inputs))
    }

    /// Scores by attention, with gradients. The boundary moves as the schedule says.
    fn attended(
        &self,
        images: PaddedRows,
        texts: PaddedRows,
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
        let epoch = self.learner.epoch;
        let seed = random::derive(seed, stream::MINING);
        let captions = MiningBatch { lengths: &texts.counts, own: &own, epoch, seed };
        let words = |image, caption, pool| word_scores(&host_products, image, caption, pool);
        let (scores, sampling) = match mining.schedule {
            Schedule::PerCaption => {
                let column = |c: usize, t: f32| host_products.column(&rule, c, t);
                let sampling = mine(boundary, mining, &captions, column, words)?;
                (products.scores(&rule, &sampling.thresholds), sampling)
            }
            Schedule::PerBatch => {
                // One boundary for all captions: all scores are computed at once, and mining reads them.
                let scores = products.scores(&rule, &vec![boundary.t as f32; b]);
                let values = host(scores.clone().inner());
                let column = |c: usize, _: f32| (0..b).map(|i| values[i * b + c]).collect();
                let sampling = mine(boundary, mining, &captions, column, words)?;
                (scores, sampling)
            }
        };
        Ok((scores, numbers(boundary, &sampling, &texts.counts)))
    }

    /// Refuses a batch that cannot be trained with. Returns its captions, cut as in training.
    fn check<'a>(&self, batch: &Batch<'a>) -> Result<Vec<Cow<'a, [u32]>>> {
        let b = batch.pairs()?;
        let cut = |text: &'a [u32]| match &self.config.model.towers {
            Some(towers) => Cow::Owned(towers.text.training(text)),
            None => Cow::Borrowed(text),
        };
        let texts: Vec<_> = batch.texts.iter().map(|text| cut(text)).collect();
        self.encoders().check_texts(&texts)?;
        let expected = match &self.encoders().image {
            RegionEncoder::Map(map) => map.dims()[0],
            RegionEncoder::Patches(encoder) => {
                encoder.check(batch.images, b)?;
                return Ok(texts);
            }
        };
        let got = match batch.images {
            Images::Regions { width, counts, .. } if width == expected => {
                let Some(image) = counts.iter().position(|&n| n == 0) else { return Ok(texts) };
                let place = format!("image {image} of the batch");
                return Err(Error::invalid(place, "at least 1 region", 0));
            }
            Images::Regions { width, .. } => width.to_string(),
            other => other.kind().into(),
        };
        Err(Error::invalid("images", format!("regions of width {expected}"), got))
    }

    /// Captions, cut as in evaluation.
    pub(crate) fn cut<'t>(&self, texts: &'t [Vec<u32>]) -> Cow<'t, [Vec<u32>]> {
        match &self.config.model.towers {
            Some(towers) => texts.iter().map(|text| towers.text.evaluation(text)).collect(),
            None => Cow::Borrowed(texts),
        }
    }

    /// Refuses images of another kind or width than the encoder's.
    pub(crate) fn check_items(&self, images: ImageItems) -> Result<()> {
        match (&self.encoders().image, images) {
            (RegionEncoder::Map(map), images) => images.regions(map.dims()[0]).map(drop),
            (RegionEncoder::Patches(_), ImageItems::Pictures(_)) => Ok(()),
            (RegionEncoder::Patches(_), images) => {
                Err(Error::invalid("images", "pictures", images.kind()))
            }
        }
    }
}

/// What a step reports about the boundary, for captions of these lengths. The sampled captions are the captions ranked right.
fn numbers(boundary: &Boundary, sampling: &Sampling, lengths: &[usize]) -> Numbers {
    let words: usize = sampling.captions().map(|c| lengths[c]).sum();
    let right = sampling.captions().count() as f64 / lengths.len() as f64;
    let Boundary { t, t_s, matched, mismatched, ln_alpha_star } = boundary;
    let mut numbers = Numbers::from([
        ("t", *t),
        ("t_s", *t_s),
        ("words_sampled", words as f64),
        ("ranked_right", right),
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

/// A learner before its first step.
fn learner(encoders: NaafEncoders, train: &NaafTrainConfig) -> Trainer<NaafEncoders> {
    let clip = (train.grad_clip > 0.0).then_some(train.grad_clip);
    let weight_decay = train.weight_decay.unwrap_or(0.0);
    let decayed = DecayRule::Matrices(&[]);
    let options = AdamOptions { weight_decay, clip, decayed, ..AdamOptions::default() };
    match encoders.towers() {
        Some(towers) => towers.learner_of(encoders, options, train.layer_decay),
        None => Trainer::new(encoders, options),
    }
}

#[cfg(test)]
mod tests;
