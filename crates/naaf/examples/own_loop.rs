//! Your own training loop with NAAF's attention, mining and loss: a map of regions, a table of words, checkpoints. If you kill it and
//! start it again, it goes on from its newest checkpoint and ends with the same bits.
//!
//! ```text
//! cargo run -p naaf --example naaf_loop --features flex -- DIR     # or wgpu, cuda: the feature chooses the device
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::checkpoint::CheckpointWriter;
use itm_core::encoders::unit_rows;
use itm_core::learn::{SavedState, Trainer};
use itm_core::{Block, Hardest, triplet};
use itm_kernels::{AdamOptions, Linear, random};
use naaf::{
    Boundary, CrossProducts, Error, MiningBatch, MiningConfig, NaafConfig, Phase, Preset, Result,
    mine, word_scores,
};

/// Width of a region, number of words, width of the joint space.
const WIDTHS: [usize; 3] = [6, 20, 8];
/// Pairs per step, regions per image, words per caption.
const B: usize = 8;
const REGIONS: usize = 4;
const WORDS: usize = 3;
/// Steps of the training, and steps from one checkpoint to the next.
const STEPS: u64 = 40;
const EVERY: u64 = 5;
/// The name of this loop in its files.
const NAME: &str = "own loop";

/// Both encoders. Any module of burn will do.
#[derive(Module, Debug)]
struct NaafEncoders {
    regions: Linear,
    words: Linear, // its input is one-hot words, so it is a table
}

impl NaafEncoders {
    fn new(device: &Device) -> Self {
        let [region, words, d] = WIDTHS;
        let linear = |from, seed| Linear::seeded(from, d, seed, device);
        Self { regions: linear(region, 1), words: linear(words, 2) }
    }
}

/// Everything that the next step depends on.
struct Loop {
    learner: Trainer<NaafEncoders>, // the encoders, their optimiser, the number of steps
    boundary: Boundary,
}

/// Rows of unit length, `[items, rows, d]`.
fn unit(rows: Tensor<2>, per_item: usize) -> Tensor<3> {
    let [n, d] = rows.dims();
    unit_rows(rows).reshape([n / per_item, per_item, d])
}

impl Loop {
    fn new(device: &Device) -> Self {
        let learner = Trainer::new(NaafEncoders::new(device), AdamOptions::default());
        Self { learner, boundary: Boundary::default() }
    }

    /// Rows of the regions and of the words of a step. Word `k` of a caption names region `k` of its image.
    fn inputs(&self, device: &Device) -> [Tensor<2>; 2] {
        let [region, words, _] = WIDTHS;
        let step = self.learner.steps();
        let thing = |pair: usize, k: usize| {
            (random::unit(random::derive(step, pair as u64), k as u64) * words as f32) as usize
        };
        let seen = |pair: usize, k: usize| {
            let noise = random::derive(step, (100 + pair * REGIONS + k) as u64);
            let value = move |x: usize| {
                ((thing(pair, k) * 7 + x * 3) as f32).sin() + 0.1 * random::unit(noise, x as u64)
            };
            (0..region).map(value)
        };
        let all = |n: usize| (0..B).flat_map(move |pair| (0..n).map(move |k| (pair, k)));
        let values: Vec<f32> = all(REGIONS).flat_map(|(pair, k)| seen(pair, k)).collect();
        let table = |values: Vec<f32>, width: usize| {
            let shape = [values.len() / width, width];
            Tensor::<2>::from_data(TensorData::new(values, shape), device)
        };
        let hot = |(pair, k)| (0..words).map(move |w| f32::from(u8::from(w == thing(pair, k))));
        [table(values, region), table(all(WORDS).flat_map(hot).collect(), words)]
    }

    /// One update. Returns the loss before the update.
    fn step(&mut self, device: &Device) -> Result<f64> {
        let [regions, words] = self.inputs(device);
        let encoders = self.learner.module();
        let regions = unit(encoders.regions.forward(regions), REGIONS);
        let words = unit(encoders.words.forward(words), WORDS);
        let lengths = [WORDS; B];
        let products = CrossProducts::new(regions, &[REGIONS; B], words, &lengths);

        // The boundary moves caption by caption; each caption is scored with the boundary at its turn.
        let rule = NaafConfig::preset(Preset::Default).attention.rule(Phase::Training);
        let config = MiningConfig { min_words: 6, ..MiningConfig::preset(Preset::Default) };
        let own: Vec<usize> = (0..B).collect();
        let captions =
            MiningBatch { lengths: &lengths, own: &own, epoch: 0, seed: self.learner.steps() };
        let plain = products.host();
        let mut boundary = self.boundary.clone();
        let column = |c, t| plain.column(&rule, c, t);
        let best = |i, c, pool| word_scores(&plain, i, c, pool);
        let sampling = mine(&mut boundary, &config, &captions, column, best)?;

        let scores = products.scores(&rule, &sampling.thresholds); // images × captions
        let hardest = |scores| triplet(&Block::in_batch(scores), &mut Hardest, 0.2).sum(); // Eq. 15
        let loss = hardest(scores.clone()) + hardest(scores.transpose());
        let [loss, _] = self.learner.update(0.01, loss, |encoders, loss| {
            GradientsParams::from_grads(loss.backward(), encoders)
        })?;
        self.boundary = boundary; // only after a successful update
        Ok(loss)
    }

