//! Comparisons of tensors in tests.

use burn::tensor::Tensor;

pub(crate) fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

/// Equal to 1e-5, and not because both are zero.
pub(crate) fn close<const D: usize>(name: &str, got: Tensor<D>, want: Tensor<D>) {
    assert_eq!(got.dims(), want.dims(), "{name}");
    let (got, want) = (values(got), values(want));
    let error = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).fold(0.0, f32::max);
    assert!(error < 1e-5, "{name} is off by {error:e}");
    assert!(want.iter().any(|w| w.abs() > 1e-3), "{name} is all zero: nothing was compared");
}
