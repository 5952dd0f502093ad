//! Every row of every target takes two steps on eight synthetic pairs, in its warm-up and after it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use burn::tensor::Device;
use common::{DIM, VOCABULARY, rows, step};
use fne::Fne;

#[test]
fn every_row_trains_two_steps() {
    for (name, mut config) in rows() {
        config.sampler.bank_size = config.sampler.bank_size.min(64); // as written, but small
        let mut model = Fne::new(&config, DIM, VOCABULARY, &Device::flex(), 0).unwrap();
        for epoch in [0, config.sampler.warmup_epochs] {
            model.begin_epoch(epoch);
            for seed in 0..2 {
                let report = step(&mut model, seed);
                assert!(report.loss.is_finite() && report.loss >= 0.0, "{name}: {report:?}");
                assert!(report.grad_norm.is_finite(), "{name}: {report:?}");
            }
        }
    }
}
