//! Products of bf16 operands with f32 sums: half the bytes and twice the multiplications of an f32 product.
//!
//! ```text
//! C = S + Ã B̃,   ã = round(a),  b̃ = round(b)
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | Ã | [`Rows`]: the left operand, rounded | `[m, k]` |
//! | B̃ | [`Columns`]: the right operand, rounded | `[k, n]` |
//! | S | [`Start`], or what stands in the destination | `[m, n]` |
//! | round | [`round`]: to the nearest number with 8 significant bits | |
//!
//! Operands are rounded where they are packed, and may be used many times then. Nothing else is rounded to bf16: products
//! are exact inside a sum, and sums are f32.
//!
//! # The order of sums
//! Each value of the product has one order, a function of `k` alone. The depth is cut into `p = ⌈k / 1024⌉` passes of equal
//! length `q` (in pairs, the last one may be shorter). A pass adds its products one by one to 0, the second of each pair
//! before the first. The passes' sums are added to the start in their order. Thus the number of threads changes no bit, and
//! neither do the other rows and columns.
//!
//! # Errors of the result
//! For finite operands whose roundings are finite, with no value or product below 2⁻¹²⁶, and with `u = 2⁻²⁴`:
//!
//! ```text
//! |ĉ − c| ≤ ((1 + 2⁻⁸)² (1 + γ) − 1) Σ |a| |b|  +  γ |s|,    γ = j u / (1 − j u),   j = q + p
//! ```
//!
//! as each term carries two roundings to bf16 and at most `j` of f32. A step whose result is below 2⁻¹²⁶ gives 0, and an
//! operand below it counts as 0. NaN and infinities stay what they are.
//!
//! # Processors
//! [`supported`] ones have AVX512-BF16. Elsewhere the same arithmetic runs step by step and gives the same bits (a NaN may
//! carry others), far slower than an f32 product: it is there for tests. Ask first.
//!
//! ```
//! use itm_kernels::bf16::{Columns, Rows, Start, View, product_new};
//!
//! let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // [3, 2]
//! let w = [1.0, 0.0, 2.0, 0.0, 1.0, 3.0]; // [2, 3]
//! let x = Rows::pack(View::new(&x, 3, 2));
//! let w = Columns::pack(View::new(&w, 2, 3)); // once, for many products
//! let y = product_new(Start::Row(&[10.0, 20.0, 30.0]), &x, &w);
//! assert_eq!(y, [11., 22., 38., 13., 24., 48., 15., 26., 58.]);
//! ```

mod pack;
mod product;
mod start;
#[cfg(test)]
mod tests;
mod tile;
mod turn;
mod value;
mod view;

pub use pack::{Columns, Packed, Rows, pack_gradient, pack_input, pack_weight, repack_weight};
pub use product::{add_product, product, product_new};
pub use start::Start;
pub use value::{round, widen};
pub use view::View;

/// Rows of a tile, lanes of a left operand's panel.
const ROWS: usize = 8;
/// Columns of a tile, lanes of a right operand's panel: three registers.
const COLUMNS: usize = 48;
/// Side of a cell: what one task packs, 144 KiB of values. Whole panels of both widths, and whole lines of cache.
const CELL: usize = 192;

/// Whether this processor multiplies bf16 numbers itself: AVX-512 F, BW and BF16.
pub fn supported() -> bool {
    !matches!(Engine::best(), Engine::Emulated)
}

/// Who computes.
#[derive(Debug, Clone, Copy)]
enum Engine {
    /// The processor.
    #[cfg(target_arch = "x86_64")]
    Processor(Checked),
    /// The same arithmetic, step by step.
    Emulated,
}

/// Made by [`Engine::best`] alone, where the processor has AVX-512 F, BW and BF16.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
struct Checked(());

impl Engine {
    /// The processor, if it can; the standard library keeps what it found.
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512bf16")
        {
            return Self::Processor(Checked(()));
        }
        Self::Emulated
    }
}
