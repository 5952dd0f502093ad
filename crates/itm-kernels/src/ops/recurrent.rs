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

#[cfg(feature = "tch")]
impl GruKernels for burn::backend::LibTorch {}

#[cfg(feature = "cube")]
impl GruKernels for burn::backend::Cube {}

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::GruKernels;
    use crate::gru::{self, Packing, Weights};
    use crate::ops::flex::{tensor, values};

    impl GruKernels for Flex {
        fn states(x: FlexTensor, weights: Vec<FlexTensor>, lengths: Vec<usize>) -> FlexTensor {
            let ([b, l, _], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
            let packing = Packing::new(&lengths, l);
            let (states, width) = with(&x, &weights, |x, weights| match weights {
                [one] => (gru::forward(x, one, &packing), h),
                [one, two] => (gru::bidirectional(x, [one, two], &packing), 2 * h),
                _ => unreachable!("`with` gives one or two"),
            });
            tensor(states, [b, l, width])
        }

        fn states_saving(
            x: FlexTensor,
            weights: Vec<FlexTensor>,
            lengths: Vec<usize>,
        ) -> (FlexTensor, Vec<FlexTensor>) {
            let ([b, l, _], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
            let packing = Packing::new(&lengths, l);
            let (states, gates, width) = with(&x, &weights, |x, weights| match weights {
                [one] => {
                    let (states, gates) = gru::forward_saving(x, one, &packing);
                    (states, vec![gates], h)
                }
                [one, two] => {
                    let (states, gates) = gru::bidirectional_saving(x, [one, two], &packing);
                    (states, gates.into(), 2 * h)
                }
                _ => unreachable!("`with` gives one or two"),
            });
            let gates = gates.into_iter().map(|g| tensor(g, [packing.rows(), 4 * h])).collect();
            (tensor(states, [b, l, width]), gates)
        }

        fn backward(
            x: FlexTensor,
            weights: Vec<FlexTensor>,
            states: FlexTensor,
            gates: Vec<FlexTensor>,
            grad: FlexTensor,
            lengths: Vec<usize>,
        ) -> Vec<FlexTensor> {
            let ([b, l, i], [h, _]) = (x.shape().dims(), weights[1].shape().dims());
            let packing = Packing::new(&lengths, l);
            let gradients = values([&states, &grad], |[states, grad]| {
                with(&x, &weights, |x, weights| match (weights, gates.as_slice()) {
                    ([one], [gates]) => values([gates], |[gates]| {
                        vec![gru::backward(x, one, &packing, states, gates, grad)]
                    }),
                    ([one, two], [first, second]) => values([first, second], |gates| {
                        let both = [*one, *two];
                        let [one, two] = &both;
                        let weights = [one, two];
                        gru::bidirectional_backward(x, weights, &packing, states, gates, grad)
                            .into()
                    }),
                    _ => unreachable!("gates of each direction"),
                })
            });
            let mut all = vec![];
            for d in gradients {
                if !d.x.is_empty() {
                    all.push(tensor(d.x, [b, l, i]));
                }
                all.push(tensor(d.w_ih, [i, 3 * h]));
                all.push(tensor(d.w_hh, [h, 3 * h]));
                all.push(tensor(d.b_ih, [3 * h]));
                all.push(tensor(d.b_hh, [3 * h]));
            }
            all
        }
    }

    /// Calls `f` with the input and the weights of each direction.
    fn with<T>(
        x: &FlexTensor,
        weights: &[FlexTensor],
        f: impl FnOnce(&[f32], &[Weights]) -> T,
    ) -> T {
        match weights {
            [a, b, c, d] => values([x, a, b, c, d], |[x, w_ih, w_hh, b_ih, b_hh]| {
                f(x, &[Weights { w_ih, w_hh, b_ih, b_hh }])
            }),
            [a, b, c, d, e, g, h, i] => {
                values([x, a, b, c, d, e, g, h, i], |[x, a, b, c, d, e, g, h, i]| {
                    f(
                        x,
                        &[
                            Weights { w_ih: a, w_hh: b, b_ih: c, b_hh: d },
                            Weights { w_ih: e, w_hh: g, b_ih: h, b_hh: i },
                        ],
                    )
                })
            }
            _ => panic!("{} weights, not 4 per direction", weights.len()),
        }
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
