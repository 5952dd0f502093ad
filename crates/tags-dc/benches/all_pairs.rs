//! Scores all pairs of 100 images and 500 texts with a small UNITER. Reports pairs per second, and the share of the time that the matrix
//! products need.
//!
//! ```text
//! cargo bench -p tags-dc --features flex --bench all_pairs
//! ```
//!
//! Takes some seconds on two cores. `tests/reference/performance_uniter.py` times the same model and sizes in PyTorch in three ways: pair by
//! pair, one text beside all images (as in the released program), and in batches of texts of equal length. Run it right after this benchmark.

#![allow(clippy::print_stdout)] // a benchmark prints
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use itm_core::host;
use itm_core::scored::Scored;
use itm_kernels::random;
use tags_dc::model::{RegionBatch, Uniter, UniterScores, UniterShape};

const IMAGES: usize = 100;
const TEXTS: usize = 500;
const VOCABULARY: usize = 160;
/// Width, heads, blocks.
const SIZE: [usize; 3] = [64, 4, 2];
const RUNS: usize = 5;

fn main() {
    itm_kernels::memory::keep_freed(); // as `itm` does
    if std::env::args().nth(1).as_deref() != Some("--bench") {
        return; // `cargo test --benches` starts this program too, but needs no timings
    }
    println!(
        "| regions | width of a region | pairs per second | share of the time of bare products |"
    );
    println!("|---:|---:|---:|---:|");
    for (regions, width) in [(12, 704), (49, 128)] {
        compare(regions, width);
    }
}

/// A text of 5 to 16 tokens.
fn text(k: usize) -> Vec<u32> {
    let words = (0..3 + k * 7 % 12).map(|j| 2 + ((k * 31 + j * 17) % (VOCABULARY - 4)) as u32);
    [2].into_iter().chain(words).chain([3]).collect()
}

fn compare(regions: usize, width: usize) {
    let [d, heads, layers] = SIZE;
    let shape = UniterShape::of_width(d, heads, layers, VOCABULARY);
    let model = Uniter::seeded(&UniterShape { features: width, ..shape }, 0, &Device::flex());
    let value = |k: usize| random::unit(1, k as u64);
    let features = (0..IMAGES * regions * width).map(value).collect();
    let boxes = (0..IMAGES * regions * 7).map(value).collect();
    let images = RegionBatch::new(width, vec![regions; IMAGES], features, boxes).unwrap();
    let texts: Vec<Vec<u32>> = (0..TEXTS).map(text).collect();
    let positions: usize = texts.iter().map(|text| text.len() + regions).sum::<usize>() * IMAGES;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        let started = Instant::now();
        let scores = UniterScores::new(&model, [Ok(images.clone())], texts.clone());
        black_box(scores.unwrap().matrix().unwrap());
        best[0] = best[0].min(started.elapsed().as_secs_f64());
        best[1] = best[1].min(products(positions, d, layers));
    }
    let rate = (IMAGES * TEXTS) as f64 / best[0];
    println!("| {regions} | {width} | {rate:.0} | {:.2} |", best[1] / best[0]);
}

/// Seconds for the linear maps of all positions, as four large products per block, without attention.
fn products(positions: usize, d: usize, layers: usize) -> f64 {
    let rows = 1 << 14;
    let random =
        |n: usize, m: usize| Tensor::<2>::random([n, m], Distribution::Default, &Device::flex());
    let [narrow, wide] = [random(rows, d), random(rows, 4 * d)];
    let weights = [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)].map(|(n, m)| random(n, m));
    let started = Instant::now();
    for weight in weights {
        let x = if weight.dims()[0] == d { &narrow } else { &wide };
        black_box(host(x.clone().matmul(weight)));
    }
    started.elapsed().as_secs_f64() * positions as f64 / rows as f64 * layers as f64
}
