//! An exponential moving average of a module's parameters.

use std::collections::VecDeque;

use burn::backend::Dispatch;
use burn::backend::tensor::FloatTensor;
use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;

use super::{Update, named, updated};
use crate::ops::UpdateOps;

/// Moves every parameter of `target` towards the same parameter of `online`.
///
/// ```text
/// θᵐ ← m θᵐ + (1 − m) θ        FNE Eq. (14), in f32
/// ```
///
/// `target` starts as `online.valid()` and never has gradients. On the CPU this is one pass, in place if nobody else
/// holds the values of `target`: pass the module itself, not a clone. Parameters are matched by their order, so both
/// modules must be built the same way. If `online` is on a device with autodiff, its
/// parameters without gradients do not change, so their averages keep their bits.
///
/// # Panics
/// If `m` is not in `[0, 1]`, or the modules differ in the number or shape of their parameters.
pub fn ema<M: Module>(target: M, online: &M, m: f64) -> M {
    assert!((0.0..=1.0).contains(&m), "momentum {m}, not in 0 to 1");
    let mut values = ParameterValues(VecDeque::new());
    online.visit(&mut values);
    let mut towards = Towards { online: values.0, m };
    let names = named(&target);
    let target = updated(target, names, &mut towards);
    assert!(towards.online.is_empty(), "{} parameters without a partner", towards.online.len());
    target
}

/// Shapes and values in the order of the module; no value of a parameter that does not change.
struct ParameterValues(VecDeque<Online>);

type Online = (Vec<usize>, Option<FloatTensor<Dispatch>>);

impl ModuleVisitor for ParameterValues {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let fixed = value.device().is_autodiff() && !value.is_require_grad();
        let dims = value.dims().to_vec();
        self.0.push_back((dims, (!fixed).then(|| value.inner().into_dispatch())));
    }
}

struct Towards {
    online: VecDeque<Online>,
    m: f64,
}

impl Update for Towards {
    fn update<const D: usize>(&mut self, _: ParamId, _: &str, target: Tensor<D>) -> Tensor<D> {
        let (shape, online) = self.online.pop_front().expect("a parameter without a partner");
        let dims = target.dims();
        assert_eq!(dims.as_slice(), shape, "parameters of shape {dims:?} and {shape:?}");
        let Some(online) = online else { return target };
        let target = <Dispatch as UpdateOps>::ema(target.into_dispatch(), online, self.m);
        Tensor::from_dispatch(target)
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::optim::adamw::tests::address;
    use crate::{Linear, uniform};

    fn linear(seed: u64, device: &Device) -> Linear {
        let weight = Param::from_tensor(uniform([3, 4], 1.0, seed, device));
        Linear::new(weight, Param::from_tensor(uniform([4], 1.0, seed + 1, device)))
    }

    fn values(m: &Linear) -> Vec<f32> {
        let both = [m.weight.val().into_data(), m.bias.val().into_data()];
        both.iter().flat_map(|d| d.iter::<f32>()).collect()
    }

    /// The values keep their address if only the module holds them, and an earlier clone keeps its values.
    #[test]
    fn in_place_but_not_in_a_clone() {
        let online = linear(1, &Device::flex().autodiff());
        let target = ema(online.valid(), &online, 0.5); // shared with `online` at first: a copy
        let at = address(target.weight.val());
        let target = ema(target, &linear(3, &Device::flex()), 0.5);
        assert_eq!(address(target.weight.val()), at);

        let (before, kept) = (values(&target), target.clone());
        let target = ema(target, &linear(5, &Device::flex()), 0.5);
        assert_eq!(values(&kept), before);
        assert_ne!(values(&target), before);
        assert_eq!(values(&online), values(&linear(1, &Device::flex())));
    }

    /// The fallback's two passes give the kernel's bits.
    #[test]
    fn agrees_with_composed() {
        let device = Device::flex();
        let (target, online) = (linear(1, &device), linear(3, &device));
        let composed =
            target.weight.val() * 0.995f32 + online.weight.val() * (1.0 - 0.995f64) as f32;
        let target = ema(target, &online, 0.995);
        let bits = |t: Tensor<2>| t.into_data().iter::<f32>().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(target.weight.val()), bits(composed));
    }

    /// 0.995 θ + 0.005 θ is not always θ in f32.
    #[test]
    fn a_fixed_parameter_keeps_its_bits() {
        let online = linear(1, &Device::flex().autodiff());
        let fixed = online.clone().no_grad();
        assert_ne!(values(&ema(online.valid(), &online, 0.995)), values(&online));
        assert_eq!(values(&ema(online.valid(), &fixed, 0.995)), values(&online));
    }

    /// A target that requires gradients still requires them after the update.
    #[test]
    fn a_target_on_autodiff_stays_there() {
        let device = Device::flex().autodiff();
        let target = ema(linear(1, &device), &linear(3, &device), 0.5);
        assert!(target.weight.val().is_require_grad());
    }
}
