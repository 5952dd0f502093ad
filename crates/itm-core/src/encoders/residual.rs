//! A perceptron parallel to a linear map.

use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use itm_kernels::{Dropout, Linear, Noise, random, uniform};
use serde::{Deserialize, Serialize};

use crate::ranges::{above_zero, size_within, within};
use crate::{Error, Result};

/// Sizes and choices of a [`Residual`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ResidualShape {
    /// Width h of the hidden layer.
    pub hidden: usize,
    /// c: the standard deviation of the inputs after scaling.
    pub input_scale: f64,
    /// Dropout probability of the inputs.
    pub input_dropout: f64,
    /// Dropout probability of the hidden values.
    pub hidden_dropout: f64,
    /// f: the learning rate of these weights under Adam, as a multiple of the rate of all other weights.
    pub rate_factor: f64,
}

impl ResidualShape {
    /// Refuses values out of range.
    ///
    /// # Errors
    /// Names the key below `place`, its range and its value.
    pub(crate) fn validate(&self, place: &str) -> Result<()> {
        let key = |key: &str| format!("{place}.{key}");
        let share = |x: f64| (0.0..1.0).contains(&x);
        size_within(&key("hidden"), self.hidden)?;
        above_zero(&key("input_scale"), self.input_scale)?;
        within(&key("input_dropout"), self.input_dropout, "in [0, 1)", share)?;
        within(&key("hidden_dropout"), self.hidden_dropout, "in [0, 1)", share)?;
        let in_f32 = |f: f64| (1e-6..=1e6).contains(&f); // weights are divided by it
        within(&key("rate_factor"), self.rate_factor, "from 1e-6 to 1e6", in_f32)
    }
}

/// A perceptron that starts at zero, added to a linear map of the same inputs.
///
/// ```text
/// r(x) = W₂ drop(relu(W₁ drop(c·x / σ) + b₁)) + b₂
/// W = f · first.weight, and so on: the parameters are the weights divided by f
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x | the features, before dropout | `[b, dim]` |
/// | W₁, b₁ | f · `first` | `[dim, h]`, `[h]` |
/// | W₂, b₂ | f · `second` | `[h, d]`, `[d]` |
/// | c, σ | `shape.input_scale`, `std` | |
/// | f | `shape.rate_factor` | |
///
/// Adam's step does not depend on the size of a gradient. So a step of a parameter at the rate η is a step of its
/// weight at f·η.
///
/// # Departures
/// A parameter group with its own rate would give the same steps, except for Adam's ε. Here clipping sees gradients
/// that are f times as long, and weight decay takes the same share of these weights as of all others.
#[derive(Module, Debug)]
pub struct Residual {
    /// `[dim, h]`
    pub first: Linear,
    /// `[h, d]`
    pub second: Linear,
    /// c, f and the probabilities of dropout.
    #[module(skip)]
    pub shape: ResidualShape,
    /// σ
    #[module(skip)]
    pub std: f64,
}

impl Residual {
    /// Draws W₁ and b₁ uniformly from ±1/√dim; W₂ and b₂ are 0. `std` is σ, the standard deviation of all training
    /// features.
    ///
    /// # Errors
    /// If σ or a value of the shape is out of range.
    pub(super) fn new(
        shape: &ResidualShape,
        [dim, d]: [usize; 2],
        std: f64,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        shape.validate("residual")?;
        let ResidualShape { hidden, rate_factor, .. } = *shape;
        let bound = (1.0 / ((dim as f64).sqrt() * rate_factor)) as f32;
        let weight = uniform([dim, hidden], bound, random::derive(seed, 0), device);
        let bias = uniform([hidden], bound, random::derive(seed, 1), device);
        let first = Linear::new(Param::from_tensor(weight), Param::from_tensor(bias));
        let (weight, bias) = (Tensor::zeros([hidden, d], device), Tensor::zeros([d], device));
        let second = Linear::new(Param::from_tensor(weight), Param::from_tensor(bias));
        Self { first, second, shape: shape.clone(), std: 1.0 }.of_deviation(std)
    }

    /// Sets the standard deviation σ of the features.
    ///
    /// # Errors
    /// If σ is not above 0, or the scale of the inputs is no f32.
    pub(super) fn of_deviation(self, std: f64) -> Result<Self> {
        let (fits, expected) = (std.is_finite() && std > 0.0, "a standard deviation above 0");
        Error::unless(fits, "features of a residual", expected, std)?;
        let (scale, expected) = ((self.shape.input_scale / std) as f32, "input_scale / σ in f32");
        Error::unless(scale.is_normal(), "features of a residual", expected, scale)?;
        Ok(Self { std, ..self })
    }

    /// c / σ
    pub(super) fn scale(&self) -> f32 {
        (self.shape.input_scale / self.std) as f32
    }

    /// r, `[b, d]`, of inputs that are already scaled and, in training, dropped.
    pub(super) fn forward(&self, inputs: Tensor<2>, noise: Noise) -> Tensor<2> {
        let f = self.shape.rate_factor;
        let hidden = relu(self.first.forward(inputs) * f); // [b, h]
        let hidden = Dropout::new(self.shape.hidden_dropout).forward(hidden, noise);
        self.second.forward(hidden) * f
    }
}
