//! Compares with `tests/reference/transformers_fixtures.py`: outputs and gradients of `transformers` in double
//! precision.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Param;
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use half::f16;
use itm_kernels::Noise;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tempfile::TempDir;

mod refused;

use super::*;
use crate::checkpoint::CheckpointWriter;
use crate::encoders::{ImagePool, PiecePool, TokenBatch, resize_positions};
use crate::host;
use crate::weights::adapter::{CONFIG, MATRICES};

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hf")
}

/// The values of a golden file; i64 values are converted to f32.
pub(crate) struct Golden(pub(crate) BTreeMap<String, (Vec<usize>, Vec<f32>)>);

impl Golden {
    fn read(name: &str) -> Self {
        Self::open(&golden_folder().join(name))
    }

    pub(crate) fn open(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let values = |view: &TensorView<'_>| match view.dtype() {
            Dtype::F32 => {
                view.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
            }
            Dtype::I64 => {
                view.data().as_chunks().0.iter().map(|&b| i64::from_le_bytes(b) as f32).collect()
            }
            other => panic!("{other:?}"),
        };
        let entry = |(name, view): (&str, TensorView<'_>)| {
            (name.to_string(), (view.shape().to_vec(), values(&view)))
        };
        Self(file.iter().map(entry).collect())
    }

    pub(crate) fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        let (shape, values) = &self.0[name];
        let shape: [usize; D] = shape.as_slice().try_into().unwrap();
        Tensor::from_data(TensorData::new(values.clone(), shape), device)
    }

    pub(crate) fn values(&self, name: &str) -> &[f32] {
        &self.0[name].1
    }

    pub(crate) fn captions(&self) -> TokenBatch {
        let width = self.0["ids"].0[1];
        let lengths = self.values("lengths").iter().map(|&n| n as usize);
        let rows = self.values("ids").chunks_exact(width).zip(lengths);
        let rows = rows.map(|(row, n)| row[..n].iter().map(|&id| id as u32).collect());
        TokenBatch::new(&rows.collect::<Vec<Vec<u32>>>())
    }
}

/// Asserts that the largest deviation, as a share of `scale`, is below `bound`.
pub(crate) fn close(name: &str, got: &[f32], want: &[f32], scale: f32, bound: f32) {
    assert_eq!(got.len(), want.len(), "{name}");
    let error =
        got.iter().zip(want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap() / scale;
    assert!(error < bound, "{name} is off by {error:e}");
}

fn vit(device: &Device) -> Vit {
    Vit::open(golden_folder().join("vit"), device).unwrap().0
}

fn bert(device: &Device) -> Bert {
    Bert::open(golden_folder().join("bert"), device).unwrap().0
}

fn gradient<const D: usize>(param: &Param<Tensor<D>>, grads: &Gradients) -> Tensor<D> {
    param.val().grad(grads).expect("a gradient")
}

fn gradients_agree(golden: &Golden, got: &[(&str, Vec<f32>)]) {
    assert_eq!(got.len(), golden.0.keys().filter(|name| name.starts_with("d.")).count());
    for (name, got) in got {
        let want = golden.values(&format!("d.{name}"));
        let scale = want.iter().fold(0.0f32, |most, w| most.max(w.abs()));
        close(name, got, want, scale, 1e-4);
    }
}

#[test]
fn golden_vit_at_three_resolutions() {
    let (golden, device) = (Golden::read("vit.safetensors"), Device::flex());
    let model = vit(&device);
    for name in ["32x32", "48x32", "44x36"] {
        let images = golden.tensor::<4>(&format!("{name}.images"), &device);
        let states = model.forward(images.clone(), Noise::Off);
        close(name, &host(states.clone()), golden.values(&format!("{name}.out")), 1.0, 1e-5);
        assert_eq!(host(model.forward(images, Noise::Seeded(1))), host(states)); // no dropout in it
    }
    let (shape, [h, w]) = (&model.shape, model.shape.grid());
    assert_eq!((shape.layers, shape.heads, shape.width, h * w), (2, 2, 32, 16));
}

/// From `tests/reference/clip.py`: its own size, and two others, one of them with as many patches.
#[test]
fn golden_dinov2() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip");
    let golden = Golden::open(&folder.join("dinov2.safetensors"));
    let device = Device::flex();
    let (model, report) = Vit::open(folder.join("dinov2"), &device).unwrap();
    assert_eq!(report.to_string().lines().count(), 2, "{report}"); // the mask token is not needed
    for name in ["", "wide.", "tall."] {
        let images = golden.tensor::<4>(&format!("{name}pixels"), &device);
        let states = host(model.forward(images, Noise::Off));
        close(name, &states, golden.values(&format!("{name}states")), 4.0, 5e-6);
    }
}

