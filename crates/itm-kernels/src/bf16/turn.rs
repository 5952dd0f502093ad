//! The values of a cell as pairs.

use std::mem::MaybeUninit;

use super::value::pair;
use crate::matrix::Matrix;

/// The parts of neighbouring panels inside one cell.
type PanelParts<'a, const WIDTH: usize> = [&'a mut [[MaybeUninit<u32>; WIDTH]]];

/// Writes the rows of `from` as lanes, value by value, to every place of `to`.
pub(super) fn emulated<const WIDTH: usize>(to: &mut PanelParts<WIDTH>, from: Matrix) {
    for (p, panel) in to.iter_mut().enumerate() {
        for (t, pairs) in panel.iter_mut().enumerate() {
            for (lane, to) in (p * WIDTH..).zip(pairs) {
                to.write(pair(from.get(lane, 2 * t), from.get(lane, 2 * t + 1)));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::processor;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // loads, stores and transmutes of registers
mod x86 {
    use std::arch::x86_64::*;
    use std::array::from_fn;
    use std::mem::{MaybeUninit, transmute};

    use super::super::CELL;
    use super::PanelParts;
    use crate::matrix::Matrix;
    use crate::product::Threads;
    use crate::transpose::transposed;

    /// Lanes of a register of pairs.
    const SIDE: usize = 16;

    /// Values of a register.
    type Values = [f32; SIDE];
    /// Pairs side by side.
    type PairRegister = [u32; SIDE];
    /// 16 lanes of 16 pairs.
    type Square = [__m512; SIDE];

    /// [`emulated`](super::emulated) with the instructions of the processor.
    ///
    /// If all threads pack, they stream whole cache lines: a weight is used again only after all the others. A streamed
    /// line is not fetched before it is written, which saves a third of the traffic. If one thread packs for itself, the
    /// lines stay in its cache.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(in super::super) fn processor<const WIDTH: usize>(
        to: &mut PanelParts<WIDTH>,
        from: Matrix,
        threads: Threads,
    ) {
        match threads {
            Threads::This => pack::<WIDTH, false>(to, from),
            Threads::All => {
                pack::<WIDTH, true>(to, from);
                _mm_sfence(); // streamed values are in memory before another thread may read them
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn pack<const WIDTH: usize, const STREAM: bool>(to: &mut PanelParts<WIDTH>, from: Matrix) {
        let pairs = to.first().map_or(0, |panel| panel.len());
        if from.is_column_major() {
            across::<WIDTH, STREAM>(to, pairs, from.t())
        } else {
            along::<WIDTH, STREAM>(to, pairs, from)
        }
    }

    /// Lanes are the rows of `from`: each lane gives a line of pairs, and squares of lines are transposed.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn along<const WIDTH: usize, const STREAM: bool>(
        to: &mut PanelParts<WIDTH>,
        pairs: usize,
        from: Matrix,
    ) {
        let count = pairs.div_ceil(SIDE);
        let mut squares = [[_mm512_setzero_ps(); SIDE]; CELL / 2 / SIDE];
        for lane in (0..to.len() * WIDTH).step_by(SIDE) {
            for r in 0..SIDE {
                let row = from.row(lane + r);
                prefetch(from.row(lane + r + SIDE));
                let whole = row.as_chunks::<SIDE>().0.as_chunks::<2>().0;
                for (square, [first, second]) in squares.iter_mut().zip(whole) {
                    square[r] = neighbours(load(first), load(second));
                }
                for (s, square) in squares.iter_mut().enumerate().take(count).skip(whole.len()) {
                    let at = 2 * SIDE * s;
                    square[r] = if from.has_rows() {
                        neighbours(load_part(row, at), load_part(row, at + SIDE))
                    } else {
                        let values = |j| from_fn(|c| from.get(lane + r, j + c));
                        neighbours(load(&values(at)), load(&values(at + SIDE)))
                    };
                }
            }
            for (s, square) in squares[..count].iter().enumerate() {
                put::<WIDTH, STREAM>(to, lane, SIDE * s, &stored(transposed(*square)));
            }
        }
    }

    /// Lanes are the columns of `from`: two rows of values give one row of pairs.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn across<const WIDTH: usize, const STREAM: bool>(
        to: &mut PanelParts<WIDTH>,
        pairs: usize,
        from: Matrix,
    ) {
        let count = (to.len() * WIDTH).div_ceil(SIDE);
        let mut squares = [[[0; SIDE]; SIDE]; CELL / SIDE];
        for first in (0..pairs).step_by(SIDE) {
            for (r, t) in (first..pairs.min(first + SIDE)).enumerate() {
                let [upper, lower] = [2 * t, 2 * t + 1].map(|i| from.row(i));
                [2 * t + SIDE, 2 * t + 1 + SIDE].into_iter().for_each(|i| prefetch(from.row(i)));
                let [above, below] = [upper, lower].map(|row| row.as_chunks().0);
                let whole = above.len().min(below.len());
                for ((square, above), below) in squares.iter_mut().zip(above).zip(below) {
                    square[r] = zipped(load(above), load(below));
                }
                for (s, square) in squares.iter_mut().enumerate().take(count).skip(whole) {
                    square[r] = zipped(load_part(upper, SIDE * s), load_part(lower, SIDE * s));
                }
            }
            for (s, square) in squares[..count].iter().enumerate() {
                put::<WIDTH, STREAM>(to, SIDE * s, first, square);
            }
        }
    }

    /// Writes the 16 lanes of a square to their places, if these exist. A panel is three squares or half a square wide.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn put<const WIDTH: usize, const STREAM: bool>(
        to: &mut PanelParts<WIDTH>,
        lane: usize,
        first: usize,
        square: &[PairRegister; SIDE],
    ) {
        const { assert!(WIDTH.is_multiple_of(SIDE) || SIDE.is_multiple_of(WIDTH)) };
        let wide = WIDTH.min(SIDE);
        for at in (0..SIDE).step_by(wide) {
            let Some(panel) = to.get_mut((lane + at) / WIDTH) else { break };
            let inside = (lane + at) % WIDTH;
            for (to, line) in panel[first..].iter_mut().zip(square) {
                let to = &mut to[inside..][..wide];
                match to.first_chunk_mut() {
                    Some(to)
                        if STREAM
                            && to.as_ptr().addr().is_multiple_of(size_of::<PairRegister>()) =>
                    {
                        stream(to, line);
                    }
                    _ => _ = to.write_copy_of_slice(&line[at..][..wide]),
                }
            }
        }
    }

    /// Streams a line past the cache to its place, which must start at a cache line.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn stream(to: &mut [MaybeUninit<u32>; SIDE], line: &PairRegister) {
        debug_assert!(to.as_ptr().addr().is_multiple_of(size_of::<PairRegister>()));
        // SAFETY: `line` and `to` have the 16 pairs of a register; `to` is aligned, as asserted, and borrowed mutably.
        unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_stream_si512(to.as_mut_ptr().cast(), line);
        }
    }

    /// 32 neighbours as 16 pairs.
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[inline]
    fn neighbours(first: __m512, second: __m512) -> __m512 {
        let both = _mm512_cvtne2ps_pbh(second, first);
        // SAFETY: both types are 512 bits, and all bits are valid.
        unsafe { transmute(both) }
    }

    /// 16 pairs of a value and the value below it.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    #[inline]
    fn zipped(upper: __m512, lower: __m512) -> PairRegister {
        const ORDER: [u16; 2 * SIDE] = {
            let mut order = [0; 2 * SIDE];
            let mut k = 0;
            while k < order.len() {
                order[k] = (k / 2 + SIDE * (k % 2)) as u16;
                k += 1;
            }
            order
        };
        let both = _mm512_cvtne2ps_pbh(lower, upper);
        // SAFETY: all types are 512 bits, and all bits are valid.
        unsafe {
            let order = transmute::<[u16; 2 * SIDE], __m512i>(ORDER);
            let both = transmute::<__m512bh, __m512i>(both);
            transmute::<__m512i, PairRegister>(_mm512_permutexvar_epi16(order, both))
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(from: &Values) -> __m512 {
        // SAFETY: the register has the 16 values of `from`.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    /// Starts to fetch a row that is needed soon. Rows are far apart, so the processor does not foresee the next one.
    #[inline]
    fn prefetch(row: &[f32]) {
        for line in row.chunks(SIDE) {
            // SAFETY: a prefetch changes nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
    }

    /// The values of `from` from `at` on, at most 16, then zeros.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load_part(from: &[f32], at: usize) -> __m512 {
        let left = from.len().saturating_sub(at);
        if left == 0 {
            return _mm512_setzero_ps(); // a masked load from nowhere is slow
        }
        let mask = if left < SIDE { (1 << left) - 1 } else { !0 };
        // SAFETY: the mask has a bit for each value of `from` from `at` on, and no other bit; only these are read.
        unsafe { _mm512_maskz_loadu_ps(mask, from.as_ptr().wrapping_add(at)) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn stored(square: Square) -> [PairRegister; SIDE] {
        // SAFETY: both types are 16 times 512 bits, and all bits are valid.
        unsafe { transmute(square) }
    }
}
