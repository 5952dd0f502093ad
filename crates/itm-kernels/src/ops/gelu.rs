//! GELU as a burn backend extension.

use std::marker::PhantomData;

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::retro_forward::RetroForward;
use burn::backend::autodiff::checkpoint::state::BackwardStates;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};

/// GELU in its exact form; see [`crate::gelu`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait GeluOps: Backend {
    /// `x Φ(x)`
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        composed::<Self>(x)
    }

    /// The gradient of x from the gradient of y.
    fn fused_gelu_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        composed_backward::<Self>(x, grad)
    }
}

/// `Φ(x)`
fn distribution<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let erf = B::float_erf(B::float_mul_scalar(x, std::f64::consts::FRAC_1_SQRT_2.into()));
    B::float_mul_scalar(B::float_add_scalar(erf, 1.0f32.into()), 0.5f32.into())
}

pub(crate) fn composed<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    B::float_mul(x.clone(), distribution::<B>(x))
}

/// `g (Φ(x) + x φ(x))`
pub(crate) fn composed_backward<B: Backend>(
    x: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let square = B::float_mul(x.clone(), x.clone());
    let density = B::float_exp(B::float_mul_scalar(square, (-0.5f32).into()));
    let density = B::float_mul_scalar(density, 0.398_942_3_f32.into()); // 1 / √(2π)
    let slope = B::float_add(distribution::<B>(x.clone()), B::float_mul(x, density));
    B::float_mul(grad, slope)
}

super::composed_elsewhere!(GeluOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::{Flex, TensorMetadata};

    use super::GeluOps;
    use crate::gelu;
    use crate::ops::flex::{in_place, tensor, values};

    impl GeluOps for Flex {
        fn fused_gelu(x: FlexTensor) -> FlexTensor {
            if x.is_unique() {
                return in_place(x, gelu::forward_in_place).0;
            }
            tensor(values([&x], |[x]| gelu::forward(x)), x.shape())
        }

        fn fused_gelu_backward(x: FlexTensor, grad: FlexTensor) -> FlexTensor {
            values([&x], |[x]| in_place(grad, |grad| gelu::backward(x, grad)).0)
        }
    }
}

impl<B: GeluOps, C: CheckpointStrategy> GeluOps for Autodiff<B, C> {
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Gelu;

        impl<B: GeluOps> Backward<B, 1> for Gelu {
            type State = NodeId;

            fn backward(
                self,
                ops: Ops<Self::State, 1>,
                grads: &mut Gradients,
                checkpointer: &mut Checkpointer,
            ) {
                let grad = grads.consume::<B>(&ops.node);
                let x = checkpointer.retrieve_node_output(ops.state);
                if let [Some(parent)] = ops.parents {
                    grads.register::<B>(parent.id, B::fused_gelu_backward(x, grad));
                }
            }
        }

        let retro = Retro::<B> { x: x.node().id(), backend: PhantomData };
        let prep = Gelu.prepare::<C>([x.node()]).memory_bound().retro_forward(retro);
        match prep.parents([&x]).stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = prep.checkpoint(&x);
                prep.finish(state, B::fused_gelu(x.into_primitive()))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::fused_gelu(x.into_primitive())),
        }
    }
}

/// Computes y again from x, if the device uses gradient checkpointing.
#[derive(Debug)]
struct Retro<B> {
    x: NodeId,
    backend: PhantomData<B>,
}

impl<B: GeluOps> RetroForward for Retro<B> {
    fn forward(&self, states: &mut BackwardStates, out: NodeId) {
        let x = states.get_state::<FloatTensor<B>>(&self.x);
        states.save(out, B::fused_gelu(x));
    }
}
