//! The plan of False Negative Elimination over given features.

use fne::FneConfig;

use super::encoders::{GruText, Projection};
use super::{Bytes, Sizes};

/// Bytes of a row's training, without its data.
///
/// ```text
/// banks       = 4 · 2K·d + 16 · K                      rows of both sides; numbers of image and caption
/// activations = m · (image + text)                     the encoders that learn, m = min(b, micro_batch) pairs at once
///             + m · (image + text)                     the momentum encoders' forward pass, if there are any
///             + 4 · 5n·d + 40 · b·n                    n = b + K candidates: tables, scores both ways, weights
/// checkpoint  = 2 · the larger file                    both encoders; moments and banks
/// ```
pub(crate) fn plan(config: &FneConfig, sizes: &Sizes) -> Bytes {
    let FneConfig { model, train, sampler } = config;
    let [d, b, k] = [model.embed_dim, train.batch, sampler.bank_size].map(|x| x as u64);
    let image = Projection { features: sizes.features as u64, width: d };
    let text = GruText {
        vocabulary: sizes.vocabulary as u64,
        word_width: model.word_dim as u64,
        hidden: d,
    };
    let weights = Bytes::of_weights(image.weights() + text.weights());
    let banks = 4 * 2 * k * d + 16 * k;
    let copies = if sampler.has_momentum() { 2 } else { 1 };
    let items = b.min(train.micro_batch as u64)
        * (image.activations() + text.activations(sizes.words as u64));
    let n = b + k;
    Bytes {
        momentum: weights.parameters, // held without use where the row has none
        banks,
        activations: copies * items + 4 * 5 * n * d + 40 * b * n,
        checkpoint: 2 * (2 * weights.parameters).max(weights.optimiser + banks),
        ..weights
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use burn::module::Module;
    use burn::tensor::Device;
    use fne::Fne;

    use super::*;
    use crate::config::Config;

    fn config(row: &str) -> FneConfig {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        Config::load(&configs, "fne-scenes").unwrap().row(row).unwrap()
    }

    const SIZES: Sizes = Sizes { features: 200, vocabulary: 150, words: 12, captions: 15_000 };

    /// The formula's weights are those of the model that is built.
    #[test]
    fn weights_are_the_models() {
        let config = config("Full");
        let model = Fne::new(&config, 200, 150, &Device::flex(), 0).unwrap();
        let plan = plan(&config, &SIZES);
        assert_eq!(plan.parameters, 4 * model.online().num_params() as u64);
        assert_eq!(plan.momentum, 4 * model.momentum().num_params() as u64);
    }

    /// By hand for b = 128, K = 1,024, d = 128, e = 64: banks 1,048,576 + 16,384; an image 4 · (1,000 + 512) = 6,048 bytes, a
    /// text 4 · 12 · (384 + 2,176) = 122,880; twice 128 of both 33,005,568; n = 1,152: 2,949,120 + 5,898,240.
    #[test]
    fn golden_full_row_and_without_memory() {
        let full = plan(&config("Full"), &SIZES);
        assert_eq!(full.banks, 1_064_960);
        assert_eq!(full.activations, 33_005_568 + 2_949_120 + 5_898_240);
        // (201 · 128 + 150 · 64 + 384 · 192 + 768) weights; two moments each and the banks are the larger file.
        let parameters = 4 * (25_728 + 9_600 + 73_728 + 768);
        assert_eq!(full.parameters, parameters);
        assert_eq!(full.checkpoint, 2 * (2 * parameters + 1_064_960));
        let without = plan(&config("w/o MMM"), &SIZES);
        assert_eq!(without.banks, 0);
        assert_eq!(without.activations, 16_502_784 + 20 * 128 * 128 + 40 * 128 * 128);
    }
}
