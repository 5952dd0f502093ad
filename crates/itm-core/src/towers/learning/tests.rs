use std::path::Path;

use burn::module::{ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};

use super::*;
use crate::contrastive::{Contrast, ContrastiveOptions, Learnt};
use crate::encoders::{BertShape, ImagePool, PiecePool, VitShape};
use crate::host;
use crate::towers::{
    Augmentation, BertConfig, ClipImageConfig, ClipTextConfig, Pixels, TrainTruncate, VitConfig,
    Weights,
};

/// ViT of two blocks beside BERT of three, both with a linear map behind, and a learnt temperature.
pub(in crate::towers) fn vit_and_bert() -> ModelConfig {
    let image = VitShape {
        image: [8, 8],
        patch: 4,
        width: 4,
        layers: 2,
        heads: 2,
        mlp: 6,
        ..VitShape::base_16_384()
    };
    let text = BertShape {
        vocabulary: 9,
        positions: 5,
        width: 4,
        layers: 3,
        heads: 2,
        mlp: 6,
        ..BertShape::base_uncased()
    };
    let image = ImageConfig::Vit(VitConfig {
        weights: Weights::Random(image),
        image_size: 8,
        pixels: Pixels::Half,
        augment: Augmentation::Off,
        pool: ImagePool::Patches,
        projection: JointLayer::Linear,
        gradient_checkpointing: false,
    });
    let text = TextConfig::Bert(BertConfig {
        weights: Weights::Random(text),
        max_length: 5,
        train_truncate: TrainTruncate::On,
        pool: PiecePool::Masked,
        projection: JointLayer::Linear,
        gradient_checkpointing: false,
    });
    ModelConfig { image, text, ..ModelConfig::new(3, 1) }
}

pub(in crate::towers) fn published(family: &str, d: usize) -> ModelConfig {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip").join(family);
    let weights = folder.display().to_string();
    let image = ImageConfig::Clip(ClipImageConfig {
        weights: weights.clone(),
        augment: Augmentation::Off,
        gradient_checkpointing: false,
    });
    let text = TextConfig::Clip(ClipTextConfig { weights, gradient_checkpointing: false });
    ModelConfig { image, text, ..ModelConfig::new(d, 1) }
}

pub(in crate::towers) fn opened(config: &ModelConfig) -> Encoders {
    let device = Device::flex().autodiff();
    let (mut encoders, _) = Encoders::open(config, 2, 9, 7, &device).unwrap();
    let options = ContrastiveOptions { temperature: 0.1, bias: 0.0, learn: Learnt::Learned };
    encoders.contrast = Some(Contrast::new(&options, &device));
    encoders
}

/// A gradient of this value for all that learns.
fn gradients(encoders: &Encoders, value: f32) -> GradientsParams {
    struct Fill(GradientsParams, f32);
    impl ModuleVisitor for Fill {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.val().is_require_grad() {
                self.0.register(param.id, param.val().inner().zeros_like() + self.1);
            }
        }
    }
    let mut fill = Fill(GradientsParams::new(), value);
    encoders.visit(&mut fill);
    fill.0
}

/// Path and values of each parameter.
pub(in crate::towers) fn values(encoders: &Encoders) -> Vec<(String, Vec<f32>)> {
    let mut all = vec![];
    parameters::visit("", encoders, |path, _, values| all.push((path.to_owned(), host(values))));
    all
}

pub(in crate::towers) fn stepped(
    encoders: Encoders,
    options: AdamOptions,
    decay: Option<f64>,
    grad: f32,
) -> Encoders {
    let mut learner = encoders.learner(options, decay);
    let loss = Tensor::zeros([1], &Device::flex().autodiff());
    learner.update(0.25, loss, |encoders, _| gradients(encoders, grad)).unwrap();
    learner.module().clone()
}

#[test]
#[should_panic(expected = "a layer decay above 0 and at most 1, got Some(-1.0)")]
fn a_decay_that_turns_a_rate_around_is_refused() {
    opened(&vit_and_bert()).learner(AdamOptions::default(), Some(-1.0));
}

/// By hand: with a gradient of 1, Adam's first step moves a parameter by its rate, here ¼ · ½^(L + 1 − l). A parameter that does
/// not learn has a rate too, which nothing takes.
#[test]
fn a_step_moves_each_layer_by_its_rate() {
    let clip = ["patches", "class", "vit.positions", "pre_norm", "words", "text.positions"];
    let siglip = ["patches", "patch_bias", "vit.positions", "words", "text.positions"];
    let bert = [
        "patches",
        "patch_bias",
        "class",
        "vit.positions",
        "words",
        "bert.positions",
        "kinds",
        "bert.norm",
    ];
    for (name, config, first, parts) in [
        ("clip", published("clip", 12), &clip[..], LearningParts::All),
        ("siglip", published("siglip", 24), &siglip, LearningParts::All),
        ("vit and bert", vit_and_bert(), &bert, LearningParts::All),
        ("vit and bert, one block", vit_and_bert(), &bert, LearningParts::Last(1)),
    ] {
        let encoders = opened(&config).with_learning(&parts, &config, 1).unwrap();
        let before = values(&encoders);
        let plain = values(&stepped(encoders.clone(), AdamOptions::default(), None, 1.0));
        let after = values(&stepped(encoders, AdamOptions::default(), Some(0.5), 1.0));
        let (mut seen, mut learn): (Vec<&str>, _) = (vec![], 0);
        for (((path, before), (_, after)), (_, plain)) in before.iter().zip(after).zip(plain) {
            let layers = if path.starts_with("text.bert") { 3 } else { 2 };
            let block = (0..layers).find(|b| path.contains(&format!("blocks.{b}.")));
            let from = first.iter().find(|part| path.contains(**part) && block.is_none());
            seen.extend(from.copied());
            let layer = match (block, from) {
                (Some(block), _) => block + 1,
                (None, Some(_)) => 0,
                (None, None) => layers + 1,
            };
            let learns = parts.is_all() || block == Some(layers - 1) || layer > layers;
            let rate = if learns { 0.25 } else { 0.0 };
            learn += usize::from(learns);
            let want = rate * 0.5f32.powi(layers + 1 - layer);
            for ((before, after), plain) in before.iter().zip(after).zip(plain) {
                let [moved, whole] = [before - after, before - plain];
                assert!((moved - want).abs() < 1e-5, "{name}, {path}: {moved}, want {want}");
                assert!((whole - rate).abs() < 1e-5, "{name}, {path}: {whole} without decay");
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), first.len(), "{name}: {seen:?}");
        assert_eq!(learn == before.len(), parts.is_all(), "{name}: {learn} learn");
    }
}

