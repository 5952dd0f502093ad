//! `config.json` of `transformers`, read into a [`DualShape`] and written from one.

use std::path::Path;

use itm_kernels::Activation;
use serde_json::{Value, json};

use super::{DualFamily, DualShape, TextTowerShape};
use crate::Result;
use crate::encoders::hf::config::plain;
use crate::encoders::{VitForm, VitShape};
use crate::files::read_json;
use itm_data::Fields;

/// CLIP's end piece in its tokenizers.
pub(super) const END: &str = "<|endoftext|>";

const NAMES: [(Activation, &str); 3] = [
    (Activation::Gelu, "gelu"),
    (Activation::QuickGelu, "quick_gelu"),
    (Activation::GeluTanh, "gelu_pytorch_tanh"),
];

fn activation(fields: &Fields, default: Activation) -> Result<Activation> {
    let Some(name) = fields.text("hidden_act") else { return Ok(default) };
    match NAMES.iter().find(|(_, theirs)| *theirs == name) {
        Some((activation, _)) => Ok(*activation),
        None => fields.refused("hidden_act", "gelu, quick_gelu or gelu_pytorch_tanh", name),
    }
}

fn name(activation: Activation) -> &'static str {
    NAMES.iter().find(|(ours, _)| *ours == activation).map_or("gelu", |(_, theirs)| theirs)
}

/// SigLIP ViT-B/16 at 224 px.
fn siglip_base_16() -> DualShape {
    let DualShape { image, text, .. } = DualShape::clip_base_32();
    let (activation, epsilon) = (Activation::GeluTanh, 1e-6);
    let image = VitShape { patch: 16, epsilon, activation, form: VitForm::Siglip, ..image };
    let text = TextTowerShape {
        vocabulary: 32_000,
        positions: 64,
        width: 768,
        heads: 12,
        mlp: 3072,
        epsilon,
        activation,
        end: None,
        ..text
    };
    DualShape { family: DualFamily::Siglip, image, text, joint: 768 }
}

/// Reads a folder's `config.json`.
pub(super) fn read(folder: &Path) -> Result<DualShape> {
    let config = Fields::read(&folder.join("config.json"))?;
    // What a key's absence means: the classes in `transformers` have the sizes of the base models.
    let usual = match config.text("model_type") {
        Some("clip") => DualShape::clip_base_32(),
        Some("siglip") => siglip_base_16(),
        other => {
            let expected = "\"clip\" or \"siglip\", a model of two towers";
            return config.refused("model_type", expected, what_it_is(other.unwrap_or("none")));
        }
    };
    // Older files hold the values in `text_config_dict`. They count alone: what they lack has the default of the class.
    let tower = |name: &str| {
        let older = format!("{name}_dict");
        config.object(if config.has(&older) { &older } else { name })
    };
    let (vision, text) = (tower("vision_config")?, tower("text_config")?);
    let image = image(&vision, &usual.image)?;
    let text_shape = text_of(&text, &usual.text, folder)?;
    let joint = match usual.family {
        DualFamily::Clip => config.count("projection_dim", usual.joint)?,
        DualFamily::Siglip => {
            let joint = text.count("projection_size", text_shape.width)?;
            let expected = format_args!("{}, the width of the image tower", image.width);
            text.unless(joint == image.width, "projection_size", expected, joint)?;
            joint
        }
    };
    Ok(DualShape { family: usual.family, image, text: text_shape, joint })
}

fn what_it_is(model_type: &str) -> String {
    let about = match model_type {
        "clip_text_model" | "clip_vision_model" | "siglip_text_model" | "siglip_vision_model" => {
            ": one tower without the other"
        }
        "siglip2" => {
            ": SigLIP 2 of any resolution (NaFlex); SigLIP 2 of one resolution says siglip"
        }
        "metaclip_2" | "mobileclip" | "align" | "altclip" | "chinese_clip" | "blip" => {
            ": another family"
        }
        _ => "",
    };
    format!("\"{model_type}\"{about}")
}

fn image(fields: &Fields, usual: &VitShape) -> Result<VitShape> {
    let side = fields.count("image_size", 224)?;
    let naflex = fields.has("num_patches") || fields.has("spatial_shapes");
    fields.unless(!naflex, "num_patches", "images of one size", "NaFlex")?;
    let pooled = fields.flag("vision_use_head", true);
    fields.unless(pooled, "vision_use_head", "true: the attention pool", "false")?;
    let patch = fields.count_to(side, "patch_size", usual.patch)?;
    let shape = plain(fields, [side, side], patch, usual.epsilon)?;
    fields.unless(shape.channels == 3, "num_channels", "3, as pictures have", shape.channels)?;
    let activation = activation(fields, usual.activation)?;
    Ok(VitShape { activation, form: usual.form, ..shape })
}

fn text_of(fields: &Fields, usual: &TextTowerShape, folder: &Path) -> Result<TextTowerShape> {
    let width = fields.count("hidden_size", usual.width)?;
    let vocabulary = fields.count("vocab_size", usual.vocabulary)?;
    let (end, highest) = match usual.end {
        // Older files say 2 although their tokenizers write another number; `transformers` then takes the highest.
        Some(_) => match fields.count_to(vocabulary - 1, "eos_token_id", 2)? {
            2 => {
                let (end, more) = end_piece(folder, vocabulary)?;
                (Some(end), more && fields.has("eos_token_id"))
            }
            end => (Some(end as u32), false),
        },
        None => (None, false),
    };
    Ok(TextTowerShape {
        vocabulary,
        positions: fields.count("max_position_embeddings", usual.positions)?,
        width,
        layers: fields.count("num_hidden_layers", usual.layers)?,
        heads: fields.divisor(width, "num_attention_heads", usual.heads)?,
        mlp: fields.count("intermediate_size", usual.mlp)?,
        epsilon: fields.real("layer_norm_eps", usual.epsilon)?,
        activation: activation(fields, usual.activation)?,
        end,
        highest,
    })
}

/// The number of the end piece in a folder's tokenizer, and whether the vocabulary has more numbers behind it: added words, or
/// padding. Without a tokenizer, it is the last number.
pub(super) fn end_piece(folder: &Path, vocabulary: usize) -> Result<(u32, bool)> {
    let mut end = vocabulary as u32 - 1;
    for (file, pieces) in [("vocab.json", ""), ("tokenizer.json", "/model/vocab")] {
        let path = folder.join(file);
        if path.exists() {
            let tokenizer: Value = read_json(&path, "word pieces in JSON")?;
            let number = tokenizer.pointer(pieces).and_then(|pieces| pieces[END].as_u64());
            end = number.and_then(|number| number.try_into().ok()).unwrap_or(end);
        }
    }
    Ok((end, (end as usize) < vocabulary - 1))
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
        words["eos_token_id"] = if text.highest { json!(2) } else { json!(text.end) };
        for object in [&mut vision, &mut words, &mut config] {
            object["projection_dim"] = json!(joint);
        }
    } else {
        words["projection_size"] = json!(joint);
    }
    (config["vision_config"], config["text_config"]) = (vision, words);
    config
}
