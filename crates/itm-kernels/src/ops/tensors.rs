//! Several tensors as one argument of an operation.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::ops::NodeGuard;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor,
    DispatchTensorKind, ExtensionType,
};

/// Tensors in a fixed order, such as the weights of a layer.
#[derive(Debug, Clone)]
pub(crate) struct Tensors<B: Backend>(pub(crate) Vec<FloatTensor<B>>);

impl<B: Backend> ExtensionType<B> for Tensors<B> {
    type Target = Tensors<Dispatch>;

    fn map_to_dispatch<F>(self, kind: F, autodiff: DispatchAutodiffContext) -> Tensors<Dispatch>
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        let wrapped = |x| DispatchTensor { kind: kind(BackendTensor::Float(x)), autodiff };
        Tensors(self.0.into_iter().map(wrapped).collect())
    }

    fn map_from_dispatch<F>(Tensors(all): Tensors<Dispatch>, unwrapped: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self(all.into_iter().map(|x| unwrapped(x).float()).collect())
    }

    fn routing_tensor(Tensors(all): &Tensors<Dispatch>) -> Option<&DispatchTensor> {
        all.first()
    }

    fn routing_float_tensor(Tensors(all): &Tensors<Dispatch>) -> Option<&DispatchTensor> {
        all.first()
    }

    fn autodiff_context(Tensors(all): &Tensors<Dispatch>) -> DispatchAutodiffContext {
        all.iter().fold(Default::default(), |context, x| context.merge(x.autodiff))
    }
}

/// The nodes and the values of the operands of a layer: its input, then its weights.
pub(super) fn operands<B: Backend, C: CheckpointStrategy, const N: usize>(
    x: FloatTensor<Autodiff<B, C>>,
    Tensors(weights): Tensors<Autodiff<B, C>>,
) -> ([NodeGuard; N], Vec<FloatTensor<B>>) {
    let operands: Vec<_> = [x].into_iter().chain(weights).collect();
    let nodes: Vec<_> = operands.iter().map(|t| t.node()).collect();
    let Ok(nodes) = nodes.try_into() else { panic!("not {N} operands") };
    (nodes, operands.into_iter().map(|t| t.into_primitive()).collect())
}

/// The input and the weights.
pub(super) fn split<B: Backend>(mut operands: Vec<FloatTensor<B>>) -> (FloatTensor<B>, Tensors<B>) {
    let weights = operands.split_off(1);
    (operands.remove(0), Tensors(weights))
}
