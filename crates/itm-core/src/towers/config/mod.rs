//! `[model]`: the encoders, where their weights come from, and how their rows become an embedding.

mod check;
mod weights;

use std::path::PathBuf;

use itm_kernels::{Memory, TransformerBlock};
use serde::{Deserialize, Serialize};

use super::FeatureTransform;
use crate::encoders::{
    BertShape, DualShape, ImagePool, PiecePool, ResidualShape, SentenceFolder, TextPool, VitShape,
};
use crate::start::{BagPooling, StartFrom, StartOptions};
use crate::vision::{Augment, Normalization, Overflow, Transform};
use crate::weights::Hub;
use crate::{Error, Result};
pub use weights::Weights;

/// Both encoders. Any image encoder goes with any text encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width d of the joint space.
    pub embed_dim: usize,
    /// The weights before the first step: random or published ones, or a closed form that the method is given.
    pub start: StartFrom,
    /// Which closed form the weights begin with, if `start` is `cca`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cca: Option<StartOptions>,
    /// Images to v̄.
    pub image: ImageConfig,
    /// Captions to w̄.
    pub text: TextConfig,
}

/// `[model.image]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ImageConfig {
    /// A linear map of given global features.
    Features(FeaturesConfig),
    /// A vision transformer over pixels.
    Vit(VitConfig),
    /// The image tower of CLIP or SigLIP over pixels.
    Clip(ClipImageConfig),
}

/// `[model.text]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TextConfig {
    /// Word vectors and a gated recurrent unit of width d.
    Gru(GruConfig),
    /// BERT over word pieces.
    Bert(BertConfig),
    /// A linear map of the stems that occur.
    Bag(BagConfig),
    /// The text tower of CLIP or SigLIP over word pieces.
    Clip(ClipTextConfig),
}

/// A map of given global features to d.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FeaturesConfig {
    /// The transform of a row before the map.
    pub transform: FeatureTransform,
    /// A small network beside the linear map, whose output is 0 before the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<ResidualShape>,
}

/// A linear map to d of the stems that occur.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BagConfig {
    /// How the stems of a caption are weighted.
    pub pooling: BagPooling,
}

/// A gated recurrent unit over word vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GruConfig {
    /// Width of a word vector.
    pub word_dim: usize,
    /// How a caption's states become one vector.
    pub pool: TextPool,
}

/// ViT: its input pictures, and how its rows become an embedding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VitConfig {
    /// A folder, `org/name@revision`, or a table of sizes for random weights.
    pub weights: Weights<VitShape>,
    /// P5: height and width of the input picture. Position embeddings of another size are interpolated.
    pub image_size: usize,
    /// P6: the constants that normalise pixels.
    pub pixels: Pixels,
    /// P25: the random part of the training transform.
    pub augment: Augmentation,
    /// P1: the positions whose mean is v̄.
    pub pool: ImagePool,
    /// P4: a fully connected layer to d.
    pub projection: JointLayer,
    /// Whether a block keeps only its input, and its gradient recomputes the rest: less memory, about a third more time.
    pub gradient_checkpointing: bool,
}

/// BERT: its input captions, and how its rows become an embedding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BertConfig {
    /// A folder, `org/name@revision`, or a table of sizes for random weights.
    pub weights: Weights<BertShape>,
    /// Largest number of word pieces per caption, including `[CLS]` and `[SEP]`.
    pub max_length: usize,
    /// P3: whether training captions are cut to `max_length` too.
    pub train_truncate: TrainTruncate,
    /// P1, P2: the positions whose mean is w̄.
    pub pool: PiecePool,
    /// P4: a fully connected layer to d.
    pub projection: JointLayer,
    /// Whether a block keeps only its input, and its gradient recomputes the rest: less memory, about a third more time.
    pub gradient_checkpointing: bool,
}

/// The image tower of a published CLIP or SigLIP. The folder says which, how large pictures are, and how their pixels are prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClipImageConfig {
    /// A folder or `org/name@revision`, in the layout of `transformers` or open_clip.
    pub weights: String,
    /// The random part of the training transform.
    pub augment: Augmentation,
    /// Whether a block keeps only its input, and its gradient recomputes the rest: less memory, about a third more time.
    pub gradient_checkpointing: bool,
}

/// The text tower of a published CLIP or SigLIP. The folder says which, and how long captions may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClipTextConfig {
    /// A folder or `org/name@revision`, in the layout of `transformers` or open_clip.
    pub weights: String,
    /// Whether a block keeps only its input, and its gradient recomputes the rest: less memory, about a third more time.
    pub gradient_checkpointing: bool,
}

impl ClipImageConfig {
    /// The folder, and the sizes of both towers.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`] and [`DualShape::read`].
    pub fn folder(&self) -> Result<(PathBuf, DualShape)> {
        clip_folder(&self.weights)
    }

    /// The transform of evaluation pictures.
    ///
    /// # Errors
    /// The errors of [`folder`](Self::folder) and [`Transform::open`], and if the folder's pictures have another size than the model's.
    pub fn transform(&self) -> Result<Transform> {
        let (folder, shape) = self.folder()?;
        shape.transform(&folder)
    }
}

impl ClipTextConfig {
    /// The folder, and the sizes of both towers.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`] and [`DualShape::read`].
    pub fn folder(&self) -> Result<(PathBuf, DualShape)> {
        clip_folder(&self.weights)
    }
}

fn clip_folder(weights: &str) -> Result<(PathBuf, DualShape)> {
    let folder = Hub::from_env().folder(weights)?;
    let shape = DualShape::read(&folder)?;
    Ok((folder, shape))
}

