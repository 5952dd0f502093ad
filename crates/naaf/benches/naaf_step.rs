//! NAAF's training step at the paper's size, and its cross attention by itself: one row in a process of its own, one line of JSON.
//!
//! ```text
//! cargo bench -p naaf --bench naaf_step -- --list
//! cargo bench -p naaf --bench naaf_step -- naaf-step-per-caption ours --threads 2 --seconds 4
//! ```
//!
//! 128 images of 36 regions of 2,048 numbers, 128 captions of 12 words on average, 1,024 wide, as the default preset mines and
//! attends; hinge with hardest negatives. `naaf-cross-…` begins at unit rows and ends at their gradients; `naaf-step-…` is the
//! region map, the recurrent unit in both directions and clipped Adam too. `cargo xtask performance` runs it beside PyTorch's,
//! which `tests/reference/performance.py` measures in the same way. Freed memory is kept and steps run on a thread of the pool,
//! as `itm` does.

#![allow(clippy::print_stdout)] // a benchmark prints its result

use std::process::ExitCode;
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_core::encoders::{BiGruText, BiGruTextShape, TokenBatch, unit_rows};
use itm_core::{Block, Hardest, host, triplet};
use itm_kernels::{AdamOptions, AdamW, Linear, uniform};
use naaf::{
    Boundary, Captions, CrossProducts, MiningConfig, NaafConfig, Phase, Preset, Schedule, mine,
    word_scores,
};
use serde_json::json;

const MARGIN: f64 = 0.2;
const WORD_WIDTH: usize = 300;

/// What a row trains.
#[derive(Clone, Copy)]
struct Size {
    batch: usize,
    regions: usize,
    region_width: usize,
    width: usize,
    vocabulary: usize,
}

const PAPER: Size =
    Size { batch: 128, regions: 36, region_width: 2048, width: 1024, vocabulary: 8481 };
const TINY: Size = Size { batch: 20, regions: 5, region_width: 7, width: 9, vocabulary: 50 };

