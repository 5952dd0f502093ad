//! The encoders: a linear map of global image features, a GRU over words.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::Encoder;
use itm_core::encoders::{GruText, GruTextShape, Projection, TokenBatch};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::config::ModelConfig;

/// Number that stands for words outside the vocabulary; 0 is padding.
pub const UNKNOWN: u32 = 1;

/// Both sides of the model. Online and momentum encoders are two of these.
#[derive(Module, Debug)]
pub struct Encoders {
    /// Image features to v̄.
    pub image: Projection,
    /// Words to w̄.
    pub text: GruText,
}

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
    /// A share of all values, by a seed; what is left is scaled up.
    On {
        /// Share that is set to 0.
        share: f64,
        /// Seed of the masks.
        seed: u64,
    },
}

impl Dropout {
    /// Training mode of a share that may be 0.
    pub fn training(share: f64, seed: u64) -> Self {
        if share > 0.0 { Self::On { share, seed } } else { Self::Off }
    }

    /// Factors of `n` values: 0 or `1 / (1 − share)`.
    fn factors(self, n: usize, part: u64) -> Option<Vec<f32>> {
        let Self::On { share, seed } = self else { return None };
        let mut rng = ChaCha8Rng::seed_from_u64(derive(seed, part));
        let (bound, kept) = ((share * 65536.0) as u16, (1.0 / (1.0 - share)) as f32);
        Some((0..n).map(|_| if rng.random::<u16>() < bound { 0.0 } else { kept }).collect())
    }
}

impl Encoders {
    /// Random weights: a function of the seed.
    pub fn new(
        config: &ModelConfig,
        image_dim: usize,
        vocabulary: usize,
        seed: u64,
        device: &Device,
    ) -> Self {
        let shape = GruTextShape {
            vocabulary,
            word_width: config.word_dim,
            hidden: config.embed_dim,
            dropout: 0.0, // ours has seeds
            pool: config.text_pool,
        };
        Self {
            image: Projection::new(image_dim, config.embed_dim, derive(seed, 1), device),
            text: GruText::new(&shape, derive(seed, 2), device),
        }
    }

    /// v̄ of transformed features, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If `features` does not hold whole rows of the projection's width.
    pub fn images(&self, features: &[f32], dropout: Dropout) -> Tensor<2> {
        let weight = self.image.linear.weight.val();
        let [dim, _] = weight.dims();
        assert!(features.len().is_multiple_of(dim), "features are rows of {dim}");
        let mut rows = features.to_vec();
        if let Some(factors) = dropout.factors(rows.len(), 1) {
            rows.iter_mut().zip(factors).for_each(|(x, f)| *x *= f);
        }
        let shape = [rows.len() / dim, dim];
        self.image.encode(Tensor::from_data(TensorData::new(rows, shape), &weight.device()))
    }

    /// w̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn texts(&self, tokens: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        let vectors = self.text.vectors(tokens);
        let shape = vectors.dims();
        let vectors = match dropout.factors(shape[0] * shape[1], 2) {
            Some(factors) => {
                let device = vectors.device();
                vectors * Tensor::from_data(TensorData::new(factors, shape), &device)
            }
            None => vectors,
        };
        self.text.encode_vectors(vectors, tokens)
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
    use super::*;
    use crate::config::Preset;
    use crate::config::tests::tiny;

    fn encoders() -> Encoders {
        Encoders::new(&tiny(Preset::Default).model, 5, 20, 7, &Device::flex())
    }

    fn host(t: Tensor<2>) -> Vec<f32> {
        t.into_data().try_to_vec().unwrap()
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
        let on = |seed| Dropout::training(0.25, seed).factors(40_000, 1).unwrap();
        assert_eq!(on(1), on(1));
        assert_ne!(on(1), on(2));
        let zeros = on(1).iter().filter(|&&f| f == 0.0).count();
        // 40,000 · 0.25 = 10,000, deviation 87.
        assert!((9560..=10440).contains(&zeros), "{zeros}");
        assert!(on(1).iter().all(|&f| f == 0.0 || (f - 4.0 / 3.0).abs() < 1e-6));
        assert_eq!(Dropout::training(0.0, 1), Dropout::Off);
        assert!(Dropout::Off.factors(3, 1).is_none());

        let model = encoders();
        let tokens = TokenBatch::new(&[vec![3, 4, 5]]);
        let texts = |d| host(model.texts(&tokens, d));
        let images = |d| host(model.images(&[1.0, 2.0, 3.0, 4.0, 5.0], d));
        let half = Dropout::training(0.5, 3);
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
            let model = Encoders::new(&tiny(Preset::Default).model, 5, 20, seed, &Device::flex());
            let images = host(model.images(&[0.1, 0.2, 0.3, 0.4, 0.5], Dropout::Off));
            (host(model.texts(&tokens, Dropout::Off)), images)
        };
        assert_eq!(of(7), of(7));
        assert!(of(7).0 != of(8).0 && of(7).1 != of(8).1);
    }
}
