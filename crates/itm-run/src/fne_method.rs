//! FNE under the runner's loop: batches from a data set, and the audit against the truth.

use std::path::Path;

use fne::{Batch, Fne, FneConfig, TrainConfig};
use itm_core::data::Dataset;
use itm_core::{Error, Relevance, Result};

use crate::checkpoint::Files;
use crate::encoded::Encoded;
use crate::finite::first_non_finite;
use crate::method::{
    Course, Embedded, Inputs, LastBatch, MatchProbability, Method, Observe, Recipe, Split, Step,
};
use crate::plan;
use crate::plan::{Bytes, Sizes};

impl Recipe for FneConfig {
    type Method<'a> = FneMethod<'a>;

    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course { epochs, batch, last: LastBatch::Dropped }
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn memory(&self, sizes: &Sizes) -> Bytes {
        plan::fne::plan(self, sizes)
    }

    fn build<'a>(&self, inputs: Inputs<'a>) -> Result<FneMethod<'a>> {
        FneMethod::new(self, inputs)
    }
}

/// FNE with its data.
pub(crate) struct FneMethod<'a> {
    /// Row and seed.
    name: String,
    model: Fne,
    data: &'a Dataset,
    encoded: &'a Encoded,
    /// For the audit only: nothing of it reaches the model.
    truth: Option<&'a Relevance>,
}

impl<'a> FneMethod<'a> {
    fn new(config: &FneConfig, inputs: Inputs<'a>) -> Result<Self> {
        let Inputs { name, source, encoded, truth, device } = inputs;
        let data = &source.dataset;
        let (features, words) = (data.train.features.dim, encoded.vocabulary.len());
        let model = Fne::new(config, features, words, device, config.train.seed)?;
        Ok(Self { name, model, data, encoded, truth })
    }

    /// An error of a step, with the row it is of and the first weight that is to blame.
    fn in_step(&self, error: Error) -> Error {
        match error {
            Error::Invalid { place, expected, got } => {
                let tensor = self.non_finite().map(|name| format!(", first in {name}"));
                let got = got + &tensor.unwrap_or_default();
                Error::invalid(format!("{}, {place}", self.name), expected, got)
            }
            other => other,
        }
    }
}

fn is_true(truth: &Relevance) -> impl Fn(i64, i64) -> bool {
    |image, caption| truth.contains(image as usize, caption as usize)
}

impl Method for FneMethod<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn non_finite(&self) -> Option<String> {
        let online = first_non_finite("online", self.model.online());
        online.or_else(|| first_non_finite("momentum", self.model.momentum()))
    }

    fn begin_epoch(&mut self, epoch: usize) {
        self.model.begin_epoch(epoch);
    }

    fn step(&mut self, captions: &[usize], seed: u64, observe: Observe) -> Result<Step> {
        let train = &self.data.train;
        let images: Vec<usize> = captions.iter().map(|&c| train.pairs.image_of(c)).collect();
        let words: Vec<_> =
            captions.iter().map(|&c| self.encoded.train.words[c].as_slice()).collect();
        let rows = images.iter().flat_map(|&i| self.encoded.train.features.row(i));
        let batch = Batch {
            features: &rows.copied().collect::<Vec<_>>(),
            texts: &words,
            image_ids: &images.iter().map(|&i| i as i64).collect::<Vec<_>>(),
            caption_ids: &captions.iter().map(|&c| c as i64).collect::<Vec<_>>(),
        };
        let truth = self.truth.filter(|_| observe != Observe::No);
        let asked = if truth.is_some() { fne::Observe::On } else { fne::Observe::Off };
        let report = self.model.step(&batch, seed, asked).map_err(|e| self.in_step(e))?;
        let seen = truth.zip(report.observation.as_ref());
        let sampler = &self.model.config().sampler;
        Ok(Step {
            loss: report.loss,
            grad_norm: report.grad_norm,
            active: report.active,
            draws: seen.map(|(truth, seen)| {
                seen.draws(sampler.margin, sampler.min_count, &is_true(truth))
            }),
            candidates: seen.filter(|_| observe == Observe::Posterior).and_then(|(truth, seen)| {
                seen.candidates(sampler.margin, sampler.min_count, &is_true(truth))
            }),
        })
    }

    fn embed(&self, split: Split) -> Embedded {
        let part = match split {
            Split::Train => &self.encoded.train,
            Split::Val => &self.encoded.val,
            Split::Test => &self.encoded.test,
        };
        Embedded {
            dim: self.model.config().model.embed_dim,
            images: self.model.embed_images(&part.features),
            texts: self.model.embed_texts(&part.words),
        }
    }

    /// With the statistics as they stand, if there are enough of them.
    fn posterior(&self) -> Option<MatchProbability> {
        let sampler = &self.model.config().sampler;
        let posterior = self.model.statistics().posterior(sampler.prior, sampler.min_count)?;
        let of = Box::new(move |s| posterior.probability(s));
        Some(MatchProbability { prior: posterior.prior, of })
    }

    fn prior(&self) -> Option<f64> {
        Some(self.model.config().sampler.prior)
    }

    fn save(&self, files: &mut Files) -> Result<()> {
        self.model.save_with(&mut |name, contents| files.add(name, contents))
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        self.model.load(folder)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::config::{Config, ScenesConfig};
    use crate::source::Source;

    /// Losses of a few steps and the embeddings after them.
    fn trained(
        truth: Option<&Relevance>,
        source: &Source,
        encoded: &Encoded,
    ) -> (Vec<f64>, Embedded) {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let mut row: FneConfig = Config::load(&configs, "fne-scenes").unwrap().row("Full").unwrap();
        (row.model.embed_dim, row.model.word_dim) = (8, 6);
        (row.sampler.bank_size, row.sampler.warmup_epochs, row.sampler.min_count) = (16, 0, 0);
        let device = Device::flex();
        let inputs = Inputs { name: "toy".into(), source, encoded, truth, device: &device };
        let mut method = row.build(inputs).unwrap();
        method.begin_epoch(0);
        let captions: Vec<usize> = (0..8).map(|k| 5 * k).collect();
        let step = |seed| {
            let step = method.step(&captions, seed, Observe::Posterior).unwrap();
            assert_eq!(step.draws.is_some(), truth.is_some(), "an audit needs the truth");
            step.loss
        };
        let losses = (0..4).map(step).collect();
        (losses, method.embed(Split::Test))
    }

    /// The truth is for audits: with it, without it and with another one a training ends in the same bits.
    #[test]
    fn a_training_does_not_depend_on_the_truth() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let mut config = Config::load(&configs, "fne-scenes").unwrap();
        let size = ScenesConfig { seed: 0, train: 8, val: 2, test: 2, pixels: 32 };
        config.target.scenes = Some(size);
        let source = Source::open(&config, None, &configs).unwrap().1;
        let encoded = Encoded::new(&source.dataset, &config.target);
        let truth = &source.truth.as_ref().unwrap().train;
        let other = Relevance::new(truth.texts(), vec![(0..truth.texts() as u32).collect(); 8]);
        let [a, b, c] =
            [None, Some(truth), Some(&other)].map(|truth| trained(truth, &source, &encoded));
        assert!(a.0 == b.0 && b.0 == c.0, "{:?} {:?} {:?}", a.0, b.0, c.0);
        assert!(a.1.texts == b.1.texts && b.1.texts == c.1.texts && a.1.images == c.1.images);
    }
}
