//! Compares ranks and recalls of both directions from embeddings with one bare matrix product of the same size.
//!
//! ```text
//! cargo bench -p itm-core --bench evaluation
//! ```
//!
//! The benchmark takes under a minute on two cores. It needs 0.7 GB because the bare product writes its whole result;
//! our path never holds the whole matrix. All candidates take turns in every round. Each figure is the median over the
//! rounds after the first, which is not counted. Timings mean nothing while the machine does other work. Peak memory
//! (`VmHWM`, Linux) is the peak of a separate process that makes only the embeddings and the ranks.
//! `tests/reference/evaluation_peers.py` times NumPy and faiss.
#![allow(unsafe_code)] // the bare product: `gemm` takes pointers
#![allow(clippy::print_stdout)] // a benchmark prints

use std::env;
use std::process::Command;
use std::time::Instant;

use itm_core::eval::{Ranks, TiePolicy};
use itm_core::tiles::{Embeddings, ExpSums, RankCounts, Side, Tiles, Top, ranks};
use itm_core::{Pairs, ScoreMatrix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

const SIZES: [(usize, usize, usize); 2] = [(1_000, 5_000, 9), (5_000, 25_000, 5)]; // images, texts, rounds
const DIM: usize = 512;
const CAPTIONS: usize = 5;

fn main() {
    let arguments: Vec<_> = env::args().collect();
    if let [_, mode, n, m] = &arguments[..] {
        assert_eq!(mode, "peak", "arguments are only for the process that measures memory");
        let [n, m] = [n, m].map(|size| size.parse().expect("a size"));
        let (images, texts) = embeddings(n, m);
        print_peak(&streaming(&images, &texts));
        return;
    }
    println!("{} threads, d = {DIM}, seed 0; median seconds (best)", rayon::current_num_threads());
    for (n, m, rounds) in SIZES {
        compare(n, m, rounds);
    }
}

fn compare(n: usize, m: usize, rounds: usize) {
    println!("\n{n} images × {m} texts");
    let peak = Command::new(env::current_exe().expect("this program"))
        .args(["peak".to_string(), n.to_string(), m.to_string()])
        .output()
        .expect("a second process of this program");
    let (images, texts) = embeddings(n, m);
    let pairs = Pairs::uniform(n, CAPTIONS);
    let tiles = tiles(&images, &texts);
    let mut matrix = vec![0.0; n * m];
    let mut times: [Vec<f64>; 8] = Default::default();
    for _ in 0..=rounds {
        times[0].push(seconds(|| bare_product(&images, &texts, &mut matrix)));
        times[1].push(seconds(|| streaming(&images, &texts)));
        times[2]
            .push(seconds(|| tiles.run(&RankCounts::new(&tiles, &pairs).expect("sizes that fit"))));
        times[3].push(seconds(|| tiles.top(Side::Images, 10)));
        times[4].push(seconds(|| tiles.run(&Top::new(Side::Images, 10))));
        times[5]
            .push(seconds(|| tiles.run(&(Top::new(Side::Images, 10), Top::new(Side::Texts, 10)))));
        times[6].push(seconds(|| tiles.run(&ExpSums::new(30.0))));
        times[7].push(seconds(|| {
            let counts = RankCounts::new(&tiles, &pairs).expect("sizes that fit");
            tiles.run(&(
                counts,
                ((Top::new(Side::Images, 10), Top::new(Side::Texts, 10)), ExpSums::new(30.0)),
            ))
        }));
    }
    let names = [
        "one bare product (gemm)",
        "ranks both ways",
        "the same, all in f32",
        "top 10 texts",
        "the same, all in f32",
        "top 10 both ways, in f32",
        "exp-sums both ways",
        "all of these in one pass",
    ];
    let median = |times: &[f64]| {
        let mut times = times[1..].to_vec();
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2], times[0])
    };
    let bare = median(&times[0]);
    for (name, times) in names.iter().zip(&times) {
        let (middle, best) = median(times);
        let ratio = middle / bare.0;
        println!("  {name:<26} {middle:7.4} ({best:7.4})   {ratio:5.2} × product");
    }
    let gflops = 2e-9 * (n * m * DIM) as f64 / bare.0;
    println!("  the product runs at {gflops:.0} GFLOP/s");
    println!("  {}", String::from_utf8_lossy(&peak.stdout).trim());
    // The recalls from the bare product are the same, except where its rounding makes or breaks ties.
    let dense = ScoreMatrix::new(n, m, matrix).expect("no NaN");
    let dense = recalls(&Ranks::new(&dense, &pairs).expect("sizes that fit"));
    println!("  recalls from the bare product: {dense}");
}

/// The measured work: from embeddings to the ranks of both directions, including the checks of the values.
fn streaming(images: &[f32], texts: &[f32]) -> Ranks {
    let pairs = Pairs::uniform(images.len() / DIM, CAPTIONS);
    ranks(view("images", images), view("texts", texts), &pairs).expect("sizes that fit")
}

fn tiles<'a>(images: &'a [f32], texts: &'a [f32]) -> Tiles<'a> {
    Tiles::new(view("images", images), view("texts", texts)).expect("one width")
}

fn view<'a>(name: &str, values: &'a [f32]) -> Embeddings<'a> {
    Embeddings::new(name, values.len() / DIM, DIM, values).expect("finite values")
}

fn bare_product(images: &[f32], texts: &[f32], out: &mut [f32]) {
    let (n, m) = (images.len() / DIM, texts.len() / DIM);
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
            images.as_ptr(),
            1,
            DIM as isize,
            texts.as_ptr(),
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

/// Rows of unit length. A text is its image plus noise, so that recalls are neither 0 nor 100.
fn embeddings(n: usize, m: usize) -> (Vec<f32>, Vec<f32>) {
    let mut images = vec![0.0; n * DIM];
    let mut texts = vec![0.0; m * DIM];
    let row = |seed: usize, row: &mut [f32], base: Option<&[f32]>| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        row.iter_mut().for_each(|v| *v = rng.random_range(-1.0..1.0));
        if let Some(base) = base {
            row.iter_mut().zip(base).for_each(|(v, b)| *v += 3.0 * b);
        }
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= norm);
    };
    images.par_chunks_mut(DIM).enumerate().for_each(|(i, v)| row(i, v, None));
    texts.par_chunks_mut(DIM).enumerate().for_each(|(j, w)| {
        let image = j / CAPTIONS;
        row(n + j, w, Some(&images[image * DIM..(image + 1) * DIM]));
    });
    (images, texts)
}

fn recalls(ranks: &Ranks) -> String {
    let at = |standings: &[itm_core::eval::Standing]| {
        let share = |k| {
            let hits = standings.iter().map(|s| s.hit(k, TiePolicy::Index)).sum::<f64>();
            format!("{:.2}", 100.0 * hits / standings.len() as f64)
        };
        [share(1), share(5), share(10)].join(" / ")
    };
    format!("i2t {}, t2i {}", at(ranks.i2t()), at(ranks.t2i()))
}

fn print_peak(ranks: &Ranks) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("recalls from tiles: {}\n  peak memory, embeddings included: {peak}", recalls(ranks));
}

fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed().as_secs_f64()
}
