//! Rows of a table as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::{IndexingUpdateOp, Shape, TensorData};

use super::node;

/// Indices of the rows taken, and the index whose row does not learn.
#[derive(Debug, Clone)]
pub(crate) struct RowIds {
    pub(crate) ids: Vec<u32>,
    pub(crate) frozen: Option<u32>,
}

/// Taking rows of a table, and its gradient; equations in [`crate::embedding`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait EmbeddingOps: Backend {
    /// `[v, d]` to `[n, d]`.
    fn embedding_rows(table: FloatTensor<Self>, taken: RowIds) -> FloatTensor<Self> {
        let ids = numbers::<Self>(taken.ids.iter().map(|&id| id as usize), &table.device());
        Self::float_select(table, 0, ids)
    }

    /// The gradient of a table of `rows` rows.
    fn embedding_gradient(
        grad: FloatTensor<Self>,
        taken: RowIds,
        rows: usize,
    ) -> FloatTensor<Self> {
        let ([_, width], device) = (grad.shape().dims(), grad.device());
        let zeros = Self::float_zeros(Shape::new([rows, width]), &device, grad.dtype().into());
        let learns = |k: &usize| Some(taken.ids[*k]) != taken.frozen;
        let kept: Vec<usize> = (0..taken.ids.len()).filter(learns).collect();
        if kept.is_empty() {
            return zeros;
        }
        let ids = numbers::<Self>(kept.iter().map(|&k| taken.ids[k] as usize), &device);
        let grad = Self::float_select(grad, 0, numbers::<Self>(kept.iter().copied(), &device));
        Self::float_select_assign(zeros, 0, ids, grad, IndexingUpdateOp::Add)
    }
}

pub(super) fn numbers<B: Backend>(
    ids: impl Iterator<Item = usize>,
    device: &Device<B>,
) -> IntTensor<B> {
    let ids: Vec<i64> = ids.map(|id| id as i64).collect();
    let n = ids.len();
    B::int_from_data(TensorData::new(ids, [n]), device)
}

super::composed_elsewhere!(EmbeddingOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::{EmbeddingOps, RowIds};
    use crate::embedding;
    use crate::ops::flex::{tensor, values};

    impl EmbeddingOps for Flex {
        fn embedding_rows(table: FlexTensor, taken: RowIds) -> FlexTensor {
            let [_, d] = table.shape().dims();
            let y = values([&table], |[table]| embedding::forward(table, d, &taken.ids));
            tensor(y, [taken.ids.len(), d])
        }

        fn embedding_gradient(grad: FlexTensor, taken: RowIds, rows: usize) -> FlexTensor {
            let [_, d] = grad.shape().dims();
            let RowIds { ids, frozen } = taken;
            let sum = |[grad]: [&[f32]; 1]| embedding::backward(grad, d, &ids, rows, frozen);
            tensor(values([&grad], sum), [rows, d])
        }
    }
}

impl<B: EmbeddingOps, C: CheckpointStrategy> EmbeddingOps for Autodiff<B, C> {
    fn embedding_rows(table: FloatTensor<Self>, taken: RowIds) -> FloatTensor<Self> {
        let [rows, _] = table.shape().dims();
        let node = table.node();
        let y = B::embedding_rows(table.into_primitive(), taken.clone());
        node::of_one::<B, C, _>(node, y, taken, move |taken, grad| {
            B::embedding_gradient(grad, taken, rows)
        })
    }
}
