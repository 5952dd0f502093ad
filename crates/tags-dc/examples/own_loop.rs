//! A training loop of your own with the losses of TAGS-DC: a small model that reads an image and a sentence, retrieved and synthetic
//! negatives, word discrimination and correction. The loop stops in the middle, goes on from what it saved, and ends with the same bits.
//!
//! ```text
//! cargo run -p tags-dc --example tags_dc_loop --features flex      # or wgpu, cuda, tch
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::error::Error;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::checkpoint::{Reader, Writer};
use itm_core::host;
use itm_kernels::{AdamOptions, AdamW, Linear, embedding};
use tags_dc::{
    Corrected, Filter, Generator, MaskBy, Masked, Masker, Negative, Pairs, Protected, Purpose,
    Refill, Result, Scores, Streams, Tailor, accuracy, draw_texts, hardest, losses, stayed,
};

/// Words and marks.
const V: usize = 20;
/// Width of a state.
const D: usize = 8;
/// Values of an image.
const X: usize = 4;
/// What stands before a sentence, behind it, and for a masked word.
const CLS: u32 = 17;
const SEP: u32 = 18;
const MASK: u32 = 19;
/// Images, each with two captions of three words.
const IMAGES: usize = 6;
/// Q: captions that are drawn for an image.
const DRAWN: usize = 6;
/// h: the hardest of them, which learn.
const KEPT: usize = 2;
/// Updates.
const UPDATES: u64 = 12;

/// A state of a token is what it is, plus what the image and the mean of the sentence say. Any module of burn will do.
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

    /// States of sentences of one length beside one image, `[rows · l, d]`.
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

/// The model beside one image, without a gradient: what `Tailor` asks.
struct Beside<'a>(&'a Model, usize);

impl Generator for Beside<'_> {
    fn vocabulary(&self) -> usize {
        V
    }

    fn logits(&mut self, rows: &[Masked]) -> Result<Vec<f32>> {
        let texts: Vec<&[u32]> = rows.iter().map(|row| &row.ids[..]).collect();
        Ok(host(self.0.mask.forward(picked(self.0.states(self.1, &texts), &targets(rows)))))
    }
}

impl Scores for Beside<'_> {
    fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
        Ok(host(self.0.scores(self.0.states(self.1, rows), rows.len())))
    }
}

/// Some rows of states.
fn picked(states: Tensor<2>, rows: &[u32]) -> Tensor<2> {
    embedding(states, rows, None)
}

/// The states' rows of all targets.
fn targets(rows: &[Masked]) -> Vec<u32> {
    let l = rows[0].ids.len();
    let of = |(k, row): (usize, &Masked)| {
        row.targets().map(|at| (k * l + at) as u32).collect::<Vec<_>>()
    };
    rows.iter().enumerate().flat_map(of).collect()
}

/// Everything that the next step depends on: weights, moments, and how many updates were made.
struct Loop {
    model: Model,
    optimiser: AdamW,
}

/// What a step says.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    loss: f32,
    /// Share of the words that discrimination and correction get right; none where no negative passed the filter.
    right: Option<[f64; 2]>,
}

impl Loop {
    fn new(device: &Device) -> Self {
        Self { model: Model::new(device), optimiser: AdamW::new(AdamOptions::default()) }
    }

    /// One update on one caption. All randomness is of `number`.
    fn step(&mut self, number: u64) -> Result<Said> {
        let pairs = Pairs::uniform(IMAGES, 2);
        let (text, streams) =
            (number as usize * 5 % pairs.texts(), Streams { seed: number, round: 0 });
        let (image, caption, model) = (pairs.image_of(text), caption(text), &self.model);
        let without_gradient = model.valid();
        let beside = &mut Beside(&without_gradient, image);

        // Eq. 5: captions of other images, the hardest of those that were drawn.
        let drawn = draw_texts(&pairs, image, DRAWN, &mut streams.of(Purpose::Texts, 0))?;
        let texts: Vec<Vec<u32>> = drawn.iter().map(|&text| self::caption(text)).collect();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let hard: Vec<Vec<u32>> = hardest(&drawn, &beside.scores(&texts)?, KEPT)?
            .into_iter()
            .map(self::caption)
            .collect();
        let rows: Vec<&[u32]> = [&caption].into_iter().chain(&hard).map(Vec::as_slice).collect();
        let scores = model.scores(model.states(image, &rows), rows.len());
        let triplets: Vec<[usize; 2]> = (1..rows.len()).map(|row| [0, row]).collect();
        let (itm, _) = losses::hinges(scores, &triplets, &[triplets.len()], 0.2)?;

        // Eq. 1: masked words.
        let tailor = tailor()?;
        let phrases = [vec![0], vec![1, 2]];
        let mut rng = streams.of(Purpose::Masks, 0);
        let masked = tailor.masker.maskings(&caption, &phrases, tailor.maskings, &mut rng)?;
        let texts: Vec<&[u32]> = masked.iter().map(|row| &row.ids[..]).collect();
        let at = targets(&masked);
        let logits = model.mask.forward(picked(model.states(image, &texts), &at));
        let words: Vec<u32> =
            masked.iter().flat_map(|row| &row.labels).flatten().copied().collect();
        let mlm = losses::masked_words(logits, &words, &[words.len()])?;

        // Eq. 2 and 6: synthetic negatives. Eq. 7 to 9: three losses of one pass.
        let own: Vec<Vec<u32>> =
            pairs.texts_of(image).iter().map(|&text| self::caption(text)).collect();
        let told = Protected::of(own.iter().map(Vec::as_slice));
        let pool = tailor.negatives(&caption, &phrases, &told, beside, streams, 0)?;
        let (mut loss, mut right) = (itm + mlm * 0.1, None);
        if !pool.is_empty() {
            let (synthetic, shares) = synthetic(model, image, &caption, &pool)?;
            (loss, right) = (loss + synthetic, Some(shares));
        }

        let value = host(loss.clone().inner())[0];
        let grads = GradientsParams::from_grads(loss.backward(), model);
        self.model = self.optimiser.step(self.model.clone(), grads, 0.05).0;
        Ok(Said { loss: value, right })
    }

