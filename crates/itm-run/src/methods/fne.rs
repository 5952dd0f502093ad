//! FNE for the runner: its inputs, its memory, and how its model is built.

use fne::{
    BagConfig, Exclude, FeaturesConfig, Fne, FneConfig, ImageConfig, ModelConfig, Projected,
    TextConfig, TrainConfig, TrainTruncate, Weights,
};
use itm_core::Result;
use itm_core::encoders::sizes::{Bert, Kept, Scores, Transformer, Vit};
use itm_core::encoders::{BertShape, VitShape};
use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::Marks;
use itm_kernels::{Memory, Precision};

use super::side::Side;
use super::{Given, Kind, Recipe, Sees, StartAsked, start_of};
use crate::encoded::{Captions, Cleaning};
use crate::pictures::{BATCHES_AHEAD, View};
use crate::plan::{Bytes, Sizes};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "fne",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<FneConfig>(row)?)),
    measures: |_| vec![],
    judge: |_, _, _| Ok(None),
};

impl Recipe for FneConfig {
    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn find_weights(&self) -> Result<()> {
        self.model.check_weights()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course::of_epochs(epochs, batch, LastBatch::Dropped, start_of(self.start()))
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn needs_truth(&self) -> bool {
        self.sampler.exclude == Exclude::Truth
    }

    fn precision(&self) -> Option<Precision> {
        self.model.has_blocks().then_some(self.train.precision)
    }

    fn sees(&self) -> Sees {
        let ImageConfig::Vit(vit) = &self.model.image else { return Sees::Features };
        Sees::Pictures(View { augment: vit.augment(), transform: vit.transform() })
    }

    fn captions(&self) -> Result<Captions> {
        let bert = match &self.model.text {
            TextConfig::Gru(_) => return Ok(Captions::Words(Marks::Off)),
            TextConfig::Bag(_) => return Ok(Captions::Stems),
            TextConfig::Bert(bert) => bert,
        };
        Ok(match bert.weights.folder()? {
            Some(folder) => Captions::Pieces(folder, Cleaning::Cleaned),
            None => Captions::Words(Marks::StartEnd),
        })
    }

    fn memory(&self, sizes: &Sizes) -> Result<Bytes> {
        memory(self, sizes)
    }

    fn start(&self) -> Option<StartAsked> {
        let TextConfig::Bag(BagConfig { pooling }) = self.model.text else { return None };
        let options = self.model.closed_form()?.clone();
        Some(StartAsked { options, width: self.model.embed_dim, form: TextForm::Stems(pooling) })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, inputs, start, truth, device, .. } = *given;
        let model = Fne::new(self, sizes.features, sizes.vocabulary, device)?;
        let mut model =
            model.with_epochs_of(sizes.captions / self.train.batch).with_inputs(inputs)?;
        if let Some(start) = start.filter(|_| self.model.closed_form().is_some()) {
            model = model.with_start(start)?;
        }
        Ok(Box::new(match truth.filter(|_| self.needs_truth()) {
            Some(truth) => model.with_truth(truth.clone()),
            None => model,
        }))
    }
}

/// Bytes of a row's training, without its data.
///
/// ```text
/// banks       = 4 · 2K·d + 16 · K                      rows of both sides; numbers of image and caption
/// activations = m · (image + text)                     the encoders that learn, m = min(b, micro_batch) pairs at once
///             + m · (image + text)                     the momentum encoders' forward pass, if there are any
///             + 4 · 5n·d + 40 · b·n                    n = b + K candidates: tables, scores both ways, weights
/// checkpoint  = 2 · the larger file                    both encoders; moments and banks
///             + 2 · (weights of all blocks)            with bf16: a rounded copy is kept from a product to its gradient
/// pictures    = 4 · 4 · b · 3 · size² + those held     if the row sees pictures: of the next steps, and those without a file
/// ```
///
/// # Errors
/// If published weights cannot be found, or their sizes cannot be read.
fn memory(config: &FneConfig, sizes: &Sizes) -> Result<Bytes> {
    let FneConfig { model, train, sampler } = config;
    let [d, b, k] = [model.embed_dim, train.batch, sampler.bank_size].map(|x| x as u64);
    let (image, text) = (image(model, sizes)?, text(model, sizes)?);
    let weights = Bytes::of_weights(image.weights + text.weights);
    let banks = 4 * 2 * k * d + 16 * k;
    let copies = if config.has_momentum() { 2 } else { 1 };
    let items = b.min(train.micro_batch as u64) * (image.item + text.item);
    let n = b + k;
    let pictures = match model.image {
        ImageConfig::Features(_) => 0,
        ImageConfig::Vit(_) => image.ahead * b + sizes.pictures,
    };
    let rounded = match train.precision {
        Precision::F32 => 0,
        Precision::Bf16 => 2 * (image.blocks + text.blocks),
    };
    Ok(Bytes {
        momentum: weights.parameters, // held even if the row does not use them
        banks,
        activations: copies * items + 4 * 5 * n * d + 40 * b * n + pictures + rounded,
        checkpoint: 2 * (2 * weights.parameters).max(weights.optimiser + banks),
        ..weights
    })
}

