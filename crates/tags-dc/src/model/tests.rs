//! Against `tests/reference/uniter.py`: an independent model in double precision.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use itm_core::encoders::{BertShape, TokenBatch};
use itm_core::host;
use itm_core::weights::WeightFiles;
use itm_kernels::Noise;
use tempfile::TempDir;

use super::*;

mod files;
mod heads;
mod padding;
mod parity;
mod scores;

/// The texts of the golden; piece 0 of the first is no padding.
const TEXTS: [&[u32]; 3] = [&[2, 17, 0, 31, 44, 8, 3], &[2, 9, 17, 3], &[2, 3]];
/// The image of each text.
const IMAGES: [usize; 3] = [0, 1, 1];
const REGIONS: [usize; 2] = [3, 5];
/// Text and position of the words that are asked for.
const WORDS: [[usize; 2]; 4] = [[0, 1], [0, 5], [1, 2], [2, 0]];
const CORRECTIONS: [[usize; 2]; 3] = [[0, 4], [1, 1], [1, 3]];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/uniter")
}

/// The golden's sizes.
fn shape() -> UniterShape {
    let wide = UniterShape::of_width(16, 4, 2, 50);
    let text = BertShape { positions: 9, mlp: 24, ..wide.text };
    UniterShape { text, features: 6, ..wide }
}

fn open(file: &str, device: &Device) -> Uniter {
    Uniter::open(folder().join(file), &shape(), device).unwrap().0
}

/// The golden's values by name.
fn golden() -> BTreeMap<String, Vec<f32>> {
    let files = WeightFiles::open(folder().join("golden.safetensors")).unwrap();
    files.names().map(|name| (name.to_string(), files.f32s(name).unwrap())).collect()
}

fn regions() -> RegionBatch {
    let g = golden();
    RegionBatch::new(6, REGIONS.to_vec(), g["features"].clone(), g["boxes"].clone()).unwrap()
}

fn at(places: &[[usize; 2]]) -> Vec<At> {
    places.iter().map(|&[row, position]| At { row, position }).collect()
}

/// The golden's batch through a model.
fn joint(model: &Uniter, noise: Noise) -> Joint {
    let regions = model.embed_regions(&regions());
    model.join(&TokenBatch::new(&TEXTS), &regions, &IMAGES, noise)
}

fn logits(model: &Uniter) -> Vec<f32> {
    host(model.match_logits(&joint(model, Noise::Off)))
}

/// Largest distance of two lists, in units of the wanted value where that is above 1.
fn off(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    let far = |(g, w): (&f32, &f32)| (g - w).abs() / w.abs().max(1.0);
    got.iter().zip(want).map(far).fold(0.0, f32::max)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    host(tensor.inner())
}
