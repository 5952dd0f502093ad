//! Your own training loop with the losses of TAGS-DC: a small model that reads an image and a sentence, retrieved and synthetic
//! negatives, word discrimination and correction, checkpoints. If you kill and restart the program, it resumes from its newest checkpoint
//! and ends with the same bits.
//!
//! ```text
//! cargo run -p tags-dc --example tags_dc_loop --features flex -- DIR     # or wgpu, cuda, tch: the feature chooses the device
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::checkpoint::CheckpointWriter;
use itm_core::host;
use itm_core::learn::{SavedState, Trainer};
use itm_kernels::{AdamOptions, Linear, embedding};
use tags_dc::model::At;
use tags_dc::train::{Pool, PoolRows};
use tags_dc::{
    CaptionWords, Choice, CorrectionTargets, Error, Filter, Generator, MaskBy, Masker, Masking,
    Pairs, Purpose, Refill, Result, Scores, Tailor, accuracy, draw_texts, hardest, losses,
};

/// Number of words and marks.
const V: usize = 20;
/// Width of a state.
const D: usize = 8;
/// Values of an image.
const X: usize = 4;
/// Tokens before a sentence, after it, and in place of a masked word.
const CLS: u32 = 17;
const SEP: u32 = 18;
const MASK: u32 = 19;
/// Images, each with two captions of three words.
const IMAGES: usize = 6;
/// Q: captions that are drawn for an image.
const DRAWN: usize = 6;
/// h: how many of the hardest drawn captions are kept.
const KEPT: usize = 2;
/// Updates of the training, and updates from one checkpoint to the next.
const STEPS: u64 = 120;
const EVERY: u64 = 20;
/// The name in the checkpoint files.
const NAME: &str = "own loop";

/// The state of a token sums the token, the image and the mean of the sentence. Any module of burn will do.
#[derive(Module, Debug)]
struct Model {
    words: Linear,
    image: Linear,
    score: Linear,
    mask: Linear,
    discrimination: Linear,
    correction: Linear,
}

impl Model {
    fn new(device: &Device) -> Self {
        let linear = |from, to, seed| Linear::seeded(from, to, seed, device);
        Self {
            words: linear(V, D, 1),
            image: linear(X, D, 2),
            score: linear(D, 1, 3),
            mask: linear(D, V, 4),
            discrimination: linear(D, 2, 5),
            correction: linear(D, V, 6),
        }
    }

    /// States of sentences of one length with one image, `[rows · l, d]`.
    fn states(&self, image: usize, rows: &[&[u32]]) -> Tensor<2> {
        let (device, l) = (self.words.weight.val().device(), rows[0].len());
        let values: Vec<f32> = (0..X).map(|k| ((image * X + k) as f32).sin()).collect();
        let image = Tensor::<2>::from_data(TensorData::new(values, [1, X]), &device);
        let ids = rows.concat();
        let words = embedding(self.words.weight.val(), &ids, None); // [rows · l, d]
        let means = words.clone().reshape([rows.len(), l, D]).mean_dim(1); // [rows, 1, d]
        let means = means.repeat_dim(1, l).reshape([rows.len() * l, D]);
        (words + means + self.image.forward(image)).tanh()
    }

    /// s of each sentence, `[rows]`.
    fn scores(&self, states: Tensor<2>, rows: usize) -> Tensor<1> {
        let l = states.dims()[0] / rows;
        let pooled = states.reshape([rows, l, D]).mean_dim(1).reshape([rows, D]);
        sigmoid(self.score.forward(pooled)).reshape([rows])
    }
}

/// The model with one image, without gradients: `Tailor` takes words and scores from it.
struct WithImage<'a>(&'a Model, usize);

impl Generator for WithImage<'_> {
    fn vocabulary(&self) -> usize {
        V
    }

    fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
        let texts: Vec<&[u32]> = rows.iter().map(|row| &row.ids[..]).collect();
        Ok(host(self.0.mask.forward(picked(self.0.states(self.1, &texts), &targets(rows)))))
    }
}

impl Scores for WithImage<'_> {
    fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
        Ok(host(self.0.scores(self.0.states(self.1, rows), rows.len())))
    }
}

/// The states of these rows.
fn picked(states: Tensor<2>, rows: &[u32]) -> Tensor<2> {
    embedding(states, rows, None)
}

/// The rows of all targets among the states.
fn targets(rows: &[Masking]) -> Vec<u32> {
    let l = rows[0].ids.len();
    let of = |(k, row): (usize, &Masking)| {
        row.targets().map(|at| (k * l + at) as u32).collect::<Vec<_>>()
    };
    rows.iter().enumerate().flat_map(of).collect()
}

