//! Updates of parameters as burn backend extensions: in place on the CPU if nobody else holds the values.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};
use burn::tensor::{Shape, TensorData};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, change, in_place, values};
use crate::update::{self, AdamStep};

super::operations! {
    /// Updates that a backend may have a kernel for; without a kernel they are composed of the backend's operations.
    pub(crate) trait UpdateOps: Backend {
        /// Parameter, first and second moment after one step; see [`crate::update::adam`].
        fn adam(
            theta: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            first: FloatTensor<Self>,
            second: FloatTensor<Self>,
            step: AdamStep,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
            composed_adam::<Self>(theta, grad, first, second, step)
        }

        /// `m target + (1 − m) online`; see [`crate::update::ema`].
        fn ema(target: FloatTensor<Self>, online: FloatTensor<Self>, m: f64) -> FloatTensor<Self> {
            let target = Self::float_mul_scalar(target, (m as f32).into());
            let online = Self::float_mul_scalar(online, ((1.0 - m) as f32).into());
            Self::float_add(target, online)
        }

        /// `Σ x²`, `[1]`, in a precision that the backend chooses.
        fn sum_of_squares(x: FloatTensor<Self>) -> FloatTensor<Self> {
            Self::float_reshape(Self::float_sum(Self::float_mul(x.clone(), x)), Shape::new([1]))
        }
    }
}

/// The step in a backend's own operations.
pub(crate) fn composed_adam<B: Backend>(
    theta: FloatTensor<B>,
    grad: FloatTensor<B>,
    first: FloatTensor<B>,
    second: FloatTensor<B>,
    step: AdamStep,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let times = |x, factor: f32| B::float_mul_scalar(x, factor.into());
    let grad = times(grad, step.scale);
    let towards = B::float_sub(grad.clone(), first.clone());
    let first = B::float_add(first, times(towards, step.rest_1));
    let squared = times(B::float_mul(grad.clone(), grad), step.rest_2);
    let second = B::float_add(times(second, step.beta_2), squared);
    let root = times(B::float_sqrt(second.clone()), step.bias_2);
    let root = B::float_add_scalar(root, step.epsilon.into());
    let change = times(B::float_div(first.clone(), root), step.rate);
    let theta = if step.keep == 1.0 { theta } else { times(theta, step.keep) };
    (B::float_sub(theta, change), first, second)
}

#[cfg(feature = "flex")]
impl UpdateOps for Flex {
    fn adam(
        mut theta: FlexTensor,
        grad: FlexTensor,
        mut first: FlexTensor,
        mut second: FlexTensor,
        step: AdamStep,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        values([&grad], |[grad]| {
            change([&mut theta, &mut first, &mut second], |[theta, first, second]| {
                update::adam(theta, grad, first, second, &step);
            });
        });
        (theta, first, second)
    }

    fn ema(target: FlexTensor, online: FlexTensor, m: f64) -> FlexTensor {
        values([&online], |[online]| in_place(target, |target| update::ema(target, online, m)).0)
    }

    fn sum_of_squares(x: FlexTensor) -> FlexTensor {
        let sum = values([&x], |[x]| update::sum_of_squares(x));
        FlexTensor::from_data(TensorData::new(vec![sum], [1]))
    }
}

/// The result of an update is a leaf: autodiff does not record the update.
impl<B: UpdateOps, C: CheckpointStrategy> UpdateOps for Autodiff<B, C> {
    fn adam(
        theta: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [theta, grad, first, second] = [theta, grad, first, second].map(|x| x.into_primitive());
        let (theta, first, second) = B::adam(theta, grad, first, second, step);
        let leaf = FloatTensor::<Self>::new;
        (leaf(theta), leaf(first), leaf(second))
    }

    fn ema(target: FloatTensor<Self>, online: FloatTensor<Self>, m: f64) -> FloatTensor<Self> {
        FloatTensor::<Self>::new(B::ema(target.into_primitive(), online.into_primitive(), m))
    }

    fn sum_of_squares(x: FloatTensor<Self>) -> FloatTensor<Self> {
        FloatTensor::<Self>::new(B::sum_of_squares(x.into_primitive()))
    }
}
