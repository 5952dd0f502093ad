//! A pair of towers as a configuration names them: an encoder of images beside an encoder of captions. Any goes with any, and every
//! loss of `fne` and HAL trains any pair.
//!
//! | `[model.image] kind` | reads | v̄ before unit length |
//! |---|---|---|
//! | `features` | rows of features | [`Projection`](crate::encoders::Projection) |
//! | `vit` | pixels | one row of [`Vit`](crate::encoders::Vit), as [`ImagePool`](crate::encoders::ImagePool) says, and perhaps a linear map |
//! | `clip` | pixels | [`ImageTower`](crate::encoders::ImageTower) of CLIP or SigLIP |
//!
//! | `[model.text] kind` | reads | w̄ before unit length |
//! |---|---|---|
//! | `gru` | words | [`GruText`](crate::encoders::GruText) |
//! | `bag` | stems, and given rows | [`BagOfWords`](crate::encoders::BagOfWords) |
//! | `bert` | word pieces | one row of [`Bert`](crate::encoders::Bert), as [`PiecePool`](crate::encoders::PiecePool) says, and perhaps a linear map |
//! | `clip` | its own word pieces | [`TextTower`](crate::encoders::TextTower) of CLIP or SigLIP |
//!
//! ```
//! use burn::tensor::Device;
//! use itm_core::learn::Images;
//! use itm_core::towers::{Encoders, ModelConfig, TowerDropout};
//!
//! let config = ModelConfig::new(8, 6); // features beside a GRU, d = 8, word vectors of 6
//! let (towers, _) = Encoders::open(&config, 3, 20, 7, &Device::flex())?; // 3 features, 20 words, seed 7
//! let images = towers.image.encode(Images::Features(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), TowerDropout::OFF);
//! let texts = towers.texts(&[vec![3, 4], vec![5]], TowerDropout::OFF);
//! assert_eq!((images.dims(), texts.dims()), ([2, 8], [2, 8]));
//! # Ok::<(), itm_core::Error>(())
//! ```

mod config;
mod embed;
mod frozen;
mod image;
mod learning;
mod lora;
mod parts;
mod save;
#[cfg(test)]
mod start_tests;
mod text;
#[cfg(test)]
mod tokens_tests;
mod transform;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_kernels::{Linear, Noise, Precision};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::contrastive::Contrast;
use crate::encoders::{InputDropout, set_precision, table_values};
use crate::ranges::in_memory;
use crate::start::{InputStatistics, LinearMap, Start, StartFrom};
use crate::weights::LoadReport;
use crate::{Error, Result};

pub use config::{
    Augmentation, BagConfig, BertConfig, ClipImageConfig, ClipTextConfig, FeaturesConfig,
    GruConfig, ImageConfig, JointLayer, ModelConfig, Pixels, TextConfig, TrainTruncate, VitConfig,
    Weights,
};
pub use embed::TEXTS;
pub use image::{ClipEncoder, ImageEncoder, ImageInput, VitEncoder};
pub use learning::LearningParts;
pub use lora::{BlockMap, LoraConfig};
pub use parts::{BatchEmbeddings, StepInputs};
pub use text::{BertEncoder, CaptionInput, TextEncoder};
pub use transform::FeatureTransform;

/// Number that stands for words outside the vocabulary; 0 is padding.
pub const UNKNOWN: u32 = 1;

/// Both towers, and a contrastive loss whose temperature may learn.
#[derive(Module, Debug)]
pub struct Encoders {
    /// Makes v̄ of images.
    pub image: ImageEncoder,
    /// Makes w̄ of captions.
    pub text: TextEncoder,
    /// The contrastive loss, if `train.loss` needs one. Its temperature may be learned.
    pub contrast: Option<Contrast>,
}

/// An encoder, and a report on the published weights that were read.
type WithReport<E> = (E, Option<LoadReport>);

/// Seed of one use of the random generator. `part` separates the uses of one seed.
pub fn derive(seed: u64, part: u64) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(part);
    rng.random()
}

/// Which values are set to 0 in training. The other values are scaled up. ViT and BERT drop the shares that their weights name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TowerDropout {
    /// Share of the values of features and word vectors that is set to 0; may be 0.
    pub share: f64,
    /// Share of stems that a bag of words leaves out; may be 0.
    pub words: f64,
    /// Noise of the masks; `Noise::Off` in evaluation.
    pub noise: Noise,
}

impl TowerDropout {
    /// Evaluation: no value is set to 0.
    pub const OFF: Self = Self { share: 0.0, words: 0.0, noise: Noise::Off };

