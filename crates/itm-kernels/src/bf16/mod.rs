//! Products of bf16 operands with f32 sums: half the bytes of an f32 product, twice the products per instruction.
//!
//! ```text
//! C = S + Ã B̃,   ã = round(a),  b̃ = round(b)
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | Ã | [`LeftOperand`]: the left operand, rounded | `[m, k]` |
//! | B̃ | [`RightOperand`]: the right operand, rounded | `[k, n]` |
//! | S | 0, or the same row, a bias, for each row of the product | `[m, n]` |
//! | round | [`round`]: to the nearest number with 8 significant bits | |
//!
//! Packing rounds an operand once; a packed operand can be used many times. Nothing else is rounded to bf16: products
//! are exact inside a sum, and sums are f32.
//!
//! # The order of sums
//! Each value of the product is summed in one order, which depends only on `k`. The depth is cut into
//! `p = ⌈k / 1024⌉` passes of equal length `q` (whole pairs; the last pass may be shorter). A pass adds its products
//! one by one to 0, the second of each pair before the first. The sums of the passes are added to the start in their
//! order. So neither the number of threads nor the other rows and columns change a bit.
//!
//! # Errors of the result
//! For finite operands whose roundings are finite, with no value or product below 2⁻¹²⁶, and with `u = 2⁻²⁴`:
//!
//! ```text
//! |ĉ − c| ≤ ((1 + 2⁻⁸)² (1 + γ) − 1) Σ |a| |b|  +  γ |s|,    γ = j u / (1 − j u),   j = q + p
//! ```
//!
//! because each term has two roundings to bf16 and at most `j` roundings to f32. A step whose result is below 2⁻¹²⁶
//! gives 0, and an operand below 2⁻¹²⁶ counts as 0. NaN and infinities are kept.
//!
//! # Processors
//! [`supported`] says whether the processor has AVX512-BF16. Other processors run the same arithmetic step by step
//! and give the same bits (only the bits of a NaN may differ). This is far slower than an f32 product and is meant
//! for tests, so call [`supported`] first.
//!
//! ```
//! use itm_kernels::Matrix;
//! use itm_kernels::bf16::{LeftOperand, RightOperand, product_new};
//!
//! let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // [3, 2]
//! let w = [1.0, 0.0, 2.0, 0.0, 1.0, 3.0]; // [2, 3]
//! let x = LeftOperand::pack(Matrix::new(&x, 3, 2));
//! let w = RightOperand::pack(Matrix::new(&w, 2, 3)); // once, for many products
//! let y = product_new(Some(&[10.0, 20.0, 30.0]), &x, &w);
//! assert_eq!(y, [11., 22., 38., 13., 24., 48., 15., 26., 58.]);
//! ```

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)] // memory with forbidden pages comes from the system
mod guard_tests;
mod pack;
mod product;
#[cfg(test)]
mod tests;
mod tile;
mod turn;
mod value;

pub use pack::{LeftOperand, RightOperand};
pub(crate) use pack::{both_here, pack_both};
pub(crate) use product::product_here;
pub use product::product_new;
pub use value::round;
#[cfg(test)]
pub(crate) use value::widen;

/// Rows of a tile, and lanes of a left panel.
const ROWS: usize = 8;
/// Columns of a tile, and lanes of a right panel: three registers.
const COLUMNS: usize = 48;
/// Side of a cell, which one task packs: 144 KiB of values, whole panels of both widths, and whole cache lines.
const CELL: usize = 192;

/// Whether this processor has instructions for bf16 products: AVX-512 F, BW and BF16.
pub fn supported() -> bool {
    !matches!(Engine::best(), Engine::Emulated)
}

/// How products are computed.
#[derive(Debug, Clone, Copy)]
enum Engine {
    /// With the instructions of the processor.
    #[cfg(target_arch = "x86_64")]
    Processor(Instructions),
    /// With the same arithmetic, step by step.
    Emulated,
}

/// Says that the processor has AVX-512 F, BW and BF16. Only [`Engine::best`] makes it.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
struct Instructions(());

impl Engine {
    /// The processor if it has the instructions. The standard library detects features once and keeps the result.
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512bf16")
        {
            return Self::Processor(Instructions(()));
        }
        Self::Emulated
    }
}