#[test]
fn golden_vit_gradients() {
    let (golden, device) = (Golden::read("vit.safetensors"), Device::flex().autodiff());
    let model = vit(&device);
    let states = model.forward(golden.tensor("48x32.images", &device), Noise::Off);
    let loss = (states * golden.tensor("c", &device)).sum();
    close("loss", &host(loss.clone()), golden.values("loss"), 10.0, 1e-4);
    let grads = loss.backward();
    let blocks = &model.blocks;
    let key = gradient(&blocks[0].attention.qkv.weight, &grads).narrow(1, 32, 32).transpose();
    let layer = |name: &str| format!("encoder.layer.{name}");
    gradients_agree(
        &golden,
        &[
            (
                "embeddings.patch_embeddings.projection.weight",
                host(gradient(&model.patches, &grads).transpose()),
            ),
            ("embeddings.cls_token", host(gradient(model.class.as_ref().unwrap(), &grads))),
            ("embeddings.position_embeddings", host(gradient(&model.positions, &grads))),
            (&layer("0.attention.attention.key.weight"), host(key)),
            (&layer("0.layernorm_before.weight"), host(gradient(&blocks[0].norm_1.gamma, &grads))),
            (
                &layer("1.intermediate.dense.weight"),
                host(gradient(&blocks[1].up.weight, &grads).transpose()),
            ),
            ("layernorm.bias", host(gradient(&model.norm.beta, &grads))),
        ],
    );
}

#[test]
fn golden_resized_positions() {
    let (golden, device) = (Golden::read("vit.safetensors"), Device::flex());
    let positions = vit(&device).positions.val().narrow(0, 1, 16);
    for (name, to) in [("6x4", [6, 4]), ("3x7", [3, 7])] {
        let got = host(resize_positions(positions.clone(), [4, 4], to));
        close(name, &got, golden.values(&format!("size.{name}")), 1.0, 2e-6);
    }
}

#[test]
fn golden_bert_with_padding() {
    let (golden, device) = (Golden::read("bert.safetensors"), Device::flex());
    let states = bert(&device).forward(&golden.captions(), Noise::Off);
    close("states", &host(states), golden.values("out"), 1.0, 1e-5);
}

#[test]
fn golden_bert_gradients() {
    let (golden, device) = (Golden::read("bert.safetensors"), Device::flex().autodiff());
    let model = bert(&device);
    let states = model.forward(&golden.captions(), Noise::Off);
    let loss = (states * golden.tensor("c", &device)).sum();
    close("loss", &host(loss.clone()), golden.values("loss"), 10.0, 1e-4);
    let grads = loss.backward();
    let blocks = &model.blocks;
    let query = gradient(&blocks[0].attention.qkv.weight, &grads).narrow(1, 0, 32).transpose();
    let value = gradient(&blocks[0].attention.qkv.bias, &grads).narrow(0, 64, 32);
    let layer = |name: &str| format!("encoder.layer.{name}");
    gradients_agree(
        &golden,
        &[
            ("embeddings.word_embeddings.weight", host(gradient(&model.words, &grads))),
            ("embeddings.position_embeddings.weight", host(gradient(&model.positions, &grads))),
            ("embeddings.token_type_embeddings.weight", host(gradient(&model.kinds, &grads))),
            ("embeddings.LayerNorm.weight", host(gradient(&model.norm.gamma, &grads))),
            (&layer("0.attention.self.value.bias"), host(value)),
            (&layer("0.attention.self.query.weight"), host(query)),
            (
                &layer("1.output.dense.weight"),
                host(gradient(&blocks[1].down.weight, &grads).transpose()),
            ),
            (
                &layer("1.attention.output.LayerNorm.bias"),
                host(gradient(&blocks[1].norm_1.beta, &grads)),
            ),
        ],
    );
}

