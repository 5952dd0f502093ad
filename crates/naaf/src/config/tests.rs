use itm_core::encoders::{BertShape, PiecePool, VitShape};
use itm_core::towers::{
    Augmentation, BertConfig, JointLayer, Pixels, TrainTruncate, VitConfig, Weights,
};
use serde_json::{Value, json};

use super::*;
use crate::{NegativeAware, Pooling, Preset, Scan};

/// A model small enough for tests: a table of words, of width 8.
pub(crate) fn tiny() -> NaafConfig {
    let mut config = NaafConfig::preset(Preset::Default);
    (config.model.embed_dim, config.model.word_dim) = (8, 6);
    config.model.text = TextKind::Words;
    (config.train.batch, config.train.learning_rate) = (4, 1e-2);
    config.mining.min_words = 4;
    config
}

/// Random towers of pictures of 8 px, which have four patches, and of captions of at most four word pieces.
pub(crate) fn towers() -> NaafConfig {
    let (vit, bert) = (VitShape::base_16_384(), BertShape::base_uncased());
    let (width, layers, heads, mlp) = (8, 1, 2, 12);
    let vit = VitShape { image: [8, 8], patch: 4, width, layers, heads, mlp, ..vit };
    let bert = BertShape { vocabulary: 14, positions: 8, width, layers, heads, mlp, ..bert };
    let mut config = tiny();
    config.model.towers = Some(NaafTowers {
        image: ImageConfig::Vit(VitConfig {
            weights: Weights::Random(vit),
            image_size: 8,
            pixels: Pixels::Half,
            augment: Augmentation::Off,
            pool: ImagePool::Patches,
            projection: JointLayer::Linear,
            gradient_checkpointing: false,
        }),
        text: TextConfig::Bert(BertConfig {
            weights: Weights::Random(bert),
            max_length: 4,
            train_truncate: TrainTruncate::On,
            pool: PiecePool::Masked,
            projection: JointLayer::Linear,
            gradient_checkpointing: false,
        }),
    });
    config
}

/// A config that is written is read back. The error for a missing or unknown key names the key.
#[test]
fn every_key_is_required_and_no_other_is_known() {
    let whole = serde_json::to_value(NaafConfig::preset(Preset::Paper)).unwrap();
    let back: NaafConfig = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(back, NaafConfig::preset(Preset::Paper));
    let read = |value: &Value| serde_json::from_value::<NaafConfig>(value.clone());
    let mut checked = 0;
    for section in ["model", "attention", "mining", "train", "loss"] {
        let mut more = whole.clone();
        more[section]["colour"] = json!(1);
        let e = read(&more).unwrap_err().to_string();
        assert!(e.contains("colour"), "{e}");
        for key in whole[section].as_object().unwrap().keys() {
            let mut less = whole.clone();
            less[section].as_object_mut().unwrap().remove(key);
            let e = read(&less).unwrap_err().to_string();
            assert!(e.contains(key.as_str()), "{e}");
            checked += 1;
        }
        let mut less = whole.clone();
        less.as_object_mut().unwrap().remove(section);
        assert!(read(&less).is_err(), "{section}");
    }
    assert_eq!(checked, 8 + 7 + 11 + 10 + 5);
}

