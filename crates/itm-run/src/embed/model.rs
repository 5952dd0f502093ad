//! A published folder as what `itm embed` needs of it: rows of pictures, rows of captions, or both.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use itm_core::encoders::{
    DualEncoder, DualFamily, DualPieces, ImagePool, SentenceEncoder, TokenBatch, Vit, VitShape,
};
use itm_core::files::{read_json, sha256_of};
use itm_core::vision::{CropRounding, Fit, Transform};
use itm_core::{Error, Result, host};
use itm_kernels::{Noise, Precision, normalize_rows};
use serde_json::{Value, json};

/// The encoders of a folder.
pub(crate) struct Embedder {
    encoder: Encoder,
    /// How pictures are prepared, if the folder reads pictures.
    pub(crate) transform: Option<Transform>,
    /// What the encoder is and does, for the manifest.
    pub(crate) about: Value,
    device: Device,
}

enum Encoder {
    /// CLIP or SigLIP: both.
    Dual(Box<DualEncoder>, Box<DualPieces>),
    /// Pictures alone. DINOv2: the class row beside the mean of the patches.
    Vit { vit: Box<Vit>, patches: bool },
    /// Captions alone.
    Sentence(Box<SentenceEncoder>),
}

/// A folder with `modules.json`.
const SENTENCE: &str = "sentence-transformers";

const READ: &str =
    "CLIP, SigLIP (transformers or open_clip), ViT, DINOv2, BERT or sentence-transformers";

impl Embedder {
    /// Opens a folder, with an adapter where one is given.
    pub(crate) fn open(
        folder: &Path,
        adapter: Option<&Path>,
        precision: Precision,
        device: &Device,
    ) -> Result<Self> {
        let kind = kind(folder)?;
        let (encoder, transform, report, about) = match kind.as_str() {
            SENTENCE | "bert" => {
                let (mut model, report) = SentenceEncoder::open(folder, device)?;
                if let Some(adapter) = adapter {
                    model = model.with_adapter(adapter)?;
                }
                let model = model.with_precision(precision);
                let about = json!({
                    "pool": model.pool,
                    "unit": model.unit,
                    "pieces": model.most,
                });
                (Encoder::Sentence(Box::new(model)), None, report, about)
            }
            "vit" | "dinov2" => {
                let shape = VitShape::read(folder)?;
                let transform = Transform::open(folder, shape.image[0])?;
                let (vit, report) = Vit::adapted(folder, adapter, device)?;
                let patches = kind == "dinov2";
                let rows = if patches { "class row, mean of patches" } else { "class row" };
                let about = json!({ "rows": rows });
                let vit = Box::new(vit.with_precision(precision));
                (Encoder::Vit { vit, patches }, Some(transform), report, about)
            }
            _ => {
                let (mut model, report) = DualEncoder::open(folder, device)?;
                if let Some(adapter) = adapter {
                    model = model.with_adapter(adapter)?;
                }
                let pieces = DualPieces::open(folder, &model.shape.text)?;
                let side = model.shape.image.image[0];
                let transform = Transform::open(folder, side)?;
                if transform.size as usize != side {
                    let expected = format!("pictures of {side} px, as the model has them");
                    return Err(Error::invalid(folder.display(), expected, transform.size));
                }
                let (row, image) = match model.shape.family {
                    DualFamily::Clip => ("end piece", "class row"),
                    DualFamily::Siglip => ("last position, padded", "attention pool"),
                };
                let about = json!({
                    "rows": image,
                    "text_rows": row,
                    "activation": model.shape.image.activation,
                    "text_activation": model.shape.text.activation,
                    "tokens": "as transformers",
                    "pieces": model.shape.text.positions,
                });
                let model = Box::new(model.with_precision(precision));
                (Encoder::Dual(model, Box::new(pieces)), Some(transform), report, about)
            }
        };
        if let Some(name) = report.unexpected.first() {
            crate::progress::say(format!("{}: not read: {name} …", report.place));
        }
        let mut about = about;
        about["architecture"] = json!(kind);
        about["precision"] = json!(precision.here());
        if let Some(Transform { size, normalization, fit, filter }) = transform {
            let fit = match fit {
                Fit::Squash => format!("{size} × {size}"),
                Fit::Crop { shorter, rounding: CropRounding::Down } => {
                    format!("shorter side {shorter}, centre {size} × {size}")
                }
                Fit::Crop { shorter, rounding: CropRounding::HalfEven } => {
                    format!("shorter side {shorter}, centre {size} × {size}, half to even")
                }
            };
            about["pictures"] = json!({
                "resize": format!("{fit}, {filter} as Pillow"),
                "mean": normalization.mean,
                "std": normalization.std,
            });
        }
        Ok(Self { encoder, transform, about, device: device.clone() })
    }

    /// Width of a row of a picture.
    pub(crate) fn image_width(&self) -> usize {
        match &self.encoder {
            Encoder::Dual(model, _) => model.shape.joint,
            Encoder::Vit { vit, patches } => vit.shape.width * (1 + usize::from(*patches)),
            Encoder::Sentence(_) => 0,
        }
    }

    /// Width of a row of a caption; 0 if the folder reads none.
    pub(crate) fn text_width(&self) -> usize {
        match &self.encoder {
            Encoder::Dual(model, _) => model.shape.joint,
            Encoder::Vit { .. } => 0,
            Encoder::Sentence(model) => model.width(),
        }
    }

