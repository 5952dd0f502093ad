//! Times of a gated recurrent unit, for a training pass and for a forward pass: this crate's unit, the same unit
//! composed of burn's operations, burn's own layer, and only the matrix products. The four alternate in one process;
//! each time is the best of many runs.
//!
//! ```text
//! MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967295 cargo bench -p itm-kernels --features flex
//! ```
//!
//! The two variables keep freed memory, as `itm` does. Without them every pass pays for page faults of its buffers.

#![allow(clippy::print_stdout)] // a benchmark prints its table

use std::time::{Duration, Instant};

use burn::nn::gru::GruConfig;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use gemm::Parallelism;
use itm_kernels::{BiGru, Gru, uniform};

struct Size {
    batch: usize,
    steps: usize,
    input: usize,
    hidden: usize,
    /// Shortest and longest length; the lengths are spread evenly between the two.
    lengths: [usize; 2],
    units: Units,
}

#[derive(Clone, Copy, PartialEq)]
enum Units {
    Forward,
    Both,
}

#[rustfmt::skip]
const SIZES: [Size; 4] = [
    Size { batch: 128, steps: 16, input: 300, hidden: 256, lengths: [16, 16], units: Units::Forward },
    Size { batch: 128, steps: 16, input: 300, hidden: 256, lengths: [6, 16], units: Units::Forward },
    Size { batch: 64, steps: 20, input: 300, hidden: 1024, lengths: [20, 20], units: Units::Forward },
    Size { batch: 64, steps: 20, input: 300, hidden: 1024, lengths: [20, 20], units: Units::Both },
];

fn main() {
    if !std::env::args().any(|a| a == "--bench") {
        return; // `cargo test --benches` starts it too, and has no use for timings
    }
    println!("{} threads", rayon::current_num_threads());
    println!(
        "{:32} {:>9} {:>9} {:>9} {:>9}  ours / products",
        "ms: forward + backward", "ours", "composed", "burn-nn", "products"
    );
    for size in SIZES {
        row(&size, Pass::Train);
    }
    println!("ms: forward");
    for size in SIZES {
        row(&size, Pass::Forward);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Train,
    Forward,
}

fn row(size: &Size, pass: Pass) {
    let &Size { batch, steps, input, hidden, lengths: [shortest, longest], units } = size;
    let device = Device::flex();
    let device = if pass == Pass::Train { device.autodiff() } else { device };
    let lengths: Vec<usize> =
        (0..batch).map(|b| shortest + b * (longest - shortest) / (batch - 1)).collect();
    let both = BiGru::seeded(input, hidden, 1, &device);
    let gru = both.ahead.clone();
    let theirs = GruConfig::new(input, hidden, true).init(&device);
    let x = uniform([batch, steps, input], 1.0, 2, &device);
    let x = if pass == Pass::Train { x.require_grad() } else { x };
    let finish = |states: Tensor<3>| {
        if pass == Pass::Train {
            std::hint::black_box(states.sum().backward());
        } else {
            std::hint::black_box(states);
        }
    };
    let real = lengths.iter().sum::<usize>();
    let mut products = Products::new(real, input, hidden, pass);
    let times = if units == Units::Both { 2 } else { 1 };
    let twice = |f: &mut dyn FnMut()| (0..times).for_each(|_| f());
    let mut contenders: [(&mut dyn FnMut(), Duration); 4] = [
        (
            &mut || match units {
                Units::Forward => finish(gru.forward(x.clone(), &lengths)),
                Units::Both => finish(both.forward(x.clone(), &lengths)),
            },
            Duration::MAX,
        ),
        (&mut || twice(&mut || finish(composed(&gru, x.clone()))), Duration::MAX),
        (&mut || twice(&mut || finish(theirs.forward(x.clone(), None))), Duration::MAX),
        (&mut || twice(&mut || products.run()), Duration::MAX),
    ];
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(6) {
        for (run, best) in &mut contenders {
            let start = Instant::now();
            run();
            *best = start.elapsed().min(*best);
        }
    }
    let [ours, composed, theirs, products] = contenders.map(|(_, best)| best.as_secs_f64() * 1e3);
    let name = format!("{batch} × {shortest}–{longest} of {steps}, {input} → {times}·{hidden}");
    println!(
        "{name:32} {ours:9.2} {composed:9.2} {theirs:9.2} {products:9.2}  {:.2}",
        ours / products
    );
}

/// The unit in burn's operations, with packed gates and one input product for all steps. It ignores the lengths.
fn composed(gru: &Gru, x: Tensor<3>) -> Tensor<3> {
    let [b, l, i] = x.dims();
    let [h, _] = gru.w_hh.dims();
    let from_x = x.reshape([b * l, i]).matmul(gru.w_ih.val()) + gru.b_ih.val().unsqueeze();
    let from_x = from_x.reshape([b, l, 3 * h]);
    let mut state = Tensor::<2>::zeros([b, h], &from_x.device());
    let mut states = Vec::with_capacity(l);
    for t in 0..l {
        let from_x = from_x.clone().narrow(1, t, 1).reshape([b, 3 * h]);
        let from_h = state.clone().matmul(gru.w_hh.val()) + gru.b_hh.val().unsqueeze();
        let gate = |k: usize| from_x.clone().narrow(1, k * h, h);
        let hidden = |k: usize| from_h.clone().narrow(1, k * h, h);
        let r = sigmoid(gate(0) + hidden(0));
        let z = sigmoid(gate(1) + hidden(1));
        let n = (gate(2) + r * hidden(2)).tanh();
        state = n.clone() + z * (state - n);
        states.push(state.clone());
    }
    Tensor::stack(states, 1)
}

/// The same multiplications, each as one large product. No implementation on this gemm can be faster.
struct Products {
    /// (m, k, n), and the values of the left operand, the right operand and the result.
    all: Vec<([usize; 3], [Vec<f32>; 3])>,
}

impl Products {
    fn new(rows: usize, input: usize, hidden: usize, pass: Pass) -> Self {
        let wide = 3 * hidden;
        let mut sizes = vec![[rows, input, wide], [rows, hidden, wide]];
        if pass == Pass::Train {
            for width in [input, hidden] {
                sizes.push([width, rows, wide]); // gradient of the weights
                sizes.push([rows, wide, width]); // gradient of the input or state
            }
        }
        let ones = |n: usize| vec![1.0; n];
        let all =
            sizes.into_iter().map(|[m, k, n]| ([m, k, n], [ones(m * k), ones(k * n), ones(m * n)]));
        Self { all: all.collect() }
    }

    #[allow(unsafe_code)] // gemm takes pointers
    fn run(&mut self) {
        for ([m, k, n], [a, b, c]) in &mut self.all {
            let (rs_a, rs_b) = (*k as isize, *n as isize);
            // SAFETY: `new` gave the three buffers m·k, k·n and m·n values; the strides describe row-major matrices.
            unsafe {
                #[rustfmt::skip]
                gemm::gemm(
                    *m, *n, *k, c.as_mut_ptr(), 1, rs_b, false, a.as_ptr(), 1, rs_a, b.as_ptr(), 1, rs_b,
                    0.0, 1.0, false, false, false, Parallelism::Rayon(0),
                );
            }
            std::hint::black_box(c.as_ptr());
        }
    }
}
