//! Low-rank adapters of a pair of towers: which maps have one, and their files.

use burn::module::Module;
use itm_kernels::{LowRank, TransformerBlock};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Encoders, ImageConfig, ImageEncoder, ModelConfig, TextConfig, TextEncoder, derive};
use crate::checkpoint::CheckpointWriter;
use crate::encoders::DualLayout;
use crate::encoders::hf::{self, is_dinov2, vit_names};
use crate::learn::at_least_one;
use crate::weights::{TensorNames, adapter};
use crate::{Error, Result, host};

/// LoRA: adapters of rank r in the blocks of both towers. Their other values are frozen.
///
/// ```text
/// W′ = W + (α/r) B A
/// ```
///
/// Before the first step A is random and B is 0, so W′ = W: see [`LowRank`]. The defaults are PEFT's, and its maps of BERT. Source: Hu et al. 2022
/// (arXiv 2106.09685).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LoraConfig {
    /// r, at most the narrower side of a map.
    pub rank: usize,
    /// α
    pub alpha: usize,
    /// The linear maps of each block that have an adapter.
    pub maps: Vec<BlockMap>,
}

impl Default for LoraConfig {
    fn default() -> Self {
        Self { rank: 8, alpha: 8, maps: vec![BlockMap::Query, BlockMap::Value] }
    }
}

/// A linear map of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockMap {
    /// To the queries of attention.
    Query,
    /// To the keys of attention.
    Key,
    /// To the values of attention.
    Value,
    /// Behind attention.
    Out,
    /// The first of the two behind each other.
    Up,
    /// The second of the two.
    Down,
}

/// Our names of [`TransformerBlock::linears`].
const LAYERS: [&str; 4] = ["attention.qkv", "attention.out", "up", "down"];

