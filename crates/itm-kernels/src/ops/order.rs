//! Similarity of order embeddings as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::Shape;

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, tensor, values};
use super::node;
use crate::composed::{at_most, is_zero};
use crate::order;

/// Scores of order embeddings and their gradients; equations in [`crate::order`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait OrderOps: Backend {
    /// Scores of `[n, d]` images and `[m, d]` texts, `[n, m]`.
    fn order_scores(images: FloatTensor<Self>, texts: FloatTensor<Self>) -> FloatTensor<Self> {
        composed::<Self>(images, texts)
    }

    /// Gradients of images and texts from the gradient of the scores.
    fn order_scores_backward(
        images: FloatTensor<Self>,
        texts: FloatTensor<Self>,
        scores: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed_backward::<Self>(images, texts, scores, grad)
    }
}

pub(crate) fn composed<B: Backend>(
    images: FloatTensor<B>,
    texts: FloatTensor<B>,
) -> FloatTensor<B> {
    let over = over::<B>(images, texts);
    let [n, m, _] = over.shape().dims();
    let squares = B::float_sum_dim(B::float_mul(over.clone(), over), 2);
    let squares = B::float_reshape(squares, Shape::new([n, m]));
    let inside = is_zero::<B>(&squares);
    // Inside, this is the root of a constant: its derivative is finite, and the mask sets value and derivative to 0.
    let squares = B::float_mask_fill(squares, inside.clone(), 1.0f32.into());
    B::float_mask_fill(B::float_neg(B::float_sqrt(squares)), inside, 0.0f32.into())
}

pub(crate) fn composed_backward<B: Backend>(
    images: FloatTensor<B>,
    texts: FloatTensor<B>,
    scores: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let over = over::<B>(images, texts);
    let [n, m, d] = over.shape().dims();
    let inside = is_zero::<B>(&scores);
    let root = B::float_mask_fill(B::float_neg(scores), inside.clone(), 1.0f32.into());
    let slope = B::float_mask_fill(B::float_div(grad, root), inside, 0.0f32.into());
    let each = B::float_mul(over, B::float_reshape(slope, Shape::new([n, m, 1])));
    let to_images = B::float_reshape(B::float_sum_dim(each.clone(), 1), Shape::new([n, d]));
    let to_texts = B::float_reshape(B::float_sum_dim(each, 0), Shape::new([m, d]));
    (to_images, B::float_neg(to_texts))
}

/// `max(0, t − i)`, `[n, m, d]`. It uses a mask because not every backend's maximum keeps NaN.
fn over<B: Backend>(images: FloatTensor<B>, texts: FloatTensor<B>) -> FloatTensor<B> {
    let ([n, d], [m, _]) = (images.shape().dims(), texts.shape().dims());
    let images = B::float_reshape(images, Shape::new([n, 1, d]));
    let texts = B::float_reshape(texts, Shape::new([1, m, d]));
    let over = B::float_sub(texts, images);
    let inside = at_most::<B>(&over, 0.0);
    B::float_mask_fill(over, inside, 0.0f32.into())
}

super::composed_elsewhere!(OrderOps);

#[cfg(feature = "flex")]
impl OrderOps for Flex {
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

impl<B: OrderOps, C: CheckpointStrategy> OrderOps for Autodiff<B, C> {
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
