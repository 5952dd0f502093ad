//! `config.json` of `transformers`, read into a [`DualShape`] and written from one.

use std::path::Path;

use itm_kernels::Activation;
use serde_json::{Map, Value, json};

use super::{DualFamily, DualShape, TextTowerShape};
use crate::encoders::{VitForm, VitShape};
use crate::{Error, Result, files};

/// A JSON object of a configuration, with its place for messages.
pub(super) struct Fields {
    place: String,
    values: Map<String, Value>,
}

impl Fields {
    /// The object of a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = files::read(path, LARGEST_CONFIG)?;
        let values = serde_json::from_slice(&text)
            .map_err(|e| Error::invalid(&place, "a JSON object", e))?;
        Ok(Self { place, values })
    }

    /// An object inside; an empty one if it is absent or null.
    pub(super) fn object(&self, name: &str) -> Result<Self> {
        let place = format!("{}: {name}", self.place);
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(Self { place, values: Map::new() }),
            Some(Value::Object(values)) => Ok(Self { place, values: values.clone() }),
            Some(other) => Err(Error::invalid(place, "a JSON object", other)),
        }
    }

    /// These values before the own ones.
    fn beneath(mut self, over: Self) -> Self {
        self.values.extend(over.values);
        self
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| !value.is_null())
    }

    pub(super) fn refused<T>(&self, name: &str, expected: &str, got: impl ToString) -> Result<T> {
        Err(Error::invalid(format!("{}: {name}", self.place), expected, got.to_string()))
    }

    /// A number of things, at least 1.
    pub(super) fn count(&self, name: &str, default: usize) -> Result<usize> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => match value.as_u64().filter(|n| (1..=LARGEST_COUNT).contains(n)) {
                Some(n) => Ok(n as usize),
                None => {
                    let expected = format!("a whole number from 1 to {LARGEST_COUNT}");
                    self.refused(name, &expected, value)
                }
            },
        }
    }

    pub(super) fn real(&self, name: &str, default: f64) -> Result<f64> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => match value.as_f64().filter(|x| *x > 0.0) {
                Some(x) => Ok(x),
                None => self.refused(name, "a number above 0", value),
            },
        }
    }

    pub(super) fn is_list(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(Value::is_array)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.values.get(name) == Some(&Value::Bool(true))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str)
    }

    fn activation(&self, default: Activation) -> Result<Activation> {
        match self.text("hidden_act") {
            None => Ok(default),
            Some(name) => match NAMES.iter().find(|(_, theirs)| *theirs == name) {
                Some((activation, _)) => Ok(*activation),
                None => self.refused("hidden_act", "gelu, quick_gelu or gelu_pytorch_tanh", name),
            },
        }
    }

    /// Heads that divide a width.
    fn heads(&self, width: usize, default: usize) -> Result<usize> {
        let heads = self.count("num_attention_heads", default)?;
        if width.is_multiple_of(heads) {
            return Ok(heads);
        }
        let got = format!("{heads}, {width}");
        self.refused("num_attention_heads", "a divisor of the hidden_size", got)
    }
}

/// A configuration is some kilobytes.
const LARGEST_CONFIG: u64 = 16 << 20;

/// No size of a published model comes near it, and products of two stay within 64 bits.
const LARGEST_COUNT: u64 = 1 << 24;

const NAMES: [(Activation, &str); 3] = [
    (Activation::Gelu, "gelu"),
    (Activation::QuickGelu, "quick_gelu"),
    (Activation::GeluTanh, "gelu_pytorch_tanh"),
];

fn name(activation: Activation) -> &'static str {
    NAMES.iter().find(|(ours, _)| *ours == activation).map_or("gelu", |(_, theirs)| theirs)
}

/// What a key's absence means: the defaults of the classes in `transformers`.
struct Defaults {
    family: DualFamily,
    form: VitForm,
    activation: Activation,
    epsilon: f64,
    /// Width, mlp, heads, vocabulary, positions of the text tower.
    text: [usize; 5],
    patch: usize,
}

const CLIP: Defaults = Defaults {
    family: DualFamily::Clip,
    form: VitForm::Clip,
    activation: Activation::QuickGelu,
    epsilon: 1e-5,
    text: [512, 2048, 8, 49_408, 77],
    patch: 32,
};

const SIGLIP: Defaults = Defaults {
    family: DualFamily::Siglip,
    form: VitForm::Siglip,
    activation: Activation::GeluTanh,
    epsilon: 1e-6,
    text: [768, 3072, 12, 32_000, 64],
    patch: 16,
};

/// Reads a folder's `config.json`.
pub(super) fn read(folder: &Path) -> Result<DualShape> {
    let config = Fields::read(&folder.join("config.json"))?;
    let defaults = match config.text("model_type") {
        Some("clip") => CLIP,
        Some("siglip") => SIGLIP,
        other => {
            let expected = "\"clip\" or \"siglip\", a model of two towers";
            return config.refused("model_type", expected, what_it_is(other.unwrap_or("none")));
        }
    };
    // Older files hold the values in `text_config_dict`, and those win.
    let tower =
        |name: &str| Ok(config.object(name)?.beneath(config.object(&format!("{name}_dict"))?));
    let (vision, text): (Fields, Fields) = (tower("vision_config")?, tower("text_config")?);
    let image = image(&vision, &defaults)?;
    let text_shape = text_of(&text, &defaults)?;
    let joint = match defaults.family {
        DualFamily::Clip => config.count("projection_dim", 512)?,
        DualFamily::Siglip => {
            let joint = text.count("projection_size", text_shape.width)?;
            if joint != image.width {
                let expected = format!("{}, the width of the image tower", image.width);
                return text.refused("projection_size", &expected, joint);
            }
            joint
        }
    };
    Ok(DualShape { family: defaults.family, image, text: text_shape, joint })
}