    /// Writes a checkpoint. The folder gets its final name when all files are in it.
    fn save(&self, folder: &Path) -> Result<()> {
        let name = format!("{:06}", self.learner.steps());
        let (part, whole) = (folder.join("part"), folder.join(name));
        _ = fs::remove_dir_all(&part); // left behind by a killed process
        fs::create_dir_all(&part).map_err(Error::io(&part))?;
        let mut write = |name: &str, bytes: &[u8]| {
            fs::write(part.join(name), bytes).map_err(Error::io(part.join(name)))
        };
        write("boundary.json", &serde_json::to_vec(&self.boundary).expect("plain numbers"))?;
        let modules = |file: &mut CheckpointWriter| file.module("encoders", self.learner.module());
        self.learner.save(NAME, &mut write, modules, |_, updates| [updates, 0])?;
        fs::rename(&part, &whole).map_err(Error::io(&whole))
    }

    /// Goes on from a checkpoint.
    fn restored(self, checkpoint: &Path, device: &Device) -> Result<Self> {
        let path = checkpoint.join("boundary.json");
        let boundary = fs::read(&path).map_err(Error::io(&path))?;
        let boundary = serde_json::from_slice(&boundary)
            .map_err(|error| Error::invalid(path.display().to_string(), "a boundary", error))?;
        let saved = SavedState::open(NAME, checkpoint)?;
        let encoders = saved.model.module("encoders", NaafEncoders::new(device))?;
        let learner = self.learner.restored(encoders, &saved, saved.counts[2])?;
        Ok(Self { learner, boundary })
    }
}

/// The newest checkpoint of a folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| !path.ends_with("part")).max()
}

/// Trains until `steps` steps are made, starting from the newest checkpoint of the folder. Returns the last boundary.
fn train(folder: &Path, steps: u64, device: &Device) -> Result<Boundary> {
    let mut all = Loop::new(device);
    if let Some(checkpoint) = newest(folder) {
        all = all.restored(&checkpoint, device)?;
    }
    while all.learner.steps() < steps {
        let loss = all.step(device)?;
        if all.learner.steps().is_multiple_of(EVERY) {
            all.save(folder)?;
            println!("step {:2}: loss {loss:.3}, t {:.3}", all.learner.steps(), all.boundary.t);
        }
    }
    Ok(all.boundary)
}

/// The device of the backend whose feature is on, with gradients.
fn device() -> Device {
    #[cfg(feature = "wgpu")]
    let device = Device::wgpu(Default::default());
    #[cfg(all(feature = "cuda", not(feature = "wgpu")))]
    let device = Device::cuda(0);
    #[cfg(not(any(feature = "wgpu", feature = "cuda")))]
    let device = Device::flex();
    device.autodiff()
}

pub(crate) fn main() -> Result<()> {
    if let Some(folder) = std::env::args_os().nth(1).filter(|arg| Path::new(arg).is_dir()) {
        return train(Path::new(&folder), STEPS, &device()).map(drop);
    }
    // Without a folder: one training without a stop, and one training that stops after 12 steps and starts again.
    let folder = std::env::temp_dir().join(format!("naaf-own-loop-{}", std::process::id()));
    let (whole, left) = (folder.join("whole"), folder.join("left"));
    let boundary = train(&whole, STEPS, &device())?;
    train(&left, 12, &device())?; // the checkpoint is of step 10: two steps are lost
    train(&left, STEPS, &device())?;
    for file in ["state.safetensors", "boundary.json"] {
        let name = format!("{STEPS:06}/{file}");
        let read =
            |folder: &Path| fs::read(folder.join(&name)).map_err(Error::io(folder.join(&name)));
        assert!(read(&whole)? == read(&left)?, "{file}: the same bits");
    }
    assert!(boundary.t > 0.0, "the boundary has moved");
    println!("left after 12 of {STEPS} steps and resumed: the same bits");
    fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}
