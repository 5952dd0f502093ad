//! Self-attention with several heads.

use burn::backend::Dispatch;
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::{Dropout, Linear, matmul};
use crate::attention::Heads;
use crate::ops::AttentionOps;
use crate::random::{self, Noise};

/// Scaled dot-product attention of a sequence to itself.
///
/// ```text
/// q, k, v = x W_qkv + b_qkv;   a = softmax(q kᵀ / √(d/h)) per head;   y = (a v) W_out + b_out
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x, y | `x`, result | `[b, l, d]` |
/// | W_qkv | `qkv` | d → 3d: queries, keys, values side by side, heads within each |
/// | W_out | `out` | d → d |
/// | h | `heads` | divides d |
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// d → 3d
    pub qkv: Linear,
    /// d → d
    pub out: Linear,
    /// Number of heads.
    pub heads: usize,
    /// Whether a position attends only to itself and to those before it; false by default.
    pub causal: bool,
    /// Dropout of the attention weights.
    pub dropout: Dropout,
}

impl SelfAttention {
    /// # Panics
    /// If the heads do not divide the width.
    pub fn seeded(d: usize, heads: usize, dropout: f64, seed: u64, device: &Device) -> Self {
        check_heads(heads, d);
        Self {
            qkv: Linear::seeded(d, 3 * d, random::derive(seed, 0), device),
            out: Linear::seeded(d, d, random::derive(seed, 1), device),
            heads,
            causal: false,
            dropout: Dropout::new(dropout),
        }
    }

    /// `keys` is the number of positions of each row, from its start, that are attended to; by default all are. The
    /// products with q, k, v and a have the precision of the map `qkv`.
    ///
    /// # Panics
    /// If the width or the number of counts differs, if a count is 0 or more than `l`, if the heads do not divide the width, if
    /// noise has a seed and the dropout is not in `[0, 1)`, or if a map has precision bf16 on a backend other than the CPU.
    pub fn forward(&self, x: Tensor<3>, keys: Option<&[usize]>, noise: Noise) -> Tensor<3> {
        let heads = self.heads_of(x.dims(), keys, noise);
        let qkv = self.qkv.forward(x).into_dispatch();
        let mixed = <Dispatch as AttentionOps>::self_attention(qkv, heads);
        self.out.forward(Tensor::from_dispatch(mixed))
    }

    /// One query per sequence that attends to its positions without noise: `[b, d]` and `[b, l, d]` to `[b, d]`.
    ///
    /// Keys and values need not be computed, because both are linear maps of `x`:
    ///
    /// ```text
    /// q·k_j = (q W_kᵀ)·x_j + q·b_k;   Σ_j a_j v_j = (Σ_j a_j x_j) W_v + b_v         per head, as Σ_j a_j = 1
    /// ```
    ///
    /// The products of this sum are in f32, also where [`forward`](Self::forward) rounds operands to bf16: only the outer map
    /// keeps its precision.
    ///
    /// # Panics
    /// As [`forward`](Self::forward), or if the queries are not `[b, d]`, or there is no sequence.
    pub fn pool(&self, query: Tensor<2>, x: Tensor<3>, keys: Option<&[usize]>) -> Tensor<2> {
        let (got, dims, width) = (query.dims(), x.dims(), self.out.weight.dims()[0]);
        let [b, l, d] = dims;
        let fits = got == [b, d] && d == width && b > 0;
        assert!(fits, "queries of shape {got:?}, input of shape {dims:?} for a width of {width}");
        let Heads { heads: h, keys, .. } = self.heads_of(dims, keys, Noise::Off);
        let w = d / h;
        let weight = self.qkv.matrix().reshape([d, 3, h, w]);
        let bias = self.qkv.bias.val().reshape([3, h, w]);
        let [of_query, key, value] = [0, 1, 2].map(|part| weight.clone().narrow(1, part, 1));
        let [query_bias, value_bias] = [0, 2].map(|part| bias.clone().narrow(0, part, 1));
        let q = matmul(query, of_query.reshape([d, d])) + query_bias.reshape([1, d]);
        let q = q.reshape([b, h, w]).swap_dims(0, 1); // [h, b, w]
        // q·b_k is the same for every j, so it does not change the softmax.
        let q = matmul(q, key.reshape([d, h, w]).permute([1, 2, 0])).swap_dims(0, 1); // [b, h, d]
        let scores = matmul(q, x.clone().swap_dims(1, 2)) / (w as f64).sqrt(); // [b, h, l]
        let rows = scores.reshape([b * h, l]).into_dispatch();
        let a = Tensor::<2>::from_dispatch(<Dispatch as AttentionOps>::masked_softmax(rows, keys));
        let a = a.reshape([b, h, l]);
        let mixed = matmul(a, x).swap_dims(0, 1); // [h, b, d]
        let mixed = matmul(mixed, value.reshape([d, h, w]).swap_dims(0, 1)); // [h, b, w]
        self.out.forward(mixed.swap_dims(0, 1).reshape([b, d]) + value_bias.reshape([1, d]))
    }

