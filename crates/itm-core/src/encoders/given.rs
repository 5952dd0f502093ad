//! Parameters from given weights.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use crate::start::LinearMap;
use crate::{Error, Result};

impl LinearMap {
    /// Weight and bias as parameters of an encoder with this number of inputs and this width.
    ///
    /// # Errors
    /// If the rows of the weight are not as wide as the bias, the map has another shape, or a value is not finite.
    pub fn parameters(
        &self,
        place: &str,
        [inputs, d]: [usize; 2],
        device: &Device,
    ) -> Result<(Param<Tensor<2>>, Param<Tensor<1>>)> {
        let (weight, bias, width) = (&self.weight, &self.bias, self.bias.len());
        let fits = !weight.is_empty() && width > 0 && weight.len().is_multiple_of(width);
        let expected = format!("rows of weights as wide as the bias of {width}");
        Error::unless(fits, place, expected, format_args!("{} weights", weight.len()))?;
        for values in [weight, bias] {
            Error::unless_finite(values, |_| place.into(), "finite weights")?;
        }
        let rows = weight.len() / width;
        let expected = format_args!("{inputs} inputs and {d} outputs");
        let got = format_args!("{rows} and {width}");
        Error::unless([rows, width] == [inputs, d], place, expected, got)?;
        let weight = Tensor::from_data(TensorData::new(weight.clone(), [rows, width]), device);
        let bias = Tensor::from_data(TensorData::new(bias.clone(), [width]), device);
        Ok((Param::from_tensor(weight), Param::from_tensor(bias)))
    }
}
