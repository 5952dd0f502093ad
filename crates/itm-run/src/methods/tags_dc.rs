//! TAGS-DC for the runner: its inputs, its memory, and how its model is built.

mod aligned;
mod edited;
mod edits;
mod judged;
mod negatives;
mod sentences;
mod synthetic;

use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::{self, WordPieces};
use itm_core::{Error, Result};
use itm_kernels::Precision;
use tags_dc::MaskBy;
use tags_dc::config::{GeneratorKind, Published, TagsDcConfig, TrainConfig};
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Marks, TagsDc};

pub(crate) use negatives::{Trained, TrainedPart, negatives};

use self::aligned::Aligned;
use self::edited::EditedCaptions;
use self::synthetic::SyntheticSentences;
use super::{Captions, Cleaning, Given, Kind, Recipe, Sees, StartAsked, start_of};
use crate::config::Config;
use crate::measures::Measure;
use crate::plan::{Bytes, Sizes};
use crate::train::{Course, LastBatch, Validation};

pub(super) const KIND: Kind = Kind {
    name: "tags-dc",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<TagsDcConfig>(row)?)),
    measures: measures,
    judge: judged::pairs,
};

fn measures(config: &Config) -> Vec<Box<dyn Measure>> {
    let mut all: Vec<Box<dyn Measure>> = vec![Box::new(SyntheticSentences::default())];
    if config.target.edits {
        all.push(Box::new(EditedCaptions::default()));
    }
    all
}

impl Recipe for TagsDcConfig {
    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, updates, batch, validate_every, validate_among, .. } = self.train;
        let validation = Validation { every: validate_every, among: validate_among };
        let start = start_of(self.start());
        Course { epochs, updates, batch, last: LastBatch::Kept, start, validation }
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn precision(&self) -> Option<Precision> {
        Some(self.train.precision)
    }

    fn sees(&self) -> Sees {
        Sees::Regions
    }

    fn captions(&self) -> Result<Captions> {
        Ok(match &self.model.published {
            Some(published) => Captions::Pieces(published.vocabulary.clone(), Cleaning::Raw),
            None => Captions::Words(text::Marks::Off),
        })
    }

    fn find_weights(&self) -> Result<()> {
        let Some(Published { weights, vocabulary }) = &self.model.published else { return Ok(()) };
        WordPieces::open(vocabulary)?.special()?;
        std::fs::metadata(weights).map(|_| ()).map_err(Error::io(weights))
    }

    fn memory(&self, sizes: &Sizes) -> Result<Bytes> {
        Ok(memory(self, sizes))
    }

    /// Embedded regions of all images; scores are counted elsewhere.
    fn evaluation(&self, regions: &[usize], _: &[usize]) -> u64 {
        4 * (regions.iter().sum::<usize>() * self.model.embed_dim) as u64
    }

    fn start(&self) -> Option<StartAsked> {
        let options = self.model.closed_form()?.clone();
        Some(StartAsked { options, width: self.model.embed_dim, form: TextForm::Words })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, device, train, written, start, .. } = *given;
        let updates = self.train.all_updates(sizes.captions);
        let model = TagsDc::of(self, sizes.region_width, marks(self, sizes)?, updates, device)?;
        let model = model.with_siblings_of(&train);
        let model = match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        };
        let masks = self.loss.mlm > 0.0 || self.loss.synthetic();
        if !masks || self.masking.by == MaskBy::Words {
            return Ok(Box::new(model));
        }
        // If the parser splits a caption into other words than the row does, each word is a phrase.
        let phrases = |caption: &String| -> Result<Vec<Vec<usize>>> {
            let read = Aligned::new(caption, &(written.words)(caption)?, written.words)?;
            Ok(read.map_or(vec![], |read| read.phrases(Duplicates::Kept)))
        };
        let phrases: Vec<_> = written.captions.iter().map(phrases).collect::<Result<_>>()?;
        Ok(Box::new(model.with_phrases(phrases)))
    }

    fn made(&self, sizes: &Sizes) -> u64 {
        if self.loss.words() { word_heads(self, sizes) } else { 0 }
    }
}

/// The tokens that a row reads.
///
/// # Errors
/// If the folder of a published vocabulary cannot be read or lacks a mark.
fn marks(config: &TagsDcConfig, sizes: &Sizes) -> Result<Marks> {
    Ok(match &config.model.published {
        Some(Published { vocabulary, .. }) => {
            let pieces = WordPieces::open(vocabulary)?;
            Marks::of_pieces(pieces.special()?, pieces.words_and_parts(), pieces.vocabulary())
        }
        None => Marks::of_words(sizes.vocabulary as u32),
    })
}

/// The number of tokens that a row reads.
fn tokens(config: &TagsDcConfig, sizes: &Sizes) -> usize {
    match config.model.published {
        Some(_) => sizes.vocabulary,
        None => Marks::of_words(sizes.vocabulary as u32).tokens(),
    }
}

/// Weights of the word heads that phase 2 adds: d → 2, and a second head over the vocabulary.
fn word_heads(config: &TagsDcConfig, sizes: &Sizes) -> u64 {
    let v = tokens(config, sizes) as u64;
    let d = config.model.embed_dim as u64;
    (2 * d + 2) + (d * d + d + 2 * d + v)
}

