//! Tensors of the CPU backend as slices and back.

use burn::backend::DType;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, TensorData};

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

/// Changes the values where they are, or in a copy if somebody else sees them or the tensor is a view.
pub(crate) fn in_place<T>(x: FlexTensor, f: impl FnOnce(&mut [f32]) -> T) -> (FlexTensor, T) {
    assert_eq!(x.dtype(), DType::F32, "the kernels compute in f32");
    let mut to = x.to_contiguous();
    drop(x); // so that `to` may be the only owner
    let result = f(to.storage_mut());
    (to, result)
}

pub(crate) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}
