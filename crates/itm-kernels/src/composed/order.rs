//! Order similarity of [`crate::order`] from burn's operations.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Shape;

use super::{at_most, is_zero};

pub(crate) fn forward<B: Backend>(images: FloatTensor<B>, texts: FloatTensor<B>) -> FloatTensor<B> {
    let over = over::<B>(images, texts);
    let [n, m, _] = over.shape().dims();
    let squares = B::float_sum_dim(B::float_mul(over.clone(), over), 2);
    let squares = B::float_reshape(squares, Shape::new([n, m]));
    let inside = is_zero::<B>(&squares);
    // Inside, this is the root of a constant: its derivative is finite, and the mask sets value and derivative to 0.
    let squares = B::float_mask_fill(squares, inside.clone(), 1.0f32.into());
    B::float_mask_fill(B::float_neg(B::float_sqrt(squares)), inside, 0.0f32.into())
}

pub(crate) fn backward<B: Backend>(
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
