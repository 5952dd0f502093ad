//! `open_clip_config.json`, read into a [`DualShape`] and written from one.

use std::path::Path;

use itm_kernels::Activation;
use serde_json::{Map, Value, json};

use super::config::end_piece;
use super::{DualFamily, DualShape, TextTowerShape};
use crate::encoders::{VitForm, VitShape};
use crate::files::read_json;
use crate::weights::OPEN_CLIP_CONFIG;
use crate::{Error, Result};
use itm_data::Fields;

/// ε of every norm, where `norm_kwargs` does not change it.
const EPSILON: f64 = 1e-5;

/// Reads a folder's `open_clip_config.json`.
pub(super) fn read(folder: &Path) -> Result<DualShape> {
    let model = Fields::read(&folder.join(OPEN_CLIP_CONFIG))?.object("model_cfg")?;
    let (vision, text) = (model.object("vision_cfg")?, model.object("text_cfg")?);
    let plain = "CLIP's own transformers";
    for (fields, name, got) in [
        (&vision, "timm_model_name", "a tower of timm"),
        (&text, "hf_model_name", "a tower of another library"),
        (&vision, "ls_init_value", "a layer scale"),
        (&vision, "attn_pooler_queries", "another pool"),
    ] {
        fields.unless(!fields.has(name), name, plain, got)?;
    }
    for (fields, name) in [
        (&model, "custom_text"),
        (&vision, "attentional_pool"),
        (&vision, "no_ln_pre"),
        (&text, "no_causal_mask"),
        (&text, "embed_cls"),
    ] {
        fields.unless(!fields.flag(name, false), name, "none", "true")?;
    }
    let expected = "one number: a vision transformer";
    vision.unless(!vision.is_list("layers"), "layers", expected, "a list: a ResNet")?;
    vision.only("pool_type", "tok")?;
    text.only("pool_type", "argmax")?;
    for fields in [&vision, &text] {
        let epsilon = fields.object("norm_kwargs")?.real("eps", EPSILON)?;
        fields.unless(epsilon == EPSILON, "norm_kwargs", "eps 1e-5", epsilon)?;
        fields.unless(fields.is_empty("act_kwargs"), "act_kwargs", "none", "some")?;
    }
    let activation =
        if model.flag("quick_gelu", false) { Activation::QuickGelu } else { Activation::Gelu };
    let mlp = |fields: &Fields, width: usize| -> Result<usize> {
        let mlp = fields.real("mlp_ratio", 4.0)? * width as f64;
        fields.unless(mlp >= 1.0, "mlp_ratio", "a hidden width", mlp)?;
        Ok(mlp as usize)
    };
    let width = vision.count("width", 768)?;
    let side = vision.count("image_size", 224)?;
    let image = VitShape {
        image: [side, side],
        patch: vision.count_to(side, "patch_size", 16)?,
        width,
        layers: vision.count("layers", 12)?,
        heads: width / vision.divisor(width, "head_width", 64)?,
        mlp: mlp(&vision, width)?,
        epsilon: EPSILON,
        activation,
        form: VitForm::Clip,
        ..VitShape::base_16_384()
    };
    let width = text.count("width", 512)?;
    let vocabulary = text.count("vocab_size", 49_408)?;
    let (end, highest) = end_piece(folder, vocabulary)?;
    let text = TextTowerShape {
        vocabulary,
        positions: text.count("context_length", 77)?,
        width,
        layers: text.count("layers", 12)?,
        heads: text.divisor(width, "heads", 8)?,
        mlp: mlp(&text, width)?,
        epsilon: EPSILON,
        activation,
        end: Some(end),
        highest,
    };
    Ok(DualShape { family: DualFamily::Clip, image, text, joint: model.count("embed_dim", 512)? })
}

/// `open_clip_config.json` with this model; how pictures are prepared stays as the folder has it.
///
/// # Errors
/// If the file cannot hold the model, or the folder's is damaged.
pub(super) fn written(folder: &Path, shape: &DualShape) -> Result<Value> {
    let DualShape { family, image, text, joint } = shape;
    let expected = "a CLIP for open_clip's layout";
    Error::unless(*family == DualFamily::Clip, folder.display(), expected, "a SigLIP")?;
    let plain = image.activation != Activation::GeluTanh && image.activation == text.activation;
    let fits = plain && [image.epsilon, text.epsilon] == [EPSILON; 2];
    let expected = "one activation, GELU or QuickGELU, and ε 1e-5 for open_clip's layout";
    let (of_image, of_text) = (image.activation, text.activation);
    let got = format_args!("{of_image:?}, {of_text:?}, ε {} and {}", image.epsilon, text.epsilon);
    Error::unless(fits, folder.display(), expected, got)?;
    // open_clip rounds ratio · width down.
    let ratio = |mlp: usize, width: usize| {
        let ratio = mlp as f64 / width as f64;
        if (ratio * width as f64) < mlp as f64 { ratio.next_up() } else { ratio }
    };
    let model = json!({
        "embed_dim": joint,
        "quick_gelu": image.activation == Activation::QuickGelu,
        "vision_cfg": {
            "image_size": image.image[0],
            "layers": image.layers,
            "width": image.width,
            "head_width": image.width / image.heads,
            "patch_size": image.patch,
            "mlp_ratio": ratio(image.mlp, image.width),
        },
        "text_cfg": {
            "context_length": text.positions,
            "vocab_size": text.vocabulary,
            "width": text.width,
            "heads": text.heads,
            "layers": text.layers,
            "mlp_ratio": ratio(text.mlp, text.width),
        },
    });
    let path = folder.join(OPEN_CLIP_CONFIG);
    let mut config: Map<String, Value> = match path.exists() {
        true => read_json(&path, "a JSON object")?,
        false => Map::new(),
    };
    config.insert("model_cfg".into(), model);
    Ok(config.into())
}
