//! Recalls, hub measures and corrections from embeddings, against one bare matrix product of the same size.
//!
//! ```text
//! cargo bench -p hubness --bench corrections            5,000 × 25,000, d = 512
//! cargo bench -p hubness --bench corrections -- large   25,000 × 200,000 and smaller: memory, and time linear in tiles
//! ```
//!
//! Each figure is the median of rounds in which all candidates take turns; the first round is not counted. Timings mean
//! nothing while the machine does other work. Peak memory (`VmHWM`, Linux) is the peak of a separate process.
//! `tests/reference/hubness_peers.py` times the peers.
#![allow(unsafe_code)] // the bare product: `gemm` takes pointers
#![allow(clippy::print_stdout)] // a benchmark prints

use std::env;
use std::process::Command;
use std::time::Instant;

use hubness::pass;
use hubness::{Candidates, Correction, Direction, GreedyOptions, Pairs, Survey, greedy_matching};
use itm_core::tiles::{Embeddings, Tiles, ranks};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DIM: usize = 512;

fn main() {
    let arguments: Vec<_> = env::args().filter(|a| a != "--bench").collect();
    match &arguments[1..] {
        [mode, n, m] => {
            let [n, m] = [n, m].map(|size| size.parse().expect("a size"));
            let start = Instant::now();
            let data = Data::new(n, m);
            let made = start.elapsed().as_secs_f64();
            match &mode[..] {
                "report" => report(&data),
                "rgm" => _ = rgm(&data, 2.0),
                _ => panic!("report or rgm"),
            }
            let seconds = start.elapsed().as_secs_f64() - made;
            println!("{mode} {n} × {m}: {seconds:.2} s, {}", peak());
        }
        [mode] if mode == "large" => {
            for (n, m) in [(25_000, 50_000), (25_000, 100_000), (25_000, 200_000)] {
                alone("report", n, m);
            }
        }
        _ => compare(5_000, 25_000, 5),
    }
}

fn compare(n: usize, m: usize, rounds: usize) {
    println!(
        "{} threads, {n} × {m}, d = {DIM}, seed 0; median seconds (best)",
        rayon::current_num_threads()
    );
    alone("report", n, m);
    alone("rgm", n, m);
    let data = Data::new(n, m);
    let mut matrix = vec![0.0; n * m];
    let names = [
        "one bare product (gemm)",
        "recalls both ways",
        "report: recalls, N_k, CSLS, IS",
        "  first pass",
        "CSLS alone: fit, ranks, top 10",
        "candidates of RGM both ways",
        "exact RGM k = 10, λ = 2",
        "exact RGM k = 10, λ = 1",
    ];
    let mut times = vec![Vec::new(); names.len()];
    for _ in 0..=rounds {
        times[0].push(seconds(|| bare_product(&data, &mut matrix)));
        times[1].push(seconds(|| drop(ranks(data.images(), data.texts(), &data.pairs))));
        times[2].push(seconds(|| report(&data)));
        times[3].push(seconds(|| first_pass(&data)));
        times[4].push(seconds(|| csls(&data)));
        let mut pass = 0.0;
        times[6].push(seconds(|| pass = rgm(&data, 2.0)));
        times[5].push(pass);
        times[7].push(seconds(|| _ = rgm(&data, 1.0)));
    }
    let median = |times: &[f64]| {
        let mut times = times[1..].to_vec();
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2], times[0])
    };
    let bare = median(&times[0]).0;
    let pass = median(&times[5]).0;
    for (name, times) in names.iter().zip(&times) {
        let (middle, best) = median(times);
        println!("  {name:<32} {middle:7.4} ({best:7.4})   {:5.2} × product", middle / bare);
    }
    for (lambda, times) in [(2, &times[6]), (1, &times[7])] {
        println!("  RGM, λ = {lambda}: {:.2} × the pass it needs anyway", median(times).0 / pass);
    }
    println!("  the product runs at {:.0} GFLOP/s", 2e-9 * (n * m * DIM) as f64 / bare);
}

/// The first pass, on which everything else builds.
fn first_pass(data: &Data) {
    let tiles = data.tiles();
    let survey = Survey::fit(&tiles, 10, &[30.0]).expect("sizes that fit");
    assert_eq!(survey.nearest(Direction::I2t).k(), 10);
}

/// CSLS as in the MUSE recipe, with ranks.
fn csls(data: &Data) {
    let tiles = data.tiles();
    let survey = Survey::fit(&tiles, 10, &[]).expect("sizes that fit");
    let [i2t, t2i] = Direction::BOTH.map(|d| survey.csls(d, 10).expect("k = 10 was kept"));
    let found = pass::rescore(&tiles, &data.pairs, &[[&i2t, &t2i]], 10);
    assert_eq!(found.expect("sizes that fit").len(), 1);
}

