//! The files of dual encoders: names and shapes of the tensors in both layouts.

use std::path::Path;

use burn::tensor::Device;

use super::{DualEncoder, DualFamily, DualShape, config, open_clip};
use crate::encoders::{block_values, merge, table_values};
use crate::weights::{
    LoadReport, OPEN_CLIP_CONFIG, TensorNames, Unknown, WeightFiles, adapter, is_of_open_clip,
    load, open_clip_weights, save,
};
use crate::{Error, Result};

/// The layouts of folders that hold a [`DualEncoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DualLayout {
    /// `config.json` with `model.safetensors`, its shards, or `pytorch_model.bin`: CLIP and SigLIP.
    Transformers,
    /// `open_clip_config.json` with `open_clip_model.safetensors` or `open_clip_pytorch_model.bin`: CLIP.
    OpenClip,
}

const TRANSFORMERS: TensorNames = TensorNames {
    prefixes: &[""],
    parameters: &[
        ("scale", "logit_scale"),
        ("bias", "logit_bias"),
        ("image.vit.class", "vision_model.embeddings.class_embedding"),
        ("image.vit.patches", "vision_model.embeddings.patch_embedding.weight"),
        ("image.vit.patch_bias", "vision_model.embeddings.patch_embedding.bias"),
        ("image.vit.positions", "vision_model.embeddings.position_embedding.weight"),
        ("image.projection", "visual_projection.weight"),
        ("image.pool.probe", "vision_model.head.probe"),
        ("text.words", "text_model.embeddings.token_embedding.weight"),
        ("text.positions", "text_model.embeddings.position_embedding.weight"),
    ],
    more: &[],
    layers: &[
        ("image.vit.pre_norm", &["vision_model.pre_layrnorm"]),
        ("image.vit.norm", &["vision_model.post_layernorm"]),
        ("image.pool.attention.qkv", &["vision_model.head.attention.in_proj_"]),
        ("image.pool.attention.out", &["vision_model.head.attention.out_proj"]),
        ("image.pool.norm", &["vision_model.head.layernorm"]),
        ("image.pool.up", &["vision_model.head.mlp.fc1"]),
        ("image.pool.down", &["vision_model.head.mlp.fc2"]),
        ("text.norm", &["text_model.final_layer_norm"]),
        ("norm_1", &["layer_norm1"]),
        ("norm_2", &["layer_norm2"]),
        ("attention.qkv", &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]),
        ("attention.out", &["self_attn.out_proj"]),
        ("up", &["mlp.fc1"]),
        ("down", &["mlp.fc2"]),
    ],
    heads: &[],
    blocks: &[
        ("image.vit.blocks.", "vision_model.encoder.layers."),
        ("text.blocks.", "text_model.encoder.layers."),
    ],
    transposed: &["image.vit.patches", "image.projection", "text.projection"],
    unused: &["text_model.embeddings.position_ids", "vision_model.embeddings.position_ids"],
    optional: &[],
    unknown: Unknown::RefusedInBlocks,
    asked_by: "its config.json",
};

/// The text projection has other names in the two families.
const OF_CLIP: [(&str, &str); 1] = [("text.projection", "text_projection.weight")];
const OF_SIGLIP: [(&str, &str); 2] = [
    ("text.projection", "text_model.head.weight"),
    ("text.projection_bias", "text_model.head.bias"),
];

const OPEN_CLIP: TensorNames = TensorNames {
    parameters: &[
        ("scale", "logit_scale"),
        ("image.vit.class", "visual.class_embedding"),
        ("image.vit.patches", "visual.conv1.weight"),
        ("image.vit.positions", "visual.positional_embedding"),
        ("image.projection", "visual.proj"),
        ("text.words", "token_embedding.weight"),
        ("text.positions", "positional_embedding"),
        ("text.projection", "text_projection"),
    ],
    layers: &[
        ("image.vit.pre_norm", &["visual.ln_pre"]),
        ("image.vit.norm", &["visual.ln_post"]),
        ("text.norm", &["ln_final"]),
        ("norm_1", &["ln_1"]),
        ("norm_2", &["ln_2"]),
        ("attention.qkv", &["attn.in_proj_"]),
        ("attention.out", &["attn.out_proj"]),
        ("up", &["mlp.c_fc"]),
        ("down", &["mlp.c_proj"]),
    ],
    blocks: &[
        ("image.vit.blocks.", "visual.transformer.resblocks."),
        ("text.blocks.", "transformer.resblocks."),
    ],
    // Its two projections are stored as they are applied, [d, e].
    transposed: &["image.vit.patches"],
    unused: &["attn_mask"],
    asked_by: OPEN_CLIP_CONFIG,
    ..TRANSFORMERS
};

impl DualLayout {
    /// The layout of a folder: `transformers` if the folder has that configuration and weights.
    pub(crate) fn of(folder: &Path) -> Self {
        let foreign = is_of_open_clip(folder) || !WeightFiles::present(folder);
        if foreign && folder.join(OPEN_CLIP_CONFIG).exists() {
            return Self::OpenClip;
        }
        Self::Transformers
    }

    fn shape(self, folder: &Path) -> Result<DualShape> {
        match self {
            Self::Transformers => config::read(folder),
            Self::OpenClip => open_clip::read(folder),
        }
    }

