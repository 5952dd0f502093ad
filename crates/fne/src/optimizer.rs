//! AdamW with the global gradient norm clipped, in one pass over each parameter.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// Moments of one parameter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
}

/// Adam (decay 0) or AdamW over the parameters of one module, in the order of the module.
///
/// ```text
/// g ← g · min(1, c / ‖all g‖)
/// m ← β₁ m + (1−β₁) g,   v ← β₂ v + (1−β₂) g²
/// θ ← (1 − η·decay) θ − η · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)      β = 0.9, 0.999; ε = 1e-8
/// ```
///
/// burn's own clips each tensor by itself and makes a dozen passes; its state is keyed by random
/// ids, ours by position, which a checkpoint can be checked against. A parameter without a gradient
/// stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdamW {
    pub(crate) weight_decay: f64,
    pub(crate) steps: u64,
    pub(crate) moments: Vec<Moments>,
}

impl AdamW {
    pub(crate) fn new(weight_decay: f64) -> Self {
        Self { weight_decay, steps: 0, moments: vec![] }
    }

    /// One update; returns the module and the norm of the gradients before clipping.
    pub(crate) fn step<M: Module>(
        &mut self,
        module: M,
        grads: &GradientsParams,
        rate: f64,
        clip: f64,
    ) -> (M, f64) {
        let mut gather = Gather { grads, values: vec![] };
        module.visit(&mut gather);
        let norm = gather.values.iter().flatten().map(|g| squared(g)).sum::<f64>().sqrt();
        // PyTorch's clip_grad_norm_: c / (‖g‖ + 1e-6), never above 1.
        let scale = (clip / (norm + 1e-6)).min(1.0) as f32;
        self.steps += 1;
        self.moments.resize_with(gather.values.len(), Moments::default);
        let t = self.steps as i32;
        let bias_2 = (1.0 - f64::from(BETA_2).powi(t)).sqrt();
        let update = Update {
            scale,
            keep: (1.0 - rate * self.weight_decay) as f32,
            rate: (rate / (1.0 - f64::from(BETA_1).powi(t))) as f32,
            bias: (1.0 / bias_2) as f32,
        };
        let mut apply =
            Apply { update, grads: gather.values.into_iter(), moments: self.moments.iter_mut() };
        (module.map(&mut apply), norm)
    }
}

/// Σ x², in f64 and in a fixed order.
fn squared(values: &[f32]) -> f64 {
    let chunk = |c: &[f32]| c.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    values.chunks(1024).map(chunk).sum()
}

struct Gather<'a> {
    grads: &'a GradientsParams,
    values: Vec<Option<Vec<f32>>>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.values.push(self.grads.get::<D>(param.id).map(host));
    }
}

struct Apply<'a> {
    update: Update,
    grads: std::vec::IntoIter<Option<Vec<f32>>>,
    moments: std::slice::IterMut<'a, Moments>,
}

impl ModuleMapper for Apply<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (Some(gradient), Some(moments)) = (self.grads.next(), self.moments.next()) else {
            panic!("the module has more parameters than gradients were gathered for");
        };
        let Some(gradient) = gradient else { return param };
        param.map(|value| {
            let (shape, device) = (value.dims(), value.device());
            let mut theta = host(value.inner());
            self.update.apply(&mut theta, &gradient, moments);
            let next = Tensor::from_data(TensorData::new(theta, shape), &device);
            if device.is_autodiff() { next.require_grad() } else { next }
        })
    }
}

#[derive(Clone, Copy)]
struct Update {
    scale: f32,
    keep: f32,
    rate: f32,
    bias: f32,
}

impl Update {
    fn apply(self, theta: &mut [f32], gradient: &[f32], moments: &mut Moments) {
        let Moments { first, second } = moments;
        first.resize(theta.len(), 0.0);
        second.resize(theta.len(), 0.0);
        let all = theta.iter_mut().zip(gradient).zip(first.iter_mut().zip(second.iter_mut()));
        for ((x, &g), (m, v)) in all {
            let g = g * self.scale;
            *m = BETA_1 * *m + (1.0 - BETA_1) * g;
            *v = BETA_2 * *v + (1.0 - BETA_2) * (g * g);
            *x = self.keep * *x - self.rate * *m / (v.sqrt() * self.bias + EPSILON);
        }
    }
}

