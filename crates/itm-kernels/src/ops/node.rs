//! An operation as one node of the autodiff graph.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};

/// Records `y` as a function of one operand.
///
/// `gradient` makes the gradient of the operand from `kept` and the gradient of `y`.
pub(super) fn of_one<B: Backend, C: CheckpointStrategy, S: Clone + Send + Debug + 'static>(
    operand: NodeGuard,
    y: FloatTensor<B>,
    kept: S,
    gradient: impl FnOnce(S, FloatTensor<B>) -> FloatTensor<B> + Send + 'static,
) -> FloatTensor<Autodiff<B, C>> {
    let gradients = |kept, grad, _: [bool; 1]| [Some(gradient(kept, grad))];
    of::<B, C, S, 1>([operand], |_| (y, Some(kept)), gradients)
}

/// Records what `forward` gives, `y` and the values that `gradients` needs, as a function of `N` operands.
///
/// `forward` gets whether an operand needs a gradient; if none does, it need not give the values. The last argument
/// of `gradients` says which operands need a gradient. The gradients of the others are ignored.
pub(super) fn of<B: Backend, C: CheckpointStrategy, S, const N: usize>(
    operands: [NodeGuard; N],
    forward: impl FnOnce(bool) -> (FloatTensor<B>, Option<S>),
    gradients: impl FnOnce(S, FloatTensor<B>, [bool; N]) -> [Option<FloatTensor<B>>; N] + Send + 'static,
) -> FloatTensor<Autodiff<B, C>>
where
    S: Clone + Send + Debug + 'static,
{
    let node = Node { gradients, kept: PhantomData };
    match Backward::<B, N>::prepare::<C>(node, operands).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (y, kept) = forward(true);
            prep.finish(kept.expect("what the gradients need"), y)
        }
        OpsKind::UnTracked(prep) => prep.finish(forward(false).0),
    }
}

struct Node<F, S> {
    gradients: F,
    kept: PhantomData<S>,
}

impl<F, S> Debug for Node<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Node")
    }
}

impl<B: Backend, F, S, const N: usize> Backward<B, N> for Node<F, S>
where
    F: FnOnce(S, FloatTensor<B>, [bool; N]) -> [Option<FloatTensor<B>>; N] + Send + 'static,
    S: Clone + Send + Debug + 'static,
{
    type State = S;

    fn backward(self, ops: Ops<S, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let all = (self.gradients)(ops.state, grad, wanted);
        for (parent, d) in ops.parents.into_iter().zip(all) {
            if let (Some(parent), Some(d)) = (parent, d) {
                grads.register::<B>(parent.id, d);
            }
        }
    }
}
