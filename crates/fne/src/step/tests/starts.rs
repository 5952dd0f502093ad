//! Options of a model that begins with given maps: each option changes the output of a run.

use itm_core::contrastive::{ContrastiveOptions, Learnt};
use itm_core::encoders::ResidualShape;
use itm_core::learn::Schedule;
use itm_core::start::{BagPooling, InputStatistics, LinearMap, Start, StartFrom, StartOptions};

use super::*;
use crate::config::Loss;
use itm_core::towers::{BagConfig, ImageConfig, TextConfig};

const STEMS: usize = 12;

fn start(d: usize) -> Start {
    let map = |inputs: usize, shift: usize| LinearMap {
        weight: (0..inputs * d).map(|k| ((k * 29 + shift) % 31) as f32 / 31.0 - 0.5).collect(),
        bias: (0..d).map(|k| k as f32 / 50.0).collect(),
    };
    Start { image: map(DIM, 3), text: map(STEMS, 11) }
}

fn idf() -> Vec<f32> {
    (0..STEMS).map(|stem| 1.0 + (stem % 4) as f32).collect()
}

/// Hardest negatives of the batch, the same rate in every step.
fn base() -> FneConfig {
    let mut config = tiny(Preset::Default);
    config.model.text = TextConfig::Bag(BagConfig { pooling: BagPooling::TfIdf });
    config.model.start = StartFrom::Cca;
    let [ridge_image, ridge_text] = [1.0; 2];
    config.model.cca =
        Some(StartOptions { ridge_image, ridge_text, power: 1.0, dims: 8, fill: 0.0 });
    config.sampler.negatives = NegativeChoice::InBatch;
    config.train.epochs = 3;
    config.train.contrastive = Some(fixed(0.07));
    config
}

fn fixed(temperature: f64) -> ContrastiveOptions {
    ContrastiveOptions { temperature, bias: -1.0, learn: Learnt::Fixed }
}

/// Losses of twelve steps in three epochs, and the weights after them.
fn run(config: &FneConfig) -> (Vec<f64>, Vec<f32>) {
    config.validate().unwrap();
    let inputs = InputStatistics { deviation: 0.8, idf: Some(idf()), rows: None };
    let mut fne = fne(config).with_epochs_of(4).with_inputs(&inputs).unwrap();
    if config.model.closed_form().is_some() {
        fne = fne.with_start(&start(8)).unwrap();
    }
    let mut losses = vec![];
    for s in 0..12 {
        if s % 4 == 0 {
            begin(&mut fne, s as usize / 4);
        }
        let pairs = [[0, 1, 4, 7], [2, 5, 6, 3]][s as usize % 2];
        losses.push(step(&mut fne, &pairs, 100 + s).unwrap().loss);
    }
    (losses, values(fne.online()))
}

fn residual(config: &mut FneConfig) -> &mut ResidualShape {
    let ImageConfig::Features(features) = &mut config.model.image else { panic!("features") };
    features.residual.get_or_insert(ResidualShape {
        hidden: 6,
        input_scale: 0.3,
        input_dropout: 0.1,
        hidden_dropout: 0.1,
        rate_factor: 2.0,
    })
}

#[test]
fn every_option_of_a_start_changes_the_output() {
    type Change = fn(&mut FneConfig);
    let changes: [(&str, Change); 10] = [
        ("start", |c| c.model.start = StartFrom::Random),
        ("pooling", |c| c.model.text = TextConfig::Bag(BagConfig { pooling: BagPooling::Mean })),
        ("residual", |c| _ = residual(c)),
        ("dropout", |c| c.train.dropout = 0.3),
        ("word_dropout", |c| c.train.word_dropout = 0.3),
        ("schedule", |c| c.train.schedule = Schedule::Cosine),
        ("mask", |c| c.sampler.mask_same_image_everywhere = true),
        ("info_nce", |c| c.train.loss = Loss::InfoNce),
        ("sigmoid", |c| c.train.loss = Loss::Sigmoid),
        ("decay", |c| c.train.weight_decay = 0.1),
    ];
    let whole = run(&base());
    assert_eq!(run(&base()), whole);
    for (name, change) in changes {
        let mut config = base();
        change(&mut config);
        assert!(run(&config) != whole, "{name}");
    }
}

#[test]
fn every_option_of_the_network_beside_the_map_changes_the_output() {
    type Change = fn(&mut ResidualShape);
    let changes: [(&str, Change); 5] = [
        ("hidden", |r| r.hidden = 7),
        ("input_scale", |r| r.input_scale = 0.5),
        ("input_dropout", |r| r.input_dropout = 0.5),
        ("hidden_dropout", |r| r.hidden_dropout = 0.6),
        ("rate_factor", |r| r.rate_factor = 4.0),
    ];
    let with = |change: Option<Change>| {
        let mut config = base();
        config.train.dropout = 0.1;
        let residual = residual(&mut config);
        change.into_iter().for_each(|change| change(residual));
        run(&config).0
    };
    let whole = with(None);
    for (name, change) in changes {
        assert!(with(Some(change)) != whole, "{name}");
    }
}

/// A contrastive loss has a temperature and may learn it; the pairwise sigmoid has a bias, too.
#[test]
fn every_option_of_a_contrastive_loss_changes_the_output() {
    let losses = |loss, options: ContrastiveOptions| {
        let mut config = base();
        (config.train.loss, config.train.contrastive) = (loss, Some(options));
        run(&config).0
    };
    for loss in [Loss::InfoNce, Loss::Sigmoid] {
        let whole = losses(loss, fixed(0.07));
        assert!(losses(loss, fixed(0.2)) != whole, "temperature of {loss:?}");
        let learnt = ContrastiveOptions { learn: Learnt::Learned, ..fixed(0.07) };
        assert!(losses(loss, learnt) != whole, "learn of {loss:?}");
        let bias = losses(loss, ContrastiveOptions { bias: 2.0, ..fixed(0.07) });
        assert_eq!(bias != whole, loss == Loss::Sigmoid, "bias of {loss:?}");
    }
}

#[test]
fn starts_and_losses_that_cannot_be_are_refused() {
    type Change = fn(&mut FneConfig);
    let wrong: [(&str, Change); 4] = [
        ("model.start", |c| c.model.cca = None),
        ("model.cca.power", |c| c.model.cca.as_mut().unwrap().power = -1.0),
        ("train.loss", |c| (c.train.loss, c.train.contrastive) = (Loss::InfoNce, None)),
        ("contrastive.temperature", |c| c.train.contrastive = Some(fixed(0.0))),
    ];
    for (place, change) in wrong {
        let mut config = base();
        change(&mut config);
        let line = config.validate().unwrap_err().to_string();
        assert!(line.starts_with(place), "{line}");
    }
    let inputs = InputStatistics { deviation: 0.8, idf: Some(vec![1.0; 3]), rows: None };
    let line = fne(&base()).with_inputs(&inputs).unwrap_err().to_string();
    assert_eq!(line, "idf of a bag of words: expected idf of 12 terms, got 3");
    let line = fne(&base()).with_start(&start(7)).unwrap_err().to_string();
    assert!(line.starts_with("map of image features: expected 5 inputs and 8 outputs"), "{line}");
    let line = fne(&tiny(Preset::Default)).with_start(&start(8)).unwrap_err().to_string();
    assert!(line.contains("a text encoder of stems"), "{line}");
    let mut cosine = base();
    cosine.train.schedule = Schedule::Cosine;
    let line = step(&mut fne(&cosine), &EVEN, 1).unwrap_err().to_string();
    assert!(line.starts_with("train.schedule: expected the number of steps"), "{line}");
}
