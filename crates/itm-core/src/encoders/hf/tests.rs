//! Against `tests/reference/transformers_fixtures.py`: outputs and gradients of `transformers` in double precision.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Param;
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use half::f16;
use itm_kernels::Noise;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tempfile::TempDir;

use super::*;
use crate::encoders::{ImagePool, PiecePool, PositionStep, TokenBatch, resize_positions};

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hf")
}

/// The values of a golden file, i64 as f32 too.
struct Golden(BTreeMap<String, (Vec<usize>, Vec<f32>)>);

impl Golden {
    fn read(name: &str) -> Self {
        let bytes = fs::read(golden_folder().join(name)).unwrap();
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

    fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        let (shape, values) = &self.0[name];
        let shape: [usize; D] = shape.as_slice().try_into().unwrap();
        Tensor::from_data(TensorData::new(values.clone(), shape), device)
    }

    fn values(&self, name: &str) -> &[f32] {
        &self.0[name].1
    }

    fn captions(&self) -> TokenBatch {
        let width = self.0["ids"].0[1];
        let lengths = self.values("lengths").iter().map(|&n| n as usize);
        let rows = self.values("ids").chunks_exact(width).zip(lengths);
        let rows = rows.map(|(row, n)| row[..n].iter().map(|&id| id as u32).collect());
        TokenBatch::new(&rows.collect::<Vec<Vec<u32>>>())
    }
}

fn host<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

/// Largest deviation, as a share of `scale`, is below `bound`.
fn close(name: &str, got: &[f32], want: &[f32], scale: f32, bound: f32) {
    assert_eq!(got.len(), want.len(), "{name}");
    let error = got.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, f32::max) / scale;
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
                host(gradient(&model.patches.weight, &grads).transpose()),
            ),
            ("embeddings.cls_token", host(gradient(&model.class, &grads))),
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
fn golden_resized_positions_in_both_forms() {
    let (golden, device) = (Golden::read("vit.safetensors"), Device::flex());
    let positions = vit(&device).positions.val().narrow(0, 1, 16);
    let forms = [("size", PositionStep::Size), ("factor", PositionStep::Factor)];
    for (form, step) in forms {
        for (name, to) in [("6x4", [6, 4]), ("3x7", [3, 7])] {
            let got = host(resize_positions(positions.clone(), [4, 4], to, step));
            close(name, &got, golden.values(&format!("{form}.{name}")), 1.0, 2e-6);
        }
    }
    // And the model follows its field.
    let images = golden.tensor::<4>("48x32.images", &device);
    let older = Vit { step: PositionStep::Factor, ..vit(&device) };
    let got = host(older.forward(images, Noise::Off));
    let want = golden.values("48x32.out");
    assert!(got.iter().zip(want).any(|(g, w)| (g - w).abs() > 1e-3));
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

/// FNE trap 15: alone and beside a longer caption a caption has one embedding, but for the pool that averages padding.
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
        let error = alone.iter().zip(&together).map(|(a, t)| (a - t).abs()).fold(0.0, f32::max);
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
    // Of the attention weights alone: the noise reaches the blocks.
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

/// All tensors of a folder, as they are in the file.
fn all(folder: &Path) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let files = WeightFiles::open(folder).unwrap();
    let tensor = |name: &str| (files.shape(name).unwrap().to_vec(), files.f32s(name).unwrap());
    files.names().map(|name| (name.to_string(), tensor(name))).collect()
}

#[test]
fn what_is_saved_is_what_was_loaded() {
    let (folder, device) = (TempDir::new().unwrap(), Device::flex());
    // Kept for `transformers_fixtures.py --check` where the variable names a folder.
    let kept = std::env::var_os("ITM_SAVED").map_or(folder.path().to_path_buf(), PathBuf::from);
    let (image, text) = (kept.join("vit"), kept.join("bert"));
    vit(&device).save(&image).unwrap();
    bert(&device).save(&text).unwrap();
    assert_eq!(all(&image), all(&golden_folder().join("vit")));
    let mut want = all(&golden_folder().join("bert"));
    want.retain(|name, _| !name.starts_with("pooler."));
    assert_eq!(all(&text), want);
    assert_eq!(VitShape::read(&image).unwrap(), vit(&device).shape);
    assert_eq!(BertShape::read(&text).unwrap(), bert(&device).shape);
    assert_eq!(Vit::open(&image, &device).unwrap().1.to_string().lines().count(), 1);
    let kept: Vec<_> = fs::read_dir(&text).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
}