/// FNE trap 15: a caption has the same embedding alone and beside a longer caption, except with the pool that averages
/// padding.
#[test]
fn a_caption_does_not_depend_on_its_batch() {
    let (golden, device) = (Golden::read("bert.safetensors"), Device::flex());
    let (model, batch) = (bert(&device), golden.captions());
    for (pool, same) in
        [(PiecePool::Masked, true), (PiecePool::Words, true), (PiecePool::All, false)]
    {
        let embed = |batch: &TokenBatch| host(pool.pool(model.forward(batch, Noise::Off), batch));
        let together = embed(&batch);
        let rows = batch.ids.chunks_exact(batch.width).zip(&batch.lengths);
        let alone: Vec<f32> =
            rows.flat_map(|(row, &n)| embed(&TokenBatch::new(&[&row[..n]]))).collect();
        let error =
            alone.iter().zip(&together).map(|(a, t)| (a - t).abs()).max_by(f32::total_cmp).unwrap();
        assert!((error < 1e-5) == same, "{pool:?}: {error}");
    }
    let states = vit(&device).forward(golden_images(&device), Noise::Off);
    let pools = [ImagePool::All, ImagePool::Patches, ImagePool::Class];
    let [all, patches, class] = pools.map(|pool| host(pool.pool(states.clone())));
    assert!(all != patches && patches != class && class != all);
}

fn golden_images(device: &Device) -> Tensor<4> {
    Golden::read("vit.safetensors").tensor("32x32.images", device)
}

#[test]
fn dropout_is_a_function_of_the_seed() {
    let (golden, device) = (Golden::read("bert.safetensors"), Device::flex());
    let (model, batch) = (bert(&device), golden.captions());
    let states = |noise| host(model.forward(&batch, noise));
    assert_eq!(states(Noise::Seeded(1)), states(Noise::Seeded(1)));
    assert_ne!(states(Noise::Seeded(1)), states(Noise::Seeded(2)));
    assert_ne!(states(Noise::Seeded(1)), states(Noise::Off));
    // Dropout of only the attention weights: the noise reaches the blocks.
    let shape = BertShape { dropout: 0.0, attention_dropout: 0.5, ..model.shape.clone() };
    let model = Bert::seeded(&shape, 1, &device);
    let states = |noise| host(model.forward(&batch, noise));
    assert_ne!(states(Noise::Seeded(1)), states(Noise::Off));
    let image = Vit::seeded(&VitShape { dropout: 0.5, ..vit(&device).shape }, 1, &device);
    let states = |noise| host(image.forward(golden_images(&device), noise));
    assert_ne!(states(Noise::Seeded(1)), states(Noise::Off));
    let again = Vit::seeded(&image.shape, 1, &device);
    assert_eq!(host(again.forward(golden_images(&device), Noise::Off)), states(Noise::Off));
}

/// All tensors of a folder, unchanged.
pub(crate) fn all(folder: &Path) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let files = WeightFiles::open(folder).unwrap();
    let tensor = |name: &str| (files.shape(name).unwrap().to_vec(), files.f32s(name).unwrap());
    files.names().map(|name| (name.to_string(), tensor(name))).collect()
}

/// The names of modules in `transformers` 5, under which PEFT writes an adapter of a ViT.
#[test]
fn an_adapter_may_name_modules_instead_of_files() {
    let (own, device) = (TempDir::new().unwrap(), Device::flex());
    fs::write(own.path().join(CONFIG), r#"{"peft_type": "LORA", "r": 1, "lora_alpha": 1}"#)
        .unwrap();
    let states = |map: &str| {
        let mut file = CheckpointWriter::default();
        for (part, shape) in [("lora_A", [1, 32]), ("lora_B", [32, 1])] {
            let values: Vec<f32> = (0..32).map(|k| (k as f32 / 7.0).sin()).collect();
            file.values(&format!("base_model.model.{map}.{part}.weight"), &shape, &values);
        }
        fs::write(own.path().join(MATRICES), file.contents("pt").unwrap()).unwrap();
        let vit = Vit::adapted(golden_folder().join("vit"), Some(own.path()), &device).unwrap().0;
        host(vit.blocks[1].attention.qkv.weight.val())
    };
    let want = states("encoder.layer.1.attention.attention.query");
    assert_ne!(want, host(vit(&device).blocks[1].attention.qkv.weight.val()));
    assert_eq!(states("layers.1.attention.q_proj"), want);
    assert_eq!(states("encoder.layer.1.attention.q_proj"), want);
}
