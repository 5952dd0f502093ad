//! FNE under the runner's loop: batches from a data set, and the audit against the truth.

use std::collections::BTreeSet;
use std::path::Path;

use fne::{
    Batch, Exclude, Fne, FneConfig, ImageConfig, Images, ModelConfig, TextConfig, TrainConfig,
};
use hubness::training::Similarity;
use itm_core::data::{Dataset, Part};
use itm_core::encoders::{PatchGrid, word_patches};
use itm_core::{Relevance, Result};

use crate::checkpoint::Files;
use crate::encoded::{Captions, Encoded, Word};
use crate::finite::first_non_finite;
use crate::method::{
    Course, Embedded, Inputs, LastBatch, MatchProbability, Method, Observe, Recipe, Sees, Split,
    Step, WordMap, WordMaps, blamed,
};
use crate::pictures::{EVALUATION_BATCH, Pictures, View};
use crate::plan;
use crate::plan::{Bytes, Sizes};

impl Recipe for FneConfig {
    type Method<'a> = FneMethod<'a>;

    fn validate(&self) -> Result<()> {
        Self::validate(self)?;
        self.model.check_weights()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course { epochs, batch, last: LastBatch::Dropped }
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn needs_truth(&self) -> bool {
        self.sampler.exclude == Exclude::Truth
    }

    fn sees(&self) -> Sees {
        match &self.model.image {
            ImageConfig::Features(_) => Sees::Features,
            ImageConfig::Vit(_) => Sees::Pictures,
        }
    }

    fn captions(&self) -> Result<Captions> {
        let TextConfig::Bert(bert) = &self.model.text else { return Ok(Captions::Words) };
        Ok(match bert.weights.folder()? {
            Some(folder) => Captions::Pieces(folder),
            None => Captions::MarkedWords,
        })
    }

    fn memory(&self, sizes: &Sizes) -> Result<Bytes> {
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
    /// If the model sees them.
    pictures: Option<Pictures>,
    /// For the audit; it reaches the model only where its pairs are to be left out.
    truth: Option<&'a Relevance>,
}

impl<'a> FneMethod<'a> {
    fn new(config: &FneConfig, inputs: Inputs<'a>) -> Result<Self> {
        let Inputs { name, source, encoded, truth, device } = inputs;
        let data = &source.dataset;
        let (features, words) = (encoded.train.features.dim, encoded.vocabulary);
        let pictures = match view(&config.model) {
            Some(view) => Some(Pictures::new(source, view)?),
            None => None,
        };
        let model = Fne::new(config, features, words, device, config.train.seed)?;
        let mut model = model.with_epochs_of(data.train.pairs.texts() / config.train.batch);
        if let Some(truth) = truth.filter(|_| config.needs_truth()) {
            let truth = truth.clone();
            model = model.with_truth(move |image, caption| is_true(&truth)(image, caption));
        }
        Ok(Self { name, model, data, encoded, pictures, truth })
    }

    fn part(&self, split: Split) -> &Part {
        match split {
            Split::Train => &self.data.train,
            Split::Val => &self.data.val,
            Split::Test => &self.data.test,
        }
    }
}

/// How the model sees pictures, if it does.
fn view(model: &ModelConfig) -> Option<View> {
    match &model.image {
        ImageConfig::Features(_) => None,
        ImageConfig::Vit(vit) => Some(View { augment: vit.augment(), transform: vit.transform() }),
    }
}

/// The maps of one pair. Of a caption that was cut, those words are left out whose pieces were.
fn of_pair(
    grid: PatchGrid,
    patches: &[f32],
    (pieces, mut words): (&[f32], Vec<Word>),
    d: usize,
) -> WordMaps {
    let end = pieces.len() / d - 1; // [SEP]
    words.retain(|word| word.pieces.end <= end);
    let ranges: Vec<_> = words.iter().map(|word| word.pieces.clone()).collect();
    let values = word_patches(patches, pieces, &ranges, d);
    let maps = values.chunks_exact(grid.len()).zip(words);
    let map = |(values, word): (&[f32], Word)| WordMap { word: word.text, values: values.to_vec() };
    WordMaps { grid, words: maps.map(map).collect() }
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

    fn ahead(&mut self, steps: &mut dyn Iterator<Item = (&[usize], u64)>) {
        let pairs = &self.data.train.pairs;
        let images = |captions: &[usize]| captions.iter().map(|&c| pairs.image_of(c)).collect();
        if let Some(pictures) = &mut self.pictures {
            pictures.ahead(steps.map(|(captions, seed)| (images(captions), seed)).collect());
        }
    }

    fn step(&mut self, captions: &[usize], seed: u64, observe: Observe) -> Result<Step> {
        let train = &self.data.train;
        let images: Vec<usize> = captions.iter().map(|&c| train.pairs.image_of(c)).collect();
        let (pixels, rows);
        let seen = match &mut self.pictures {
            Some(pictures) => {
                pixels = pictures.step(&images, seed)?;
                Images::from(&pixels)
            }
            None => {
                let features = images.iter().flat_map(|&i| self.encoded.train.features.row(i));
                rows = features.copied().collect::<Vec<f32>>();
                Images::Features(&rows)
            }
        };
        let words: Vec<_> =
            captions.iter().map(|&c| self.encoded.train.words[c].as_slice()).collect();
        let batch = Batch {
            images: seen,
            texts: &words,
            image_ids: &images.iter().map(|&i| i as i64).collect::<Vec<_>>(),
            caption_ids: &captions.iter().map(|&c| c as i64).collect::<Vec<_>>(),
        };
        let truth = self.truth.filter(|_| observe != Observe::No);
        let asked = if truth.is_some() { fne::Observe::On } else { fne::Observe::Off };
        let report = self.model.step(&batch, seed, asked).map_err(|e| blamed(self, e))?;
        let seen = truth.zip(report.observation.as_ref());
        let sampler = &self.model.config().sampler;
        Ok(Step {
            loss: report.loss,
            grad_norm: report.grad_norm,
            active: report.active,
            draws: seen.map(|(truth, seen)| {
                seen.draws(sampler.margin, sampler.min_count, &is_true(truth))
            }),
            candidates: seen.and_then(|(truth, seen)| {
                seen.candidates(sampler.margin, sampler.min_count, &is_true(truth))
            }),
        })
    }

    fn embed(&self, split: Split) -> Result<Embedded> {
        let part = self.encoded.part(split);
        Ok(Embedded {
            dim: self.model.config().model.embed_dim,
            images: match &self.pictures {
                Some(pictures) => self.model.embed_pictures(pictures.of(split))?,
                None => self.model.embed_images(&part.features),
            },
            texts: self.model.embed_texts(&part.words),
            similarity: Similarity::Cosine,
        })
    }

    fn word_maps(&self, split: Split, pairs: &[(usize, usize)]) -> Result<Option<Vec<WordMaps>>> {
        let (Some(states), Some(pictures)) = (self.model.states(), &self.pictures) else {
            return Ok(None);
        };
        let captions = &self.part(split).captions;
        let (words, d) = (&self.encoded.part(split).words, states.width());
        let images: Vec<usize> =
            pairs.iter().map(|&(i, _)| i).collect::<BTreeSet<_>>().into_iter().collect();
        let mut maps = vec![None; pairs.len()];
        let batches = images.chunks(EVALUATION_BATCH).zip(pictures.some(split, &images));
        for (images, batch) in batches {
            let patches = states.patches(&batch?); // [images, n, d]
            let of_image = states.grid().len() * d;
            let here: Vec<usize> =
                (0..pairs.len()).filter(|&k| images.binary_search(&pairs[k].0).is_ok()).collect();
            let texts: Vec<_> = here.iter().map(|&k| words[pairs[k].1].as_slice()).collect();
            for (&k, pieces) in here.iter().zip(states.pieces(&texts)) {
                let (image, text) = pairs[k];
                let at = images.partition_point(|&i| i < image) * of_image;
                let words = self.encoded.words(&captions[text])?;
                let pieces = (pieces.as_slice(), words);
                maps[k] = Some(of_pair(states.grid(), &patches[at..at + of_image], pieces, d));
            }
        }
        Ok(Some(maps.into_iter().flatten().collect()))
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
    use crate::config::Config;
    use crate::source::Source;
    use crate::testing;

    /// Losses of a few steps and the embeddings after them.
    fn trained(
        exclude: Exclude,
        truth: Option<&Relevance>,
        source: &Source,
        encoded: &Encoded,
    ) -> (Vec<f64>, Embedded) {
        let config = Config::load(&testing::configs(), "fne-scenes").unwrap();
        let mut row: FneConfig = config.row("Full").unwrap();
        row.model = ModelConfig::new(8, 6);
        (row.sampler.bank_size, row.sampler.warmup_epochs, row.sampler.min_count) = (16, 0, 0);
        row.sampler.exclude = exclude;
        let device = Device::flex();
        let inputs = Inputs { name: "toy".into(), source, encoded, truth, device: &device };
        let mut method = row.build(inputs).unwrap();
        method.begin_epoch(0);
        let captions: Vec<usize> = (0..8).map(|k| 5 * k).collect();
        let step = |seed| {
            let step = method.step(&captions, seed, Observe::Yes).unwrap();
            assert_eq!(step.draws.is_some(), truth.is_some(), "an audit needs the truth");
            let shares = step.draws.and_then(|draws| draws.shares());
            let none = shares.as_ref().is_none_or(|shares| shares.drawn == 0.0);
            assert!(none || exclude == Exclude::SameImage, "{shares:?}");
            step.loss
        };
        let losses = (0..4).map(step).collect();
        (losses, method.embed(Split::Test).unwrap())
    }

    /// The truth is for audits: with it, without it and with another one a training ends in the same bits.
    #[test]
    fn a_training_does_not_depend_on_the_truth() {
        let (config, source) = testing::small_scenes([8, 2, 2]);
        let encoded = Encoded::new(&source.dataset, &config.target, &Captions::Words).unwrap();
        let truth = &source.truth.as_ref().unwrap().train;
        // The next image's captions too.
        let texts = |i: u32| (5 * i..5 * i + 10).map(|t| t % 40).collect();
        let other = Relevance::new(truth.texts(), (0..8).map(texts).collect());
        let [a, b, c] = [None, Some(truth), Some(&other)]
            .map(|t| trained(Exclude::SameImage, t, &source, &encoded));
        assert!(a.0 == b.0 && b.0 == c.0, "{:?} {:?} {:?}", a.0, b.0, c.0);
        assert!(a.1.texts == b.1.texts && b.1.texts == c.1.texts && a.1.images == c.1.images);
        let without = trained(Exclude::Truth, Some(&other), &source, &encoded);
        assert!(without.0 != a.0, "what is true is left out");
    }
}
