//! A tile of the product, 8 × 48, over one pass.

use std::mem::MaybeUninit;

use super::value::dot;
use super::{COLUMNS, ROWS};
use crate::dispatch::multiversion;

/// A part of a left panel: pairs of 8 rows.
pub(super) type Left = [[u32; ROWS]];
/// A part of a right panel: pairs of 48 columns.
pub(super) type Right = [[u32; COLUMNS]];
/// Rows of the destination, which are equally long.
pub(super) type OutRows<'a> = [&'a mut [MaybeUninit<f32>]];

/// The values that the sums of a pass are added to.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// Nothing; the destination is not read.
    Zero,
    /// The same row for each row of the product, `[n]`: a bias. The destination is not read.
    Row(&'a [f32]),
    /// The values in the destination. Code that makes this must make sure that they are initialised.
    Held,
}

impl Base<'_> {
    /// The same base for the columns from `column` on.
    pub(super) fn at_column(self, column: usize) -> Self {
        match self {
            Self::Row(row) => Self::Row(&row[column..]),
            base => base,
        }
    }
}

/// Adds the product of two parts of panels to at most 8 rows, from column `at` on, step by step.
///
/// Without [`Base::Held`] it writes every place of these rows from `at` on, up to 48 columns.
pub(super) fn emulated(a: &Left, b: &Right, rows: &mut OutRows, at: usize, base: Base) {
    let mut tile = [[0.0; COLUMNS]; ROWS];
    sums(&mut tile, a, b);
    for (row, sums) in rows.iter_mut().zip(&tile) {
        put(sums, &mut row[at..], base);
    }
}

multiversion! {
    /// `tile += aᵀ b` over the pairs in their order. Each step is fused, in software if there is no instruction.
    fn sums[_FMA](tile: &mut [[f32; COLUMNS]; ROWS], a: &Left, b: &Right) {
        for (r, sums) in tile.iter_mut().enumerate() {
            for (a, b) in a.iter().zip(b) {
                sums.iter_mut().zip(b).for_each(|(sum, &b)| *sum = dot(*sum, a[r], b));
            }
        }
    }
}

#[allow(unsafe_code)] // values already in the destination
fn put(sums: &[f32; COLUMNS], to: &mut [MaybeUninit<f32>], base: Base) {
    let places = to.iter_mut().zip(sums);
    match base {
        Base::Zero => places.for_each(|(to, &sum)| _ = to.write(sum)),
        Base::Row(row) => {
            places.zip(row).for_each(|((to, &sum), &start)| _ = to.write(start + sum));
        }
        // SAFETY: by the contract of `Held`, the destination has values.
        Base::Held => places.for_each(|(to, &sum)| *unsafe { to.assume_init_mut() } += sum),
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::processor;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // loads and stores of whole registers
#[allow(clippy::needless_range_loop)] // registers are counted
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::{MaybeUninit, transmute};

    use super::{Base, COLUMNS, Left, OutRows, ROWS, Right};

    /// Values of a register.
    const LANES: usize = 16;
    /// Registers of a row.
    const WIDE: usize = COLUMNS / LANES;

    /// At most 24 of the 32 registers. The other registers hold a row of `b` and one value of `a`.
    type Sums<const N: usize> = [[__m512; N]; ROWS];

    /// [`emulated`](super::emulated) with the instructions of the processor.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(in super::super) fn processor(
        a: &Left,
        b: &Right,
        rows: &mut OutRows,
        at: usize,
        base: Base,
    ) {
        // The rows are far apart in memory, so they are fetched while the sums are computed.
        for row in rows.iter() {
            for c in 0..WIDE {
                _mm_prefetch::<_MM_HINT_ET0>(row.as_ptr().wrapping_add(at + LANES * c).cast());
            }
        }
        // The last panel may have fewer columns; registers without a column are left out.
        let width = rows.first().map_or(0, |row| row.len() - at);
        match width.div_ceil(LANES) {
            0 | 1 => of_width::<1>(a, b, rows, at, base),
            2 => of_width::<2>(a, b, rows, at, base),
            _ => of_width::<WIDE>(a, b, rows, at, base),
        }
    }

    /// [`processor`] for tiles of `N` registers a row.
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[inline]
    fn of_width<const N: usize>(a: &Left, b: &Right, rows: &mut OutRows, at: usize, base: Base) {
        let sums = sums::<N>(a, b);
        for (row, sums) in rows.iter_mut().zip(sums) {
            put(sums, &mut row[at..], base);
        }
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    #[inline]
    fn sums<const N: usize>(a: &Left, b: &Right) -> Sums<N> {
        const { assert!(N <= WIDE) };
        let mut sums = [[_mm512_setzero_ps(); N]; ROWS];
        for (a, b) in a.iter().zip(b) {
            let mut pairs = [_mm512_setzero_si512(); N];
            for c in 0..N {
                // SAFETY: 16 pairs from 16 c on lie inside the 48 of `b`, as c < N ≤ 3.
                pairs[c] = unsafe { _mm512_loadu_si512(b.as_ptr().add(LANES * c).cast()) };
            }
            for r in 0..ROWS {
                let one = _mm512_set1_epi32(a[r].cast_signed());
                for c in 0..N {
                    // SAFETY: both types are 512 bits, and all bits are valid.
                    let [one, pairs]: [__m512bh; 2] = unsafe { transmute([one, pairs[c]]) };
                    sums[r][c] = _mm512_dpbf16_ps(sums[r][c], one, pairs);
                }
            }
        }
        sums
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    #[inline]
    fn put<const N: usize>(sums: [__m512; N], to: &mut [MaybeUninit<f32>], base: Base) {
        if let Base::Row(row) = base {
            assert!(row.len() >= to.len(), "{} values of a row's {}", row.len(), to.len());
        }
        for (c, sum) in sums.into_iter().enumerate() {
            let left = to.len().saturating_sub(LANES * c);
            let mask = if left < LANES { (1 << left) - 1 } else { !0 };
            let to = to.as_mut_ptr().wrapping_add(LANES * c).cast::<f32>();
            // SAFETY: the mask has a bit for each value of `to` from 16 c on, and no other bit; only these values are
            // read and written. `row` is as long as `to`, as asserted. By the contract of `Held`, `to` has values.
            unsafe {
                let sum = match base {
                    Base::Zero => sum,
                    Base::Row(row) => {
                        let row = row.as_ptr().wrapping_add(LANES * c);
                        _mm512_add_ps(_mm512_maskz_loadu_ps(mask, row), sum)
                    }
                    Base::Held => _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum),
                };
                _mm512_mask_storeu_ps(to, mask, sum);
            }
        }
    }
}
