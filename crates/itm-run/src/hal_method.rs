//! HAL and its rivals under the runner's loop: batches from a data set, the memory bank, the audit against the truth.

use std::path::Path;

use hubness::training::{Batch, Hal, HalConfig, Negatives, TrainConfig};
use itm_core::audit::Draws;
use itm_core::{Pairs, Relevance, Result};

use crate::checkpoint::Files;
use crate::encoded::{Encoded, EncodedPart};
use crate::finite::first_non_finite;
use crate::method::{
    Course, Embedded, Inputs, LastBatch, Method, Observe, Recipe, Split, Step, blamed,
};
use crate::plan::{self, Bytes, Sizes};

impl Recipe for HalConfig {
    type Method<'a> = HalMethod<'a>;

    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course { epochs, batch, last: LastBatch::Kept }
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn memory(&self, sizes: &Sizes) -> Result<Bytes> {
        Ok(plan::hal::plan(self, sizes))
    }

    fn build<'a>(&self, inputs: Inputs<'a>) -> Result<HalMethod<'a>> {
        HalMethod::new(self, inputs)
    }
}

/// HAL with its data.
pub(crate) struct HalMethod<'a> {
    /// Row and seed.
    name: String,
    model: Hal,
    pairs: &'a Pairs,
    encoded: &'a Encoded,
    /// For the audit only: nothing of it reaches the model.
    truth: Option<&'a Relevance>,
}

/// What a batch borrows from.
struct Rows<'a> {
    features: Vec<f32>,
    texts: Vec<&'a [u32]>,
    image_ids: Vec<i64>,
    caption_ids: Vec<i64>,
}

impl<'a> Rows<'a> {
    fn new(captions: &[usize], pairs: &Pairs, part: &'a EncodedPart) -> Self {
        let images: Vec<usize> = captions.iter().map(|&c| pairs.image_of(c)).collect();
        let rows = images.iter().flat_map(|&i| part.features.row(i));
        Self {
            features: rows.copied().collect(),
            texts: captions.iter().map(|&c| part.words[c].as_slice()).collect(),
            image_ids: images.iter().map(|&i| i as i64).collect(),
            caption_ids: captions.iter().map(|&c| c as i64).collect(),
        }
    }

    fn batch(&self) -> Batch<'_> {
        let Self { features, texts, image_ids, caption_ids } = self;
        Batch { features, texts, image_ids, caption_ids }
    }
}

impl<'a> HalMethod<'a> {
    fn new(config: &HalConfig, inputs: Inputs<'a>) -> Result<Self> {
        let Inputs { name, source, encoded, truth, device } = inputs;
        let data = &source.dataset;
        let (features, words) = (data.train.features.dim, encoded.vocabulary);
        let model = Hal::new(config, features, words, device, config.train.seed)?;
        Ok(Self { name, model, pairs: &data.train.pairs, encoded, truth })
    }

    fn rows(&self, captions: &[usize]) -> Rows<'a> {
        Rows::new(captions, self.pairs, &self.encoded.train)
    }

    /// What pulled, beside a uniform draw and the most violating negative.
    fn draws(&self, sides: &[Negatives; 2], truth: &Relevance) -> Draws {
        let is_true = |image: i64, caption: i64| truth.contains(image as usize, caption as usize);
        let margin = self.model.config().loss.margin;
        let mut sum = Draws::default();
        for Negatives { observed, weights } in sides {
            let mut side = observed.draws(margin, &is_true);
            side.drawn = side.anchors * observed.expected_true_share(weights, &is_true);
            sum.add(&side);
        }
        sum
    }
}

impl Method for HalMethod<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn non_finite(&self) -> Option<String> {
        first_non_finite("encoders", self.model.encoders())
    }

    fn begin_epoch(&mut self, epoch: usize) {
        self.model.begin_epoch(epoch);
        for captions in self.model.bank_batches(self.pairs.texts()) {
            let rows = self.rows(&captions);
            self.model.remember(&rows.batch());
        }
    }

    fn step(&mut self, captions: &[usize], _seed: u64, observe: Observe) -> Result<Step> {
        let rows = self.rows(captions);
        let truth = self.truth.filter(|_| observe != Observe::No);
        let asked = match truth {
            Some(_) => hubness::training::Observe::On,
            None => hubness::training::Observe::Off,
        };
        let report = self.model.step(&rows.batch(), asked).map_err(|e| blamed(self, e))?;
        let seen = truth.zip(report.negatives.as_ref());
        Ok(Step {
            loss: report.loss,
            grad_norm: report.grad_norm,
            active: report.active,
            draws: seen.map(|(truth, seen)| self.draws(seen, truth)),
            candidates: None, // there is no posterior
        })
    }

    fn embed(&self, split: Split) -> Result<Embedded> {
        let part = match split {
            Split::Train => &self.encoded.train,
            Split::Val => &self.encoded.val,
            Split::Test => &self.encoded.test,
        };
        Ok(Embedded {
            dim: self.model.width(),
            images: self.model.embed_images(&part.features),
            texts: self.model.embed_texts(&part.words),
            similarity: self.model.config().model.similarity,
        })
    }

    fn save(&self, files: &mut Files) -> Result<()> {
        self.model.save_with(&mut |name, contents| files.add(name, contents))
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        self.model.load(folder)
    }
}
