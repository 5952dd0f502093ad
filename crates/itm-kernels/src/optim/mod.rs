//! Updates of all parameters of a module.

mod adamw;
mod ema;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::Tensor;

pub use adamw::{AdamForm, AdamMoments, AdamOptions, AdamW, DecayRule};
pub use ema::ema;

/// The update of one parameter, called in the order of the module.
trait Update {
    /// `value` has autodiff if the module has it. `name` is its path in the module, with parts joined by dots.
    fn update<const D: usize>(&mut self, id: ParamId, name: &str, value: Tensor<D>) -> Tensor<D>;
}

/// `module` with every parameter updated. This function holds no second reference to a value during its update. So a
/// backend can update in place if nobody else (no clone of the module, no graph) holds the value.
fn updated<M: Module>(module: M, update: &mut impl Update) -> M {
    module.map(&mut Mapper { update, path: vec![] })
}

struct Mapper<'a, U> {
    update: &'a mut U,
    path: Vec<String>,
}

impl<U: Update> ModuleMapper for Mapper<'_, U> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, name) = (param.id, self.path.join("."));
        param.map(|value| {
            let tracked = value.is_require_grad();
            self.update.update(id, &name, value).set_require_grad(tracked)
        })
    }
}
