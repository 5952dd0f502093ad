//! Twelve rows times one panel of 16 columns, over one pass.

use super::{COLUMNS, Engine, ROWS};

/// Rows of pairs, and the distance of two rows.
type StridedRows<'a> = (&'a [i16], usize);
/// A part of a panel: pairs of 16 columns.
type Panel = [[i16; 2 * COLUMNS]];
/// Rows of sums, and the distance of two rows.
type Sums<'a> = (&'a mut [i32], usize);

/// Writes the sums of a pass, or adds them: `to[r · width + c] (+)= Σ a[r, ·] b[·, c]`.
///
/// `a` has its rows at a distance. The last row of `to` may end with its last column.
///
/// # Panics
/// If a slice is too short.
#[allow(unsafe_code)] // calls below a feature check
pub(super) fn compute(
    engine: Engine,
    (a, stride): StridedRows,
    b: &Panel,
    (to, width): Sums,
    add: bool,
) {
    let last = ROWS - 1;
    assert!(a.len() >= last * stride + 2 * b.len(), "{ROWS} rows in {} values", a.len());
    assert!(to.len() >= last * width + COLUMNS, "{ROWS} rows in {} sums", to.len());
    match engine {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Engine::here` names this engine where the processor has its features. The lengths were asserted above.
        Engine::Vnni => unsafe { x86::vnni((a, stride), b, (to, width), add) },
        #[cfg(target_arch = "x86_64")]
        Engine::Avx2 => {
            const HALF: usize = ROWS / 2;
            for first in [0, HALF] {
                let (a, to) = (&a[first * stride..], &mut to[first * width..]);
                // SAFETY: as above; six rows from `first` on lie inside, as `first + 6 ≤ 12`.
                unsafe { x86::avx2((a, stride), b, (to, width), add) }
            }
        }
        Engine::Plain => plain((a, stride), b, (to, width), add),
    }
}

fn plain((a, stride): StridedRows, b: &Panel, (to, width): Sums, add: bool) {
    for r in 0..ROWS {
        let mut sums = [0i32; COLUMNS];
        for (b, a) in b.iter().zip(a[r * stride..].chunks_exact(2)) {
            for (sum, b) in sums.iter_mut().zip(b.chunks_exact(2)) {
                let term = |k: usize| i32::from(a[k]) * i32::from(b[k]);
                *sum = sum.wrapping_add(term(0)).wrapping_add(term(1));
            }
        }
        for (to, sum) in to[r * width..][..COLUMNS].iter_mut().zip(sums) {
            *to = if add { to.wrapping_add(sum) } else { sum };
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // loads and stores of whole registers
#[allow(clippy::needless_range_loop)] // registers are counted
mod x86 {
    use std::arch::x86_64::*;

    use super::{Panel, ROWS, StridedRows, Sums};

    /// 12 of 16 registers hold sums, two hold columns, one a pair of a row, one a product.
    ///
    /// # Safety
    /// `a` has six rows of `2 · b.len()` values, `stride` apart; `to` has six rows of 16 sums, `width` apart.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2((a, stride): StridedRows, b: &Panel, (to, width): Sums, add: bool) {
        const HIGH: usize = ROWS / 2;
        let mut sums = [[_mm256_setzero_si256(); 2]; HIGH];
        for (p, b) in b.iter().enumerate() {
            let b = b.as_ptr().cast::<__m256i>();
            // SAFETY: 32 values of 16 bits are two registers.
            let b = unsafe { [_mm256_loadu_si256(b), _mm256_loadu_si256(b.add(1))] };
            for r in 0..HIGH {
                // SAFETY: the pair lies inside row `r`, by the caller's contract.
                let pair =
                    unsafe { a.as_ptr().add(r * stride + 2 * p).cast::<i32>().read_unaligned() };
                let pair = _mm256_set1_epi32(pair);
                for c in 0..2 {
                    sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(pair, b[c]));
                }
            }
        }
        for r in 0..HIGH {
            for c in 0..2 {
                // SAFETY: eight sums from `8 c` on lie inside the 16 of row `r`, by the caller's contract.
                unsafe {
                    let to = to.as_mut_ptr().add(r * width + 8 * c).cast::<__m256i>();
                    let held = if add { _mm256_loadu_si256(to) } else { _mm256_setzero_si256() };
                    _mm256_storeu_si256(to, _mm256_add_epi32(held, sums[r][c]));
                }
            }
        }
    }

    /// 12 registers hold sums.
    ///
    /// # Safety
    /// `a` has twelve rows of `2 · b.len()` values, `stride` apart; `to` has twelve rows of 16 sums, `width` apart.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn vnni((a, stride): StridedRows, b: &Panel, (to, width): Sums, add: bool) {
        let mut sums = [_mm512_setzero_si512(); ROWS];
        for (p, b) in b.iter().enumerate() {
            // SAFETY: 32 values of 16 bits are one register.
            let b = unsafe { _mm512_loadu_si512(b.as_ptr().cast()) };
            for r in 0..ROWS {
                // SAFETY: the pair lies inside row `r`, by the caller's contract.
                let pair =
                    unsafe { a.as_ptr().add(r * stride + 2 * p).cast::<i32>().read_unaligned() };
                sums[r] = _mm512_dpwssd_epi32(sums[r], _mm512_set1_epi32(pair), b);
            }
        }
        for r in 0..ROWS {
            // SAFETY: row `r` has 16 sums, by the caller's contract.
            unsafe {
                let to = to.as_mut_ptr().add(r * width).cast::<__m512i>();
                let held = if add { _mm512_loadu_si512(to) } else { _mm512_setzero_si512() };
                _mm512_storeu_si512(to, _mm512_add_epi32(held, sums[r]));
            }
        }
    }
}
