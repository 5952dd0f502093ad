//! Tensors of the CPU backend as slices and back.

use burn::backend::DType;
use burn::backend::flex::FlexTensor;
use burn::tensor::TensorData;

/// Calls `f` with the values, copied only if they are not contiguous.
pub(crate) fn values<const N: usize, T>(
    tensors: [&FlexTensor; N],
    f: impl FnOnce([&[f32]; N]) -> T,
) -> T {
    let contiguous = tensors.map(|x| {
        assert_eq!(x.dtype(), DType::F32, "the kernels compute in f32");
        x.to_contiguous()
    });
    f(contiguous.each_ref().map(|x| x.as_slice().expect("made contiguous above")))
}

pub(crate) fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// Calls `f` with the values to change: in place where nobody else holds them, else in a copy that takes their stead.
pub(crate) fn in_place<const N: usize, T>(
    tensors: [&mut FlexTensor; N],
    f: impl FnOnce([&mut [f32]; N]) -> T,
) -> T {
    f(tensors.map(|x| {
        assert_eq!(x.dtype(), DType::F32, "the kernels compute in f32");
        *x = x.to_contiguous(); // itself unless it is a view: the storage is then all there is
        x.storage_mut()
    }))
}
