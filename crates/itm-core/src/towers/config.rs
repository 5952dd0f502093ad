//! `[model]`: the encoders, where their weights come from, and how their rows become an embedding.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use itm_kernels::Memory;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::FeatureTransform;
use crate::encoders::{
    BertShape, DualShape, ImagePool, PiecePool, ResidualShape, TextPool, VitShape, sentence_pool,
};
use crate::learn::{at_least_one, within};
use crate::start::{BagPooling, StartFrom, StartOptions};
use crate::vision::{Augment, Normalization, Overflow, Transform};
use crate::weights::Hub;
use crate::{Error, Result};

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
    /// The errors of [`folder`](Self::folder) and [`Transform::open`].
    pub fn transform(&self) -> Result<Transform> {
        let (folder, shape) = self.folder()?;
        Transform::open(&folder, shape.image.image[0])
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

/// Where weights come from. In a config, a string is a folder or `org/name@revision`, and a table has the sizes of a random model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Weights<S> {
    /// Published weights.
    Pretrained(String),
    /// Random weights of these sizes, a function of the seed.
    Random(S),
}

impl<S> Weights<S> {
    /// The folder of published weights, which may be downloaded first; `None` for random weights.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`].
    pub fn folder(&self) -> Result<Option<PathBuf>> {
        match self {
            Self::Pretrained(name) => Hub::from_env().folder(name).map(Some),
            Self::Random(_) => Ok(None),
        }
    }
}

impl<S: Clone> Weights<S> {
    /// The sizes of the weights. `read` reads them from a folder.
    fn shape(&self, read: impl FnOnce(PathBuf) -> Result<S>) -> Result<S> {
        match self {
            Self::Pretrained(name) => read(Hub::from_env().folder(name)?),
            Self::Random(shape) => Ok(shape.clone()),
        }
    }
}

impl<'de, S: Deserialize<'de>> Deserialize<'de> for Weights<S> {
    /// Written by hand, because an untagged enum would name neither the missing nor the unknown key of a table.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either<S>(PhantomData<S>);
        impl<'de, S: Deserialize<'de>> Visitor<'de> for Either<S> {
            type Value = Weights<S>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a folder, org/name@revision, or a table of sizes")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Weights::Pretrained(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                S::deserialize(MapAccessDeserializer::new(map)).map(Weights::Random)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// What a block keeps from its forward pass.
pub(super) fn memory(gradient_checkpointing: bool) -> Memory {
    if gradient_checkpointing { Memory::Recompute } else { Memory::Keep }
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

    /// Refuses published weights that do not fit the rest of the configuration. Reads only their `config.json`, so that a run
    /// fails before it reads hundreds of megabytes.
    ///
    /// # Errors
    /// If a folder is not found, or has another architecture or another size than the configuration says.
    pub fn check_weights(&self) -> Result<()> {
        let joint = |side, (_, shape): (PathBuf, DualShape)| {
            JointLayer::None.check(side, shape.joint, self.embed_dim)
        };
        match &self.image {
            ImageConfig::Features(_) => {}
            ImageConfig::Vit(vit) => {
                vit.check(&vit.shape()?, self.embed_dim)?;
                vit.transform()?;
            }
            ImageConfig::Clip(clip) => {
                joint("model.image", clip.folder()?)?;
                clip.transform()?;
            }
        }
        match &self.text {
            TextConfig::Bert(bert) => {
                bert.sentence()?;
                bert.check(&bert.shape()?, self.embed_dim)
            }
            TextConfig::Clip(clip) => joint("model.text", clip.folder()?),
            TextConfig::Gru(_) | TextConfig::Bag(_) => Ok(()),
        }
    }

    /// The closed form that the weights begin with, if `start` is `cca`.
    pub fn closed_form(&self) -> Option<&StartOptions> {
        self.cca.as_ref().filter(|_| self.start == StartFrom::Cca)
    }

    /// Refuses values that no encoder can be made with.
    ///
    /// # Errors
    /// The error names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        at_least_one("model.embed_dim", self.embed_dim)?;
        self.validate_start()?;
        if let ImageConfig::Features(FeaturesConfig { residual: Some(residual), .. }) = &self.image
        {
            residual.validate("model.image.residual")?;
        }
        if let ImageConfig::Vit(vit) = &self.image {
            at_least_one("model.image.image_size", vit.image_size)?;
            if let Weights::Random(shape) = &vit.weights {
                let rates = [shape.dropout, shape.attention_dropout];
                check_shape("model.image", shape.width, shape.heads, rates)?;
                at_least_one("model.image.weights.patch", shape.patch)?;
                let least = shape.image.into_iter().min().unwrap_or(0);
                fits("model.image.weights.image", shape.patch, least)?;
                vit.check(shape, self.embed_dim)?;
            }
        }
        match &self.text {
            TextConfig::Gru(gru) => at_least_one("model.text.word_dim", gru.word_dim),
            TextConfig::Bag(_) | TextConfig::Clip(_) => Ok(()),
            TextConfig::Bert(bert) => {
                let wanted = "at least 2, for [CLS] and [SEP]";
                within("model.text.max_length", bert.max_length as f64, wanted, |n| n >= 2.0)?;
                let Weights::Random(shape) = &bert.weights else { return Ok(()) };
                let rates = [shape.dropout, shape.attention_dropout];
                check_shape("model.text", shape.width, shape.heads, rates)?;
                bert.check(shape, self.embed_dim)
            }
        }
    }
}

