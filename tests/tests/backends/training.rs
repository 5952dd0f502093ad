//! A training step and an evaluation of a method.

use std::path::Path;

use burn::tensor::Device;
use fne::{Batch, Fne, FneConfig, Images, Observe};
use itm_core::data::Features;
use itm_core::eval::{Protocol, TiePolicy, evaluate as evaluation};
use itm_core::{Pairs, ScoreMatrix};

use crate::common::{self, DIM};
use crate::values::{Values, parameters};

/// Of a step's loss and norm of the gradients.
pub(crate) const BOUND: f64 = 1e-5;

/// Of the weights after it. Adam's first update is the rate times the sign of a gradient, however small: where a gradient is
/// nothing but rounding, so is its sign, and twice the rate is a hundredth of the largest weight.
pub(crate) const WEIGHTS: f64 = 2e-2;

/// Images of the evaluation: more than the model can tell apart.
const IMAGES: usize = 60;

/// The rows of `fne-scenes`, which differ in memory, negatives and draw.
pub(crate) fn rows() -> Vec<(String, FneConfig)> {
    let mut rows = common::rows();
    rows.retain(|(name, _)| name.starts_with("fne-scenes,"));
    rows.iter_mut().for_each(|(_, config)| config.sampler.bank_size = 64);
    rows
}

/// Loss and norm of the gradients of one step, and all weights after it.
pub(crate) fn step(config: &FneConfig, epoch: usize, device: &Device) -> [Values; 2] {
    let mut model = common::fne(config, device, 3);
    model.begin_epoch(epoch);
    let report = common::step(&mut model, 5);
    let numbers = vec![
        ("loss".to_owned(), vec![report.loss as f32]),
        ("norm of the gradients".to_owned(), vec![report.grad_norm as f32]),
    ];
    [numbers, parameters(model.online())]
}

/// A model after some steps.
pub(crate) fn train(config: &FneConfig, device: &Device) -> Fne {
    let mut model = common::fne(config, device, 3);
    let (features, texts) = data();
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let ids: Vec<i64> = (0..IMAGES as i64).collect();
    for seed in 0..10 {
        let batch = Batch {
            images: Images::Features(&features.values),
            texts: &texts,
            image_ids: &ids,
            caption_ids: &ids,
        };
        model.step(&batch, seed, Observe::Off).unwrap();
    }
    model
}

/// Scores, and R@1, 5, 10 of both directions, of the model that was saved in `folder`.
pub(crate) fn evaluate(config: &FneConfig, folder: &Path, device: &Device) -> (Values, [f64; 6]) {
    let mut model = common::fne(config, device, 0);
    model.load(folder).unwrap();
    let ((features, texts), d) = (data(), model.width());
    let (images, texts) = (model.embed_images(&features), model.embed_texts(&texts));
    let dot = |v: &[f32], w: &[f32]| v.iter().zip(w).map(|(v, w)| v * w).sum::<f32>();
    let row = |v| texts.chunks_exact(d).map(move |w| dot(v, w));
    let scores: Vec<f32> = images.chunks_exact(d).flat_map(row).collect();
    let matrix = ScoreMatrix::new(IMAGES, IMAGES, scores.clone()).unwrap();
    let pairs = Pairs::uniform(IMAGES, 1);
    let found = evaluation(&matrix, &pairs, Protocol::Full, TiePolicy::default()).unwrap();
    let ([a, b, c], [d, e, f]) = (found.i2t.recalls(), found.t2i.recalls());
    (vec![("scores".to_owned(), scores)], [a, b, c, d, e, f])
}

/// Features and captions by a rule: image `i` has two words that others have too.
fn data() -> (Features, Vec<Vec<u32>>) {
    let value = |k: usize| {
        let (i, j) = (k / DIM, k % DIM);
        let own = if j == i % DIM || j == (i * 5 + i / DIM) % DIM { 2.0 } else { 0.0 };
        own + ((i * 31 + j * 17) % 23) as f32 / 23.0
    };
    let values = (0..IMAGES * DIM).map(value).collect();
    let words = |i: usize| {
        let words = [2 + i % DIM, 2 + (i * 5 + i / DIM) % DIM, 2 + DIM + i % 5];
        words[..2 + i % 2].iter().map(|&w| w as u32).collect()
    };
    (Features { dim: DIM, values }, (0..IMAGES).map(words).collect())
}
