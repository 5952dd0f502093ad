//! What a configuration of encoders refuses.

use std::path::PathBuf;

use super::{
    BertConfig, FeaturesConfig, ImageConfig, JointLayer, ModelConfig, TextConfig, VitConfig,
    Weights,
};
use crate::encoders::{BertShape, DualShape, VitShape};
use crate::learn::{at_least_one, size_within, within};
use crate::{Error, Result};

impl ModelConfig {
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

    /// Refuses values that no encoder can be made with.
    ///
    /// # Errors
    /// The error names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        size_within("model.embed_dim", self.embed_dim)?;
        self.validate_start()?;
        if let ImageConfig::Features(FeaturesConfig { residual: Some(residual), .. }) = &self.image
        {
            residual.validate("model.image.residual")?;
        }
        if let ImageConfig::Vit(vit) = &self.image {
            size_within("model.image.image_size", vit.image_size)?;
            if let Weights::Random(shape) = &vit.weights {
                let rates = [shape.dropout, shape.attention_dropout];
                let sizes = [shape.width, shape.heads, shape.mlp];
                check_shape("model.image", sizes, rates, shape.epsilon)?;
                at_least_one("model.image.weights.patch", shape.patch)?;
                let least = shape.image.into_iter().min().unwrap_or(0);
                fits("model.image.weights.image", shape.patch, least)?;
                vit.check(shape, self.embed_dim)?;
            }
        }
        match &self.text {
            TextConfig::Gru(gru) => size_within("model.text.word_dim", gru.word_dim),
            TextConfig::Bag(_) | TextConfig::Clip(_) => Ok(()),
            TextConfig::Bert(bert) => {
                let wanted = "at least 2, for [CLS] and [SEP]";
                within("model.text.max_length", bert.max_length as f64, wanted, |n| n >= 2.0)?;
                let Weights::Random(shape) = &bert.weights else { return Ok(()) };
                let rates = [shape.dropout, shape.attention_dropout];
                let sizes = [shape.width, shape.heads, shape.mlp];
                check_shape("model.text", sizes, rates, shape.epsilon)?;
                at_least_one("model.text.weights.vocabulary", shape.vocabulary)?;
                at_least_one("model.text.weights.kinds", shape.kinds)?;
                bert.check(shape, self.embed_dim)
            }
        }
    }

    fn validate_start(&self) -> Result<()> {
        let wrong = |expected, got| Err(Error::invalid("model.start", expected, got));
        let Some(cca) = self.start.options(self.cca.as_ref())? else { return Ok(()) };
        cca.fits(self.embed_dim)?;
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
        match (image, text) {
            (false, _) => wrong(
                "\"cca\" with image.kind = \"features\", or \"vit\" with projection = \"linear\"",
                "another encoder of images",
            ),
            (_, false) => wrong(
                "\"cca\" with text.kind = \"bag\", or \"bert\" with projection = \"linear\"",
                "another encoder of captions",
            ),
            _ => Ok(()),
        }
    }
}

impl VitConfig {
    /// Whether weights of this shape fit the rest of the configuration.
    fn check(&self, shape: &VitShape, embed_dim: usize) -> Result<()> {
        fits("model.image.image_size", shape.patch, self.image_size)?;
        let channels = shape.channels;
        Error::unless(channels == 3, "model.image.weights", "3 channels", channels)?;
        self.projection.check("model.image", self.pool.width(shape.width), embed_dim)
    }
}

impl BertConfig {
    /// Whether weights of this shape fit the rest of the configuration.
    fn check(&self, shape: &BertShape, embed_dim: usize) -> Result<()> {
        let (got, most) = (self.max_length, shape.positions);
        let expected = format!("at most {most}, the positions of its weights");
        Error::unless(got <= most, "model.text.max_length", expected, got)?;
        self.projection.check("model.text", shape.width, embed_dim)
    }
}

impl JointLayer {
    fn check(self, side: &str, width: usize, embed_dim: usize) -> Result<()> {
        let fits = self == Self::Linear || width == embed_dim;
        let expected = format!("{width}, the width of {side} without a projection");
        Error::unless(fits, "model.embed_dim", expected, embed_dim)
    }
}

fn check_shape(
    side: &str,
    [width, heads, mlp]: [usize; 3],
    rates: [f64; 2],
    epsilon: f64,
) -> Result<()> {
    at_least_one(&format!("{side}.weights.mlp"), mlp)?;
    let in_f32 = |x: f64| x >= 0.0 && (x as f32).is_finite();
    within(&format!("{side}.weights.epsilon"), epsilon, "at least 0, in f32", in_f32)?;
    let fits = heads > 0 && width > 0 && width.is_multiple_of(heads);
    let place = format!("{side}.weights.heads");
    Error::unless(fits, place, format_args!("a divisor of the width {width}"), heads)?;
    for (key, rate) in ["dropout", "attention_dropout"].into_iter().zip(rates) {
        let key = format!("{side}.weights.{key}");
        within(&key, rate, "in [0, 1)", |x| (0.0..1.0).contains(&x))?;
    }
    Ok(())
}

fn fits(key: &str, patch: usize, side: usize) -> Result<()> {
    Error::unless(side >= patch, key, format_args!("at least a patch of {patch}"), side)
}
