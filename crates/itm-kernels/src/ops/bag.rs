//! Weighted sums of rows as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::{IndexingUpdateOp, Shape, TensorData};

use super::embedding::numbers;
use super::node;
use crate::bag::Bags;

/// The sums of bags and their gradient; equations in [`crate::bag`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait BagOps: Backend {
    /// `[v, d]` to `[bags, d]`.
    fn bag_sums(table: FloatTensor<Self>, bags: Bags) -> FloatTensor<Self> {
        composed::<Self>(table, &bags, None)
    }

    /// The gradient of a table of `rows` rows.
    fn bag_gradient(grad: FloatTensor<Self>, bags: Bags, rows: usize) -> FloatTensor<Self> {
        composed::<Self>(grad, &bags, Some(rows))
    }
}

/// The sums of rows of the table `x`. If `table` is a number of rows, this is instead the gradient of a table with
/// this number of rows, from the gradient `x` of the sums: the same operation with rows and bags exchanged.
pub(crate) fn composed<B: Backend>(
    x: FloatTensor<B>,
    bags: &Bags,
    table: Option<usize>,
) -> FloatTensor<B> {
    let ([_, width], device, n) = (x.shape().dims(), x.device(), bags.ids().len());
    let rows = table.unwrap_or(bags.len());
    let zeros = B::float_zeros(Shape::new([rows, width]), &device, x.dtype().into());
    if n == 0 {
        return zeros;
    }
    let ids = numbers::<B>(bags.ids().iter().map(|&id| id as usize), &device);
    let owners = numbers::<B>(bags.owners().into_iter(), &device);
    let (from, to) = if table.is_some() { (owners, ids) } else { (ids, owners) };
    let weights = B::float_from_data(TensorData::new(bags.weights().to_vec(), [n, 1]), &device);
    let weights = B::float_expand(weights, Shape::new([n, width]));
    let weighted = B::float_mul(B::float_select(x, 0, from), weights);
    B::float_select_assign(zeros, 0, to, weighted, IndexingUpdateOp::Add)
}

super::composed_elsewhere!(BagOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::{Flex, TensorMetadata};

    use super::{BagOps, Bags};
    use crate::bag;
    use crate::ops::flex::{tensor, values};

    impl BagOps for Flex {
        fn bag_sums(table: FlexTensor, bags: Bags) -> FlexTensor {
            let [_, d] = table.shape().dims();
            tensor(values([&table], |[table]| bag::forward(table, d, &bags)), [bags.len(), d])
        }

        fn bag_gradient(grad: FlexTensor, bags: Bags, rows: usize) -> FlexTensor {
            let [_, d] = grad.shape().dims();
            tensor(values([&grad], |[grad]| bag::backward(grad, d, &bags, rows)), [rows, d])
        }
    }
}

impl<B: BagOps, C: CheckpointStrategy> BagOps for Autodiff<B, C> {
    fn bag_sums(table: FloatTensor<Self>, bags: Bags) -> FloatTensor<Self> {
        let ([rows, _], node) = (table.shape().dims(), table.node());
        let y = B::bag_sums(table.into_primitive(), bags.clone());
        node::of_one::<B, C, _>(node, y, bags, move |bags, grad| B::bag_gradient(grad, bags, rows))
    }
}
