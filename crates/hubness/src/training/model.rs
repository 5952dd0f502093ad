//! HAL's pair of towers: its random weights, and how rows become embeddings.

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use itm_core::Result;
use itm_core::contrastive::Contrast;
use itm_core::encoders::{BagOfWords, GruText, InputDropout, Projection};
use itm_core::learn::{Images, precision_of, size_within};
use itm_core::scored::Similarity;
use itm_core::towers::{
    BagConfig, CaptionInput, Encoders, FeaturesConfig, GruConfig, ImageConfig, ImageEncoder,
    TextConfig, TextEncoder, TowerDropout,
};
use itm_core::weights::LoadReport;
use itm_kernels::{Gru, Linear, matmul, random, uniform};

use super::config::{HalConfig, HalModelConfig, ImageNorm, Initialisation, Objective};
use crate::losses::order_similarity;

/// Encoders with random weights, a function of the seed, or with published weights. Also a report of each folder read.
pub(super) fn encoders(
    config: &HalConfig,
    image_dim: usize,
    vocabulary: usize,
    seed: u64,
    device: &Device,
) -> Result<(Encoders, Vec<LoadReport>)> {
    let HalConfig { model, loss, .. } = config;
    size_within("vocabulary", vocabulary)?;
    let (towers, d) = (model.towers(), model.embed_dim);
    let (mut encoders, reports) = Encoders::open(&towers, image_dim, vocabulary, seed, device)?;
    precision_of("train.precision", config.train.precision, device)?;
    encoders = encoders.with_precision(config.train.precision);
    // Random weights are HAL's.
    if let ImageConfig::Features(features) = &model.image {
        encoders.image =
            ImageEncoder::Features(features_map(features, [image_dim, d], seed, device)?);
    }
    match &model.text {
        TextConfig::Bag(BagConfig { pooling }) => {
            let mut bag = BagOfWords::new(vocabulary, d, seed, device);
            bag.pooling = *pooling;
            encoders.text = TextEncoder::Bag(bag);
        }
        TextConfig::Gru(gru) => {
            encoders.text = TextEncoder::Gru(gru_text(gru, model, vocabulary, seed, device));
        }
        TextConfig::Bert(_) | TextConfig::Clip(_) => {}
    }
    let contrast = loss.contrastive.as_ref().map(|options| Contrast::new(options, device));
    encoders.contrast = match loss.objective {
        Objective::Sigmoid => contrast,
        Objective::InfoNce => contrast.map(Contrast::without_bias),
        _ => None,
    };
    Ok((encoders.with_learning(&config.train.parts, &towers, seed)?, reports))
}

fn features_map(
    config: &FeaturesConfig,
    shape: [usize; 2],
    seed: u64,
    device: &Device,
) -> Result<Projection> {
    let part = |part| random::derive(seed, part);
    let linear = Linear::new(xavier(shape, shape, part(1), device), zeros(shape[1], device));
    let map = Projection { linear, residual: None };
    match &config.residual {
        Some(shape) => map.with_residual(shape, 1.0, part(5)),
        None => Ok(map),
    }
}

fn gru_text(
    config: &GruConfig,
    model: &HalModelConfig,
    vocabulary: usize,
    seed: u64,
    device: &Device,
) -> GruText {
    let (d, e) = (model.embed_dim, config.word_dim);
    let part = |part| random::derive(seed, part);
    let mut text = GruText::new([vocabulary, e, d], config.pool, part(0), device);
    if model.initialisation == Initialisation::Xavier {
        text.words = xavier([vocabulary, e], [vocabulary, e], part(2), device);
        text.gru = Gru {
            w_ih: xavier([e, 3 * d], [e, d], part(3), device),
            w_hh: xavier([d, 3 * d], [d, d], part(4), device),
            b_ih: zeros(3 * d, device),
            b_hh: zeros(3 * d, device),
        };
    }
    text
}

impl HalModelConfig {
    /// Embeddings of images, `[b, d]`: unit rows unless `image_norm` is off, absolute values for order embeddings.
    ///
    /// # Panics
    /// If the images are of another kind, width or size than the encoder's.
    pub(super) fn images(
        &self,
        model: &Encoders,
        images: Images,
        dropout: InputDropout,
    ) -> Tensor<2> {
        self.ordered(match (&model.image, images) {
            (ImageEncoder::Features(map), Images::Features(values)) => match self.image_norm {
                ImageNorm::Unit => map.embed(values, dropout),
                ImageNorm::Off => map.unscaled(values, dropout),
            },
            (encoder, images) => encoder.encode(images, TowerDropout::inside(dropout)),
        })
    }

    /// Embeddings of captions, `[b, d]`: unit rows, absolute values for order embeddings.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary, or another kind of encoder has read the captions.
    pub(super) fn texts(
        &self,
        model: &Encoders,
        captions: &CaptionInput,
        dropout: InputDropout,
    ) -> Tensor<2> {
        self.ordered(match (&model.text, captions) {
            (TextEncoder::Bag(bag), CaptionInput::Sets(captions)) => bag.encode(captions, dropout),
            (encoder, captions) => encoder.encode(captions, TowerDropout::inside(dropout)),
        })
    }

    /// Scores of images against texts, `[n, m]`.
    ///
    /// # Panics
    /// If the widths differ.
    pub(super) fn scores(&self, images: Tensor<2>, texts: Tensor<2>) -> Tensor<2> {
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
