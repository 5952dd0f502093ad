//! Where a training that has left the finite numbers did so.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

/// The first parameter of a module, by its path below `prefix`, that holds a NaN or an infinity.
pub(crate) fn first_non_finite<M: Module>(prefix: &str, module: &M) -> Option<String> {
    let mut search = Search { path: vec![prefix.to_owned()], found: None };
    module.visit(&mut search);
    search.found
}

struct Search {
    path: Vec<String>,
    found: Option<String>,
}

impl ModuleVisitor for Search {
    // The variant of an enum is no part of a name, as in checkpoints.
    fn enter_module(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.found.is_some() {
            return;
        }
        let data = param.val().inner().into_data().convert::<f32>();
        let values = data.as_slice::<f32>().expect("f32 after conversion");
        if values.iter().any(|x| !x.is_finite()) {
            self.found = Some(self.path.join("."));
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

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
