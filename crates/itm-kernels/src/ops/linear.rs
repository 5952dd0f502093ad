//! Linear maps and products of matrices as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, ExtensionType, TensorMetadata};
use burn::tensor::Shape;
use rayon::prelude::*;

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, tensor, values};
use super::node;
use crate::linear::{self, RoundedOperands};
use crate::matrix::Matrix;
use crate::precision::Precision;
use crate::product::{Into, Threads, product, product_new};

/// Values that a linear map keeps for its gradients.
#[derive(Debug, Clone, ExtensionType)]
pub(crate) enum LinearState<B: Backend> {
    /// Input and weight.
    Values(FloatTensor<B>, FloatTensor<B>),
    /// Both rounded to bf16.
    #[cfg(feature = "flex")]
    Rounded(std::sync::Arc<RoundedOperands>),
}

super::operations! {
    /// Linear maps, with equations in [`crate::linear`], and products of matrices.
    pub(crate) trait LinearOps: Backend {
        /// `x W + b`: `[n, i]` to `[n, o]`.
        ///
        /// # Panics
        /// If the precision is bf16, which only the CPU backend has.
        fn linear_rows(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            precision: Precision,
        ) -> FloatTensor<Self> {
            precision.only_f32();
            let [o] = bias.shape().dims();
            let bias = Self::float_reshape(bias, Shape::new([1, o]));
            Self::float_add(Self::float_matmul(x, weight), bias)
        }

        /// [`linear_rows`](Self::linear_rows), and the values that its gradients need.
        fn linear_kept(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            precision: Precision,
        ) -> (FloatTensor<Self>, LinearState<Self>) {
            let y = Self::linear_rows(x.clone(), weight.clone(), bias, precision);
            (y, LinearState::Values(x, weight))
        }

        /// `g Wᵀ`, `xᵀ g` and `Σ_rows g`, each only if it is wanted.
        #[allow(clippy::type_complexity)] // the macro reads the types of a tuple, not an alias
        fn linear_gradients(
            #[extension_type] kept: LinearState<Self>,
            grad: FloatTensor<Self>,
            wanted: [bool; 3],
        ) -> (Option<FloatTensor<Self>>, Option<FloatTensor<Self>>, Option<FloatTensor<Self>>) {
            let (x, weight) = match kept {
                LinearState::Values(x, weight) => (x, weight),
                #[cfg(feature = "flex")]
                LinearState::Rounded(_) => {
                    unreachable!("only the CPU backend keeps rounded operands")
                }
            };
            let [to_x, to_weight, to_bias] = wanted;
            let [_, o] = grad.shape().dims();
            let transposed = Self::float_transpose;
            let sum = || Self::float_sum_dim(grad.clone(), 0);
            let bias = to_bias.then(|| Self::float_reshape(sum(), Shape::new([o])));
            let d_weight = to_weight.then(|| Self::float_matmul(transposed(x), grad.clone()));
            (to_x.then(|| Self::float_matmul(grad, transposed(weight))), d_weight, bias)
        }

        /// `a b`: `[…, n, k]` and `[…, k, m]` to `[…, n, m]`, with equal axes before the last two.
        fn matmul_threaded(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
            Self::float_matmul(a, b)
        }
    }
}

/// Products of fewer multiplications are burn's: one thread is as fast.
const SMALL: usize = 2_000_000;

#[cfg(feature = "flex")]
impl LinearOps for Flex {
    fn linear_rows(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        precision: Precision,
    ) -> FlexTensor {
        let ([n, _], [o]) = (x.shape().dims(), bias.shape().dims());
        let y = values([&x, &weight, &bias], |[x, w, b]| match precision.here() {
            Precision::F32 => linear::forward(x, w, b),
            Precision::Bf16 => linear::forward_bf16(x, w, b),
        });
        tensor(y, [n, o])
    }

    fn linear_kept(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        precision: Precision,
    ) -> (FlexTensor, LinearState<Flex>) {
        if precision.here() == Precision::F32 {
            let y = Self::linear_rows(x.clone(), weight.clone(), bias, precision);
            return (y, LinearState::Values(x, weight));
        }
        let ([n, _], [o]) = (x.shape().dims(), bias.shape().dims());
        let (y, kept) = values([&x, &weight, &bias], |[x, w, b]| RoundedOperands::forward(x, w, b));
        (tensor(y, [n, o]), LinearState::Rounded(kept.into()))
    }

    fn linear_gradients(
        kept: LinearState<Flex>,
        grad: FlexTensor,
        [to_x, to_weight, to_bias]: [bool; 3],
    ) -> (Option<FlexTensor>, Option<FlexTensor>, Option<FlexTensor>) {
        let [n, o] = grad.shape().dims();
        values([&grad], |[g]| {
            let bias = to_bias.then(|| tensor(linear::bias_gradient(g, o), [o]));
            let (i, [d_x, d_weight]) = match kept {
                LinearState::Values(x, weight) => {
                    let [i, _] = weight.shape().dims();
                    let gradients = values([&x, &weight], |[x, w]| {
                        [
                            to_x.then(|| linear::input_gradient(g, w, o)),
                            // Without rows, the slice of x does not tell its width.
                            to_weight.then(|| match n {
                                0 => vec![0.0; i * o],
                                _ => linear::weight_gradient(x, g, o),
                            }),
                        ]
                    });
                    (i, gradients)
                }
                LinearState::Rounded(kept) => (kept.inputs(), kept.gradients(g, [to_x, to_weight])),
            };
            (d_x.map(|d| tensor(d, [n, i])), d_weight.map(|d| tensor(d, [i, o])), bias)
        })
    }

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
                let (a, b) = (view(a, n, k, a_turned), view(b, k, m, b_turned));
                return product_new(Threads::All, a, b);
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
#[cfg(feature = "flex")]
fn as_it_lies(x: FlexTensor, axis: usize) -> (FlexTensor, bool) {
    let transpose = x.transpose(axis, axis + 1);
    match !x.is_contiguous() && transpose.is_contiguous() {
        true => (transpose, true),
        false => (x, false),
    }
}

impl<B: LinearOps, C: CheckpointStrategy> LinearOps for Autodiff<B, C> {
    fn linear_rows(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|t| t.into_primitive());
        let (y, kept) = B::linear_kept(x, weight, bias, precision);
        let forward = |_| (y, Some(kept));
        node::of::<B, C, _, 3>(nodes, forward, |kept, grad, wanted| {
            let (x, weight, bias) = B::linear_gradients(kept, grad, wanted);
            [x, weight, bias]
        })
    }

    fn matmul_threaded(a: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [a.node(), b.node()];
        let (a, b) = (a.into_primitive(), b.into_primitive());
        let forward = |_| (B::matmul_threaded(a.clone(), b.clone()), Some((a, b)));
        node::of::<B, C, _, 2>(nodes, forward, |(a, b), grad, [to_a, to_b]| {
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
