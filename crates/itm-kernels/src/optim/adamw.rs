//! AdamW, with clipping of the norm of all gradients.

use burn::backend::Dispatch;
use burn::backend::tensor::FloatTensor;
use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::{Update, named, updated};
use crate::layers::host;
use crate::ops::UpdateOps;
use crate::update::AdamStep;

/// Which parameters decay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecayRule {
    /// All parameters.
    #[default]
    All,
    /// Parameters of two dimensions or more, [unless](Self::Unless) they are named: weights and tables, but no bias and no
    /// scale of a norm.
    Matrices(&'static [&'static str]),
    /// Parameters whose dotted name in the module ([`named`](super::named)) has none of these names in it. A name is one
    /// part of the dotted name, or several neighbours: `norm.gamma` is in `text.norm.gamma`, but not in
    /// `text.box_norm.gamma`.
    Unless(&'static [&'static str]),
}

impl DecayRule {
    fn holds(self, name: &str, dimensions: usize) -> bool {
        let dotted = format!(".{name}.");
        let named = |names: &[&str]| names.iter().any(|part| dotted.contains(&format!(".{part}.")));
        match self {
            Self::All => true,
            Self::Matrices(unless) => dimensions >= 2 && !named(unless),
            Self::Unless(names) => !named(names),
        }
    }
}

/// Where ε and decay enter an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdamForm {
    /// PyTorch's form: ε is added to the root of the corrected v, and decay comes before the update.
    #[default]
    PyTorch,
    /// The form of BERT's fine-tuning programs: ε is added to the root of v itself, and decay comes after the update.
    Bert,
}

/// Constants of [`AdamW`]; the defaults are PyTorch's Adam: β = 0.9, 0.999, ε = 1e-8, no decay, no clipping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamOptions {
    /// β₁, β₂.
    pub betas: [f64; 2],
    /// ε
    pub epsilon: f64,
    /// λ; 0 is Adam.
    pub weight_decay: f64,
    /// Which parameters λ acts on.
    pub decayed: DecayRule,
    /// Where ε and λ enter the update.
    pub form: AdamForm,
    /// c: a larger norm of all gradients is scaled down to c.
    pub clip: Option<f64>,
}

impl Default for AdamOptions {
    fn default() -> Self {
        Self {
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 0.0,
            decayed: DecayRule::All,
            form: AdamForm::PyTorch,
            clip: None,
        }
    }
}

/// Moments of one parameter, on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamMoments<T = Vec<f32>> {
    /// Number of updates of this parameter: t of its bias corrections.
    pub steps: u64,
    /// m
    pub first: T,
    /// v
    pub second: T,
}

/// Adam (λ = 0) or AdamW over the parameters of one module, in the order of the module.
///
/// ```text
/// g ← g · min(1, c / (‖all g‖ + 1e-6))
/// m ← β₁ m + (1−β₁) g,   v ← β₂ v + (1−β₂) g²
/// θ ← (1 − η λ) θ − η · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)                       AdamForm::PyTorch
/// θ ← (1 − η λ) (θ − η √(1−β₂ᵗ)/(1−β₁ᵗ) · m / (√v + ε))                      AdamForm::Bert
/// ```
///
/// η is the rate of the step times the parameter's [factor](Self::with_factors), which is 1 unless it is given.
///
/// As in PyTorch's `clip_grad_norm_` and `AdamW`, t counts the updates of each parameter separately, and a parameter
/// without a gradient stays as it is. On the CPU a step makes one pass over each parameter, in place if nobody else
/// holds its values: pass the module itself, not a clone. Other backends use their own operations. The moments live
/// on the device.
///
/// # Departures
/// If the norm of the gradients is not finite, nothing changes. PyTorch writes NaN into every parameter.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use itm_kernels::{AdamOptions, AdamW, Gru};
///
/// let device = Device::flex().autodiff();
/// let gru = Gru::seeded(3, 4, 7, &device);
/// let mut optimizer = AdamW::new(AdamOptions { clip: Some(2.0), ..Default::default() });
/// let loss = gru.forward(Tensor::ones([1, 2, 3], &device), &[2]).sum();
/// let grads = GradientsParams::from_grads(loss.backward(), &gru);
/// let (gru, norm) = optimizer.step(gru, grads, 1e-3);
/// assert!(norm.is_finite() && gru.w_ih.val().is_require_grad());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AdamW {
    options: AdamOptions,
    /// One per parameter, or none.
    factors: Vec<f64>,
    steps: u64,
    moments: Vec<Option<AdamState>>,
}

