//! Only the matrix products of a step: no step on this `gemm` can be faster. Right operands that are transposes are
//! written out beforehand.

#![allow(unsafe_code)] // gemm takes pointers

use gemm::Parallelism;
use rayon::prelude::*;

/// How an operand lies in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    RowMajor,
    /// A row-major matrix read as its transpose.
    Transposed,
}
use Layout::{RowMajor, Transposed};

/// `[m, k] · [k, n]` for each of `batch` pairs, repeated `times` times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product {
    sizes: [usize; 3],
    layouts: [Layout; 2],
    batch: usize,
    times: usize,
}

impl Product {
    pub(crate) fn new(sizes: [usize; 3], layouts: [Layout; 2]) -> Self {
        Self { sizes, layouts, batch: 1, times: 1 }
    }

    pub(crate) fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    pub(crate) fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }
}

/// The products of a linear map `i → o` on `rows`: output, gradient of the input and gradient of the weights.
pub(crate) fn linear(rows: usize, i: usize, o: usize) -> [Product; 3] {
    [
        Product::new([rows, i, o], [RowMajor, RowMajor]),
        Product::new([rows, o, i], [RowMajor, RowMajor]), // the weight's transpose, written out
        Product::new([i, rows, o], [Transposed, RowMajor]),
    ]
}

/// Forward and backward products of attention of `batch` heads, `l` positions, width `e` each.
pub(crate) fn attention(batch: usize, l: usize, e: usize) -> [Product; 3] {
    [
        Product::new([l, e, l], [RowMajor, RowMajor]).times(2), // q kᵀ; dy vᵀ, transposes written out
        Product::new([l, l, e], [RowMajor, RowMajor]).times(2), // a v; ds k
        Product::new([l, l, e], [Transposed, RowMajor]).times(2), // aᵀ dy; dsᵀ q
    ]
    .map(|product| product.batch(batch))
}

/// All products of a transformer of 12 blocks, 768 wide, on `b` sequences of `l`.
pub(crate) fn transformer(b: usize, l: usize) -> Vec<Product> {
    let (rows, d, h) = (b * l, 768, 12);
    let mut all = attention(b * h, l, d / h).to_vec();
    for (i, o) in [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)] {
        all.extend(linear(rows, i, o));
    }
    all.into_iter().map(|product| product.times(12 * product.times)).collect()
}

/// All products of a bidirectional gated recurrent unit. The recurrent products are one per step, as each depends on
/// the last.
pub(crate) fn bigru(lengths: &[usize], input: usize, hidden: usize) -> Vec<Product> {
    let (rows, wide) = (lengths.iter().sum(), 3 * hidden);
    let mut all = linear(rows, input, wide).to_vec();
    all.push(Product::new([hidden, rows, wide], [Transposed, RowMajor])); // gradient of the recurrent weights
    for t in 1..lengths.iter().copied().max().unwrap_or(0) {
        let active = lengths.iter().filter(|&&n| n > t).count();
        all.push(Product::new([active, hidden, wide], [RowMajor, RowMajor]));
        all.push(Product::new([active, wide, hidden], [RowMajor, RowMajor])); // the weights' transpose, written out once
    }
    all.into_iter().map(|product| product.times(2)).collect()
}

/// One pass over all products, on the same warm operands: a lower bound.
pub(crate) fn step(products: &[Product]) -> Box<dyn FnMut()> {
    let products = products.to_vec();
    let largest = |size: fn([usize; 3]) -> usize| {
        let sizes = products.iter().map(|p| size(p.sizes) * p.batch);
        vec![1.0f32; sizes.max().unwrap_or(0)]
    };
    let mut buffers =
        [largest(|[m, k, _]| m * k), largest(|[_, k, n]| k * n), largest(|[m, _, n]| m * n)];
    Box::new(move || {
        for product in &products {
            for _ in 0..product.times {
                multiply(product, &mut buffers);
                std::hint::black_box(&mut buffers);
            }
        }
    })
}

/// A single product uses all threads; in a batch, each product uses one.
fn multiply(product: &Product, [a, b, c]: &mut [Vec<f32>; 3]) {
    let ([m, k, n], batch) = (product.sizes, product.batch);
    let (a, b, c) = (&a[..m * k * batch], &b[..k * n * batch], &mut c[..m * n * batch]);
    if batch == 1 {
        return multiply_one(product, a, b, c, Parallelism::Rayon(0));
    }
    let operands = a.par_chunks(m * k).zip(b.par_chunks(k * n));
    c.par_chunks_mut(m * n)
        .zip(operands)
        .for_each(|(c, (a, b))| multiply_one(product, a, b, c, Parallelism::None));
}

fn multiply_one(product: &Product, a: &[f32], b: &[f32], c: &mut [f32], threads: Parallelism) {
    let [m, k, n] = product.sizes;
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "{product:?}");
    // (column stride, row stride) of a matrix with these rows and columns
    let strides = |layout, rows: usize, cols: usize| match layout {
        RowMajor => (1, cols as isize),
        Transposed => (rows as isize, 1),
    };
    let (a_col, a_row) = strides(product.layouts[0], m, k);
    let (b_col, b_row) = strides(product.layouts[1], k, n);
    // SAFETY: the slices hold m·k, k·n and m·n values by the assertion above, and the strides describe a matrix that
    // fills its slice, row by row or column by column; `c` is borrowed mutably, so it overlaps neither operand.
    unsafe {
        #[rustfmt::skip]
        gemm::gemm(
            m, n, k, c.as_mut_ptr(), 1, n as isize, false, a.as_ptr(), a_col, a_row, b.as_ptr(), b_col, b_row,
            0.0, 1.0, false, false, false, threads,
        );
    }
}
