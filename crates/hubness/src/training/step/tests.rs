mod audit;
mod resume;
mod twin;

use std::path::Path;

use burn::module::Param;
use itm_core::contrastive::{ContrastiveOptions, Learnt, Temperature};
use itm_core::data::Features;
use itm_core::encoders::{BertShape, PiecePool, ResidualShape};
use itm_core::learn::{ImageItems, Images, Items, Method, Schedule};
use itm_core::scored::Similarity;
use itm_core::start::{BagPooling, InputStatistics, LinearMap, Start, StartOptions};
use itm_core::towers::{BertConfig, FeatureTransform, JointLayer, TrainTruncate, Weights};
use itm_core::{Pairs, host};

use super::*;
use crate::training::config::tests::tiny;
use crate::training::{
    BagConfig, FeaturesConfig, GruConfig, ImageConfig, ImageEncoder, ImageNorm, Initialisation,
    StartFrom, TextConfig, TextEncoder, TextPool,
};

const DIM: usize = 5;

/// Eight pairs of six images; texts of one to three words from a vocabulary of twelve.
struct Data {
    features: Vec<f32>,
    texts: Vec<Vec<u32>>,
    image_ids: Vec<i64>,
}

fn data() -> Data {
    let image_ids = vec![0i64, 0, 1, 2, 3, 4, 5, 5];
    let feature = |k: i64| ((k * 37 % 23) as f32 - 11.0) / 7.0;
    let text =
        |pair: usize| (0..1 + pair % 3).map(|k| 2 + (pair * 5 + k * 3) as u32 % 10).collect();
    Data {
        features: image_ids
            .iter()
            .flat_map(|&i| (0..DIM as i64).map(move |k| feature(i * DIM as i64 + k)))
            .collect(),
        texts: (0..8).map(text).collect(),
        image_ids,
    }
}

fn hal(config: &HalConfig) -> Hal {
    Hal::new(config, DIM, 12, &Device::flex(), 7).unwrap().with_epochs_of(2)
}

fn with_batch<T>(which: &[usize], f: impl FnOnce(&Batch) -> T) -> T {
    let data = data();
    let rows = which.iter().flat_map(|&p| data.features[p * DIM..(p + 1) * DIM].to_vec());
    let texts: Vec<&[u32]> = which.iter().map(|&p| data.texts[p].as_slice()).collect();
    let ids: Vec<i64> = which.iter().map(|&p| data.image_ids[p]).collect();
    let captions: Vec<i64> = which.iter().map(|&p| p as i64).collect();
    let features: Vec<f32> = rows.collect();
    let images = Images::Features(&features);
    f(&Batch { images, texts: &texts, image_ids: &ids, caption_ids: &captions, train: None })
}

/// A step on two pairs whose features all have this value.
fn step_of(hal: &mut Hal, feature: f32) -> Result<Step> {
    let features = [feature; 2 * DIM];
    let batch = Batch {
        images: Images::Features(&features),
        texts: &[&[3], &[4]],
        image_ids: &[0, 1],
        caption_ids: &[0, 1],
        train: None,
    };
    hal.step(&batch, 0, Observe::Off)
}

fn step(hal: &mut Hal, which: &[usize]) -> Result<Step> {
    with_batch(which, |batch| hal.step(batch, 0, Observe::Off))
}

/// The eight pairs as a split.
fn with_items<T>(f: impl FnOnce(Items) -> T) -> T {
    let Data { texts, image_ids, .. } = data();
    let values = (0..6 * DIM).map(|k| ((k * 37 % 23) as f32 - 11.0) / 7.0).collect();
    let features = Features { dim: DIM, values };
    let pairs = Pairs::new(6, image_ids.iter().map(|&i| i as usize).collect()).unwrap();
    f(Items { images: ImageItems::Features(&features), texts: &texts, pairs: &pairs })
}

