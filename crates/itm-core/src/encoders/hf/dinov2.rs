//! DINOv2's folders, read into a plain [`Vit`].

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use itm_kernels::Linear;

use super::VIT;
use super::config::plain;
use crate::Result;
use crate::encoders::{Vit, VitShape};
use crate::weights::{LoadReport, TensorNames, Unknown, WeightFiles};
use itm_data::Fields;

/// Its `model_type`.
pub(super) const NAME: &str = "dinov2";

pub(super) const DINOV2: TensorNames = TensorNames {
    prefixes: &["", "dinov2."],
    layers: &[
        ("norm", &["layernorm"]),
        ("norm_1", &["norm1"]),
        (
            "attention.qkv",
            &["attention.attention.query", "attention.attention.key", "attention.attention.value"],
        ),
        ("attention.out", &["attention.output.dense"]),
        ("norm_2", &["norm2"]),
        ("up", &["mlp.fc1"]),
        ("down", &["mlp.fc2"]),
    ],
    // `folded` reads the layer scales.
    unknown: Unknown::Reported,
    ..VIT
};

/// Reads the sizes of a folder's `config.json`.
pub(super) fn shape(fields: &Fields) -> Result<VitShape> {
    let gated = fields.flag("use_swiglu_ffn", false);
    let expected = "false: two linear maps with a GELU";
    fields.unless(!gated, "use_swiglu_ffn", expected, "true")?;
    fields.only_true("qkv_bias")?;
    fields.only("hidden_act", "gelu")?;
    let side = fields.count("image_size", 224)?;
    let patch = fields.count_to(side, "patch_size", 14)?;
    let shape = plain(fields, [side, side], patch, 1e-6)?;
    Ok(VitShape { mlp: fields.count("mlp_ratio", 4)? * shape.width, ..shape })
}

/// The weights of a file with its layer scales. A layer scale λ multiplies what a block adds, so it is folded into the map before it:
///
/// ```text
/// λ ⊙ (x W + b) = x (W diag λ) + λ ⊙ b
/// ```
pub(super) fn folded(
    mut model: Vit,
    mut report: LoadReport,
    files: &WeightFiles,
    device: &Device,
) -> Result<(Vit, LoadReport)> {
    report.unexpected.retain(|name| !name.contains(".layer_scale"));
    for (i, block) in model.blocks.iter_mut().enumerate() {
        for (part, map) in [(1, &mut block.attention.out), (2, &mut block.down)] {
            let name = format!("encoder.layer.{i}.layer_scale{part}.lambda1");
            let name = files.names().find(|theirs| theirs.ends_with(&name)).unwrap_or(&name);
            let values = files.f32s_of(name, &[model.shape.width])?;
            report.loaded += 1;
            scale(map, values, device);
        }
    }
    Ok((model, report))
}

fn scale(map: &mut Linear, values: Vec<f32>, device: &Device) {
    let width = values.len();
    let values = Tensor::<1>::from_data(TensorData::new(values, [width]), device);
    let scaled = |value: Tensor<2>| (value * values.clone().unsqueeze()).detach();
    map.weight = Param::from_tensor(scaled(map.weight.val()));
    map.bias = Param::from_tensor(scaled(map.bias.val().unsqueeze()).reshape([width]));
}
