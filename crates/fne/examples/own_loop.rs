//! Your own training loop with FNE's negatives: two linear encoders, a bank, statistics, Eq. 15, checkpoints. If you kill it and start
//! it again, it goes on from its newest checkpoint and ends with the same bits.
//!
//! ```text
//! cargo run -p fne --example fne_loop --features flex -- DIR     # or wgpu, cuda: the feature chooses the device
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use fne::{
    Bank, BankRows, BankState, Draws, Error, Online, Preset, Reset, Result, SamplerConfig,
    Statistics, Variance, memory_loss,
};
use itm_core::checkpoint::CheckpointWriter;
use itm_core::encoders::unit_rows;
use itm_core::host;
use itm_core::learn::{SavedState, Trainer};
use itm_kernels::{AdamOptions, Linear};

/// Width of an image's features, of a text's, and of the joint space.
const WIDTHS: [usize; 3] = [6, 5, 4];
/// Rows of the bank.
const K: usize = 32;
/// Pairs per step.
const B: usize = 8;
/// Steps of the training, and steps from one checkpoint to the next.
const STEPS: u64 = 40;
const EVERY: u64 = 5;
/// The name of this loop in its files.
const NAME: &str = "own loop";

/// Both encoders. Any module of burn will do.
#[derive(Module, Debug)]
struct Encoders {
    images: Linear,
    texts: Linear,
}

impl Encoders {
    fn new(device: &Device) -> Self {
        let [image, text, d] = WIDTHS;
        let images = Linear::seeded(image, d, 1, device);
        Self { images, texts: Linear::seeded(text, d, 2, device) }
    }
}

/// Everything that the next step depends on.
struct Loop {
    learner: Trainer<Encoders>, // the encoders, their optimiser, the number of steps
    bank: Bank,
    statistics: Statistics,
}

impl Loop {
    fn new(device: &Device) -> Self {
        Self {
            learner: Trainer::new(Encoders::new(device), AdamOptions::default()),
            bank: Bank::new(K, WIDTHS[2], 3, device),
            statistics: Statistics::new(Variance::Official, Reset::Never),
        }
    }

    /// One update on the pairs of images `n · B` to `n · B + B − 1`, after n steps. Returns the loss before the update.
    fn step(&mut self, device: &Device) -> Result<f64> {
        let number = self.learner.steps();
        let features = |width: usize, salt: usize| {
            let value = |k: usize| ((number as usize * 97 + k * 31 + salt) as f32).sin();
            let values = (0..B * width).map(value).collect();
            Tensor::<2>::from_data(TensorData::new::<f32, _>(values, [B, width]), device)
        };
        let ids: Vec<i64> = (0..B).map(|k| (number as usize * B + k) as i64).collect();
        let encoders = self.learner.module();
        let images = unit_rows(encoders.images.forward(features(WIDTHS[0], 0)));
        let texts = unit_rows(encoders.texts.forward(features(WIDTHS[1], 5)));

        // In the paper momentum encoders make these rows; here the encoders that learn do. The bank takes the values, not the graph.
        let (v, w) = (images.clone(), texts.clone());
        self.bank.push(BankRows {
            images: v.clone(),
            texts: w.clone(),
            ids: &ids,
            captions: &ids,
        })?;
        self.statistics.update(&host(v.detach().matmul(w.detach().transpose())), B)?; // Eq. 4
        let rule = SamplerConfig::preset(Preset::Default);
        let draws = Draws { rule: &rule, statistics: &self.statistics, seed: number };
        let loss = memory_loss(Online { images, texts, ids: &ids }, &self.bank, &draws)?; // Eq. 15
        let [loss, _] = self.learner.update(0.01, loss, |encoders, loss| {
            GradientsParams::from_grads(loss.backward(), encoders)
        })?;
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
        let memory = serde_json::to_vec(&(self.bank.state(), &self.statistics));
        write("memory.json", &memory.expect("plain numbers"))?;
        let modules = |file: &mut CheckpointWriter| file.module("encoders", self.learner.module());
        self.learner.save(NAME, &mut write, modules, |_, updates| [updates, 0])?;
        fs::rename(&part, &whole).map_err(Error::io(&whole))
    }

    /// Goes on from a checkpoint.
    fn restored(self, checkpoint: &Path, device: &Device) -> Result<Self> {
        let path = checkpoint.join("memory.json");
        let memory = fs::read(&path).map_err(Error::io(&path))?;
        let (bank, statistics): (BankState, Statistics) = serde_json::from_slice(&memory)
            .map_err(|error| Error::invalid(path.display().to_string(), "the memory", error))?;
        let saved = SavedState::open(NAME, checkpoint)?;
        let encoders = saved.model.module("encoders", Encoders::new(device))?;
        let learner = self.learner.restored(encoders, &saved, saved.counts[2])?;
        Ok(Self { learner, bank: Bank::of_state(bank, WIDTHS[2], device)?, statistics })
    }
}

/// The newest checkpoint of a folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| !path.ends_with("part")).max()
}

/// Trains until `steps` steps are made, starting from the newest checkpoint of the folder.
fn train(folder: &Path, steps: u64, device: &Device) -> Result<()> {
    let mut all = Loop::new(device);
    if let Some(checkpoint) = newest(folder) {
        all = all.restored(&checkpoint, device)?;
    }
    while all.learner.steps() < steps {
        let loss = all.step(device)?;
        if all.learner.steps().is_multiple_of(EVERY) {
            all.save(folder)?;
            println!("step {:2}: loss {loss:.3}", all.learner.steps());
        }
    }
    Ok(())
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
        return train(Path::new(&folder), STEPS, &device());
    }
    // Without a folder: one training without a stop, and one training that stops after 12 steps and starts again.
    let folder = std::env::temp_dir().join(format!("fne-own-loop-{}", std::process::id()));
    let (whole, left) = (folder.join("whole"), folder.join("left"));
    train(&whole, STEPS, &device())?;
    train(&left, 12, &device())?; // the checkpoint is of step 10: two steps are lost
    train(&left, STEPS, &device())?;
    for file in ["state.safetensors", "memory.json"] {
        let name = format!("{STEPS:06}/{file}");
        let read =
            |folder: &Path| fs::read(folder.join(&name)).map_err(Error::io(folder.join(&name)));
        assert!(read(&whole)? == read(&left)?, "{file}: the same bits");
    }
    println!("left after 12 of {STEPS} steps and resumed: the same bits");
    fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}