    pub(crate) fn names(self, family: DualFamily) -> TensorNames {
        match (self, family) {
            (Self::OpenClip, _) => OPEN_CLIP,
            (_, DualFamily::Clip) => TensorNames { more: &OF_CLIP, ..TRANSFORMERS },
            (_, DualFamily::Siglip) => TensorNames { more: &OF_SIGLIP, ..TRANSFORMERS },
        }
    }
}

impl DualShape {
    /// Reads the sizes of a folder in either layout.
    ///
    /// # Errors
    /// If there is no configuration, the model is of another family, or a setting is not supported; the error names it.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        DualLayout::of(folder).shape(folder)
    }

    /// The shapes in the file that differ from ours.
    fn in_file(&self, name: &str, scale: &[usize]) -> Option<Vec<usize>> {
        let image = &self.image;
        match name {
            "image.vit.patches" => {
                Some(vec![image.width, image.channels, image.patch, image.patch])
            }
            "image.pool.probe" => Some(vec![1, 1, image.width]),
            "scale" => Some(scale.to_vec()),
            _ => None,
        }
    }

    /// Number of values in maps and tables: nearly all of the model.
    fn values(&self) -> u128 {
        let text = &self.text;
        let rows = text.vocabulary.saturating_add(text.positions).saturating_add(self.joint);
        let blocks = block_values(text.layers, text.width, text.mlp);
        let images = table_values(&[self.joint, self.image.width]);
        let towers = self.image.values().saturating_add(blocks);
        table_values(&[rows, text.width]).saturating_add(images).saturating_add(towers)
    }

    /// The shape of θ in the family's files.
    fn scale(&self) -> &'static [usize] {
        if self.family == DualFamily::Clip { &[] } else { &[1] }
    }
}

impl DualEncoder {
    /// Loads a folder of `transformers` or open_clip ([`crate::weights::Hub::folder`] finds one by name). If the folder has the
    /// files of both, it is read as `transformers` reads it.
    ///
    /// # Errors
    /// As [`DualShape::read`] and [`WeightFiles::open`], and if a tensor is missing or misshaped; the error names all such
    /// tensors.
    pub fn open(folder: impl AsRef<Path>, device: &Device) -> Result<(Self, LoadReport)> {
        let folder = folder.as_ref();
        let layout = DualLayout::of(folder);
        let shape = layout.shape(folder)?;
        let files = match layout {
            DualLayout::Transformers => WeightFiles::open(folder)?,
            DualLayout::OpenClip => WeightFiles::open(open_clip_weights(folder))?,
        };
        files.check_values(shape.values(), layout.names(shape.family).asked_by)?;
        // θ is a scalar or a row of one value, whoever wrote the file.
        let scale: &[usize] = match files.shape("logit_scale") {
            Some([]) => &[],
            Some([1]) => &[1],
            _ => shape.scale(),
        };
        let model = Self::seeded(&shape, 0, device);
        load(model, &files, &layout.names(shape.family), &|name| shape.in_file(name, scale))
    }

    /// The model with an adapter of PEFT (`adapter_config.json`, `adapter_model.safetensors`) in its linear maps:
    ///
    /// ```text
    /// W ← W + (α/r) B A
    /// ```
    ///
    /// | symbol | in the file | shape |
    /// |---|---|---|
    /// | A, B | `base_model.model.NAME.lora_A.weight`, `….lora_B.weight` | `[r, in]`, `[out, r]` |
    /// | α, r | `lora_alpha`, `r` | |
    ///
    /// `NAME` is a map as the files of the model name it or as `transformers` names the module. Source: Hu et al. 2022 (arXiv 2106.09685).
    ///
    /// # Errors
    /// If a file is missing or damaged; if the adapter is no plain LoRA (the error names the setting); or if one of its maps is
    /// not in this model or has another shape.
    pub fn with_adapter(self, folder: impl AsRef<Path>) -> Result<Self> {
        let names = DualLayout::Transformers.names(self.shape.family);
        adapter::merged(self, &names, folder.as_ref())
    }

    /// Writes configuration and weights in f32, for `transformers` or open_clip. Word pieces and the preparation of pictures have
    /// their own files, which the training of a model does not change. In open_clip's layout the preparation is a part of the
    /// configuration: what is there stays, and a new folder has none. Changes by LoRA are in the weights.
    ///
    /// # Errors
    /// If the model's pictures are not square; if open_clip's layout cannot hold the model (a SigLIP, two activations, tanh-GELU, another ε than
    /// 1e-5); if the folder's open_clip configuration is damaged; or if the operating system refuses a write.
    pub fn save(&self, folder: impl AsRef<Path>, layout: DualLayout) -> Result<()> {
        let (folder, shape) = (folder.as_ref(), &self.shape);
        let [h, w] = shape.image.image;
        let got = format_args!("{h} x {w}");
        Error::unless(h == w, folder.display(), "square pictures for a configuration", got)?;
        let (files, config) = match layout {
            DualLayout::Transformers => {
                (["model.safetensors", "config.json"], config::written(shape))
            }
            DualLayout::OpenClip => {
                let config = open_clip::written(folder, shape)?;
                (["open_clip_model.safetensors", OPEN_CLIP_CONFIG], config)
            }
        };
        let names = layout.names(shape.family);
        let in_file = |name: &str| shape.in_file(name, shape.scale());
        let mut whole = self.clone();
        merge(&mut whole.image.vit.blocks);
        merge(&mut whole.text.blocks);
        save(&whole, folder, files, &config, &names, &in_file)
    }
}
