//! A training loop of one's own with FNE's negatives: two linear encoders, a bank, statistics, Eq. 15. It stops in the middle, goes on from
//! what it saved, and ends with the same bits.
//!
//! ```text
//! cargo run -p fne --example own_loop --features flex
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::error::Error;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use fne::{Bank, BankState, Draws, Entries, Preset, Reset, Statistics, Variance, memory_loss};
use itm_core::encoders::unit_rows;
use itm_core::host;
use itm_kernels::{AdamOptions, AdamW, Linear};

/// Features of an image, and of a text.
const FEATURES: [usize; 2] = [6, 5];
/// Width of the joint space.
const D: usize = 4;
/// Rows of the bank.
const K: usize = 32;
/// Pairs of a step.
const B: usize = 8;

/// Both encoders: any module of burn will do.
#[derive(Module, Debug)]
struct Encoders {
    images: Linear,
    texts: Linear,
}

/// Everything that the next step depends on.
struct Loop {
    encoders: Encoders,
    optimiser: AdamW,
    bank: Bank,
    statistics: Statistics,
}

impl Loop {
    fn new(device: &Device) -> Self {
        Self {
            encoders: Encoders {
                images: Linear::seeded(FEATURES[0], D, 1, device),
                texts: Linear::seeded(FEATURES[1], D, 2, device),
            },
            optimiser: AdamW::new(AdamOptions::default()),
            bank: Bank::new(K, D, 3, device),
            statistics: Statistics::new(Variance::Official, Reset::Never),
        }
    }

    /// One step on pairs of images `number · B` and on.
    fn step(&mut self, number: usize, device: &Device) -> Result<f32, fne::Error> {
        let table = |width: usize, salt: usize| {
            let value = |k: usize| ((number * 97 + k * 31 + salt) as f32).sin();
            let values = (0..B * width).map(value).collect();
            Tensor::<2>::from_data(TensorData::new::<f32, _>(values, [B, width]), device)
        };
        let ids: Vec<i64> = (0..B).map(|k| (number * B + k) as i64).collect();
        let images = unit_rows(self.encoders.images.forward(table(FEATURES[0], 0)));
        let texts = unit_rows(self.encoders.texts.forward(table(FEATURES[1], 5)));

        let scores = host(images.clone().detach().matmul(texts.clone().detach().transpose()));
        self.statistics.update(&scores, B); // Eq. 4
        let rule = Preset::Default.sampler().rule();
        let seen = self.statistics.snapshot();
        let draws = Draws { rule: &rule, seen: &seen, seed: number as u64 };
        let loss = memory_loss(images.clone(), texts.clone(), &ids, &self.bank, &draws)?; // Eq. 15

        let value = host(loss.clone().inner())[0];
        let grads = GradientsParams::from_grads(loss.backward(), &self.encoders);
        self.encoders = self.optimiser.step(self.encoders.clone(), grads, 0.01).0;
        // Those of momentum encoders in the paper; here what this step made. The bank takes the values, not the graph.
        self.bank.push(Entries { images, texts, ids: &ids, captions: &ids })?;
        Ok(value)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex().autodiff();
    let mut whole = Loop::new(&device);
    let losses: Vec<f32> = (0..20).map(|n| whole.step(n, &device)).collect::<Result<_, _>>()?;

    let mut first = Loop::new(&device);
    for number in 0..10 {
        first.step(number, &device)?;
    }
    let saved: [String; 2] =
        [serde_json::to_string(&first.bank.state())?, serde_json::to_string(&first.statistics)?];
    let state: BankState = serde_json::from_str(&saved[0])?;
    let mut resumed = Loop {
        bank: Bank::of_state(state, D, &device)?,
        statistics: serde_json::from_str(&saved[1])?,
        ..first // a loop of one's own saves its encoders and optimiser as burn or itm_core::checkpoint does
    };
    let rest: Vec<f32> = (10..20).map(|n| resumed.step(n, &device)).collect::<Result<_, _>>()?;

    assert_eq!(rest, losses[10..]);
    assert_eq!(resumed.bank.state(), whole.bank.state());
    println!(
        "loss {:.4} → {:.4}; resumed after 10 of 20 steps with the same bits",
        losses[0], losses[19]
    );
    Ok(())
}
