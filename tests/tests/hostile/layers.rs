//! Layers and encoders.

use burn::module::Param;
use burn::tensor::{Device, Tensor};
use itm_core::data::{Features, WordVectors};
use itm_core::encoders::{
    BagOfWords, Bert, BertShape, BiGruText, DualEncoder, DualShape, GruText, ImagePool,
    InputDropout, PatchGrid, PiecePool, Projection, ResidualShape, TextPool, TokenBatch, Vit,
    VitShape, resize_positions, word_patches,
};
use itm_core::learn::{embed_features, embed_texts};
use itm_core::start::LinearMap;
use itm_kernels::bag::Bags;
use itm_kernels::{
    Activation, AdamOptions, AdamW, BiGru, BlockShape, CrossProducts, Dropout, Gru, LayerNorm,
    Linear, Noise, NormOrder, SelfAttention, TransformerBlock, bag, embedding, masked_mean, matmul,
    normalize_rows, order_similarity, uniform,
};

use crate::HUGE;

pub(crate) fn device() -> Device {
    Device::flex()
}

pub(crate) fn ones<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::ones(shape, &device())
}

fn block() -> BlockShape {
    BlockShape {
        width: 4,
        heads: 2,
        mlp: 4,
        epsilon: 1e-12,
        activation: Activation::Gelu,
        causal: false,
        order: NormOrder::Pre,
        dropout: 0.0,
        attention_dropout: 0.0,
    }
}

fn transformer(shape: BlockShape) -> TransformerBlock {
    TransformerBlock::seeded(&shape, 7, &device())
}

fn bags(id: u32) -> Bags {
    let mut bags = Bags::default();
    bags.push([(id, 1.0)]);
    bags
}

fn gru(sizes: [usize; 3]) -> GruText {
    GruText::new(sizes, TextPool::Mean, 7, &device())
}

fn bigru(vocabulary: usize) -> BiGruText {
    BiGruText::new([vocabulary, 2, 2], 7, &device())
}

fn bert_shape() -> BertShape {
    BertShape {
        vocabulary: 5,
        positions: 3,
        kinds: 1,
        width: 4,
        layers: 1,
        heads: 2,
        mlp: 4,
        ..BertShape::base_uncased()
    }
}

fn vit_shape() -> VitShape {
    VitShape {
        image: [4, 4],
        patch: 2,
        channels: 1,
        width: 4,
        layers: 1,
        heads: 2,
        mlp: 4,
        ..VitShape::base_16_384()
    }
}

fn dual_shape() -> DualShape {
    let mut shape = DualShape::clip_base_32();
    shape.image =
        VitShape { form: shape.image.form, activation: shape.image.activation, ..vit_shape() };
    shape.joint = 4;
    shape.text.vocabulary = 5;
    shape.text.positions = 3;
    shape.text.width = 4;
    shape.text.layers = 1;
    shape.text.heads = 2;
    shape.text.mlp = 4;
    shape.text.end = Some(4);
    shape
}

fn vectors() -> WordVectors {
    WordVectors { width: 2, vocabulary: 4, rows: vec![] }
}

fn residual() -> ResidualShape {
    ResidualShape {
        hidden: 2,
        input_scale: 1.0,
        input_dropout: 0.0,
        hidden_dropout: 0.0,
        rate_factor: 1.0,
    }
}

fn projection() -> Projection {
    Projection::new(2, 3, 7, &device())
}

fn batch(captions: &[&[u32]]) -> TokenBatch {
    TokenBatch::new(captions)
}

/// A batch whose public fields do not fit.
fn torn() -> TokenBatch {
    TokenBatch { ids: vec![1], lengths: vec![HUGE], width: 3 }
}

fn adam() -> AdamOptions {
    AdamOptions { betas: [0.9, 0.999], epsilon: 1e-8, ..AdamOptions::default() }
}

