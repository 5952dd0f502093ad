//! Six steps with ViT and BERT against `tests/reference/fne_training.py`: PyTorch, double precision, encoders of
//! `transformers`.

use burn::tensor::TensorData;
use itm_core::vision::PictureBatch;
use serde_json::Value;

use super::pictures::{bert, vit};
use super::*;
use crate::bank::{Bank, BankState};
use crate::golden::{close, integers, numbers};
use crate::weights::{CandidatePool, weights};
use crate::{Density, Moments, PiecePool};
use itm_core::towers::{ImageConfig, TextConfig, Weights};
use itm_core::towers::{ImageEncoder, TextEncoder};

pub(super) fn training() -> Value {
    serde_json::from_str(include_str!("../../../tests/golden/training/training.json")).unwrap()
}

fn folder<S>(name: &str) -> Weights<S> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/training");
    Weights::Pretrained(format!("{golden}/{name}"))
}

/// The script's variants as configurations.
fn config(name: &str) -> FneConfig {
    let preset = match name {
        "official" => Preset::Official,
        "paper" => Preset::Paper,
        _ => Preset::Default,
    };
    let mut config = FneConfig::preset(preset);
    config.model.embed_dim = if name == "paper" { 8 } else { 16 };
    let (image, text) = (vit(&mut config), folder("vit"));
    (image.weights, image.image_size) = (text, 32);
    let text = bert(&mut config);
    (text.weights, text.max_length) = (folder("bert"), 7);
    let (train, sampler) = (&mut config.train, &mut config.sampler);
    (train.batch, train.micro_batch, train.learning_rate, train.grad_clip) = (4, 4, 3e-3, 1.0);
    (sampler.margin, sampler.momentum, sampler.prior, sampler.min_count) = (0.4, 0.9, 0.05, 1);
    sampler.bank_size = if name == "no bank" { 0 } else { 12 };
    if name == "hardest" {
        sampler.negatives = NegativeChoice::Hardest;
    }
    config
}

/// Pixel k of image i, by the script's rule.
fn pixels(images: &[i64]) -> Vec<f32> {
    let pixel = |i: i64, k: i64| {
        (((7919 * i + 104_729 * (k / 64) * (i + 1)) % 1009) as f64 / 252.25 - 2.0) as f32
    };
    images.iter().flat_map(|&i| (0..3 * 32 * 32).map(move |k| pixel(i, k))).collect()
}

pub(super) fn pictures(images: &[i64]) -> PictureBatch {
    PictureBatch { images: images.len(), size: 32, values: pixels(images) }
}

/// The model as the script starts it, with the script's bank and, if there are any, its projections.
pub(super) fn start(name: &str, golden: &Value) -> Fne {
    let config = seeded(&config(name), 1);
    let mut fne = Fne::new(&config, 0, 50, &Device::flex()).unwrap();
    assert_eq!(fne.loaded().len(), 2);
    let bank = &golden["variants"][name]["bank"];
    if config.sampler.bank_size > 0 {
        let [images, texts] = [0, 1].map(|side| floats(&bank[side]));
        let none = vec![NEVER; 12];
        let state = BankState { images, texts, ids: none.clone(), captions: none, cursor: 0 };
        fne.bank = Bank::of_state(state, fne.bank.width(), &fne.bank.images().device()).unwrap();
    }
    let values = |side: &str, key: &str| floats(&golden["projections"][side][key]);
    let linear = |mut linear: itm_kernels::Linear, side: &str| {
        let device = linear.weight.val().device();
        let weight = TensorData::new(values(side, "weight"), [16, 8]);
        let bias = TensorData::new(values(side, "bias"), [8]);
        linear.weight = linear.weight.map(|_| Tensor::from_data(weight, &device).require_grad());
        linear.bias = linear.bias.map(|_| Tensor::from_data(bias, &device).require_grad());
        linear
    };
    let mut online = fne.online().clone();
    let (ImageEncoder::Vit(image), TextEncoder::Bert(text)) = (&mut online.image, &mut online.text)
    else {
        panic!("{config:?}");
    };
    image.projection = image.projection.take().map(|l| linear(l, "image"));
    text.projection = text.projection.take().map(|l| linear(l, "text"));
    assert_eq!(image.projection.is_some(), name == "paper");
    fne.momentum = online.clone().valid();
    fne.learner = learner(online, &config);
    fne.with_epochs_of(2)
}

fn near(what: &str, got: f64, want: &Value, bound: f64) {
    let want = want.as_f64().unwrap();
    assert!((got - want).abs() <= bound * want.abs().max(1.0), "{what}: got {got}, want {want}");
}

fn seen(what: &str, got: &Moments, want: &Value) {
    assert_eq!(got.count, want["count"].as_u64().unwrap(), "{what}: count");
    near(what, got.mean, &want["mean"], 1e-5);
    near(what, got.variance(), &want["variance"], 1e-5);
}