/// The result of a step.
#[derive(Debug)]
struct Step {
    loss: f64,
    /// Shares of the words that discrimination and correction get right; `None` if no negative passed the filter.
    right: Option<[f64; 2]>,
}

/// One update on one caption. The number of the step is the seed of all its randomness.
fn step(learner: &mut Trainer<Model>) -> Result<Step> {
    let (number, model) = (learner.steps(), learner.module());
    let pairs = Pairs::uniform(IMAGES, 2);
    let text = number as usize * 5 % pairs.texts();
    let (image, caption) = (pairs.image_of(text), caption(text));
    let without_gradients = model.valid();
    let scorer = &mut WithImage(&without_gradients, image);

    // Eq. 5: captions of other images, the hardest of the drawn ones.
    let drawn = draw_texts(&pairs, image, DRAWN, &mut Purpose::Texts.stream(number, 0))?;
    let texts: Vec<Vec<u32>> = drawn.iter().map(|&text| self::caption(text)).collect();
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let hard: Vec<Vec<u32>> =
        hardest(&drawn, &scorer.scores(&texts)?, KEPT)?.into_iter().map(self::caption).collect();
    let rows: Vec<&[u32]> = [&caption].into_iter().chain(&hard).map(Vec::as_slice).collect();
    let scores = model.scores(model.states(image, &rows), rows.len());
    let triplets: Vec<[usize; 2]> = (1..rows.len()).map(|row| [0, row]).collect();
    let (itm, _) = losses::hinges(scores, &triplets, &[triplets.len()], 0.2)?;

    // Eq. 1: masked words.
    let tailor = tailor()?;
    let phrases = [vec![0], vec![1, 2]];
    let mut rng = Purpose::Masks.stream(number, 0);
    let masked = tailor.masker.maskings(&caption, &phrases, tailor.maskings, &mut rng)?;
    let texts: Vec<&[u32]> = masked.iter().map(|row| &row.ids[..]).collect();
    let at = targets(&masked);
    let logits = model.mask.forward(picked(model.states(image, &texts), &at));
    let words: Vec<u32> = masked.iter().flat_map(|row| &row.labels).flatten().copied().collect();
    let mlm = losses::masked_words(logits, &words, &[words.len()])?;

    // Eq. 2 and 6: synthetic negatives. Eq. 7 to 9: three losses of one pass.
    let own: Vec<Vec<u32>> =
        pairs.texts_of(image).iter().map(|&text| self::caption(text)).collect();
    let protected = CaptionWords::of(own.iter().map(Vec::as_slice));
    let negatives = tailor.negatives(&caption, &phrases, &protected, scorer, number, 0)?;
    let (mut loss, mut right) = (itm + mlm * 0.1, None);
    if !negatives.is_empty() {
        let (synthetic, shares) = synthetic(model, Pool { image, positive: caption, negatives })?;
        (loss, right) = (loss + synthetic, Some(shares));
    }

    let [loss, _] = learner
        .update(0.02, loss, |model, loss| GradientsParams::from_grads(loss.backward(), model))?;
    Ok(Step { loss, right })
}

/// Weighted losses of Eq. 7 to 9, and the shares of right words.
fn synthetic(model: &Model, pool: Pool) -> Result<(Tensor<1>, [f64; 2])> {
    let (image, l, pools) = (pool.image, pool.positive.len(), [pool]);
    let rows = PoolRows::new(&pools);
    let states = model.states(image, &rows.texts);
    let scores = model.scores(states.clone(), rows.texts.len());
    let (triplets, per_pool) = rows.triplets();
    let (istm, _) = losses::hinges(scores, &triplets, &per_pool, 0.2)?;

    let picked = |asked: &[At]| {
        let ids: Vec<u32> = asked.iter().map(|at| (at.row * l + at.position) as u32).collect();
        picked(states.clone(), &ids)
    };
    let (asked, classes, of_classes) = rows.discriminated()?;
    let changed = model.discrimination.forward(picked(&asked));
    let (asked, words, of_words) = rows.corrected(CorrectionTargets::Masked)?;
    let corrected = model.correction.forward(picked(&asked));
    let right = [
        accuracy(&host(changed.clone().inner()), &classes)?,
        accuracy(&host(corrected.clone().inner()), &words)?,
    ];
    let wod = losses::discrimination(changed, &classes, &of_classes, [1.0, 0.11])?;
    let woc = losses::correction(corrected, &words, &of_words)?;
    Ok((istm + wod * 0.5 + woc * 0.5, right))
}

/// `[CLS]`, three words, `[SEP]`.
fn caption(text: usize) -> Vec<u32> {
    let word = |k: usize| ((text / 2 * 3 + k * (1 + text % 2)) % 17) as u32;
    vec![CLS, word(0), word(1), word(2), SEP]
}