    /// Weights, moments and the number of updates in one file.
    fn save(&self) -> Result<Vec<u8>> {
        let mut file = Writer::default();
        file.module("model", &self.model);
        file.optimizer(&self.optimiser, &self.model);
        file.i64s("updates", &[self.optimiser.steps() as i64]);
        file.contents("own loop 1")
    }

    fn load(path: &std::path::Path, device: &Device) -> Result<Self> {
        let file = Reader::open(path, "own loop 1")?;
        let updates = file.i64s("updates", 1)?[0] as u64;
        let model = file.module("model", Model::new(device))?;
        let optimiser = file.optimizer(AdamOptions::default(), &model, updates)?;
        Ok(Self { model, optimiser })
    }
}

/// Eq. 7 to 9, weighted, and the shares of words that are right.
fn synthetic(
    model: &Model,
    image: usize,
    caption: &[u32],
    pool: &[Negative],
) -> Result<(Tensor<1>, [f64; 2])> {
    let mut rows: Vec<&[u32]> = vec![caption];
    rows.extend(pool.iter().map(|negative| &negative.tokens[..]));
    let (states, l) = (model.states(image, &rows), caption.len());
    let scores = model.scores(states.clone(), rows.len());
    let triplets: Vec<[usize; 2]> = (1..rows.len()).map(|row| [0, row]).collect();
    let (istm, _) = losses::hinges(scores, &triplets, &[pool.len()], 0.2)?;

    let (mut classes, mut at, mut words) = (vec![], vec![], vec![]);
    for (row, negative) in (1..).zip(pool) {
        classes.extend(stayed(caption, &negative.tokens)?);
        for position in Corrected::Masked.positions(caption, &negative.tokens, &negative.masked)? {
            at.push((row * l + position) as u32);
            words.push(caption[position]);
        }
    }
    let tokens: Vec<u32> = (l as u32..(rows.len() * l) as u32).collect(); // of the negatives
    let changed = model.discrimination.forward(picked(states.clone(), &tokens));
    let corrected = model.correction.forward(picked(states, &at));
    let right = [
        accuracy(&host(changed.clone().inner()), &classes)?,
        accuracy(&host(corrected.clone().inner()), &words)?,
    ];
    let wod = losses::discrimination(changed, &classes, &[classes.len()], [1.0, 0.11])?;
    let woc = losses::correction(corrected, &words, &[words.len()])?;
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
        kept: 3,
    })
}

/// The device of the feature that is on.
fn device() -> Result<Device> {
    #[cfg(feature = "cuda")]
    return Ok(Device::cuda(0));
    #[cfg(all(feature = "tch", not(feature = "cuda")))]
    return Ok(Device::libtorch());
    #[cfg(all(feature = "wgpu", not(any(feature = "cuda", feature = "tch"))))]
    return Ok(Device::wgpu(Default::default()));
    #[cfg(all(feature = "flex", not(any(feature = "wgpu", feature = "cuda", feature = "tch"))))]
    return Ok(Device::flex());
    #[cfg(not(any(feature = "flex", feature = "wgpu", feature = "cuda", feature = "tch")))]
    return Err(tags_dc::Error::invalid("features", "flex, wgpu, cuda or tch", "none of them"));
}

pub(crate) fn run(device: &Device) -> std::result::Result<[f32; 2], Box<dyn Error>> {
    let mut whole = Loop::new(device);
    let said: Vec<Said> = (0..UPDATES).map(|n| whole.step(n)).collect::<Result<_>>()?;

    let mut first = Loop::new(device);
    (0..UPDATES / 2).try_for_each(|n| first.step(n).map(|_| ()))?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("loop.safetensors");
    std::fs::write(&path, first.save()?)?;
    drop(first);
    let mut resumed = Loop::load(&path, device)?;
    let rest: Vec<Said> = (UPDATES / 2..UPDATES).map(|n| resumed.step(n)).collect::<Result<_>>()?;

    assert_eq!(rest, said[UPDATES as usize / 2..]);
    assert!(resumed.save()? == whole.save()?, "the same weights and moments, to the bit");
    Ok([said[0].loss, said[UPDATES as usize - 1].loss])
}

pub(crate) fn main() -> std::result::Result<(), Box<dyn Error>> {
    let [first, last] = run(&device()?.autodiff())?;
    println!(
        "loss {first:.4} → {last:.4}; resumed after half of {UPDATES} updates with the same bits"
    );
    Ok(())
}