/// Moments of one parameter, in its shape and on its device.
type AdamState = AdamMoments<FloatTensor<Dispatch>>;

impl AdamW {
    /// An optimiser before its first step.
    ///
    /// # Panics
    /// If β₁ or β₂ is not in `[0, 1)`, ε or λ is negative or not finite, or c is not above 0.
    pub fn new(options: AdamOptions) -> Self {
        let AdamOptions { betas, epsilon, weight_decay, clip, .. } = options;
        AdamStep::new(betas, epsilon, weight_decay, 0.0, 1.0, 1); // refuses what a step would
        assert!(clip.is_none_or(|clip| clip > 0.0), "clip of Adam: {clip:?}, not above 0");
        Self { options, factors: vec![], steps: 0, moments: vec![] }
    }

    /// The optimiser with a factor of the rate for each parameter, in the order of the module. An empty list is 1 for all.
    #[must_use]
    pub fn with_factors(self, factors: Vec<f64>) -> Self {
        Self { factors, ..self }
    }

    /// One update at the rate η; returns the module and the norm of all gradients before clipping.
    ///
    /// Each gradient is freed after its use. If the norm is not finite, the step returns it and changes nothing.
    ///
    /// # Panics
    /// If the rate is not finite, or there are factors, but not one for each parameter.
    pub fn step<M: Module>(&mut self, module: M, grads: GradientsParams, rate: f64) -> (M, f64) {
        let norm = Self::norm(&module, &grads);
        if !norm.is_finite() {
            return (module, norm);
        }
        let names = named(&module);
        let (n, parameters) = (self.factors.len(), names.len());
        assert!(n == 0 || n == parameters, "{n} factors of the rate for {parameters} parameters");
        self.steps += 1;
        self.moments.resize_with(parameters, || None);
        let scale = self.options.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0));
        let (options, moments) = (&self.options, self.moments.iter_mut());
        let factors = self.factors.iter();
        let mut update = StepUpdate { options, factors, moments, grads, rate, scale };
        (updated(module, names, &mut update), norm)
    }

    /// The norm of all gradients that [`step`](Self::step) returns: all that a step reads back from the device. If it is not
    /// finite, the step changes nothing.
    pub fn norm<M: Module>(module: &M, grads: &GradientsParams) -> f64 {
        let mut squares = Squares { grads, sums: vec![] };
        module.visit(&mut squares);
        if squares.sums.is_empty() {
            return 0.0;
        }
        Tensor::cat(squares.sums, 0).into_data().iter::<f64>().sum::<f64>().sqrt()
    }

    /// The constants.
    pub fn options(&self) -> &AdamOptions {
        &self.options
    }

    /// The factors of the rate: one for each parameter, or none.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// Number of updates so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Moments of each parameter in the order of the module, read from the device one at a time. A parameter that has
    /// had no gradient yet has `None`.
    pub fn moments(&self) -> impl Iterator<Item = Option<AdamMoments>> + '_ {
        let host = |x: &FloatTensor<Dispatch>| host(Tensor::<1>::from_dispatch(x.clone()));
        self.moments.iter().map(move |state| {
            let AdamState { steps, first, second } = state.as_ref()?;
            Some(AdamMoments { steps: *steps, first: host(first), second: host(second) })
        })
    }

    /// The optimiser of `module` after `steps` updates that left these moments.
    ///
    /// # Panics
    /// As [`new`](Self::new), or if the number of moments, or of their values, does not fit the module. An empty list fits only
    /// `steps` = 0.
    pub fn restore<M: Module>(
        options: AdamOptions,
        module: &M,
        steps: u64,
        moments: Vec<Option<AdamMoments>>,
    ) -> Self {
        let start = Self::new(options);
        if moments.is_empty() {
            assert_eq!(steps, 0, "no moments after {steps} updates");
            return start;
        }
        let mut restore = Restore { moments: moments.into_iter(), states: vec![] };
        module.visit(&mut restore);
        let left = restore.moments.len();
        assert_eq!(left, 0, "moments of {left} more parameters than the module has");
        Self { steps, moments: restore.states, ..start }
    }
}

