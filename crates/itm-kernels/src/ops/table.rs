//! Rows of a table and their weighted sums as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata};
use burn::tensor::{IndexingUpdateOp, Shape, TensorData};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, tensor, values};
use super::node;
use crate::bag::{self, Bags};
use crate::embedding;

/// Indices of the rows taken, and the index whose row does not learn.
#[derive(Debug, Clone)]
pub(crate) struct RowIds {
    pub(crate) ids: Vec<u32>,
    pub(crate) frozen: Option<u32>,
}

super::operations! {
    /// Rows of a table, the sums of bags of rows, and the gradient of both; equations in [`crate::embedding`] and
    /// [`crate::bag`].
    pub(crate) trait TableOps: Backend {
        /// `[v, d]` to `[n, d]`.
        fn embedding_rows(table: FloatTensor<Self>, taken: RowIds) -> FloatTensor<Self> {
            let ids = numbers::<Self>(taken.ids.iter().map(|&id| id as usize), &table.device());
            Self::float_select(table, 0, ids)
        }

        /// The sum of each bag, `[v, d]` to `[bags, d]`.
        fn bag_sums(table: FloatTensor<Self>, bags: Bags) -> FloatTensor<Self> {
            composed_bag::<Self>(table, &bags, None)
        }

        /// The gradient of a table of `rows` rows.
        fn bag_gradient(grad: FloatTensor<Self>, bags: Bags, rows: usize) -> FloatTensor<Self> {
            composed_bag::<Self>(grad, &bags, Some(rows))
        }
    }
}

fn numbers<B: Backend>(ids: impl Iterator<Item = usize>, device: &Device<B>) -> IntTensor<B> {
    let ids: Vec<i64> = ids.map(|id| id as i64).collect();
    let n = ids.len();
    B::int_from_data(TensorData::new(ids, [n]), device)
}

/// The sums of rows of the table `x`. If `table` is a number of rows, this is instead the gradient of a table with
/// this number of rows, from the gradient `x` of the sums: the same operation with rows and bags exchanged.
pub(crate) fn composed_bag<B: Backend>(
    x: FloatTensor<B>,
    bags: &Bags,
    table: Option<usize>,
) -> FloatTensor<B> {
    let ([_, width], device, n) = (x.shape().dims(), x.device(), bags.ids.len());
    let rows = table.unwrap_or(bags.len());
    let zeros = B::float_zeros(Shape::new([rows, width]), &device, x.dtype().into());
    if n == 0 {
        return zeros;
    }
    let ids = numbers::<B>(bags.ids.iter().map(|&id| id as usize), &device);
    let owners = numbers::<B>(bags.owners().into_iter(), &device);
    let (from, to) = if table.is_some() { (owners, ids) } else { (ids, owners) };
    let weights = B::float_from_data(TensorData::new(bags.weights.clone(), [n, 1]), &device);
    let weights = B::float_expand(weights, Shape::new([n, width]));
    let weighted = B::float_mul(B::float_select(x, 0, from), weights);
    B::float_select_assign(zeros, 0, to, weighted, IndexingUpdateOp::Add)
}

#[cfg(feature = "flex")]
impl TableOps for Flex {
    fn embedding_rows(table: FlexTensor, taken: RowIds) -> FlexTensor {
        let [_, d] = table.shape().dims();
        let y = values([&table], |[table]| embedding::forward(table, d, &taken.ids));
        tensor(y, [taken.ids.len(), d])
    }

    fn bag_sums(table: FlexTensor, bags: Bags) -> FlexTensor {
        let [_, d] = table.shape().dims();
        tensor(values([&table], |[table]| bag::forward(table, d, &bags)), [bags.len(), d])
    }

    fn bag_gradient(grad: FlexTensor, bags: Bags, rows: usize) -> FlexTensor {
        let [_, d] = grad.shape().dims();
        tensor(values([&grad], |[grad]| bag::backward(grad, d, &bags, rows)), [rows, d])
    }
}

impl<B: TableOps, C: CheckpointStrategy> TableOps for Autodiff<B, C> {
    fn embedding_rows(table: FloatTensor<Self>, taken: RowIds) -> FloatTensor<Self> {
        let [rows, _] = table.shape().dims();
        let node = table.node();
        let y = B::embedding_rows(table.into_primitive(), taken.clone());
        node::of_one::<B, C, _>(node, y, taken, move |taken, grad| {
            B::bag_gradient(grad, Bags::of_rows(&taken.ids, taken.frozen), rows)
        })
    }

    fn bag_sums(table: FloatTensor<Self>, bags: Bags) -> FloatTensor<Self> {
        let ([rows, _], node) = (table.shape().dims(), table.node());
        let y = B::bag_sums(table.into_primitive(), bags.clone());
        node::of_one::<B, C, _>(node, y, bags, move |bags, grad| B::bag_gradient(grad, bags, rows))
    }
}
