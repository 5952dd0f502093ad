//! Products of 16-bit integers with exact 32-bit sums: a coarse product with a bound that can be proved.
//!
//! ```text
//! C = Q R ᵀ,   q = round(A · v),  r = round(B · w)
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | Q | [`PackedRows`]: the left operand, rounded | `[m, k]` |
//! | R | [`PackedColumns`]: the right operand, rounded, one row per column of the product | `[n, k]` |
//! | A, B | the scales of both operands | |
//! | round | [`round`]: to the nearest integer, ties to even | |
//!
//! Integer sums have no rounding errors and no order. Hence every engine gives the same result, and the whole error of `C` is the error
//! of the two roundings:
//!
//! ```text
//! |A B · v·w − q·r| ≤ ‖q‖ · ‖B w − r‖ + ‖A v − q‖ · ‖B w‖
//! ```
//!
//! A sum fits in 32 bits if `‖q‖ · ‖r‖ < 2³¹`, because the absolute values of the products of each part of the sum then have a
//! smaller sum. Scales that make the longest rows 32,000 long guarantee this bound. Larger sums wrap around.
//!
//! # Processors
//! [`supported`] processors have AVX2. They compute some 1.7 times as fast as in f32 (AVX-512 with VNNI: in theory twice as fast). Other
//! processors give the same result, slower than an f32 product.
//!
//! ```
//! use itm_kernels::int16::{PackedColumns, PackedRows, product};
//!
//! let (mut v, mut w, mut c) = (PackedRows::default(), PackedColumns::default(), Vec::new());
//! v.fill(&[0.1, 0.2, -0.3, 0.4], 2, 100.0); // 10 20 and −30 40
//! w.fill(&[0.5, 0.6], 2, 10.0); // 5 6
//! product(&v, 0..2, &w, &mut c);
//! assert_eq!([c[0], c[w.width()]], [170, 90]);
//! ```

mod pack;
#[cfg(test)]
mod tests;
mod tile;

use std::ops::Range;

pub use pack::{PackedColumns, PackedRows, round};

/// Rows that are computed together: a multiple of the rows that each engine's registers hold.
const ROWS: usize = 12;
/// Columns of a panel: one register of AVX-512, two registers of AVX2.
const COLUMNS: usize = 16;
/// Pairs of one pass: a panel's part of 16 KiB stays in the first-level cache.
const PASS: usize = 256;

/// Whether this processor multiplies 16-bit integers faster than f32 numbers: AVX2.
pub fn supported() -> bool {
    !matches!(Engine::best(), Engine::Plain)
}

/// Who computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// AVX-512 F, BW and VNNI.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Loops.
    Plain,
}

impl Engine {
    /// All engines of this processor, the fastest first.
    fn here() -> Vec<Self> {
        let mut engines = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                engines.push(Self::Vnni);
            }
            if is_x86_feature_detected!("avx2") {
                engines.push(Self::Avx2);
            }
        }
        engines.push(Self::Plain);
        engines
    }

    fn best() -> Self {
        Self::here()[0]
    }
}

/// `to[i · width + j] = Σₖ q[first + i, k] · r[j, k]` for some rows and every column, with [`PackedColumns::width`] values between rows.
///
/// `to` grows as needed. Columns beyond the last one are 0; what follows the last row has no meaning.
///
/// # Panics
/// If the operands differ in depth, or there are not as many rows.
pub fn product(rows: &PackedRows, some: Range<usize>, columns: &PackedColumns, to: &mut Vec<i32>) {
    product_by(Engine::best(), rows, some, columns, to);
}

fn product_by(
    engine: Engine,
    rows: &PackedRows,
    some: Range<usize>,
    columns: &PackedColumns,
    to: &mut Vec<i32>,
) {
    let (pairs, width) = (rows.pairs, columns.width());
    assert_eq!(pairs, columns.pairs, "pairs of values in a row and in a column");
    assert!(some.end <= rows.rows, "rows {some:?} of {}", rows.rows);
    let high = some.len().next_multiple_of(ROWS);
    to.resize(to.len().max(high * width), 0);
    let passes = pairs.div_ceil(PASS).max(1); // one without pairs writes zeros
    let length = pairs.div_ceil(passes);
    for pass in 0..passes {
        let depth = pass * length..pairs.min((pass + 1) * length);
        for i in (0..high).step_by(ROWS) {
            let a = rows.part(some.start + i, depth.clone());
            for (panel, at) in (0..width).step_by(COLUMNS).enumerate() {
                let b = &columns.panel(panel)[depth.clone()];
                let to = &mut to[i * width + at..(i + ROWS - 1) * width + at + COLUMNS];
                tile::compute(engine, a, b, (to, width), pass > 0);
            }
        }
    }
}