fn what_it_is(model_type: &str) -> String {
    let about = match model_type {
        "clip_text_model" | "clip_vision_model" | "siglip_text_model" | "siglip_vision_model" => {
            ": one tower without the other"
        }
        "siglip2" => {
            ": SigLIP 2 of any resolution (NaFlex); those of a fixed resolution say siglip"
        }
        "metaclip_2" | "mobileclip" | "align" | "altclip" | "chinese_clip" | "blip" => {
            ": another family"
        }
        _ => "",
    };
    format!("\"{model_type}\"{about}")
}

fn image(fields: &Fields, defaults: &Defaults) -> Result<VitShape> {
    let width = fields.count("hidden_size", 768)?;
    let (side, patch) =
        (fields.count("image_size", 224)?, fields.count("patch_size", defaults.patch)?);
    if side < patch {
        return fields.refused("patch_size", &format!("at most the image_size {side}"), patch);
    }
    if fields.has("num_patches") || fields.has("spatial_shapes") {
        return fields.refused("num_patches", "images of one size", "NaFlex");
    }
    if fields.values.get("vision_use_head") == Some(&Value::Bool(false)) {
        return fields.refused("vision_use_head", "true: the attention pool", "false");
    }
    Ok(VitShape {
        image: [side, side],
        patch,
        channels: fields.count("num_channels", 3)?,
        width,
        layers: fields.count("num_hidden_layers", 12)?,
        heads: fields.heads(width, 12)?,
        mlp: fields.count("intermediate_size", 3072)?,
        epsilon: fields.real("layer_norm_eps", defaults.epsilon)?,
        dropout: 0.0,
        attention_dropout: 0.0,
        activation: fields.activation(defaults.activation)?,
        form: defaults.form,
    })
}

fn text_of(fields: &Fields, defaults: &Defaults) -> Result<TextTowerShape> {
    let [width, mlp, heads, vocabulary, positions] = defaults.text;
    let width = fields.count("hidden_size", width)?;
    let vocabulary = fields.count("vocab_size", vocabulary)?;
    let end = match defaults.family {
        // Older files say 2 although their tokenizers write the last number of the vocabulary.
        DualFamily::Clip => Some(match fields.values.get("eos_token_id").and_then(Value::as_u64) {
            Some(end) if end != 2 => u32::try_from(end).unwrap_or(u32::MAX),
            _ => vocabulary as u32 - 1,
        }),
        DualFamily::Siglip => None,
    };
    if end.is_some_and(|end| end as usize >= vocabulary) {
        let expected = format!("below the vocab_size {vocabulary}");
        return fields.refused("eos_token_id", &expected, end.unwrap_or_default());
    }
    Ok(TextTowerShape {
        vocabulary,
        positions: fields.count("max_position_embeddings", positions)?,
        width,
        layers: fields.count("num_hidden_layers", 12)?,
        heads: fields.heads(width, heads)?,
        mlp: fields.count("intermediate_size", mlp)?,
        epsilon: fields.real("layer_norm_eps", defaults.epsilon)?,
        activation: fields.activation(defaults.activation)?,
        end,
    })
}

/// `config.json` for `transformers`.
pub(super) fn written(shape: &DualShape) -> Value {
    let DualShape { family, image, text, joint } = shape;
    let clip = *family == DualFamily::Clip;
    let (kind, class) = if clip { ("clip", "CLIPModel") } else { ("siglip", "SiglipModel") };
    let mut vision = json!({
        "model_type": format!("{kind}_vision_model"),
        "hidden_size": image.width,
        "num_hidden_layers": image.layers,
        "num_attention_heads": image.heads,
        "intermediate_size": image.mlp,
        "hidden_act": name(image.activation),
        "layer_norm_eps": image.epsilon,
        "image_size": image.image[0],
        "patch_size": image.patch,
        "num_channels": image.channels,
        "attention_dropout": 0.0,
    });
    let mut words = json!({
        "model_type": format!("{kind}_text_model"),
        "hidden_size": text.width,
        "num_hidden_layers": text.layers,
        "num_attention_heads": text.heads,
        "intermediate_size": text.mlp,
        "hidden_act": name(text.activation),
        "layer_norm_eps": text.epsilon,
        "vocab_size": text.vocabulary,
        "max_position_embeddings": text.positions,
        "attention_dropout": 0.0,
    });
    let mut config = json!({ "model_type": kind, "architectures": [class] });
    if clip {
        words["eos_token_id"] = json!(text.end);
        for object in [&mut vision, &mut words, &mut config] {
            object["projection_dim"] = json!(joint);
        }
    } else {
        words["projection_size"] = json!(joint);
    }
    (config["vision_config"], config["text_config"]) = (vision, words);
    config
}