fn begin(hal: &mut Hal, epoch: usize) {
    with_items(|items| hal.begin_epoch(epoch, items)).unwrap();
}

/// The files of a state.
fn files(hal: &Hal) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![];
    hal.save(&mut |name, contents| {
        files.push((name.to_owned(), contents.to_vec()));
        Ok(())
    })
    .unwrap();
    files
}

fn save(hal: &Hal, folder: &Path) {
    files(hal)
        .iter()
        .for_each(|(name, contents)| std::fs::write(folder.join(name), contents).unwrap());
}

/// Parameters of a module, flat.
fn values(encoders: &Encoders) -> Vec<f32> {
    let (ImageEncoder::Features(map), TextEncoder::Gru(text)) = (&encoders.image, &encoders.text)
    else {
        panic!("{encoders:?}")
    };
    [
        host(map.linear.weight.val()),
        host(map.linear.bias.val()),
        host(text.words.val()),
        host(text.gru.w_ih.val()),
        host(text.gru.w_hh.val()),
        host(text.gru.b_ih.val()),
        host(text.gru.b_hh.val()),
    ]
    .concat()
}

const OBJECTIVES: [Objective; 6] = [
    Objective::Sum,
    Objective::Max,
    Objective::Hal,
    Objective::MaxHal,
    Objective::HalAaaiLocal,
    Objective::HalAaaiBank,
];

const ALL: [usize; 6] = [0, 2, 3, 4, 5, 6];

/// Forty steps over one batch in the second epoch, in which an objective with a bank has entries.
#[test]
fn each_objective_lowers_its_own_loss() {
    for objective in OBJECTIVES {
        let mut config = tiny(objective);
        config.train.learning_rate = 2e-2;
        config.bank.mb_rate = 1.0;
        let mut hal = hal(&config);
        begin(&mut hal, 1);
        assert_eq!(hal.bank.captions.is_empty(), objective != Objective::HalAaaiBank);
        let losses: Vec<f64> = (0..40).map(|_| step(&mut hal, &ALL).unwrap().loss).collect();
        let (first, last) = (losses[0], losses[39]);
        assert!(last < 0.7 * first || last < first - 0.1, "{objective:?}: {first} to {last}");
    }
}

const RESIDUAL: ResidualShape = ResidualShape {
    hidden: 6,
    input_scale: 0.3,
    input_dropout: 0.0,
    hidden_dropout: 0.0,
    rate_factor: 2.0,
};

fn bag(pooling: BagPooling) -> TextConfig {
    TextConfig::Bag(BagConfig { pooling })
}

fn gru(pool: TextPool) -> TextConfig {
    TextConfig::Gru(GruConfig { word_dim: 6, pool })
}

fn features(transform: FeatureTransform, residual: Option<ResidualShape>) -> ImageConfig {
    ImageConfig::Features(FeaturesConfig { transform, residual })
}