fn tailor() -> Result<Tailor<'static>> {
    Ok(Tailor {
        masker: Masker::new(MaskBy::Phrases, 0.15, MASK, 0..17)?,
        maskings: 4,
        refill: Refill { draws: 5, temperature: 1.5, forbid: vec![CLS, SEP, MASK] },
        filter: Filter::Paper,
        choice: Choice::Best,
        kept: 3,
    })
}

/// Writes a checkpoint. The folder gets its final name when it has all files.
fn save(learner: &Trainer<Model>, folder: &Path) -> Result<()> {
    let (part, whole) = (folder.join("part"), folder.join(format!("{:06}", learner.steps())));
    _ = fs::remove_dir_all(&part); // left behind by a killed process
    fs::create_dir_all(&part).map_err(Error::io(&part))?;
    let mut write = |name: &str, bytes: &[u8]| {
        fs::write(part.join(name), bytes).map_err(Error::io(part.join(name)))
    };
    let modules = |file: &mut CheckpointWriter| file.module("model", learner.module());
    learner.save(NAME, &mut write, modules, |_, updates| [updates, 0])?;
    fs::rename(&part, &whole).map_err(Error::io(&whole))
}

/// The newest checkpoint of a folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| !path.ends_with("part")).max()
}

/// Trains up to step `steps`, from the newest checkpoint of the folder on. Returns the losses of the new steps.
fn train(folder: &Path, steps: u64, device: &Device) -> Result<Vec<f64>> {
    let mut learner = Trainer::new(Model::new(device), AdamOptions::default());
    if let Some(checkpoint) = newest(folder) {
        let saved = SavedState::open(NAME, &checkpoint)?;
        let model = saved.model.module("model", Model::new(device))?;
        learner = learner.restored(model, &saved, saved.counts[2])?;
    }
    let mut losses = vec![];
    while learner.steps() < steps {
        let Step { loss, right } = step(&mut learner)?;
        losses.push(loss);
        if learner.steps().is_multiple_of(EVERY) {
            save(&learner, folder)?;
            let right = right.map_or(String::new(), |[wod, woc]| {
                format!(", right: discrimination {wod:.2}, correction {woc:.2}")
            });
            println!("step {:3}: loss {loss:.3}{right}", learner.steps());
        }
    }
    Ok(losses)
}

/// The device of the backend whose feature is on, with gradients.
fn device() -> Result<Device> {
    #[cfg(feature = "wgpu")]
    return Ok(Device::wgpu(Default::default()).autodiff());
    #[cfg(all(feature = "cuda", not(feature = "wgpu")))]
    return Ok(Device::cuda(0).autodiff());
    #[cfg(all(feature = "tch", not(any(feature = "wgpu", feature = "cuda"))))]
    return Ok(Device::libtorch().autodiff());
    #[cfg(all(feature = "flex", not(any(feature = "wgpu", feature = "cuda", feature = "tch"))))]
    return Ok(Device::flex().autodiff());
    #[cfg(not(any(feature = "flex", feature = "wgpu", feature = "cuda", feature = "tch")))]
    return Err(Error::invalid("features", "flex, wgpu, cuda or tch", "none of them"));
}

pub(crate) fn main() -> Result<()> {
    let device = device()?;
    if let Some(folder) = std::env::args_os().nth(1).filter(|arg| Path::new(arg).is_dir()) {
        return train(Path::new(&folder), STEPS, &device).map(drop);
    }
    // Without a folder: one training without a stop, and one that stops after 50 steps and resumes.
    let folder = std::env::temp_dir().join(format!("tags-dc-own-loop-{}", std::process::id()));
    let (whole, left) = (folder.join("whole"), folder.join("left"));
    let losses = train(&whole, STEPS, &device)?;
    train(&left, 50, &device)?; // the checkpoint is of step 40: ten steps are lost
    train(&left, STEPS, &device)?;
    for file in ["model.safetensors", "state.safetensors"] {
        let name = format!("{STEPS:06}/{file}");
        let read =
            |folder: &Path| fs::read(folder.join(&name)).map_err(Error::io(folder.join(&name)));
        assert!(read(&whole)? == read(&left)?, "{file}: the same bits");
    }
    let sum = |losses: &[f64]| losses.iter().sum::<f64>();
    assert!(sum(&losses[90..]) < 0.8 * sum(&losses[..30]), "the loss falls: {losses:?}");
    println!("left after 50 of {STEPS} steps and resumed: the same bits");
    fs::remove_dir_all(&folder).map_err(Error::io(&folder))
}
