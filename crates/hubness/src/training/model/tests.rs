use itm_core::encoders::{BertShape, ImagePool, PiecePool, TextPool, VitShape};
use itm_core::host;
use itm_core::start::{StartFrom, StartOptions};
use itm_core::towers::{
    Augmentation, BertConfig, JointLayer, Pixels, TrainTruncate, VitConfig, Weights,
};
use itm_kernels::Precision;

use super::*;
use crate::training::config::tests::tiny;
use crate::training::{HalConfig, Objective};

struct Model {
    config: HalModelConfig,
    towers: Encoders,
}

impl Model {
    fn images(&self, features: &[f32], dropout: InputDropout) -> Tensor<2> {
        self.config.images(&self.towers, Images::Features(features), dropout)
    }

    fn texts<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> Tensor<2> {
        self.config.texts(&self.towers, &self.towers.text.read(captions, None), dropout)
    }

    fn map(&self) -> &Linear {
        let ImageEncoder::Features(map) = &self.towers.image else { panic!("{:?}", self.towers) };
        &map.linear
    }
}

fn drawn(change: impl FnOnce(&mut HalConfig), seed: u64) -> Model {
    let mut config = tiny(Objective::Hal);
    change(&mut config);
    let (towers, _) = encoders(&config, 5, 20, seed, &Device::flex()).unwrap();
    Model { config: config.model, towers }
}

const OFF: InputDropout = InputDropout::OFF;

fn words(model: &Model) -> &GruText {
    let text = &model.towers.text;
    if let TextEncoder::Gru(gru) = text { gru } else { panic!("{text:?}") }
}

const FEATURES: [f32; 10] = [0.3, -0.5, 1.0, 0.0, 2.0, -0.1, 0.2, 0.7, -0.9, 0.4];

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Bounds of the specification; many draws come near them.
#[test]
fn the_initialisation_is_the_released_or_the_papers() {
    let near = |name: &str, values: Vec<f32>, bound: f32| {
        let got = largest(&values);
        assert!(got <= bound && got > 0.8 * bound, "{name}: {got} of {bound}");
        assert!(values.iter().any(|&x| x < 0.0), "{name}");
    };
    let released = drawn(|_| (), 3);
    near("words", host(words(&released).words.val()), 0.1);
    near("w_hh", host(words(&released).gru.w_hh.val()), 1.0 / 8f32.sqrt());
    near("b_ih", host(words(&released).gru.b_ih.val()), 1.0 / 8f32.sqrt());
    let xavier = drawn(|c| c.model.initialisation = Initialisation::Xavier, 3);
    near("words", host(words(&xavier).words.val()), (6.0f32 / 26.0).sqrt());
    near("w_ih", host(words(&xavier).gru.w_ih.val()), (6.0f32 / 14.0).sqrt());
    near("w_hh", host(words(&xavier).gru.w_hh.val()), (6.0f32 / 16.0).sqrt());
    assert_eq!(largest(&host(words(&xavier).gru.b_ih.val())), 0.0);
    assert_eq!(largest(&host(words(&xavier).gru.b_hh.val())), 0.0);
    for model in [released, xavier] {
        near("fc", host(model.map().weight.val()), (6.0f32 / 13.0).sqrt());
        assert_eq!(largest(&host(model.map().bias.val())), 0.0);
    }
}

#[test]
fn weights_follow_the_seed() {
    let of = |seed| {
        let model = drawn(|_| (), seed);
        (host(model.images(&FEATURES, OFF)), host(model.texts(&[[3, 4]], OFF)))
    };
    assert_eq!(of(7), of(7));
    assert!(of(7).0 != of(8).0 && of(7).1 != of(8).1);
}

#[test]
fn rows_have_unit_length_unless_images_are_left_as_they_are() {
    let norms = |rows: Vec<f32>| -> Vec<f32> {
        rows.chunks(8).map(|r| r.iter().map(|x| x * x).sum::<f32>().sqrt()).collect()
    };
    let unit = norms(host(drawn(|_| (), 1).images(&FEATURES, OFF)));
    assert!(unit.iter().all(|n| (n - 1.0).abs() < 1e-5), "{unit:?}");
    let off = |c: &mut HalConfig| c.model.image_norm = ImageNorm::Off;
    let off = norms(host(drawn(off, 1).images(&FEATURES, OFF)));
    assert!(off.iter().all(|n| (n - 1.0).abs() > 0.01), "{off:?}");
}

