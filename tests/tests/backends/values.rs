//! The named values of an operation on a device, and the deviation between two devices.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};
use itm_kernels::uniform;

/// Named tensors, flat.
pub(crate) type Values = Vec<(String, Vec<f32>)>;

/// The largest `|got − want| / max |want|` over all tensors, and the tensor's name.
///
/// # Panics
/// If the names or sizes differ, a value is not finite, or a wanted tensor is nearly zero, so that a comparison says nothing.
pub(crate) fn deviation(got: &Values, want: &Values) -> (f64, String) {
    let names = |values: &Values| -> Vec<(String, usize)> {
        values.iter().map(|(name, v)| (name.clone(), v.len())).collect()
    };
    assert_eq!(names(got), names(want));
    let mut worst = (0.0, "all".to_owned());
    for ((name, got), (_, want)) in got.iter().zip(want) {
        let finite = |values: &[f32]| values.iter().all(|v| v.is_finite());
        assert!(finite(got) && finite(want), "{name} is not finite");
        let largest = want.iter().fold(0.0f64, |m, &w| m.max(f64::from(w).abs()));
        // A tensor that begins at 0 stays near 0 if nothing moves it: the momentum copy of a row that has no momentum, the bias of a
        // head that has no loss yet, a bias whose gradient is as small as Adam's ε. It must be near 0 on both devices.
        let begins_at_zero = ["bias", "beta"].iter().any(|end| name.ends_with(end));
        let next_to_zero = |values: &[f32]| values.iter().all(|v| v.abs() <= 1e-6);
        if (begins_at_zero || name.contains("residual.second")) && next_to_zero(want) {
            assert!(next_to_zero(got), "{name} is nearly zero on only one device");
            continue;
        }
        assert!(largest > 1e-6, "{name} is nearly zero: {largest:e}"); // second moments are small
        let off = got.iter().zip(want).map(|(&g, &w)| (f64::from(g) - f64::from(w)).abs());
        let off = off.max_by(f64::total_cmp).unwrap() / largest;
        if off > worst.0 {
            worst = (off, name.clone());
        }
    }
    worst
}

/// Output of `forward`, and the gradients of its input and of the module's parameters for the loss Σ output · weights.
///
/// Input, parameters and weights are uniform and depend only on their place, so they are the same on every device.
pub(crate) fn learnt<M: Module, const N: usize, const D: usize>(
    module: M,
    input: Tensor<N>,
    forward: impl FnOnce(&M, Tensor<N>) -> Tensor<D>,
) -> Values {
    let module = module.map(&mut Drawn(0));
    let input = input.require_grad();
    let output = forward(&module, input.clone());
    let weights = uniform(output.dims(), 1.0, 99, &output.device());
    let grads = (output.clone() * weights).sum().backward();
    let mut values = vec![
        ("output".to_owned(), host(output)),
        ("gradient of the input".to_owned(), host(input.grad(&grads).unwrap())),
    ];
    module.visit(&mut Collect { grads: Some(&grads), path: vec![], values: &mut values });
    values
}

/// [`learnt`] of a function without parameters.
pub(crate) fn applied<const N: usize, const D: usize>(
    input: Tensor<N>,
    f: impl FnOnce(Tensor<N>) -> Tensor<D>,
) -> Values {
    learnt(Vec::<itm_kernels::Gru>::new(), input, |_, x| f(x))
}

/// Every parameter of a module, by path.
pub(crate) fn parameters<M: Module>(module: &M) -> Values {
    let mut values = vec![];
    module.visit(&mut Collect { grads: None, path: vec![], values: &mut values });
    values
}

/// A gradient in ±0.1 for every parameter, a function of the seed and of its place.
pub(crate) fn drawn_gradients<M: Module>(module: &M, seed: u64) -> GradientsParams {
    struct Draw(u64, GradientsParams);
    impl ModuleVisitor for Draw {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 += 1;
            let value = param.val();
            let grad = uniform(value.dims(), 0.1, self.0, &value.device());
            self.1.register(param.id, grad.inner());
        }
    }
    let mut draw = Draw(seed, GradientsParams::new());
    module.visit(&mut draw);
    draw.1
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().convert::<f32>().try_to_vec().unwrap()
}

/// Replaces each parameter by a draw in ±0.5.
struct Drawn(u64);

impl ModuleMapper for Drawn {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        param.map(|t| uniform(t.dims(), 0.5, 1000 + self.0, &t.device()).require_grad())
    }
}

/// Each parameter's gradient, or the parameter itself.
struct Collect<'a> {
    grads: Option<&'a Gradients>,
    path: Vec<String>,
    values: &'a mut Values,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.path.join(".");
        self.values.push(match self.grads {
            Some(grads) => (format!("gradient of {path}"), host(param.val().grad(grads).unwrap())),
            None => (path, host(param.val())),
        });
    }
}