#[test]
fn layers_of_the_kernels() {
    panics! {
        "no memory for a tensor of shape [9223372036854775808, 2]": Linear::seeded(HUGE, 2, 7, &device()),
        "a linear map from 0 to 2 values": Linear::seeded(0, 2, 7, &device()).forward(ones([1, 0])),
        "a linear map from 2 to 0 values": Linear::seeded(2, 0, 7, &device()).forward(ones([1, 2])),
        "input of shape [1, 3] for a linear map from 2": Linear::seeded(2, 3, 7, &device()).forward(ones([1, 3])),
        "a weight of shape [2, 3] with a bias of shape [2]": Linear::new(Param::from_tensor(ones([2, 3])), Param::from_tensor(ones([2]))).forward(ones([1, 2])),
        "no memory for a tensor of shape [9223372036854775808, 2]": uniform([HUGE, 2], 1.0, 7, &device()),
        "no memory for a tensor of shape [1099511627776, 1024]": uniform([1 << 40, 1 << 10], 1.0, 7, &device()),
        "values uniform in ±NaN": uniform([2, 2], f32::NAN, 7, &device()),
        "product of [2, 3] and [2, 3]": matmul(ones([2, 3]), ones([2, 3])),
        "product of [2, 2, 3] and [1, 3, 2]": matmul(ones([2, 2, 3]), ones([1, 3, 2])),
        "product of [2] and [2]": matmul(ones([2]), ones([2])),
        "0 values in rows of 0": normalize_rows(ones([2, 0])),
        "sequences of shape [2, 3, 4] with 1 lengths": masked_mean(ones([2, 3, 4]), &[1]),
        "sequence 0: length 0, not 1 to 3": masked_mean(ones([1, 3, 4]), &[0]),
        "sequence 0: length 4, not 1 to 3": masked_mean(ones([1, 3, 4]), &[4]),
        "0 sequences of width 4": masked_mean(ones([0, 3, 4]), &[]),
        "1 sequences of width 0": masked_mean(ones([1, 3, 0]), &[1]),
        "images of shape [2, 3] against texts of shape [2, 2]": order_similarity(ones([2, 3]), ones([2, 2])),
        "0 values in rows of 0": order_similarity(ones([2, 0]), ones([2, 0])),
        "id 0 is row 2 of a table of 2": embedding(ones([2, 2]), &[2], None),
        "id 0 is row 2 of a table of 2": bag(ones([2, 2]), bags(2)),
        "dropout 1, not in 0 to 1": Dropout::new(1.0),
        "dropout NaN, not in 0 to 1": Dropout::new(f64::NAN),
        "dropout NaN, not in 0 to 1": Dropout { rate: f64::NAN }.forward(ones([2]), Noise::Seeded(7)),
        "dropout -1, not in 0 to 1": Dropout { rate: -1.0 }.forward(ones([2]), Noise::Seeded(7)),
        "a norm of width 0 with ε 0.00001": LayerNorm::new(0, 1e-5, &device()),
        "a norm of width 2 with ε NaN": LayerNorm::new(2, f64::NAN, &device()),
        "a norm of width 2 with ε -1": LayerNorm::new(2, -1.0, &device()),
        "a norm of width 2 with ε 1000": LayerNorm::new(2, 1e39, &device()),
        "input of shape [2, 3] for a norm of width 2": LayerNorm::new(2, 1e-5, &device()).forward(ones([2, 3])),
        "a recurrent unit from 2 to 9223372036854775808 values": Gru::seeded(2, HUGE, 7, &device()),
        "a recurrent unit from 2 to 0 values": Gru::seeded(2, 0, 7, &device()),
        "a recurrent unit from 0 to 2 values": Gru::seeded(0, 2, 7, &device()),
        "input of shape [1, 2, 3] for a unit of width 2": Gru::seeded(2, 2, 7, &device()).forward(ones([1, 2, 3]), &[2]),
        "sequence 0: length 3, not 1 to 2": Gru::seeded(2, 2, 7, &device()).forward(ones([1, 2, 2]), &[3]),
        "sequence 0: length 0, not 1 to 2": Gru::seeded(2, 2, 7, &device()).forward(ones([1, 2, 2]), &[0]),
        "a batch needs at least one sequence": Gru::seeded(2, 2, 7, &device()).forward(ones([0, 2, 2]), &[]),
        "sequences of shape [1, 2, 2] with 0 lengths": BiGru::seeded(2, 2, 7, &device()).forward(ones([1, 2, 2]), &[]),
        "a recurrent unit from 2 to 0 values": BiGru::seeded(2, 0, 7, &device()).forward(ones([1, 2, 2]), &[2]),
        "0 heads for a width of 4": SelfAttention::seeded(4, 0, 0.0, 7, &device()),
        "3 heads for a width of 4": SelfAttention::seeded(4, 3, 0.0, 7, &device()),
        "0 heads for a width of 4": SelfAttention { heads: 0, ..SelfAttention::seeded(4, 2, 0.0, 7, &device()) }.forward(ones([1, 2, 4]), None, Noise::Off),
        "3 heads for a width of 4": SelfAttention { heads: 3, ..SelfAttention::seeded(4, 2, 0.0, 7, &device()) }.forward(ones([1, 2, 4]), None, Noise::Off),
        "0 heads for a width of 4": SelfAttention { heads: 0, ..SelfAttention::seeded(4, 2, 0.0, 7, &device()) }.pool(ones([1, 4]), ones([1, 2, 4]), None),
        "3 heads for a width of 4": SelfAttention { heads: 3, ..SelfAttention::seeded(4, 2, 0.0, 7, &device()) }.pool(ones([1, 4]), ones([1, 2, 4]), None),
        "a linear map from 0 to 0 values": SelfAttention::seeded(0, 1, 0.0, 7, &device()),
        "dropout 1, not in 0 to 1": SelfAttention::seeded(4, 2, 1.0, 7, &device()),
        "input of shape [1, 2, 3] for a linear map from 4": SelfAttention::seeded(4, 2, 0.0, 7, &device()).forward(ones([1, 2, 3]), None, Noise::Off),
        "dropout -1, not in 0 to 1": SelfAttention { dropout: Dropout { rate: -1.0 }, ..SelfAttention::seeded(4, 2, 0.0, 7, &device()) }.forward(ones([1, 2, 4]), None, Noise::Seeded(7)),
        "row 0: 3 keys, not 1 to 2": SelfAttention::seeded(4, 2, 0.0, 7, &device()).forward(ones([1, 2, 4]), Some(&[3]), Noise::Off),
        "counts of keys for input of shape [1, 2, 4]": SelfAttention::seeded(4, 2, 0.0, 7, &device()).forward(ones([1, 2, 4]), Some(&[]), Noise::Off),
        "row 0: 0 keys, not 1 to 0": SelfAttention::seeded(4, 2, 0.0, 7, &device()).forward(ones([1, 0, 4]), None, Noise::Off),
        "queries of shape [2, 4], input of shape [1, 2, 4] for a": SelfAttention::seeded(4, 2, 0.0, 7, &device()).pool(ones([2, 4]), ones([1, 2, 4]), None),
        "queries of shape [1, 3], input of shape [1, 2, 4] for a": SelfAttention::seeded(4, 2, 0.0, 7, &device()).pool(ones([1, 3]), ones([1, 2, 4]), None),
        "row 0: 9 keys, not 1 to 2": SelfAttention::seeded(4, 2, 0.0, 7, &device()).pool(ones([1, 4]), ones([1, 2, 4]), Some(&[9])),
        "row 0: 0 keys, not 1 to 0": SelfAttention::seeded(4, 2, 0.0, 7, &device()).pool(ones([1, 4]), ones([1, 0, 4]), None),
        "3 heads for a width of 4": transformer(BlockShape { heads: 3, ..block() }),
        "a linear map from 4 to 0 values": transformer(BlockShape { mlp: 0, ..block() }).forward(ones([1, 2, 4]), None, Noise::Off),
        "a linear map from 0 to 0 values": transformer(BlockShape { width: 0, ..block() }),
        "dropout NaN, not in 0 to 1": transformer(BlockShape { dropout: f64::NAN, ..block() }),
        "a norm of width 4 with ε NaN": transformer(BlockShape { epsilon: f64::NAN, ..block() }),
        "input of shape [1, 2, 3] for a block of width 4": transformer(block()).forward(ones([1, 2, 3]), None, Noise::Off),
        "row 0: 0 keys, not 1 to 0": transformer(block()).forward(ones([1, 0, 4]), None, Noise::Off),
        "input of shape [1, 0, 4] has no first position": transformer(block()).first(ones([1, 0, 4]), None),
        "input of shape [1, 1, 3] for a norm of width 4": transformer(block()).first(ones([1, 2, 3]), None),
        "positions of shape [2, 4] for input of shape [1, 2, 4]": transformer(block()).one(ones([2, 4]), ones([1, 2, 4]), None),
        "row 0: 9223372036854775808 keys, not 1 to 2": transformer(block()).one(ones([1, 4]), ones([1, 2, 4]), Some(&[HUGE])),
        "images of shape [1, 2, 3] against texts of shape [1, 2,": CrossProducts::new(ones([1, 2, 3]), &[2], ones([1, 2, 4]), &[2]),
        "sequences of shape [1, 2, 3] with 0 lengths": CrossProducts::new(ones([1, 2, 3]), &[], ones([1, 2, 3]), &[2]),
        "sequence 0: length 3, not 1 to 2": CrossProducts::new(ones([1, 2, 3]), &[3], ones([1, 2, 3]), &[2]),
        "sequence 0: length 0, not 1 to 2": CrossProducts::new(ones([1, 2, 3]), &[2], ones([1, 2, 3]), &[0]),
        "images of shape [1, 2, 0] have no value": CrossProducts::new(ones([1, 2, 0]), &[2], ones([1, 2, 0]), &[2]),
        "0 images and 1 texts, not at least one of each": CrossProducts::new(ones([0, 2, 3]), &[], ones([1, 2, 3]), &[2]),
        "1 images and 0 texts, not at least one of each": CrossProducts::new(ones([1, 2, 3]), &[2], ones([0, 2, 3]), &[]),
        "clip of Adam: Some(-1.0), not above 0": AdamW::restore(AdamOptions { clip: Some(-1.0), ..adam() }, &projection(), 1, vec![None]),
        "β₁ of Adam: 1, not in 0 to 1e0": AdamW::new(AdamOptions { betas: [1.0, 0.9], ..adam() }),
        "β₂ of Adam: NaN, not in 0 to 1e0": AdamW::new(AdamOptions { betas: [0.9, f64::NAN], ..adam() }),
        "ε of Adam: NaN, not in 0 to 1.7976931348623157e308": AdamW::new(AdamOptions { epsilon: f64::NAN, ..adam() }),
        "ε of Adam: -1, not in 0 to 1.7976931348623157e308": AdamW::new(AdamOptions { epsilon: -1.0, ..adam() }),
        "momentum NaN, not in 0 to 1": itm_kernels::ema(projection(), &projection(), f64::NAN),
        "momentum 2, not in 0 to 1": itm_kernels::ema(projection(), &projection(), 2.0),
        "parameters of shape [2, 3] and [3, 3]": itm_kernels::ema(projection(), &Projection::new(3, 3, 7, &device()), 0.9),
    }
}

