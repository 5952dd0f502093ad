//! Losses over all pairs of a batch: InfoNCE and the pairwise sigmoid.

mod dual;

use burn::module::{Module, Param};
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Bool, Device, Tensor};

use serde::{Deserialize, Serialize};

use crate::learn::within;
use crate::{Block, Result, Siblings, host};

/// The largest 1/τ that a learnt temperature has after an update (CLIP).
const LARGEST_SCALE: f64 = 100.0;

/// The temperature τ that divides the scores: a fixed number or a learnt parameter.
///
/// ```text
/// fixed: τ      learnt: 1/τ = exp θ,   θ ← min(θ, log 100) after each update: bounded
/// ```
#[derive(Module, Debug)]
pub enum Temperature {
    /// τ, above 0.
    Fixed(f64),
    /// θ = log(1/τ), `[1]`.
    Learned(Param<Tensor<1>>),
}

impl Temperature {
    /// A learnt temperature that starts at τ, or at 1/100 if τ is below. CLIP starts at 0.07.
    ///
    /// # Panics
    /// If τ is not above 0, or 1/τ is no number of f32.
    pub fn learned(tau: f64, device: &Device) -> Self {
        check(tau);
        let start = Tensor::from_floats([(-tau.ln()).min(LARGEST_SCALE.ln()) as f32], device);
        Self::Learned(Param::from_tensor(start))
    }

    /// The present value of τ.
    pub fn value(&self) -> f64 {
        match self {
            Self::Fixed(tau) => *tau,
            Self::Learned(log) => f64::from(host(log.val().exp())[0]).recip(),
        }
    }

    /// The temperature with θ set back to log 100 if θ is beyond. Call it after each update, as CLIP does.
    #[must_use]
    pub(crate) fn bounded(self) -> Self {
        match self {
            Self::Learned(log) => Self::Learned(log.map(|log| {
                let learns = log.is_require_grad();
                let log = log.set_require_grad(false).clamp_max(LARGEST_SCALE.ln());
                log.set_require_grad(learns)
            })),
            fixed => fixed,
        }
    }

    /// s / τ
    fn divide(&self, scores: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Fixed(tau) => {
                check(*tau);
                scores / *tau
            }
            Self::Learned(log) => scores * log.val().exp().unsqueeze(),
        }
    }
}

fn check(tau: f64) {
    assert!(divides(tau), "a temperature above 0, got {tau}");
}

fn divides(tau: f64) -> bool {
    tau > 0.0 && (tau as f32).is_normal() && (tau.recip() as f32).is_normal()
}

