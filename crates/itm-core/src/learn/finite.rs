//! Finds the parameter in which a training has become NaN or infinite.

use burn::module::Module;

use crate::{host, parameters};

/// The path below `prefix` of the first parameter of a module that holds a NaN or an infinity.
pub fn first_non_finite<M: Module>(prefix: &str, module: &M) -> Option<String> {
    let mut found = None;
    parameters::visit(prefix, module, |path, _, values| {
        if found.is_none() && host(values).iter().any(|x| !x.is_finite()) {
            found = Some(path.to_owned());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::tensor::{Device, Tensor};

    use super::*;

    #[derive(Module, Debug)]
    struct Two {
        weight: Param<Tensor<2>>,
        bias: Param<Tensor<1>>,
    }

    #[test]
    fn the_first_by_its_path() {
        let device = Device::flex().autodiff();
        let two = |w: f32, b: f32| Two {
            weight: Param::from_tensor(Tensor::from_floats([[1.0, w]], &device)),
            bias: Param::from_tensor(Tensor::from_floats([b, 0.0, -1.0], &device)),
        };
        assert_eq!(first_non_finite("online", &two(0.5, 1e38)), None);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(first_non_finite("online", &two(0.5, bad)), Some("online.bias".into()));
            assert_eq!(first_non_finite("online", &two(bad, bad)), Some("online.weight".into()));
        }
    }
}
