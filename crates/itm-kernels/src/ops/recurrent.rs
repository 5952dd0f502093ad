//! Recurrent units as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, slices, tensor, values};
use super::node;
use super::tensors::{Tensors, operands, split};
use crate::composed::gru as composed;
use crate::gru::{self, GruWeights, Packing};

super::operations! {
    /// Recurrent units as one node of the autodiff graph; equations in [`crate::gru`].
    ///
    /// `weights` are w_ih, w_hh, b_ih, b_hh: once for a forward unit, twice for a forward and a reverse unit. Besides
    /// the states, `gru_saving` returns one tensor per direction, which only `gru_backward` reads.
    pub(crate) trait GruOps: Backend {
        /// The states, `[b, l, h]` or `[b, l, 2h]`.
        fn gru(
            x: FloatTensor<Self>,
            #[extension_type] weights: Tensors<Self>,
            lengths: Vec<usize>,
        ) -> FloatTensor<Self> {
            Self::gru_saving(x, weights, lengths).0
        }

        /// The states and the gates.
        fn gru_saving(
            x: FloatTensor<Self>,
            #[extension_type] weights: Tensors<Self>,
            lengths: Vec<usize>,
        ) -> (FloatTensor<Self>, Tensors<Self>) {
            let (states, gates) = composed::saving::<Self>(x, &weights.0, &lengths);
            (states, Tensors(gates))
        }

        /// Gradients of x and the weights, in this order, from the gradient of the states.
        fn gru_backward(
            x: FloatTensor<Self>,
            #[extension_type] weights: Tensors<Self>,
            states: FloatTensor<Self>,
            #[extension_type] gates: Tensors<Self>,
            grad: FloatTensor<Self>,
            lengths: Vec<usize>,
        ) -> Vec<FloatTensor<Self>> {
            composed::backward::<Self>(x, &weights.0, states, gates.0, grad, &lengths)
        }
    }
}

#[cfg(feature = "flex")]
impl GruOps for Flex {
    fn gru(x: FlexTensor, Tensors(weights): Tensors<Flex>, lengths: Vec<usize>) -> FlexTensor {
        let ([b, l, _], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
        let packing = Packing::new(&lengths, l);
        let states = with(&x, &weights, |x, units| gru::forward(x, units, &packing));
        tensor(states, [b, l, weights.len() / 4 * h])
    }

    fn gru_saving(
        x: FlexTensor,
        Tensors(weights): Tensors<Flex>,
        lengths: Vec<usize>,
    ) -> (FlexTensor, Tensors<Flex>) {
        let ([b, l, _], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
        let packing = Packing::new(&lengths, l);
        let (states, gates) =
            with(&x, &weights, |x, units| gru::forward_saving(x, units, &packing));
        let gates = gates.into_iter().map(|g| tensor(g, [packing.rows(), 4 * h])).collect();
        (tensor(states, [b, l, weights.len() / 4 * h]), Tensors(gates))
    }

    fn gru_backward(
        x: FlexTensor,
        Tensors(weights): Tensors<Flex>,
        states: FlexTensor,
        Tensors(gates): Tensors<Flex>,
        grad: FlexTensor,
        lengths: Vec<usize>,
    ) -> Vec<FlexTensor> {
        let ([_, l, i], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
        let packing = Packing::new(&lengths, l);
        let (d_x, units) = values([&states, &grad], |[states, grad]| {
            slices(&gates, |gates| {
                with(&x, &weights, |x, units| {
                    gru::backward(x, units, &packing, states, gates, grad)
                })
            })
        });
        let mut all = vec![tensor(d_x, x.shape())];
        for d in units {
            all.extend([tensor(d.w_ih, [i, 3 * h]), tensor(d.w_hh, [h, 3 * h])]);
            all.extend([d.b_ih, d.b_hh].map(|d| tensor(d, [3 * h])));
        }
        all
    }
}

/// Calls `f` with the input and the weights of each unit.
#[cfg(feature = "flex")]
fn with<T>(
    x: &FlexTensor,
    weights: &[FlexTensor],
    f: impl FnOnce(&[f32], &[GruWeights]) -> T,
) -> T {
    values([x], |[x]| {
        slices(weights, |weights| {
            let each = weights.as_chunks().0.iter();
            let unit = each.map(|&[w_ih, w_hh, b_ih, b_hh]| GruWeights { w_ih, w_hh, b_ih, b_hh });
            f(x, &unit.collect::<Vec<_>>())
        })
    })
}

impl<B: GruOps, C: CheckpointStrategy> GruOps for Autodiff<B, C> {
    fn gru(x: FloatTensor<Self>, weights: Tensors<Self>, lengths: Vec<usize>) -> FloatTensor<Self> {
        match weights.0.len() {
            4 => recorded::<B, C, 5>(x, weights, lengths),
            _ => recorded::<B, C, 9>(x, weights, lengths),
        }
    }
}

/// The unit as one node of the autodiff graph. `N` is the number of its operands, with x first.
fn recorded<B: GruOps, C: CheckpointStrategy, const N: usize>(
    x: FloatTensor<Autodiff<B, C>>,
    weights: Tensors<Autodiff<B, C>>,
    lengths: Vec<usize>,
) -> FloatTensor<Autodiff<B, C>> {
    let (nodes, operands) = operands(x, weights);
    let (x, weights) = split(operands.clone());
    let forward = |tracked: bool| {
        if !tracked {
            return (B::gru(x, weights, lengths), None);
        }
        let (states, gates) = B::gru_saving(x, weights, lengths.clone());
        (states.clone(), Some((operands, states, gates, lengths)))
    };
    node::of::<B, C, _, N>(nodes, forward, |(operands, states, gates, lengths), grad, _| {
        let (x, weights) = split(operands);
        let mut all = B::gru_backward(x, weights, states, gates, grad, lengths).into_iter();
        std::array::from_fn(|_| all.next())
    })
}
