//! Every row of every target takes two steps on eight synthetic pairs, in its warm-up and after it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use burn::tensor::Device;
use common::{DIM, PAIRS, VOCABULARY, features, fne, hal_rows, rows, step, texts};
use hubness::training::{Batch, Hal, Observe};

#[test]
fn every_row_trains_two_steps() {
    for (name, mut config) in rows() {
        config.sampler.bank_size = config.sampler.bank_size.min(64); // as written, but small
        let mut model = fne(&config, &Device::flex(), 0);
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

#[test]
fn every_row_of_hal_trains_two_epochs() {
    let (features, texts) = (features(), texts());
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let ids: Vec<i64> = (0..PAIRS as i64).collect();
    let batch =
        Batch { features: &features.values, texts: &texts, image_ids: &ids, caption_ids: &ids };
    for (name, mut config) in hal_rows() {
        (config.train.batch, config.bank.mb_rate) = (PAIRS, 1.0); // as written, but small
        let mut model = Hal::new(&config, DIM, VOCABULARY, &Device::flex(), 0).unwrap();
        for epoch in 0..2 {
            model.begin_epoch(epoch);
            for _ in model.bank_batches(PAIRS) {
                model.remember(&batch);
            }
            let report = model.step(&batch, Observe::Off).unwrap();
            assert!(report.loss.is_finite() && report.grad_norm.is_finite(), "{name}: {report:?}");
        }
    }
}
