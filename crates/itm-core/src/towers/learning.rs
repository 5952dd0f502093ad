//! Which parameters of a pair of towers learn, and at what rate.

use burn::module::Module;
use itm_kernels::{AdamOptions, DecayRule, Precision, TransformerBlock};
use serde::{Deserialize, Serialize};

use super::{
    BertEncoder, Encoders, ImageConfig, JointLayer, LoraConfig, ModelConfig, TextConfig,
    TextEncoder,
};
use crate::learn::{Trainer, within};
use crate::{Error, Result, parameters};

/// Which parameters learn. The others keep their bits, cost no gradient and no moments of the optimiser. An encoder without blocks
/// (features, GRU, bag) learns as a whole, and so does a learnt temperature.
///
/// | | linear map, or SigLIP's pool, after the blocks | norm after the last block | last n blocks | the rest |
/// |---|---|---|---|---|
/// | `all` | learns | learns | learn | learns |
/// | `{ last = n }` | learns | learns | learn | |
/// | `heads` | learns | | | |
/// | `{ lora = … }` | learns if the configuration adds it | | | adapters learn, in all blocks |
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// Adapters of low rank in all blocks, in place of the blocks.
    Lora(LoraConfig),
}

impl LearningParts {
    /// Whether all parameters learn.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Whether the first blocks may stay as they are, with nothing added.
    pub fn freezes(&self) -> bool {
        matches!(self, Self::Heads | Self::Last(_))
    }

    fn check(&self, model: &ModelConfig) -> Result<()> {
        if self.is_all() {
            return Ok(());
        }
        let key = "train.parts";
        let expected = "\"all\", because neither encoder has blocks";
        Error::unless(model.has_blocks(), key, expected, format_args!("{self:?}"))?;
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
            Self::Lora(lora) => lora.check(),
            _ => Ok(()),
        }
    }

    /// Passes the files of adapters to `write`, in the layout of PEFT: `adapter/…` of two towers of one published model, else
    /// `adapter_image/…` and `adapter_text/…`. None without LoRA.
    ///
    /// # Errors
    /// If a published folder is missing or damaged; the errors of `write`.
    pub fn save(
        &self,
        encoders: &Encoders,
        model: &ModelConfig,
        write: &mut dyn FnMut(&str, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Self::Lora(lora) = self else { return Ok(()) };
        lora.files(encoders, model)?.iter().try_for_each(|(name, contents)| write(name, contents))
    }

    /// Makes the last blocks learn as in `whole`. Returns the number of the first that learns.
    fn blocks(&self, fixed: &mut [TransformerBlock], whole: &[TransformerBlock]) -> usize {
        let first = match self {
            Self::All => 0,
            Self::Heads | Self::Lora(_) => whole.len(),
            Self::Last(n) => whole.len().saturating_sub(*n),
        };
        fixed[first..].clone_from_slice(&whole[first..]);
        first
    }
}

impl ModelConfig {
    /// Refuses options of a training that these towers cannot have: parts that learn, a [layer-wise decay of the rate](Encoders::learner), a
    /// precision.
    ///
    /// # Errors
    /// If an option needs blocks and neither encoder has any, if nothing would learn, or the decay is not in (0, 1]. Names the option.
    pub fn check_training(
        &self,
        parts: &LearningParts,
        layer_decay: Option<f64>,
        precision: Precision,
    ) -> Result<()> {
        parts.check(self)?;
        if let Some(decay) = layer_decay {
            let (key, expected) =
                ("train.layer_decay", "no such key, because neither encoder has blocks");
            Error::unless(self.has_blocks(), key, expected, decay)?;
            within(key, decay, "in (0, 1]", |x| x > 0.0 && x <= 1.0)?;
        }
        let fits = precision.is_f32() || self.has_blocks();
        let expected = "\"f32\", because neither encoder has blocks";
        Error::unless(fits, "train.precision", expected, "\"bf16\"")
    }
}

