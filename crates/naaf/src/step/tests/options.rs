//! Each change of a key of a config changes the output of a run.

use itm_core::data::WordVectors;
use itm_core::learn::Schedule as Rates;
use itm_core::start::{LinearMap, Start, StartOptions};

use super::*;
use crate::config::RegionMapKind;
use crate::{
    AboveOne, AlphaStar, Asks, Form, InferenceBoundary, NegativeImage, Pooling, RawNorm, WordPool,
};

/// Losses, boundaries and scores of 36 steps in three epochs; batches hold two captions of one image.
fn run(config: &NaafConfig) -> (Vec<f64>, Vec<Boundary>, Vec<f32>) {
    let mut model = naaf(config);
    let (mut losses, mut boundaries) = (vec![], vec![]);
    for k in 0..36 {
        if k % 12 == 0 {
            begin(&mut model, k / 12);
        }
        let pairs = if k % 2 == 0 { [0, 1, 4, 7, 2] } else { [2, 5, 6, 3, 7] };
        losses.push(step(&mut model, &pairs, k as u64).unwrap().loss);
        boundaries.push(model.boundary().clone());
    }
    let scores = scores(&model);
    (losses, boundaries, scores)
}

/// A warm-up of one epoch, a decay after each epoch, and a boundary that has an effect.
fn base() -> NaafConfig {
    let mut config = tiny();
    config.train.decay_every = 1;
    (config.loss.warmup_epochs, config.loss.margin) = (1, 0.4);
    (config.mining.min_words, config.mining.reset_below_min_words) = (2, false);
    config
}

type Change = fn(&mut NaafConfig);

fn all_differ(base: &NaafConfig, changes: &[(&str, Change)]) {
    let whole = run(base);
    assert_eq!(run(base), whole);
    let mut same = vec![];
    for (name, change) in changes {
        let mut config = base.clone();
        change(&mut config);
        assert_ne!(config, *base, "{name}");
        if run(&config) == whole {
            same.push(*name);
        }
    }
    assert!(same.is_empty(), "{same:?} change nothing");
}

fn naaf_of(config: &mut NaafConfig) -> &mut NegativeAware {
    let Attention::Naaf(naaf) = &mut config.attention else { panic!("another kind") };
    naaf
}

fn scan_of(config: &mut NaafConfig) -> &mut Scan {
    let Attention::Scan(scan) = &mut config.attention else { panic!("another kind") };
    scan
}

#[test]
fn every_key_of_model_train_and_loss_changes_the_result() {
    all_differ(
        &base(),
        &[
            ("embed_dim", |c| c.model.embed_dim = 9),
            ("score", |c| c.model.score = Score::Global),
            ("region_map", |c| c.model.region_map = RegionMapKind::WeightNorm),
            ("text", |c| c.model.text = TextKind::Bigru),
            ("weight_decay", |c| c.train.weight_decay = Some(0.1)),
            ("learning_rate", |c| c.train.learning_rate = 2e-2),
            ("schedule", |c| c.train.schedule = Rates::Cosine),
            ("decay_every", |c| c.train.decay_every = 2),
            ("lr_decay", |c| c.train.lr_decay = 0.5),
            ("grad_clip", |c| c.train.grad_clip = 1e-9),
            ("region_dropout", |c| c.train.region_dropout = 0.3),
            ("word_dropout", |c| c.train.word_dropout = 0.3),
            ("margin", |c| c.loss.margin = 0.3),
            ("mask_same_image", |c| c.loss.mask_same_image = true),
            ("reduction", |c| c.loss.reduction = Reduction::Mean),
            ("warmup_loss", |c| c.loss.warmup_loss = WarmupLoss::Sum),
        ],
    );
    let mut warm = base();
    warm.loss.warmup_loss = WarmupLoss::Sum;
    all_differ(&warm, &[("warmup_epochs", |c| c.loss.warmup_epochs = 2)]);
    let mut cosine = base();
    cosine.train.schedule = Rates::Cosine;
    all_differ(&cosine, &[("epochs", |c| c.train.epochs = 5)]);
    let bigru = NaafConfig { model: bigru().model, ..base() };
    all_differ(
        &bigru,
        &[
            ("word_dim", |c| c.model.word_dim = 5),
            ("freeze_embedding", |c| c.model.freeze_embedding = true),
            ("word_dropout", |c| c.train.word_dropout = 0.3),
        ],
    );
}

#[test]
fn every_key_of_attention_changes_the_result() {
    all_differ(
        &base(),
        &[
            ("kind", |c| c.attention = scan().attention),
            ("negative", |c| naaf_of(c).negative = false),
            ("masks", |c| naaf_of(c).masks = false),
            ("scale", |c| naaf_of(c).scale = 10.0),
            ("relevance_leak", |c| naaf_of(c).relevance_leak = 0.0),
            ("intra", |c| naaf_of(c).intra = Intra::Off),
            ("intra value", |c| naaf_of(c).intra = Intra::ValueAndMask),
            ("intra_scale", |c| naaf_of(c).intra_scale = 1.0),
        ],
    );
    let mut lse = NaafConfig { attention: scan().attention, ..base() };
    scan_of(&mut lse).pooling = Pooling::LogSumExp;
    all_differ(
        &lse,
        &[
            ("asks", |c| scan_of(c).asks = Asks::Regions),
            ("raw_norm", |c| scan_of(c).raw_norm = RawNorm::L2),
            ("lambda_softmax", |c| scan_of(c).lambda_softmax = 4.0),
            ("pooling", |c| scan_of(c).pooling = Pooling::Mean),
            ("lambda_lse", |c| scan_of(c).lambda_lse = 20.0),
        ],
    );
}