/// Symmetric InfoNCE: the cross-entropy of the own text for each image, and of the own image for each text; `[b]` each,
/// not reduced.
///
/// ```text
/// ℓ(a) = log Σ_{c ∈ C(a)} exp(s(a, c) / τ) − s(a, a⁺) / τ
/// ```
///
/// | symbol | here | shape | CLIP |
/// |---|---|---|---|
/// | s | `scores`, images × texts, own pairs on the diagonal; cosines | `[b, b]` | I·T |
/// | τ | `temperature` | | exp(−t) |
/// | C(a) | all candidates of the batch, the own included, except masked `siblings` | | all |
/// | ℓ | result: images as anchors, texts as anchors | `[b]` twice | `loss_i`, `loss_t` |
///
/// A term is never below 0. The term and its gradient are 0 for an anchor whose only candidate is its own: in a batch
/// of one pair, or in a batch of one image whose siblings are masked. A masked score reaches neither loss nor gradient,
/// whatever its value.
///
/// # Panics
/// If `scores` is not square or empty, there are not `b` image ids, or a fixed temperature is not above 0.
///
/// # Departures
/// CLIP takes the mean over the batch and over both directions, and has no siblings. Here the caller reduces and
/// chooses `siblings`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use itm_core::Siblings;
/// use itm_core::contrastive::{Temperature, info_nce};
///
/// let half_ln_3 = 0.5 * 3f32.ln();
/// let scores = Tensor::<2>::from_floats([[half_ln_3, 0.0], [0.0, half_ln_3]], &Device::flex());
/// let [i2t, t2i] = info_nce(scores, &Temperature::Fixed(0.5), Siblings::Negatives);
/// // exp(s / τ): 3 for the own pair, 1 for the other. log(3 + 1) − log 3.
/// for term in i2t.into_data().iter::<f32>().chain(t2i.into_data().iter::<f32>()) {
///     assert!((term - (4f32 / 3.0).ln()).abs() < 1e-6);
/// }
/// ```
pub fn info_nce(
    scores: Tensor<2>,
    temperature: &Temperature,
    siblings: Siblings,
) -> [Tensor<1>; 2] {
    let scores = Block::in_batch(scores).scores; // square
    let (b, device) = (scores.dims()[0], scores.device());
    let masked = siblings.masked(b, &device); // symmetric
    // Masked before τ is applied too: the gradient of τ multiplies by the score, which may be infinite or NaN.
    let logits = temperature.divide(filled(scores, &masked, 0.0));
    [logits.clone(), logits.transpose()].map(|logits| {
        let Block { positive, scores, .. } = Block::in_batch(logits);
        let candidates = filled(scores, &masked, f32::NEG_INFINITY);
        let largest = candidates.clone().detach().max_dim(1); // [b, 1]; the own pair at least
        let sum = (candidates - largest.clone()).exp().sum_dim(1);
        (sum.log() + (largest - positive)).reshape([b])
    })
}

/// The pairwise sigmoid loss: one binary classification (match or no match) per pair of the batch, `[b, b]`, not
/// reduced.
///
/// ```text
/// ℓ(i, j) = −log σ(y_ij · (s_ij / τ + β)),   y = 1 on the diagonal, −1 elsewhere
/// ```
///
/// | symbol | here | shape | SigLIP |
/// |---|---|---|---|
/// | s | `scores`, images × texts, own pairs on the diagonal; cosines | `[b, b]` | x·y |
/// | 1/τ | `temperature` | | t = exp t′, starts at 10 |
/// | β | `bias`, a parameter's value or a constant | `[1]` | b, starts at −10 |
/// | ℓ | result; value and gradient are 0 for masked `siblings` | `[b, b]` | |
///
/// In a batch of one pair, the only term is the match. A masked score never reaches the loss or the gradient, whatever
/// its value.
///
/// # Panics
/// If `scores` is not square or empty, there are not `b` image ids, a fixed temperature is not above 0, or the bias is not one value.
///
/// # Departures
/// SigLIP sums and divides by b, has no siblings, and never bounds the temperature.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use itm_core::Siblings;
/// use itm_core::contrastive::{Temperature, sigmoid_pairs};
///
/// let device = Device::flex();
/// let scores = Tensor::<2>::from_floats([[0.5, 0.0], [-0.5, 0.0]], &device);
/// let (temperature, bias) = (Temperature::Fixed(0.5 / 3f64.ln()), Tensor::zeros([1], &device));
/// let terms = sigmoid_pairs(scores, &temperature, bias, Siblings::Negatives);
/// // s / τ: log 3, 0; −log 3, 0. σ(log 3) = 3/4 for the first pair of each row; σ(0) = 1/2 for the second.
/// let want = [4f32 / 3.0, 2.0, 4.0 / 3.0, 2.0].map(f32::ln);
/// for (term, want) in terms.into_data().iter::<f32>().zip(want) {
///     assert!((term - want).abs() < 1e-6);
/// }
/// ```
pub fn sigmoid_pairs(
    scores: Tensor<2>,
    temperature: &Temperature,
    bias: Tensor<1>,
    siblings: Siblings,
) -> Tensor<2> {
    let Block { scores, excluded: diagonal, .. } = Block::in_batch(scores);
    let masked = siblings.masked(scores.dims()[0], &scores.device());
    assert_eq!(bias.dims(), [1], "a bias of shape {:?}, not [1]", bias.dims());
    let logits = temperature.divide(filled(scores, &masked, 0.0)) + bias.unsqueeze();
    let terms = log_sigmoid(logits.clone().neg().mask_where(diagonal, logits)).neg();
    filled(terms, &masked, 0.0)
}

