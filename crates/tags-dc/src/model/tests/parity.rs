//! Outputs and gradients of all heads, to 1e-5.

use super::*;

/// Outputs of all heads by their names in the golden.
fn outputs(model: &Uniter) -> Vec<(&'static str, Tensor<2>)> {
    let joint = joint(model, Noise::Off);
    vec![
        ("logits", model.match_logits(&joint).unsqueeze()),
        ("scores", model.match_scores(&joint).unsqueeze()),
        ("words", model.word_logits(&joint, &at(&WORDS))),
        ("discrimination", model.discrimination_logits(&joint, &joint.every_token())),
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

/// Gradients of every weight except pretraining's own head, which no output uses.
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
    check_gradients(&model, &loss.backward(), &g);
}

// Trap 9: ε = 1e-5 is another model, and the golden detects it.
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

// Trap 10: the tanh form of GELU is another model, and the golden detects it.
#[test]
fn another_gelu_is_told_apart() {
    let (g, device) = (golden(), Device::flex());
    let got = logits(&open("full.safetensors", &device));
    assert!(off(&got, &g["logits"]) < 1e-6, "{got:?}");
    assert!(off(&got, &g["tanh.logits"]) > 1e-5);
}
