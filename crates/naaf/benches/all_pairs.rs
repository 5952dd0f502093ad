//! Times the scores of all pairs of 1,000 images and 5,000 captions against the bare matrix product of their words and regions.
//!
//! ```text
//! cargo bench -p naaf --bench all_pairs
//! ```
//!
//! It takes two minutes on two cores, and 1.4 GB, because the bare product writes its result, half of the captions at a time. Images
//! come in groups. Each group is scored and multiplied in turn, so that a slow minute of the machine affects both. Only products of
//! words and regions are counted as work. Peak memory (`VmHWM`, Linux) is the peak of a separate process that makes only rows and
//! scores.

#![allow(unsafe_code)] // the bare product: `gemm` takes pointers
#![allow(clippy::print_stdout)] // a benchmark prints

use std::env;
use std::process::Command;
use std::time::Instant;

use itm_core::Pairs;
use itm_core::scored::Scored;
use itm_kernels::random;
use naaf::{Attention, CrossScores, NaafConfig, Pooling, Preset, Scan};
use rayon::prelude::*;

const IMAGES: usize = 1_000;
const CAPTIONS: usize = 5_000;
const REGIONS: usize = 36;
const WIDTH: usize = 1_024;
/// Near the boundary after training: some regions of a word are above it.
const BOUNDARY: f32 = 0.3;
/// Images of a group.
const GROUP: usize = 125;

fn main() {
    itm_kernels::memory::keep_freed(); // as `itm` does
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["peak"] => peak(),
        ["--bench"] => compare(),
        _ => {} // `cargo test --benches` starts this program too, and needs no timings
    }
}

/// From 5 to 19 words, 12 on average.
fn lengths() -> Vec<usize> {
    (0..CAPTIONS).map(|c| 5 + c * 7 % 15).collect()
}

/// Unit rows that share one direction, so that products are around the boundary.
fn rows(n: usize, seed: u64) -> Vec<f32> {
    let mut rows = vec![0.0; n * WIDTH];
    rows.par_chunks_exact_mut(WIDTH).enumerate().for_each(|(k, row)| {
        let value = |at: usize| random::unit(seed, (k * WIDTH + at) as u64) - 0.5;
        row.iter_mut().enumerate().for_each(|(at, x)| *x = value(at));
        row[0] += 8.0 * random::unit(seed + 1, k as u64);
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
    });
    rows
}

fn rules() -> Vec<(&'static str, Attention)> {
    let naaf = NaafConfig::preset(Preset::Default).attention;
    let [asks_words, asks_regions] =
        [Scan::text_to_image(Pooling::Mean), Scan::image_to_text(Pooling::Mean)];
    vec![
        ("NAAF", naaf),
        ("SCAN t-i", Attention::Scan(asks_words)),
        ("SCAN i-t", Attention::Scan(asks_regions)),
    ]
}

fn scores(attention: &Attention, regions: Vec<f32>, words: Vec<f32>) -> CrossScores {
    let counts = vec![REGIONS; IMAGES];
    CrossScores::new((regions, &counts), (words, &lengths()), WIDTH, BOUNDARY, attention)
        .expect("rows that fit")
}

fn compare() {
    let total: usize = lengths().iter().sum();
    let threads = rayon::current_num_threads();
    println!(
        "{IMAGES} images of {REGIONS} regions × {CAPTIONS} captions, {total} words; d = {WIDTH}, {threads} threads"
    );
    let (regions, words) = (rows(IMAGES * REGIONS, 1), rows(total, 3));
    let mut product = vec![1.0; total.div_ceil(2) * GROUP * REGIONS]; // touches its pages
    for (name, attention) in rules() {
        let scores = scores(&attention, regions.clone(), words.clone());
        let mut times: Vec<[f64; 2]> = vec![];
        for first in (0..IMAGES).step_by(GROUP) {
            let group = &regions[first * REGIONS * WIDTH..][..GROUP * REGIONS * WIDTH];
            let half = total.div_ceil(2) * WIDTH;
            let bare =
                seconds(|| words.chunks(half).for_each(|w| multiply(w, group, &mut product)));
            let ours = seconds(|| scores.block(first..first + GROUP, 0..CAPTIONS));
            times.push([bare, ours]);
        }
        report(name, &times);
    }
    let output = Command::new(env::current_exe().expect("this program")).arg("peak").output();
    let output = output.expect("a second process of this program");
    println!("{}", String::from_utf8_lossy(&output.stdout).trim());
}

fn report(name: &str, times: &[[f64; 2]]) {
    let [bare, ours] = [0, 1].map(|side| times.iter().map(|pair| pair[side]).sum::<f64>());
    let work = 2e-9 * (lengths().iter().sum::<usize>() * IMAGES * REGIONS * WIDTH) as f64;
    let shares = times.iter().map(|[bare, ours]| 100.0 * bare / ours);
    let (least, most) =
        shares.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
    println!(
        "{name:9} {ours:6.2} s, {:4.0} GFLOP/s   product {bare:6.2} s, {:4.0} GFLOP/s   {:.0} % of its rate (groups: {least:.0} to {most:.0} %)",
        work / ours,
        work / bare,
        100.0 * bare / ours,
    );
}

/// `words · regionsᵀ`
fn multiply(words: &[f32], regions: &[f32], to: &mut [f32]) {
    let (m, n) = (words.len() / WIDTH, regions.len() / WIDTH);
    let to = &mut to[..m * n];
    // SAFETY: row-major slices of m · d, n · d and m · n values, cut so above; the result overlaps neither operand.
    unsafe {
        #[rustfmt::skip]
        gemm::gemm(
            m, n, WIDTH, to.as_mut_ptr(), 1, n as isize, false, words.as_ptr(), 1, WIDTH as isize,
            regions.as_ptr(), WIDTH as isize, 1, 0.0, 1.0, false, false, false, gemm::Parallelism::Rayon(0),
        );
    }
}

fn peak() {
    let total: usize = lengths().iter().sum();
    let scores = scores(&rules()[0].1, rows(IMAGES * REGIONS, 1), rows(total, 3));
    let start = Instant::now();
    let ranks = scores.ranks(&Pairs::uniform(IMAGES, CAPTIONS / IMAGES)).expect("sizes that fit");
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!(
        "ranks of {} images and {} captions in {seconds:.2} s; rows included, {peak}",
        ranks.i2t().len(),
        ranks.t2i().len()
    );
}

fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed().as_secs_f64()
}
