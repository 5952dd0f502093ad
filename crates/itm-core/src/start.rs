//! The start of a training: initial weights of two linear encoders from closed-form CCA, and the statistics of the
//! training data that encoders use.

mod form;
#[cfg(feature = "weights")]
mod stored;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::{Features, Regions, mean_row};
use crate::text::Terms;
use crate::{Error, Result};

pub use form::{BagPooling, TextForm};

/// The weights of a model before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StartFrom {
    /// The encoder's usual start: published weights, or random weights from the seed.
    #[default]
    Random,
    /// Closed-form CCA of the training pairs: a [`Start`].
    Cca,
}

impl StartFrom {
    /// The options of CCA, if it gives the weights. `cca` is the section `[model.cca]`, which is checked also if it does not.
    ///
    /// # Errors
    /// If a ridge, the power or the fill is negative or not finite, there is no dimension, or CCA has no section.
    pub fn options(self, cca: Option<&StartOptions>) -> Result<Option<&StartOptions>> {
        cca.map_or(Ok(()), StartOptions::validate)?;
        let missing =
            || Error::invalid("model.start", "\"cca\" with a section [model.cca]", "none");
        match self {
            Self::Random => Ok(None),
            Self::Cca => cca.ok_or_else(missing).map(Some),
        }
    }
}

/// The CCA that gives the weights, and the fill of the remaining width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartOptions {
    /// `rx`: ridge of the images, relative to their mean variance.
    pub ridge_image: f64,
    /// `ry`: ridge of the texts.
    pub ridge_text: f64,
    /// `p`: the weight of a dimension is its correlation to this power.
    pub power: f64,
    /// `k`: number of columns of the maps that come from CCA.
    pub dims: usize,
    /// Standard deviation of all other columns, relative to the standard deviation of the entries from CCA.
    pub fill: f64,
}

impl StartOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// If a ridge, the power or the fill is negative or not finite, or if there is no dimension.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("ridge_image", self.ridge_image),
            ("ridge_text", self.ridge_text),
            ("power", self.power),
            ("fill", self.fill),
        ] {
            let fits = value.is_finite() && value >= 0.0;
            Error::unless(fits, place(key), "a number from 0", value)?;
        }
        Error::unless(self.dims > 0, place("dims"), "a number from 1", 0)
    }

    /// Checks the width of the model against the width of CCA.
    ///
    /// # Errors
    /// If CCA has more dimensions than the model, or fewer dimensions and `fill` is 0.
    pub fn fits(&self, width: usize) -> Result<()> {
        let dims = self.dims;
        let expected = format!("at most {width}, the width of the model");
        Error::unless(dims <= width, place("dims"), expected, dims)?;
        let last = width.saturating_sub(1);
        let expected = format_args!("a number above 0, for columns {dims} to {last}");
        Error::unless(dims == width || self.fill != 0.0, place("fill"), expected, 0)
    }
}

pub(crate) fn place(key: &str) -> String {
    format!("model.cca.{key}")
}

/// `x ↦ Wᵀ x + b`.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearMap {
    /// `W`, `[inputs, d]` row-major.
    pub weight: Vec<f32>,
    /// `b`, `[d]`.
    pub bias: Vec<f32>,
}

