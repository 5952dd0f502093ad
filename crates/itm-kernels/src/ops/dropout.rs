//! Dropout as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::TensorData;

use super::node;
use crate::dropout::Mask;

/// Dropout by [`Mask`]: every backend keeps the same values.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait DropoutOps: Backend {
    /// `x` times the factors. The backward pass applies the same function to the gradient.
    fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        composed::<Self>(x, mask)
    }

    /// `r` plus `x` times the factors.
    fn fused_dropout_sum(
        x: FloatTensor<Self>,
        r: FloatTensor<Self>,
        mask: Mask,
    ) -> FloatTensor<Self> {
        Self::float_add(composed::<Self>(x, mask), r)
    }
}

pub(crate) fn composed<B: Backend>(x: FloatTensor<B>, mask: Mask) -> FloatTensor<B> {
    let shape = x.shape();
    let factors = TensorData::new(mask.factors(shape.num_elements()), shape);
    let factors = B::float_from_data(factors, &x.device());
    B::float_mul(x, factors)
}

super::composed_elsewhere!(DropoutOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::{Flex, TensorMetadata};

    use super::{DropoutOps, Mask};
    use crate::ops::flex::{in_place, tensor, values};

    impl DropoutOps for Flex {
        fn fused_dropout(x: FlexTensor, mask: Mask) -> FlexTensor {
            if x.is_unique() {
                return in_place(x, |x| mask.apply(x)).0;
            }
            tensor(values([&x], |[x]| mask.applied(x)), x.shape())
        }

        fn fused_dropout_sum(x: FlexTensor, r: FlexTensor, mask: Mask) -> FlexTensor {
            values([&r], |[r]| in_place(x, |x| mask.apply_and_add(x, r)).0)
        }
    }
}

impl<B: DropoutOps, C: CheckpointStrategy> DropoutOps for Autodiff<B, C> {
    fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let node = x.node();
        let y = B::fused_dropout(x.into_primitive(), mask);
        node::of_one::<B, C, _>(node, y, mask, |mask, grad| B::fused_dropout(grad, mask))
    }

    fn fused_dropout_sum(
        x: FloatTensor<Self>,
        r: FloatTensor<Self>,
        mask: Mask,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), r.node()];
        let y = B::fused_dropout_sum(x.into_primitive(), r.into_primitive(), mask);
        node::of::<B, C, _, 2>(nodes, y, mask, |mask, grad, [to_x, _]| {
            [to_x.then(|| B::fused_dropout(grad.clone(), mask)), Some(grad)]
        })
    }
}
