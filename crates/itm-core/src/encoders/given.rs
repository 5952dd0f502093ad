//! Parameters from given weights.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use crate::start::LinearMap;
use crate::{Error, Result};

impl LinearMap {
    /// Weight and bias as parameters of an encoder with this number of inputs and this width.
    ///
    /// # Errors
    /// If the map has another shape, or a value is not finite.
    pub fn parameters(
        &self,
        place: &str,
        [inputs, d]: [usize; 2],
        device: &Device,
    ) -> Result<(Param<Tensor<2>>, Param<Tensor<1>>)> {
        let (weight, bias) = linear_map(place, &self.weight, &self.bias, device)?;
        let got = weight.dims();
        let (fits, sizes) = (got == [inputs, d], format!("{} and {}", got[0], got[1]));
        Error::unless(fits, place, format_args!("{inputs} inputs and {d} outputs"), sizes)?;
        Ok((weight, bias))
    }
}

/// A weight, `[inputs, d]` row-major, and a bias `[d]`, as parameters.
///
/// # Errors
/// If the rows of the weight are not as wide as the bias, or a value is not finite.
pub(super) fn linear_map(
    place: &str,
    weight: &[f32],
    bias: &[f32],
    device: &Device,
) -> Result<(Param<Tensor<2>>, Param<Tensor<1>>)> {
    let d = bias.len();
    let fits = !weight.is_empty() && d > 0 && weight.len().is_multiple_of(d);
    let expected = format!("rows of weights as wide as the bias of {d}");
    Error::unless(fits, place, expected, format_args!("{} weights", weight.len()))?;
    for values in [weight, bias] {
        Error::unless_finite(values, |_| place.into(), "finite weights")?;
    }
    let weight = TensorData::new(weight.to_vec(), [weight.len() / d, d]);
    let bias = TensorData::new(bias.to_vec(), [d]);
    let (weight, bias) = (Tensor::from_data(weight, device), Tensor::from_data(bias, device));
    Ok((Param::from_tensor(weight), Param::from_tensor(bias)))
}
