//! Low-rank adapters in the files of PEFT, merged into weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use super::{TensorNames, WeightFiles};
use crate::{Error, Result, host, parameters};
use itm_data::Fields;

/// The configuration of an adapter.
pub(crate) const CONFIG: &str = "adapter_config.json";
/// The matrices of an adapter.
pub(crate) const MATRICES: &str = "adapter_model.safetensors";

/// The names of A and B in a file, for a map of the names in `names`, such as `encoder.layer.0.output.dense.weight`.
pub(crate) fn matrices(map: &str) -> [String; 2] {
    let map = map.strip_suffix("weight").map_or(format!("{map}."), str::to_owned);
    ["lora_A", "lora_B"].map(|kind| format!("base_model.model.{map}{kind}.weight"))
}

/// The module with an adapter of PEFT (`adapter_config.json`, `adapter_model.safetensors`) in its linear maps:
///
/// ```text
/// W ← W + (α/r) B A
/// ```
///
/// | symbol | in the file | shape |
/// |---|---|---|
/// | A, B | `base_model.model.NAME.lora_A.weight`, `….lora_B.weight` | `[r, in]`, `[out, r]` |
/// | α, r | `lora_alpha`, `r` | |
///
/// `NAME` is a map as the files of the model name it or as `transformers` names the module, with or without a prefix of the architecture.
///
/// # Errors
/// If a file is missing or damaged; if the adapter is no plain LoRA (the error names the setting); or if one of its maps is
/// not in this module or has another shape.
pub(crate) fn merged<M: Module>(module: M, names: &TensorNames, folder: &Path) -> Result<M> {
    let (rank, factor) = read_config(&folder.join(CONFIG))?;
    let files = WeightFiles::open(folder.join(MATRICES))?;
    let mut left: BTreeSet<String> = files.names().map(str::to_owned).collect();

    // The values of changed parameters, by our names.
    let (mut changed, mut failed) = (BTreeMap::new(), None);
    parameters::visit("", &module, |ours, shape, values| {
        let &[rows, columns] = shape else { return };
        if failed.is_some() || !names.is_transposed(ours) {
            return;
        }
        // Maps of the file lie side by side in one of ours.
        let theirs = names.of(ours);
        let part = columns / theirs.len();
        let mut merge = |k: usize, name: &str| {
            let mut prefixed = names
                .prefixes
                .iter()
                .flat_map(|prefix| modules(name).map(|name| matrices(&format!("{prefix}{name}"))));
            let found = prefixed.find(|pair| pair.iter().any(|name| left.contains(name)));
            let Some([a, b]) = found else { return Ok(()) };
            let device = values.device();
            let [a, b] = [(a, [rank, rows]), (b, [part, rank])].map(|(name, shape)| {
                left.remove(&name);
                let values = TensorData::new(files.f32s_of(&name, &shape)?, shape);
                Ok(Tensor::<2>::from_data(values, &device))
            });
            let delta = host(b?.matmul(a?).transpose() * factor);
            let all = changed.entry(ours.to_owned()).or_insert_with(|| host(values.clone()));
            for (row, delta) in all.chunks_exact_mut(columns).zip(delta.chunks_exact(part)) {
                row[k * part..(k + 1) * part].iter_mut().zip(delta).for_each(|(w, d)| *w += d);
            }
            Ok(())
        };
        failed = theirs.iter().enumerate().find_map(|(k, name)| merge(k, name).err());
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(first) = left.first() {
        let got = format!("{first}, and {} more", left.len() - 1);
        return Err(Error::invalid(files.place(), "maps of this model", got));
    }
    Error::unless(!changed.is_empty(), files.place(), "maps of this model", "none")?;
    parameters::replace("", module, |ours, _| Ok(changed.remove(ours)))
}

/// A map as the files of a model name it, and as `transformers` 5 names its modules in ViT and DINOv2: PEFT writes those.
fn modules(name: &str) -> [String; 3] {
    const NEWER: [(&str, &str); 6] = [
        ("attention.attention.query", "attention.q_proj"),
        ("attention.attention.key", "attention.k_proj"),
        ("attention.attention.value", "attention.v_proj"),
        ("attention.output.dense", "attention.o_proj"),
        ("intermediate.dense", "mlp.fc1"),
        ("output.dense", "mlp.fc2"),
    ];
    let newer = NEWER.iter().fold(name.to_owned(), |name, (old, new)| name.replace(old, new));
    let alone = newer.replacen("encoder.layer.", "layers.", 1);
    [name.to_owned(), newer, alone]
}

/// r and α/r.
fn read_config(path: &Path) -> Result<(usize, f64)> {
    let config = Fields::read(path)?;
    match config.text("peft_type") {
        Some("LORA") => {}
        other => return config.refused("peft_type", "LORA", other.unwrap_or("none")),
    }
    for name in ["use_dora", "fan_in_fan_out", "lora_bias"] {
        config.unless(!config.flag(name, false), name, "false", true)?;
    }
    config.only("bias", "none")?;
    // PiSSA, OLoRA, CorDA, LoRA-GA and LoftQ also change the weights that the adapter is added to.
    if let Some(start) = config.text("init_lora_weights") {
        let keeps = ["gaussian", "eva", "orthogonal", "mica"].contains(&start);
        let expected = "a start that keeps the weights of the model";
        config.unless(keeps, "init_lora_weights", expected, start)?;
    }
    for name in ["rank_pattern", "alpha_pattern", "modules_to_save"] {
        config.unless(config.is_empty(name), name, "nothing", "a list")?;
    }
    let rank = config.count("r", 8)?;
    let root = if config.flag("use_rslora", false) { (rank as f64).sqrt() } else { rank as f64 };
    Ok((rank, config.real("lora_alpha", 8.0)? / root))
}
