//! A training step and an evaluation of a method.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;
use itm_core::Pairs;
use itm_core::data::Features;
use itm_core::eval::{Protocol, TiePolicy};
use itm_core::learn::{Observe, Rows};
use safetensors::{Dtype, SafeTensors};

use crate::common::{self, DIM, Data, Row};
use crate::values::Values;

/// The bound for a step's loss and gradient norm. The bound of cross attention is 2e-5, the widest of all operations; a step passes through
/// several of them. An NVIDIA H200 was off by 2.02e-5 in one row of 26 (SCAN from random weights), libtorch on a processor by 0.46e-5 there.
pub(crate) const BOUND: f64 = 4e-5;

/// The bound for the weights after the step. Adam's first update is the rate times the sign of a gradient, however small the
/// gradient is. Where a gradient is only rounding, its sign is random, and twice the rate is a hundredth of the largest weight.
pub(crate) const WEIGHTS: f64 = 2e-2;

/// Images of the evaluation: more than the model can distinguish.
const IMAGES: usize = 60;

/// Loss and norm of the gradients of one step, and all weights after it.
pub(crate) fn step(row: &Row, epoch: usize, device: &Device) -> [Values; 2] {
    let mut model = row.model(3, device);
    model.begin_epoch(epoch, Data::new().items()).unwrap();
    let told = common::step(&mut *model, 5, Observe::Off).unwrap();
    let numbers = vec![
        ("loss".to_owned(), vec![told.loss as f32]),
        ("norm of the gradients".to_owned(), vec![told.grad_norm as f32]),
    ];
    [numbers, weights(&common::saved(&*model))]
}

/// Every weight of a saved model by name.
fn weights(files: &BTreeMap<String, Vec<u8>>) -> Values {
    let tensors = SafeTensors::deserialize(&files["model.safetensors"]).unwrap();
    let mut floats: Vec<_> = tensors.tensors();
    floats.retain(|(_, tensor)| tensor.dtype() == Dtype::F32);
    floats.sort_by(|a, b| a.0.cmp(&b.0));
    let value = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
    let of = |(name, tensor): (String, safetensors::tensor::TensorView)| {
        (name, tensor.data().as_chunks::<4>().0.iter().map(value).collect())
    };
    floats.into_iter().map(of).collect()
}

/// Saves a model after some steps.
pub(crate) fn train(row: &Row, device: &Device, folder: &Path) {
    let data = data();
    let mut model = row.model_by(3, &common::own(), &data, device);
    model.begin_epoch(0, data.items()).unwrap();
    let all: Vec<usize> = (0..IMAGES).collect();
    for seed in 0..10 {
        let rows = Rows::of(&data.items(), &all);
        model.step(&rows.batch(), seed, Observe::Off).unwrap();
    }
    common::write(&common::saved(&*model), folder);
}

/// Scores, and R@1, 5, 10 of both directions, of the model that was saved in `folder`.
pub(crate) fn evaluate(row: &Row, folder: &Path, device: &Device) -> (Values, [f64; 6]) {
    let data = data();
    let mut model = row.model_by(0, &common::own(), &data, device);
    model.load(folder).unwrap();
    let scored = model.scored(data.items()).unwrap();
    let found = scored.evaluate(Protocol::Full, &data.pairs, TiePolicy::Index).unwrap();
    let ([a, b, c], [d, e, f]) = (found.i2t.recalls(), found.t2i.recalls());
    let scores = scored.matrix().unwrap().values().to_vec();
    (vec![("scores".to_owned(), scores)], [a, b, c, d, e, f])
}

/// Features and captions by a rule: image `i` has two words that other images have too.
fn data() -> Data {
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
    Data {
        features: Features { dim: DIM, values },
        texts: (0..IMAGES).map(words).collect(),
        pairs: Pairs::uniform(IMAGES, 1),
    }
}