#[test]
fn every_key_of_mining_changes_the_result() {
    all_differ(
        &base(),
        &[
            ("schedule", |c| c.mining.schedule = Schedule::PerBatch),
            ("smoothing", |c| c.mining.smoothing = 1.0),
            ("min_words", |c| c.mining.min_words = 9),
            ("negative_image", |c| c.mining.negative_image = NegativeImage::Hardest),
            ("negative_image random", |c| c.mining.negative_image = NegativeImage::Random),
            ("negative_word_pool", |c| c.mining.negative_word_pool = WordPool::Mean),
            ("alpha", |c| c.mining.alpha = 3.0),
            ("alpha_star", |c| c.mining.alpha_star = AlphaStar::FromEpoch(1)),
            ("form", |c| c.mining.form = Form::Official),
            ("inference_boundary", |c| {
                c.mining.inference_boundary = InferenceBoundary::Training;
            }),
        ],
    );
    let mut few = base();
    (few.mining.min_words, few.train.decay_every) = (7, 10); // more than a batch's first caption is ranked right
    all_differ(&few, &[("reset_below_min_words", |c| c.mining.reset_below_min_words = true)]);
    // A mismatch costs so much that the solution is above 1.
    let mut high = base();
    (high.mining.alpha, high.mining.negative_word_pool) = (1e30, WordPool::Mean);
    all_differ(&high, &[("above_one", |c| c.mining.above_one = AboveOne::Keep)]);
}

/// A start gives other weights, and its maps reach both encoders.
#[test]
fn a_start_is_where_training_begins() {
    let map = |inputs: usize, shift: usize| {
        let value = |k: usize| ((k * 37 + shift) % 101) as f32 / 101.0 - 0.5;
        let weight = (0..inputs * 8).map(value).collect();
        LinearMap { weight, bias: (0..8).map(|k| 0.1 * value(k + 7)).collect() }
    };
    let start = Start { image: map(DIM, 3), text: map(VOCABULARY, 50) };
    let mut config = base();
    config.model.start = itm_core::start::StartFrom::Cca;
    let dims = 8;
    let cca = StartOptions { ridge_image: 1.0, ridge_text: 1.0, power: 0.5, dims, fill: 0.0 };
    config.model.cca = Some(cca);
    let at = |start: &Start| begun(&config, |encoders| encoders.with_start(start));
    let random = scores(&begun(&config, Ok).unwrap());
    let given = scores(&at(&start).unwrap());
    assert_ne!(given, random);
    let image = Start { image: map(DIM, 4), ..start.clone() };
    let text = Start { text: map(VOCABULARY, 4), ..start.clone() };
    for other in [image, text] {
        assert_ne!(given, scores(&at(&other).unwrap()));
    }
    let wide = Start { text: map(VOCABULARY + 1, 50), ..start.clone() };
    let line = at(&wide).unwrap_err().to_string();
    assert_eq!(line, "map of words: expected 14 inputs and 8 outputs, got 15 and 8");
    let line = begun(&bigru(), |encoders| encoders.with_start(&start)).unwrap_err().to_string();
    assert_eq!(line, "a start: expected a table of words, got another encoder");
    let line = Naaf::new(&config, DIM, VOCABULARY, &Device::flex()).unwrap_err().to_string();
    assert!(line.starts_with("model.start: expected \"random\"; Naaf::from_encoders"), "{line}");
}

/// A model of a config, with encoders made from the config's random ones.
fn begun(
    config: &NaafConfig,
    change: impl FnOnce(NaafEncoders) -> Result<NaafEncoders>,
) -> Result<Naaf> {
    let encoders = NaafEncoders::new(&config.model, DIM, VOCABULARY, 0, &Device::flex())?;
    Naaf::from_encoders(config, change(encoders)?, Boundary::default())
}

/// A config whose word vectors are given never trains from random ones.
#[test]
fn given_vectors_must_be_given() {
    let mut config = bigru();
    config.model.word_vectors = crate::VectorsFrom::Given;
    let line = Naaf::new(&config, DIM, VOCABULARY, &Device::flex()).unwrap_err().to_string();
    assert!(line.starts_with("model.word_vectors: expected \"random\"; Naaf::from"), "{line}");
    let rows = (0..VOCABULARY as u32).map(|id| (id, vec![0.1 * id as f32; 6])).collect();
    let vectors = WordVectors { width: 6, vocabulary: VOCABULARY, rows };
    let mut model = begun(&config, |encoders| encoders.with_vectors(&vectors)).unwrap();
    assert_ne!(scores(&model), scores(&naaf(&bigru())));
    assert!(step(&mut model, &ALL, 0).unwrap().grad_norm > 0.0);
}

