//! Recurrent units, unit rows and means over real steps as burn backend extensions.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};

use crate::composed;

/// Weights of a [`crate::Gru`], as primitives of a backend.
pub(crate) struct Params<B: Backend> {
    pub(crate) w_ih: FloatTensor<B>,
    pub(crate) w_hh: FloatTensor<B>,
    pub(crate) b_ih: FloatTensor<B>,
    pub(crate) b_hh: FloatTensor<B>,
}

/// What [`FusedOps::gru_backward`] returns, by name.
pub(crate) struct GruGrads<B: Backend> {
    pub(crate) x: FloatTensor<B>,
    pub(crate) w_ih: FloatTensor<B>,
    pub(crate) w_hh: FloatTensor<B>,
    pub(crate) b_ih: FloatTensor<B>,
    pub(crate) b_hh: FloatTensor<B>,
}

/// Operations that a backend may have a kernel for; without one they are composed.
///
/// The `_saving` forms also return what their `_backward` needs; only the two together know its layout.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub trait FusedOps: Backend {
    /// The states of a gated recurrent unit, `[b, l, h]`; see [`crate::gru`].
    fn gru(
        x: FloatTensor<Self>,
        w_ih: FloatTensor<Self>,
        w_hh: FloatTensor<Self>,
        b_ih: FloatTensor<Self>,
        b_hh: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self> {
        composed::gru::<Self>(x, Params { w_ih, w_hh, b_ih, b_hh }, &lengths).0
    }

    /// [`FusedOps::gru`] and its gates.
    fn gru_saving(
        x: FloatTensor<Self>,
        w_ih: FloatTensor<Self>,
        w_hh: FloatTensor<Self>,
        b_ih: FloatTensor<Self>,
        b_hh: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::gru::<Self>(x, Params { w_ih, w_hh, b_ih, b_hh }, &lengths)
    }

    /// Gradients of x, w_ih, w_hh, b_ih, b_hh for the gradient of the states.
    // What the forward pass had and what it gave; the macro needs the tuple spelt out.
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn gru_backward(
        x: FloatTensor<Self>,
        w_ih: FloatTensor<Self>,
        w_hh: FloatTensor<Self>,
        b_ih: FloatTensor<Self>,
        b_hh: FloatTensor<Self>,
        states: FloatTensor<Self>,
        gates: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    ) {
        let params = Params { w_ih, w_hh, b_ih, b_hh };
        let d = composed::gru_backward::<Self>(x, params, states, gates, grad, &lengths);
        (d.x, d.w_ih, d.w_hh, d.b_ih, d.b_hh)
    }

    /// Rows of unit length, `[n, d]`, and their norms, `[n, 1]`.
    fn normalize_rows_saving(x: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::normalize_rows::<Self>(x)
    }

    /// Gradient of the rows for the gradient of the unit rows.
    fn normalize_rows_backward(
        y: FloatTensor<Self>,
        norms: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::normalize_rows_backward::<Self>(y, norms, grad)
    }

    /// `[b, l, w]` to the mean over the real steps, `[b, w]`.
    fn masked_mean(x: FloatTensor<Self>, lengths: Vec<usize>) -> FloatTensor<Self> {
        composed::masked_mean::<Self>(x, &lengths)
    }

    /// Gradient of the sequences, padded to `steps`, for the gradient of the means.
    fn masked_mean_backward(
        grad: FloatTensor<Self>,
        lengths: Vec<usize>,
        steps: usize,
    ) -> FloatTensor<Self> {
        composed::masked_mean_backward::<Self>(grad, &lengths, steps)
    }
}

#[cfg(feature = "tch")]
#[allow(deprecated)] // upstream deprecates the backend, which stays the way to CUDA
impl FusedOps for burn::backend::LibTorch {}

