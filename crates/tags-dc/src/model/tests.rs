//! Comparison with `tests/reference/uniter.py`, an independent model in double precision.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use itm_core::data::{Bounds, Regions};
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

/// The texts of the golden. Piece 0 in the first text is a token, not padding.
const TEXTS: [&[u32]; 3] = [&[2, 17, 0, 31, 44, 8, 3], &[2, 9, 17, 3], &[2, 3]];
/// The image of each text.
const IMAGES: [usize; 3] = [0, 1, 1];
const REGIONS: [usize; 2] = [3, 5];
/// Text and position of the wanted words.
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

pub(crate) fn open(file: &str, device: &Device) -> Uniter {
    Uniter::open(folder().join(file), &shape(), device).unwrap().0
}

/// The golden's values by name.
fn golden() -> BTreeMap<String, Vec<f32>> {
    golden_of("golden.safetensors")
}

pub(crate) fn golden_of(file: &str) -> BTreeMap<String, Vec<f32>> {
    let files = WeightFiles::open(folder().join(file)).unwrap();
    files.names().map(|name| (name.to_string(), files.f32s(name).unwrap())).collect()
}

fn regions() -> RegionBatch {
    let g = golden();
    RegionBatch::new(6, REGIONS.to_vec(), g["features"].clone(), g["boxes"].clone()).unwrap()
}

/// The golden's regions as a split has them.
pub(crate) fn split_regions() -> Regions {
    let g = golden();
    let boxes = g["boxes"].chunks(7).map(|b| Bounds { x1: b[0], y1: b[1], x2: b[2], y2: b[3] });
    let regions = Regions::new(6, REGIONS.to_vec(), g["features"].clone()).unwrap();
    regions.with_boxes(boxes.collect()).unwrap()
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

/// The largest difference between two lists, relative to the wanted value where that value is above 1.
fn off(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    let far = |(g, w): (&f32, &f32)| (g - w).abs() / w.abs().max(1.0);
    got.iter().zip(want).map(far).max_by(f32::total_cmp).unwrap()
}

/// Puts gradients in the place of weights, to save them under the weights' names.
struct InPlace<'a>(&'a Gradients);

impl ModuleMapper for InPlace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|t| {
            let none = || t.clone().inner().mul_scalar(f32::NAN);
            Tensor::from_inner(t.grad(self.0).unwrap_or_else(none))
        })
    }
}

/// Checks that the gradient of every weight is the golden's `d.NAME` to 1e-5, and that pretraining's own head has none.
pub(crate) fn check_gradients(model: &Uniter, grads: &Gradients, g: &BTreeMap<String, Vec<f32>>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gradients.safetensors");
    model.clone().map(&mut InPlace(grads)).save(&path).unwrap();
    let got = WeightFiles::open(&path).unwrap();
    let mut compared = 0;
    for name in got.names() {
        let values = got.f32s(name).unwrap();
        if name.starts_with("itm_output.") {
            assert!(values.iter().all(|d| d.is_nan()), "{name} has a gradient");
            continue;
        }
        let want = &g[&format!("d.{name}")];
        let largest = want.iter().fold(1.0f32, |m, d| m.max(d.abs()));
        let far =
            values.iter().zip(want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap();
        assert!(far < 1e-5 * largest, "{name}: {far} of {largest}");
        compared += 1;
    }
    assert_eq!(compared, g.keys().filter(|name| name.starts_with("d.")).count());
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    host(tensor.inner())
}
