//! Element-wise functions, activations and dropout, as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata};
use burn::tensor::TensorData;

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, in_place, tensor, values};
use super::node;
use crate::dropout::Mask;
use crate::{Activation, blocks};

super::operations! {
    /// The functions of [`crate::activation`], and dropout by [`Mask`]: every backend keeps the same values.
    pub(crate) trait ElementwiseOps: Backend {
        /// y of x.
        fn fused_activation(x: FloatTensor<Self>, f: Activation) -> FloatTensor<Self> {
            composed_activation::<Self>(x, f)
        }

        /// The gradient of x from the gradient of y.
        fn fused_activation_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            f: Activation,
        ) -> FloatTensor<Self> {
            composed_activation_backward::<Self>(x, grad, f)
        }

        /// `x` times the factors. The backward pass applies the same function to the gradient.
        fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
            composed_dropout::<Self>(x, mask)
        }

        /// `r` plus `x` times the factors of a mask, if there is one.
        fn fused_sum(
            x: FloatTensor<Self>,
            r: FloatTensor<Self>,
            mask: Option<Mask>,
        ) -> FloatTensor<Self> {
            let x = match mask {
                Some(mask) => composed_dropout::<Self>(x, mask),
                None => x,
            };
            Self::float_add(x, r)
        }
    }
}

/// `Φ(x)`
fn distribution<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let erf = B::float_erf(B::float_mul_scalar(x, std::f64::consts::FRAC_1_SQRT_2.into()));
    B::float_mul_scalar(B::float_add_scalar(erf, 1.0f32.into()), 0.5f32.into())
}

/// σ(a x + b x³) and a + 3 b x².
fn share_and_slope<B: Backend>(
    x: FloatTensor<B>,
    [a, b]: [f32; 2],
) -> (FloatTensor<B>, FloatTensor<B>) {
    let square = B::float_mul(x.clone(), x.clone());
    let line = |b: f32| {
        let curved = B::float_mul_scalar(square.clone(), b.into());
        B::float_add_scalar(curved, a.into())
    };
    (B::sigmoid(B::float_mul(x, line(b))), line(3.0 * b))
}

pub(crate) fn composed_activation<B: Backend>(x: FloatTensor<B>, f: Activation) -> FloatTensor<B> {
    let share = match f.constants() {
        None => distribution::<B>(x.clone()),
        Some(constants) => share_and_slope::<B>(x.clone(), constants).0,
    };
    B::float_mul(x, share)
}

/// `g dy/dx`
pub(crate) fn composed_activation_backward<B: Backend>(
    x: FloatTensor<B>,
    grad: FloatTensor<B>,
    f: Activation,
) -> FloatTensor<B> {
    let slope = match f.constants() {
        None => {
            let square = B::float_mul(x.clone(), x.clone());
            let density = B::float_exp(B::float_mul_scalar(square, (-0.5f32).into()));
            let density = B::float_mul_scalar(density, 0.398_942_3_f32.into()); // 1 / √(2π)
            B::float_add(distribution::<B>(x.clone()), B::float_mul(x, density))
        }
        Some(constants) => {
            let (share, slope) = share_and_slope::<B>(x.clone(), constants);
            let rest = B::float_add_scalar(B::float_neg(share.clone()), 1.0f32.into());
            let along = B::float_mul(B::float_mul(x, slope), rest);
            B::float_mul(share, B::float_add_scalar(along, 1.0f32.into()))
        }
    };
    B::float_mul(grad, slope)
}

pub(crate) fn composed_dropout<B: Backend>(x: FloatTensor<B>, mask: Mask) -> FloatTensor<B> {
    let shape = x.shape();
    let factors = TensorData::new(mask.factors(shape.num_elements()), shape);
    let factors = B::float_from_data(factors, &x.device());
    B::float_mul(x, factors)
}

#[cfg(feature = "flex")]
impl ElementwiseOps for Flex {
    fn fused_activation(x: FlexTensor, f: Activation) -> FlexTensor {
        if x.is_unique() {
            return in_place(x, |x| f.forward_in_place(x)).0;
        }
        tensor(values([&x], |[x]| f.forward(x)), x.shape())
    }

    fn fused_activation_backward(x: FlexTensor, grad: FlexTensor, f: Activation) -> FlexTensor {
        values([&x], |[x]| in_place(grad, |grad| f.backward(x, grad)).0)
    }

    fn fused_dropout(x: FlexTensor, mask: Mask) -> FlexTensor {
        if x.is_unique() {
            return in_place(x, |x| mask.apply(x)).0;
        }
        tensor(values([&x], |[x]| mask.applied(x)), x.shape())
    }

    fn fused_sum(x: FlexTensor, r: FlexTensor, mask: Option<Mask>) -> FlexTensor {
        let sum = |x: &mut [f32], r: &[f32]| match mask {
            Some(mask) => mask.apply_and_add(x, r),
            None => blocks::add(x, r),
        };
        values([&r], |[r]| in_place(x, |x| sum(x, r)).0)
    }
}

impl<B: ElementwiseOps, C: CheckpointStrategy> ElementwiseOps for Autodiff<B, C> {
    fn fused_activation(x: FloatTensor<Self>, f: Activation) -> FloatTensor<Self> {
        let node = x.node();
        let x = x.into_primitive();
        let forward = |is_tracked: bool| {
            let kept = is_tracked.then(|| x.clone()); // otherwise x may be overwritten
            (B::fused_activation(x, f), kept)
        };
        node::of::<B, C, _, 1>([node], forward, move |x, grad, _| {
            [Some(B::fused_activation_backward(x, grad, f))]
        })
    }

    fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let node = x.node();
        let y = B::fused_dropout(x.into_primitive(), mask);
        node::of_one::<B, C, _>(node, y, mask, |mask, grad| B::fused_dropout(grad, mask))
    }

    fn fused_sum(
        x: FloatTensor<Self>,
        r: FloatTensor<Self>,
        mask: Option<Mask>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), r.node()];
        let y = B::fused_sum(x.into_primitive(), r.into_primitive(), mask);
        let forward = |_| (y, Some(mask));
        node::of::<B, C, _, 2>(nodes, forward, |mask, grad, [to_x, _]| {
            let to_x = to_x.then(|| grad.clone()).map(|grad| match mask {
                Some(mask) => B::fused_dropout(grad, mask),
                None => grad,
            });
            [to_x, Some(grad)]
        })
    }
}
