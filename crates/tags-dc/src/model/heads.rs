//! The four heads. Does the text match? Which word is here? Does this word match? Which word should be here?

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::encoders::BertShape;
use itm_core::host;
use itm_kernels::{Activation, LayerNorm, Linear, matmul};

use super::start::parameter;

/// Maps rows to one logit per word piece. The decoder is the word embedding table.
///
/// ```text
/// logits = norm(gelu(W x + b)) Eᵀ + c
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | W, b | `dense` | d → d |
/// | c | `bias` | `[vocabulary]` |
/// | E | the word embedding table, an argument and not part of the head | `[vocabulary, d]` |
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
    pub(super) fn new(text: &BertShape, device: &Device) -> Self {
        let d = text.width;
        Self {
            dense: Linear::seeded(d, d, 0, device),
            norm: LayerNorm::new(d, text.epsilon, device),
            bias: Param::from_tensor(Tensor::zeros([text.vocabulary], device)),
        }
    }

    /// `[n, d]` and `[vocabulary, d]` to `[n, vocabulary]`.
    pub(super) fn forward(&self, rows: Tensor<2>, words: Tensor<2>) -> Tensor<2> {
        let rows = self.norm.forward(Activation::Gelu.of(self.dense.forward(rows)));
        matmul(rows, words.transpose()) + self.bias.val().unsqueeze()
    }
}

/// A copy with the same values in new parameters.
pub(super) fn copied<M: Module>(module: &M) -> M {
    module.clone().map(&mut Fresh)
}

/// Puts a new parameter in the place of each. An optimiser takes a clone of a parameter for the same parameter.
struct Fresh;

impl ModuleMapper for Fresh {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        parameter(host(param.val().inner()), &param)
    }
}

/// One output of a linear map, as a new linear map.
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

/// A position of a text in a batch; 0 is `[CLS]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Row of the batch.
    pub row: usize,
    /// Position in the row's text.
    pub position: usize,
}
