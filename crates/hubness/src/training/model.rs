//! The encoders: a map of global image features; a GRU over words, or a bag of words.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_core::contrastive::Contrast;
use itm_core::encoders::{BagOfWords, GruText, GruTextShape, InputDropout, Projection, TokenBatch};
use itm_core::learn::check_texts;
use itm_core::scored::Similarity;
use itm_core::start::{InputStatistics, Start};
use itm_core::{Error, Result};
use itm_kernels::{Gru, Linear, matmul, random, uniform};

use super::config::{HalConfig, HalModelConfig, ImageNorm, Initialisation, TextKind};
use crate::losses::order_similarity;

/// Both sides of the model, and how they are compared.
#[derive(Module, Debug)]
pub struct Encoders {
    /// Image features to the joint space.
    pub image: Projection,
    /// Captions to the joint space.
    pub text: TextEncoder,
    /// The loss of a contrastive objective; its temperature may be trained.
    pub contrast: Option<Contrast>,
    /// How embeddings are compared.
    #[module(skip)]
    pub similarity: Similarity,
    /// Whether image embeddings are scaled to unit length.
    #[module(skip)]
    pub image_norm: ImageNorm,
}

/// Captions to the joint space.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // only one exists
pub enum TextEncoder {
    /// Words in their order.
    Gru(GruText),
    /// Sets of stems.
    Bag(BagOfWords),
}

impl TextEncoder {
    fn new(config: &HalModelConfig, vocabulary: usize, seed: u64, device: &Device) -> Self {
        if config.text == TextKind::Bag {
            let mut bag = BagOfWords::new(vocabulary, config.embed_dim, seed, device);
            bag.pooling = config.bag_pooling;
            return Self::Bag(bag);
        }
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
        Self::Gru(text)
    }

    fn encode<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> Tensor<2> {
        match self {
            Self::Gru(gru) => gru.encode(&TokenBatch::new(captions)),
            Self::Bag(bag) => bag.encode(captions, dropout),
        }
    }

    /// Refuses captions that it cannot encode.
    ///
    /// # Errors
    /// If a caption has no word, except for a bag of words.
    pub(super) fn check<C: AsRef<[u32]>>(&self, captions: &[C]) -> Result<()> {
        match self {
            Self::Gru(_) => check_texts(captions, None),
            Self::Bag(_) => Ok(()),
        }
    }
}

impl Encoders {
    /// Random weights: a function of the seed.
    ///
    /// # Errors
    /// If a value of the residual network's shape is out of range.
    pub fn new(
        config: &HalConfig,
        image_dim: usize,
        vocabulary: usize,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let HalConfig { model, loss, .. } = config;
        let (d, part) = (model.embed_dim, |part| random::derive(seed, part));
        let weight = xavier([image_dim, d], [image_dim, d], part(1), device);
        let linear = Linear::new(weight, zeros(d, device));
        let mut image = Projection { linear, residual: None };
        if let Some(shape) = &model.residual {
            image = image.with_residual(shape, 1.0, part(5))?;
        }
        let contrast = loss.contrastive.as_ref().filter(|_| loss.objective.is_contrastive());
        Ok(Self {
            image,
            text: TextEncoder::new(model, vocabulary, seed, device),
            contrast: contrast.map(|options| Contrast::new(options, device)),
            similarity: model.similarity,
            image_norm: model.image_norm,
        })
    }

    /// The encoders with these statistics of the training data, which are not weights.
    pub(super) fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        let image = self.image.scaled_to(inputs.deviation)?;
        let text = match (self.text, &inputs.idf) {
            (TextEncoder::Bag(bag), Some(idf)) => TextEncoder::Bag(bag.with_idf(idf)?),
            (text, _) => text,
        };
        Ok(Self { image, text, ..self })
    }

    /// The encoders with these maps as weights.
    pub(super) fn with_start(self, start: &Start) -> Result<Self> {
        let TextEncoder::Bag(bag) = self.text else {
            let got = "one of words in their order";
            return Err(Error::invalid("a start", "a text encoder of stems", got));
        };
        let text = TextEncoder::Bag(bag.with_map(&start.text)?);
        Ok(Self { image: self.image.with_map(&start.image)?, text, ..self })
    }

    /// Embeddings of image features, `[b, d]`: unit rows unless `image_norm` is off, absolute values for order embeddings.
    ///
    /// # Panics
    /// If `features` does not hold whole rows of the projection's width.
    pub fn images(&self, features: &[f32], dropout: InputDropout) -> Tensor<2> {
        self.ordered(match self.image_norm {
            ImageNorm::Unit => self.image.embed(features, dropout),
            ImageNorm::Off => self.image.unscaled(features, dropout),
        })
    }

    /// Embeddings of captions, `[b, d]`: unit rows, absolute values for order embeddings.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary, or a caption has no word and the encoder needs one.
    pub fn texts<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> Tensor<2> {
        self.ordered(self.text.encode(captions, dropout))
    }

    /// Scores of images against texts, `[n, m]`.
    ///
    /// # Panics
    /// If the widths differ.
    pub fn scores(&self, images: Tensor<2>, texts: Tensor<2>) -> Tensor<2> {
        let (v, w) = (images.dims(), texts.dims());
        assert_eq!(v[1], w[1], "images of shape {v:?} against texts of shape {w:?}");
        match self.similarity {
            Similarity::Cosine => matmul(images, texts.transpose()),
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
