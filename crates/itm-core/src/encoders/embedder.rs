//! A published folder, and the rows that it makes of pictures, of captions, or of both.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor};
use itm_kernels::{Noise, Precision, normalize_rows};
use serde_json::{Value, json};

use super::{
    DualEncoder, DualFamily, DualPieces, DualShape, ImagePool, SentenceEncoder, TokenBatch, Vit,
    VitShape, embed_texts, pixels,
};
use crate::files::read_json;
use crate::ranges::precision_of;
use crate::vision::{CropRounding, Fit, Transform};
use crate::weights::{LoadReport, is_of_open_clip};
use crate::{Error, Result, host, interrupt};

/// The encoders of a published folder: what `itm embed`, `itm search` and the wheel open.
///
/// | folder of | rows of pictures | rows of captions |
/// |---|---|---|
/// | CLIP, SigLIP | unit rows of one space, `[b, e]` | the same |
/// | DINOv2 | class row beside the mean of the patches, a unit row, `[b, 2d]` | – |
/// | ViT | class row, a unit row, `[b, d]` | – |
/// | sentence-transformers, BERT | – | as `modules.json` says; BERT alone: unit rows, `[b, d]` |
#[derive(Debug)]
pub struct Embedder {
    /// The folder.
    pub folder: PathBuf,
    /// What the encoder is and does: all that decides rows beside the files.
    pub about: Value,
    /// Which tensors of the files were read.
    pub report: LoadReport,
    encoder: Encoder,
    transform: Option<Transform>,
    device: Device,
}

#[derive(Debug)]
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

/// A folder that open_clip alone reads.
const OPEN_CLIP: &str = "open_clip";

const READ: &str =
    "CLIP, SigLIP (transformers or open_clip), ViT, DINOv2, BERT or sentence-transformers";

impl Embedder {
    /// Captions that [`captions`](Self::captions) sorts by length together.
    pub const SORTED: usize = 2048;