/// A folder with the golden's configuration, changed, and tensors as given.
fn folder(
    name: &str,
    config: &[(&str, &str)],
    tensors: &BTreeMap<String, (Vec<usize>, Vec<f32>)>,
) -> TempDir {
    let folder = TempDir::new().unwrap();
    let text = fs::read(golden_folder().join(name).join("config.json")).unwrap();
    let mut fields: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (field, value) in config {
        fields[field] = serde_json::from_str(value).unwrap();
    }
    fs::write(folder.path().join("config.json"), fields.to_string()).unwrap();
    let half =
        |values: &[f32]| values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect();
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> =
        tensors.iter().map(|(name, (shape, values))| (name, shape, half(values))).collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (name.as_str(), TensorView::new(Dtype::F16, shape.to_vec(), bytes).unwrap())
    });
    let file = safetensors::serialize(views, None::<HashMap<String, String>>).unwrap();
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    folder
}

fn message(folder: &TempDir, result: Result<(Bert, LoadReport)>) -> String {
    result.unwrap_err().to_string().replace(&*folder.path().display().to_string(), "FOLDER")
}

/// Old conversions: f16, `bert.` before the names, gamma and beta; heads beside it.
#[test]
fn old_names_halves_and_heads_are_read() {
    let device = Device::flex();
    let old = |name: &str| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        format!("bert.{}", name.replace("LayerNorm.bias", "LayerNorm.beta"))
    };
    let mut tensors: BTreeMap<_, _> =
        all(&golden_folder().join("bert")).into_iter().map(|(n, t)| (old(&n), t)).collect();
    tensors.insert("cls.seq_relationship.bias".into(), (vec![2], vec![0.0; 2]));
    tensors.insert("bert.something".into(), (vec![1], vec![0.0]));
    let halves = folder("bert", &[], &tensors);
    let (model, report) = Bert::open(&halves, &device).unwrap();
    assert_eq!(report.loaded, 5 + 2 * 16);
    let unused =
        ["cls.seq_relationship.bias", "bert.pooler.dense.bias", "bert.pooler.dense.weight"];
    assert_eq!(report.unused, [unused[0], unused[1], unused[2]]);
    assert_eq!(report.unexpected, ["bert.something"]);
    let rounded = |x: f32| f16::from_f32(x).to_f32();
    let want: Vec<f32> = host(bert(&device).words.val()).into_iter().map(rounded).collect();
    assert_eq!(host(model.words.val()), want);
    let query = |model: &Bert| host(model.blocks[1].attention.qkv.weight.val());
    assert_eq!(query(&model), query(&bert(&device)).into_iter().map(rounded).collect::<Vec<_>>());

    #[cfg(feature = "pytorch")]
    {
        let (pickled, report) = Bert::open(golden_folder().join("bert_bin"), &device).unwrap();
        assert_eq!(report.unused.len(), 3);
        assert_eq!(query(&pickled), query(&model));
    }
}

#[test]
fn every_missing_and_misshaped_tensor_is_named() {
    let mut tensors = all(&golden_folder().join("bert"));
    tensors.remove("embeddings.LayerNorm.weight");
    tensors.remove("encoder.layer.1.attention.self.key.bias");
    tensors.get_mut("encoder.layer.0.intermediate.dense.weight").unwrap().0 = vec![32, 64];
    tensors.get_mut("encoder.layer.1.attention.self.value.weight").unwrap().0 = vec![16, 64];
    let faulty = folder("bert", &[], &tensors);
    let got = message(&faulty, Bert::open(&faulty, &Device::flex()));
    let want = "FOLDER: expected the 37 tensors that its config.json asks for, got \
                no embeddings.LayerNorm.weight; no encoder.layer.1.attention.self.key.bias; \
                encoder.layer.0.intermediate.dense.weight of F16 [32, 64], not [64, 32]; \
                encoder.layer.1.attention.self.value.weight of F16 [16, 64], not [32, 32]";
    assert_eq!(got, want);
    // A configuration of more words than the file has.
    let other = folder("bert", &[("vocab_size", "61")], &all(&golden_folder().join("bert")));
    let got = message(&other, Bert::open(&other, &Device::flex()));
    assert!(
        got.contains("embeddings.word_embeddings.weight of F16 [60, 32], not [61, 32]"),
        "{got}"
    );
}

