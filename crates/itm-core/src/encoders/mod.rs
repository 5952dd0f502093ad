//! Encoders that several methods share. [`BagOfWords`], [`GruText`] and [`Projection`] return one row of unit length
//! per item. [`BiGruText`] returns one row per word, [`Vit`] and [`Bert`] one row per patch or word piece. [`DualEncoder`] is
//! CLIP or SigLIP, [`SentenceEncoder`] a folder of sentence-transformers, `Embedder` (feature `images`) a folder of any of them.

mod bag_of_words;
mod bert;
mod bigru_text;
mod dual;
mod embed;
#[cfg(feature = "images")]
mod embedder;
mod given;
#[cfg(test)]
mod golden;
mod gru_text;
pub(crate) mod hf;
mod input_dropout;
mod pool;
mod positions;
mod projection;
mod residual;
mod sentence;
mod tokens;
mod vit;
mod word_patches;

use burn::module::Param;
use burn::tensor::Tensor;
use itm_kernels::{Noise, Precision, TransformerBlock};

use crate::interrupt;

pub use bag_of_words::BagOfWords;
pub use bert::{Bert, BertShape};
pub use bigru_text::{BiGruText, unit_rows};
pub use dual::{
    DualEncoder, DualFamily, DualLayout, DualPieces, DualShape, ImageTower, TextTower,
    TextTowerShape,
};
pub(crate) use embed::BLOCK;
pub use embed::{embed_features, embed_texts};
#[cfg(feature = "images")]
pub use embedder::Embedder;
pub use gru_text::{GruText, TextPool};
pub use input_dropout::InputDropout;
pub use pool::{ImagePool, PiecePool};
pub use positions::resize_positions;
pub use projection::Projection;
pub use residual::{Residual, ResidualShape};
pub use sentence::SentenceEncoder;
pub(crate) use sentence::SentenceFolder;
pub use tokens::TokenBatch;
pub(crate) use vit::EarlyStates;
#[cfg(feature = "images")]
pub(crate) use vit::pixels;
pub use vit::{Vit, VitForm, VitShape};
pub use word_patches::{PatchGrid, Places, word_patches};

/// Sets the precision of the products of blocks.
pub(crate) fn set_precision(blocks: &mut [TransformerBlock], precision: Precision) {
    blocks.iter_mut().for_each(|block| *block = block.clone().with_precision(precision));
}

/// Puts the low-rank changes of blocks into their weights.
fn merge(blocks: &mut [TransformerBlock]) {
    for linear in blocks.iter_mut().flat_map(TransformerBlock::linears_mut) {
        linear.weight = Param::from_tensor(linear.matrix().detach());
        linear.changes.clear();
    }
}

/// The states after some blocks, of which `first` were computed before. A block's noise is that of its number.
fn through(
    blocks: &[TransformerBlock],
    first: usize,
    mut states: Tensor<3>,
    keys: Option<&[usize]>,
    noise: Noise,
) -> Tensor<3> {
    for (block, part) in blocks.iter().zip(1..).skip(first) {
        interrupt::check();
        states = block.forward(states, keys, noise.part(part));
    }
    states
}

/// Number of values of a table. No product of sizes that fit 64 bits wraps unnoticed: it stays at the largest number.
pub(crate) fn table_values(sizes: &[usize]) -> u128 {
    sizes.iter().fold(1, |all, &n| all.saturating_mul(n as u128))
}

