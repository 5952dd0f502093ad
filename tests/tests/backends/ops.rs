//! One entry for every operation of `itm-kernels`.

use burn::tensor::{Device, Tensor};
use itm_core::encoders::{BiGruText, TokenBatch};
use itm_kernels::bag::Bags;
use itm_kernels::cross_attention::{Cosine, KeyWeights, Negative, Norm, Pool, Rule, Side};
use itm_kernels::{
    Activation, AdamOptions, AdamW, BiGru, BlockShape, CrossProducts, DecayRule, Dropout, Gru,
    LayerNorm, Linear, Memory, Noise, NormOrder, SelfAttention, TransformerBlock, bag, ema,
    embedding, masked_mean, matmul, normalize_rows, order_similarity, uniform,
};

use crate::values::{Values, applied, drawn_gradients, learnt, parameters};

/// One operation: its values on a device with autodiff, including gradients.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Largest allowed [deviation](crate::values::deviation) from `cpu`.
    pub(crate) bound: f64,
    pub(crate) run: fn(&Device) -> Values,
}

/// Widths are odd on purpose: they are multiples of no tile and no vector.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "gru",
        bound: 1e-5,
        run: |d| learnt(Gru::seeded(7, 19, 1, d), x([4, 6, 7], d), |m, x| m.forward(x, &LENGTHS)),
    },
    Case {
        name: "gru, both directions",
        bound: 1e-5,
        run: |d| learnt(BiGru::seeded(7, 19, 1, d), x([4, 6, 7], d), |m, x| m.forward(x, &LENGTHS)),
    },
    Case { name: "words of a gru in both directions", bound: 1e-5, run: words },
    Case { name: "cross attention", bound: 2e-5, run: |d| crossed(negative_aware(), d) },
    Case {
        name: "cross attention, no negatives",
        bound: 2e-5,
        run: |d| crossed(Rule { negative: None, ..negative_aware() }, d),
    },
    Case {
        name: "cross attention, no masks",
        bound: 2e-5,
        run: |d| {
            let negative = Some(Negative { masked: false, spread: None });
            let weights = KeyWeights::Softmax { scale: 20.0, leak: 1.0, norm: Norm::None };
            let cosine = Some(Cosine { weights, unit_queries: true });
            crossed(Rule { negative, cosine, ..negative_aware() }, d)
        },
    },
    Case {
        name: "cross attention, words ask",
        bound: 2e-5,
        run: |d| crossed(attended(Side::Words, 9.0, Pool::LogSumExp { scale: 6.0 }), d),
    },
    Case {
        name: "cross attention, regions ask",
        bound: 2e-5,
        run: |d| crossed(attended(Side::Regions, 4.0, Pool::Mean), d),
    },
    Case {
        name: "matmul",
        bound: 1e-5,
        run: |d| {
            applied(x([5, 37], d), |x| {
                matmul(x.clone(), uniform([11, 37], 1.0, 3, &x.device()).transpose())
            })
        },
    },
    Case { name: "normalize_rows", bound: 1e-5, run: |d| applied(x([5, 37], d), normalize_rows) },
    Case {
        name: "normalize_rows, a zero row",
        bound: 1e-5,
        run: |d| {
            let rows = Tensor::<2>::cat(vec![x([2, 37], d), Tensor::zeros([1, 37], d)], 0);
            applied(Tensor::<2>::from_data(rows.into_data(), d), normalize_rows)
        },
    },
    Case {
        name: "order_similarity",
        bound: 1e-5,
        run: |d| {
            // The last text lies inside every image.
            let inside = Tensor::<2>::full([1, 37], -2.0, d);
            let texts = Tensor::<2>::from_data(
                Tensor::cat(vec![uniform([6, 37], 1.0, 8, d), inside], 0).into_data(),
                d,
            );
            let rows = Tensor::<2>::cat(vec![x([5, 37], d), texts], 0);
            applied(Tensor::<2>::from_data(rows.into_data(), d), |rows| {
                order_similarity(rows.clone().narrow(0, 0, 5), rows.narrow(0, 5, 7))
            })
        },
    },
    Case {
        name: "masked_mean",
        bound: 1e-5,
        run: |d| applied(x([4, 6, 37], d), |x| masked_mean(x, &LENGTHS)),
    },
    Case {
        name: "embedding",
        bound: 1e-5,
        run: |d| {
            let ids = [4, 0, 8, 4, 4, 2];
            applied(x([9, 37], d), move |table| embedding(table, &ids, Some(2)))
        },
    },
    Case {
        name: "bag",
        bound: 1e-5,
        run: |d| {
            let mut bags = Bags::default();
            bags.push([(4, 0.5), (0, -2.0), (8, 1.5)]);
            bags.push([]);
            bags.push([(4, 3.0), (2, 0.25)]);
            applied(x([9, 37], d), move |table| bag(table, bags))
        },
    },
    Case {
        name: "linear",
        bound: 1e-5,
        run: |d| learnt(Linear::seeded(130, 71, 1, d), x([3, 43, 130], d), |m, x| m.forward(x)),
    },
    Case {
        name: "layer_norm",
        bound: 1e-5,
        run: |d| learnt(LayerNorm::new(131, 1e-12, d), x([3, 6, 131], d), |m, x| m.forward(x)),
    },
    Case {
        // Rows far from zero, where E[x²] − E[x]² loses all digits.
        name: "layer_norm, mean 100",
        bound: 1e-4, // the input itself has 24 bits: 100 ± 1 leaves 17 of the deviation
        run: |d| {
            let far = Tensor::<3>::from_data((x([3, 6, 131], d) + 100.0).into_data(), d);
            learnt(LayerNorm::new(131, 1e-12, d), far, |m, x| m.forward(x))
        },
    },
    Case {
        name: "gelu",
        bound: 1e-5,
        run: |d| applied(uniform([9, 77], 6.0, 7, d), |x| Activation::Gelu.of(x)),
    },
    Case {
        name: "dropout",
        bound: 1e-6,
        run: |d| {
            let dropout = Dropout::new(0.3);
            applied(x([9, 77], d), |x| dropout.forward(x, Noise::Seeded(5)))
        },
    },
    Case { name: "attention", bound: 1e-5, run: |d| attention(d, None, Noise::Off) },
    Case {
        name: "attention, padded",
        bound: 1e-5,
        run: |d| attention(d, Some(&LENGTHS), Noise::Off),
    },
    Case {
        name: "attention, padded, dropout",
        bound: 1e-5,
        run: |d| attention(d, Some(&LENGTHS), Noise::Seeded(5)),
    },
    Case { name: "block, ViT", bound: 2e-5, run: |d| block(d, NormOrder::Pre, Memory::Keep, None) },
    Case {
        name: "block, BERT",
        bound: 2e-5,
        run: |d| block(d, NormOrder::Post, Memory::Keep, Some(&LENGTHS)),
    },
    Case {
        name: "block, BERT, first position",
        bound: 2e-5,
        run: |d| {
            let block = TransformerBlock::seeded(&shape(NormOrder::Post), 1, d);
            learnt(block, x([4, 6, 39], d), |block, x| block.first(x, Some(&LENGTHS)))
        },
    },
    Case {
        name: "block, ViT, made again",
        bound: 2e-5,
        run: |d| block(d, NormOrder::Pre, Memory::Recompute, None),
    },
    Case {
        name: "block, BERT, made again",
        bound: 2e-5,
        run: |d| block(d, NormOrder::Post, Memory::Recompute, Some(&LENGTHS)),
    },
    Case { name: "adamw, three steps", bound: 1e-5, run: adamw },
    Case {
        name: "moving average",
        bound: 1e-6,
        run: |d| {
            let [target, online] = [1, 2].map(|seed| Gru::seeded(7, 19, seed, d));
            parameters(&ema(target, &online, 0.9))
        },
    },
];