/// Every option of a bag of words, of a start and of a contrastive loss gives other losses.
#[test]
fn every_option_of_a_start_changes_the_course() {
    let base = || {
        let mut config = tiny(Objective::InfoNce);
        config.model.text = bag(BagPooling::TfIdf);
        config.model.start = StartFrom::Cca;
        let (ridge_image, ridge_text) = (1.0, 1.0);
        config.model.cca =
            Some(StartOptions { ridge_image, ridge_text, power: 1.0, dims: 8, fill: 0.0 });
        let learn = Learnt::Fixed;
        config.loss.contrastive = Some(ContrastiveOptions { temperature: 0.1, bias: 0.0, learn });
        config
    };
    let map = |inputs: usize| LinearMap {
        weight: (0..inputs * 8).map(|k| ((k * 29) % 31) as f32 / 31.0 - 0.5).collect(),
        bias: vec![0.01; 8],
    };
    let idf: Vec<f32> = (0..12).map(|stem| 1.0 + (stem % 4) as f32).collect();
    let course = |config: &HalConfig| {
        config.validate().unwrap();
        let inputs = InputStatistics { deviation: 0.8, idf: Some(idf.clone()), rows: None };
        let mut hal = hal(config).with_inputs(&inputs).unwrap();
        if config.model.towers().closed_form().is_some() {
            let start = Start { image: map(DIM), text: map(12) };
            hal = hal.with_start(&start).unwrap();
        }
        begin(&mut hal, 0);
        (0..3).map(|_| step(&mut hal, &[0, 1, 2, 3, 4, 6]).unwrap().loss).collect::<Vec<_>>()
    };
    type Change = fn(&mut HalConfig);
    let changes: [(&str, Change); 6] = [
        ("start", |c| c.model.start = StartFrom::Random),
        ("pooling", |c| c.model.text = bag(BagPooling::Mean)),
        ("word_dropout", |c| c.train.word_dropout = 0.4),
        ("mask_same_image", |c| c.loss.mask_same_image = true),
        ("temperature", |c| c.loss.contrastive.as_mut().unwrap().temperature = 0.2),
        ("learn", |c| c.loss.contrastive.as_mut().unwrap().learn = Learnt::Learned),
    ];
    let plain = course(&base());
    for (name, change) in changes {
        let mut config = base();
        change(&mut config);
        assert!(course(&config) != plain, "{name}");
    }
}

/// Every option gives other losses than the default within three epochs.
#[test]
fn every_option_changes_the_course() {
    let course = |config: &HalConfig| {
        let mut hal = hal(config);
        let mut losses = vec![];
        for epoch in 0..3 {
            begin(&mut hal, epoch);
            losses.push(step(&mut hal, &[0, 1, 2, 3, 4, 6]).unwrap().loss);
            losses.push(step(&mut hal, &[5, 7]).unwrap().loss);
        }
        losses
    };
    let check = |objective, name: &str, change: &dyn Fn(&mut HalConfig)| {
        let mut config = tiny(objective);
        config.bank.mb_rate = 0.7;
        let plain = course(&config);
        change(&mut config);
        config.validate().unwrap();
        let other = course(&config);
        let far = plain.iter().zip(&other).any(|(a, b)| (a - b).abs() > 1e-6);
        assert!(far, "{name} of {objective:?}: {plain:?}");
    };
    use Objective::{Hal as H, HalAaaiBank as Bank, HalAaaiLocal as Local};
    check(H, "similarity", &|c| c.model.similarity = Similarity::Order);
    check(H, "image_norm", &|c| c.model.image_norm = ImageNorm::Off);
    check(H, "initialisation", &|c| c.model.initialisation = Initialisation::Xavier);
    check(H, "mean", &|c| c.model.text = gru(TextPool::Mean));
    check(H, "max", &|c| c.model.text = gru(TextPool::Max));
    check(H, "clip", &|c| c.train.grad_clip = 0.05);
    check(H, "no clip", &|c| c.train.grad_clip = 0.0);
    check(H, "rate", &|c| c.train.learning_rate = 1e-3);
    check(H, "weight_decay", &|c| c.train.weight_decay = Some(0.1));
    check(H, "schedule", &|c| c.train.schedule = Schedule::Cosine);
    check(H, "dropout", &|c| c.train.dropout = 0.3);
    check(H, "text", &|c| c.model.text = bag(BagPooling::TfIdf));
    check(H, "residual", &|c| c.model.image = features(FeatureTransform::Raw, Some(RESIDUAL)));
    check(H, "transform", &|c| c.model.image = features(FeatureTransform::L2, None));
    let contrastive =
        |temperature| ContrastiveOptions { temperature, bias: -1.0, learn: Learnt::Fixed };
    check(H, "info_nce", &|c| {
        (c.loss.objective, c.loss.contrastive) = (Objective::InfoNce, Some(contrastive(0.1)));
    });
    check(H, "sigmoid", &|c| {
        (c.loss.objective, c.loss.contrastive) = (Objective::Sigmoid, Some(contrastive(0.1)));
    });
    check(H, "decay", &|c| c.train.decay_every = 1);
    check(H, "margin", &|c| c.loss.margin = 0.3);
    check(H, "mask", &|c| c.loss.mask_same_image = true);
    check(H, "neighbours", &|c| c.hubs.neighbours = 1);
    check(H, "reweight", &|c| c.hubs.reweight = crate::losses::ReweightScope::Negatives);
    check(H, "exclude", &|c| c.hubs.exclude = crate::losses::Exclusion::Positive);
    check(H, "detach", &|c| c.hubs.detach = true);
    check(Local, "local_alpha", &|c| c.aaai.local_alpha = 60.0);
    check(Local, "local_ep", &|c| c.aaai.local_ep = 0.7);
    check(Bank, "alpha", &|c| c.bank.alpha = 10.0);
    check(Bank, "beta", &|c| c.bank.beta = 10.0);
    check(Bank, "ep2", &|c| c.bank.ep2 = 3.0);
    check(Bank, "mb_k", &|c| c.bank.mb_k = 1);
    check(Bank, "mb_rate", &|c| c.bank.mb_rate = 0.0);
    check(Bank, "offsets", &|c| c.bank.consistent_offsets = true);
    for objective in OBJECTIVES.into_iter().filter(|&o| o != H) {
        check(H, "objective", &|c| c.loss.objective = objective);
    }
}

