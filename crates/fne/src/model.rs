//! The encoders: of global features or pixels, of words or word pieces.

mod image;
mod text;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::Result;
use itm_core::encoders::TokenBatch;
use itm_core::learn::Images;
use itm_core::weights::LoadReport;
use itm_kernels::Noise;
use itm_kernels::dropout::Mask;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::config::ModelConfig;

pub(crate) use image::Prepared;
pub use image::{ImageEncoder, VitEncoder};
pub use text::{BertEncoder, TextEncoder};

/// Number that stands for words outside the vocabulary; 0 is padding.
pub const UNKNOWN: u32 = 1;

/// Both sides of the model. Online and momentum encoders are two of these.
#[derive(Module, Debug)]
pub struct Encoders {
    /// Images to v̄.
    pub image: ImageEncoder,
    /// Captions to w̄.
    pub text: TextEncoder,
}

/// An encoder, and what was read of published weights.
type Loaded<E> = (E, Option<LoadReport>);

/// Seed of one use of the random generator: `part` tells uses of one seed apart.
pub(crate) fn derive(seed: u64, part: u64) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(part);
    rng.random()
}

/// Which values are dropped. The same in training mode for online and momentum encoders, each with
/// masks of its own; [`Dropout::Off`] is the evaluation mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dropout {
    /// None.
    Off,
    /// Some, by a seed; what is left is scaled up. ViT and BERT drop the shares that their weights name.
    On {
        /// Share of features and of word vectors' values that is set to 0; may be 0.
        share: f64,
        /// Seed of the masks.
        seed: u64,
    },
}

impl Dropout {
    /// Which of a row's values stay: 0 or `1 / (1 − share)` times them.
    fn mask(self, part: u64) -> Option<Mask> {
        match self {
            Self::On { share, seed } if share > 0.0 => Some(Mask::new(share, derive(seed, part))),
            Self::On { .. } | Self::Off => None,
        }
    }

    /// What ViT and BERT need to know.
    fn noise(self, part: u64) -> Noise {
        match self {
            Self::Off => Noise::Off,
            Self::On { seed, .. } => Noise::Seeded(derive(seed, part)),
        }
    }
}

impl Encoders {
    /// Random weights, a function of the seed, or published ones, with a report of each folder read.
    ///
    /// `image_dim` is the width of a row of features; with pictures nobody asks for it.
    ///
    /// # Errors
    /// If published weights are not to be found or not whole, or of another size than the configuration says.
    pub fn open(
        config: &ModelConfig,
        image_dim: usize,
        vocabulary: usize,
        seed: u64,
        device: &Device,
    ) -> Result<(Self, Vec<LoadReport>)> {
        config.check_weights()?;
        let d = config.embed_dim;
        let (image, of_image) = ImageEncoder::open(&config.image, (image_dim, d), seed, device)?;
        let (text, of_text) = TextEncoder::open(&config.text, (vocabulary, d), seed, device)?;
        Ok((Self { image, text }, of_image.into_iter().chain(of_text).collect()))
    }

    /// v̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If the images are of the other kind, of another width or size, or no whole ones.
    pub fn images(&self, images: Images, dropout: Dropout) -> Tensor<2> {
        self.image.encode(images, dropout)
    }

    /// w̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn texts(&self, tokens: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        self.text.encode(tokens, dropout)
    }
}

/// Replaces each word by [`UNKNOWN`] with probability `share`: a function of the seed.
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

    /// Mean pooling leaves padding out: a caption's embedding is the same alone and beside a longer
    /// one.
    #[test]
    fn trap_15_padding_does_not_change_an_embedding() {
        let model = encoders();
        let alone = host(model.texts(&TokenBatch::new(&[vec![3, 4]]), Dropout::Off));
        let beside = TokenBatch::new(&[vec![3, 4], vec![5, 6, 7, 8, 9]]);
        let beside = host(model.texts(&beside, Dropout::Off));
        for (a, b) in alone.iter().zip(&beside) {
            assert!((a - b).abs() < 1e-6, "{alone:?} beside {beside:?}");
        }
        assert!((beside[..8].iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn dropout_follows_its_seed_and_share() {
        let on = |seed| (Dropout::On { share: 0.25, seed }).mask(1).unwrap().factors(40_000);
        assert_eq!(on(1), on(1));
        assert_ne!(on(1), on(2));
        let zeros = on(1).iter().filter(|&&f| f == 0.0).count();
        // 40,000 · 0.25 = 10,000, deviation 87.
        assert!((9560..=10440).contains(&zeros), "{zeros}");
        assert!(on(1).iter().all(|&f| f == 0.0 || (f - 4.0 / 3.0).abs() < 1e-6));
        assert!((Dropout::On { share: 0.0, seed: 1 }).mask(1).is_none());
        assert!(Dropout::Off.mask(1).is_none());

        let model = encoders();
        let tokens = TokenBatch::new(&[vec![3, 4, 5]]);
        let texts = |d| host(model.texts(&tokens, d));
        let images = |d| host(model.images(Images::Features(&[1.0, 2.0, 3.0, 4.0, 5.0]), d));
        let half = Dropout::On { share: 0.5, seed: 3 };
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
        let tokens = TokenBatch::new(&[vec![3, 4]]);
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
