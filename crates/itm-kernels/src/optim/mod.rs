//! Updates of all parameters of a module, and their names.

mod adamw;
mod ema;
#[cfg(test)]
#[cfg(feature = "flex")]
mod ema_tests;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;

pub use adamw::{AdamForm, AdamMoments, AdamOptions, AdamW, DecayRule};
pub use ema::ema;

/// The update of one parameter, called in the order of the module.
trait Update {
    /// `value` has autodiff if the module has it. `name` is its path in the module, with parts joined by dots.
    fn update<const D: usize>(&mut self, id: ParamId, name: &str, value: Tensor<D>) -> Tensor<D>;
}

/// `module` with every parameter updated; `names` are its [`named`]. This function holds no second reference to a value during its
/// update. So a backend can update in place if nobody else (no clone of the module, no graph) holds the value.
fn updated<M: Module>(module: M, names: Vec<(String, ParamId)>, update: &mut impl Update) -> M {
    module.map(&mut Mapper { update, names: names.into_iter() })
}

/// The parameters of a module in its order: dotted names, and the ids under which gradients are found. [`DecayRule`] reads
/// these names; [`AdamW::with_factors`] and [`AdamW::moments`] have this order.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use itm_kernels::{Linear, named};
///
/// let pair = [Linear::seeded(2, 3, 1, &Device::flex()), Linear::seeded(3, 1, 2, &Device::flex())];
/// let names: Vec<String> = named(&pair.to_vec()).into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["0.weight", "0.bias", "1.weight", "1.bias"]);
/// # }
/// ```
pub fn named<M: Module>(module: &M) -> Vec<(String, ParamId)> {
    let mut named = Named::default();
    module.visit(&mut named);
    named.found
}

#[derive(Default)]
struct Named {
    path: Vec<String>,
    found: Vec<(String, ParamId)>,
}

impl ModuleVisitor for Named {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found.push((self.path.join("."), param.id));
    }
}

struct Mapper<'a, U> {
    update: &'a mut U,
    names: std::vec::IntoIter<(String, ParamId)>,
}

impl<U: Update> ModuleMapper for Mapper<'_, U> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (name, id) = self.names.next().expect("a name of every parameter");
        assert_eq!(id, param.id, "the parameter {name}");
        param.map(|value| {
            let tracked = value.is_require_grad();
            self.update.update(id, &name, value).set_require_grad(tracked)
        })
    }
}