/// Bytes of a row's training, without its data.
///
/// ```text
/// weights     = V d + P d + 2 d + 2 d             tables, their norm
///             + n (12 d² + 13 d)                  blocks
///             + (x + 1) d + 8 d + 6 d             regions and boxes, three norms
///             + d² + d + 2 d + 2 + d + 1          pooler, both heads of a pair
///             + d² + d + 2 d + V                  words
///             + 2 d + 2 + d² + d + 2 d + V        with word discrimination and correction
/// position    = 4 · (34 d + 3 a (l + r)) n        of a block: states, products of 4 d, attention of a heads, with gradients
/// activations = rows · (l + r) · position + targets · 4 · 3 V
///             + 2 n (12 d² + 13 d)                with bf16: a rounded copy of the blocks is kept from a product to its gradient
/// rows        = b (2 (1 + h) + K + 1 + m)         b anchors at once; without terms that no loss needs; m counts twice if word losses have a separate pass
/// ```
fn memory(config: &TagsDcConfig, sizes: &Sizes) -> Bytes {
    let tokens = tokens(config, sizes);
    let TagsDcConfig { model, masking, synthetic, retrieval, loss, train } = config;
    let [v, d, n, a, p] = [tokens, model.embed_dim, model.layers, model.heads, model.positions];
    let [v, d, n, a, p] = [v, d, n, a, p].map(|n| n as u64);
    let [x, r, l] = [sizes.region_width, sizes.regions, sizes.words + 2].map(|n| n as u64);
    let at_once = train.batch.min(train.micro_batch);
    let [b, h, k] = [at_once, retrieval.kept, masking.maskings].map(|n| n as u64);
    let own_pass = loss.words() && !synthetic.share_forward;
    let m = (synthetic.kept + 1) as u64 * (1 + u64::from(own_pass));
    let pairs = if loss.itm > 0.0 { 2 * (1 + h) } else { 0 };
    let maskings = if loss.mlm > 0.0 || loss.synthetic() { k } else { 0 };
    let sentences = if loss.synthetic() { m } else { 0 };
    let blocks = n * (12 * d * d + 13 * d);
    let backbone = (v + p + 4) * d + blocks + (x + 15) * d;
    let heads = 2 * (d * d + d) + (3 * d + 3) + 2 * d + v;
    let position = 4 * (34 * d + 3 * a * (l + r)) * n;
    let corrected = if loss.woc > 0.0 { m } else { 0 };
    let targets = b * (maskings + corrected) * l; // at most all tokens
    let rows = b * (pairs + maskings + sentences);
    let rounded = if train.precision == Precision::Bf16 { 2 * blocks } else { 0 };
    let activations = rows * (l + r) * position + 4 * 3 * targets * v + rounded;
    let more = if loss.words() { word_heads(config, sizes) } else { 0 };
    let of_weights = Bytes::of_weights(backbone + heads + more);
    let fixed = loss.synthetic() && synthetic.generator == GeneratorKind::Static;
    let momentum = if fixed { of_weights.parameters } else { 0 }; // a second model, like a momentum model
    Bytes { activations, momentum, ..of_weights }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use burn::module::Module;
    use burn::tensor::Device;
    use itm_core::start::StartFrom;

    use super::*;

    const SIZES: Sizes = Sizes {
        features: 200,
        region_width: 100,
        regions: 10,
        vocabulary: 150,
        words: 12,
        captions: 15_000,
        pictures: 0,
    };

    pub(super) fn config() -> TagsDcConfig {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let config = Config::load(&configs, "tags-dc-scenes").unwrap();
        let row = config.rows().next().unwrap().to_owned();
        let mut config = config.row::<TagsDcConfig>(&row).unwrap();
        config.model.cca = None; // too wide for small models
        config.model.start = StartFrom::Random;
        config
    }

    /// The formula counts the weights of the built model.
    #[test]
    fn weights_are_the_models() {
        for (layers, heads) in [(1, 2), (3, 4)] {
            let mut config = config();
            (config.model.layers, config.model.heads, config.model.embed_dim) = (layers, heads, 16);
            let model = TagsDc::new(&config, 100, 150, 10, &Device::flex()).unwrap();
            let count = model.model().num_params() as u64;
            assert_eq!(memory(&config, &SIZES).parameters, 4 * count, "{layers} blocks");
        }
    }

    /// By hand: b = 2, h = 1, K = 3, so 14 rows; l = 14, r = 10, d = 16, n = 1, a = 2: 4 · (544 + 144) = 2,752 bytes per position;
    /// targets 2 · 3 · 14 of 153 tokens.
    #[test]
    fn golden_activations() {
        let mut config = config();
        (config.train.batch, config.retrieval.kept, config.masking.maskings) = (2, 1, 3);
        (config.model.layers, config.model.heads, config.model.embed_dim) = (1, 2, 16);
        let got = memory(&config, &SIZES).activations;
        assert_eq!(got, 14 * 24 * 2_752 + 12 * 84 * 153);
    }
}
