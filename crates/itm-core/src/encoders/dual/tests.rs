//! Compares with `tests/reference/clip.py`: `transformers` and open_clip in double precision.

use std::fs;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor};
use itm_kernels::Noise;
use tempfile::TempDir;

mod adapter;
mod refused;

use super::*;
use crate::encoders::TokenBatch;
use crate::encoders::hf::tests::{Golden, all, close};
use crate::{Siblings, host};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip").join(name)
}

fn golden(name: &str) -> Golden {
    Golden::open(&folder(&format!("{name}.safetensors")))
}

fn open(name: &str, device: &Device) -> DualEncoder {
    DualEncoder::open(folder(name), device).unwrap().0
}

/// Folders, and the golden of their weights.
const FOLDERS: [(&str, &str); 6] = [
    ("clip", "clip"),
    ("clip_sharded", "clip"),
    ("open_clip", "clip"),
    ("clip_square", "clip_square"),
    ("open_clip_square", "clip_square"),
    ("siglip", "siglip"),
];

/// Captions as the model reads them: SigLIP attends to padding too.
fn captions(golden: &Golden, shape: &DualShape) -> TokenBatch {
    let captions = golden.captions();
    match shape.family {
        DualFamily::Clip => captions,
        DualFamily::Siglip => {
            let ids = golden.values("ids").chunks(shape.text.positions);
            let row = |row: &[f32]| row.iter().map(|&id| id as u32).collect::<Vec<_>>();
            TokenBatch::new(&ids.map(row).collect::<Vec<_>>())
        }
    }
}

#[test]
fn golden_from_pixels_and_pieces_to_the_loss() {
    let device = Device::flex();
    for (name, golden_name) in FOLDERS {
        let (golden, model) = (golden(golden_name), open(name, &device));
        let (pixels, captions) =
            (golden.tensor("pixels", &device), captions(&golden, &model.shape));
        let check = |what: &str, got: Vec<f32>, bound: f32| {
            let want = golden.values(what);
            let scale = want.iter().fold(1.0f32, |most, w| most.max(w.abs()));
            close(&format!("{name}: {what}"), &got, want, scale, bound);
        };
        // The golden states of CLIP are before the last layer norm.
        let images = match model.shape.family {
            DualFamily::Clip => {
                let states = model.image.vit.begun(pixels.clone(), 2, Noise::Off).values;
                check("image.normed", host(model.image.vit.class_row(pixels.clone())), 5e-6);
                states
            }
            DualFamily::Siglip => model.image.tokens(pixels.clone()),
        };
        check("image.states", host(images), 5e-6);
        // What stands behind the end piece of a caption is padding, which we fill with another number.
        let (l, d) = (captions.width, model.shape.text.width);
        let real = |states: &[f32]| {
            let rows = states.chunks(l * d).zip(&captions.lengths);
            rows.flat_map(|(row, n)| row[..n * d].to_vec()).collect::<Vec<_>>()
        };
        let (got, want) = (host(model.text.tokens(&captions)), golden.values("text.states"));
        close(&format!("{name}: text.states"), &real(&got), &real(want), 4.0, 5e-6);
        check("image.projected", host(model.image.rows(pixels.clone())), 5e-6);
        let of_tokens = model.image.rows_of(model.image.tokens(pixels.clone()));
        check("image.projected", host(of_tokens), 5e-6);
        check("text.projected", host(model.text.rows(&captions)), 5e-6);
        let (images, texts) = (model.images(pixels), model.texts(&captions));
        check("image.unit", host(images.clone()), 2e-6);
        check("text.unit", host(texts.clone()), 2e-6);
        let scores = images.matmul(texts.transpose());
        check("logits_per_image", host(model.logits(scores.clone())), 5e-6);
        check("loss", host(model.loss(scores, Siblings::Negatives)), 5e-6);
    }
}

/// The gradient of each parameter in its place, so that a saved file holds the gradients by their names.
struct InPlace<'a>(&'a Gradients);

impl ModuleMapper for InPlace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let value = param.val();
        let gradient = value.grad(self.0).expect("a gradient").into_data();
        Param::from_tensor(Tensor::from_data(gradient, &Device::flex()))
    }
}