impl BlockMap {
    /// The place in [`LAYERS`] of the layer that has this map, and which part of its columns: part, parts.
    fn place(self) -> (usize, [usize; 2]) {
        match self {
            Self::Query => (0, [0, 3]),
            Self::Key => (0, [1, 3]),
            Self::Value => (0, [2, 3]),
            Self::Out => (1, [0, 1]),
            Self::Up => (2, [0, 1]),
            Self::Down => (3, [0, 1]),
        }
    }

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl LoraConfig {
    /// Refuses values that no adapter can have, and names the option.
    pub(super) fn check(&self) -> Result<()> {
        at_least_one("train.parts.lora.rank", self.rank)?;
        at_least_one("train.parts.lora.alpha", self.alpha)?;
        let again = |k: usize| self.maps[..k].contains(&self.maps[k]);
        let got = match (0..self.maps.len()).find(|&k| again(k)) {
            Some(k) => format!("\"{}\" twice", self.maps[k].name()),
            None if self.maps.is_empty() => "none".into(),
            None => return Ok(()),
        };
        Err(Error::invalid("train.parts.lora.maps", "some maps of a block, each once", got))
    }

    /// The encoders with adapters in their blocks, whose other values do not learn. An encoder without blocks learns as a whole, and so do a
    /// linear map that the configuration puts behind the blocks and a learnt temperature.
    pub(super) fn added_to(
        &self,
        mut encoders: Encoders,
        model: &ModelConfig,
        seed: u64,
    ) -> Result<Encoders> {
        self.check()?;
        self.check_scales(model)?;
        let [of_image, of_text] = [9, 10].map(|part| derive(seed, part));
        match &mut encoders.image {
            ImageEncoder::Features(_) => {}
            ImageEncoder::Vit(encoder) => encoder.vit = encoder.vit.clone().no_grad(),
            ImageEncoder::Clip(encoder) => encoder.tower = encoder.tower.clone().no_grad(),
        }
        match &mut encoders.text {
            TextEncoder::Bert(encoder) => encoder.bert = encoder.bert.clone().no_grad(),
            TextEncoder::Clip(tower) => *tower = tower.clone().no_grad(),
            TextEncoder::Gru(_) | TextEncoder::Bag(_) => {}
        }
        self.add(encoders.image.blocks_mut(), of_image)?;
        self.add(encoders.text.blocks_mut(), of_text)?;
        Ok(encoders)
    }

    /// DINOv2 scales what `out` and `down` give, and its loaded maps contain that scale: an adapter in the map is not one of the file.
    fn check_scales(&self, model: &ModelConfig) -> Result<()> {
        let ImageConfig::Vit(vit) = &model.image else { return Ok(()) };
        let Some(folder) = vit.weights.folder()? else { return Ok(()) };
        let scaled = |map: &&BlockMap| matches!(map, BlockMap::Out | BlockMap::Down);
        match self.maps.iter().find(scaled) {
            Some(map) if is_dinov2(&folder)? => {
                let expected = "query, key, value or up: DINOv2 scales what the other maps give";
                Err(Error::invalid("train.parts.lora.maps", expected, map.name()))
            }
            _ => Ok(()),
        }
    }

    fn add(&self, blocks: &mut [TransformerBlock], seed: u64) -> Result<()> {
        let factor = self.alpha as f64 / self.rank as f64;
        for (i, block) in blocks.iter_mut().enumerate() {
            for (k, map) in self.maps.iter().enumerate() {
                let (layer, [part, parts]) = map.place();
                let linears = block.linears_mut();
                let linear = &mut *linears[layer];
                let ([inputs, all], device) = (linear.weight.dims(), linear.weight.val().device());
                let columns = all / parts;
                let most = inputs.min(columns);
                let expected = format!("at most {most}, the narrower side of {}", map.name());
                Error::unless(self.rank <= most, "train.parts.lora.rank", expected, self.rank)?;
                let seed = derive(seed, (i * self.maps.len() + k) as u64);
                let sizes = [inputs, self.rank, columns];
                linear.changes.push(LowRank::seeded(sizes, part * columns, factor, seed, &device));
            }
        }
        Ok(())
    }

    /// The files of the adapters, by name.
    pub(super) fn files(
        &self,
        encoders: &Encoders,
        model: &ModelConfig,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let image = match (&encoders.image, &model.image) {
            (ImageEncoder::Vit(encoder), ImageConfig::Vit(config)) => {
                let folder = config.weights.folder()?;
                let names = folder.as_deref().map_or(Ok(hf::VIT), vit_names)?;
                let (blocks, base) = (&encoder.vit.blocks, config.weights.name());
                Some(Tower { blocks, ours: "blocks.", names, base })
            }
            (ImageEncoder::Clip(encoder), ImageConfig::Clip(config)) => {
                let names = DualLayout::Transformers.names(config.folder()?.1.family);
                let (blocks, base) = (&encoder.tower.vit.blocks, Some(config.weights.as_str()));
                Some(Tower { blocks, ours: "image.vit.blocks.", names, base })
            }
            _ => None,
        };
        let text = match (&encoders.text, &model.text) {
            (TextEncoder::Bert(encoder), TextConfig::Bert(config)) => {
                let (blocks, base) = (&encoder.bert.blocks, config.weights.name());
                Some(Tower { blocks, ours: "blocks.", names: hf::BERT, base })
            }
            (TextEncoder::Clip(tower), TextConfig::Clip(config)) => {
                let names = DualLayout::Transformers.names(config.folder()?.1.family);
                let (blocks, base) = (&tower.blocks, Some(config.weights.as_str()));
                Some(Tower { blocks, ours: "text.blocks.", names, base })
            }
            _ => None,
        };
        match (image, text) {
            // Two towers of one model.
            (Some(image), Some(text)) if image.base.is_some() && image.base == text.base => {
                self.written("adapter", &[image, text])
            }
            (image, text) => {
                let mut files = vec![];
                for (folder, tower) in [("adapter_image", image), ("adapter_text", text)] {
                    let tower = tower.map(|tower| self.written(folder, &[tower])).transpose()?;
                    files.extend(tower.unwrap_or_default());
                }
                Ok(files)
            }
        }
    }

    /// The two files of a folder, as PEFT writes them.
    fn written(&self, folder: &str, towers: &[Tower]) -> Result<Vec<(String, Vec<u8>)>> {
        let (mut file, mut maps) = (CheckpointWriter::default(), vec![]);
        for tower in towers {
            for (i, block) in tower.blocks.iter().enumerate() {
                for map in &self.maps {
                    let (layer, [part, parts]) = map.place();
                    let linear = block.linears()[layer];
                    let first = part * linear.weight.dims()[1] / parts;
                    let change = linear.changes.iter().find(|change| change.first == first);
                    let Some(change) = change else { continue };
                    let name = tower
                        .names
                        .of(&format!("{}{i}.{}.weight", tower.ours, LAYERS[layer]))
                        .swap_remove(part);
                    let [a, b] = adapter::matrices(&name);
                    for (name, value) in [(a, &change.a), (b, &change.b)] {
                        let value = value.val().transpose();
                        file.values(&name, &value.dims(), &host(value.inner()));
                    }
                    maps.push(name.trim_end_matches(".weight").to_owned());
                }
            }
        }
        let config = json!({
            "base_model_name_or_path": towers[0].base,
            "bias": "none",
            "fan_in_fan_out": false,
            "inference_mode": true,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "peft_type": "LORA",
            "r": self.rank,
            "target_modules": maps,
            "task_type": null,
        });
        let path = |name| format!("{folder}/{name}"); // also on Windows
        Ok(vec![
            (path(adapter::MATRICES), file.contents("pt")?),
            (path(adapter::CONFIG), format!("{config:#}\n").into_bytes()),
        ])
    }
}

/// The blocks of a tower, and what its files call them.
struct Tower<'a> {
    blocks: &'a [TransformerBlock],
    /// The start of the names of its blocks in `names`.
    ours: &'static str,
    names: TensorNames,
    /// The published model.
    base: Option<&'a str>,
}

#[cfg(test)]
pub(super) mod tests;