const ROWS: [(&str, Whole, Schedule); 4] = [
    ("naaf-cross-per-batch", Whole::Cross, Schedule::PerBatch),
    ("naaf-cross-per-caption", Whole::Cross, Schedule::PerCaption),
    ("naaf-step-per-batch", Whole::Step, Schedule::PerBatch),
    ("naaf-step-per-caption", Whole::Step, Schedule::PerCaption),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Whole {
    Cross,
    Step,
}

fn main() -> ExitCode {
    itm_kernels::memory::keep_freed(); // as `itm`
    // `cargo bench` adds a flag of its own; `cargo test --benches` starts it with nothing, and has no use for timings.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] => {
            ROWS.iter().for_each(|&(_, whole, schedule)| step_of(TINY, whole, schedule)());
            Ok(())
        }
        ["--list"] => {
            ROWS.iter().for_each(|(name, ..)| println!("{name} ours"));
            Ok(())
        }
        [row, "ours", "--threads", threads, "--seconds", seconds] => {
            start(threads).and_then(|()| rayon::scope(|_| run(row, seconds))) // as `itm`
        }
        _ => Err("expected --list or ROW ours --threads N --seconds S".to_owned()),
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

fn run(name: &str, seconds: &str) -> Result<(), String> {
    let seconds = Duration::from_secs(number(seconds)? as u64);
    let row = ROWS.iter().find(|row| row.0 == name).ok_or(format!("no row {name}"))?;
    let start_bytes = peak_bytes();
    let mut step = step_of(PAPER, row.1, row.2);
    let mut times = measure(&mut step, seconds);
    times.sort_by(f64::total_cmp);
    let line = json!({
        "row": name, "variant": "ours", "best": times[0], "median": times[times.len() / 2], "calls": times.len(),
        "peak_bytes": peak_bytes(), "start_bytes": start_bytes, "threads": rayon::current_num_threads(),
    });
    println!("{line}");
    Ok(())
}

type Step = Box<dyn FnMut()>;

/// Builds everything and gives one step.
fn step_of(size: Size, whole: Whole, schedule: Schedule) -> Step {
    match whole {
        Whole::Cross => cross(size, schedule),
        Whole::Step => all(size, schedule),
    }
}

fn cross(size: Size, schedule: Schedule) -> Step {
    let device = Device::flex().autodiff();
    let lengths = lengths(size);
    let rows = |n: usize, seed| unit_rows(uniform([n, size.width], 1.0, seed, &device)).inner();
    let regions = rows(size.batch * size.regions, 1);
    let texts = rows(size.batch * lengths[0], 2);
    let mut objective = Objective::new(schedule);
    Box::new(move || {
        let of = |rows: &Tensor<2>, n| {
            let shape = [size.batch, n, size.width];
            Tensor::<3>::from_inner(rows.clone().reshape(shape)).require_grad()
        };
        let (regions, texts) = (of(&regions, size.regions), of(&texts, lengths[0]));
        let loss = objective.loss(regions.clone(), texts.clone(), &lengths);
        let grads = loss.backward();
        std::hint::black_box([regions.grad(&grads), texts.grad(&grads)]);
    })
}

/// Both encoders.
#[derive(Module, Debug)]
struct Encoders {
    image: Linear,
    text: BiGruText,
}

fn all(size: Size, schedule: Schedule) -> Step {
    let device = Device::flex().autodiff();
    let (vocabulary, hidden) = (size.vocabulary, size.width);
    let shape = BiGruTextShape { vocabulary, word_width: WORD_WIDTH, hidden };
    let mut model = Some(Encoders {
        image: Linear::seeded(size.region_width, size.width, 1, &device),
        text: BiGruText::new(&shape, 2, &device),
    });
    let mut optimiser = AdamW::new(AdamOptions { clip: Some(2.0), ..AdamOptions::default() });
    let rows = size.batch * size.regions;
    let regions = uniform([rows, size.region_width], 1.0, 3, &device);
    let lengths = lengths(size);
    let words = lengths
        .iter()
        .enumerate()
        .map(|(c, &n)| (0..n).map(|k| ((c * 7919 + k * k * 331) % vocabulary) as u32).collect());
    let captions = TokenBatch::new(&words.collect::<Vec<Vec<u32>>>());
    let mut objective = Objective::new(schedule);
    Box::new(move || {
        let Some(now) = model.take() else { return };
        let v = unit_rows(now.image.forward(regions.clone()));
        let v = v.reshape([size.batch, size.regions, size.width]);
        let loss = objective.loss(v, now.text.encode(&captions), &lengths);
        let grads = GradientsParams::from_grads(loss.backward(), &now);
        model = Some(optimiser.step(now, grads, 5e-4).0);
    })
}

/// From rows to the loss; the boundary moves from step to step.
struct Objective {
    config: NaafConfig,
    mining: MiningConfig,
    boundary: Boundary,
}

impl Objective {
    fn new(schedule: Schedule) -> Self {
        let config = Preset::Default.config();
        let mining = MiningConfig { schedule, ..config.mining.clone() };
        Self { config, mining, boundary: Boundary::default() }
    }

    fn loss(&mut self, regions: Tensor<3>, texts: Tensor<3>, lengths: &[usize]) -> Tensor<1> {
        let counts = vec![regions.dims()[1]; regions.dims()[0]];
        let products = CrossProducts::new(regions, &counts, texts, lengths);
        let (rule, b) = (self.config.attention.rule(Phase::Training), lengths.len());
        let own: Vec<usize> = (0..b).collect();
        let captions = Captions { lengths, own: &own, epoch: 0, seed: 1 };
        let plain = products.host();
        let words = |i, c, pool| word_scores(&plain, i, c, pool);
        let (boundary, mining) = (&mut self.boundary, &self.mining);
        let scores = match mining.schedule {
            Schedule::PerCaption => {
                let column = |c, t| plain.column(&rule, c, t);
                let thresholds = mine(boundary, mining, &captions, column, words);
                products.scores(&rule, &thresholds)
            }
            Schedule::PerBatch => {
                let scores = products.scores(&rule, &vec![boundary.t as f32; b]);
                let values = host(scores.clone().inner());
                let column = |c: usize, _| values[c..].iter().step_by(b).copied().collect();
                mine(boundary, mining, &captions, column, words);
                scores
            }
        };
        let texts = triplet(&Block::in_batch(scores.clone()), &mut Hardest, MARGIN);
        let images = triplet(&Block::in_batch(scores.transpose()), &mut Hardest, MARGIN);
        texts.sum() + images.sum()
    }
}

/// From 19 words to 5, longest first.
fn lengths(size: Size) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..size.batch).map(|c| 5 + c * 7 % 15).collect();
    lengths.sort_by_key(|&n| std::cmp::Reverse(n));
    lengths
}

/// Seconds of every call: at least three, and until `time` has passed; a warm-up before.
fn measure(step: &mut Step, time: Duration) -> Vec<f64> {
    let start = Instant::now();
    step();
    while start.elapsed() < time.min(Duration::from_millis(500)) {
        step();
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || start.elapsed() < time {
        let before = Instant::now();
        step();
        times.push(before.elapsed().as_secs_f64());
    }
    times
}

/// Largest resident memory of this process; `None` where the system does not tell.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}
