//! Laws that every method keeps.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use burn::tensor::Device;
use common::{DIM, PAIRS, features, rows, step, texts};
use fne::{Fne, FneConfig};
use itm_core::data::Features;

fn model(config: &FneConfig, seed: u64) -> Fne {
    let mut config = config.clone();
    config.sampler.bank_size = config.sampler.bank_size.min(64);
    config.sampler.min_count = 4;
    common::fne(&config, &Device::flex(), seed)
}

fn train(config: &FneConfig, seed: u64, steps: u64) -> (Fne, Vec<f64>) {
    let mut model = model(config, seed);
    let mut losses = vec![];
    for epoch in 0..=config.sampler.warmup_epochs {
        model.begin_epoch(epoch);
        losses.extend((0..steps).map(|s| step(&mut model, 1000 * epoch as u64 + s).loss));
    }
    (model, losses)
}

fn bits(model: &Fne) -> Vec<u32> {
    let images = model.embed_images(&features());
    images.into_iter().chain(model.embed_texts(&texts())).map(f32::to_bits).collect()
}

#[test]
fn embeddings_are_unit_rows_that_do_not_depend_on_their_batch() {
    for (name, config) in rows() {
        let (model, _) = train(&config, 0, 3);
        let width = model.width();
        let (images, captions) = (model.embed_images(&features()), model.embed_texts(&texts()));
        assert_eq!((images.len(), captions.len()), (PAIRS * width, PAIRS * width), "{name}");
        for row in images.chunks(width).chain(captions.chunks(width)) {
            let norm: f32 = row.iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-4, "{name}: a row of norm² {norm}");
        }
        let one = Features { dim: DIM, values: features().row(5).to_vec() };
        let alone = model.embed_images(&one).into_iter().chain(model.embed_texts(&[&texts()[5]]));
        let beside = images[5 * width..6 * width].iter().chain(&captions[5 * width..6 * width]);
        for (a, b) in alone.zip(beside) {
            assert!((a - b).abs() < 1e-5, "{name}: {a} alone, {b} beside others");
        }
    }
}

#[test]
fn one_seed_gives_one_result_and_another_seed_another() {
    for (name, config) in rows() {
        let ((a, losses_a), (b, losses_b)) = (train(&config, 1, 3), train(&config, 1, 3));
        assert_eq!(losses_a, losses_b, "{name}");
        assert!(bits(&a) == bits(&b), "{name}");
        assert!(bits(&a) != bits(&train(&config, 2, 3).0), "{name}");
    }
}

#[test]
fn training_on_eight_pairs_tells_them_apart() {
    for (name, mut config) in rows() {
        (config.train.dropout, config.train.word_dropout) = (0.0, 0.0);
        config.train.learning_rate = 1e-2;
        let (model, losses) = train(&config, 0, 60);
        let width = model.width();
        let (images, captions) = (model.embed_images(&features()), model.embed_texts(&texts()));
        let score = |i: usize, t: usize| -> f32 {
            let (v, w) = (&images[i * width..][..width], &captions[t * width..][..width]);
            v.iter().zip(w).map(|(a, b)| a * b).sum()
        };
        let own_first = |i: &usize| (0..PAIRS).all(|t| t == *i || score(*i, *i) > score(*i, t));
        let found = (0..PAIRS).filter(own_first).count();
        assert_eq!(found, PAIRS, "{name}: losses {:?} … {:?}", losses[0], losses.last());
    }
}

#[test]
fn a_saved_model_is_the_same_and_another_one_is_refused() {
    for (name, config) in rows() {
        let dir = tempfile::tempdir().unwrap();
        let (mut saved, _) = train(&config, 0, 3);
        saved.save(dir.path()).unwrap();
        let mut loaded = model(&config, 9);
        loaded.load(dir.path()).unwrap();
        assert!(bits(&saved) == bits(&loaded), "{name}");
        assert_eq!(step(&mut saved, 77).loss, step(&mut loaded, 77).loss, "{name}: the next step");
        assert!(bits(&saved) == bits(&loaded), "{name}: after the next step");

        let mut other = config.clone();
        other.model.embed_dim /= 2;
        let error = model(&other, 0).load(dir.path()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{name}: {error}");
        let folder = dir.path().to_str().unwrap();
        assert!(error.contains(folder), "{name}: the file is not named: {error}");
    }
}
