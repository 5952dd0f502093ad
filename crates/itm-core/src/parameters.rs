//! The parameters of a module, each by its path: the names of the fields, joined by dots.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};

use crate::{Error, Result};

/// Calls `f` with path, shape and values of each parameter; the values are in one row, without a graph. A path begins with
/// `prefix`, if it is not empty.
pub(crate) fn visit<M: Module>(prefix: &str, module: &M, f: impl FnMut(&str, &[usize], Tensor<1>)) {
    module.visit(&mut Visit { path: Path::new(prefix), f });
}

/// The module with the values that `f` returns for path and shape of each parameter. Without values a parameter stays as it
/// is.
///
/// # Errors
/// The first error of `f`.
pub(crate) fn replace<M: Module>(
    prefix: &str,
    module: M,
    f: impl FnMut(&str, &[usize]) -> Result<Option<Vec<f32>>>,
) -> Result<M> {
    let mut replace = Replace { path: Path::new(prefix), f, failed: None };
    let module = module.map(&mut replace);
    replace.failed.map_or(Ok(module), Err)
}

struct Path(Vec<String>);

impl Path {
    fn new(prefix: &str) -> Self {
        Self(if prefix.is_empty() { vec![] } else { vec![prefix.to_owned()] })
    }

    /// The name of an enum's variant is no part of a path, so that a module can later become an enum.
    fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_owned());
        }
    }

    fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }
}

struct Visit<F> {
    path: Path,
    f: F,
}

impl<F: FnMut(&str, &[usize], Tensor<1>)> ModuleVisitor for Visit<F> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().inner();
        let shape = value.dims();
        (self.f)(&self.path.0.join("."), &shape, value.reshape([shape.iter().product::<usize>()]));
    }
}

struct Replace<F> {
    path: Path,
    f: F,
    failed: Option<Error>,
}

impl<F: FnMut(&str, &[usize]) -> Result<Option<Vec<f32>>>> ModuleMapper for Replace<F> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.failed.is_some() {
            return param;
        }
        let (shape, device) = (param.val().dims(), param.val().device());
        let learns = param.val().is_require_grad();
        match (self.f)(&self.path.0.join("."), &shape) {
            Ok(Some(values)) => param.map(|_| {
                let value = Tensor::from_data(TensorData::new(values, shape), &device);
                if device.is_autodiff() { value.set_require_grad(learns) } else { value }
            }),
            Ok(None) => param,
            Err(error) => {
                self.failed = Some(error);
                param
            }
        }
    }
}