/// The first loss stays, because the decay acts on updates; a decay of 1 moves no bit.
#[test]
fn layer_decay_changes_what_is_learnt() {
    let shape = BertShape {
        vocabulary: 12,
        positions: 4,
        width: 8,
        layers: 2,
        heads: 2,
        mlp: 12,
        ..BertShape::base_uncased()
    };
    let course = |decay| {
        let mut config = tiny(Objective::Sum);
        config.model.text = TextConfig::Bert(BertConfig {
            weights: Weights::Random(shape.clone()),
            max_length: 4,
            train_truncate: TrainTruncate::On,
            pool: PiecePool::Masked,
            projection: JointLayer::None,
            gradient_checkpointing: false,
        });
        config.train.layer_decay = decay;
        let mut hal = hal(&config);
        [(); 2].map(|()| step(&mut hal, &ALL).unwrap().loss)
    };
    let (plain, slow) = (course(None), course(Some(0.5)));
    assert_eq!(plain, course(Some(1.0)));
    assert!(plain[0] == slow[0] && plain[1] != slow[1], "{plain:?} and {slow:?}");
}

/// A step sets 1/τ back to 100.
#[test]
fn a_step_bounds_the_temperature() {
    let mut config = tiny(Objective::InfoNce);
    let (temperature, learn) = (0.1, Learnt::Learned);
    config.loss.contrastive = Some(ContrastiveOptions { temperature, bias: 0.0, learn });
    let mut hal = hal(&config);
    let mut encoders = hal.encoders().clone();
    let beyond = burn::tensor::Tensor::from_floats([5.0], &Device::flex().autodiff());
    encoders.contrast.as_mut().unwrap().temperature =
        Temperature::Learned(Param::from_tensor(beyond));
    hal.learner = learner(encoders, &config);
    step(&mut hal, &ALL).unwrap();
    let tau = hal.encoders().contrast.as_ref().unwrap().temperature.value();
    assert!((tau - 0.01).abs() < 1e-7, "{tau}"); // exp(−5) is 0.0067
}

