//! Layers and functions on burn tensors.

mod activation;
mod attention;
mod bag;
mod block;
mod cross_attention;
mod dropout;
mod embedding;
mod gru;
mod linear;
mod low_rank;
mod norm;

use burn::backend::Dispatch;
use burn::tensor::{Device, Tensor, TensorData};

use crate::ops::{FusedOps, LinearOps};
use crate::{random, rows};

pub use attention::SelfAttention;
pub use bag::bag;
pub use block::{BlockShape, TransformerBlock};
pub use cross_attention::{CrossProducts, HostProducts};
pub use dropout::Dropout;
pub use embedding::embedding;
pub use gru::{BiGru, Gru};
pub use linear::Linear;
pub use low_rank::LowRank;
pub use norm::LayerNorm;

/// `a b`, `[…, n, k]` and `[…, k, m]` to `[…, n, m]`, with equal axes before the last two: on the CPU on all threads, where burn's
/// own product uses one.
///
/// ```text
/// da = g bᵀ,   db = aᵀ g
/// ```
///
/// A transposed view is read as it lies.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use itm_kernels::matmul;
///
/// let of = |rows: [[f32; 2]; 2]| Tensor::<2>::from_floats(rows, &Device::flex());
/// let scores = matmul(of([[1.0, 0.0], [0.0, 2.0]]), of([[3.0, 4.0], [5.0, 6.0]]).transpose());
/// scores.into_data().assert_eq(&[[3.0f32, 5.0], [8.0, 12.0]].into(), true);
/// # }
/// ```
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    let (x, y) = (a.dims(), b.dims());
    let fits = D >= 2 && x[..D - 2] == y[..D - 2] && x[D - 1] == y[D - 2];
    assert!(fits, "product of {x:?} and {y:?}");
    let product = <Dispatch as LinearOps>::matmul_threaded(a.into_dispatch(), b.into_dispatch());
    Tensor::from_dispatch(product)
}

/// Rows of unit length: `x / max(‖x‖, 1e-12)`.
///
/// # Departures
/// A row of length 1e-12 or less has gradient 0 instead of a gradient times 10¹², which no training step survives.
///
/// # Panics
/// If a row has no value.
pub fn normalize_rows(x: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as FusedOps>::normalize_rows_saving(x.into_dispatch()).0)
}

/// Mean over the real steps, `[b, l, w]` to `[b, w]`; padded steps get the gradient 0.
///
/// # Panics
/// If a length is 0 or more than `l`, there are not `b` lengths, or `b` or `w` is 0.
pub fn masked_mean(x: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
    check_lengths(x.dims(), lengths);
    let mean = <Dispatch as FusedOps>::masked_mean(x.into_dispatch(), lengths.to_vec());
    Tensor::from_dispatch(mean)
}

/// Similarity of order embeddings. How far each text exceeds each image: 0 where the image dominates the text in every
/// coordinate, else negative.
///
/// ```text
/// s(i, t) = − √( Σ_j max(0, t_j − i_j)² )
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | i | `images` | `[n, d]`, not negative |
/// | t | `texts` | `[m, d]`, not negative |
/// | s | result | `[n, m]` |
///
/// # Panics
/// If the widths differ, or are 0.
///
/// # Departures
/// The root has no derivative at 0, and programs return NaN there. Here value and gradient are exactly 0.
pub fn order_similarity(images: Tensor<2>, texts: Tensor<2>) -> Tensor<2> {
    let ([n, d], [m, e]) = (images.dims(), texts.dims());
    assert_eq!(d, e, "images of shape [{n}, {d}] against texts of shape [{m}, {e}]");
    let scores =
        <Dispatch as FusedOps>::order_scores(images.into_dispatch(), texts.into_dispatch());
    Tensor::from_dispatch(scores)
}

