use serde_json::{Value, json};

use itm_core::start::BagPooling;
use itm_core::towers::{Augmentation, BagConfig, BertConfig, Pixels, VitConfig, Weights};
use itm_kernels::Precision;

use super::*;
use crate::Preset;

/// A model small enough for tests.
pub(crate) fn tiny(preset: Preset) -> FneConfig {
    let mut sampler = SamplerConfig::preset(preset);
    sampler.bank_size = 12;
    FneConfig {
        model: ModelConfig::new(8, 6),
        train: TrainConfig {
            seed: 7,
            batch: 4,
            micro_batch: 4,
            learning_rate: 1e-2,
            ..TrainConfig::preset(preset)
        },
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
    assert_eq!(checked, 3 + 4 + 2 + 3 + 13 + 20);
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
    check("train.layer_decay", &|c| c.train.layer_decay = Some(0.9)); // no blocks
    check("train.grad_clip", &|c| c.train.grad_clip = 0.0);
    check("train.dropout", &|c| c.train.dropout = 1.0);
    check("train.dropout: expected 0", &|c| {
        c.model.image = FneConfig::preset(Preset::Default).model.image;
        (c.model.embed_dim, c.train.dropout) = (768, 0.1);
        c.model.text = TextConfig::Bag(BagConfig { pooling: BagPooling::Mean });
    });
    check("train.precision", &|c| c.train.precision = Precision::Bf16);
    check("sampler.lambda", &|c| c.sampler.lambda = 1.5);
    check("sampler.prior", &|c| c.sampler.prior = 0.0);
    check("sampler.momentum", &|c| c.sampler.momentum = 1.5);
    check("sampler.lambda", &|c| c.sampler.lambda = -0.1);
}

#[test]
fn the_rate_falls_at_the_start_of_milestones() {
    let train = TrainConfig::preset(Preset::Official);
    for (epoch, want) in [(0, 2e-5), (4, 2e-5), (5, 2e-6), (14, 2e-6), (15, 2e-7), (24, 2e-7)] {
        assert!((train.rate(epoch) / want - 1.0).abs() < 1e-12, "epoch {epoch}");
    }
}

/// P6 and P25, on a picture with gradients: another normalisation changes both transforms, and wrapping around at 256 changes
/// only the training pictures.
#[test]
fn pixels_and_augmentation_change_the_picture() {
    let vit = |change: fn(&mut VitConfig)| {
        let ImageConfig::Vit(mut vit) = FneConfig::preset(Preset::Default).model.image else {
            panic!("ViT")
        };
        vit.image_size = 12;
        change(&mut vit);
        vit
    };
    let picture = image::RgbImage::from_fn(20, 20, |x, y| {
        image::Rgb([60 + 8 * x as u8, 90, 40 + 9 * y as u8])
    });
    let evaluated = |vit: &VitConfig| {
        let mut out = vec![0.0; 3 * 12 * 12];
        vit.transform().unwrap().apply(&picture, &mut out);
        out
    };
    let trained = |vit: &VitConfig| {
        let one = |seed| {
            let mut out = vec![0.0; 3 * 12 * 12];
            if let Some(augment) = vit.augment.of(vit.transform().unwrap()) {
                augment.apply(&picture, seed, &mut out);
            }
            out
        };
        (0..40).flat_map(one).collect::<Vec<_>>()
    };
    let (clip, half) = (vit(|_| ()), vit(|v| v.pixels = Pixels::Half));
    assert_ne!(evaluated(&clip), evaluated(&half));
    assert_ne!(trained(&clip), trained(&half));
    let wraps = vit(|v| v.augment = Augmentation::Wraparound);
    assert_eq!(evaluated(&clip), evaluated(&wraps));
    assert_ne!(trained(&clip), trained(&wraps));
    assert!(Augmentation::Off.of(clip.transform().unwrap()).is_none());
}

/// The keys of both encoders are required too, with a folder and with a table of sizes. The error names the missing key.
#[test]
fn the_keys_of_vit_and_bert_are_required() {
    let mut config = FneConfig::preset(Preset::Default);
    let shape = itm_core::encoders::VitShape::base_16_384();
    if let ImageConfig::Vit(vit) = &mut config.model.image {
        vit.weights = Weights::Random(shape);
    }
    let whole = serde_json::to_value(&config).unwrap();
    assert_eq!(serde_json::from_value::<FneConfig>(whole.clone()).unwrap(), config);
    let refused = |value| serde_json::from_value::<FneConfig>(value).unwrap_err().to_string();
    for path in [&["image"][..], &["image", "weights"], &["text"]] {
        let part = path.iter().fold(&whole["model"], |v, key| &v[*key]);
        for key in part.as_object().unwrap().keys() {
            let mut less = whole.clone();
            let part = path.iter().fold(&mut less["model"], |v, key| &mut v[*key]);
            part.as_object_mut().unwrap().remove(key);
            let e = refused(less);
            assert!(e.contains(key.as_str()), "{path:?} without {key}: {e}");
        }
        let mut more = whole.clone();
        let part = path.iter().fold(&mut more["model"], |v, key| &mut v[*key]);
        part["colour"] = json!(1);
        assert!(refused(more).contains("colour"));
    }
    let mut number = whole.clone();
    number["model"]["image"]["weights"] = json!(7);
    assert!(refused(number).contains("a folder, org/name@revision, or a table of sizes"));
}

#[test]
fn rates_and_sizes_of_vit_and_bert_name_their_key() {
    let check = |key: &str, change: &dyn Fn(&mut VitConfig, &mut BertConfig, &mut TrainConfig)| {
        let mut config = FneConfig::preset(Preset::Default);
        let ModelConfig { image, text, .. } = &mut config.model;
        let (ImageConfig::Vit(vit), TextConfig::Bert(bert)) = (image, text) else { panic!("both") };
        change(vit, bert, &mut config.train);
        let e = config.validate().unwrap_err().to_string();
        assert!(e.starts_with(key) && !e.contains('\n'), "{e}");
    };
    use itm_core::encoders::{BertShape, VitShape};
    let vit = |change: fn(&mut VitShape)| {
        let mut shape = VitShape::base_16_384();
        change(&mut shape);
        Weights::Random(shape)
    };
    let bert = |change: fn(&mut BertShape)| {
        let mut shape = BertShape::base_uncased();
        change(&mut shape);
        Weights::Random(shape)
    };
    check("model.image.image_size", &|v, _, _| v.image_size = 0);
    check("model.image.image_size", &|v, _, _| {
        (v.weights, v.image_size) = (vit(|_| ()), 15);
    });
    check("model.image.weights.heads", &|v, _, _| v.weights = vit(|s| s.heads = 7));
    check("model.image.weights.patch", &|v, _, _| v.weights = vit(|s| s.patch = 0));
    check("model.image.weights.image", &|v, _, _| v.weights = vit(|s| s.image = [8, 384]));
    check("model.image.weights.dropout", &|v, _, _| v.weights = vit(|s| s.dropout = 1.0));
    check("model.image.weights", &|v, _, _| v.weights = vit(|s| s.channels = 1));
    check("model.embed_dim", &|v, _, _| v.weights = vit(|s| s.width = 384));
    check("model.text.weights.heads", &|_, b, _| b.weights = bert(|s| s.heads = 0));
    check("model.text.max_length", &|_, b, _| b.max_length = 1);
    check("model.text.max_length", &|_, b, _| b.weights = bert(|s| s.positions = 29));
    check("train.word_dropout", &|_, _, t| t.word_dropout = 0.1);
    check("train.dropout", &|_, _, t| t.dropout = 0.1);
}
