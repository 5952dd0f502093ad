//! FNE's training step at the paper's size. Each row runs in its own process and prints one line of JSON.
//!
//! ```text
//! cargo bench -p fne --bench paper_step -- --list
//! cargo bench -p fne --bench paper_step -- fne-step-384 ours --threads 2 --seconds 4
//! ```
//!
//! The step has ViT-B/16 and BERT base with random weights, both momentum encoders, a bank of 8,192 that is in use, 4 pairs,
//! captions of 30 word pieces, BERT's dropout, weights and draw of the default preset, and clipped Adam. `python tests/performance.py`
//! runs this step beside the PyTorch step, which `tests/reference/performance.py` measures in the same way. `fne-step-tiny` is for
//! trying the benchmark out. The variant `recompute` keeps only the input of each block.
//!
//! On a GPU (`--features tch` or `wgpu`) the variants are `tch`, `tch-cuda` and `wgpu`, and the row `fne-step-384-paper` has the paper's 32 pairs:
//! [`docs/results.md`](../../../docs/results.md) has its times.

#![cfg_attr(feature = "tch", allow(deprecated))] // burn will drop burn-tch: docs/decisions/0028

#[path = "../../itm-core/benches/process/mod.rs"]
mod process;

use std::process::ExitCode;

use fne::{
    Batch, BertShape, Device, Fne, FneConfig, ImageConfig, Images, Memory, Method, ModelConfig,
    Observe, Preset, TextConfig, VitShape, Weights,
};
use itm_kernels::Precision;
use process::{Listed, Step};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Pairs of a step on a processor, and the paper's.
const BATCH: usize = 4;
const PAPER_BATCH: usize = 32;
/// Word pieces of a caption.
const PIECES: usize = 30;

/// Rows that `python tests/performance.py` does not measure.
const UNLISTED: [&str; 2] = ["fne-step-384-paper", "fne-step-tiny"];

/// What a row trains.
struct Row {
    name: &'static str,
    image: VitShape,
    text: BertShape,
    bank: usize,
    batch: usize,
}

fn rows() -> Vec<Row> {
    let row = |name, side, batch| Row {
        name,
        batch,
        image: VitShape { image: [side; 2], ..VitShape::base_16_384() },
        text: BertShape::base_uncased(),
        bank: 8192,
    };
    let mut rows = vec![row("fne-step-224", 224, BATCH), row("fne-step-384", 384, BATCH)];
    rows.extend([row(UNLISTED[0], 384, PAPER_BATCH), tiny()]);
    rows
}

fn tiny() -> Row {
    let (width, layers, heads, mlp) = (16, 1, 2, 32);
    Row {
        name: UNLISTED[1],
        batch: BATCH,
        image: VitShape { image: [32; 2], width, layers, heads, mlp, ..VitShape::base_16_384() },
        text: BertShape { vocabulary: 50, width, layers, heads, mlp, ..BertShape::base_uncased() },
        bank: 12,
    }
}

fn main() -> ExitCode {
    let bf16 = Precision::Bf16.here() == Precision::Bf16;
    let variants = if bf16 { vec!["ours", "ours-bf16"] } else { vec!["ours"] };
    let listed = rows().into_iter().filter(|row| !UNLISTED.contains(&row.name));
    let listed: Vec<Listed> = listed.map(|row| (row.name.to_owned(), variants.clone())).collect();
    let step = |name: &str, variant: &str| {
        let (memory, precision, device) = match variant {
            "ours" => (Memory::Keep, Precision::F32, Device::flex()),
            "ours-bf16" => (Memory::Keep, Precision::Bf16, Device::flex()),
            "recompute" => (Memory::Recompute, Precision::F32, Device::flex()),
            #[cfg(feature = "tch")]
            "tch" => (Memory::Keep, Precision::F32, Device::libtorch()),
            #[cfg(feature = "tch")]
            "tch-cuda" => (Memory::Keep, Precision::F32, Device::libtorch_cuda(0)),
            #[cfg(feature = "wgpu")]
            "wgpu" => (Memory::Keep, Precision::F32, Device::wgpu(Default::default())),
            other => return Err(format!("no variant {other} in this build")),
        };
        let row =
            rows().into_iter().find(|row| row.name == name).ok_or(format!("no row {name}"))?;
        step_of(&row, memory, precision, &device)
    };
    let try_out = || {
        step_of(&tiny(), Memory::Recompute, Precision::Bf16, &Device::flex())
            .and_then(|mut step| (0..3).try_for_each(|_| step()))
    };
    process::main(&listed, step, try_out)
}

/// Builds everything and gives one step.
fn step_of(
    row: &Row,
    memory: Memory,
    precision: Precision,
    device: &Device,
) -> Result<Step, String> {
    let (mut config, size, pairs) = (config(row, memory), row.image.image[0], row.batch);
    config.train.precision = precision;
    let mut fne =
        Fne::new(&config, 0, row.text.vocabulary, device).map_err(|error| error.to_string())?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let pixels: Vec<f32> =
        (0..pairs * 3 * size * size).map(|_| rng.random_range(-1.0..1.0)).collect();
    let piece = |_| rng.random_range(1..row.text.vocabulary as u32);
    let pieces: Vec<u32> = (0..pairs * PIECES).map(piece).collect();
    let mut number = 0;
    Ok(Box::new(move || {
        let texts: Vec<&[u32]> = pieces.chunks(PIECES).collect();
        let ids: Vec<i64> = (number..number + pairs as i64).collect();
        number += pairs as i64;
        let images = Images::Pixels { size, values: &pixels };
        let batch =
            Batch { images, texts: &texts, image_ids: &ids, caption_ids: &ids, train: None };
        let report = fne.step(&batch, number as u64, Observe::Off);
        report.map(|_| ()).map_err(|error| error.to_string())
    }))
}

fn config(row: &Row, memory: Memory) -> FneConfig {
    let mut config = FneConfig::preset(Preset::Default);
    let ModelConfig { embed_dim, image, text, .. } = &mut config.model;
    *embed_dim = row.image.width;
    if let (ImageConfig::Vit(image), TextConfig::Bert(text)) = (image, text) {
        (image.weights, image.image_size) =
            (Weights::Random(row.image.clone()), row.image.image[0]);
        text.weights = Weights::Random(row.text.clone());
        let recomputes = memory == Memory::Recompute;
        (image.gradient_checkpointing, text.gradient_checkpointing) = (recomputes, recomputes);
    }
    (config.train.batch, config.train.micro_batch) = (row.batch, row.batch);
    (config.sampler.bank_size, config.sampler.warmup_epochs) = (row.bank, 0);
    config
}