/// Number of values of some transformer blocks of width d and hidden width m.
fn block_values(layers: usize, d: usize, m: usize) -> u128 {
    table_values(&[layers, 4, d, d]).saturating_add(table_values(&[layers, 2, d, m]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use burn::module::{Module, Param};
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::{AllNegatives, Block, ema, host, triplet};

    type Golden = BTreeMap<String, Vec<f32>>;

    const CAPTIONS: [&[u32]; 3] = [&[2, 5], &[1, 3, 3, 4], &[4]];

    fn golden() -> Golden {
        serde_json::from_str(include_str!("../../tests/golden/encoders.json")).unwrap()
    }

    fn tensor<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
    }

    fn close(name: &str, got: Vec<f32>, want: &[f32]) {
        assert_eq!(got.len(), want.len(), "{name}");
        let error =
            got.iter().zip(want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap();
        assert!(error < 3e-6, "{name} is off by {error:e}");
    }

    /// V, e and d.
    const SIZES: [usize; 3] = [6, 3, 5];

    /// The encoders with the weights of the golden file.
    fn models(g: &Golden, pool: TextPool, device: &Device) -> (Projection, GruText) {
        let mut images = Projection::new(4, 5, 0, device);
        images.linear.weight = Param::from_tensor(tensor(&g["weight"], [4, 5], device));
        images.linear.bias = Param::from_tensor(tensor(&g["bias"], [5], device));
        let mut texts = GruText::new(SIZES, pool, 0, device);
        texts.words = Param::from_tensor(tensor(&g["words"], [6, 3], device));
        texts.gru.w_ih = Param::from_tensor(tensor(&g["w_ih"], [3, 15], device));
        texts.gru.w_hh = Param::from_tensor(tensor(&g["w_hh"], [5, 15], device));
        texts.gru.b_ih = Param::from_tensor(tensor(&g["b_ih"], [15], device));
        texts.gru.b_hh = Param::from_tensor(tensor(&g["b_hh"], [15], device));
        (images, texts)
    }

    /// Embeddings, loss and the gradient of every weight match `tests/reference/encoders.py` (double precision, complex
    /// steps).
    #[test]
    fn golden_from_captions_and_features_to_the_loss() {
        let (g, device) = (golden(), Device::flex().autodiff());
        for (name, pool) in [("mean", TextPool::Mean), ("last", TextPool::Last)] {
            let (images, texts) = models(&g, pool, &device);
            let v = images.embed(&g["x"], InputDropout::OFF);
            let w = texts.encode(&TokenBatch::new(&CAPTIONS));
            close("images", host(v.clone()), &g["images"]);
            close(name, host(w.clone()), &g[&format!("{name}.texts")]);

            let s = v.matmul(w.transpose());
            let i2t = triplet(&Block::in_batch(s.clone()), &mut AllNegatives, 0.3).sum();
            let t2i = triplet(&Block::in_batch(s.transpose()), &mut AllNegatives, 0.3).sum();
            let loss = i2t + t2i;
            close("loss", vec![loss.clone().into_scalar::<f32>()], &g[&format!("{name}.loss")]);

            let grads = loss.backward();
            let check = |weight: &str, got: Option<Vec<f32>>| {
                close(weight, got.expect(weight), &g[&format!("{name}.d_{weight}")]);
            };
            check("weight", images.linear.weight.val().grad(&grads).map(host));
            check("bias", images.linear.bias.val().grad(&grads).map(host));
            check("words", texts.words.val().grad(&grads).map(host));
            check("w_ih", texts.gru.w_ih.val().grad(&grads).map(host));
            check("w_hh", texts.gru.w_hh.val().grad(&grads).map(host));
            check("b_ih", texts.gru.b_ih.val().grad(&grads).map(host));
            check("b_hh", texts.gru.b_hh.val().grad(&grads).map(host));
        }
    }

    /// FNE trap 15: a caption has the same embedding alone and beside a longer caption.
    #[test]
    fn padding_changes_no_embedding() {
        let device = Device::flex();
        for pool in [TextPool::Mean, TextPool::Last, TextPool::Max] {
            let model = GruText::new(SIZES, pool, 3, &device);
            let together = host(model.encode(&TokenBatch::new(&CAPTIONS)));
            let alone = CAPTIONS.map(|c| host(model.encode(&TokenBatch::new(&[c]))));
            close("alone", alone.concat(), &together);
            for row in together.chunks(5) {
                assert!((row.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
    }

    /// FNE trap 16: a momentum copy gives the same embedding. Trap 9: an update towards equal weights changes them only
    /// by rounding.
    #[test]
    fn a_momentum_copy_gives_the_same_embedding() {
        let online = GruText::new(SIZES, TextPool::Mean, 3, &Device::flex().autodiff());
        let batch = TokenBatch::new(&CAPTIONS);
        let embedding = host(online.encode(&batch));
        let momentum = online.valid();
        assert_eq!(host(momentum.encode(&batch)), embedding);
        let momentum = ema(momentum, &online, 0.995);
        close("after an update", host(momentum.encode(&batch)), &embedding);
    }

    #[test]
    fn initial_weights_depend_on_the_seed_alone() {
        let device = Device::flex();
        let text = |seed| host(GruText::new(SIZES, TextPool::Mean, seed, &device).words.val());
        let image = |seed| host(Projection::new(4, 5, seed, &device).linear.weight.val());
        assert!(text(1) == text(1) && image(1) == image(1));
        assert!(text(1) != text(2) && image(1) != image(2));
        assert!(image(1).iter().all(|w| w.abs() <= 0.5) && image(1).iter().any(|w| w.abs() > 0.3));
    }

    #[test]
    #[should_panic(expected = "caption 1, word 0: 6 of 6 words")]
    fn a_word_outside_the_vocabulary_is_named() {
        let model = GruText::new(SIZES, TextPool::Mean, 3, &Device::flex());
        model.encode(&TokenBatch::new(&[&[5][..], &[6]]));
    }

    #[test]
    #[should_panic(expected = "features are rows of 4")]
    fn features_of_another_width_are_refused() {
        Projection::new(4, 5, 0, &Device::flex()).embed(&[0.0; 6], InputDropout::OFF);
    }
}
