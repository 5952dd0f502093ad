//! Reads tensors back to the host.

use burn::tensor::Tensor;

/// Values of a tensor on the host, in f32, row-major.
///
/// # Panics
/// If the device fails, because there are no values then.
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.try_into_vec().expect("f32 after conversion")
}
