//! The encoders of images (global features or pixels) and of captions (words or word pieces).

mod image;
mod text;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::Result;
use itm_core::contrastive::Contrast;
use itm_core::encoders::InputDropout;
use itm_core::learn::Images;
use itm_core::start::{InputStatistics, Start};
use itm_core::weights::LoadReport;
use itm_kernels::{Noise, Precision};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::config::ModelConfig;

pub(crate) use image::ImageInput;
pub use image::{ImageEncoder, VitEncoder};
pub(crate) use text::CaptionInput;
pub use text::{BertEncoder, TextEncoder};

/// Number that stands for words outside the vocabulary; 0 is padding.
pub const UNKNOWN: u32 = 1;

/// Both sides of the model. The online and the momentum encoders are two such values.
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
pub(crate) fn derive(seed: u64, part: u64) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(part);
    rng.random()
}

/// Which values are set to 0 in training. The online and the momentum encoders drop the same shares, but with different masks.
/// [`Dropout::Off`] is for evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dropout {
    /// No value.
    Off,
    /// Random values, by a seed. The other values are scaled up. ViT and BERT drop the shares that their weights name.
    On {
        /// Share of the values of features and word vectors that is set to 0; may be 0.
        share: f64,
        /// Share of stems that a bag of words leaves out; may be 0.
        words: f64,
        /// Seed of the masks.
        seed: u64,
    },
}

impl Dropout {
    /// Dropout for an encoder of features.
    fn features(self) -> InputDropout {
        match self {
            Self::On { share, seed, .. } => InputDropout::On { share, seed: derive(seed, 1) },
            Self::Off => InputDropout::Off,
        }
    }

    /// Dropout for a bag of words.
    fn stems(self) -> InputDropout {
        match self {
            Self::On { words, seed, .. } => {
                InputDropout::On { share: words, seed: derive(seed, 5) }
            }
            Self::Off => InputDropout::Off,
        }
    }

    /// Dropout for ViT and BERT.
    fn noise(self, part: u64) -> Noise {
        match self {
            Self::Off => Noise::Off,
            Self::On { seed, .. } => Noise::Seeded(derive(seed, part)),
        }
    }
}

impl Encoders {
    /// Encoders with random weights, a function of the seed, or with published weights. Also returns a report of each folder read.
    ///
    /// `image_dim` is the width of a row of features; it is unused for pictures. `vocabulary` counts words or word pieces.
    ///
    /// # Errors
    /// If a value of the configuration is out of its range, a size is 0, or published weights are missing, damaged, or of another
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
        let (image, of_image) = ImageEncoder::open(&config.image, (image_dim, d), seed, device)?;
        let (text, of_text) = TextEncoder::open(&config.text, (vocabulary, d), seed, device)?;
        let contrast = None;
        Ok((Self { image, text, contrast }, of_image.into_iter().chain(of_text).collect()))
    }

    /// The encoders with statistics of the training data, which are part of the encoders but are not weights.
    ///
    /// # Errors
    /// If the number of idf values differs from the number of stems of a bag of words, or a number is not above 0.
    pub(crate) fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        let Self { image, text, contrast } = self;
        Ok(Self { image: image.with_inputs(inputs)?, text: text.with_inputs(inputs)?, contrast })
    }

    /// The encoders with blocks of this precision, where they have blocks: [`Vit::with_precision`](itm_core::encoders::Vit::with_precision).
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        let image = self.image.with_precision(precision);
        Self { image, text: self.text.with_precision(precision), ..self }
    }

    /// The encoders with these maps as weights.
    ///
    /// # Errors
    /// If the image encoder takes no features or the text encoder no stems, or a map is of another shape.
    pub(crate) fn with_start(self, start: &Start) -> Result<Self> {
        let Self { image, text, contrast } = self;
        Ok(Self { image: image.with_start(start)?, text: text.with_start(start)?, contrast })
    }

    /// v̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If the images are of another kind, width or size than the encoder's, or the values are not whole images.
    pub fn images(&self, images: Images, dropout: Dropout) -> Tensor<2> {
        self.image.encode(images, dropout)
    }

    /// w̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary, or a caption has no word and the encoder needs one.
    pub fn texts<C: AsRef<[u32]>>(&self, captions: &[C], dropout: Dropout) -> Tensor<2> {
        self.captions(&self.text.read(captions, None), dropout)
    }

    /// w̄ of captions that were made ready.
    pub(crate) fn captions(&self, captions: &CaptionInput, dropout: Dropout) -> Tensor<2> {
        self.text.encode(captions, dropout)
    }
}

/// Replaces each word by [`UNKNOWN`] with probability `share`. The result is a function of the seed.
pub(crate) fn drop_words<C: AsRef<[u32]>>(texts: &[C], share: f64, seed: u64) -> Vec<Vec<u32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = |words: &[u32]| {
        words.iter().map(|&w| if rng.random::<f64>() < share { UNKNOWN } else { w }).collect()
    };
    texts.iter().map(|t| text(t.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use itm_core::host;

    use super::*;
    use crate::config::Preset;
    use crate::config::tests::tiny;

    fn encoders() -> Encoders {
        Encoders::open(&tiny(Preset::Default).model, 5, 20, 7, &Device::flex()).unwrap().0
    }

    /// Mean pooling ignores padding: a caption has the same embedding alone and beside a longer caption.
    #[test]
    fn trap_15_padding_does_not_change_an_embedding() {
        let model = encoders();
        let alone = host(model.texts(&[vec![3, 4]], Dropout::Off));
        let beside = [vec![3, 4], vec![5, 6, 7, 8, 9]];
        let beside = host(model.texts(&beside, Dropout::Off));
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
        let images = |d| host(model.images(Images::Features(&[1.0, 2.0, 3.0, 4.0, 5.0]), d));
        let half = Dropout::On { share: 0.5, words: 0.0, seed: 3 };
        assert_ne!(texts(half), texts(Dropout::Off));
        assert_ne!(images(half), images(Dropout::Off));
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
            let config = tiny(Preset::Default).model;
            let (model, _) = Encoders::open(&config, 5, 20, seed, &Device::flex()).unwrap();
            let images =
                host(model.images(Images::Features(&[0.1, 0.2, 0.3, 0.4, 0.5]), Dropout::Off));
            (host(model.texts(&tokens, Dropout::Off)), images)
        };
        assert_eq!(of(7), of(7));
        assert!(of(7).0 != of(8).0 && of(7).1 != of(8).1);
    }
}
