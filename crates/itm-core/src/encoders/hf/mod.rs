//! Loads ViT and BERT from Hugging Face folders.

pub(super) mod config;
mod dinov2;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use burn::tensor::Device;

use super::{Bert, BertShape, Vit, VitShape};
use crate::Result;
use crate::weights::{LoadReport, TensorNames, Unknown, WeightFiles, adapter, load};
use itm_data::Fields;

pub(crate) const BERT: TensorNames = TensorNames {
    prefixes: &["", "bert."],
    parameters: &[
        ("words", "embeddings.word_embeddings.weight"),
        ("positions", "embeddings.position_embeddings.weight"),
        ("kinds", "embeddings.token_type_embeddings.weight"),
    ],
    more: &[],
    layers: &[
        ("norm", &["embeddings.LayerNorm"]),
        ("attention.qkv", &["attention.self.query", "attention.self.key", "attention.self.value"]),
        ("attention.out", &["attention.output.dense"]),
        ("norm_1", &["attention.output.LayerNorm"]),
        ("up", &["intermediate.dense"]),
        ("down", &["output.dense"]),
        ("norm_2", &["output.LayerNorm"]),
    ],
    unused: &["pooler.", "cls.", "classifier.", "qa_outputs.", "embeddings.position_ids"],
    heads: &[],
    blocks: &[("blocks.", "encoder.layer.")],
    transposed: &[],
    optional: &[],
    unknown: Unknown::RefusedInBlocks,
    asked_by: "its config.json",
};

pub(crate) const VIT: TensorNames = TensorNames {
    prefixes: &["", "vit."],
    parameters: &[
        ("class", "embeddings.cls_token"),
        ("positions", "embeddings.position_embeddings"),
        ("patches", "embeddings.patch_embeddings.projection.weight"),
        ("patch_bias", "embeddings.patch_embeddings.projection.bias"),
    ],
    layers: &[
        ("norm", &["layernorm"]),
        ("norm_1", &["layernorm_before"]),
        (
            "attention.qkv",
            &["attention.attention.query", "attention.attention.key", "attention.attention.value"],
        ),
        ("attention.out", &["attention.output.dense"]),
        ("norm_2", &["layernorm_after"]),
        ("up", &["intermediate.dense"]),
        ("down", &["output.dense"]),
    ],
    unused: &["pooler.", "classifier.", "decoder.", "embeddings.mask_token"],
    transposed: &["patches"],
    ..BERT
};

impl VitShape {
    /// Reads the sizes of a folder's `config.json`.
    ///
    /// # Errors
    /// If there is no such file, the architecture is neither ViT nor DINOv2, or [`Vit`] does not support a setting.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let fields = fields(folder.as_ref())?;
        match fields.text("model_type") {
            Some(dinov2::NAME) => dinov2::shape(&fields),
            _ => config::vit(&fields),
        }
    }
}

impl BertShape {
    /// Reads the sizes of a folder's `config.json`.
    ///
    /// # Errors
    /// If there is no such file, the architecture is another, or [`Bert`] does not support a setting.
    pub(crate) fn read(folder: impl AsRef<Path>) -> Result<Self> {
        config::bert(&fields(folder.as_ref())?)
    }
}

impl Vit {
    /// Loads a folder of ViT or DINOv2 with `config.json` and weights ([`crate::weights::Hub::folder`] finds one by name). The
    /// layer scales of DINOv2 become part of the linear maps before them.
    ///
    /// # Errors
    /// As [`VitShape::read`] and [`WeightFiles::open`], and if a tensor is missing or misshaped; the error names all
    /// such tensors.
    pub fn open(folder: impl AsRef<Path>, device: &Device) -> Result<(Self, LoadReport)> {
        Self::adapted(folder, None, device)
    }

    /// [`open`](Self::open), with an [adapter of PEFT](super::DualEncoder::with_adapter) where one is given. It is merged before the
    /// layer scales are.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`DualEncoder::with_adapter`](super::DualEncoder::with_adapter).
    pub fn adapted(
        folder: impl AsRef<Path>,
        adapter: Option<&Path>,
        device: &Device,
    ) -> Result<(Self, LoadReport)> {
        let folder = folder.as_ref();
        let (shape, names) = (VitShape::read(folder)?, vit_names(folder)?);
        let files = WeightFiles::open(folder)?;
        files.check_values(shape.values(), names.asked_by)?;
        let model = Self::seeded(&shape, 0, device);
        let (mut model, report) = load(model, &files, &names, &|name| vit_form(&shape, name))?;
        if let Some(adapter) = adapter {
            model = adapter::merged(model, &names, adapter)?;
        }
        if is_dinov2(folder)? {
            return dinov2::folded(model, report, &files, device);
        }
        Ok((model, report))
    }
}

impl Bert {
    /// Loads a folder with `config.json` and weights ([`crate::weights::Hub::folder`] finds one by name).
    ///
    /// # Errors
    /// As `BertShape::read` and [`WeightFiles::open`], and if a tensor is missing or misshaped; the error names all
    /// such tensors.
    pub fn open(folder: impl AsRef<Path>, device: &Device) -> Result<(Self, LoadReport)> {
        let folder = folder.as_ref();
        let (shape, files) = (BertShape::read(folder)?, WeightFiles::open(folder)?);
        files.check_values(shape.values(), BERT.asked_by)?;
        load(Self::seeded(&shape, 0, device), &files, &BERT, &|_| None)
    }

    /// BERT with an adapter: [`DualEncoder::with_adapter`](super::DualEncoder::with_adapter).
    ///
    /// # Errors
    /// As [`DualEncoder::with_adapter`](super::DualEncoder::with_adapter).
    pub fn with_adapter(self, folder: impl AsRef<Path>) -> Result<Self> {
        adapter::merged(self, &BERT, folder.as_ref())
    }
}

/// The names in the files of a folder of ViT or DINOv2.
pub(crate) fn vit_names(folder: &Path) -> Result<TensorNames> {
    Ok(if is_dinov2(folder)? { dinov2::DINOV2 } else { VIT })
}

/// Whether a folder is DINOv2's, whose blocks scale what they add.
pub(crate) fn is_dinov2(folder: &Path) -> Result<bool> {
    Ok(fields(folder)?.text("model_type") == Some(dinov2::NAME))
}

fn fields(folder: &Path) -> Result<Fields> {
    Fields::read(&folder.join("config.json"))
}

/// The shapes in the file that differ from ours: the convolution's weight, and tensors with a leading axis of 1 for the
/// batch.
fn vit_form(shape: &VitShape, name: &str) -> Option<Vec<usize>> {
    let (d, [h, w]) = (shape.width, shape.grid());
    match name {
        "patches" => Some(vec![d, shape.channels, shape.patch, shape.patch]),
        "class" => Some(vec![1, 1, d]),
        "positions" => Some(vec![1, 1 + h * w, d]),
        _ => None,
    }
}