/// By hand: without a gradient, a rate of ¼ and a decay of 2 halve what decays.
#[test]
fn weights_and_words_decay_and_nothing_else() {
    let free = ["gamma", "beta", "bias", "b_ih", "b_hh", "positions", "class", "probe", "contrast"];
    for config in [
        published("clip", 12),
        published("siglip", 24),
        vit_and_bert(),
        ModelConfig::new(3, 2), // features beside a GRU
    ] {
        let (encoders, mut kept) = (opened(&config), 0);
        let before = values(&encoders);
        let options = AdamOptions { weight_decay: 2.0, ..AdamOptions::default() };
        let after = values(&stepped(encoders, options, None, 0.0));
        for ((path, before), (_, after)) in before.iter().zip(after) {
            let keep = free.iter().any(|part| path.contains(part));
            kept += usize::from(keep);
            let factor = if keep { 1.0 } else { 0.5 };
            let want: Vec<f32> = before.iter().map(|x| factor * x).collect();
            assert_eq!(after, want, "{path}");
        }
        assert!(kept > 2 && kept < before.len(), "{kept} of {}", before.len());
    }
}

#[test]
fn a_decay_that_cannot_be_is_refused() {
    let line = |config: &ModelConfig, decay| {
        let checked = config.check_training(&LearningParts::All, decay, Precision::F32);
        checked.map_err(|e| e.to_string()).err().unwrap_or_default()
    };
    for good in [None, Some(1.0), Some(0.65)] {
        assert_eq!(line(&vit_and_bert(), good), "");
    }
    for (bad, got) in [(0.0, "0"), (1.5, "1.5"), (-0.5, "-0.5"), (f64::NAN, "NaN")] {
        let want = format!("train.layer_decay: expected in (0, 1], got {got}");
        assert_eq!(line(&vit_and_bert(), Some(bad)), want);
    }
    let want =
        "train.layer_decay: expected no such key, because neither encoder has blocks, got 0.5";
    assert_eq!(line(&ModelConfig::new(8, 6), Some(0.5)), want);
    assert_eq!(line(&ModelConfig::new(8, 6), None), "");
}

/// Sizes of random encoders that no encoder has.
#[test]
fn shapes_that_cannot_be_are_refused() {
    fn line(change: impl Fn(&mut VitShape, &mut BertShape)) -> String {
        let mut config = vit_and_bert();
        let (ImageConfig::Vit(vit), TextConfig::Bert(bert)) = (&mut config.image, &mut config.text)
        else {
            panic!("a ViT and a BERT")
        };
        let (Weights::Random(image), Weights::Random(text)) = (&mut vit.weights, &mut bert.weights)
        else {
            panic!("random weights")
        };
        change(image, text);
        config.validate().map_err(|e| e.to_string()).unwrap_err()
    }
    for (got, key) in [
        (line(|_, text| text.kinds = 0), "model.text.weights.kinds"),
        (line(|_, text| text.vocabulary = 0), "model.text.weights.vocabulary"),
        (line(|_, text| text.mlp = 0), "model.text.weights.mlp"),
        (line(|image, _| image.mlp = 0), "model.image.weights.mlp"),
        (line(|image, _| image.epsilon = -1.0), "model.image.weights.epsilon"),
        (line(|_, text| text.epsilon = f64::NAN), "model.text.weights.epsilon"),
    ] {
        assert!(got.starts_with(&format!("{key}: expected at least ")), "{got}");
    }
    vit_and_bert().validate().unwrap();
}

/// No caption is no refusal, whatever the encoder.
#[test]
fn no_captions_are_checked() {
    for config in [vit_and_bert(), published("clip", 12)] {
        opened(&config).text.check::<Vec<u32>>(&[]).unwrap();
    }
}

/// A folder whose preparation of pictures is another model's is refused before anything is trained.
#[test]
fn pictures_of_another_size_than_the_models_are_refused() {
    let own = tempfile::TempDir::new().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip/clip");
    for entry in std::fs::read_dir(golden).unwrap().map(|entry| entry.unwrap()) {
        std::fs::copy(entry.path(), own.path().join(entry.file_name())).unwrap();
    }
    let mut config = published("clip", 12);
    let ImageConfig::Clip(clip) = &mut config.image else { panic!("a CLIP") };
    clip.weights = own.path().display().to_string();
    config.check_weights().unwrap();
    let path = own.path().join("preprocessor_config.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("12", "16");
    std::fs::write(&path, text).unwrap();
    let line = config.check_weights().unwrap_err().to_string();
    assert!(line.ends_with("expected pictures of 12 px, as the model has them, got 16"), "{line}");
}
