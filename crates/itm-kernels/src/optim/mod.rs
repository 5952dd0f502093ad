//! Updates of all parameters of a module.

mod adamw;
mod ema;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::Tensor;

pub use adamw::{AdamForm, AdamOptions, AdamW, Decayed, Moments};
pub use ema::ema;

/// What becomes of a parameter; called in the order of the module.
trait Update {
    /// The value comes as it is: with autodiff if the module has it. `name` is its path in the module, parts joined by dots.
    fn update<const D: usize>(&mut self, id: ParamId, name: &str, value: Tensor<D>) -> Tensor<D>;
}

/// `module` with every parameter updated. Where nobody else holds a value (no clone of the module, no graph), neither is
/// it held here while it is updated, so a backend can do so in place.
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
