//! Element-wise and row operations at the sizes of ViT-B/16, batch 4. The first table gives GB/s of the vector half
//! beside GB/s of a copy. The second table gives the time of one training pass on burn tensors, beside the same pass
//! composed of burn's operations. The candidates of a row alternate in one process; each time is the best of many
//! runs.
//!
//! ```text
//! MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967295 cargo bench -p itm-kernels --features flex
//! ```
//!
//! The two variables keep freed memory, as `itm` does. Without them every pass pays the page faults of its buffers
//! again. The bytes count the values that an operation must read and write, per element: 2 forward and 3 backward
//! (softmax and norm read a row again, but from the cache). Dropout has 2 backward; a sum needs 1 or 2 more forward.

#![allow(clippy::print_stdout)] // a benchmark prints its table

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor, TensorData};
use itm_kernels::dropout::Mask;
use itm_kernels::layer_norm::{self, Norm};
use itm_kernels::{Activation, Dropout, LayerNorm, Noise, random, uniform};
use rayon::prelude::*;

fn main() {
    if !std::env::args().any(|a| a == "--bench") {
        return; // `cargo test --benches` starts it too, and has no use for timings
    }
    println!("{} threads", rayon::current_num_threads());
    println!("{:28} {:>8} {:>8} {:>8}", "vector half", "ms", "GB/s", "copy");
    vectors();
    println!("{:28} {:>8} {:>8}", "forward + backward on tensors", "ours", "composed");
    tensors();
}

type Run<'a> = Box<dyn FnMut() -> Duration + 'a>;

/// The best time of each run in milliseconds. The runs alternate for some seconds.
fn best<const N: usize>(mut runs: [Run; N]) -> [f64; N] {
    let (start, mut best) = (Instant::now(), [Duration::MAX; N]);
    while start.elapsed() < Duration::from_secs(4) {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            *best = run().min(*best);
        }
    }
    best.map(|b| b.as_secs_f64() * 1e3)
}

fn timed<T>(f: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(f());
    start.elapsed()
}

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    (0..n as u64).map(|k| 4.0 * random::unit(seed, k) - 2.0).collect()
}

/// Prints two lines of the first table. `forward` makes or changes values; `backward` changes its gradient in place.
fn vector_row(
    name: &str,
    n: usize,
    values_moved: [usize; 2],
    mut forward: impl FnMut(&mut Vec<f32>) -> Duration,
    mut backward: impl FnMut(&mut [f32]) -> Duration,
) {
    let (x, grad) = (numbers(n, 1), numbers(n, 2));
    let (mut changed, mut d, mut copy) = (x.clone(), grad.clone(), grad.clone());
    let times = best([
        Box::new(|| {
            changed.copy_from_slice(&x);
            forward(&mut changed)
        }),
        Box::new(|| {
            d.copy_from_slice(&grad);
            backward(&mut d)
        }),
        Box::new(|| {
            timed(|| {
                let both = copy.par_chunks_mut(8192).zip(grad.par_chunks(8192));
                both.for_each(|(to, from)| to.copy_from_slice(from));
            })
        }),
    ]);
    let rate = |values: usize, ms: f64| (4 * n * values) as f64 / ms * 1e-6;
    for (k, pass) in ["forward", "backward"].into_iter().enumerate() {
        let (name, ms) = (format!("{name}, {pass}"), times[k]);
        let (ours, copy) = (rate(values_moved[k], ms), rate(2, times[2]));
        println!("{name:28} {ms:8.3} {ours:8.1} {copy:8.1}");
    }
}

fn vectors() {
    let n = 788 * 3072;
    let x = numbers(n, 1);
    vector_row(
        "gelu 788 × 3072",
        n,
        [2, 3],
        |_| timed(|| Activation::Gelu.forward(&x)),
        |d| timed(|| Activation::Gelu.backward(&x, d)),
    );

    let (n, width) = (788 * 768, 768);
    let (x, gamma, beta) = (numbers(n, 1), numbers(width, 3), numbers(width, 4));
    let norm = Norm { gamma: &gamma, beta: &beta, epsilon: 1e-12 };
    let (_, saved) = layer_norm::forward(&x, norm);
    vector_row(
        "norm 788 × 768",
        n,
        [2, 3],
        |_| timed(|| layer_norm::forward(&x, norm)),
        |d| timed(|| layer_norm::backward(&x, &gamma, &saved, d)),
    );
    let n = 788 * 768;
    let (mask, r) = (Mask::new(0.1, 1), numbers(n, 1));
    vector_row(
        "dropout 788 × 768",
        n,
        [2, 2],
        |_| timed(|| mask.applied(&r)),
        |d| timed(|| mask.apply(d)),
    );
    vector_row(
        "sum, dropout 788 × 768",
        n,
        [3, 2],
        |x| timed(|| mask.apply_and_add(x, &r)),
        |d| timed(|| mask.apply(d)),
    );
}

/// Prints a line of the second table: the time of one training pass of each candidate.
fn tensor_row<const D: usize>(
    name: &str,
    shape: [usize; D],
    ours: impl Fn(Tensor<D>) -> Tensor<D>,
    composed: impl Fn(Tensor<D>) -> Tensor<D>,
) {
    let x = uniform(shape, 2.0, 1, &Device::flex().autodiff()).require_grad();
    let train = |f: &dyn Fn(Tensor<D>) -> Tensor<D>| timed(|| f(x.clone() * 1.0).backward());
    let [ours, composed] = best([Box::new(|| train(&ours)), Box::new(|| train(&composed))]);
    println!("{name:28} {ours:8.3} {composed:8.3}");
}

fn tensors() {
    let device = Device::flex().autodiff();
    tensor_row(
        "gelu 788 × 3072",
        [788, 3072],
        |x| Activation::Gelu.of(x),
        |x| x.clone() * ((x / std::f64::consts::SQRT_2).erf() + 1.0) * 0.5,
    );

    let norm = LayerNorm::new(768, 1e-12, &device);
    let composed = |x: Tensor<2>| {
        let centred = x.clone() - x.mean_dim(1);
        let variance = (centred.clone() * centred.clone()).mean_dim(1);
        let y = centred / (variance + 1e-12).sqrt();
        y * norm.gamma.val().unsqueeze() + norm.beta.val().unsqueeze()
    };
    tensor_row("norm 788 × 768", [788, 768], |x| norm.forward(x), composed);

    let (dropout, noise) = (Dropout::new(0.1), Noise::Seeded(1));
    tensor_row(
        "dropout 788 × 768",
        [788, 768],
        |x| dropout.forward(x, noise),
        |x| {
            let n = 788 * 768;
            let factor = |k| if random::unit(1, k) < 0.1 { 0.0 } else { 1.0 / 0.9 };
            let mask: Vec<f32> = (0..n).map(factor).collect();
            x * Tensor::from_data(TensorData::new(mask, [788, 768]), &device)
        },
    );
}
