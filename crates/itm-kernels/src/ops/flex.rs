//! Tensors of the CPU backend as slices and back.

use burn::backend::DType;
use burn::tensor::{Shape, TensorData};

pub(super) use burn::backend::{Flex, flex::FlexTensor};

/// Calls `f` with the values of the tensors. A tensor is copied only if it is not contiguous.
pub(crate) fn values<const N: usize, T>(
    tensors: [&FlexTensor; N],
    f: impl FnOnce([&[f32]; N]) -> T,
) -> T {
    let contiguous = tensors.map(contiguous);
    f(contiguous.each_ref().map(slice))
}

/// [`values`] of some number of tensors.
pub(crate) fn slices<T>(tensors: &[FlexTensor], f: impl FnOnce(&[&[f32]]) -> T) -> T {
    let contiguous: Vec<_> = tensors.iter().map(contiguous).collect();
    f(&contiguous.iter().map(slice).collect::<Vec<_>>())
}

fn contiguous(x: &FlexTensor) -> FlexTensor {
    assert_eq!(x.dtype(), DType::F32, "the kernels compute in f32");
    x.to_contiguous()
}

fn slice(contiguous: &FlexTensor) -> &[f32] {
    contiguous.as_slice().expect("a contiguous tensor")
}

pub(crate) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

/// Calls `f` to change the values: in place if nobody else holds them, otherwise in a copy that replaces them.
pub(crate) fn change<const N: usize, T>(
    tensors: [&mut FlexTensor; N],
    f: impl FnOnce([&mut [f32]; N]) -> T,
) -> T {
    f(tensors.map(|x| {
        assert_eq!(x.dtype(), DType::F32, "the kernels compute in f32");
        *x = x.to_contiguous(); // copies only a view; then the storage holds just these values
        x.storage_mut()
    }))
}

/// [`change`] of one owned tensor.
pub(crate) fn in_place<T>(mut x: FlexTensor, f: impl FnOnce(&mut [f32]) -> T) -> (FlexTensor, T) {
    let result = change([&mut x], |[values]| f(values));
    (x, result)
}
