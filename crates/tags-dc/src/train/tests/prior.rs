//! A model that begins with CCA's scores.

use itm_core::start::{LinearMap, Start, StartOptions};

use super::*;
use crate::config::PriorKind;

/// CCA of 12 dimensions, for a model 8 wide.
pub(super) fn with_prior() -> (TagsDcConfig, Start) {
    let mut config = config();
    (config.model.start, config.model.prior) = (StartFrom::Cca, Some(PriorKind::Cca));
    config.model.cca =
        Some(StartOptions { ridge_image: 1.0, ridge_text: 1.0, power: 1.0, dims: 12, fill: 0.0 });
    let map = |rows: usize, shift: f32| LinearMap {
        weight: (0..rows * 12).map(|k| (k as f32 * 1.7 + shift).sin()).collect(),
        bias: vec![0.1; 12],
    };
    (config, Start { image: map(WIDTH, 0.0), text: map(WORDS, 0.5) })
}

/// Before the first step the blocks say nothing: two models with other random blocks score the same. After a step and a restart the scores have
/// the same bits, and a later row begins with them.
#[test]
fn a_row_begins_with_ccas_scores_and_resumes() {
    let (config, start) = with_prior();
    let (split, folder) = (Split::new(), tempfile::tempdir().unwrap());
    let seeded = |seed: u64| {
        let mut config = config.clone();
        config.train.seed = seed;
        model(&config).with_start(&start).unwrap()
    };
    let scores = |model: &TagsDc| model.scored(split.items()).unwrap().matrix().unwrap();
    let mut first = seeded(0);
    assert_eq!(scores(&first), scores(&seeded(1)));
    step(&mut first, &split, &[3, 4], 1).unwrap();
    assert_ne!(scores(&first), scores(&seeded(0)));
    first
        .save(&mut |name, contents| {
            std::fs::write(folder.path().join(name), contents).unwrap();
            Ok(())
        })
        .unwrap();
    let (mut again, mut later) = (seeded(2), seeded(3));
    again.load(folder.path()).unwrap();
    later.start_from(folder.path()).unwrap();
    assert_eq!(scores(&again), scores(&first));
    assert_eq!(scores(&later), scores(&first));
    for model in [&mut first, &mut again] {
        step(model, &split, &[5, 6], 2).unwrap();
    }
    assert_eq!(scores(&again), scores(&first));
}

/// A generator that learns from captions has no prior, and a later row with a prior does not look for one.
#[test]
fn a_generator_of_its_own_has_no_prior() {
    let ((mut config, start), folder) = (with_prior(), tempfile::tempdir().unwrap());
    let own = captions::with_own_generator();
    (config.captions, config.synthetic, config.loss) = (own.captions, own.synthetic, own.loss);
    let [first, mut later] = [0, 1].map(|_| model(&config).with_start(&start).unwrap());
    captions::save(&first, folder.path());
    later.start_from(folder.path()).unwrap();
}

#[test]
fn a_prior_needs_ccas_maps() {
    let (mut config, _) = with_prior();
    config.check().unwrap();
    config.model.start = StartFrom::Random;
    let line = config.check().unwrap_err().to_string();
    assert!(line.starts_with("model.prior: expected model.start = \"cca\""), "{line}");
    (config.model.start, config.model.prior) = (StartFrom::Cca, None);
    let line = config.check().unwrap_err().to_string();
    assert_eq!(line, "model.cca.dims: expected at most 8, the width of the model, got 12");
}