#[test]
fn golden_gradients_of_every_tensor() {
    let (device, kept) = (Device::flex().autodiff(), TempDir::new().unwrap());
    for name in ["clip", "clip_square", "siglip"] {
        let (golden, model) = (golden(name), open(name, &device));
        let captions = captions(&golden, &model.shape);
        let images = model.images(golden.tensor("pixels", &device));
        let scores = images.matmul(model.texts(&captions).transpose());
        let grads = model.loss(scores, Siblings::Negatives).backward();
        let shape = model.shape.clone();
        let gradients = DualEncoder { shape, ..model }.map(&mut InPlace(&grads));
        gradients.save(kept.path(), DualLayout::Transformers).unwrap();
        let got = all(kept.path());
        let names = golden.0.keys().filter_map(|name| name.strip_prefix("d."));
        assert!(names.clone().eq(got.keys().map(String::as_str)), "{name}: names of the file");
        let largest =
            got.values().flat_map(|(_, values)| values).fold(0.0f32, |m, v| m.max(v.abs()));
        for tensor in names {
            let want = golden.values(&format!("d.{tensor}"));
            let scale = want.iter().fold(0.0f32, |most, w| most.max(w.abs()));
            // The gradient of the biases of keys is 0 but for rounding.
            let (got, scale) = (&got[tensor].1, scale.max(largest * 1e-2));
            close(&format!("{name}: d.{tensor}"), got, want, scale, 1e-5);
        }
    }
}

/// Every tensor, its name and its shape, from each layout to each.
#[test]
fn what_is_saved_is_what_was_loaded() {
    let (kept, device) = (TempDir::new().unwrap(), Device::flex());
    // If the variable names a folder, the files stay there for `clip.py --check`.
    let kept = std::env::var_os("ITM_SAVED").map_or(kept.path().to_path_buf(), PathBuf::from);
    for (from, layout, to) in [
        ("clip", DualLayout::Transformers, "clip"),
        ("open_clip", DualLayout::Transformers, "clip"),
        ("clip", DualLayout::OpenClip, "open_clip"),
        ("clip_sharded", DualLayout::OpenClip, "open_clip"),
        ("clip_square", DualLayout::OpenClip, "open_clip_square"),
        ("open_clip_square", DualLayout::Transformers, "clip_square"),
        ("siglip", DualLayout::Transformers, "siglip"),
    ] {
        let (model, out) = (open(from, &device), kept.join(to));
        model.save(&out, layout).unwrap();
        let file = |folder: PathBuf| match layout {
            DualLayout::Transformers => folder,
            DualLayout::OpenClip => folder.join("open_clip_model.safetensors"),
        };
        assert_eq!(all(&file(out.clone())), all(&file(folder(to))), "{from} to {to}");
        let (again, report) = DualEncoder::open(&out, &device).unwrap();
        assert_eq!(again.shape, model.shape, "{from} to {to}");
        assert_eq!(report.to_string().lines().count(), 1);
    }
    let refused = open("siglip", &device).save(&kept, DualLayout::OpenClip).unwrap_err();
    let want = "expected a CLIP for open_clip's layout, got a SigLIP";
    assert!(refused.to_string().ends_with(want), "{refused}");
}

/// A link is not replaced, and it is found before the weights are: new weights beside an old configuration would be another model.
#[cfg(unix)]
#[test]
fn a_configuration_that_cannot_be_written_costs_no_weights() {
    let folder = TempDir::new().unwrap();
    let [weights, config] =
        ["model.safetensors", "config.json"].map(|name| folder.path().join(name));
    fs::write(&weights, "old weights").unwrap();
    std::os::unix::fs::symlink("elsewhere", config).unwrap();
    let line = open("clip", &Device::flex())
        .save(folder.path(), DualLayout::Transformers)
        .unwrap_err()
        .to_string();
    assert!(line.contains("config.json: expected a name that is no link, got a link"), "{line}");
    assert_eq!(fs::read(weights).unwrap(), b"old weights");
}

/// A device, here a socket, is not replaced either.
#[cfg(unix)]
#[test]
fn weights_replace_no_device() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.safetensors");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let line = open("clip", &Device::flex())
        .save(folder.path(), DualLayout::Transformers)
        .unwrap_err()
        .to_string();
    assert!(line.contains("model.safetensors: expected a file, got a device"), "{line}");
    assert!(!path.is_file());
}