/// The report without tests and intervals: two passes.
fn report(data: &Data) {
    let tiles = data.tiles();
    let survey = Survey::fit(&tiles, 10, &[30.0]).expect("sizes that fit");
    let csls = Direction::BOTH.map(|d| survey.csls(d, 10).expect("k = 10 was kept"));
    let is = Direction::BOTH.map(|d| survey.inverted_softmax(d, 30.0).expect("β = 30 was kept"));
    let [plain_i2t, plain_t2i] = Direction::BOTH.map(|d| Correction::none(&tiles, d));
    let [csls, is] = [&csls, &is].map(|[i2t, t2i]| [&**i2t, &**t2i]);
    let all = [[&*plain_i2t, &*plain_t2i], csls, is];
    let rescored = pass::rescore(&tiles, &data.pairs, &all, 10).expect("sizes that fit");
    assert_eq!(rescored.len(), 3);
}

/// Runs exact RGM in both directions and returns the seconds of the pass that it needs anyway.
fn rgm(data: &Data, lambda: f64) -> f64 {
    let tiles = data.tiles();
    let start = Instant::now();
    let plain = Direction::BOTH.map(|d| Correction::none(&tiles, d));
    let all = plain.each_ref().map(|none| Candidates::new(&tiles, none, 10));
    let pass = start.elapsed().as_secs_f64();
    for candidates in all {
        let candidates = candidates.expect("a correction of these scores");
        let found = greedy_matching(&candidates, &GreedyOptions::new(10, lambda));
        assert!(!found.expect("a λ above 0").stack().is_empty());
    }
    pass
}

struct Data {
    images: Vec<f32>,
    texts: Vec<f32>,
    pairs: Pairs,
}

impl Data {
    /// Unit rows; a text is its image plus noise, and a common direction makes hubs.
    fn new(n: usize, m: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut row = |lift: f32| -> Vec<f32> {
            (0..DIM)
                .map(|k| rng.random_range(-1.0..1.0) + if k == 0 { lift } else { 0.0 })
                .collect()
        };
        let unit = |row: Vec<f32>| {
            let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            row.into_iter().map(move |v| v / norm)
        };
        let images: Vec<Vec<f32>> = (0..n).map(|i| row((i % 7) as f32)).collect();
        assert!(m.is_multiple_of(n), "{m} texts of {n} images");
        let pairs = Pairs::uniform(n, m / n);
        let texts: Vec<f32> = (0..pairs.texts())
            .flat_map(|t| {
                let near = &images[pairs.image_of(t)];
                unit(near.iter().zip(row(2.0)).map(|(a, b)| a + 1.5 * b).collect())
                    .collect::<Vec<_>>()
            })
            .collect();
        Self { images: images.into_iter().flat_map(unit).collect(), texts, pairs }
    }

    fn images(&self) -> Embeddings<'_> {
        Embeddings::new("images", self.images.len() / DIM, DIM, &self.images).expect("finite")
    }

    fn texts(&self) -> Embeddings<'_> {
        Embeddings::new("texts", self.texts.len() / DIM, DIM, &self.texts).expect("finite")
    }

    fn tiles(&self) -> Tiles<'_> {
        Tiles::new(self.images(), self.texts()).expect("one width")
    }
}

fn bare_product(data: &Data, out: &mut [f32]) {
    let (n, m) = (data.images.len() / DIM, data.texts.len() / DIM);
    assert_eq!(out.len(), n * m);
    // SAFETY: row-major slices of n · d, m · d and n · m values, asserted above; the result overlaps neither input.
    unsafe {
        gemm::gemm(
            n,
            m,
            DIM,
            out.as_mut_ptr(),
            1,
            m as isize,
            false,
            data.images.as_ptr(),
            1,
            DIM as isize,
            data.texts.as_ptr(),
            DIM as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::Rayon(0),
        );
    }
}

/// Runs a mode in its own process and prints the output.
fn alone(mode: &str, n: usize, m: usize) {
    let output = Command::new(env::current_exe().expect("this program"))
        .args([mode.to_string(), n.to_string(), m.to_string()])
        .output()
        .expect("a second process of this program");
    println!("  alone: {}", String::from_utf8_lossy(&output.stdout).trim());
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map_or("peak memory unknown".into(), |kib| format!("peak memory {} MiB", kib >> 10))
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