    /// Number of patches of a picture, and the width of their rows.
    pub(crate) fn patches(&self, side: usize) -> [usize; 2] {
        let vit = match &self.encoder {
            Encoder::Dual(model, _) => &model.image.vit,
            Encoder::Vit { vit, .. } => vit,
            Encoder::Sentence(_) => return [0; 2],
        };
        [(side / vit.shape.patch).pow(2), vit.shape.width]
    }

    /// Rows of prepared pictures, one after the other, and the rows of their patches where they are asked for.
    pub(crate) fn images(&self, values: Vec<f32>, side: usize, patches: bool) -> [Vec<f32>; 2] {
        let shape = [values.len() / (3 * side * side), 3, side, side];
        let pixels = Tensor::<4>::from_data(TensorData::new(values, shape), &self.device);
        let (rows, states) = match &self.encoder {
            Encoder::Dual(model, _) if patches => {
                let states = model.image.tokens(pixels);
                (normalize_rows(model.image.rows_of(states.clone())), Some(states))
            }
            Encoder::Dual(model, _) => (model.images(pixels), None),
            Encoder::Vit { vit, patches: false } if !patches => {
                (normalize_rows(vit.class_row(pixels)), None)
            }
            Encoder::Vit { vit, patches: beside } => {
                let states = vit.forward(pixels, Noise::Off);
                let rows = match beside {
                    true => ImagePool::ClassPatches.pool(states.clone()),
                    false => normalize_rows(ImagePool::Class.pool(states.clone())),
                };
                (rows, patches.then_some(states))
            }
            Encoder::Sentence(_) => unreachable!("a sentence encoder is given no pictures"),
        };
        // A class row, if there is one, stands before the patches.
        let of_patches = states.map(|states| {
            let count = self.patches(side)[0];
            let first = states.dims()[1] - count;
            host(states.narrow(1, first, count))
        });
        [host(rows), of_patches.unwrap_or_default()]
    }

    /// Unit rows of the patches of a prepared picture in the space of captions, each as if it were the picture's class row; `None` unless
    /// the model is CLIP or SigLIP.
    #[cfg(feature = "search")]
    pub(crate) fn patch_rows(&self, values: Vec<f32>, side: usize) -> Option<Vec<f32>> {
        let Encoder::Dual(model, _) = &self.encoder else { return None };
        let pixels = TensorData::new(values, [1, 3, side, side]);
        let states = model.image.tokens(Tensor::<4>::from_data(pixels, &self.device)); // [1, tokens, d]
        let [_, tokens, d] = states.dims();
        let count = self.patches(side)[0];
        let each = states.narrow(1, tokens - count, count).reshape([count, 1, d]);
        Some(host(normalize_rows(model.image.rows_of(each))))
    }

    /// Unit rows of sentences, one after the other.
    #[cfg(feature = "search")]
    pub(crate) fn sentences(&self, sentences: &[&str]) -> Result<Vec<f32>> {
        let pieces = sentences.iter().map(|sentence| Ok(self.pieces(sentence)?.0));
        let pieces = pieces.collect::<Result<Vec<Vec<u32>>>>()?;
        let mut rows = self.texts(&pieces.iter().collect::<Vec<_>>());
        unit(&mut rows, self.text_width());
        Ok(rows)
    }

    /// The numbers of a caption's pieces, and whether the caption was cut.
    pub(crate) fn pieces(&self, caption: &str) -> Result<(Vec<u32>, bool)> {
        match &self.encoder {
            Encoder::Dual(_, pieces) => pieces.encode(caption),
            Encoder::Sentence(model) => model.encode(caption),
            Encoder::Vit { .. } => unreachable!("a ViT is given no captions"),
        }
    }

    /// Rows of captions, one after the other.
    pub(crate) fn texts(&self, captions: &[&Vec<u32>]) -> Vec<f32> {
        let batch = TokenBatch::new(captions);
        host(match &self.encoder {
            Encoder::Dual(model, _) => model.texts(&batch),
            Encoder::Sentence(model) => model.rows(&batch),
            Encoder::Vit { .. } => unreachable!("a ViT is given no captions"),
        })
    }
}

/// Divides each row by its length; a sentence encoder need not.
#[cfg(feature = "search")]
fn unit(rows: &mut [f32], width: usize) {
    for row in rows.chunks_exact_mut(width) {
        let length = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}

/// What a folder holds: `modules.json`, or the architecture of its configuration.
fn kind(folder: &Path) -> Result<String> {
    if folder.join("modules.json").exists() {
        return Ok(SENTENCE.into());
    }
    let path = folder.join("config.json");
    if !path.exists() && folder.join("open_clip_config.json").exists() {
        return Ok("open_clip".into());
    }
    let config: Value = read_json(&path, "a JSON object")?;
    match config["model_type"].as_str() {
        Some(kind @ ("clip" | "siglip" | "vit" | "dinov2" | "bert")) => Ok(kind.into()),
        other => {
            let got = format!("\"{}\"", other.unwrap_or("none"));
            Err(Error::invalid(format!("{}: model_type", path.display()), READ, got))
        }
    }
}

/// SHA-256 of all files of a folder that belong to the model, by name: weights, configurations, word pieces.
pub(crate) fn hashes(folder: &Path) -> Result<Value> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.push(folder.join("1_Pooling/config.json"));
    files.sort();
    let mut hashes = serde_json::Map::new();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        let ends = [".safetensors", ".bin", ".json", ".txt", ".model"];
        if !path.is_file() || !ends.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        hashes.insert(name, json!(sha256_of(&path)?));
    }
    Ok(hashes.into())
}