/// Whoever may read the configuration may read the weights, and a failed write leaves nothing.
#[cfg(unix)]
#[test]
fn weights_are_a_file_like_others() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, model) = (TempDir::new().unwrap(), open("clip", &Device::flex()));
    model.save(folder.path(), DualLayout::Transformers).unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("model.safetensors"), mode("config.json"));
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("model.safetensors")).unwrap();
    let line = model.save(folder.path(), DualLayout::Transformers).unwrap_err().to_string();
    assert!(line.ends_with("expected a file to write, got a folder"), "{line}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A wrong activation, an ε and a resize are seen: what the goldens of these say is met, and differs from the model's own.
#[test]
fn golden_of_other_settings() {
    let device = Device::flex();
    let with = |name: &str, change: fn(&mut serde_json::Value)| {
        let own = TempDir::new().unwrap();
        let config = std::fs::read(folder(name).join("config.json")).unwrap();
        let mut config = serde_json::from_slice(&config).unwrap();
        change(&mut config);
        let [to, from] = [own.path(), &folder(name)].map(|folder| folder.join("model.safetensors"));
        std::fs::copy(from, to).unwrap();
        std::fs::write(own.path().join("config.json"), config.to_string()).unwrap();
        DualEncoder::open(own.path(), &device).unwrap().0
    };
    let gelu = with("clip", |config| {
        for tower in ["text_config", "vision_config"] {
            config[tower]["hidden_act"] = "gelu".into();
        }
    });
    let epsilon = with("siglip", |config| {
        for tower in ["text_config", "vision_config"] {
            config[tower]["layer_norm_eps"] = 0.01.into();
        }
    });
    for (name, prefix, model) in [("clip", "gelu", gelu), ("siglip", "eps", epsilon)] {
        let golden = golden(name);
        let texts = host(model.texts(&captions(&golden, &model.shape)));
        let images = host(model.images(golden.tensor("pixels", &device)));
        for (what, got) in [("image.unit", images), ("text.unit", texts)] {
            close(what, &got, golden.values(&format!("{prefix}.{what}")), 1.0, 2e-6);
            let own = golden.values(what);
            assert!(got.iter().zip(own).any(|(g, w)| (g - w).abs() > 1e-3), "{name}: {what}");
        }
    }
    for name in ["clip", "siglip"] {
        let (golden, model) = (golden(name), open(name, &device));
        let pixels = golden.tensor::<4>("wide.pixels", &device);
        let states = match model.shape.family {
            DualFamily::Clip => model.image.vit.begun(pixels, 2, Noise::Off).values,
            DualFamily::Siglip => model.image.tokens(pixels),
        };
        close(name, &host(states), golden.values("wide.states"), 4.0, 5e-6);
    }
}

/// A caption alone, in a batch, and with more padding; a picture too. Products of other sizes may round otherwise.
#[test]
fn a_row_does_not_depend_on_its_batch() {
    let device = Device::flex();
    for name in ["clip", "siglip"] {
        let (golden, model) = (golden(name), open(name, &device));
        let batch = captions(&golden, &model.shape);
        let together = host(model.texts(&batch));
        let rows = batch.ids.chunks_exact(batch.width).zip(&batch.lengths);
        let rows: Vec<&[u32]> = rows.map(|(row, &n)| &row[..n]).collect();
        let alone: Vec<f32> =
            rows.iter().flat_map(|row| host(model.texts(&TokenBatch::new(&[row])))).collect();
        close(name, &alone, &together, 1.0, 5e-7);
        if name == "clip" {
            let most = model.shape.text.positions;
            let wide = model.texts(&TokenBatch::padded_to(&rows, most));
            close("with padding", &host(wide), &together, 1.0, 5e-7);
        }
        let pixels = golden.tensor::<4>("pixels", &device);
        let together = host(model.images(pixels.clone()));
        let one = |k| host(model.images(pixels.clone().narrow(0, k, 1)));
        close(name, &(0..3).flat_map(one).collect::<Vec<_>>(), &together, 1.0, 5e-7);
    }
}

#[test]
fn the_largest_published_clip_fits_its_count() {
    // The counts of the specification, from the shapes alone; a model of that size would take seconds.
    let count = |shape: &DualShape| {
        let (v, t, e) = (&shape.image, &shape.text, shape.joint);
        let block = |d: usize, m: usize| 4 * d * d + 4 * d + 2 * d * m + m + d + 4 * d;
        let [h, w] = v.grid();
        let image = v.channels * v.patch * v.patch * v.width
            + v.width
            + (1 + h * w) * v.width
            + v.layers * block(v.width, v.mlp)
            + 4 * v.width
            + v.width * e;
        let text = (t.vocabulary + t.positions) * t.width
            + t.layers * block(t.width, t.mlp)
            + 2 * t.width
            + t.width * e;
        image + text + 1
    };
    assert_eq!(count(&DualShape::clip_base_32()), 151_277_313);
    let mut small = DualShape::clip_base_32();
    (small.image.layers, small.image.width, small.image.mlp) = (1, 24, 48);
    (small.text.layers, small.text.width, small.text.mlp, small.text.vocabulary) = (1, 16, 32, 100);
    assert_eq!(DualEncoder::seeded(&small, 1, &Device::flex()).num_params(), count(&small));
}