struct Squares<'a> {
    grads: &'a GradientsParams,
    sums: Vec<Tensor<1>>,
}

impl ModuleVisitor for Squares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.get::<D>(param.id) {
            let sum = <Dispatch as UpdateOps>::sum_of_squares(grad.into_dispatch());
            self.sums.push(Tensor::from_dispatch(sum));
        }
    }
}

struct StepUpdate<'a> {
    options: &'a AdamOptions,
    factors: std::slice::Iter<'a, f64>,
    moments: std::slice::IterMut<'a, Option<AdamState>>,
    grads: GradientsParams,
    rate: f64,
    scale: f64,
}

impl Update for StepUpdate<'_> {
    fn update<const D: usize>(&mut self, id: ParamId, name: &str, value: Tensor<D>) -> Tensor<D> {
        let state = self.moments.next().expect("as many parameters as were counted");
        let rate = self.rate * self.factors.next().unwrap_or(&1.0);
        let Some(grad) = self.grads.remove::<D>(id) else { return value };
        let (dims, plain) = (value.dims(), value.device().inner());
        assert_eq!(grad.dims(), dims, "gradient of a parameter");
        let zeros = || Tensor::<D>::zeros(dims, &plain).into_dispatch();
        // Taken out of the list: a tensor that is held twice cannot be updated in place.
        let AdamState { steps, first, second } =
            state.take().unwrap_or_else(|| AdamState { steps: 0, first: zeros(), second: zeros() });
        let steps = steps + 1;
        let AdamOptions { betas, epsilon, weight_decay, decayed, form, .. } = *self.options;
        let decay = if decayed.holds(name, D) { weight_decay } else { 0.0 };
        let step = AdamStep::new(betas, epsilon, decay, rate, self.scale, steps);
        let step = if form == AdamForm::Bert { step.of_bert() } else { step };
        let (value, grad) = (value.into_dispatch(), grad.into_dispatch());
        let (value, first, second) =
            <Dispatch as UpdateOps>::adam(value, grad, first, second, step);
        let [first, second] =
            [first, second].map(|x| Tensor::<D>::from_dispatch(x).inner().into_dispatch());
        *state = Some(AdamState { steps, first, second });
        Tensor::from_dispatch(value)
    }
}

struct Restore {
    moments: std::vec::IntoIter<Option<AdamMoments>>,
    states: Vec<Option<AdamState>>,
}

impl ModuleVisitor for Restore {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (dims, device) = (param.val().dims(), param.val().device().inner());
        let moments = self.moments.next().expect("moments for every parameter");
        self.states.push(moments.map(|m| AdamState {
            steps: m.steps,
            first: on_device(m.first, dims, &device),
            second: on_device(m.second, dims, &device),
        }));
    }
}

fn on_device<const D: usize>(
    values: Vec<f32>,
    dims: [usize; D],
    device: &Device,
) -> FloatTensor<Dispatch> {
    let n = values.len();
    assert_eq!(n, dims.iter().product::<usize>(), "{n} moments of a parameter of shape {dims:?}");
    Tensor::<D>::from_data(TensorData::new(values, dims), device).into_dispatch()
}

#[cfg(test)]
#[cfg(feature = "flex")]
#[path = "tests.rs"] // beside this file, like other tests
pub(super) mod tests;
