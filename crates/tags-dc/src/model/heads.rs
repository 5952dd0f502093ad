//! The four heads: does the text match, what word stands here, does this word match, what word should stand here.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::host;
use itm_kernels::{LayerNorm, Linear, gelu, random};

/// Rows to a logit for each word piece; the decoder is the table of the word embedding.
///
/// ```text
/// logits = norm(gelu(W x + b)) Eᵀ + c
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | W, b | `dense` | d → d |
/// | c | `bias` | `[vocabulary]` |
/// | E | the word table, handed in: it is no part of the head | `[vocabulary, d]` |
#[derive(Module, Debug)]
pub struct WordHead {
    /// d → d
    pub dense: Linear,
    /// On the transformed rows.
    pub norm: LayerNorm,
    /// One per word piece.
    pub bias: Param<Tensor<1>>,
}

impl WordHead {
    pub(super) fn new(
        d: usize,
        vocabulary: usize,
        epsilon: f64,
        seed: u64,
        device: &Device,
    ) -> Self {
        Self {
            dense: Linear::seeded(d, d, random::derive(seed, 0), device),
            norm: LayerNorm::new(d, epsilon, device),
            bias: Param::from_tensor(Tensor::zeros([vocabulary], device)),
        }
    }

    /// `[n, d]` and `[vocabulary, d]` to `[n, vocabulary]`.
    pub(super) fn forward(&self, rows: Tensor<2>, words: Tensor<2>) -> Tensor<2> {
        let rows = self.norm.forward(gelu(self.dense.forward(rows)));
        rows.matmul(words.transpose()) + self.bias.val().unsqueeze()
    }

    /// The same values as parameters of their own.
    pub(super) fn copied(&self) -> Self {
        let norm = LayerNorm {
            gamma: fresh(&self.norm.gamma),
            beta: fresh(&self.norm.beta),
            epsilon: self.norm.epsilon,
        };
        Self { dense: copied(&self.dense), norm, bias: fresh(&self.bias) }
    }
}

/// The same values as parameters of their own.
pub(super) fn copied(linear: &Linear) -> Linear {
    Linear::new(fresh(&linear.weight), fresh(&linear.bias))
}

/// One output of a linear map as a map of its own.
pub(super) fn output(linear: &Linear, number: usize) -> Linear {
    let [d, _] = linear.weight.dims();
    let device = linear.weight.val().device();
    let weight = host(linear.weight.val().inner().narrow(1, number, 1));
    let bias = host(linear.bias.val().inner().narrow(0, number, 1));
    Linear::new(
        Param::from_tensor(Tensor::from_data(TensorData::new(weight, [d, 1]), &device)),
        Param::from_tensor(Tensor::from_data(TensorData::new(bias, [1]), &device)),
    )
}

/// A clone of a parameter is the same parameter to an optimiser: this one is another.
fn fresh<const D: usize>(param: &Param<Tensor<D>>) -> Param<Tensor<D>> {
    let value = param.val();
    let (shape, device) = (value.dims(), value.device());
    Param::from_tensor(Tensor::from_data(TensorData::new(host(value.inner()), shape), &device))
}

/// A position of a text in a batch; 0 is `[CLS]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Row of the batch.
    pub row: usize,
    /// Position in the row's text.
    pub position: usize,
}
