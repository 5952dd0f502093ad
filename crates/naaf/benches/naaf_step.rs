//! NAAF's training step at the paper's size, and only its cross attention. Each row runs in its own process and prints one line of
//! JSON.
//!
//! ```text
//! cargo bench -p naaf --bench naaf_step -- --list
//! cargo bench -p naaf --bench naaf_step -- naaf-step-per-caption ours --threads 2 --seconds 4
//! ```
//!
//! A step has 128 images of 36 regions of 2,048 numbers, 128 captions of 12 words on average, a joint space of width 1,024, mining
//! and attention of the default preset, and a hinge with hardest negatives. `naaf-cross-…` begins at unit rows and ends at their
//! gradients. `naaf-step-…` also has the region map, the bidirectional recurrent unit and clipped Adam. `python tests/performance.py`
//! runs this step beside the PyTorch step, which `tests/reference/performance.py` measures in the same way.

#[path = "../../itm-core/benches/process/mod.rs"]
mod process;

use std::process::ExitCode;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_core::encoders::{BiGruText, TokenBatch, unit_rows};
use itm_core::{Block, Hardest, host, triplet};
use itm_kernels::{AdamOptions, AdamW, Linear, uniform};
use naaf::{
    Boundary, CrossProducts, MiningBatch, MiningConfig, NaafConfig, Phase, Preset, Schedule, mine,
    word_scores,
};
use process::{Listed, Step};

const MARGIN: f64 = 0.2;
const WORD_WIDTH: usize = 300;

/// The sizes of a row.
#[derive(Clone, Copy)]
struct Size {
    batch: usize,
    regions: usize,
    region_width: usize,
    width: usize,
    vocabulary: usize,
}

const PAPER: Size =
    Size { batch: 128, regions: 36, region_width: 2048, width: 1024, vocabulary: 8481 };
const TINY: Size = Size { batch: 20, regions: 5, region_width: 7, width: 9, vocabulary: 50 };