/// A tensor uniform in `±bound`. Each value depends only on the seed and the position.
///
/// # Panics
/// If memory cannot hold the values, or `bound` is not finite.
pub fn uniform<const D: usize>(
    shape: [usize; D],
    bound: f32,
    seed: u64,
    device: &Device,
) -> Tensor<D> {
    assert!(bound.is_finite(), "values uniform in ±{bound}");
    let n = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    let mut values = Vec::<f32>::new();
    let n = n.filter(|&n| values.try_reserve_exact(n).is_ok());
    let n = n.unwrap_or_else(|| panic!("no memory for a tensor of shape {shape:?}")) as u64;
    values.extend((0..n).map(|k| bound * (2.0 * random::unit(seed, k) - 1.0)));
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn check_lengths(dims: [usize; 3], lengths: &[usize]) {
    let n = lengths.len();
    assert_eq!(dims[0], n, "sequences of shape {dims:?} with {n} lengths");
    rows::check_lengths(lengths, dims[1]);
}

/// Values of a tensor on the host, in f32, row-major.
///
/// # Panics
/// If the device fails, because there are no values then.
pub fn host<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_into_vec().expect("f32 after conversion")
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod elementwise_tests;

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use super::*;
    use crate::composed;
    use crate::tests::{close, values};

    const LENGTHS: [usize; 4] = [3, 5, 1, 4];

    #[test]
    fn unit_rows_agree_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        let x = uniform([5, 19], 2.0, 3, &device).require_grad();
        let weights = uniform([5, 19], 1.0, 4, &device);
        let fused = normalize_rows(x.clone());
        let (y, norms) = composed::normalize_rows::<Dispatch>(x.clone().into_dispatch());
        let composed = Tensor::<2>::from_dispatch(y.clone());
        close("unit rows", fused.clone(), composed.clone());
        let got = x.grad(&(fused * weights.clone()).sum().backward()).unwrap();
        let want = x.grad(&(composed * weights.clone()).sum().backward()).unwrap();
        close("gradient", got, want.clone());
        let plain = |t| Tensor::<2>::from_dispatch(t).inner().into_dispatch();
        let grad = weights.inner().into_dispatch();
        let d = composed::normalize_rows_backward::<Dispatch>(plain(y), plain(norms), grad);
        close("composed gradient", Tensor::from_dispatch(d), want);
    }

    /// Plain and transposed views, a part of a wider tensor, no columns: values and gradients have the bits of burn's own product.
    #[test]
    fn products_agree_with_burn() {
        let device = Device::flex().autodiff();
        let wide = uniform([9, 12], 1.0, 5, &device);
        let cases = [
            (uniform([37, 20], 1.0, 1, &device), uniform([20, 41], 1.0, 2, &device)),
            (
                uniform([20, 37], 1.0, 1, &device).transpose(),
                uniform([41, 20], 1.0, 2, &device).transpose(),
            ),
            (
                uniform([210, 130], 1.0, 1, &device),
                uniform([160, 130], 1.0, 2, &device).transpose(),
            ),
            (wide.clone().narrow(1, 2, 7), wide.narrow(0, 1, 7)),
            (uniform([3, 1], 1.0, 1, &device), uniform([4, 1], 1.0, 2, &device).transpose()),
        ];
        for (a, b) in cases {
            let (a, b) = (a.detach().require_grad(), b.detach().require_grad());
            let (got, want) = (matmul(a.clone(), b.clone()), a.clone().matmul(b.clone()));
            let weights = uniform(got.dims(), 1.0, 6, &device);
            assert_eq!(values(got.clone()), values(want.clone()));
            let [got, want] = [got, want].map(|y| (y * weights.clone()).sum().backward());
            assert_eq!(values(a.grad(&got).unwrap()), values(a.grad(&want).unwrap()));
            assert_eq!(values(b.grad(&got).unwrap()), values(b.grad(&want).unwrap()));
        }
    }

    /// The same for many products at a time, one operand as it lies and one transposed.
    #[test]
    fn batches_of_products_agree_with_burn() {
        let device = Device::flex().autodiff();
        let a = uniform([64, 37, 40], 1.0, 1, &device).require_grad();
        let b = uniform([64, 39, 40], 1.0, 2, &device).require_grad();
        let weights = uniform([64, 37, 39], 1.0, 3, &device);
        let got = matmul(a.clone(), b.clone().swap_dims(1, 2));
        let want = a.clone().matmul(b.clone().swap_dims(1, 2));
        assert_eq!(values(got.clone()), values(want.clone()));
        let [got, want] = [got, want].map(|y| (y * weights.clone()).sum().backward());
        assert_eq!(values(a.grad(&got).unwrap()), values(a.grad(&want).unwrap()));
        assert_eq!(values(b.grad(&got).unwrap()), values(b.grad(&want).unwrap()));
    }

    #[test]
    #[should_panic(expected = "product of [2, 3] and [2, 3]")]
    fn widths_that_do_not_fit_are_refused() {
        let x = uniform::<2>([2, 3], 1.0, 1, &Device::flex());
        matmul(x.clone(), x);
    }

    /// A row of zeros has no NaN and gradient zero, and its neighbour keeps its gradient, in kernel and fallback.
    #[test]
    fn a_zero_row_has_a_finite_gradient() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_floats([[0., 0.], [3., 4.]], &device).require_grad();
        let y = normalize_rows(x.clone());
        assert_eq!(values(y.clone()), [0., 0., 0.6, 0.8]);
        let grads = y.slice([0..2, 0..1]).sum().backward();
        let d = values(x.grad(&grads).unwrap());
        assert_eq!(d[..2], [0., 0.]);
        assert!((d[2] - 0.64 / 5.0).abs() < 1e-6 && (d[3] + 0.48 / 5.0).abs() < 1e-6, "{d:?}");

        let (y, norms) = composed::normalize_rows::<Dispatch>(x.inner().into_dispatch());
        let grad = Tensor::<2>::from_floats([[1., 0.], [1., 0.]], &Device::flex()).into_dispatch();
        let d = composed::normalize_rows_backward::<Dispatch>(y, norms, grad);
        let d = values(Tensor::<2>::from_dispatch(d));
        assert!(d[..2] == [0., 0.] && (d[2] - 0.64 / 5.0).abs() < 1e-6, "{d:?}");
    }

    #[test]
    fn means_agree_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        let x = uniform([4, 5, 7], 1.0, 8, &device).require_grad();
        let weights = uniform([4, 7], 1.0, 9, &device);
        let fused = masked_mean(x.clone(), &LENGTHS);
        let composed = composed::masked_mean::<Dispatch>(x.clone().into_dispatch(), &LENGTHS);
        let composed = Tensor::<2>::from_dispatch(composed);
        close("means", fused.clone(), composed.clone());
        let got = x.grad(&(fused * weights.clone()).sum().backward()).unwrap();
        let want = x.grad(&(composed * weights.clone()).sum().backward()).unwrap();
        close("gradient", got, want.clone());
        let grad = weights.inner().into_dispatch();
        let d = composed::masked_mean_backward::<Dispatch>(grad, &LENGTHS, 5);
        close("composed gradient", Tensor::from_dispatch(d), want);
    }
}