/// Losses, norms of the gradients, statistics, weights, columns and final embeddings of all variants, to 1e-5.
#[test]
fn six_steps_are_those_of_the_reference() {
    let golden = training();
    let captions: Vec<Vec<u32>> = golden["captions"].as_array().unwrap().iter().map(ids).collect();
    let images = integers(&golden["images"]);
    let epochs = integers(&golden["epochs"]);
    for name in ["hardest", "drawn", "official", "paper", "no bank"] {
        let variant = &golden["variants"][name];
        let mut fne = start(name, &golden);
        let (rule, mut weighed) = (fne.config.sampler.clone(), 0);
        for (k, want) in variant["steps"].as_array().unwrap().iter().enumerate() {
            let what = format!("{name}, step {k}");
            if k == 0 || epochs[k] != epochs[k - 1] {
                begin(&mut fne, epochs[k] as usize);
            }
            let pairs = integers(&golden["batches"][k]);
            let image_ids: Vec<i64> = pairs.iter().map(|&p| images[p as usize]).collect();
            let texts: Vec<&[u32]> = pairs.iter().map(|&p| &captions[p as usize][..]).collect();
            let pictures = pictures(&image_ids);
            let batch = Batch {
                images: Images::from(&pictures),
                texts: &texts,
                image_ids: &image_ids,
                caption_ids: &pairs,
                train: None,
            };
            let chosen = &want["chosen"];
            let columns = [0, 1].map(|side| {
                let columns = chosen.get(side).map(integers).unwrap_or_default();
                columns.into_iter().map(|j| j as usize).collect::<Vec<_>>()
            });
            let given = (name != "hardest").then(|| columns.clone());
            let chance = Chance { seed: k as u64, columns: given };
            let report = observed(&mut fne, &batch, &chance).unwrap();
            near(&format!("{what}: loss"), report.loss, &want["loss"], 1e-5);
            near(&format!("{what}: norm"), report.grad_norm, &want["grad_norm"], 1e-5);
            seen(&format!("{what}: +"), &report.statistics.positive, &want["positive"]);
            seen(&format!("{what}: -"), &report.statistics.negative, &want["negative"]);
            if chosen.is_null() {
                continue;
            }
            for (side, o) in report.negatives.unwrap().iter().enumerate() {
                assert_eq!(super::chosen(o), columns[side], "{what}: columns of side {side}");
                let (scores, positive, excluded) = (&o.scores, &o.positive, &o.excluded);
                let pool = CandidatePool { scores, positive, excluded };
                let rho = weights(&pool, &rule, &report.statistics).unwrap();
                if let Some(want) = want["weights"].get(side) {
                    close(&format!("{what}: weights {side}"), &rho, &numbers(want), 1e-5);
                    weighed += usize::from(report.statistics.positive.count > rule.min_count);
                }
            }
        }
        assert!(name == "hardest" || weighed >= 2, "{name}: the posterior weighed {weighed} sides");

        let got = fne.embed_pictures(pictures(&images)).unwrap();
        close(&format!("{name}: images"), &got, &numbers(&variant["images"]), 1e-5);
        close(name, &fne.embed_texts(&captions).unwrap(), &numbers(&variant["texts"]), 1e-5);
        if name != "no bank" {
            let kept = pictures(&images);
            let kept = host(fne.momentum.image.encode(Images::from(&kept), TowerDropout::OFF));
            close(&format!("{name}: θᵐ"), &kept, &numbers(&variant["momentum_images"]), 1e-5);
            let bank = fne.bank.state();
            close(&format!("{name}: M_V"), &bank.images, &numbers(&variant["bank_end"][0]), 1e-5);
            close(&format!("{name}: M_W"), &bank.texts, &numbers(&variant["bank_end"][1]), 1e-5);
            assert_eq!(bank.ids, integers(&variant["ids_end"]), "{name}");
        }
    }
}

pub(super) fn ids(caption: &Value) -> Vec<u32> {
    integers(caption).into_iter().map(|id| id as u32).collect()
}

/// The variants have the options that their names say.
#[test]
fn the_variants_differ_as_the_presets_do() {
    let of = |name| {
        let mut config = config(name);
        (bert(&mut config).pool, config.sampler.density, config.sampler.enqueue)
    };
    assert_eq!(of("drawn"), (PiecePool::Masked, Density::LogOdds, Enqueue::After));
    assert_eq!(of("official"), (PiecePool::All, Density::F32, Enqueue::After));
    assert_eq!(of("paper"), (PiecePool::Words, Density::LogOdds, Enqueue::Before));
}

/// A missing folder, or one of another size than the configuration, or one with too few positions or pieces, gives a one-line error.
#[test]
fn weights_that_do_not_fit_are_named() {
    let refused = |change: &dyn Fn(&mut FneConfig), vocabulary| {
        let mut config = config("drawn");
        change(&mut config);
        let e = Fne::new(&config, 0, vocabulary, &Device::flex()).unwrap_err().to_string();
        // Known before any weight is read, except for the vocabulary.
        match config.model.check_weights() {
            Err(early) => assert_eq!(early.to_string(), e),
            Ok(()) => assert_eq!(vocabulary, 51),
        }
        e
    };
    let e = refused(&|c| c.model.embed_dim = 8, 50);
    let want = "model.embed_dim: expected 16, the width of model.image without a projection, got 8";
    assert_eq!(e, want);
    let e = refused(&|c| bert(c).max_length = 13, 50);
    let want = "model.text.max_length: expected at most 12, the positions of its weights, got 13";
    assert_eq!(e, want);
    let e = refused(&|c| vit(c).image_size = 7, 50);
    assert_eq!(e, "model.image.image_size: expected at least a patch of 8, got 7");
    let e = refused(&|_| (), 51);
    let want = "model.text.weights: expected a vocabulary of at most 50 word pieces, got 51";
    assert_eq!(e, want);
    let e = refused(&|c| vit(c).weights = folder("bert"), 50);
    assert!(e.contains("a model of the architecture \"vit\"") && !e.contains('\n'), "{e}");
    let e = refused(&|c| vit(c).weights = folder("nothing"), 50);
    assert!(e.contains("a folder or org/name@revision"), "{e}");
    let both = |c: &FneConfig| {
        matches!((&c.model.image, &c.model.text), (ImageConfig::Vit(_), TextConfig::Bert(_)))
    };
    assert!(both(&config("paper")));
}
