//! Recurrent units as burn backend extensions.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};

use crate::composed::gru as composed;

/// Recurrent units as one node of the autodiff graph; equations in [`crate::gru`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
#[allow(clippy::too_many_arguments)] // the macro needs every tensor spelt out
pub(crate) trait GruOps: Backend {
    /// The states of a forward unit, `[b, l, h]`.
    fn gru(
        x: FloatTensor<Self>,
        w_ih: FloatTensor<Self>,
        w_hh: FloatTensor<Self>,
        b_ih: FloatTensor<Self>,
        b_hh: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self>;

    /// The states of a forward and a reverse unit, `[b, l, 2h]`.
    fn bigru(
        x: FloatTensor<Self>,
        w_ih_ahead: FloatTensor<Self>,
        w_hh_ahead: FloatTensor<Self>,
        b_ih_ahead: FloatTensor<Self>,
        b_hh_ahead: FloatTensor<Self>,
        w_ih_reverse: FloatTensor<Self>,
        w_hh_reverse: FloatTensor<Self>,
        b_ih_reverse: FloatTensor<Self>,
        b_hh_reverse: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self>;
}

impl<B: GruKernels> GruOps for B {
    fn gru(
        x: FloatTensor<Self>,
        w_ih: FloatTensor<Self>,
        w_hh: FloatTensor<Self>,
        b_ih: FloatTensor<Self>,
        b_hh: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self> {
        B::states(x, vec![w_ih, w_hh, b_ih, b_hh], lengths)
    }

    #[rustfmt::skip]
    fn bigru(
        x: FloatTensor<Self>,
        w_ih_ahead: FloatTensor<Self>,
        w_hh_ahead: FloatTensor<Self>,
        b_ih_ahead: FloatTensor<Self>,
        b_hh_ahead: FloatTensor<Self>,
        w_ih_reverse: FloatTensor<Self>,
        w_hh_reverse: FloatTensor<Self>,
        b_ih_reverse: FloatTensor<Self>,
        b_hh_reverse: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self> {
        let weights = vec![
            w_ih_ahead, w_hh_ahead, b_ih_ahead, b_hh_ahead,
            w_ih_reverse, w_hh_reverse, b_ih_reverse, b_hh_reverse,
        ];
        B::states(x, weights, lengths)
    }
}

/// Operations that a backend may have kernels for; without kernels they are composed of the backend's operations.
///
/// `weights` are w_ih, w_hh, b_ih, b_hh: once for a forward unit, twice for a forward and a reverse unit. Besides the
/// states, `states_saving` returns one tensor per direction, which only `backward` reads.
pub(crate) trait GruKernels: Backend {
    /// The states, `[b, l, h]` or `[b, l, 2h]`.
    fn states(
        x: FloatTensor<Self>,
        weights: Vec<FloatTensor<Self>>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self> {
        Self::states_saving(x, weights, lengths).0
    }

    /// The states and the gates.
    fn states_saving(
        x: FloatTensor<Self>,
        weights: Vec<FloatTensor<Self>>,
        lengths: Vec<usize>,
    ) -> (FloatTensor<Self>, Vec<FloatTensor<Self>>) {
        composed::saving::<Self>(x, weights, &lengths)
    }

    /// Gradients of x and the weights, in this order, from the gradient of the states.
    fn backward(
        x: FloatTensor<Self>,
        weights: Vec<FloatTensor<Self>>,
        states: FloatTensor<Self>,
        gates: Vec<FloatTensor<Self>>,
        grad: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> Vec<FloatTensor<Self>> {
        composed::backward::<Self>(x, weights, states, gates, grad, &lengths)
    }
}

super::composed_elsewhere!(GruKernels);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::GruKernels;
    use crate::gru::{self, GruWeights, Packing};
    use crate::ops::flex::{slices, tensor, values};

    impl GruKernels for Flex {
        fn states(x: FlexTensor, weights: Vec<FlexTensor>, lengths: Vec<usize>) -> FlexTensor {
            let ([b, l, _], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
            let packing = Packing::new(&lengths, l);
            let states = with(&x, &weights, |x, units| gru::forward(x, units, &packing));
            tensor(states, [b, l, weights.len() / 4 * h])
        }

        fn states_saving(
            x: FlexTensor,
            weights: Vec<FlexTensor>,
            lengths: Vec<usize>,
        ) -> (FlexTensor, Vec<FlexTensor>) {
            let ([b, l, _], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
            let packing = Packing::new(&lengths, l);
            let (states, gates) =
                with(&x, &weights, |x, units| gru::forward_saving(x, units, &packing));
            let gates = gates.into_iter().map(|g| tensor(g, [packing.rows(), 4 * h])).collect();
            (tensor(states, [b, l, weights.len() / 4 * h]), gates)
        }

        fn backward(
            x: FlexTensor,
            weights: Vec<FlexTensor>,
            states: FlexTensor,
            gates: Vec<FlexTensor>,
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
                all.push(tensor(d.w_ih, [i, 3 * h]));
                all.push(tensor(d.w_hh, [h, 3 * h]));
                all.push(tensor(d.b_ih, [3 * h]));
                all.push(tensor(d.b_hh, [3 * h]));
            }
            all
        }
    }

    /// Calls `f` with the input and the weights of each unit.
    fn with<T>(
        x: &FlexTensor,
        weights: &[FlexTensor],
        f: impl FnOnce(&[f32], &[GruWeights]) -> T,
    ) -> T {
        values([x], |[x]| {
            slices(weights, |weights| {
                let each = weights.as_chunks().0.iter();
                let unit =
                    each.map(|&[w_ih, w_hh, b_ih, b_hh]| GruWeights { w_ih, w_hh, b_ih, b_hh });
                f(x, &unit.collect::<Vec<_>>())
            })
        })
    }
}

impl<B: GruKernels, C: CheckpointStrategy> GruKernels for Autodiff<B, C> {
    fn states(
        x: FloatTensor<Self>,
        weights: Vec<FloatTensor<Self>>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self> {
        match weights.len() {
            4 => recorded::<B, C, 5>(x, weights, lengths),
            _ => recorded::<B, C, 9>(x, weights, lengths),
        }
    }
}

/// The unit as one node of the autodiff graph. `N` is the number of its operands, with x first.
fn recorded<B: GruKernels, C: CheckpointStrategy, const N: usize>(
    x: FloatTensor<Autodiff<B, C>>,
    weights: Vec<FloatTensor<Autodiff<B, C>>>,
    lengths: Vec<usize>,
) -> FloatTensor<Autodiff<B, C>> {
    #[derive(Debug)]
    struct Gru;

    /// Operands, states, gates, lengths.
    type State<B> = (Vec<FloatTensor<B>>, FloatTensor<B>, Vec<FloatTensor<B>>, Vec<usize>);

    impl<B: GruKernels, const N: usize> Backward<B, N> for Gru {
        type State = State<B>;

        fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
            let grad = grads.consume::<B>(&ops.node);
            let (operands, states, gates, lengths) = ops.state;
            let (x, weights) = split(operands);
            let all = B::backward(x, weights, states, gates, grad, lengths);
            for (parent, d) in ops.parents.into_iter().zip(all) {
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, d);
                }
            }
        }
    }

    let operands: Vec<_> = [x].into_iter().chain(weights).collect();
    let nodes: Vec<_> = operands.iter().map(|t| t.node()).collect();
    let Ok(nodes) = <[_; N]>::try_from(nodes) else { panic!("not {N} operands") };
    let operands: Vec<FloatTensor<B>> = operands.into_iter().map(|t| t.into_primitive()).collect();
    let (x, weights) = split(operands.clone());
    match Backward::<B, N>::prepare::<C>(Gru, nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (states, gates) = B::states_saving(x, weights, lengths.clone());
            let state = (operands, states.clone(), gates, lengths);
            prep.finish(state, states)
        }
        OpsKind::UnTracked(prep) => prep.finish(B::states(x, weights, lengths)),
    }
}

/// The input and the weights.
fn split<T>(mut operands: Vec<T>) -> (T, Vec<T>) {
    let weights = operands.split_off(1);
    (operands.remove(0), weights)
}