/// Number of values of each parameter, in the order of the module.
pub(crate) fn sizes<M: Module>(module: &M) -> Vec<usize> {
    struct Sizes(Vec<usize>);
    impl ModuleVisitor for Sizes {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.val().dims().iter().product());
        }
    }
    let mut sizes = Sizes(vec![]);
    module.visit(&mut sizes);
    sizes.0
}

/// Values of a tensor on the host, in f32.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.try_into_vec().expect("f32 after conversion")
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[derive(Module, Debug)]
    struct Two {
        a: Param<Tensor<2>>,
        b: Param<Tensor<1>>,
    }

    fn two() -> Two {
        let device = Device::flex().autodiff();
        Two {
            a: Param::from_tensor(Tensor::from_floats([[1.0, -2.0], [0.5, 3.0]], &device)),
            b: Param::from_tensor(Tensor::from_floats([0.25, -1.0], &device)),
        }
    }

    /// Gradient of `Σ k·a² + Σ b`: 2ka and 1.
    fn grads(m: &Two, k: f64) -> GradientsParams {
        let loss = (m.a.val().powi_scalar(2) * k).sum() + m.b.val().sum();
        GradientsParams::from_grads(loss.backward(), m)
    }

    fn values(m: &Two) -> Vec<f64> {
        let both = [host(m.a.val()), host(m.b.val())].concat();
        both.into_iter().map(f64::from).collect()
    }

    /// The equations in f64, five steps, two norms of clipping, with and without decay.
    #[test]
    fn golden_adamw() {
        for (decay, clip, k) in [(0.0, 1e9, 1.0), (0.1, 1e9, 1.0), (0.1, 0.5, 3.0)] {
            let (mut module, mut optimizer) = (two(), AdamW::new(decay));
            let mut theta = values(&module);
            let (mut m, mut v) = ([0.0; 6], [0.0; 6]);
            for t in 1..=5 {
                let g: Vec<f64> =
                    (0..6).map(|i| if i < 4 { 2.0 * k * theta[i] } else { 1.0 }).collect();
                let norm = g.iter().map(|x| x * x).sum::<f64>().sqrt();
                let scale = (clip / (norm + 1e-6)).min(1.0);
                for i in 0..6 {
                    let g = g[i] * scale;
                    m[i] = 0.9 * m[i] + 0.1 * g;
                    v[i] = 0.999 * v[i] + 0.001 * g * g;
                    let (mh, vh) = (m[i] / (1.0 - 0.9f64.powi(t)), v[i] / (1.0 - 0.999f64.powi(t)));
                    theta[i] = theta[i] * (1.0 - 0.01 * decay) - 0.01 * mh / (vh.sqrt() + 1e-8);
                }
                let grads = grads(&module, k);
                let (next, got_norm) = optimizer.step(module, &grads, 0.01, clip);
                module = next;
                assert!((got_norm / norm - 1.0).abs() < 1e-5, "norm {got_norm}, want {norm}");
                for (got, want) in values(&module).iter().zip(&theta) {
                    assert!((got - want).abs() < 2e-6, "step {t}: got {got}, want {want}");
                }
            }
        }
    }

    /// The norm of all gradients is clipped, not that of each tensor: ratios between tensors stay.
    #[test]
    fn clipping_is_global() {
        let first = |clip: f64| {
            let (module, mut optimizer) = (two(), AdamW::new(0.0));
            let grads = grads(&module, 1.0);
            optimizer.step(module, &grads, 0.01, clip);
            optimizer.moments.iter().flat_map(|m| m.first.clone()).collect::<Vec<f32>>()
        };
        let (free, clipped) = (first(1e9), first(0.1));
        let norm = clipped.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((norm - 0.1 * 0.1).abs() < 1e-6, "(1 − β₁) · clip, got {norm}");
        for (f, c) in free.iter().zip(&clipped) {
            assert!((c / f - clipped[0] / free[0]).abs() < 1e-6);
        }
    }

    #[test]
    fn a_parameter_without_a_gradient_stays() {
        let module = two();
        let before = host(module.b.val());
        let loss = module.a.val().sum();
        let grads = GradientsParams::from_grads(loss.backward(), &module);
        let (module, _) = AdamW::new(0.1).step(module, &grads, 0.1, 1.0);
        assert_eq!(host(module.b.val()), before);
        assert!(module.a.val().is_require_grad() && module.b.val().is_require_grad());
    }
}