impl ModelConfig {
    /// Whether an encoder has blocks. Only blocks have a precision that can be chosen.
    pub fn has_blocks(&self) -> bool {
        !matches!(self.image, ImageConfig::Features(_))
            || matches!(self.text, TextConfig::Bert(_) | TextConfig::Clip(_))
    }

    fn validate_start(&self) -> Result<()> {
        let Some(cca) = &self.cca else {
            return match self.start {
                StartFrom::Random => Ok(()),
                StartFrom::Cca => {
                    Err(Error::invalid("model.start", "\"cca\" with a section [model.cca]", "none"))
                }
            };
        };
        cca.validate()?;
        if self.start == StartFrom::Cca {
            cca.fits(self.embed_dim)?;
        }
        let linear = |projection| projection == JointLayer::Linear;
        let image = match &self.image {
            ImageConfig::Features(_) => true,
            ImageConfig::Vit(vit) => linear(vit.projection),
            ImageConfig::Clip(_) => false,
        };
        let text = match &self.text {
            TextConfig::Bag(_) => true,
            TextConfig::Bert(bert) => linear(bert.projection),
            TextConfig::Gru(_) | TextConfig::Clip(_) => false,
        };
        let wrong = |expected, got| Err(Error::invalid("model.start", expected, got));
        match self.start {
            StartFrom::Cca if !image => wrong(
                "\"cca\" with image.kind = \"features\", or \"vit\" with projection = \"linear\"",
                "another encoder of images",
            ),
            StartFrom::Cca if !text => wrong(
                "\"cca\" with text.kind = \"bag\", or \"bert\" with projection = \"linear\"",
                "another encoder of captions",
            ),
            _ => Ok(()),
        }
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
                if transform.size as usize != self.image_size {
                    let expected = format!("{}, as the folder says", transform.size);
                    let key = "model.image.image_size";
                    return Err(Error::invalid(key, expected, self.image_size));
                }
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

    /// Whether weights of this shape fit the rest of the configuration.
    fn check(&self, shape: &VitShape, embed_dim: usize) -> Result<()> {
        fits("model.image.image_size", shape.patch, self.image_size)?;
        if shape.channels != 3 {
            return Err(Error::invalid("model.image.weights", "3 channels", shape.channels));
        }
        self.projection.check("model.image", self.pool.width(shape.width), embed_dim)
    }
}

impl BertConfig {
    /// The sizes of the weights.
    ///
    /// # Errors
    /// The errors of [`Hub::folder`] and [`BertShape::read`].
    pub fn shape(&self) -> Result<BertShape> {
        self.weights.shape(BertShape::read)
    }

    /// Whether a folder of sentence-transformers gives its rows unit length before a projection; `None` for other weights. Such a
    /// folder reads captions as they are.
    ///
    /// # Errors
    /// If the folder pools in another way than `pool` says; the errors of [`Hub::folder`] and [`sentence_pool`].
    pub fn sentence(&self) -> Result<Option<bool>> {
        let Some(folder) = self.weights.folder()? else { return Ok(None) };
        let Some((pool, unit)) = sentence_pool(&folder)? else { return Ok(None) };
        if pool != self.pool {
            let expected = format!("\"{}\", as {} pools", pool.name(), folder.display());
            let got = format!("\"{}\"", self.pool.name());
            return Err(Error::invalid("model.text.pool", expected, got));
        }
        Ok(Some(unit))
    }

    /// Whether weights of this shape fit the rest of the configuration.
    fn check(&self, shape: &BertShape, embed_dim: usize) -> Result<()> {
        if self.max_length > shape.positions {
            let expected = format!("at most {}, the positions of its weights", shape.positions);
            return Err(Error::invalid("model.text.max_length", expected, self.max_length));
        }
        self.projection.check("model.text", shape.width, embed_dim)
    }
}

impl JointLayer {
    fn check(self, side: &str, width: usize, embed_dim: usize) -> Result<()> {
        if self == Self::Linear || width == embed_dim {
            return Ok(());
        }
        let expected = format!("{width}, the width of {side} without a projection");
        Err(Error::invalid("model.embed_dim", expected, embed_dim))
    }
}

fn check_shape(side: &str, width: usize, heads: usize, rates: [f64; 2]) -> Result<()> {
    if heads == 0 || width == 0 || !width.is_multiple_of(heads) {
        let place = format!("{side}.weights.heads");
        return Err(Error::invalid(place, format!("a divisor of the width {width}"), heads));
    }
    for (key, rate) in ["dropout", "attention_dropout"].into_iter().zip(rates) {
        let key = format!("{side}.weights.{key}");
        within(&key, rate, "in [0, 1)", |x| (0.0..1.0).contains(&x))?;
    }
    Ok(())
}

fn fits(key: &str, patch: usize, side: usize) -> Result<()> {
    if side < patch {
        return Err(Error::invalid(key, format!("at least a patch of {patch}"), side));
    }
    Ok(())
}
