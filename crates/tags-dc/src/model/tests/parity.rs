//! Outputs and gradients of all heads, to 1e-5.

use super::*;

/// Outputs of all heads by their names in the golden.
fn outputs(model: &Uniter) -> Vec<(&'static str, Tensor<2>)> {
    let joint = joint(model, Noise::Off);
    vec![
        ("logits", model.match_logits(&joint).unsqueeze()),
        ("scores", model.match_scores(&joint).unsqueeze()),
        ("words", model.word_logits(&joint, &at(&WORDS))),
        ("discrimination", model.discrimination_logits(&joint)),
        ("correction", model.correction_logits(&joint, &at(&CORRECTIONS))),
    ]
}

#[test]
fn golden_outputs_of_all_heads() {
    let (g, device) = (golden(), Device::flex());
    for (name, got) in outputs(&open("full.safetensors", &device)) {
        assert!(off(&host(got), &g[name]) < 1e-5, "{name}");
    }
}

/// Gradients in the place of weights, to be saved under the weights' names.
struct InPlace<'a>(&'a Gradients);

impl ModuleMapper for InPlace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|t| {
            let none = || t.clone().inner().mul_scalar(f32::NAN);
            Tensor::from_inner(t.grad(self.0).unwrap_or_else(none))
        })
    }
}

/// Of every weight but pretraining's own head, which no output uses.
#[test]
fn golden_gradients_of_every_weight() {
    let (g, device) = (golden(), Device::flex().autodiff());
    let model = open("full.safetensors", &device);
    let mut loss = Tensor::<1>::zeros([1], &device);
    for (name, output) in outputs(&model) {
        let factors = TensorData::new(g[&format!("c.{name}")].clone(), output.dims());
        loss = loss + (output * Tensor::from_data(factors, &device)).sum();
    }
    assert!(off(&values(loss.clone()), &g["loss"]) < 1e-5);
    let grads = loss.backward();
    let (folder, weights) = (TempDir::new().unwrap(), model.clone());
    let path = folder.path().join("gradients.safetensors");
    weights.map(&mut InPlace(&grads)).save(&path).unwrap();

    let got = WeightFiles::open(&path).unwrap();
    let mut compared = 0;
    for name in got.names() {
        let values = got.f32s(name).unwrap();
        if name.starts_with("itm_output.") {
            assert!(values.iter().all(|d| d.is_nan()), "{name} has a gradient");
            continue;
        }
        let want = &g[&format!("d.{name}")];
        let largest = want.iter().fold(1.0f32, |m, d| m.max(d.abs()));
        let far = values.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, f32::max);
        assert!(far < 1e-5 * largest, "{name}: {far} of {largest}");
        compared += 1;
    }
    assert_eq!(compared, g.keys().filter(|name| name.starts_with("d.")).count());
}

// Trap 9: 1e-5 as ε is another model, and the golden sees it.
#[test]
fn another_epsilon_is_told_apart() {
    let (g, device) = (golden(), Device::flex());
    let got = logits(&open("full.safetensors", &device));
    assert!(off(&got, &g["logits"]) < 1e-6, "{got:?}");
    assert!(off(&got, &g["epsilon.logits"]) > 1e-4);
    let mut other = shape();
    other.text.epsilon = 1e-5;
    let (model, _) = Uniter::open(folder().join("full.safetensors"), &other, &device).unwrap();
    assert!(off(&logits(&model), &g["epsilon.logits"]) < 1e-6);
}

// Trap 10: the tanh form of GELU is another model, and the golden sees it.
#[test]
fn another_gelu_is_told_apart() {
    let (g, device) = (golden(), Device::flex());
    let got = logits(&open("full.safetensors", &device));
    assert!(off(&got, &g["logits"]) < 1e-6, "{got:?}");
    assert!(off(&got, &g["tanh.logits"]) > 1e-5);
}