/// The values with this value in the masked places.
fn filled(values: Tensor<2>, masked: &Option<Tensor<2, Bool>>, value: f32) -> Tensor<2> {
    match masked {
        Some(masked) => values.mask_fill(masked.clone(), value),
        None => values,
    }
}

/// Temperature and bias of a contrastive loss, as a configuration gives them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContrastiveOptions {
    /// τ, or the start of a learnt τ.
    pub temperature: f64,
    /// β of the pairwise sigmoid, or the start of a learnt β. InfoNCE does not use β.
    pub bias: f64,
    /// Whether both are learnt.
    pub learn: Learnt,
}

/// Whether temperature and bias are learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Learnt {
    /// Both stay at the configured values.
    #[default]
    Fixed,
    /// Both are parameters, like the weights.
    Learned,
}

impl ContrastiveOptions {
    /// Refuses numbers that no loss can use.
    ///
    /// # Errors
    /// Names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        let expected = "above 0, and neither it nor its inverse beyond f32";
        within("contrastive.temperature", self.temperature, expected, divides)?;
        within("contrastive.bias", self.bias, "a number of f32", |bias| (bias as f32).is_finite())
    }
}

/// A contrastive loss with its temperature and bias, which may be learnt.
#[derive(Module, Debug)]
pub struct Contrast {
    /// τ
    pub temperature: Temperature,
    /// β, where it is learnt.
    pub bias: Option<Param<Tensor<1>>>,
    /// β as configured; `None` in a loss without β.
    #[module(skip)]
    constant: Option<f64>,
}

impl Contrast {
    /// Builds the loss from its options.
    ///
    /// # Panics
    /// If [`ContrastiveOptions::validate`] refuses the options.
    pub fn new(options: &ContrastiveOptions, device: &Device) -> Self {
        options.validate().unwrap_or_else(|error| panic!("{error}"));
        let ContrastiveOptions { temperature, bias, learn } = *options;
        let beta = || Param::from_tensor(Tensor::from_floats([bias as f32], device));
        let (temperature, beta) = match learn {
            Learnt::Fixed => (Temperature::Fixed(temperature), None),
            Learnt::Learned => (Temperature::learned(temperature, device), Some(beta())),
        };
        Self { temperature, bias: beta, constant: Some(bias) }
    }

    /// The same loss without β, for a training by InfoNCE.
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { constant: None, ..self }
    }

    /// The loss with its temperature bounded.
    pub(crate) fn bounded(self) -> Self {
        Self { temperature: self.temperature.bounded(), ..self }
    }

    /// The mean of [`info_nce`] over the batch and both directions.
    ///
    /// # Panics
    /// As [`info_nce`].
    pub fn info_nce(&self, scores: Tensor<2>, siblings: Siblings) -> Tensor<1> {
        let [i2t, t2i] = info_nce(scores, &self.temperature, siblings);
        (i2t.mean() + t2i.mean()) / 2.0
    }

    /// The sum of [`sigmoid_pairs`] over all pairs, divided by the batch size. Without β it is 0.
    ///
    /// # Panics
    /// As [`sigmoid_pairs`].
    pub fn sigmoid(&self, scores: Tensor<2>, siblings: Siblings) -> Tensor<1> {
        let (b, device) = (scores.dims()[0], scores.device());
        let bias = self.beta(&device).unwrap_or_else(|| Tensor::zeros([1], &device));
        sigmoid_pairs(scores, &self.temperature, bias, siblings).sum() / b as f64
    }

    /// β, `[1]`
    pub(crate) fn beta(&self, device: &Device) -> Option<Tensor<1>> {
        let constant = self.constant?;
        Some(match &self.bias {
            Some(bias) => bias.val(),
            None => Tensor::from_floats([constant as f32], device),
        })
    }
}

#[cfg(test)]
mod tests;