#[test]
fn encoders() {
    panics! {
        "a batch of captions is not empty": TokenBatch::new::<&[u32]>(&[]),
        "caption 1 of the batch has no word": TokenBatch::new(&[&[1][..], &[]]),
        "a caption of 3 words padded to 2": TokenBatch::padded_to(&[&[1, 2, 3]], 2),
        "no memory for 1 captions of 9223372036854775808 words": TokenBatch::padded_to(&[&[1]], HUGE),
        "no memory for 2 captions of 9223372036854775808 words": TokenBatch::padded_to(&[&[1], &[1]], HUGE),
        "no memory for a tensor of shape [9223372036854775808, 2]": gru([HUGE, 2, 2]),
        "a recurrent unit from 2 to 0 values": gru([4, 2, 0]),
        "a recurrent unit from 0 to 2 values": gru([4, 0, 2]),
        "caption 0, word 0: 9 of 4 words": gru([4, 2, 2]).encode(&batch(&[&[9]])),
        "1 words of 1 captions padded to 3": gru([4, 2, 2]).encode(&torn()),
        "vectors of the words of a batch": gru([4, 2, 2]).encode_vectors(ones([3, 2]), &batch(&[&[1]])),
        "input of shape [1, 1, 3] for a unit of width 2": gru([4, 2, 2]).encode_vectors(ones([1, 3]), &batch(&[&[1]])),
        "no memory for a tensor of shape [9223372036854775808, 2]": bigru(HUGE),
        "caption 0, word 0: 4 of 4 words": bigru(4).encode(&batch(&[&[4]])),
        "1 words of 1 captions padded to 3": bigru(4).encode(&torn()),
        "vectors of the words of a batch": bigru(4).states(ones([3, 2]), &batch(&[&[1]])),
        "3 heads for a width of 4": Bert::seeded(&BertShape { heads: 3, ..bert_shape() }, 7, &device()),
        "a norm of width 0 with ε 0.000000000001": Bert::seeded(&BertShape { width: 0, ..bert_shape() }, 7, &device()),
        "5 pieces, 3 positions and 0 kinds of text": Bert::seeded(&BertShape { kinds: 0, ..bert_shape() }, 7, &device()),
        "5 pieces, 9223372036854775808 positions and 1 kinds of": Bert::seeded(&BertShape { positions: HUGE, ..bert_shape() }, 7, &device()),
        "dropout 1.5, not in 0 to 1": Bert::seeded(&BertShape { dropout: 1.5, ..bert_shape() }, 7, &device()),
        "captions of 4 word pieces for 3 positions": Bert::seeded(&bert_shape(), 7, &device()).forward(&batch(&[&[1, 2, 3, 4]]), Noise::Off),
        "caption 0, word 0: 5 of 5 words": Bert::seeded(&bert_shape(), 7, &device()).forward(&batch(&[&[5]]), Noise::Off),
        "1 words of 1 captions padded to 3": Bert::seeded(&bert_shape(), 7, &device()).forward(&torn(), Noise::Off),
        "row 0: 3 keys, not 1 to 2": Bert::seeded(&bert_shape(), 7, &device()).encode(ones([1, 2, 4]), &[3], Noise::Off),
        "input of shape [1, 2, 3] for a width of 4": Bert::seeded(&bert_shape(), 7, &device()).encode_first(ones([1, 2, 3]), &[2]),
        "patch: expected at least 1 pixel, got 0": Vit::seeded(&VitShape { patch: 0, ..vit_shape() }, 7, &device()),
        "images of [4, 4] hold no patch of 5": Vit::seeded(&VitShape { patch: 5, ..vit_shape() }, 7, &device()),
        "0 heads for a width of 4": Vit::seeded(&VitShape { heads: 0, ..vit_shape() }, 7, &device()),
        "a linear map from 0 to 4 values": Vit::seeded(&VitShape { channels: 0, ..vit_shape() }, 7, &device()),
        "a linear map from 4 to 0 values": Vit::seeded(&VitShape { width: 0, ..vit_shape() }, 7, &device()),
        "no memory for [9223372036854775808, 9223372036854775808]": Vit::seeded(&VitShape { image: [HUGE, HUGE], ..vit_shape() }, 7, &device()),
        "patch: expected at least 1 pixel, got 0": VitShape { patch: 0, ..vit_shape() }.grid(),
        "images [1, 2, 4, 4] for VitShape { image: [4, 4],": Vit::seeded(&vit_shape(), 7, &device()).forward(ones([1, 2, 4, 4]), Noise::Off),
        "images [1, 1, 1, 4] for VitShape { image: [4, 4],": Vit::seeded(&vit_shape(), 7, &device()).forward(ones([1, 1, 1, 4]), Noise::Off),
        "images [0, 1, 4, 4] for VitShape { image: [4, 4],": Vit::seeded(&vit_shape(), 7, &device()).forward(ones([0, 1, 4, 4]), Noise::Off),
        "images [1, 1, 1, 1] for VitShape { image: [4, 4],": Vit::seeded(&vit_shape(), 7, &device()).class_row(ones([1, 1, 1, 1])),
        "a linear map from 4 to 0 values": DualEncoder::seeded(&DualShape { joint: 0, ..dual_shape() }, 7, &device()),
        "images [1, 3, 4, 4] for VitShape { image: [4, 4],": DualEncoder::seeded(&dual_shape(), 7, &device()).images(ones([1, 3, 4, 4])),
        "caption 0 of the batch: expected the end piece 4 last,": DualEncoder::seeded(&dual_shape(), 7, &device()).texts(&batch(&[&[1, 2]])),
        "caption 0 of the batch: expected numbers below 5, the": DualEncoder::seeded(&dual_shape(), 7, &device()).texts(&batch(&[&[5]])),
        "1 words of 1 captions padded to 3": DualEncoder::seeded(&dual_shape(), 7, &device()).texts(&torn()),
        "states [1, 1, 2] hold no patch": ImagePool::Patches.pool(ones([1, 1, 2])),
        "states [1, 0, 2] hold no row": ImagePool::Class.pool(ones([1, 0, 2])),
        "states [1, 0, 2] hold no row": ImagePool::All.pool(ones([1, 0, 2])),
        "states [1, 2, 2] of captions [1, 1]": PiecePool::All.pool(ones([1, 2, 2]), &batch(&[&[1]])),
        "1 words of 1 captions padded to 3": PiecePool::Masked.pool(ones([1, 3, 2]), &torn()),
        "1 words of 1 captions padded to 3": PiecePool::Words.pool(ones([1, 3, 2]), &torn()),
        "4 position embeddings for a grid of [2, 3]": resize_positions(ones([4, 2]), [2, 3], [2, 2]),
        "a grid of [2, 2] resized to [0, 2]": resize_positions(ones([4, 2]), [2, 2], [0, 2]),
        "4 position embeddings for a grid of": resize_positions(ones([4, 2]), [HUGE, 2], [2, 2]),
        "no memory to resize a grid of [2, 2] to": resize_positions(ones([4, 2]), [2, 2], [HUGE, 2]),
        "a grid of [0, 2] resized to [2, 2]": resize_positions(ones([0, 2]), [0, 2], [2, 2]),
        "patches: 1 values in rows of 0": word_patches(&[1.0], &[1.0], std::slice::from_ref(&(0..1)), 0),
        "patches: 3 values in rows of 2": word_patches(&[1.0; 3], &[1.0; 2], std::slice::from_ref(&(0..1)), 2),
        "a word of the pieces 0..2 of 1": word_patches(&[1.0; 2], &[1.0; 2], std::slice::from_ref(&(0..2)), 2),
        "a word of the pieces 1..1 of 1": word_patches(&[1.0; 2], &[1.0; 2], std::slice::from_ref(&(1..1)), 2),
        "patches of 0 pixels in a picture of 4": PatchGrid::new(4, 0),
        "patch 0 of 0": PatchGrid::new(1, 2).place(0),
        "patch 0 of 0": PatchGrid::new(1, 2).centre(0),
        "patch 4 of 4": PatchGrid::new(4, 2).place(4),
        "patches of 1 pixels in a picture of 18446744073709551615": PatchGrid::new(usize::MAX, 1).len(),
        "a projection from 0 to 3 values": Projection::new(0, 3, 7, &device()),
        "a projection from 2 to 0 values": Projection::new(2, 0, 7, &device()),
        "no memory for a tensor of shape [9223372036854775808, 4]": Projection::new(HUGE, 4, 7, &device()),
        "features are rows of 2": projection().embed(&[1.0; 3], InputDropout::OFF),
        "dropout NaN, not in 0 to 1": projection().embed(&[1.0; 2], InputDropout { share: f64::NAN, noise: Noise::Seeded(1) }),
        "a linear map from 0 to 2 values": BagOfWords::new(0, 2, 7, &device()),
        "a linear map from 2 to 0 values": BagOfWords::new(2, 0, 7, &device()),
        "a batch of captions is not empty": BagOfWords::new(2, 2, 7, &device()).encode::<&[u32]>(&[], InputDropout::OFF),
        "caption 0, term 0: 2 of 2 terms": BagOfWords::new(2, 2, 7, &device()).encode(&[&[2]], InputDropout::OFF),
        "blocks of 0 texts": embed_texts(&[&[1]], 0, |_| ones([1, 2])),
        "rows of shape [2, 2] for 1 texts": embed_texts(&[&[1]], 1, |_| ones([2, 2])),
        "rows of shape [1, 0] for 1 texts": embed_texts(&[&[1], &[1]], 1, |rows| ones([rows.len(), 0])),
        "1 values in rows of 0": embed_features(&Features { dim: 0, values: vec![1.0] }, |_| ones([1, 2])),
        "4 values in rows of 3": embed_features(&Features { dim: 3, values: vec![1.0; 4] }, |_| ones([1, 2])),
        "rows of shape [1, 2] for 3 images": embed_features(&Features { dim: 3, values: vec![1.0; 9] }, |_| ones([1, 2])),
    }
    errors! {
        "map of image features: expected rows of weights as wide": projection().with_map(&LinearMap { weight: vec![], bias: vec![] }),
        "map of image features: expected finite weights, got NaN": projection().with_map(&LinearMap { weight: vec![f32::NAN], bias: vec![1.0] }),
        "map of image features: expected rows of weights as wide": projection().with_map(&LinearMap { weight: vec![1.0; 3], bias: vec![1.0; 2] }),
        "residual.hidden: expected 1 to 16777216, got 0": projection().with_residual(&ResidualShape { hidden: 0, ..residual() }, 1.0, 7),
        "features of a residual: expected a standard deviation": projection().with_residual(&residual(), 0.0, 7),
        "features of a residual: expected a standard deviation": projection().with_residual(&residual(), f64::NAN, 7),
        "residual.rate_factor: expected from 1e-6 to 1e6, got -1": projection().with_residual(&ResidualShape { rate_factor: -1.0, ..residual() }, 1.0, 7),
        "residual.hidden: expected 1 to 16777216, got": projection().with_residual(&ResidualShape { hidden: HUGE, ..residual() }, 1.0, 7),
        "idf of a bag of words: expected numbers above 0, got 0": BagOfWords::new(1, 1, 7, &device()).with_idf(&[0.0]),
        "idf of a bag of words: expected numbers above 0, got NaN": BagOfWords::new(1, 1, 7, &device()).with_idf(&[f32::NAN]),
        "idf of a bag of words: expected idf of 1 terms, got 0": BagOfWords::new(1, 1, 7, &device()).with_idf(&[]),
        "word vectors: expected numbers of words below 4, got 9": bigru(4).with_vectors(&WordVectors { rows: vec![(9, vec![1.0; 2])], ..vectors() }),
        "word vectors, word 1: expected 2 values, got 3": bigru(4).with_vectors(&WordVectors { rows: vec![(1, vec![1.0; 3])], ..vectors() }),
        "word vectors, word 1: expected finite values, got NaN": bigru(4).with_vectors(&WordVectors { rows: vec![(1, vec![f32::NAN; 2])], ..vectors() }),
    }
}