#[cfg(feature = "cube")]
impl FusedOps for burn::backend::Cube {}

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::FusedOps;
    use crate::ops::flex::{tensor, values};
    use crate::{gru, rows};

    impl FusedOps for Flex {
        fn gru(
            x: FlexTensor,
            w_ih: FlexTensor,
            w_hh: FlexTensor,
            b_ih: FlexTensor,
            b_hh: FlexTensor,
            lengths: Vec<usize>,
        ) -> FlexTensor {
            let [b, l, _] = x.shape().dims();
            let [h, _] = w_hh.shape().dims();
            let states = values([&x, &w_ih, &w_hh, &b_ih, &b_hh], |[x, w_ih, w_hh, b_ih, b_hh]| {
                let weights = gru::Weights { w_ih, w_hh, b_ih, b_hh };
                gru::forward(x, &weights, &gru::Packing::new(&lengths, l))
            });
            tensor(states, [b, l, h])
        }

        fn gru_saving(
            x: FlexTensor,
            w_ih: FlexTensor,
            w_hh: FlexTensor,
            b_ih: FlexTensor,
            b_hh: FlexTensor,
            lengths: Vec<usize>,
        ) -> (FlexTensor, FlexTensor) {
            let [b, l, _] = x.shape().dims();
            let [h, _] = w_hh.shape().dims();
            let packing = gru::Packing::new(&lengths, l);
            let (states, gates) =
                values([&x, &w_ih, &w_hh, &b_ih, &b_hh], |[x, w_ih, w_hh, b_ih, b_hh]| {
                    gru::forward_saving(x, &gru::Weights { w_ih, w_hh, b_ih, b_hh }, &packing)
                });
            (tensor(states, [b, l, h]), tensor(gates, [packing.rows(), 4 * h]))
        }

        fn gru_backward(
            x: FlexTensor,
            w_ih: FlexTensor,
            w_hh: FlexTensor,
            b_ih: FlexTensor,
            b_hh: FlexTensor,
            states: FlexTensor,
            gates: FlexTensor,
            grad: FlexTensor,
            lengths: Vec<usize>,
        ) -> (FlexTensor, FlexTensor, FlexTensor, FlexTensor, FlexTensor) {
            let [b, l, i] = x.shape().dims();
            let [h, _] = w_hh.shape().dims();
            let operands = [&x, &w_ih, &w_hh, &b_ih, &b_hh, &states, &gates, &grad];
            let d = values(operands, |[x, w_ih, w_hh, b_ih, b_hh, states, gates, grad]| {
                let weights = gru::Weights { w_ih, w_hh, b_ih, b_hh };
                gru::backward(x, &weights, &gru::Packing::new(&lengths, l), states, gates, grad)
            });
            (
                tensor(d.x, [b, l, i]),
                tensor(d.w_ih, [i, 3 * h]),
                tensor(d.w_hh, [h, 3 * h]),
                tensor(d.b_ih, [3 * h]),
                tensor(d.b_hh, [3 * h]),
            )
        }

        fn normalize_rows_saving(x: FlexTensor) -> (FlexTensor, FlexTensor) {
            let [n, d] = x.shape().dims();
            let (y, norms) = values([&x], |[x]| rows::normalize(x, d));
            (tensor(y, [n, d]), tensor(norms, [n, 1]))
        }

        fn normalize_rows_backward(
            y: FlexTensor,
            norms: FlexTensor,
            grad: FlexTensor,
        ) -> FlexTensor {
            let [n, d] = y.shape().dims();
            let dx = values([&y, &norms, &grad], |[y, norms, grad]| {
                rows::normalize_backward(y, norms, grad)
            });
            tensor(dx, [n, d])
        }

        fn masked_mean(x: FlexTensor, lengths: Vec<usize>) -> FlexTensor {
            let [b, _, w] = x.shape().dims();
            tensor(values([&x], |[x]| rows::masked_mean(x, &lengths, w)), [b, w])
        }

        fn masked_mean_backward(grad: FlexTensor, lengths: Vec<usize>, steps: usize) -> FlexTensor {
            let [b, w] = grad.shape().dims();
            let d = values([&grad], |[grad]| rows::masked_mean_backward(grad, &lengths, steps));
            tensor(d, [b, steps, w])
        }
    }
}

