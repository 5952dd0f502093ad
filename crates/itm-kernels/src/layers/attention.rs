//! Self-attention with several heads.

use burn::module::Module;
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor, TensorData};

use super::{Dropout, Linear};
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
    /// On the attention weights.
    pub dropout: Dropout,
}

impl SelfAttention {
    /// # Panics
    /// If the heads do not divide the width.
    pub fn seeded(d: usize, heads: usize, dropout: f64, seed: u64, device: &Device) -> Self {
        assert!(heads > 0 && d.is_multiple_of(heads), "{heads} heads for a width of {d}");
        Self {
            qkv: Linear::seeded(d, 3 * d, random::derive(seed, 0), device),
            out: Linear::seeded(d, d, random::derive(seed, 1), device),
            heads,
            dropout: Dropout::new(dropout),
        }
    }

    /// `keys`: how many positions of each row, from its start, are attended to; all without it.
    ///
    /// # Panics
    /// If the width or the number of counts differs, or a count is 0 or more than `l`.
    pub fn forward(&self, x: Tensor<3>, keys: Option<&[usize]>, noise: Noise) -> Tensor<3> {
        let [b, l, d] = x.dims();
        let (h, w) = (self.heads, d / self.heads);
        let qkv = self.qkv.forward(x).reshape([b, l, 3, h, w]).permute([2, 0, 3, 1, 4]);
        let part = |k: usize| qkv.clone().narrow(0, k, 1).reshape([b, h, l, w]);
        let scores = part(0).matmul(part(1).transpose()) / (w as f64).sqrt();
        let scores = match keys {
            None => scores,
            Some(keys) => {
                let row = |&n: &usize| (0..l).map(move |j| if j < n { 0.0f32 } else { -1e30 });
                let bias: Vec<f32> = keys.iter().flat_map(row).collect();
                scores + Tensor::from_data(TensorData::new(bias, [b, 1, 1, l]), &qkv.device())
            }
        };
        let weights = self.dropout.forward(softmax(scores, 3), noise.part(0)); // [b, h, l, l]
        let mixed = weights.matmul(part(2)).permute([0, 2, 1, 3]).reshape([b, l, d]);
        self.out.forward(mixed)
    }
}