#[test]
fn bad_values_name_their_key() {
    let check = |key: &str, change: &dyn Fn(&mut NaafConfig)| {
        let mut config = tiny();
        config.check().unwrap();
        change(&mut config);
        let e = config.check().unwrap_err().to_string();
        assert!(e.starts_with(key) && !e.contains('\n'), "{e}");
    };
    let cca = StartOptions { ridge_image: 1.0, ridge_text: 1.0, power: 0.5, dims: 8, fill: 0.0 };
    check("model.embed_dim", &|c| c.model.embed_dim = 0);
    check("model.embed_dim: expected 1 to", &|c| c.model.embed_dim = 1 << 40);
    check("model.word_dim: expected 1 to", &|c| c.model.word_dim = 1 << 40);
    check("model.freeze_embedding: expected false with model.towers", &|c| {
        (*c, c.model.freeze_embedding) = (towers(), true);
    });
    check("train.precision", &|c| c.train.precision = Precision::Bf16);
    check("model.word_dim", &|c| c.model.word_dim = 0);
    check("model.word_vectors", &|c| c.model.word_vectors = VectorsFrom::Given);
    check("model.freeze_embedding", &|c| c.model.freeze_embedding = true);
    check("model.start: expected \"cca\" with a section", &|c| c.model.start = StartFrom::Cca);
    check("model.start: expected \"cca\" with text", &|c| {
        (c.model.start, c.model.cca) = (StartFrom::Cca, Some(cca.clone()));
        c.model.text = TextKind::Bigru;
    });
    check("model.cca.dims", &|c| {
        c.model.start = StartFrom::Cca;
        c.model.cca = Some(StartOptions { dims: 9, ..cca.clone() });
    });
    check("model.cca.power", &|c| {
        c.model.cca = Some(StartOptions { power: -1.0, ..cca.clone() });
    });
    check("attention.scale", &|c| {
        c.attention =
            Attention::Naaf(NegativeAware { scale: 0.0, ..NegativeAware::preset(Preset::Default) });
    });
    type Change = fn(&mut NegativeAware);
    let naaf: [(&str, Change); 2] = [
        ("attention.scale", |naaf| naaf.scale = 1e39), // no f32
        ("attention.intra_scale", |naaf| naaf.intra_scale = 1e39),
    ];
    for (key, change) in naaf {
        let mut naaf = NegativeAware::preset(Preset::Default);
        change(&mut naaf);
        check(key, &|c| c.attention = Attention::Naaf(naaf.clone()));
    }
    let scan = Scan::text_to_image(Pooling::LogSumExp);
    for (key, scan) in [
        ("attention.lambda_lse", Scan { lambda_lse: 1e-50, ..scan.clone() }),
        ("attention.lambda_softmax", Scan { lambda_softmax: 1e39, ..scan }),
    ] {
        check(key, &|c| c.attention = Attention::Scan(scan.clone()));
    }
    check("mining.smoothing", &|c| c.mining.smoothing = 0.0);
    check("train.batch", &|c| c.train.batch = 0);
    check("train.micro_batch: expected at least 1", &|c| c.train.micro_batch = Some(0));
    check("train.micro_batch: expected no such key", &|c| c.train.micro_batch = Some(2));
    check("train.layer_decay: expected no such key", &|c| c.train.layer_decay = Some(0.5));
    check("train.weight_decay", &|c| c.train.weight_decay = Some(-0.1));
    check("train.decay_every", &|c| c.train.decay_every = 0);
    check("train.learning_rate", &|c| c.train.learning_rate = f64::NAN);
    check("train.lr_decay", &|c| c.train.lr_decay = 1.5);
    check("train.grad_clip", &|c| c.train.grad_clip = -1.0);
    check("train.region_dropout", &|c| c.train.region_dropout = 1.0);
    check("train.word_dropout", &|c| c.train.word_dropout = -0.1);
    check("train.region_dropout: expected 0 with model.towers", &|c| {
        (*c, c.train.region_dropout) = (towers(), 0.1);
    });
    check("train.word_dropout: expected 0 with model.towers", &|c| {
        (*c, c.train.word_dropout) = (towers(), 0.1);
    });
    check("loss.margin", &|c| c.loss.margin = -0.1);
}

/// By hand: 5e-4 for ten epochs, a tenth of it for the next ten (N14). Read literally, the paper has nine tenths.
#[test]
fn rates_of_epochs() {
    let mut train = NaafConfig::preset(Preset::Default).train;
    for (epoch, want) in [(0, 5e-4), (9, 5e-4), (10, 5e-5), (19, 5e-5), (20, 5e-6)] {
        assert!((train.rate(epoch) - want).abs() < 1e-12, "{epoch}");
    }
    train.lr_decay = 0.9;
    assert!((train.rate(19) - 4.5e-4).abs() < 1e-12);
}
