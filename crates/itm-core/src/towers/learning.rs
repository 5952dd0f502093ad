//! Which parameters of a pair of towers learn.

use burn::module::Module;
use itm_kernels::TransformerBlock;
use serde::{Deserialize, Serialize};

use super::{
    Encoders, ImageConfig, ImageEncoder, JointLayer, ModelConfig, TextConfig, TextEncoder,
};
use crate::{Error, Result};

/// Which parameters learn. The others keep their bits, cost no gradient and no moments of the optimiser. An encoder without blocks
/// (features, GRU, bag) learns as a whole, and so does a learnt temperature.
///
/// | | linear map, or SigLIP's pool, after the blocks | norm after the last block | last n blocks | the rest |
/// |---|---|---|---|---|
/// | `all` | learns | learns | learn | learns |
/// | `{ last = n }` | learns | learns | learn | |
/// | `heads` | learns | | | |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LearningParts {
    /// All.
    #[default]
    All,
    /// Only what is behind the blocks.
    Heads,
    /// Also the last n blocks.
    Last(usize),
}

impl LearningParts {
    /// Whether all parameters learn.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Refuses a part that the towers do not have. `key` names the option.
    ///
    /// # Errors
    /// If no tower has blocks, or nothing would learn.
    pub fn check(self, key: &str, model: &ModelConfig) -> Result<()> {
        if self.is_all() {
            return Ok(());
        }
        if !model.has_blocks() {
            let expected = "\"all\", because neither encoder has blocks";
            return Err(Error::invalid(key, expected, format!("{self:?}")));
        }
        let image =
            !matches!(&model.image, ImageConfig::Vit(c) if c.projection == JointLayer::None);
        let text = !matches!(&model.text, TextConfig::Bert(c) if c.projection == JointLayer::None);
        match self {
            Self::Heads if !image && !text => {
                let expected =
                    "an encoder with a linear map after its blocks: projection = \"linear\"";
                Err(Error::invalid(key, expected, "none"))
            }
            Self::Last(0) => Err(Error::invalid(key, "at least 1 block, or \"heads\"", 0)),
            _ => Ok(()),
        }
    }

    /// Number of the first block that learns.
    fn first(self, blocks: usize) -> usize {
        match self {
            Self::All => 0,
            Self::Heads => blocks,
            Self::Last(n) => blocks.saturating_sub(n),
        }
    }

    /// Blocks of which the last learn as in `whole`.
    fn blocks(self, fixed: &mut [TransformerBlock], whole: &[TransformerBlock]) {
        let first = self.first(whole.len());
        fixed[first..].clone_from_slice(&whole[first..]);
    }
}

impl Encoders {
    /// The encoders in which only these parts learn. Their values stay as they are.
    #[must_use]
    pub fn with_learning(self, parts: LearningParts) -> Self {
        if parts.is_all() {
            return self;
        }
        let last = parts != LearningParts::Heads;
        let image = match self.image {
            ImageEncoder::Features(map) => ImageEncoder::Features(map),
            ImageEncoder::Vit(mut encoder) => {
                let whole = encoder.vit.clone();
                encoder.vit = encoder.vit.no_grad();
                parts.blocks(&mut encoder.vit.blocks, &whole.blocks);
                if last {
                    encoder.vit.norm = whole.norm;
                }
                ImageEncoder::Vit(encoder)
            }
            ImageEncoder::Clip(mut encoder) => {
                let whole = encoder.tower.vit.clone();
                encoder.tower.vit = encoder.tower.vit.no_grad();
                parts.blocks(&mut encoder.tower.vit.blocks, &whole.blocks);
                if last {
                    encoder.tower.vit.norm = whole.norm;
                }
                ImageEncoder::Clip(encoder)
            }
        };
        let text = match self.text {
            TextEncoder::Bert(mut encoder) => {
                let whole = encoder.bert.clone();
                encoder.bert = encoder.bert.no_grad();
                parts.blocks(&mut encoder.bert.blocks, &whole.blocks);
                TextEncoder::Bert(encoder)
            }
            TextEncoder::Clip(tower) => {
                let whole = tower.clone();
                let mut tower = tower.no_grad();
                parts.blocks(&mut tower.blocks, &whole.blocks);
                if last {
                    tower.norm = whole.norm;
                }
                (tower.projection, tower.projection_bias) =
                    (whole.projection, whole.projection_bias);
                TextEncoder::Clip(tower)
            }
            other => other,
        };
        Self { image, text, ..self }
    }
}
