//! Times of a bag of words, forward and backward: this crate's operation, the same composed of burn's gather and
//! scatter, and a product with the dense matrix of term weights. The three alternate in one process; each time is the
//! best of many runs.
//!
//! ```text
//! MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967295 cargo bench -p itm-kernels --features flex --bench bag
//! ```

#![allow(clippy::print_stdout)] // a benchmark prints its table

use std::time::{Duration, Instant};

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use itm_kernels::bag::Bags;
use itm_kernels::{bag, uniform};

struct Size {
    captions: usize,
    /// Terms per caption.
    terms: usize,
    vocabulary: usize,
    width: usize,
}

/// The sizes of Scenes, of Flickr8k and of a vocabulary as large as COCO's.
#[rustfmt::skip]
const SIZES: [Size; 3] = [
    Size { captions: 128, terms: 8, vocabulary: 150, width: 128 },
    Size { captions: 128, terms: 9, vocabulary: 3268, width: 256 },
    Size { captions: 128, terms: 9, vocabulary: 10_000, width: 1024 },
];

fn main() {
    if !std::env::args().any(|a| a == "--bench") {
        return; // `cargo test --benches` starts it too, and has no use for timings
    }
    println!("{} threads", rayon::current_num_threads());
    let head = "ms: forward + backward";
    println!("{head:36} {:>9} {:>9} {:>9}  ours / composed", "ours", "composed", "dense");
    SIZES.iter().for_each(row);
}

fn row(size: &Size) {
    let &Size { captions, terms, vocabulary, width } = size;
    let device = Device::flex().autodiff();
    let table = uniform([vocabulary, width], 1.0, 1, &device).require_grad();
    let entries: Vec<Vec<(u32, f32)>> = (0..captions)
        .map(|row| (0..terms).map(|k| (((row * 131 + k * 37) % vocabulary) as u32, 0.3)).collect())
        .collect();
    let mut bags = Bags::default();
    entries.iter().for_each(|entries| bags.push(entries.iter().copied()));
    let finish = |sums: Tensor<2>| {
        std::hint::black_box(sums.sum().backward());
    };
    let mut contenders: [(&mut dyn FnMut(), Duration); 3] = [
        (&mut || finish(bag(table.clone(), bags.clone())), Duration::MAX),
        (&mut || finish(composed(&table, &entries)), Duration::MAX),
        (&mut || finish(dense(&table, &entries)), Duration::MAX),
    ];
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        for (run, best) in &mut contenders {
            let start = Instant::now();
            run();
            *best = start.elapsed().min(*best);
        }
    }
    let [ours, composed, dense] = contenders.map(|(_, best)| best.as_secs_f64() * 1e3);
    let name = format!("{captions} × {terms} of {vocabulary} → {width}");
    println!("{name:36} {ours:9.3} {composed:9.3} {dense:9.3}  {:.2}", ours / composed);
}

/// Gathers rows, multiplies them by their weights and adds them up per caption.
fn composed(table: &Tensor<2>, entries: &[Vec<(u32, f32)>]) -> Tensor<2> {
    let (device, [_, width]) = (table.device(), table.dims());
    let all = || entries.iter().flatten();
    let n = all().count();
    let ids: Vec<i32> = all().map(|&(id, _)| id as i32).collect();
    let owners = entries.iter().zip(0i32..).flat_map(|(terms, row)| vec![row; terms.len()]);
    let owners: Vec<i32> = owners.collect();
    let weights: Vec<f32> = all().map(|&(_, weight)| weight).collect();
    let numbers =
        |values: Vec<i32>| Tensor::<1, Int>::from_data(TensorData::new(values, [n]), &device);
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [n, 1]), &device);
    let rows = table.clone().select(0, numbers(ids)) * weights;
    let zeros = Tensor::<2>::zeros([entries.len(), width], &device);
    zeros.select_assign(0, numbers(owners), rows, IndexingUpdateOp::Add)
}

/// The captions as a dense matrix of mostly zeros.
fn dense(table: &Tensor<2>, entries: &[Vec<(u32, f32)>]) -> Tensor<2> {
    let [vocabulary, _] = table.dims();
    let mut weights = vec![0.0; entries.len() * vocabulary];
    for (row, entries) in weights.chunks_mut(vocabulary).zip(entries) {
        entries.iter().for_each(|&(id, weight)| row[id as usize] += weight);
    }
    let weights = TensorData::new(weights, [entries.len(), vocabulary]);
    Tensor::<2>::from_data(weights, &table.device()).matmul(table.clone())
}
