//! Random weights of an untrained model.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};
use itm_kernels::random;

/// Draws all matrices and tables from a normal distribution with this deviation. Biases become 0; norms stay as they are.
pub(super) fn normal<M: Module>(module: M, deviation: f64, seed: u64) -> M {
    module.map(&mut Normal { deviation: deviation as f32, seed, part: 0, name: String::new() })
}

struct Normal {
    deviation: f32,
    seed: u64,
    part: u64,
    /// The name of the parameter that is visited.
    name: String,
}

impl ModuleMapper for Normal {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.name = name.to_string();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (shape, device) = (param.val().dims(), param.val().device());
        let seed = random::derive(self.seed, self.part);
        self.part += 1;
        if D == 1 && self.name != "bias" {
            return param; // γ and β
        }
        let n = shape.iter().product::<usize>() as u64;
        let deviation = if D == 1 { 0.0 } else { self.deviation };
        let values: Vec<f32> = (0..n).map(|k| deviation * gaussian(seed, k)).collect();
        param.map(|_| {
            let value = Tensor::from_data(TensorData::new(values, shape), &device);
            if device.is_autodiff() { value.require_grad() } else { value }
        })
    }
}

/// A number of the standard normal distribution: the Box–Muller transform of two uniform numbers.
fn gaussian(seed: u64, position: u64) -> f32 {
    let uniform = |part| f64::from(random::unit(seed, 2 * position + part));
    let (u, v) = (1.0 - uniform(0), uniform(1)); // u is never 0
    ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean 0, variance 1 and kurtosis 3, within four standard errors of a million numbers.
    #[test]
    fn moments_are_those_of_the_normal_distribution() {
        let n = 1_000_000;
        let mut sums = [0.0f64; 3];
        for k in 0..n {
            let x = f64::from(gaussian(3, k));
            sums = [sums[0] + x, sums[1] + x * x, sums[2] + x.powi(4)];
        }
        let [mean, second, fourth] = sums.map(|sum| sum / n as f64);
        assert!(mean.abs() < 4e-3, "{mean}");
        assert!((second - 1.0).abs() < 6e-3, "{second}");
        assert!((fourth - 3.0).abs() < 4e-2, "{fourth}");
    }
}