/// Row 18 of the specification and section 1.5: no bank in the first epoch, none for other objectives, a new one
/// in every later epoch.
#[test]
fn the_bank_is_of_the_second_epoch_on() {
    let mut config = tiny(Objective::HalAaaiBank);
    config.bank.mb_rate = 1.0;
    let mut with = hal(&config);
    begin(&mut with, 0);
    assert_eq!(with.bank.captions.len(), 0);
    config.loss.objective = Objective::HalAaaiLocal;
    let mut without = hal(&config);
    begin(&mut without, 0);
    let loss = |hal: &mut Hal| step(hal, &ALL).unwrap().loss;
    assert_eq!(loss(&mut with), loss(&mut without), "the local form");
    begin(&mut with, 1);
    begin(&mut without, 1);
    assert_eq!((with.bank.captions.len(), without.bank.captions.len()), (8, 0));
    let before = with.bank.embeddings();
    assert!(loss(&mut with) != loss(&mut without));
    assert_eq!(with.bank.embeddings(), before, "not refreshed within the epoch");
    begin(&mut with, 2);
    assert_eq!(with.bank.captions.len(), 8);
    assert_ne!(with.bank.embeddings(), before);
}

#[test]
fn two_runs_are_one() {
    let run = || {
        let mut hal = hal(&tiny(Objective::MaxHal));
        begin(&mut hal, 0);
        let losses: Vec<f64> =
            (0..4).map(|k| step(&mut hal, &[k, k + 1, k + 3]).unwrap().loss).collect();
        (losses, values(hal.encoders()))
    };
    assert_eq!(run(), run());
}

/// Features that are not finite, or so large that their embedding is not finite; with a bank and without.
#[test]
fn what_is_not_finite_is_named_and_changes_nothing() {
    for objective in [Objective::Hal, Objective::HalAaaiBank] {
        let mut config = tiny(objective);
        config.bank.mb_rate = 1.0;
        let mut hal = hal(&config);
        begin(&mut hal, 1);
        step(&mut hal, &ALL).unwrap();
        let before = files(&hal);
        for (feature, want) in [
            (f32::NAN, "image 0 of the batch: expected finite values, got NaN"),
            (f32::MAX, "epoch 1, step 1: expected a finite loss, got NaN"),
        ] {
            let e = step_of(&mut hal, feature).unwrap_err().to_string();
            assert_eq!(e, want, "{objective:?}");
            assert!(files(&hal) == before, "{objective:?}, {feature}");
        }
    }
}

/// A finite loss with an infinite gradient: rows of length 1e-9 before normalisation, and features of 1e30.
#[test]
fn gradients_that_are_not_finite_change_nothing() {
    let mut hal = hal(&tiny(Objective::Sum));
    let mut encoders = hal.encoders().clone();
    let ImageEncoder::Features(map) = &mut encoders.image else { panic!("{encoders:?}") };
    let linear = &mut map.linear;
    linear.weight = linear.weight.clone().map(|w| w.zeros_like().require_grad());
    let tiny = |b: burn::tensor::Tensor<1>| (b.zeros_like() + 3e-10).require_grad();
    linear.bias = linear.bias.clone().map(tiny);
    hal.learner = learner(encoders, &hal.config);
    let before = files(&hal);
    let e = step_of(&mut hal, 1e30).unwrap_err().to_string();
    assert!(e.starts_with("epoch 0, step 0: expected gradients of a finite norm"), "{e}");
    assert!(files(&hal) == before);
}

/// `begin_epoch` fills the bank with the same batches and embeddings as the two calls by hand.
#[test]
fn an_epoch_fills_its_bank() {
    let mut config = tiny(Objective::HalAaaiBank);
    config.bank.mb_rate = 0.7;
    let (mut filled, mut by_hand) = (hal(&config), hal(&config));
    begin(&mut filled, 4);
    by_hand.learner.epoch = 4;
    for captions in by_hand.bank_batches(8) {
        with_batch(&captions, |batch| by_hand.remember(batch)).unwrap();
    }
    assert!(!filled.bank.captions.is_empty());
    assert_eq!(filled.bank.embeddings(), by_hand.bank.embeddings());
    assert_eq!(filled.bank.captions, by_hand.bank.captions);
}

