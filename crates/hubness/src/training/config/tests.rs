use serde_json::{Value, json};

use super::*;

/// A model small enough for tests.
pub(in crate::training) fn tiny(objective: Objective) -> HalConfig {
    let mut config = HalConfig::new(objective);
    config.model.embed_dim = 8;
    config.model.text = TextConfig::Gru(GruConfig { word_dim: 6, pool: TextPool::Last });
    config.train.batch = 4;
    config.train.learning_rate = 1e-2;
    config.hubs.neighbours = 2;
    config.aaai = AaaiOptions::COCO;
    config.bank.mb_rate = 0.5;
    config
}

#[test]
fn every_key_is_required_and_no_other_is_known() {
    let whole = serde_json::to_value(tiny(Objective::MaxHal)).unwrap();
    let back: HalConfig = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(back, tiny(Objective::MaxHal));
    assert_eq!(whole["loss"]["objective"], "max_hal");
    let mut checked = 0;
    for section in ["model", "train", "loss", "hubs", "aaai", "bank"] {
        let mut more = whole.clone();
        more[section]["colour"] = json!(1);
        let e = serde_json::from_value::<HalConfig>(more).unwrap_err().to_string();
        assert!(e.contains("colour"), "{e}");
        let keys: Vec<String> = whole[section].as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let mut less = whole.clone();
            less[section].as_object_mut().unwrap().remove(&key);
            let e = serde_json::from_value::<HalConfig>(less).unwrap_err().to_string();
            assert!(e.contains(&key), "{e}");
            checked += 1;
        }
        let mut less = whole.clone();
        less.as_object_mut().unwrap().remove(section);
        assert!(serde_json::from_value::<HalConfig>(less).is_err(), "{section}");
    }
    assert_eq!(checked, 7 + 9 + 3 + 4 + 2 + 7);
    let mut more: Value = whole;
    more["colour"] = json!(1);
    assert!(serde_json::from_value::<HalConfig>(more).is_err());
}

#[test]
fn bad_values_name_their_key() {
    let check = |key: &str, change: &dyn Fn(&mut HalConfig)| {
        let mut config = tiny(Objective::HalAaaiBank);
        config.validate().unwrap();
        change(&mut config);
        let e = config.validate().unwrap_err().to_string();
        assert!(e.starts_with(key), "{e}");
    };
    check("model.embed_dim", &|c| c.model.embed_dim = 0);
    check("model.text.word_dim", &|c| {
        c.model.text = TextConfig::Gru(GruConfig { word_dim: 0, pool: TextPool::Last });
    });
    check("train.batch", &|c| c.train.batch = 0);
    check("train.decay_every", &|c| c.train.decay_every = 0);
    check("train.learning_rate", &|c| c.train.learning_rate = f64::NAN);
    check("train.layer_decay", &|c| c.train.layer_decay = Some(0.9)); // no blocks
    check("train.precision", &|c| c.train.precision = Precision::Bf16);
    check("train.weight_decay", &|c| c.train.weight_decay = Some(-0.1));
    check("train.grad_clip", &|c| c.train.grad_clip = -1.0);
    check("loss.margin", &|c| c.loss.margin = -0.1);
    check("hubs.neighbours", &|c| c.hubs.neighbours = 0);
    check("aaai.local_alpha", &|c| c.aaai.local_alpha = 0.0);
    check("aaai.local_alpha", &|c| c.aaai.local_alpha = 1e-40); // f32 holds it with few digits
    check("aaai.local_ep", &|c| c.aaai.local_ep = f64::INFINITY);
    check("aaai.local_ep", &|c| c.aaai.local_ep = 1e39);
    check("bank.alpha", &|c| c.bank.alpha = 0.0);
    check("bank.beta", &|c| c.bank.beta = 0.0);
    check("bank.ep1", &|c| c.bank.ep1 = f64::NAN);
    check("bank.ep2", &|c| c.bank.ep2 = f64::NAN);
    check("bank.mb_k", &|c| c.bank.mb_k = 0);
    check("bank.mb_rate", &|c| c.bank.mb_rate = 1.5);
    check("model.similarity", &|c| c.model.similarity = Similarity::Order);
}

/// Section 4.1 of the paper: 0.001, divided by ten every 10 epochs. With MAX: 0.0002, divided by ten every 15 epochs.
#[test]
fn rates_are_the_papers() {
    for (objective, epoch, want) in [
        (Objective::Sum, 0, 1e-3),
        (Objective::Sum, 9, 1e-3),
        (Objective::Hal, 10, 1e-4),
        (Objective::Hal, 29, 1e-5),
        (Objective::Max, 14, 2e-4),
        (Objective::MaxHal, 0, 2e-4),
        (Objective::MaxHal, 15, 2e-5),
        (Objective::MaxHal, 29, 2e-5),
    ] {
        let got = HalConfig::new(objective).train.rate(epoch);
        assert!((got / want - 1.0f64).abs() < 1e-12, "{objective:?}, epoch {epoch}: {got}");
    }
}