/// Encoders and boundary of another model give its scores, from a device with gradients or without, and they learn on.
#[test]
fn a_model_of_given_encoders_and_boundary() {
    let config = base();
    let mut first = naaf(&config);
    (0..4).for_each(|k| _ = step(&mut first, &ALL, k).unwrap());
    assert!(first.boundary().t_s > 0.0, "{:?}", first.boundary());
    let next = |mut model: Naaf| (step(&mut model, &ALL, 7).unwrap(), scores(&model));
    let made = |encoders: NaafEncoders| {
        Naaf::from_encoders(&config, encoders, first.boundary().clone()).unwrap()
    };
    let (learning, plain) = (first.encoders().clone(), first.encoders().valid());
    assert_eq!(scores(&made(learning.clone())), scores(&first));
    assert_eq!(scores(&made(plain.clone())), scores(&first));
    assert_eq!(next(made(learning.clone())), next(made(plain)));

    let refused = |config: &NaafConfig, boundary| {
        Naaf::from_encoders(config, learning.clone(), boundary).unwrap_err().to_string()
    };
    let far = Boundary { t_s: f64::NAN, ..Boundary::default() };
    assert_eq!(refused(&config, far), "boundary t_s: expected in [0, 1], got NaN");
    let changes: [Change; 3] = [
        |c| c.model.embed_dim = 9,
        |c| c.model.text = TextKind::Bigru,
        |c| c.model.region_map = RegionMapKind::WeightNorm,
    ];
    for change in changes {
        let mut other = config.clone();
        change(&mut other);
        let line = refused(&other, Boundary::default());
        assert!(
            line.starts_with("encoders: expected") && line.contains("got Xavier to 8, words to 8"),
            "{line}"
        );
    }
}

/// The width of the word vectors of a recurrent unit, and the joint width of towers.
#[test]
fn encoders_of_another_width_are_refused() {
    let refused = |encoders: &Naaf, config: &NaafConfig| {
        let encoders = encoders.encoders().clone();
        Naaf::from_encoders(config, encoders, Boundary::default()).unwrap_err().to_string()
    };
    let mut other = bigru();
    other.model.word_dim = 7;
    let line = refused(&naaf(&bigru()), &other);
    assert!(line.contains("over vectors of 7") && line.contains("over vectors of 6"), "{line}");
    let (model, mut other) = (naaf(&towers()), towers());
    other.model.embed_dim = 9;
    let want = "patches to 9, word pieces to 9, got patches to 8, word pieces to 8";
    assert_eq!(refused(&model, &other), format!("encoders: expected {want}"));
    assert!(refused(&naaf(&tiny()), &towers()).ends_with("got Xavier to 8, words to 8"));
}

/// The schedule `cosine` needs the number of steps per epoch.
#[test]
fn a_cosine_asks_for_the_length_of_an_epoch() {
    let mut config = tiny();
    config.train.schedule = Rates::Cosine;
    let mut model = Naaf::new(&config, DIM, VOCABULARY, &Device::flex()).unwrap();
    let line = step(&mut model, &ALL, 0).unwrap_err().to_string();
    assert!(line.starts_with("train.schedule: expected the number of steps"), "{line}");
}

/// Impossible batches and models are refused in one line.
#[test]
fn what_cannot_be_trained_with_is_refused() {
    let at = |dim, vocabulary| {
        Naaf::new(&tiny(), dim, vocabulary, &Device::flex()).unwrap_err().to_string()
    };
    assert!(at(0, 5).starts_with("region_dim, the width of a region: expected"));
    assert!(at(3, 0).starts_with("vocabulary: expected"));
    let mut model = naaf(&tiny());
    let values = [0.5; 2 * DIM];
    let mut refused = |counts: &[usize], texts: &[&[u32]], captions: &[i64]| {
        let images = Images::Regions { width: DIM, counts, values: &values };
        let ids = &[0, 1];
        let batch = Batch { images, texts, image_ids: ids, caption_ids: captions, train: None };
        model.step(&batch, 1, Observe::Off).unwrap_err().to_string()
    };
    let (counts, texts, captions) = ([1, 1], [&[1, 4][..], &[1, 5]], [0, 1]);
    let line = refused(&counts, &texts[..1], &captions);
    assert_eq!(line, "texts of the batch: expected 2, one per pair, got 1");
    let line = refused(&counts, &texts, &captions[..1]);
    assert_eq!(line, "caption numbers of the batch: expected 2, one per pair, got 1");
    let line = refused(&counts[..1], &texts, &captions);
    assert_eq!(line, "region counts of the batch: expected 2, one per pair, got 1");
    assert!(refused(&[2, 1], &texts, &captions).starts_with("regions of the batch: expected"));
    let line = refused(&counts, &[&[1, 4], &[1, VOCABULARY as u32]], &captions);
    let known = format!("numbers of words below {VOCABULARY}, got {VOCABULARY}");
    assert_eq!(line, format!("caption 1 of the batch: expected {known}"));
}
