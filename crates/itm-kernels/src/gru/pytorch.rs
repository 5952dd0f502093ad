//! Weights in the layout of PyTorch.

use crate::transpose::transposed;

/// Weights of one layer and direction from PyTorch's `weight_ih_l0` `[3h, i]`, `weight_hh_l0` `[3h, h]`, `bias_ih_l0`
/// and `bias_hh_l0` `[3h]`, or from the four `…_l0_reverse`. The result has the order of the fields of
/// [`Weights`](super::Weights).
///
/// The gates keep their order; only the matrices are transposed.
///
/// # Panics
/// If a shape does not fit the shape of `bias_ih`.
pub fn from_pytorch(parts: [&[f32]; 4]) -> [Vec<f32>; 4] {
    let [weight_ih, weight_hh, bias_ih, bias_hh] = parts;
    let wide = bias_ih.len();
    let (h, i) = (wide / 3, weight_ih.len() / wide.max(1));
    assert!(h > 0 && 3 * h == wide, "{wide} input biases are not 3h");
    assert_eq!(bias_hh.len(), wide, "hidden biases beside {wide} input biases");
    assert_eq!(weight_ih.len(), wide * i, "weight_ih is not [{wide}, i]");
    assert_eq!(weight_hh.len(), wide * h, "weight_hh is not [{wide}, {h}]");
    [
        transposed(weight_ih, wide, i),
        transposed(weight_hh, wide, h),
        bias_ih.to_vec(),
        bias_hh.to_vec(),
    ]
}