#[test]
fn another_architecture_or_choice_is_one_line() {
    let error = Bert::open(golden_folder().join("vit"), &Device::flex()).unwrap_err().to_string();
    let want = "expected a model of the architecture \"bert\", got \"vit\"";
    assert!(error.ends_with(want), "{error}");
    let none = BTreeMap::new();
    for (field, value, want) in [
        ("hidden_act", "\"gelu_new\"", "hidden_act: expected gelu, got gelu_new"),
        ("position_embedding_type", "\"relative_key\"", "expected absolute, got relative_key"),
        ("num_attention_heads", "3", "expected a divisor of the hidden_size, got 3, 32"),
        ("hidden_dropout_prob", "1", "hidden_dropout_prob: expected a share below 1, got 1"),
        ("vocab_size", "0", "expected none of them 0, got [0, 40, 2]"),
        ("hidden_size", "\"wide\"", "expected the configuration of a \"bert\", got"),
    ] {
        let faulty = folder("bert", &[(field, value)], &none);
        let got = message(&faulty, Bert::open(&faulty, &Device::flex()));
        assert!(got.starts_with("FOLDER/config.json") && got.contains(want), "{got}");
    }
    for (field, value, want) in [
        ("patch_size", "64", "expected a square patch within the image, got 64 x 64, [32, 32]"),
        ("patch_size", "[8, 4]", "expected a square patch within the image, got 8 x 4, [32, 32]"),
        ("qkv_bias", "false", "qkv_bias: expected true, got false"),
    ] {
        let faulty = folder("vit", &[(field, value)], &none);
        let got = VitShape::read(&faulty).unwrap_err().to_string();
        assert!(got.ends_with(want), "{got}");
    }
    let wide = folder("vit", &[("image_size", "[48, 32]")], &none);
    assert_eq!(VitShape::read(&wide).unwrap().grid(), [6, 4]);
    let empty = TempDir::new().unwrap();
    assert!(
        message(&empty, Bert::open(&empty, &Device::flex())).starts_with("FOLDER/config.json: ")
    );
}

/// By hand: a block is 4d² + 4d (attention), 2dm + m + d (between), 4d (norms) = 7,087,872; BERT base without pooler has
/// 108,891,648 parameters, ViT-B/16 at 384 px 86,090,496.
#[test]
fn published_sizes() {
    let block = |d: usize, m: usize| 4 * d * d + 4 * d + 2 * d * m + m + d + 4 * d;
    let (b, v) = (BertShape::base_uncased(), VitShape::base_16_384());
    let tables = (b.vocabulary + b.positions + b.kinds) * b.width + 2 * b.width;
    assert_eq!(tables + b.layers * block(b.width, b.mlp), 108_891_648);
    let ([h, w], pixels) = (v.grid(), v.channels * v.patch * v.patch);
    let embedding = (pixels + 1) * v.width + v.width + (1 + h * w) * v.width + 2 * v.width;
    assert_eq!(embedding + v.layers * block(v.width, v.mlp), 86_090_496);
}

#[test]
#[should_panic(expected = "caption 0, word 1: 60 of 60 words")]
fn a_piece_outside_the_vocabulary_is_named() {
    bert(&Device::flex()).forward(&TokenBatch::new(&[&[2, 60, 3]]), Noise::Off);
}

#[test]
#[should_panic(expected = "captions of 41 word pieces for 40 positions")]
fn a_caption_beyond_the_positions_is_refused() {
    bert(&Device::flex()).forward(&TokenBatch::new(&[vec![5; 41]]), Noise::Off);
}

#[test]
#[should_panic(expected = "images [1, 3, 7, 32] for")]
fn an_image_without_a_patch_is_refused() {
    let device = Device::flex();
    vit(&device).forward(Tensor::zeros([1, 3, 7, 32], &device), Noise::Off);
}