fn image(model: &ModelConfig, sizes: &Sizes) -> Result<Side> {
    let config = match &model.image {
        ImageConfig::Features(FeaturesConfig { residual, .. }) => {
            return Ok(Side::of_features(sizes, model.embed_dim as u64, residual.as_ref()));
        }
        ImageConfig::Vit(config) => config,
    };
    let shape = sizes_of(&config.weights, |folder| VitShape::read(folder))?;
    let VitShape { width, layers, heads, mlp, .. } = shape;
    let (pixels, patch) = (config.image_size as u64, shape.patch as u64);
    let vit = Vit { blocks: blocks(width, layers, heads, mlp), pixels, patch };
    let map = projection(config.projection, width, model.embed_dim);
    Ok(Side {
        weights: vit.weights() + map,
        blocks: vit.blocks.weights(),
        item: vit.activations(kept(config.activations), Scores::Fused),
        ahead: BATCHES_AHEAD as u64 * 4 * 3 * pixels * pixels,
    })
}

fn text(model: &ModelConfig, sizes: &Sizes) -> Result<Side> {
    let config = match &model.text {
        TextConfig::Gru(gru) => {
            return Ok(Side::of_words(sizes, gru.word_dim as u64, model.embed_dim as u64));
        }
        TextConfig::Bag(_) => return Ok(Side::of_stems(sizes, model.embed_dim as u64)),
        TextConfig::Bert(config) => config,
    };
    let shape = sizes_of(&config.weights, |folder| BertShape::read(folder))?;
    let BertShape { width, layers, heads, mlp, .. } = shape;
    let bert = Bert {
        blocks: blocks(width, layers, heads, mlp),
        vocabulary: shape.vocabulary as u64,
        positions: shape.positions as u64,
    };
    let pieces = match config.train_truncate {
        TrainTruncate::On => sizes.words.min(config.max_pieces),
        TrainTruncate::Off => sizes.words,
    };
    let item = bert.activations(pieces as u64, kept(config.activations), Scores::Fused);
    let map = projection(config.projection, width, model.embed_dim);
    Ok(Side { weights: bert.weights() + map, blocks: bert.blocks.weights(), item, ahead: 0 })
}

fn sizes_of<S: Clone>(
    weights: &Weights<S>,
    read: impl Fn(&std::path::Path) -> Result<S>,
) -> Result<S> {
    match weights {
        Weights::Random(shape) => Ok(shape.clone()),
        Weights::Pretrained(_) => {
            let folder = weights.folder()?.expect("published weights have a folder");
            read(&folder)
        }
    }
}

fn blocks(width: usize, layers: usize, heads: usize, mlp: usize) -> Transformer {
    let [width, layers, heads, mlp] = [width, layers, heads, mlp].map(|x| x as u64);
    Transformer { width, layers, heads, mlp }
}

fn projection(kind: Projected, from: usize, to: usize) -> u64 {
    match kind {
        Projected::None => 0,
        Projected::Linear => (from as u64 + 1) * to as u64,
    }
}

fn kept(memory: Memory) -> Kept {
    match memory {
        Memory::Keep => Kept::All,
        Memory::Recompute => Kept::BlockInputs,
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Module;
    use burn::tensor::Device;

    use super::*;
    use crate::config::Config;
    use crate::testing;

    fn config(row: &str) -> FneConfig {
        Config::load(&testing::configs(), "fne-scenes").unwrap().row(row).unwrap()
    }

    const SIZES: Sizes = Sizes {
        features: 200,
        region_width: 0,
        regions: 0,
        vocabulary: 150,
        words: 12,
        captions: 15_000,
        pictures: 0,
    };

    /// The formula counts the weights of the built model.
    #[test]
    fn weights_are_the_models() {
        let config = config("Full");
        let model = Fne::new(&config, 200, 150, &Device::flex()).unwrap();
        let plan = memory(&config, &SIZES).unwrap();
        assert_eq!(plan.parameters, 4 * model.online().num_params() as u64);
        assert_eq!(plan.momentum, 4 * model.momentum().num_params() as u64);
    }

    /// By hand for b = 128, K = 1,024, d = 128, e = 64: banks 1,048,576 + 16,384; an image 4 · (1,000 + 512) = 6,048 bytes, a
    /// text 4 · 12 · (384 + 2,176) = 122,880; twice 128 pairs of them 33,005,568; n = 1,152: 2,949,120 + 5,898,240.
    #[test]
    fn golden_full_row_and_without_memory() {
        let full = memory(&config("Full, scratch"), &SIZES).unwrap();
        assert_eq!(full.banks, 1_064_960);
        assert_eq!(full.activations, 33_005_568 + 2_949_120 + 5_898_240);
        // (201 · 128 + 150 · 64 + 384 · 192 + 768) weights; the larger file has two moments per weight, and the banks.
        let parameters = 4 * (25_728 + 9_600 + 73_728 + 768);
        assert_eq!(full.parameters, parameters);
        assert_eq!(full.checkpoint, 2 * (2 * parameters + 1_064_960));
        let drawn = Sizes { pictures: 1_000, ..SIZES };
        assert_eq!(
            memory(&config("Full, scratch"), &drawn).unwrap(),
            full,
            "it sees only features"
        );
        let without = memory(&config("w/o MMM, scratch"), &SIZES).unwrap();
        assert_eq!(without.banks, 0);
        assert_eq!(without.activations, 16_502_784 + 20 * 128 * 128 + 40 * 128 * 128);
    }

    #[test]
    fn pictures_that_no_file_holds_count_where_they_are_seen() {
        let config = Config::load(&testing::configs(), "fne-scenes-vit").unwrap();
        let config = config.row("Full").unwrap();
        let activations =
            |pictures| memory(&config, &Sizes { pictures, ..SIZES }).unwrap().activations;
        assert_eq!(activations(1_000), activations(0) + 1_000);
    }
}