    /// The dropout of one part of a batch: each part has its own masks, and the first has those of an undivided batch.
    #[must_use]
    pub fn of_part(self, number: u64) -> Self {
        let noise = if number > 0 { self.part(16 + number) } else { self.noise };
        Self { noise, ..self }
    }

    /// Dropout inside an encoder with blocks, which has its own rates: the share of `dropout` is not used, and no word is dropped.
    pub fn inside(dropout: InputDropout) -> Self {
        Self { noise: dropout.noise, ..Self::OFF }
    }

    /// Dropout for an encoder of features.
    fn features(self) -> InputDropout {
        InputDropout { share: self.share, noise: self.part(1) }
    }

    /// Dropout for a bag of words.
    fn stems(self) -> InputDropout {
        InputDropout { share: self.words, noise: self.part(5) }
    }

    /// Noise of one use. [`Noise::part`] would derive another seed.
    fn part(self, part: u64) -> Noise {
        match self.noise {
            Noise::Off => Noise::Off,
            Noise::Seeded(seed) => Noise::Seeded(derive(seed, part)),
        }
    }
}

impl Encoders {
    /// Encoders with random weights, a function of the seed, or with published weights. Also returns a report of each folder read.
    ///
    /// `image_dim` is the width of a row of features; it is unused for pictures. `vocabulary` counts words or word pieces.
    ///
    /// # Errors
    /// If a value of the configuration is out of its range, a size is 0, memory cannot hold a tower's weights, or published weights are missing, damaged, or of another
    /// size than the configuration says.
    pub fn open(
        config: &ModelConfig,
        image_dim: usize,
        vocabulary: usize,
        seed: u64,
        device: &Device,
    ) -> Result<(Self, Vec<LoadReport>)> {
        config.validate()?;
        config.check_weights()?;
        let d = config.embed_dim;
        let (mut image, of_image) =
            ImageEncoder::open(&config.image, (image_dim, d), seed, device)?;
        let (mut text, of_text) = TextEncoder::open(&config.text, (vocabulary, d), seed, device)?;
        if config.start == StartFrom::Cca {
            // The closed form is solved for rows of unit length.
            if let ImageEncoder::Vit(encoder) = &mut image {
                encoder.unit = true;
            }
            if let TextEncoder::Bert(encoder) = &mut text {
                encoder.unit = true;
            }
        }
        Ok((Self { image, text, contrast: None }, of_image.into_iter().chain(of_text).collect()))
    }

    /// The encoders with statistics of the training data, which are part of the encoders but are not weights.
    ///
    /// # Errors
    /// If the number of idf values differs from the number of stems of a bag of words, or a number is not above 0.
    pub fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        let (image, text) = (self.image.with_inputs(inputs)?, self.text.with_inputs(inputs)?);
        Ok(Self { image, text, ..self })
    }

    /// The encoders with blocks of this precision, where they have blocks: [`Vit::with_precision`](crate::encoders::Vit::with_precision).
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        set_precision(self.image.blocks_mut(), precision);
        set_precision(self.text.blocks_mut(), precision);
        self
    }

    /// From now on keeps the states of pictures after the blocks that do not learn, in at most these bytes: the same picture does not pass
    /// these blocks again. No number changes where a picture has the same states in any batch, as on the CPU. Clones share the states.
    ///
    /// Call it when pictures come again unchanged, `augment = "off"`. Call it again, with 0 for none, when a frozen block gets other weights.
    pub fn keep_states(&self, bytes: u64) {
        match &self.image {
            ImageEncoder::Features(_) => {}
            ImageEncoder::Vit(encoder) => encoder.frozen.keep(bytes),
            ImageEncoder::Clip(encoder) => encoder.frozen.keep(bytes),
        }
    }

    /// The encoders with the temperature of their loss bounded, as after each update.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self { contrast: self.contrast.map(Contrast::bounded), ..self }
    }

    /// The encoders with these maps as weights.
    ///
    /// # Errors
    /// If the image encoder takes no features and has no projection, or the text encoder takes no stems and has no projection, or a map
    /// is of another shape.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        let (image, text) = (self.image.with_start(start)?, self.text.with_start(start)?);
        Ok(Self { image, text, ..self })
    }

    /// w̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary, or a caption has no word and the encoder needs one.
    pub fn texts<C: AsRef<[u32]>>(&self, captions: &[C], dropout: TowerDropout) -> Tensor<2> {
        self.text.encode(&self.text.read(captions, None), dropout)
    }
}

/// Rows in the joint space, not of unit length.
fn projected(projection: &Option<Linear>, rows: Tensor<2>) -> Tensor<2> {
    match projection {
        Some(map) => map.forward(rows),
        None => rows,
    }
}