/// Two linear maps whose cosines are the scores of closed-form CCA.
///
/// ```text
/// W′x = Wx / mean ‖Wxᵀ (x − μx)‖     b′x = −W′xᵀ μx      mean over the first 2,000 training images
/// W′y = Wy / mean ‖Wyᵀ (y − μy)‖     b′y = −W′yᵀ μy      mean over the first 5,000 training captions
/// s(v, w) = cos(W′xᵀ x + b′x, W′yᵀ y + b′y)
/// ```
///
/// | symbol | here                                                         | shape     |
/// |--------|--------------------------------------------------------------|-----------|
/// | x      | the features as the encoder gets them                        | `[dx]`    |
/// | y      | idf of the distinct terms of a caption, at unit length, beside its given row | `[dy]` |
/// | Wx, Wy | as in `cca::Cca`, columns times `sᵖ`                | `[·, k]`  |
/// | W′, b′ | [`Start::image`], [`Start::text`]                            | `[·, d]`, `[d]` |
///
/// The scale gives outputs of about unit length. The scale matters because it decides how far an update turns the
/// normalised output. Where `d > k`, the columns after the first `k` are drawn from a normal distribution and have no
/// bias. Their standard deviation is [`StartOptions::fill`] times the deviation of the entries of the first `k`
/// columns. The scores then differ from the scores of CCA.
///
/// ```
/// # #[cfg(feature = "cca")] {
/// use itm_core::Pairs;
/// use itm_core::cca::StartInputs;
/// use itm_core::data::Features;
/// use itm_core::start::{Start, StartOptions};
/// use itm_core::text::Terms;
///
/// let features = Features { dim: 2, values: [[0.6, -0.2], [-0.6, 0.2]].repeat(4).concat() };
/// let captions = ["Two dogs running.", "A red car."].repeat(4).into_iter().map(String::from).collect::<Vec<_>>();
/// let (pairs, terms) = (Pairs::uniform(8, 1), Terms::fit(&captions, 2, 6000));
/// let options = StartOptions { ridge_image: 2.0, ridge_text: 2.0, power: 1.0, dims: 1, fill: 0.3 };
///
/// let inputs = StartInputs { features: &features, captions: &captions, pairs: &pairs, terms: &terms, rows: &Features::default() };
/// let Start { image, .. } = Start::solve(&inputs, 1, 0, &options)?;
/// let mapped = 0.6 * image.weight[0] - 0.2 * image.weight[1] + image.bias[0];
/// assert!((mapped.abs() - 1.0).abs() < 1e-6); // unit length, like all images here
/// # }
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Map of the images.
    pub image: LinearMap,
    /// Map of the texts: from terms, or in another [form](TextForm).
    pub text: LinearMap,
}

impl Start {
    /// The number of columns that come from CCA: at most [`StartOptions::dims`], and at most the rank of the training pairs. Only
    /// these columns have a bias.
    pub fn dims(&self) -> usize {
        let last = |map: &LinearMap| map.bias.iter().rposition(|&bias| bias != 0.0);
        last(&self.image).max(last(&self.text)).map_or(0, |last| last + 1)
    }
}

/// Statistics of the training data that encoders use but do not learn.
#[derive(Debug, Clone, PartialEq)]
pub struct InputStatistics {
    /// Standard deviation of all values of the image features; 0 without features.
    pub deviation: f64,
    /// Inverse document frequencies of the terms, where captions are sets of terms.
    pub idf: Option<Vec<f32>>,
    /// The given rows of captions, which stand beside the terms.
    pub rows: Option<Arc<Features>>,
}

impl InputStatistics {
    /// The statistics of the **training** split. `features` are the features as the encoder gets them.
    pub fn of(features: &Features, terms: Option<&Terms>) -> Self {
        let deviation = deviation(features.values.iter().map(|&x| f64::from(x)));
        let idf = |terms: &Terms| terms.idf().iter().map(|&idf| idf as f32).collect();
        Self { deviation, idf: terms.map(idf), rows: None }
    }
}

/// The standard deviation of some values; 0 of none.
pub(crate) fn deviation(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.clone().sum::<f64>() / n;
    (values.map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// The mean region of each image, computed in double precision. It replaces the global feature where an encoder reads
/// regions.
///
/// # Errors
/// If a region cannot be read.
pub fn mean_regions(regions: &Regions) -> Result<Features> {
    let dim = regions.dim();
    let mut values = Vec::with_capacity(regions.len() * dim);
    for image in 0..regions.len() {
        let rows = regions.rows(&[image])?;
        values.extend(mean_row(&rows.values, dim).into_iter().map(|x| x as f32));
    }
    Ok(Features { dim, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: for an image of two regions (1 + 3) / 2 and (2 + 6) / 2; for an image of one region the region itself.
    #[test]
    fn golden_means_of_regions() {
        let regions = Regions::new(2, vec![2, 1], vec![1.0, 2.0, 3.0, 6.0, -5.0, 7.0]).unwrap();
        let means = Features { dim: 2, values: vec![2.0, 4.0, -5.0, 7.0] };
        assert_eq!(mean_regions(&regions).unwrap(), means);
    }

    /// Features of mean 0 give a column of CCA without a bias on this side.
    #[test]
    fn columns_of_cca_have_a_bias_on_either_side() {
        let map = |bias: [f32; 2]| LinearMap { weight: vec![1.0; 2], bias: bias.to_vec() };
        let dims = |image, text| Start { image: map(image), text: map(text) }.dims();
        assert_eq!(dims([0.0, 0.0], [0.5, 0.0]), 1);
        assert_eq!(dims([0.0, 0.1], [0.5, 0.0]), 2);
        assert_eq!(dims([0.0; 2], [0.0; 2]), 0);
    }
}