impl Encoders {
    /// A learner of the encoders before its first step. With a layer-wise decay δ of the rate, the parameters near the input of a
    /// tower of L blocks learn more slowly, as in the fine-tuning of BEiT:
    ///
    /// ```text
    /// η_l = η · δ^(L + 1 − l)
    /// ```
    ///
    /// | l | parameters |
    /// |---|---|
    /// | 0 | before the blocks: patches, words, positions, class row, a norm |
    /// | 1 … L | block l |
    /// | L + 1 | behind the blocks: norm, pool, linear map |
    ///
    /// An encoder without blocks learns at the rate η, and so does a learnt temperature.
    ///
    /// The decay of weights acts only on linear maps and on tables of words: not on gains, biases, positions, class rows,
    /// temperature.
    ///
    /// # Panics
    /// If the decay is not above 0 and at most 1, or as [`Trainer::new`].
    pub fn learner(self, options: AdamOptions, layer_decay: Option<f64>) -> Trainer<Self> {
        let towers = self.clone();
        towers.learner_of(self, options, layer_decay)
    }

    /// As [`learner`](Self::learner), of a module that has the parameters of these encoders, in the same order.
    ///
    /// # Panics
    /// As [`learner`](Self::learner).
    pub fn learner_of<M: Module>(
        &self,
        module: M,
        options: AdamOptions,
        layer_decay: Option<f64>,
    ) -> Trainer<M> {
        let fits = layer_decay.is_none_or(|decay| decay > 0.0 && decay <= 1.0);
        assert!(fits, "a layer decay above 0 and at most 1, got {layer_decay:?}");
        let options = AdamOptions { decayed: DecayRule::Matrices(&["positions"]), ..options };
        let factors = layer_decay.map(|decay| {
            let [image, text] = [factors(&self.image, decay), factors(&self.text, decay)];
            [image, text, factors(&self.contrast, decay)].concat()
        });
        Trainer::new(module, options).with_factors(factors.unwrap_or_default())
    }

    /// The encoders of `model` in which only these parts learn. Their rows stay as they are. The seed decides where adapters begin.
    ///
    /// # Errors
    /// If an option of the adapters is out of its range, or a map has none of the rank, or none that its files can hold.
    pub fn with_learning(
        self,
        parts: &LearningParts,
        model: &ModelConfig,
        seed: u64,
    ) -> Result<Self> {
        match parts {
            LearningParts::All => Ok(self),
            LearningParts::Lora(lora) => lora.added_to(self, model, seed),
            LearningParts::Heads | LearningParts::Last(_) => Ok(self.with_last(parts)),
        }
    }

    fn with_last(mut self, parts: &LearningParts) -> Self {
        let last = *parts != LearningParts::Heads;
        if let Some(vit) = self.image.vit_mut() {
            let whole = vit.clone();
            *vit = vit.clone().no_grad();
            let first = parts.blocks(&mut vit.blocks, &whole.blocks);
            if last {
                vit.norm = whole.norm;
            }
            self.image.freeze_first(first);
        }
        match &mut self.text {
            TextEncoder::Bert(BertEncoder { bert, .. }) => {
                let whole = bert.blocks.clone();
                *bert = bert.clone().no_grad();
                parts.blocks(&mut bert.blocks, &whole);
            }
            TextEncoder::Clip(tower) => {
                let whole = tower.clone();
                *tower = tower.clone().no_grad();
                parts.blocks(&mut tower.blocks, &whole.blocks);
                if last {
                    tower.norm = whole.norm;
                }
                tower.projection = whole.projection;
                tower.projection_bias = whole.projection_bias;
            }
            TextEncoder::Gru(_) | TextEncoder::Bag(_) => {}
        }
        self
    }
}

/// δ^(L + 1 − l) of each parameter. The fields of an encoder stand in the order in which the data pass them.
fn factors<M: Module>(encoder: &M, decay: f64) -> Vec<f64> {
    let mut blocks = vec![];
    parameters::visit("", encoder, |path, _, _| blocks.push(block(path)));
    let layers = blocks.iter().flatten().max().map_or(0, |last| last + 1);
    let mut layer = if layers > 0 { 0 } else { 1 };
    let factor = |block: Option<i32>| {
        layer = match block {
            Some(block) => block + 1,
            None if layer > 0 => layers + 1,
            None => 0,
        };
        decay.powi(layers + 1 - layer)
    };
    blocks.into_iter().map(factor).collect()
}

/// The number of the block that a parameter is in, counted from 0.
fn block(path: &str) -> Option<i32> {
    path.split_once("blocks.")?.1.split('.').next()?.parse().ok()
}

#[cfg(test)]
pub(super) mod tests;