/// Sets what blocks keep from their forward pass.
pub(super) fn set_memory(blocks: &mut [TransformerBlock], gradient_checkpointing: bool) {
    let memory = if gradient_checkpointing { Memory::Recompute } else { Memory::Keep };
    blocks.iter_mut().for_each(|block| block.memory = memory);
}

/// P4: the layer between the mean and the joint space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JointLayer {
    /// No layer: d is the encoder's width (released code).
    #[default]
    None,
    /// `x W + b` to d. The layer is part of the encoder, so it has a momentum copy (paper).
    Linear,
}

/// P6: the mean and the deviation that normalise pixels in 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pixels {
    /// CLIP's constants (released code).
    #[default]
    Clip,
    /// 0.5 and 0.5. ViT's published weights were trained with these.
    Half,
    /// As the folder of the weights says, and so are the resize and the crop.
    Folder,
}

/// P25: the random part of the training transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Augmentation {
    /// Crop, flip, two operations that saturate at 0 and 255.
    #[default]
    Saturating,
    /// The same operations, but two of them wrap around at 256 (released code).
    Wraparound,
    /// No random part: pictures as in evaluation. Ours.
    Off,
}

/// P3: whether captions are cut to `max_length` in training, as they are in evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainTruncate {
    /// Cut.
    #[default]
    On,
    /// Not cut (released code).
    Off,
}

impl Augmentation {
    /// The random transform of training pictures; `None` with [`Augmentation::Off`].
    pub fn of(self, transform: Transform) -> Option<Augment> {
        let overflow = match self {
            Self::Off => return None,
            Self::Saturating => Overflow::Saturate,
            Self::Wraparound => Overflow::Wrap,
        };
        Some(Augment { transform, overflow })
    }
}

impl ModelConfig {
    /// A linear map of raw features, and a mean over the states of a gated recurrent unit.
    pub fn new(embed_dim: usize, word_dim: usize) -> Self {
        Self {
            embed_dim,
            start: StartFrom::Random,
            cca: None,
            image: ImageConfig::Features(FeaturesConfig {
                transform: FeatureTransform::Raw,
                residual: None,
            }),
            text: TextConfig::Gru(GruConfig { word_dim, pool: TextPool::Mean }),
        }
    }

    /// The closed form that the weights begin with, if `start` is `cca`.
    pub fn closed_form(&self) -> Option<&StartOptions> {
        self.cca.as_ref().filter(|_| self.start == StartFrom::Cca)
    }

    /// Whether an encoder has blocks. Only blocks have a precision that can be chosen.
    pub fn has_blocks(&self) -> bool {
        !matches!(self.image, ImageConfig::Features(_))
            || matches!(self.text, TextConfig::Bert(_) | TextConfig::Clip(_))
    }
}

impl VitConfig {
    /// The transform of evaluation pictures.
    ///
    /// # Errors
    /// With [`Pixels::Folder`], if there is no folder, or its pictures have another size; the errors of [`Transform::open`].
    pub fn transform(&self) -> Result<Transform> {
        let normalization = match self.pixels {
            Pixels::Clip => Normalization::CLIP,
            Pixels::Half => Normalization::HALF,
            Pixels::Folder => {
                let key = "model.image.pixels";
                let wanted = "\"clip\" or \"half\" for random weights";
                let folder = self.weights.folder()?;
                let folder = folder.ok_or_else(|| Error::invalid(key, wanted, "\"folder\""))?;
                let transform = Transform::open(folder, self.image_size)?;
                let (fits, got) = (transform.size as usize == self.image_size, self.image_size);
                let expected = format!("{}, as the folder says", transform.size);
                Error::unless(fits, "model.image.image_size", expected, got)?;
                return Ok(transform);
            }
        };
        Ok(Transform { size: self.image_size as u32, normalization, ..Transform::default() })
    }

    /// The sizes of the weights.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`] and [`VitShape::read`].
    pub fn shape(&self) -> Result<VitShape> {
        self.weights.shape(VitShape::read)
    }
}

impl BertConfig {
    /// The sizes of the weights.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`] and `BertShape::read`.
    pub(crate) fn shape(&self) -> Result<BertShape> {
        self.weights.shape(BertShape::read)
    }

    /// Whether a folder of sentence-transformers gives its rows unit length before a projection; `None` for other weights. Such a
    /// folder reads captions as they are.
    ///
    /// # Errors
    /// If the folder pools in another way than `pool` says, cuts captions before `max_length`, has BERT in a folder inside, or puts a prompt before
    /// sentences; the errors
    /// of [`Hub::folder`] and `SentenceFolder::read`.
    pub fn sentence(&self) -> Result<Option<bool>> {
        let Some(folder) = self.weights.folder()? else { return Ok(None) };
        let Some(found) = SentenceFolder::read(&folder)? else { return Ok(None) };
        let SentenceFolder { transformer, pool, unit, prompt } = found;
        let place = format!("{}: path", folder.join("modules.json").display());
        let expected = "BERT in the folder itself, for a training";
        Error::unless(transformer == folder, place, expected, transformer.display())?;
        let place = format!("{}: default_prompt_name", folder.display());
        let expected = "none, because a training puts nothing before captions";
        Error::unless(prompt.is_empty(), place, expected, format_args!("\"{prompt}\""))?;
        let expected = format!("\"{}\", as {} pools", pool.name(), folder.display());
        let got = format!("\"{}\"", self.pool.name());
        Error::unless(pool == self.pool, "model.text.pool", expected, got)?;
        let most = SentenceFolder::most(&folder, self.shape()?.positions)?;
        let expected = format_args!("at most {most}, where {} cuts captions", folder.display());
        Error::unless(self.max_length <= most, "model.text.max_length", expected, self.max_length)?;
        Ok(Some(unit))
    }
}