/// Each error is one line, and nothing panics.
#[test]
fn what_hal_cannot_see_is_refused() {
    let mut hal = hal(&tiny(Objective::Sum));
    let pixels = [0.5; 3 * 4];
    let images = Images::Pixels { size: 2, values: &pixels };
    let batch = Batch { images, texts: &[&[3]], image_ids: &[0], caption_ids: &[0], train: None };
    let e = hal.step(&batch, 0, Observe::Off).unwrap_err().to_string();
    assert_eq!(e, "images: expected features of width 5, got pictures of 2 px");
    let features = [0.5; DIM];
    let images = Images::Features(&features);
    let batch = Batch { images, texts: &[&[]], image_ids: &[0], caption_ids: &[0], train: None };
    let e = hal.step(&batch, 0, Observe::Off).unwrap_err().to_string();
    assert!(e.starts_with("caption 0 of the batch: expected at least one word"), "{e}");

    let (narrow, pairs) = (Features { dim: 4, values: vec![0.5; 4] }, Pairs::uniform(1, 1));
    let items = Items { images: ImageItems::Features(&narrow), texts: &[vec![3]], pairs: &pairs };
    let want = "images: expected features of width 5, got 4";
    assert_eq!(hal.scored(items).map(|_| ()).unwrap_err().to_string(), want);
    assert_eq!(hal.begin_epoch(0, items).unwrap_err().to_string(), want);
}

/// Inputs after a step would drop the optimiser without a word.
#[test]
fn late_inputs_are_refused() {
    let mut hal = hal(&tiny(Objective::Sum));
    step(&mut hal, &ALL).unwrap();
    let inputs = InputStatistics { deviation: 0.8, idf: None, rows: None };
    let line = hal.with_inputs(&inputs).unwrap_err().to_string();
    let expected = "inputs or start: expected a model before its first step";
    assert_eq!(line, format!("{expected}, got a model after step 1"));
}

#[test]
fn one_pair_alone_makes_a_step() {
    for objective in OBJECTIVES {
        let report = step(&mut hal(&tiny(objective)), &[3]).unwrap();
        let aaai = matches!(objective, Objective::HalAaaiLocal | Objective::HalAaaiBank);
        assert!(report.loss == 0.0 || aaai, "{objective:?}: {}", report.loss);
        assert_eq!(report.active, 0.0);
    }
}

/// The score matrix of all embeddings equals the scores that a step compares, for both similarities.
#[test]
fn embeddings_score_as_in_training() {
    for similarity in [Similarity::Cosine, Similarity::Order] {
        let mut config = tiny(Objective::Sum);
        config.model.similarity = similarity;
        config.model.embed_dim = 19; // not a whole number of lanes
        let mut hal = hal(&config);
        let all = [0, 1, 2, 3, 4, 5, 6, 7];
        let scores = with_items(|items| hal.scored(items).unwrap().matrix()).unwrap();
        let step = with_batch(&all, |b| hal.step(b, 1, Observe::Negatives)).unwrap();
        let [i2t, t2i] = step.negatives.unwrap();
        for (n, want) in i2t.scores.iter().enumerate() {
            let got = scores.row(data().image_ids[n / 8] as usize)[n % 8];
            assert!((got - want).abs() < 1e-6, "{similarity:?}, {n}: {got} {want}");
            assert_eq!(t2i.scores[n % 8 * 8 + n / 8], *want, "the same scores, turned");
        }
    }
}

#[test]
fn a_batch_whose_parts_differ_is_refused() {
    let images = Images::Features(&[0.0; DIM]);
    let batch = Batch { images, texts: &[], image_ids: &[1], caption_ids: &[1], train: None };
    let line = hal(&tiny(Objective::Sum)).step(&batch, 0, Observe::Off).unwrap_err().to_string();
    assert_eq!(line, "texts of the batch: expected 1, one per pair, got 0");
}
