//! GELU and softmax.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::ops::{GeluOps, SoftmaxOps};

/// `x Φ(x)` with the normal distribution function Φ: the exact form, by erf. Equations: [`crate::gelu`](mod@crate::gelu).
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as GeluOps>::fused_gelu(x.into_dispatch()))
}

/// Softmax over the last axis. Equations: [`crate::softmax`](mod@crate::softmax).
///
/// `counts` gives the number of entries of a row that count, from its start; without it all entries count. All axes
/// of `x` before the last are one axis of rows. Each count holds for the same number of consecutive rows: `b` counts
/// for scores `[b, h, l, l]`. An entry that does not count has weight 0 and gradient 0, also if no entry of the row
/// counts.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use itm_kernels::softmax;
///
/// let x = Tensor::<2>::from_floats([[1.0, 1.0, 9.0], [5.0, 5.0, 5.0]], &Device::flex());
/// let y = softmax(x, Some(&[2, 0]));
/// y.into_data().assert_eq(&[[0.5f32, 0.5, 0.0], [0.0, 0.0, 0.0]].into(), true);
/// # }
/// ```
///
/// # Panics
/// If a count is more than the last axis, or the counts do not divide the rows.
pub fn softmax<const D: usize>(x: Tensor<D>, counts: Option<&[usize]>) -> Tensor<D> {
    let dims = x.dims();
    let (rows, w) = (dims[..D - 1].iter().product::<usize>(), dims[D - 1]);
    if let Some(counts) = counts {
        let fits = !counts.is_empty() && rows.is_multiple_of(counts.len());
        assert!(fits, "{} counts for rows of shape {dims:?}", counts.len());
        let beyond = counts.iter().find(|&&n| n > w);
        assert!(beyond.is_none(), "count {beyond:?} for rows of shape {dims:?}");
    }
    let x = x.reshape([rows, w]).into_dispatch();
    let y = <Dispatch as SoftmaxOps>::fused_softmax(x, counts.map(<[usize]>::to_vec));
    Tensor::<2>::from_dispatch(y).reshape(dims)
}
