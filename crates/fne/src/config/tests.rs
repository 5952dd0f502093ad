use serde_json::{Value, json};

use super::*;

/// A model small enough for tests.
pub(crate) fn tiny(preset: Preset) -> FneConfig {
    let mut sampler = preset.sampler();
    sampler.bank_size = 12;
    FneConfig {
        model: ModelConfig::new(8, 6),
        train: TrainConfig { batch: 4, micro_batch: 4, learning_rate: 1e-2, ..preset.train() },
        sampler,
    }
}

fn every_object(value: &Value, path: &mut Vec<String>, visit: &mut impl FnMut(&[String])) {
    if let Value::Object(map) = value {
        visit(path);
        for (key, inner) in map {
            path.push(key.clone());
            every_object(inner, path, visit);
            path.pop();
        }
    }
}

fn at<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(value, |v, key| &mut v[key.as_str()])
}

#[test]
fn every_key_is_required_and_no_other_is_known() {
    let whole = serde_json::to_value(tiny(Preset::Default)).unwrap();
    let back: FneConfig = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(back, tiny(Preset::Default));
    let mut checked = 0;
    every_object(&whole, &mut vec![], &mut |path| {
        let mut more = whole.clone();
        at(&mut more, path)["colour"] = json!(1);
        let e = serde_json::from_value::<FneConfig>(more).unwrap_err().to_string();
        assert!(e.contains("colour"), "{e}");
        let keys: Vec<String> =
            at(&mut whole.clone(), path).as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let mut less = whole.clone();
            at(&mut less, path).as_object_mut().unwrap().remove(&key);
            let e = serde_json::from_value::<FneConfig>(less).unwrap_err().to_string();
            assert!(e.contains(&key), "{e}");
            checked += 1;
        }
    });
    assert_eq!(checked, 3 + 3 + 2 + 3 + 11 + 19);
}

#[test]
fn bad_values_name_their_key() {
    let check = |key: &str, change: &dyn Fn(&mut FneConfig)| {
        let mut config = tiny(Preset::Default);
        config.validate().unwrap();
        change(&mut config);
        let e = config.validate().unwrap_err().to_string();
        assert!(e.starts_with(key), "{e}");
    };
    check("model.embed_dim", &|c| c.model.embed_dim = 0);
    check("train.batch", &|c| c.train.batch = 0);
    check("train.micro_batch", &|c| c.train.micro_batch = 0);
    check("train.learning_rate", &|c| c.train.learning_rate = f64::NAN);
    check("train.grad_clip", &|c| c.train.grad_clip = 0.0);
    check("train.dropout", &|c| c.train.dropout = 1.0);
    check("sampler.lambda", &|c| c.sampler.lambda = 1.5);
    check("sampler.prior", &|c| c.sampler.prior = 0.0);
    check("sampler.momentum", &|c| c.sampler.momentum = 1.5);
    check("sampler.lambda", &|c| c.sampler.lambda = -0.1);
}

#[test]
fn the_rate_falls_at_the_start_of_decay_epochs() {
    let train = Preset::Official.train();
    for (epoch, want) in [(0, 2e-5), (4, 2e-5), (5, 2e-6), (14, 2e-6), (15, 2e-7), (24, 2e-7)] {
        assert!((train.rate(epoch) / want - 1.0).abs() < 1e-12, "epoch {epoch}");
    }
}

#[test]
fn features_are_transformed_row_by_row() {
    let mut row = [3.0, -4.0];
    FeatureTransform::Raw.apply(&mut row);
    assert_eq!(row, [3.0, -4.0]);
    FeatureTransform::L2.apply(&mut row);
    assert_eq!(row, [0.6, -0.8]);
    let mut zero = [0.0, -1.0];
    FeatureTransform::SqrtL2.apply(&mut zero);
    assert_eq!(zero, [0.0, 0.0]);
}