/// Clipping, decay only for matrices, and moments after three gradients.
fn adamw(device: &Device) -> Values {
    let (clip, decayed) = (Some(2.0), DecayRule::Matrices(&[]));
    let options = AdamOptions { weight_decay: 0.1, clip, decayed, ..Default::default() };
    let (mut optimizer, mut gru) = (AdamW::new(options), Gru::seeded(7, 19, 1, device));
    let mut values = vec![];
    for step in 0..3 {
        let grads = drawn_gradients(&gru, 100 * step);
        let (updated, norm) = optimizer.step(gru, grads, 1e-2);
        gru = updated;
        values.push((format!("norm of step {step}"), vec![norm as f32]));
    }
    values.extend(parameters(&gru));
    for (k, moments) in optimizer.moments().enumerate() {
        let moments = moments.unwrap();
        values.push((format!("first moment of parameter {k}"), moments.first));
        values.push((format!("second moment of parameter {k}"), moments.second));
    }
    values
}

fn attention(device: &Device, keys: Option<&[usize]>, noise: Noise) -> Values {
    let attention = SelfAttention::seeded(39, 3, 0.1, 1, device);
    learnt(attention, x([4, 6, 39], device), |m, x| m.forward(x, keys, noise))
}

fn block(device: &Device, order: NormOrder, memory: Memory, keys: Option<&[usize]>) -> Values {
    let block = TransformerBlock { memory, ..TransformerBlock::seeded(&shape(order), 1, device) };
    learnt(block, x([4, 6, 39], device), |m, x| m.forward(x, keys, Noise::Seeded(5)))
}

