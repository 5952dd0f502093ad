//! Your own training loop with HAL's loss: two linear encoders of any features, Eq. 4, checkpoints. If you kill the program and
//! start it again, it goes on from the newest checkpoint and ends with the same bits.
//!
//! ```text
//! cargo run -p hubness --example hubness_loop --features flex -- DIR     # or flex,wgpu; flex,cuda: the feature chooses the device
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use hubness::losses::{HubOptions, Siblings, hal};
use hubness::{Error, Result};
use itm_core::encoders::unit_rows;
use itm_core::learn::{SavedState, Trainer};
use itm_kernels::{AdamOptions, Linear, random};

/// Widths of image features, of text features, and of the joint space.
const WIDTHS: [usize; 3] = [6, 5, 4];
/// Pairs per step.
const B: usize = 16;
/// Steps of the training, and steps from one checkpoint to the next.
const STEPS: u64 = 40;
const EVERY: u64 = 5;
/// The name in the files.
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

/// Features of the pairs of a step: text `k` is a noisy view of image `k`.
fn features(step: u64, device: &Device) -> [Tensor<2>; 2] {
    let value = |salt: u64, at: usize| random::unit(random::derive(step, salt), at as u64) - 0.5;
    let table = |width: usize, noise: u64| {
        let values = (0..B * width).map(|at| {
            value(0, at / width * 8 + at % width) + 0.1 * value(noise, at) // row, column
        });
        let values: Vec<f32> = values.collect();
        Tensor::from_data(TensorData::new(values, [B, width]), device)
    };
    [table(WIDTHS[0], 1), table(WIDTHS[1], 2)]
}

/// Makes one update and returns the loss before it.
fn step(learner: &mut Trainer<Encoders>, device: &Device) -> Result<f64> {
    let [images, texts] = features(learner.steps(), device);
    let encoders = learner.module();
    let images = unit_rows(encoders.images.forward(images));
    let texts = unit_rows(encoders.texts.forward(texts));
    let scores = images.matmul(texts.transpose()); // [b, b]
    let [i2t, t2i] = hal(scores, 0.2, Siblings::Negatives, &HubOptions::default()); // Eq. 2 of the scores of Eq. 4
    let loss = i2t.sum() + t2i.sum();
    let [loss, _] = learner.update(0.01, loss, |encoders, loss| {
        GradientsParams::from_grads(loss.backward(), encoders)
    })?;
    Ok(loss)
}

/// Writes a checkpoint. The folder gets its final name when all files are in it.
fn save(learner: &Trainer<Encoders>, folder: &Path) -> Result<()> {
    let (part, whole) = (folder.join("part"), folder.join(format!("{:06}", learner.steps())));
    _ = fs::remove_dir_all(&part); // left behind by a killed process
    fs::create_dir_all(&part).map_err(Error::io(&part))?;
    let mut write = |name: &str, bytes: &[u8]| {
        fs::write(part.join(name), bytes).map_err(Error::io(part.join(name)))
    };
    let modules = |file: &mut itm_core::checkpoint::CheckpointWriter| {
        file.module("encoders", learner.module())
    };
    learner.save(NAME, &mut write, modules, |_, updates| [updates, 0])?;
    fs::rename(&part, &whole).map_err(Error::io(&whole))
}

/// The newest checkpoint of a folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| !path.ends_with("part")).max()
}

/// Trains up to `steps` steps, from the newest checkpoint of the folder.
fn train(folder: &Path, steps: u64, device: &Device) -> Result<Trainer<Encoders>> {
    let mut learner = Trainer::new(Encoders::new(device), AdamOptions::default());
    if let Some(checkpoint) = newest(folder) {
        let saved = SavedState::open(NAME, &checkpoint)?;
        let encoders = saved.model.module("encoders", Encoders::new(device))?;
        learner = learner.restored(encoders, &saved, saved.counts[2])?;
    }
    while learner.steps() < steps {
        let loss = step(&mut learner, device)?;
        if learner.steps().is_multiple_of(EVERY) {
            save(&learner, folder)?;
            println!("step {:2}: loss {loss:.3}", learner.steps());
        }
    }
    Ok(learner)
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
        train(Path::new(&folder), STEPS, &device())?;
        return Ok(());
    }
    // Without a folder: one training in one go, and one that stops after 12 steps and starts again.
    let folder = std::env::temp_dir().join(format!("hubness-own-loop-{}", std::process::id()));
    let (whole, left) = (folder.join("whole"), folder.join("left"));
    train(&whole, STEPS, &device())?;
    train(&left, 12, &device())?; // the checkpoint is of step 10: two steps are lost
    train(&left, STEPS, &device())?;
    let name = format!("{STEPS:06}/state.safetensors");
    let read = |folder: &Path| fs::read(folder.join(&name)).map_err(Error::io(folder.join(&name)));
    assert!(read(&whole)? == read(&left)?, "the same bits");
    println!("left after 12 of {STEPS} steps and resumed: the same bits");
    fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}