impl<B: FusedOps, C: CheckpointStrategy> FusedOps for Autodiff<B, C> {
    fn gru(
        x: FloatTensor<Self>,
        w_ih: FloatTensor<Self>,
        w_hh: FloatTensor<Self>,
        b_ih: FloatTensor<Self>,
        b_hh: FloatTensor<Self>,
        lengths: Vec<usize>,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Gru;
        /// Inputs, states, gates, lengths.
        type State<B> = ([FloatTensor<B>; 5], FloatTensor<B>, FloatTensor<B>, Vec<usize>);

        impl<B: FusedOps> Backward<B, 5> for Gru {
            type State = State<B>;

            fn backward(
                self,
                ops: Ops<Self::State, 5>,
                grads: &mut Gradients,
                _: &mut Checkpointer,
            ) {
                let grad = grads.consume::<B>(&ops.node);
                let ([x, w_ih, w_hh, b_ih, b_hh], states, gates, lengths) = ops.state;
                let d = B::gru_backward(x, w_ih, w_hh, b_ih, b_hh, states, gates, grad, lengths);
                for (parent, d) in ops.parents.into_iter().zip([d.0, d.1, d.2, d.3, d.4]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, d);
                    }
                }
            }
        }

        let nodes = [x.node(), w_ih.node(), w_hh.node(), b_ih.node(), b_hh.node()];
        let inputs = [x, w_ih, w_hh, b_ih, b_hh].map(|t| t.into_primitive());
        let [x, w_ih, w_hh, b_ih, b_hh] = inputs.clone();
        match Gru.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (states, gates) = B::gru_saving(x, w_ih, w_hh, b_ih, b_hh, lengths.clone());
                prep.finish((inputs, states.clone(), gates, lengths), states)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::gru(x, w_ih, w_hh, b_ih, b_hh, lengths)),
        }
    }

    fn normalize_rows_saving(x: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        #[derive(Debug)]
        struct Normalize;

        impl<B: FusedOps> Backward<B, 1> for Normalize {
            type State = (FloatTensor<B>, FloatTensor<B>);

            fn backward(
                self,
                ops: Ops<Self::State, 1>,
                grads: &mut Gradients,
                _: &mut Checkpointer,
            ) {
                let grad = grads.consume::<B>(&ops.node);
                let (y, norms) = ops.state;
                if let [Some(parent)] = ops.parents {
                    let d = B::normalize_rows_backward(y, norms, grad);
                    grads.register::<B>(parent.id, d);
                }
            }
        }

        let node = x.node();
        let (y, norms) = B::normalize_rows_saving(x.into_primitive());
        let constant = burn::backend::tensor::FloatTensor::<Self>::new(norms.clone());
        match Normalize.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => (prep.finish((y.clone(), norms), y), constant),
            OpsKind::UnTracked(prep) => (prep.finish(y), constant),
        }
    }

    fn masked_mean(x: FloatTensor<Self>, lengths: Vec<usize>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct MaskedMean;

        impl<B: FusedOps> Backward<B, 1> for MaskedMean {
            type State = (Vec<usize>, usize);

            fn backward(
                self,
                ops: Ops<Self::State, 1>,
                grads: &mut Gradients,
                _: &mut Checkpointer,
            ) {
                let grad = grads.consume::<B>(&ops.node);
                let (lengths, steps) = ops.state;
                if let [Some(parent)] = ops.parents {
                    let d = B::masked_mean_backward(grad, lengths, steps);
                    grads.register::<B>(parent.id, d);
                }
            }
        }

        let [_, steps, _] = x.shape().dims();
        let node = x.node();
        let mean = B::masked_mean(x.into_primitive(), lengths.clone());
        match MaskedMean.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((lengths, steps), mean),
            OpsKind::UnTracked(prep) => prep.finish(mean),
        }
    }
}
