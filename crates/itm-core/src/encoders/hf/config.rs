//! Reads the fields of `config.json` that matter here; other fields are ignored.

use crate::Result;
use crate::encoders::{BertShape, VitShape};
use itm_data::Fields;

/// The sizes that every configuration of BERT and ViT has.
const SIZES: [&str; 4] =
    ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"];

/// The default of both for `layer_norm_eps`.
const EPSILON: f64 = 1e-12;

/// The sizes of a BERT.
pub(super) fn bert(fields: &Fields) -> Result<BertShape> {
    check(fields, "bert", ["vocab_size", "max_position_embeddings"])?;
    fields.only("position_embedding_type", "absolute")?;
    let width = fields.count("hidden_size", 0)?;
    Ok(BertShape {
        vocabulary: fields.count("vocab_size", 0)?,
        positions: fields.count("max_position_embeddings", 0)?,
        kinds: fields.count("type_vocab_size", 2)?,
        width,
        layers: fields.count("num_hidden_layers", 0)?,
        heads: fields.divisor(width, "num_attention_heads", 0)?,
        mlp: fields.count("intermediate_size", 0)?,
        epsilon: fields.real("layer_norm_eps", EPSILON)?,
        dropout: fields.share("hidden_dropout_prob", 0.1)?,
        attention_dropout: fields.share("attention_probs_dropout_prob", 0.1)?,
    })
}

/// The sizes of a ViT.
pub(super) fn vit(fields: &Fields) -> Result<VitShape> {
    check(fields, "vit", ["image_size", "patch_size"])?;
    fields.only_true("qkv_bias")?;
    let ([p, across], image) = (fields.sides("patch_size")?, fields.sides("image_size")?);
    let fits = p == across && (1..=image[0].min(image[1])).contains(&p);
    let got = format_args!("{p} x {across}, {image:?}");
    fields.unless(fits, "patch_size, image_size", "a square patch within the image", got)?;
    Ok(VitShape {
        dropout: fields.share("hidden_dropout_prob", 0.0)?,
        attention_dropout: fields.share("attention_probs_dropout_prob", 0.0)?,
        ..plain(fields, image, p, EPSILON)?
    })
}

/// The sizes of a ViT without dropout. An absent one has the value of the base model.
pub(crate) fn plain(
    fields: &Fields,
    image: [usize; 2],
    patch: usize,
    epsilon: f64,
) -> Result<VitShape> {
    let width = fields.count("hidden_size", 768)?;
    Ok(VitShape {
        image,
        patch,
        channels: fields.count("num_channels", 3)?,
        width,
        layers: fields.count("num_hidden_layers", 12)?,
        heads: fields.divisor(width, "num_attention_heads", 12)?,
        mlp: fields.count("intermediate_size", 3072)?,
        epsilon: fields.real("layer_norm_eps", epsilon)?,
        ..VitShape::base_16_384()
    })
}

/// An error for another architecture, an absent size, or another activation.
fn check(fields: &Fields, name: &str, sizes: [&str; 2]) -> Result<()> {
    let found = fields.text("model_type");
    let expected = format_args!("a model of the architecture \"{name}\"");
    let got = found.map_or("none".into(), |found| format!("\"{found}\""));
    fields.unless(found == Some(name), "model_type", expected, got)?;
    match SIZES.into_iter().chain(sizes).find(|size| !fields.has(size)) {
        Some(size) => fields.refused(size, "a number", "none"),
        None => fields.only("hidden_act", "gelu"),
    }
}