const ROWS: [(&str, Whole, Schedule); 4] = [
    ("naaf-cross-per-batch", Whole::Cross, Schedule::PerBatch),
    ("naaf-cross-per-caption", Whole::Cross, Schedule::PerCaption),
    ("naaf-step-per-batch", Whole::Step, Schedule::PerBatch),
    ("naaf-step-per-caption", Whole::Step, Schedule::PerCaption),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Whole {
    Cross,
    Step,
}

fn main() -> ExitCode {
    let listed: Vec<Listed> =
        ROWS.iter().map(|(name, ..)| ((*name).to_owned(), vec!["ours"])).collect();
    let step = |name: &str, _: &str| {
        let row = ROWS.iter().find(|row| row.0 == name).ok_or(format!("no row {name}"))?;
        Ok(step_of(PAPER, row.1, row.2))
    };
    let try_out =
        || ROWS.iter().try_for_each(|&(_, whole, schedule)| step_of(TINY, whole, schedule)());
    process::main(&listed, step, try_out)
}

/// Builds everything and gives one step.
fn step_of(size: Size, whole: Whole, schedule: Schedule) -> Step {
    match whole {
        Whole::Cross => cross(size, schedule),
        Whole::Step => all(size, schedule),
    }
}

fn cross(size: Size, schedule: Schedule) -> Step {
    let device = Device::flex().autodiff();
    let lengths = lengths(size);
    let rows = |n: usize, seed| unit_rows(uniform([n, size.width], 1.0, seed, &device)).inner();
    let regions = rows(size.batch * size.regions, 1);
    let texts = rows(size.batch * lengths[0], 2);
    let mut objective = Objective::new(schedule);
    Box::new(move || {
        let of = |rows: &Tensor<2>, n| {
            let shape = [size.batch, n, size.width];
            Tensor::<3>::from_inner(rows.clone().reshape(shape)).require_grad()
        };
        let (regions, texts) = (of(&regions, size.regions), of(&texts, lengths[0]));
        let loss = objective.loss(regions.clone(), texts.clone(), &lengths);
        let grads = loss.backward();
        std::hint::black_box([regions.grad(&grads), texts.grad(&grads)]);
        Ok(())
    })
}

/// Both encoders.
#[derive(Module, Debug)]
struct NaafEncoders {
    image: Linear,
    text: BiGruText,
}

fn all(size: Size, schedule: Schedule) -> Step {
    let device = Device::flex().autodiff();
    let mut model = Some(NaafEncoders {
        image: Linear::seeded(size.region_width, size.width, 1, &device),
        text: BiGruText::new([size.vocabulary, WORD_WIDTH, size.width], 2, &device),
    });
    let mut optimiser = AdamW::new(AdamOptions { clip: Some(2.0), ..AdamOptions::default() });
    let rows = size.batch * size.regions;
    let regions = uniform([rows, size.region_width], 1.0, 3, &device);
    let lengths = lengths(size);
    let words = lengths.iter().enumerate().map(|(c, &n)| {
        (0..n).map(|k| ((c * 7919 + k * k * 331) % size.vocabulary) as u32).collect()
    });
    let captions = TokenBatch::new(&words.collect::<Vec<Vec<u32>>>());
    let mut objective = Objective::new(schedule);
    Box::new(move || {
        let Some(now) = model.take() else { return Ok(()) };
        let v = unit_rows(now.image.forward(regions.clone()));
        let v = v.reshape([size.batch, size.regions, size.width]);
        let loss = objective.loss(v, now.text.encode(&captions), &lengths);
        let grads = GradientsParams::from_grads(loss.backward(), &now);
        model = Some(optimiser.step(now, grads, 5e-4).0);
        Ok(())
    })
}

/// From rows to the loss; the boundary moves from step to step.
struct Objective {
    config: NaafConfig,
    mining: MiningConfig,
    boundary: Boundary,
}

impl Objective {
    fn new(schedule: Schedule) -> Self {
        let config = NaafConfig::preset(Preset::Default);
        let mining = MiningConfig { schedule, ..config.mining.clone() };
        Self { config, mining, boundary: Boundary::default() }
    }

    fn loss(&mut self, regions: Tensor<3>, texts: Tensor<3>, lengths: &[usize]) -> Tensor<1> {
        let counts = vec![regions.dims()[1]; regions.dims()[0]];
        let products = CrossProducts::new(regions, &counts, texts, lengths);
        let (rule, b) = (self.config.attention.rule(Phase::Training), lengths.len());
        let own: Vec<usize> = (0..b).collect();
        let captions = MiningBatch { lengths, own: &own, epoch: 0, seed: 1 };
        let plain = products.host();
        let words = |i, c, pool| word_scores(&plain, i, c, pool);
        let (boundary, mining) = (&mut self.boundary, &self.mining);
        let scores = match mining.schedule {
            Schedule::PerCaption => {
                let column = |c, t| plain.column(&rule, c, t);
                let sampling =
                    mine(boundary, mining, &captions, column, words).expect("finite scores");
                products.scores(&rule, &sampling.thresholds)
            }
            Schedule::PerBatch => {
                let scores = products.scores(&rule, &vec![boundary.t as f32; b]);
                let values = host(scores.clone().inner());
                let column = |c: usize, _| values[c..].iter().step_by(b).copied().collect();
                mine(boundary, mining, &captions, column, words).expect("finite scores");
                scores
            }
        };
        let texts = triplet(&Block::in_batch(scores.clone()), &mut Hardest, MARGIN);
        let images = triplet(&Block::in_batch(scores.transpose()), &mut Hardest, MARGIN);
        texts.sum() + images.sum()
    }
}

/// From 19 words to 5, longest first.
fn lengths(size: Size) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..size.batch).map(|c| 5 + c * 7 % 15).collect();
    lengths.sort_by_key(|&n| std::cmp::Reverse(n));
    lengths
}
