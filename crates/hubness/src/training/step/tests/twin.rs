//! `tests/reference/hal_training.py`: the same three steps in PyTorch's double precision.

use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};

use super::*;

fn floats(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(floats).collect(),
        number => vec![number.as_f64().unwrap() as f32],
    }
}

fn list<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).unwrap()
}

const NAMES: [&str; 7] = ["weight", "bias", "words", "w_ih", "w_hh", "b_ih", "b_hh"];

fn config(golden: &Value, case: &Value) -> HalConfig {
    let mut config = tiny(Objective::Sum);
    let mut whole = serde_json::to_value(&config).unwrap();
    for (section, keys) in [
        ("model", &["similarity", "image_norm"][..]),
        ("loss", &["objective", "mask_same_image"]),
        ("hubs", &["neighbours", "reweight", "exclude", "detach"]),
    ] {
        keys.iter().for_each(|&key| whole[section][key] = case[key].clone());
    }
    whole["model"]["embed_dim"] = json!(5);
    whole["model"]["text"] = json!({ "kind": "gru", "word_dim": 3, "pool": case["text_pool"] });
    whole["loss"]["margin"] = golden["margin"].clone();
    whole["train"]["learning_rate"] = golden["rate"].clone();
    whole["train"]["decay_every"] = golden["decay_every"].clone();
    whole["train"]["grad_clip"] = case["clip"].clone();
    whole["aaai"] = json!({ "local_alpha": case["g"], "local_ep": case["e"] });
    config = serde_json::from_value(whole).unwrap();
    (config.bank.alpha, config.bank.beta) = (10.0, 8.0);
    config
}

/// A model with the weights of the file.
fn model(golden: &Value, config: &HalConfig) -> Hal {
    let mut hal = Hal::new(config, 4, 9, &Device::flex(), 1).unwrap();
    let device = Device::flex().autodiff();
    let values = |name: &str| floats(&golden["start"][name]);
    let matrix = |name: &str, rows: usize| {
        let values = values(name);
        let shape = [rows, values.len() / rows];
        Param::from_tensor(Tensor::<2>::from_data(TensorData::new(values, shape), &device))
    };
    let vector =
        |name: &str| Param::from_tensor(Tensor::<1>::from_floats(values(name).as_slice(), &device));
    let mut encoders = hal.encoders().clone();
    let (ImageEncoder::Features(map), TextEncoder::Gru(text)) =
        (&mut encoders.image, &mut encoders.text)
    else {
        panic!("a GRU beside features")
    };
    text.words = matrix("words", 9);
    (text.gru.w_ih, text.gru.w_hh) = (matrix("w_ih", 3), matrix("w_hh", 5));
    (text.gru.b_ih, text.gru.b_hh) = (vector("b_ih"), vector("b_hh"));
    map.linear.weight = matrix("weight", 4);
    map.linear.bias = vector("bias");
    hal.learner = learner(encoders, config);
    hal
}

fn with_pairs<T>(golden: &Value, which: &[usize], f: impl FnOnce(&Batch) -> T) -> T {
    let pairs = &golden["pairs"];
    let (texts, ids): (Vec<Vec<u32>>, Vec<i64>) = (list(&pairs["texts"]), list(&pairs["images"]));
    let features: Vec<f32> = which.iter().flat_map(|&p| floats(&pairs["features"][p])).collect();
    let texts: Vec<&[u32]> = which.iter().map(|&p| texts[p].as_slice()).collect();
    let image_ids: Vec<i64> = which.iter().map(|&p| ids[p]).collect();
    let caption_ids: Vec<i64> = which.iter().map(|&p| p as i64).collect();
    let caption_ids = caption_ids.as_slice();
    let images = Images::Features(&features);
    f(&Batch { images, texts: &texts, image_ids: &image_ids, caption_ids, train: None })
}

#[test]
fn golden_three_steps() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../../tests/golden/hal_training.json")).unwrap();
    let steps: Vec<(usize, Vec<usize>)> = list(&golden["steps"]);
    for case in golden["cases"].as_array().unwrap() {
        let config = config(&golden, case);
        let name = format!("{:?}", config.loss);
        let mut hal = model(&golden, &config);
        let mut at = None;
        for (n, (epoch, pairs)) in steps.iter().enumerate() {
            if at.replace(*epoch) != Some(*epoch) {
                hal.learner.epoch = *epoch;
                hal.bank = MemoryBank::default();
                let banked = config.loss.objective == Objective::HalAaaiBank && *epoch > 0;
                for batch in list::<Vec<usize>>(&golden["bank"]).iter().filter(|_| banked) {
                    with_pairs(&golden, batch, |batch| hal.remember(batch)).unwrap();
                }
            }
            let report = with_pairs(&golden, pairs, |b| hal.step(b, 0, Observe::Off)).unwrap();
            for (what, got, want) in [
                ("loss", report.loss, &case["losses"][n]),
                ("norm", report.grad_norm, &case["norms"][n]),
            ] {
                let want = want.as_f64().unwrap();
                let off = (got - want).abs() / want.max(1.0);
                assert!(off < 1e-5, "{name}, step {n}, {what}: {got}, not {want}");
            }
        }
        let want: Vec<f32> = NAMES.iter().flat_map(|&n| floats(&case["end"][n])).collect();
        let got = values(hal.encoders());
        assert_eq!(got.len(), want.len());
        for (k, (g, w)) in got.iter().zip(&want).enumerate() {
            assert!((g - w).abs() < 1e-5, "{name}, weight {k}: {g}, not {w}");
        }
    }
}