    /// Checks heads, keys and dropout for input of this shape.
    pub(crate) fn heads_of(
        &self,
        [b, l, d]: [usize; 3],
        keys: Option<&[usize]>,
        noise: Noise,
    ) -> Heads {
        check_heads(self.heads, self.out.weight.dims()[0]);
        let keys = keys.map_or_else(|| vec![l; b], <[usize]>::to_vec);
        assert_eq!(keys.len(), b, "counts of keys for input of shape {:?}", [b, l, d]);
        let dropout = match noise {
            Noise::Seeded(seed) if self.dropout.rate != 0.0 => {
                Some((Dropout::new(self.dropout.rate).rate as f32, seed)) // refuses what is no rate
            }
            _ => None,
        };
        let precision = self.qkv.precision;
        let heads = Heads { heads: self.heads, keys, causal: self.causal, dropout, precision };
        heads.check_keys(l);
        heads
    }
}

/// Refuses heads that do not divide the width.
fn check_heads(heads: usize, d: usize) {
    assert!(heads > 0 && d.is_multiple_of(heads), "{heads} heads for a width of {d}");
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use super::super::uniform;
    use super::*;
    use crate::composed;
    use crate::precision::Precision;
    use crate::tests::{close, values};

    const KEYS: [usize; 2] = [7, 4];

    /// Output and gradients: the kernel, and the composed backward pass, against burn's own differentiation.
    #[test]
    fn agrees_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        for dropout in [None, Some((0.3, 9))] {
            let precision = Precision::F32;
            let heads = Heads { heads: 3, keys: KEYS.to_vec(), causal: true, dropout, precision };
            let qkv = uniform([2, 7, 3 * 12], 2.0, 1, &device).require_grad();
            let weights = uniform([2, 7, 12], 1.0, 2, &device);
            let fused = <Dispatch as AttentionOps>::self_attention(
                qkv.clone().into_dispatch(),
                heads.clone(),
            );
            let fused = Tensor::<3>::from_dispatch(fused);
            let composed =
                composed::attention::forward::<Dispatch>(qkv.clone().into_dispatch(), &heads);
            let composed = Tensor::<3>::from_dispatch(composed);
            close("y", fused.clone(), composed.clone());
            let got = qkv.grad(&(fused * weights.clone()).sum().backward()).unwrap();
            let want = qkv.grad(&(composed * weights.clone()).sum().backward()).unwrap();
            close("d_qkv", got, want.clone());
            let plain = |x: Tensor<3>| x.inner().into_dispatch();
            let d = composed::attention::backward::<Dispatch>(
                plain(qkv.clone()),
                plain(weights),
                &heads,
            );
            close("composed d_qkv", Tensor::from_dispatch(d), want);
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_padding_and_dropout_on_its_seed_alone() {
        let device = Device::flex();
        let layer = SelfAttention::seeded(12, 3, 0.5, 1, &device);
        let x = uniform([2, 7, 12], 1.0, 2, &device);
        let y = layer.forward(x.clone(), Some(&KEYS), Noise::Off);
        let alone = layer.forward(x.clone().narrow(0, 1, 1).narrow(1, 0, 4), None, Noise::Off);
        close("alone", alone, y.clone().narrow(0, 1, 1).narrow(1, 0, 4));
        let train = |seed| values(layer.forward(x.clone(), Some(&KEYS), Noise::Seeded(seed)));
        assert!(train(1) == train(1) && train(1) != train(2) && train(1) != values(y));
    }

    #[test]
    #[should_panic(expected = "5 heads for a width of 12")]
    fn heads_that_do_not_divide_the_width_are_refused() {
        let device = Device::flex();
        let layer = SelfAttention { heads: 5, ..SelfAttention::seeded(12, 3, 0.0, 1, &device) };
        layer.forward(uniform([2, 7, 12], 1.0, 2, &device), None, Noise::Off);
    }

    #[test]
    #[should_panic(expected = "0 heads for a width of 12")]
    fn pooling_without_heads_is_refused() {
        let device = Device::flex();
        let layer = SelfAttention { heads: 0, ..SelfAttention::seeded(12, 3, 0.0, 1, &device) };
        let [query, x] = [[2, 1, 12], [2, 7, 12]].map(|shape| uniform(shape, 1.0, 2, &device));
        layer.pool(query.squeeze_dim(1), x, None);
    }

    #[test]
    #[should_panic(expected = "row 1: 0 keys, not 1 to 7")]
    fn a_row_of_padding_alone_is_refused() {
        let device = Device::flex();
        let layer = SelfAttention::seeded(12, 3, 0.0, 1, &device);
        layer.forward(uniform([2, 7, 12], 1.0, 2, &device), Some(&[7, 0]), Noise::Off);
    }
}
