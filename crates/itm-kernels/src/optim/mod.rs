//! Updates of all parameters of a module.

mod adamw;
mod ema;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::Tensor;

pub use adamw::{AdamOptions, AdamW, Decayed, Moments};
pub use ema::ema;

/// What becomes of a parameter; called in the order of the module.
trait Update {
    /// The value comes as it is: with autodiff if the module has it.
    fn update<const D: usize>(&mut self, id: ParamId, value: Tensor<D>) -> Tensor<D>;
}

/// `module` with every parameter updated. Where nobody else holds a value (no clone of the module, no graph), neither is
/// it held here while it is updated, so a backend can do so in place.
fn updated<M: Module>(module: M, update: &mut impl Update) -> M {
    module.map(&mut Mapper(update))
}

struct Mapper<'a, U>(&'a mut U);

impl<U: Update> ModuleMapper for Mapper<'_, U> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let id = param.id;
        param.map(|value| {
            let tracked = value.is_require_grad();
            self.0.update(id, value).set_require_grad(tracked)
        })
    }
}
