//! Reads and writes the fields of `config.json` that matter here; other fields are ignored.

use std::path::Path;

use itm_kernels::Activation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::encoders::{BertShape, VitForm, VitShape};
use crate::files::read_json;
use crate::{Error, Result};

/// Fields of both architectures.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Common {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "epsilon")]
    layer_norm_eps: f64,
    hidden_dropout_prob: Option<f64>,
    attention_probs_dropout_prob: Option<f64>,
}

fn epsilon() -> f64 {
    1e-12
}

fn gelu() -> String {
    "gelu".into()
}

fn yes() -> bool {
    true
}

fn absolute() -> String {
    "absolute".into()
}

fn two() -> usize {
    2
}

fn rgb() -> usize {
    3
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BertConfig {
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    #[serde(flatten)]
    common: Common,
    vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "absolute")]
    position_embedding_type: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VitConfig {
    model_type: String,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    #[serde(flatten)]
    common: Common,
    image_size: Sides,
    patch_size: Sides,
    #[serde(default = "rgb")]
    num_channels: usize,
    #[serde(default = "yes")]
    qkv_bias: bool,
}

/// One number for both sides, or height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Sides {
    Square(usize),
    Both([usize; 2]),
}

impl Sides {
    fn both(self) -> [usize; 2] {
        match self {
            Self::Square(side) => [side; 2],
            Self::Both(sides) => sides,
        }
    }
}

/// Reads a folder's `config.json`. The architecture is checked before any other field.
pub(super) fn read<C: DeserializeOwned>(folder: &Path, name: &str) -> Result<C> {
    let path = folder.join("config.json");
    let value: Value = read_json(&path, "JSON")?;
    let architecture = value.get("model_type").map_or("none".to_string(), Value::to_string);
    let expected = format!("a model of the architecture \"{name}\"");
    let same = architecture == format!("\"{name}\"");
    Error::unless(same, path.display(), expected, architecture)?;
    let expected = format!("the configuration of a \"{name}\"");
    serde_json::from_value(value).map_err(|e| Error::invalid(path.display(), expected, e))
}

/// An error if a setting is not the supported one.
fn known(folder: &Path, field: &str, expected: &str, got: String) -> Result<()> {
    if got == expected { Ok(()) } else { Err(refused(folder, field, expected, got)) }
}

/// The error of a setting.
fn refused(folder: &Path, field: &str, expected: &str, got: String) -> Error {
    Error::invalid(format!("{}: {field}", folder.join("config.json").display()), expected, got)
}

impl Common {
    /// Checks the fields, and gives both dropouts, of which an absent one is `dropout`.
    fn check(&self, folder: &Path, dropout: f64) -> Result<[f64; 2]> {
        known(folder, "hidden_act", "gelu", self.hidden_act.clone())?;
        let (d, heads) = (self.hidden_size, self.num_attention_heads);
        if d == 0 || heads == 0 || !d.is_multiple_of(heads) {
            let expected = "a divisor of the hidden_size";
            let got = format!("{heads}, {d}");
            return Err(refused(folder, "num_attention_heads", expected, got));
        }
        let shares = [self.hidden_dropout_prob, self.attention_probs_dropout_prob];
        let shares = shares.map(|share| share.unwrap_or(dropout));
        let names = ["hidden_dropout_prob", "attention_probs_dropout_prob"];
        match names.into_iter().zip(shares).find(|(_, share)| !(0.0..1.0).contains(share)) {
            Some((name, share)) => Err(refused(folder, name, "a share below 1", share.to_string())),
            None => Ok(shares),
        }
    }
}

impl BertConfig {
    pub(super) fn shape(&self, folder: &Path) -> Result<BertShape> {
        let c = &self.common;
        let [dropout, attention_dropout] = c.check(folder, 0.1)?;
        let positions = self.position_embedding_type.clone();
        known(folder, "position_embedding_type", "absolute", positions)?;
        let tables = [self.vocab_size, self.max_position_embeddings, self.type_vocab_size];
        if tables.contains(&0) {
            let fields = "vocab_size, max_position_embeddings, type_vocab_size";
            return Err(refused(folder, fields, "none of them 0", format!("{tables:?}")));
        }
        Ok(BertShape {
            vocabulary: self.vocab_size,
            positions: self.max_position_embeddings,
            kinds: self.type_vocab_size,
            width: c.hidden_size,
            layers: c.num_hidden_layers,
            heads: c.num_attention_heads,
            mlp: c.intermediate_size,
            epsilon: c.layer_norm_eps,
            dropout,
            attention_dropout,
        })
    }

    pub(super) fn of(shape: &BertShape) -> Self {
        Self {
            model_type: "bert".into(),
            architectures: Some(vec!["BertModel".into()]),
            common: Common {
                hidden_size: shape.width,
                num_hidden_layers: shape.layers,
                num_attention_heads: shape.heads,
                intermediate_size: shape.mlp,
                hidden_act: gelu(),
                layer_norm_eps: shape.epsilon,
                hidden_dropout_prob: Some(shape.dropout),
                attention_probs_dropout_prob: Some(shape.attention_dropout),
            },
            vocab_size: shape.vocabulary,
            max_position_embeddings: shape.positions,
            type_vocab_size: shape.kinds,
            position_embedding_type: absolute(),
        }
    }
}

impl VitConfig {
    pub(super) fn shape(&self, folder: &Path) -> Result<VitShape> {
        let c = &self.common;
        let [dropout, attention_dropout] = c.check(folder, 0.0)?;
        known(folder, "qkv_bias", "true", self.qkv_bias.to_string())?;
        let ([p, across], image) = (self.patch_size.both(), self.image_size.both());
        if p != across || p == 0 || image.iter().any(|&side| side < p) || self.num_channels == 0 {
            let got = format!("{p} x {across}, {image:?}");
            let fields = "patch_size, image_size";
            return Err(refused(folder, fields, "a square patch within the image", got));
        }
        Ok(VitShape {
            image,
            patch: p,
            channels: self.num_channels,
            width: c.hidden_size,
            layers: c.num_hidden_layers,
            heads: c.num_attention_heads,
            mlp: c.intermediate_size,
            epsilon: c.layer_norm_eps,
            dropout,
            attention_dropout,
            activation: Activation::Gelu,
            form: VitForm::Plain,
        })
    }

    pub(super) fn of(shape: &VitShape) -> Self {
        let [h, w] = shape.image;
        Self {
            model_type: "vit".into(),
            architectures: Some(vec!["ViTModel".into()]),
            common: Common {
                hidden_size: shape.width,
                num_hidden_layers: shape.layers,
                num_attention_heads: shape.heads,
                intermediate_size: shape.mlp,
                hidden_act: gelu(),
                layer_norm_eps: shape.epsilon,
                hidden_dropout_prob: Some(shape.dropout),
                attention_probs_dropout_prob: Some(shape.attention_dropout),
            },
            image_size: if h == w { Sides::Square(h) } else { Sides::Both([h, w]) },
            patch_size: Sides::Square(shape.patch),
            num_channels: shape.channels,
            qkv_bias: true,
        }
    }
}
