//! Matrix products on all threads as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};

use super::node;

/// Products of matrices.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait MatmulOps: Backend {
    /// `a b`: `[…, n, k]` and `[…, k, m]` to `[…, n, m]`, with equal axes before the last two.
    fn matmul_threaded(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(a, b)
    }
}

super::composed_elsewhere!(MatmulOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::ops::FloatTensorOps;
    use burn::backend::{Flex, TensorMetadata};
    use rayon::prelude::*;

    use super::MatmulOps;
    use crate::matrix::Matrix;
    use crate::ops::flex::{tensor, values};
    use crate::product::{Into, Threads, product, product_new};

    /// Products of fewer multiplications are burn's: one thread is as fast.
    const SMALL: usize = 2_000_000;

    impl MatmulOps for Flex {
        fn matmul_threaded(a: FlexTensor, b: FlexTensor) -> FlexTensor {
            let (mut shape, width) = (a.shape().to_vec(), b.shape().to_vec());
            let axis = shape.len() - 2;
            let ([n, k], m) = ([shape[axis], shape[axis + 1]], width[axis + 1]);
            if shape.iter().product::<usize>().saturating_mul(m) < SMALL {
                return <Self as FloatTensorOps<Self>>::float_matmul(a, b);
            }
            let ((a, a_turned), (b, b_turned)) = (as_it_lies(a, axis), as_it_lies(b, axis));
            shape[axis + 1] = m;
            let product = values([&a, &b], |[a, b]| {
                if axis == 0 {
                    return product_new(view(a, n, k, a_turned), view(b, k, m, b_turned));
                }
                let mut all = vec![0.0; shape.iter().product()];
                let pairs = a.par_chunks((n * k).max(1)).zip(b.par_chunks((k * m).max(1)));
                all.par_chunks_mut((n * m).max(1)).zip(pairs).for_each(|(to, (a, b))| {
                    let (a, b) = (view(a, n, k, a_turned), view(b, k, m, b_turned));
                    product(Threads::This, to, Into::Replace, a, b);
                });
                all
            });
            tensor(product, shape)
        }
    }

    fn view(values: &[f32], rows: usize, cols: usize, turned: bool) -> Matrix<'_> {
        match turned {
            true => Matrix::new(values, cols, rows).t(),
            false => Matrix::new(values, rows, cols),
        }
    }

    /// The tensor, or the transpose of its matrices if they lie in memory like that: then nothing is copied.
    fn as_it_lies(x: FlexTensor, axis: usize) -> (FlexTensor, bool) {
        let transpose = x.transpose(axis, axis + 1);
        match !x.is_contiguous() && transpose.is_contiguous() {
            true => (transpose, true),
            false => (x, false),
        }
    }
}

impl<B: MatmulOps, C: CheckpointStrategy> MatmulOps for Autodiff<B, C> {
    fn matmul_threaded(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [a.node(), b.node()];
        let (a, b) = (a.into_primitive(), b.into_primitive());
        let y = B::matmul_threaded(a.clone(), b.clone());
        node::of::<B, C, _, 2>(nodes, y, (a, b), |(a, b), grad, [to_a, to_b]| {
            let to_a = to_a.then(|| B::matmul_threaded(grad.clone(), turned::<B>(b)));
            [to_a, to_b.then(|| B::matmul_threaded(turned::<B>(a), grad))]
        })
    }
}

/// The matrices transposed.
fn turned<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let axes = x.shape().num_dims();
    B::float_swap_dims(x, axes - 2, axes - 1)
}
