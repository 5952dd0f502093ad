//! Unit rows, means over real steps and order similarity as burn backend extensions.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, tensor, values};
use super::node;
use crate::{composed, order, rows};

super::operations! {
    /// Operations that a backend may have a kernel for; without a kernel they are composed of the backend's operations.
    ///
    /// The `_saving` forms also return the values that their `_backward` needs. Only these two functions know the
    /// layout of the values.
    pub(crate) trait FusedOps: Backend {
        /// Rows of unit length, `[n, d]`, and their norms, `[n, 1]`.
        fn normalize_rows_saving(x: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
            composed::normalize_rows::<Self>(x)
        }

        /// Gradient of the rows from the gradient of the unit rows.
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

        /// Gradient of the sequences, padded to `steps`, from the gradient of the means.
        fn masked_mean_backward(
            grad: FloatTensor<Self>,
            lengths: Vec<usize>,
            steps: usize,
        ) -> FloatTensor<Self> {
            composed::masked_mean_backward::<Self>(grad, &lengths, steps)
        }

        /// Scores of `[n, d]` images and `[m, d]` texts, `[n, m]`.
        fn order_scores(images: FloatTensor<Self>, texts: FloatTensor<Self>) -> FloatTensor<Self> {
            composed::order::forward::<Self>(images, texts)
        }

        /// Gradients of images and texts from the gradient of the scores.
        fn order_scores_backward(
            images: FloatTensor<Self>,
            texts: FloatTensor<Self>,
            scores: FloatTensor<Self>,
            grad: FloatTensor<Self>,
        ) -> (FloatTensor<Self>, FloatTensor<Self>) {
            composed::order::backward::<Self>(images, texts, scores, grad)
        }
    }
}

#[cfg(feature = "flex")]
impl FusedOps for Flex {
    fn normalize_rows_saving(x: FlexTensor) -> (FlexTensor, FlexTensor) {
        let [n, d] = x.shape().dims();
        let (y, norms) = values([&x], |[x]| rows::normalize(x, d));
        (tensor(y, [n, d]), tensor(norms, [n, 1]))
    }

    fn normalize_rows_backward(y: FlexTensor, norms: FlexTensor, grad: FlexTensor) -> FlexTensor {
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

    fn order_scores(images: FlexTensor, texts: FlexTensor) -> FlexTensor {
        let ([n, d], [m, _]) = (images.shape().dims(), texts.shape().dims());
        tensor(values([&images, &texts], |[i, t]| order::forward(i, t, d)), [n, m])
    }

    fn order_scores_backward(
        images: FlexTensor,
        texts: FlexTensor,
        scores: FlexTensor,
        grad: FlexTensor,
    ) -> (FlexTensor, FlexTensor) {
        let ([n, d], [m, _]) = (images.shape().dims(), texts.shape().dims());
        let [i, t] = values([&images, &texts, &scores, &grad], |[i, t, s, g]| {
            order::backward([i, t], s, g, d)
        });
        (tensor(i, [n, d]), tensor(t, [m, d]))
    }
}

impl<B: FusedOps, C: CheckpointStrategy> FusedOps for Autodiff<B, C> {
    fn normalize_rows_saving(x: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let node = x.node();
        let (y, norms) = B::normalize_rows_saving(x.into_primitive());
        let constant = FloatTensor::<Self>::new(norms.clone());
        let y = node::of_one::<B, C, _>(node, y.clone(), (y, norms), |(y, norms), grad| {
            B::normalize_rows_backward(y, norms, grad)
        });
        (y, constant)
    }

    fn masked_mean(x: FloatTensor<Self>, lengths: Vec<usize>) -> FloatTensor<Self> {
        let [_, steps, _] = x.shape().dims();
        let node = x.node();
        let mean = B::masked_mean(x.into_primitive(), lengths.clone());
        node::of_one::<B, C, _>(node, mean, lengths, move |lengths, grad| {
            B::masked_mean_backward(grad, lengths, steps)
        })
    }

    fn order_scores(images: FloatTensor<Self>, texts: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [images.node(), texts.node()];
        let (images, texts) = (images.into_primitive(), texts.into_primitive());
        let s = B::order_scores(images.clone(), texts.clone());
        let forward = |_| (s.clone(), Some((images, texts, s)));
        node::of::<B, C, _, 2>(nodes, forward, |(images, texts, scores), grad, _| {
            let (images, texts) = B::order_scores_backward(images, texts, scores, grad);
            [Some(images), Some(texts)]
        })
    }
}
