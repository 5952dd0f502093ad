//! FNE's training step at the paper's size: one row in a process of its own, one line of JSON.
//!
//! ```text
//! cargo bench -p fne --bench paper_step -- --list
//! cargo bench -p fne --bench paper_step -- fne-step-384 ours --threads 2 --seconds 4
//! ```
//!
//! ViT-B/16 and BERT base with random weights, both momentum encoders, a bank of 8,192 that is in use, 4 pairs, captions of 30
//! word pieces, dropout as BERT has it, weights and draw of the default preset, clipped Adam. `cargo xtask performance` runs it
//! beside PyTorch's, which `tests/reference/performance.py` measures in the same way. Freed memory is kept and steps run on a
//! thread of the pool, as `itm` does. `fne-step-tiny` is for trying it out;
//! the variant `recompute` keeps the input of each block alone.

#![allow(clippy::print_stdout)] // a benchmark prints its result

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fne::{
    Batch, BertShape, Device, Fne, FneConfig, ImageConfig, Images, Memory, Method, ModelConfig,
    Observe, Preset, TextConfig, VitShape, Weights,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

/// Pairs of a step.
const BATCH: usize = 4;
/// Word pieces of a caption.
const PIECES: usize = 30;

/// What a row trains.
struct Row {
    name: &'static str,
    image: VitShape,
    text: BertShape,
    bank: usize,
}

fn rows() -> Vec<Row> {
    let row = |name, side| Row {
        name,
        image: VitShape { image: [side; 2], ..VitShape::base_16_384() },
        text: BertShape::base_uncased(),
        bank: 8192,
    };
    vec![row("fne-step-224", 224), row("fne-step-384", 384), tiny()]
}

fn tiny() -> Row {
    let (width, layers, heads, mlp) = (16, 1, 2, 32);
    Row {
        name: "fne-step-tiny",
        image: VitShape { image: [32; 2], width, layers, heads, mlp, ..VitShape::base_16_384() },
        text: BertShape { vocabulary: 50, width, layers, heads, mlp, ..BertShape::base_uncased() },
        bank: 12,
    }
}

fn main() -> ExitCode {
    itm_kernels::memory::keep_freed(); // as `itm`
    // `cargo bench` adds a flag of its own; `cargo test --benches` starts it with nothing, and has no use for timings.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] => {
            step_of(&tiny(), Memory::Recompute).and_then(|mut step| (0..3).try_for_each(|_| step()))
        }
        ["--list"] => {
            let listed = rows().into_iter().filter(|row| row.name != tiny().name);
            listed.for_each(|row| println!("{} ours", row.name));
            Ok(())
        }
        [row, variant, "--threads", threads, "--seconds", seconds] => {
            start(threads).and_then(|()| rayon::scope(|_| run(row, variant, seconds))) // as `itm`
        }
        _ => Err("expected --list or ROW VARIANT --threads N --seconds S".to_owned()),
    };
    outcome.map_or_else(
        |reason| {
            eprintln!("{reason}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|&n| n > 0);
    number.ok_or(format!("expected a number, got {text}"))
}

fn start(threads: &str) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(number(threads)?);
    pool.build_global().map_err(|error| error.to_string())
}

fn run(name: &str, variant: &str, seconds: &str) -> Result<(), String> {
    let memory = match variant {
        "ours" => Memory::Keep,
        "recompute" => Memory::Recompute,
        other => return Err(format!("no variant {other}: ours, recompute")),
    };
    let seconds = Duration::from_secs(number(seconds)? as u64);
    let row = rows().into_iter().find(|row| row.name == name).ok_or(format!("no row {name}"))?;
    let start_bytes = peak_bytes();
    let mut step = step_of(&row, memory)?;
    let mut times = measure(&mut step, seconds)?;
    times.sort_by(f64::total_cmp);
    let line = json!({
        "row": name, "variant": variant, "best": times[0], "median": times[times.len() / 2], "calls": times.len(),
        "peak_bytes": peak_bytes(), "start_bytes": start_bytes, "threads": rayon::current_num_threads(),
    });
    println!("{line}");
    Ok(())
}

type Step = Box<dyn FnMut() -> Result<(), String>>;

/// Builds everything and gives one step.
fn step_of(row: &Row, memory: Memory) -> Result<Step, String> {
    let (config, size) = (config(row, memory), row.image.image[0]);
    let mut fne = Fne::new(&config, 0, row.text.vocabulary, &Device::flex(), 1)
        .map_err(|error| error.to_string())?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let pixels: Vec<f32> =
        (0..BATCH * 3 * size * size).map(|_| rng.random_range(-1.0..1.0)).collect();
    let piece = |_| rng.random_range(1..row.text.vocabulary as u32);
    let pieces: Vec<u32> = (0..BATCH * PIECES).map(piece).collect();
    let mut number = 0;
    Ok(Box::new(move || {
        let texts: Vec<&[u32]> = pieces.chunks(PIECES).collect();
        let ids: Vec<i64> = (number..number + BATCH as i64).collect();
        number += BATCH as i64;
        let images = Images::Pixels { size, values: &pixels };
        let batch =
            Batch { images, texts: &texts, image_ids: &ids, caption_ids: &ids, train: None };
        let report = fne.step(&batch, number as u64, Observe::Off);
        report.map(|_| ()).map_err(|error| error.to_string())
    }))
}

fn config(row: &Row, memory: Memory) -> FneConfig {
    let mut config = Preset::Default.config();
    let ModelConfig { embed_dim, image, text, .. } = &mut config.model;
    *embed_dim = row.image.width;
    if let (ImageConfig::Vit(image), TextConfig::Bert(text)) = (image, text) {
        (image.weights, image.image_size) =
            (Weights::Random(row.image.clone()), row.image.image[0]);
        text.weights = Weights::Random(row.text.clone());
        (image.activations, text.activations) = (memory, memory);
    }
    (config.train.batch, config.train.micro_batch) = (BATCH, BATCH);
    (config.sampler.bank_size, config.sampler.warmup_epochs) = (row.bank, 0);
    config
}

/// Seconds of every call: at least three, and until `time` has passed; a warm-up before.
fn measure(step: &mut Step, time: Duration) -> Result<Vec<f64>, String> {
    let start = Instant::now();
    step()?;
    while start.elapsed() < time.min(Duration::from_millis(500)) {
        step()?;
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || start.elapsed() < time {
        let before = Instant::now();
        step()?;
        times.push(before.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// Largest resident memory of this process; `None` where the system does not tell.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}