/// ViT's block is CLIP's here: causal, with a sigmoid in its activation.
fn shape(order: NormOrder) -> BlockShape {
    let (activation, causal) = match order {
        NormOrder::Pre => (Activation::QuickGelu, true),
        NormOrder::Post => (Activation::Gelu, false),
    };
    BlockShape {
        width: 39,
        heads: 3,
        mlp: 101,
        epsilon: 1e-12,
        activation,
        causal,
        order,
        dropout: 0.1,
        attention_dropout: 0.2,
    }
}

/// Captions of unequal lengths; their word vectors are read and changed.
fn words(device: &Device) -> Values {
    let captions = TokenBatch::new(&[&[2, 5, 8][..], &[1, 3, 3, 4, 6, 2], &[4], &[7, 7, 1, 5]]);
    learnt(BiGruText::new([9, 7, 19], 1, device), x([24, 7], device), |m, x| {
        m.states(m.vectors(&captions) + x, &captions)
    })
}

/// All of NAAF's branches.
fn negative_aware() -> Rule {
    let scale = 20.0;
    Rule {
        queries: Side::Words,
        negative: Some(Negative { masked: true, spread: None }),
        cosine: Some(Cosine { weights: KeyWeights::Above { scale }, unit_queries: true }),
        relevance: Some(KeyWeights::Softmax { scale, leak: 0.1, norm: Norm::Queries }),
        pool: Pool::Mean,
    }
}

/// SCAN.
fn attended(queries: Side, scale: f32, pool: Pool) -> Rule {
    let weights = KeyWeights::Softmax { scale, leak: 0.1, norm: Norm::Queries };
    let cosine = Some(Cosine { weights, unit_queries: false });
    Rule { queries, negative: None, cosine, relevance: None, pool }
}

/// Three images and four captions of unequal counts and a threshold each; one query lies below every threshold.
fn crossed(rule: Rule, device: &Device) -> Values {
    applied(x([15 + 24, 37], device), |rows| {
        let rows = normalize_rows(rows);
        let regions = rows.clone().narrow(0, 0, 15).reshape([3, 5, 37]);
        let texts = rows.narrow(0, 15, 24).reshape([4, 6, 37]);
        CrossProducts::new(regions, &[5, 2, 4], texts, &LENGTHS)
            .scores(&rule, &[0.05, -0.1, 0.9, 0.1])
    })
}

/// Real steps of four sequences of six.
const LENGTHS: [usize; 4] = [3, 6, 1, 4];

/// The input.
fn x<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    uniform(shape, 1.0, 7, device)
}
