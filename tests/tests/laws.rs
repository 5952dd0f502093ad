//! Laws that every row of every method keeps. They cover each method in `itm_run::methods::ALL`.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;
#[path = "laws/files.rs"]
mod files;
#[path = "laws/scores.rs"]
mod scores;
#[path = "laws/towers.rs"]
mod towers;
#[path = "laws/training.rs"]
mod training;

use burn::tensor::Device;
use common::{Data, Row, step};
use itm_core::learn::{Method, Observe};

/// A model after `steps` steps of each of its first two epochs, and its losses.
fn trained(row: &Row, seed: u64, steps: u64) -> (Box<dyn Method>, Vec<f64>) {
    let mut model = row.model(seed, &Device::flex());
    let losses = train(&mut *model, 0..2, steps, Observe::Off);
    (model, losses)
}

/// Trains on all eight pairs, `steps` steps per epoch.
fn train(
    model: &mut dyn Method,
    epochs: std::ops::Range<usize>,
    steps: u64,
    observe: Observe,
) -> Vec<f64> {
    let mut losses = vec![];
    for epoch in epochs {
        model.begin_epoch(epoch, Data::new().items()).unwrap();
        for k in 0..steps {
            losses.push(step(model, 1000 * epoch as u64 + k, observe).unwrap().loss);
        }
    }
    losses
}

/// All scores of the eight pairs.
fn scores(model: &dyn Method) -> Vec<f32> {
    let data = Data::new();
    model.scored(data.items()).unwrap().matrix().unwrap().values().to_vec()
}