    /// Opens a folder, with an adapter of PEFT where one is given.
    ///
    /// # Errors
    /// If the device cannot compute in the precision, or the folder holds another model; as [`DualEncoder::open`], [`Vit::open`], [`SentenceEncoder::open`] and [`Transform::open`];
    /// and as [`DualEncoder::with_adapter`].
    pub fn open(
        folder: &Path,
        adapter: Option<&Path>,
        precision: Precision,
        device: &Device,
    ) -> Result<Self> {
        precision_of("precision", precision, device)?;
        let kind = kind(folder)?;
        let (encoder, transform, report, mut about) = match kind.as_str() {
            SENTENCE | "bert" => {
                let (mut model, report) = SentenceEncoder::open(folder, device)?;
                if let Some(adapter) = adapter {
                    model = model.with_adapter(adapter)?;
                }
                let model = model.with_precision(precision);
                let about = json!({ "pool": model.pool, "unit": model.unit, "pieces": model.most });
                (Encoder::Sentence(Box::new(model)), None, report, about)
            }
            "vit" | "dinov2" => {
                let shape = VitShape::read(folder)?;
                let place = format!("{}: num_channels", folder.join("config.json").display());
                Error::unless(shape.channels == 3, place, "3, as pictures have", shape.channels)?;
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
                let files = ["tokenizer.json", "vocab.json"].map(|name| folder.join(name).exists());
                let expected =
                    "vocab.json and merges.txt: CLIP's own fit, from openai/clip-vit-base-patch32";
                let there = kind != OPEN_CLIP || files != [false; 2];
                Error::unless(there, folder.display(), expected, "none of them")?;
                let pieces = DualPieces::open(folder, &model.shape.text)?;
                let transform = model.shape.transform(folder)?;
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
        let (folder, device) = (folder.to_path_buf(), device.clone());
        Ok(Self { folder, about, report, encoder, transform, device })
    }

    /// How pictures are prepared.
    ///
    /// # Errors
    /// If the folder reads no pictures; the line begins with `place`, which has some.
    pub fn transform(&self, place: &str) -> Result<Transform> {
        let expected = "a model that reads pictures";
        self.transform.ok_or_else(|| Error::invalid(place, expected, self.folder.display()))
    }

    /// # Errors
    /// If the folder reads no captions; the line begins with `place`, which has some.
    pub fn check_captions(&self, place: &str) -> Result<()> {
        let expected = "a model that reads captions";
        Error::unless(self.text_width() > 0, place, expected, self.folder.display())
    }

    /// # Errors
    /// If a value is not finite: a model with damaged weights gives such rows.
    pub fn check_rows(place: impl std::fmt::Display, rows: &[f32]) -> Result<()> {
        Error::unless_finite(rows, |_| place.to_string(), "finite values of the model")
    }

    /// Width of a row of a picture; 0 if the folder reads none.
    pub fn image_width(&self) -> usize {
        match &self.encoder {
            Encoder::Dual(model, _) => model.shape.joint,
            Encoder::Vit { vit, patches } => vit.shape.width * (1 + usize::from(*patches)),
            Encoder::Sentence(_) => 0,
        }
    }

    /// Width of a row of a caption; 0 if the folder reads none.
    pub fn text_width(&self) -> usize {
        match &self.encoder {
            Encoder::Dual(model, _) => model.shape.joint,
            Encoder::Vit { .. } => 0,
            Encoder::Sentence(model) => model.width(),
        }
    }

    /// Number of patches of a picture, and the width of their rows.
    pub fn patches(&self, side: usize) -> [usize; 2] {
        let vit = match &self.encoder {
            Encoder::Dual(model, _) => &model.image.vit,
            Encoder::Vit { vit, .. } => vit,
            Encoder::Sentence(_) => return [0; 2],
        };
        [(side / vit.shape.patch).pow(2), vit.shape.width]
    }

    /// Rows of prepared pictures `[b, 3, side, side]`, one after the other, and the rows of their patches where they are asked for.
    ///
    /// # Panics
    /// If the folder reads no pictures, or as [`Vit::forward`].
    pub fn images(&self, values: Vec<f32>, side: usize, patches: bool) -> [Vec<f32>; 2] {
        let pixels = pixels(side, values, &self.device);
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
    ///
    /// # Panics
    /// As [`Vit::forward`].
    pub fn patch_rows(&self, values: Vec<f32>, side: usize) -> Option<Vec<f32>> {
        let Encoder::Dual(model, _) = &self.encoder else { return None };
        let states = model.image.tokens(pixels(side, values, &self.device)); // [1, tokens, d]
        let [_, tokens, d] = states.dims();
        let count = self.patches(side)[0];
        let each = states.narrow(1, tokens - count, count).reshape([count, 1, d]);
        Some(host(normalize_rows(model.image.rows_of(each))))
    }

    /// Unit rows of sentences, one after the other, from one batch.
    ///
    /// # Errors
    /// As [`DualPieces::encode`] and [`SentenceEncoder::encode`].
    ///
    /// # Panics
    /// If the folder reads no captions, or there is no sentence.
    pub fn sentences(&self, sentences: &[&str]) -> Result<Vec<f32>> {
        let pieces = sentences.iter().map(|sentence| Ok(self.pieces(sentence)?.0));
        let pieces = pieces.collect::<Result<Vec<Vec<u32>>>>()?;
        let mut rows = host(self.texts(&pieces));
        unit(&mut rows, self.text_width());
        Ok(rows)
    }

    /// Rows of captions, one after the other, in their order, and how many captions were cut.
    ///
    /// Captions of one length need no padding: sorted by length, `batch` of them are read together. `read` hears of each batch.
    ///
    /// # Errors
    /// As [`DualPieces::encode`] and [`SentenceEncoder::encode`].
    ///
    /// # Panics
    /// If the folder reads no captions, or `batch` is 0.
    pub fn captions<C: AsRef<str>>(
        &self,
        captions: &[C],
        batch: usize,
        mut read: impl FnMut(usize),
    ) -> Result<(Vec<f32>, usize)> {
        let (mut rows, mut cut) = (Vec::with_capacity(captions.len() * self.text_width()), 0);
        for part in captions.chunks(Self::SORTED) {
            let mut pieces = vec![];
            for caption in part {
                let (ids, is_cut) = self.pieces(caption.as_ref())?;
                pieces.push(ids);
                cut += usize::from(is_cut);
            }
            rows.extend(embed_texts(&pieces, batch, |some| {
                interrupt::check();
                let rows = self.texts(some);
                read(some.len());
                rows
            }));
        }
        Ok((rows, cut))
    }

    /// The numbers of a caption's pieces, and whether the caption was cut.
    fn pieces(&self, caption: &str) -> Result<(Vec<u32>, bool)> {
        match &self.encoder {
            Encoder::Dual(_, pieces) => pieces.encode(caption),
            Encoder::Sentence(model) => model.encode(caption),
            Encoder::Vit { .. } => unreachable!("a ViT is given no captions"),
        }
    }

    /// Rows of one batch.
    fn texts<C: AsRef<[u32]>>(&self, captions: &[C]) -> Tensor<2> {
        let batch = TokenBatch::new(captions);
        match &self.encoder {
            Encoder::Dual(model, _) => model.texts(&batch),
            Encoder::Sentence(model) => model.rows(&batch),
            Encoder::Vit { .. } => unreachable!("a ViT is given no captions"),
        }
    }
}

impl DualShape {
    /// How a folder prepares pictures for a model of this shape.
    pub(crate) fn transform(&self, folder: &Path) -> Result<Transform> {
        let side = self.image.image[0];
        let transform = Transform::open(folder, side)?;
        let expected = format_args!("pictures of {side} px, as the model has them");
        Error::unless(transform.size as usize == side, folder.display(), expected, transform.size)?;
        Ok(transform)
    }
}

/// Divides each row by its length; a sentence encoder need not.
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
    if is_of_open_clip(folder) {
        return Ok(OPEN_CLIP.into());
    }
    let config: Value = read_json(&path, "a JSON object")?;
    match config["model_type"].as_str() {
        Some(kind @ ("vit" | "dinov2" | "bert")) => Ok(kind.into()),
        // `DualShape::read` says what a relative of these two is.
        Some(kind) if kind.contains("clip") || kind.contains("siglip") => Ok(kind.into()),
        other => {
            let got = format!("\"{}\"", other.unwrap_or("none"));
            Err(Error::invalid(format!("{}: model_type", path.display()), READ, got))
        }
    }
}

#[cfg(test)]
#[cfg(feature = "pieces")]
mod tests;