/// Absolute values after normalisation: the row of a cosine model without its signs.
#[test]
fn order_embeddings_are_absolute_values_of_unit_rows() {
    let order = |c: &mut HalConfig| c.model.similarity = Similarity::Order;
    let (signed, order) = (drawn(|_| (), 1), drawn(order, 1));
    let texts = [vec![3, 4], vec![5, 6, 7]];
    for (signed, order) in [
        (host(signed.images(&FEATURES, OFF)), host(order.images(&FEATURES, OFF))),
        (host(signed.texts(&texts, OFF)), host(order.texts(&texts, OFF))),
    ] {
        assert!(signed.iter().any(|&x| x < 0.0) && order.iter().all(|&x| x >= 0.0));
        assert!(signed.iter().zip(&order).all(|(s, o)| s.abs() == *o));
    }
}

/// A shorter caption has the same embedding in a batch and alone, with every pooling. The poolings differ.
#[test]
fn trap_gru_reading_the_padded_last_step() {
    let mut alone = vec![];
    for pool in [TextPool::Last, TextPool::Mean, TextPool::Max] {
        let model = drawn(|c| c.model.text = TextConfig::Gru(GruConfig { word_dim: 6, pool }), 1);
        let beside = [vec![3, 4], vec![5, 6, 7, 8, 9]];
        let beside = host(model.texts(&beside, OFF))[..8].to_vec();
        let row = host(model.texts(&[[3, 4]], OFF));
        assert!(row.iter().zip(&beside).all(|(a, b)| (a - b).abs() < 1e-6), "{pool:?}");
        alone.push(row);
    }
    let far = |a: &[f32], b: &[f32]| a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-3);
    assert!(far(&alone[0], &alone[1]) && far(&alone[1], &alone[2]) && far(&alone[0], &alone[2]));
}

/// Towers over pictures and pieces are the core's. With `start = "cca"` they make rows of unit length for the maps, as the closed form was solved.
#[test]
fn towers_with_blocks_are_the_cores() {
    let mut config = tiny(Objective::Hal);
    let width = 4;
    let vit = VitShape {
        image: [8, 8],
        patch: 4,
        width,
        layers: 1,
        heads: 2,
        mlp: 6,
        ..VitShape::base_16_384()
    };
    let bert = BertShape {
        vocabulary: 9,
        positions: 5,
        width,
        layers: 1,
        heads: 2,
        mlp: 6,
        ..BertShape::base_uncased()
    };
    config.model.image = ImageConfig::Vit(VitConfig {
        weights: Weights::Random(vit),
        image_size: 8,
        pixels: Pixels::Half,
        augment: Augmentation::Off,
        pool: ImagePool::All,
        projection: JointLayer::Linear,
        gradient_checkpointing: false,
    });
    config.model.text = TextConfig::Bert(BertConfig {
        weights: Weights::Random(bert),
        max_length: 5,
        train_truncate: TrainTruncate::On,
        pool: PiecePool::Masked,
        projection: JointLayer::Linear,
        gradient_checkpointing: false,
    });
    let pixels: Vec<f32> = (0..192).map(|k| random::unit(2, k) - 0.5).collect();
    let device = Device::flex();
    let rows = |towers: &Encoders| {
        let images = Images::Pixels { size: 8, values: &pixels };
        let images = towers.image.encode(images, TowerDropout::OFF);
        [host(images), host(towers.texts(&[[1, 5, 2]], TowerDropout::OFF))]
    };
    let mut all = vec![];
    for start in [StartFrom::Random, StartFrom::Cca] {
        config.model.start = start;
        config.model.cca = (start == StartFrom::Cca).then_some(StartOptions {
            ridge_image: 1.0,
            ridge_text: 1.0,
            power: 1.0,
            dims: 2,
            fill: 0.1,
        });
        let (ours, _) = encoders(&config, 0, 9, 7, &device).unwrap();
        let (core, _) = Encoders::open(&config.model.towers(), 0, 9, 7, &device).unwrap();
        assert_eq!(rows(&ours), rows(&core), "{start:?}");
        all.push(rows(&ours));
    }
    config.train.precision = Precision::Bf16;
    let (rounded, _) = encoders(&config, 0, 9, 7, &device).unwrap();
    let (core, _) = Encoders::open(&config.model.towers(), 0, 9, 7, &device).unwrap();
    assert_eq!(rows(&rounded), rows(&core.with_precision(Precision::Bf16)));
    assert_ne!(all[0], all[1], "a row of unit length has another place beside the bias");
}