impl JointLayer {
    /// The linear map of an encoder with blocks, if there is one, with random weights.
    fn map(self, [inputs, d]: [usize; 2], seed: u64, device: &Device) -> Result<Option<Linear>> {
        if self == Self::None {
            return Ok(None);
        }
        in_memory("model.embed_dim", table_values(&[inputs, d]))?;
        Ok(Some(Linear::seeded(inputs, d, seed, device)))
    }
}

/// The projection of an encoder with blocks, with a map as weights.
fn started(projection: Option<Linear>, map: &LinearMap, place: &str) -> Result<Option<Linear>> {
    let Some(projection) = projection else {
        let expected = "an encoder with projection = \"linear\"";
        return Err(Error::invalid("a start", expected, "without"));
    };
    let weight = projection.weight.val();
    let (weight, bias) = map.parameters(place, weight.dims(), &weight.device())?;
    Ok(Some(Linear::new(weight, bias)))
}

/// Replaces each word by [`UNKNOWN`] with probability `share`. The result is a function of the seed.
///
/// # Panics
/// If the share is not from 0 to 1.
pub fn drop_words<C: AsRef<[u32]>>(texts: &[C], share: f64, seed: u64) -> Vec<Vec<u32>> {
    assert!((0.0..=1.0).contains(&share), "a share of words from 0 to 1, got {share}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = |words: &[u32]| {
        words.iter().map(|&w| if rng.random::<f64>() < share { UNKNOWN } else { w }).collect()
    };
    texts.iter().map(|t| text(t.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::learning::tests::vit_and_bert;
    use super::*;
    use crate::encoders::ResidualShape;
    use crate::encoders::hf::tests::{Golden, close};
    use crate::host;
    use crate::learn::Images;

    fn encoders() -> Encoders {
        Encoders::open(&ModelConfig::new(8, 6), 5, 20, 7, &Device::flex()).unwrap().0
    }

    /// Mean pooling ignores padding: a caption has the same embedding alone and beside a longer caption.
    #[test]
    fn trap_15_padding_does_not_change_an_embedding() {
        let model = encoders();
        let alone = host(model.texts(&[vec![3, 4]], TowerDropout::OFF));
        let beside = [vec![3, 4], vec![5, 6, 7, 8, 9]];
        let beside = host(model.texts(&beside, TowerDropout::OFF));
        for (a, b) in alone.iter().zip(&beside) {
            assert!((a - b).abs() < 1e-6, "{alone:?} beside {beside:?}");
        }
        assert!((beside[..8].iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn dropout_follows_its_seed_and_share() {
        let model = encoders();
        let tokens = [vec![3, 4, 5]];
        let texts = |d| host(model.texts(&tokens, d));
        let images = |d| host(model.image.encode(Images::Features(&[1.0, 2.0, 3.0, 4.0, 5.0]), d));
        let half = TowerDropout { share: 0.5, words: 0.0, noise: Noise::Seeded(3) };
        assert_ne!(texts(half), texts(TowerDropout::OFF));
        assert_ne!(images(half), images(TowerDropout::OFF));
        assert_eq!((texts(half), images(half)), (texts(half), images(half)));
    }

    #[test]
    fn words_are_dropped_by_share() {
        let texts = [vec![5u32; 4000], vec![6; 4000]];
        assert_eq!(drop_words(&texts, 0.0, 1), texts);
        let dropped = drop_words(&texts, 0.25, 1);
        let count = dropped.concat().iter().filter(|&&w| w == UNKNOWN).count();
        // 8,000 · 0.25 = 2,000, deviation 39.
        assert!((1800..=2200).contains(&count), "{count}");
        assert_eq!(dropped, drop_words(&texts, 0.25, 1));
        assert_ne!(dropped, drop_words(&texts, 0.25, 2));
    }

    #[test]
    fn weights_follow_the_seed() {
        let tokens = [vec![3, 4]];
        let of = |seed| {
            let config = ModelConfig::new(8, 6);
            let (model, _) = Encoders::open(&config, 5, 20, seed, &Device::flex()).unwrap();
            let images = host(
                model.image.encode(Images::Features(&[0.1, 0.2, 0.3, 0.4, 0.5]), TowerDropout::OFF),
            );
            (host(model.texts(&tokens, TowerDropout::OFF)), images)
        };
        assert_eq!(of(7), of(7));
        assert!(of(7).0 != of(8).0 && of(7).1 != of(8).1);
    }

    /// Each size is within its bounds, but together they are more than any address space.
    #[test]
    fn weights_that_no_memory_holds_are_refused() {
        const MOST: usize = 1 << 24;
        let line = |config: &ModelConfig, image_dim, vocabulary| {
            let made = Encoders::open(config, image_dim, vocabulary, 7, &Device::flex());
            made.unwrap_err().to_string()
        };
        let check = |key: &str, line: String| {
            let want = format!("{key}: expected weights that fit the memory, got ");
            assert!(line.starts_with(&want), "{line}");
        };
        let (blocks, features) = (vit_and_bert(), ModelConfig::new(MOST, 6));
        check("model.image", line(&features, MOST, 9));
        let mut deep = features.clone();
        let (input_scale, input_dropout, hidden_dropout, rate_factor) = (1.0, 0.0, 0.0, 1.0);
        let shape =
            ResidualShape { hidden: MOST, input_scale, input_dropout, hidden_dropout, rate_factor };
        deep.image = ImageConfig::Features(FeaturesConfig {
            transform: FeatureTransform::Raw,
            residual: Some(shape),
        });
        check("model.image", line(&deep, 3, 9));
        check("model.text", line(&ModelConfig::new(3, MOST), 3, MOST));
        let mut wide = blocks.clone();
        if let ImageConfig::Vit(VitConfig { weights: Weights::Random(shape), .. }) = &mut wide.image
        {
            shape.width = MOST;
        }
        check("model.image.weights", line(&wide, 3, 9));
        let mut wide = blocks.clone();
        if let TextConfig::Bert(BertConfig { weights: Weights::Random(shape), .. }) = &mut wide.text
        {
            shape.width = MOST;
        }
        check("model.text.weights", line(&wide, 3, 9));
        let mut small = blocks;
        if let TextConfig::Bert(BertConfig { weights: Weights::Random(shape), .. }) =
            &mut small.text
        {
            shape.epsilon = 1e39;
        }
        let epsilon = line(&small, 3, 9);
        let want = "model.text.weights.epsilon: expected at least 0, in f32, got 1000";
        assert!(epsilon.starts_with(want), "{epsilon}");
    }

    /// From `tests/reference/clip.py`: rows of `transformers` for CLIP and SigLIP, through a configuration.
    #[test]
    fn golden_rows_of_published_towers() {
        let device = Device::flex();
        for name in ["clip", "siglip"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip");
            let golden = Golden::open(&folder.join(format!("{name}.safetensors")));
            let towers = |embed_dim| {
                let weights = folder.join(name).display().to_string();
                let text =
                    ClipTextConfig { weights: weights.clone(), gradient_checkpointing: false };
                let augment = Augmentation::Off;
                let image = ClipImageConfig { weights, augment, gradient_checkpointing: true };
                let (image, text) = (ImageConfig::Clip(image), TextConfig::Clip(text));
                let config = ModelConfig { image, text, ..ModelConfig::new(embed_dim, 1) };
                Encoders::open(&config, 0, 2, 0, &device)
            };
            let d = golden.0["text.unit"].0[1];
            let (model, reports) = towers(d).unwrap();
            assert_eq!(reports.len(), 2);
            let (lengths, pixels) = (golden.values("lengths"), golden.values("pixels"));
            let size = golden.0["pixels"].0[2];
            // SigLIP reads padding; without it a caption has the length that the file states.
            let rows = golden.values("ids").chunks(golden.0["ids"].0[1]).zip(lengths);
            let row = |(row, &n): (&[f32], &f32)| {
                let length = if name == "siglip" { row.len() } else { n as usize };
                row[..length].iter().map(|&id| id as u32).collect()
            };
            let captions: Vec<Vec<u32>> = rows.map(row).collect();
            model.text.check(&captions).unwrap();
            let texts = host(model.texts(&captions, TowerDropout::OFF));
            close("text.unit", &texts, golden.values("text.unit"), 1.0, 2e-6);
            let images = Images::Pixels { size, values: pixels };
            model.image.check(images, golden.0["image.unit"].0[0]).unwrap();
            let images = host(model.image.encode(images, TowerDropout::OFF));
            close("image.unit", &images, golden.values("image.unit"), 1.0, 2e-6);

            let line = towers(d + 1).unwrap_err().to_string();
            let want = format!("model.embed_dim: expected {d}, the width of model.image");
            assert!(line.starts_with(&want), "{line}");
            let small = Images::Pixels { size: size - 1, values: &pixels[..3] };
            let line = model.image.check(small, 1).unwrap_err().to_string();
            assert!(line.starts_with(&format!("images: expected pictures of {size} px")), "{line}");
            // A caption without its end, or one shorter than all positions.
            let line = model.text.check(&[[1, 2]]).unwrap_err().to_string();
            assert!(line.starts_with("caption 0 of the batch: expected"), "{line}");
        }
    }
}
