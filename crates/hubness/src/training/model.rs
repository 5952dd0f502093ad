//! The encoders: a linear map of global image features, a GRU over words.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::encoders::{GruText, GruTextShape, Projection, TokenBatch};
use itm_core::scored::Similarity;
use itm_kernels::{Gru, random, uniform};

use super::config::{ImageNorm, Initialisation, ModelConfig};
use crate::losses::order_similarity;

/// Both sides of the model, and how they are compared.
#[derive(Module, Debug)]
pub struct Encoders {
    /// Image features to the joint space.
    pub image: Projection,
    /// Words to the joint space.
    pub text: GruText,
    /// How embeddings are compared.
    #[module(skip)]
    pub similarity: Similarity,
    /// Whether image embeddings are scaled to unit length.
    #[module(skip)]
    pub image_norm: ImageNorm,
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
        let (d, e) = (config.embed_dim, config.word_dim);
        let part = |part| random::derive(seed, part);
        let shape = GruTextShape { vocabulary, word_width: e, hidden: d, pool: config.text_pool };
        let mut text = GruText::new(&shape, part(0), device);
        if config.initialisation == Initialisation::Xavier {
            text.words = xavier([vocabulary, e], [vocabulary, e], part(2), device);
            text.gru = Gru {
                w_ih: xavier([e, 3 * d], [e, d], part(3), device),
                w_hh: xavier([d, 3 * d], [d, d], part(4), device),
                b_ih: zeros(3 * d, device),
                b_hh: zeros(3 * d, device),
            };
        }
        let weight = xavier([image_dim, d], [image_dim, d], part(1), device);
        let linear = Linear { weight, bias: Some(zeros(d, device)) };
        Self {
            image: Projection { linear, residual: None },
            text,
            similarity: config.similarity,
            image_norm: config.image_norm,
        }
    }

    /// Embeddings of image features, `[b, d]`: unit rows, for order embeddings their absolute values.
    ///
    /// # Panics
    /// If `features` does not hold whole rows of the projection's width.
    pub fn images(&self, features: &[f32]) -> Tensor<2> {
        let weight = self.image.linear.weight.val();
        let [dim, _] = weight.dims();
        assert!(features.len().is_multiple_of(dim), "features are rows of {dim}");
        let data = TensorData::new(features.to_vec(), [features.len() / dim, dim]);
        let rows = Tensor::from_data(data, &weight.device());
        self.ordered(match self.image_norm {
            ImageNorm::Unit => self.image.encode(rows),
            ImageNorm::Off => self.image.linear.forward(rows),
        })
    }

    /// Embeddings of captions, `[b, d]`: unit rows, for order embeddings their absolute values.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn texts(&self, tokens: &TokenBatch) -> Tensor<2> {
        self.ordered(self.text.encode(tokens))
    }

    /// Scores of images against texts, `[n, m]`.
    ///
    /// # Panics
    /// If the widths differ.
    pub fn scores(&self, images: Tensor<2>, texts: Tensor<2>) -> Tensor<2> {
        let (v, w) = (images.dims(), texts.dims());
        assert_eq!(v[1], w[1], "images of shape {v:?} against texts of shape {w:?}");
        match self.similarity {
            Similarity::Cosine => images.matmul(texts.transpose()),
            Similarity::Order => order_similarity(images, texts),
        }
    }

    fn ordered(&self, rows: Tensor<2>) -> Tensor<2> {
        match self.similarity {
            Similarity::Cosine => rows,
            Similarity::Order => rows.abs(),
        }
    }
}

/// Uniform in ±√(6 / (in + out)).
fn xavier(shape: [usize; 2], fans: [usize; 2], seed: u64, device: &Device) -> Param<Tensor<2>> {
    let bound = (6.0 / (fans[0] + fans[1]) as f32).sqrt();
    Param::from_tensor(uniform(shape, bound, seed, device))
}

fn zeros(n: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::zeros([n], device))
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;
