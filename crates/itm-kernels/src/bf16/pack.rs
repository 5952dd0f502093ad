//! Operands in the order of use: rounded, in pairs along the sum, in panels.

use std::mem::{MaybeUninit, take};

use rayon::prelude::*;

use super::{CELL, COLUMNS, Engine, ROWS, turn};
use crate::matrix::Matrix;
use crate::product::Threads;

/// Bytes of a cache line. Loads of registers start at a cache line.
const ALIGNMENT: usize = 64;

/// An operand of [`product_new`](super::product_new): `lanes` rows or columns of `depth` values. Sums run along the depth.
///
/// ```text
/// panel p, pair t, lane i:   round(lane i + p·WIDTH, value 2 t)  and above it  round(…, value 2 t + 1)
/// ```
///
/// The lanes that fill the last panel are 0, and so is the value after an odd depth. A value takes 2 bytes.
#[derive(Debug, Clone, Default)]
pub struct Operand<const WIDTH: usize> {
    /// Some zeros, then the pairs.
    data: Vec<u32>,
    /// Number of these zeros. They put the first pair at the start of a cache line.
    skip: usize,
    lanes: usize,
    depth: usize,
}

/// A left operand.
pub type LeftOperand = Operand<ROWS>;
/// A right operand.
pub type RightOperand = Operand<COLUMNS>;

impl LeftOperand {
    /// The left operand `a`, `[m, k]`.
    pub fn pack(a: Matrix) -> Self {
        one(Engine::best(), Threads::All, a, Vec::new())
    }
}

impl RightOperand {
    /// The right operand `b`, `[k, n]`.
    pub fn pack(b: Matrix) -> Self {
        one(Engine::best(), Threads::All, b.t(), Vec::new())
    }
}

/// The rows of `from` as lanes, and its columns as lanes, from one pass over `from`.
pub(crate) fn pack_both<const P: usize, const Q: usize>(from: Matrix) -> (Operand<P>, Operand<Q>) {
    both(Engine::best(), Threads::All, from, [Vec::new(), Vec::new()])
}

/// The rows of `from` as lanes, and its columns as lanes, in the memory of earlier operands. They are packed on the calling
/// thread, which uses both at once.
pub(crate) fn both_here<const P: usize, const Q: usize>(
    packed: &mut (Operand<P>, Operand<Q>),
    from: Matrix,
) {
    let memory = [take(&mut packed.0.data), take(&mut packed.1.data)];
    *packed = both(Engine::best(), Threads::This, from, memory);
}

impl<const WIDTH: usize> Operand<WIDTH> {
    /// The rows of `from` as lanes, in the memory of this operand. They are packed on the calling thread, which uses them
    /// at once.
    pub(crate) fn here(&mut self, from: Matrix) {
        *self = one(Engine::best(), Threads::This, from, take(&mut self.data));
    }

    /// Number of rows of a left operand, or of columns of a right operand.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Number of products in a sum.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn pairs(&self) -> usize {
        self.depth.div_ceil(2)
    }

    /// The pairs of a panel.
    pub(super) fn panel(&self, number: usize) -> &[[u32; WIDTH]] {
        let panels = self.data[self.skip..].as_chunks().0;
        &panels[number * self.pairs()..][..self.pairs()]
    }
}

/// The rows of `from` as lanes.
#[allow(unsafe_code)] // memory that is written before it is read
pub(super) fn one<const WIDTH: usize>(
    engine: Engine,
    threads: Threads,
    from: Matrix,
    memory: Vec<u32>,
) -> Operand<WIDTH> {
    let mut room = Room::new(memory, from.rows, from.cols);
    let (cells, corners) = (room.cells(), corners(from));
    assert_eq!(cells.len(), corners.len(), "cells of an operand");
    let fill = |(cell, at)| fill(engine, threads, cell, from.part(at, CELL));
    match threads {
        Threads::All => cells.into_par_iter().zip(corners).for_each(fill),
        Threads::This => cells.into_iter().zip(corners).for_each(fill),
    }
    // SAFETY: `fill` was called with each cell, because there is one corner per cell, and it writes all of a cell.
    unsafe { room.filled() }
}

/// Two operands: the rows of `from` as lanes, and its columns as lanes. Each cell is read for both while it is cached.
#[allow(unsafe_code)] // memory that is written before it is read
pub(super) fn both<const P: usize, const Q: usize>(
    engine: Engine,
    threads: Threads,
    from: Matrix,
    [memory_p, memory_q]: [Vec<u32>; 2],
) -> (Operand<P>, Operand<Q>) {
    let mut rows = Room::new(memory_p, from.rows, from.cols);
    let mut cols = Room::new(memory_q, from.cols, from.rows);
    let (cells, corners) = (rows.cells(), corners(from));
    let (across, high) = (from.cols.div_ceil(CELL), from.rows.div_ceil(CELL));
    // Cells of the columns come column by column.
    let mut turned: Vec<_> = cols.cells().into_iter().map(Some).collect();
    let turned: Vec<_> = (0..cells.len())
        .map(|c| turned[c % across * high + c / across].take().expect("each cell once"))
        .collect();
    assert_eq!([cells.len(), high * across], [corners.len(); 2], "cells of two operands");
    let fill = |((rows, cols), at)| {
        let from = from.part(at, CELL);
        fill(engine, threads, rows, from);
        fill(engine, threads, cols, from.t());
    };
    match threads {
        Threads::All => cells.into_par_iter().zip(turned).zip(corners).for_each(fill),
        Threads::This => cells.into_iter().zip(turned).zip(corners).for_each(fill),
    }
    // SAFETY: `fill` was called once with each of the high · across cells of both, and it writes all of a cell.
    unsafe { (rows.filled(), cols.filled()) }
}

/// First row and column of each cell, row by row.
fn corners(from: Matrix) -> Vec<[usize; 2]> {
    let firsts = |n: usize| (0..n).step_by(CELL);
    firsts(from.rows).flat_map(|i| firsts(from.cols).map(move |j| [i, j])).collect()
}

/// The pairs of each panel inside one cell; each panel has the same number.
pub(super) type Cell<'a, const WIDTH: usize> = Vec<&'a mut [[MaybeUninit<u32>; WIDTH]]>;

/// Memory of an operand during packing: some zeros, then `size` places.
struct Room<const WIDTH: usize> {
    data: Vec<u32>,
    size: usize,
    lanes: usize,
    depth: usize,
}

impl<const WIDTH: usize> Room<WIDTH> {
    fn new(mut data: Vec<u32>, lanes: usize, depth: usize) -> Self {
        const MOST: usize = ALIGNMENT / size_of::<u32>() - 1;
        let size = lanes.div_ceil(WIDTH) * WIDTH * depth.div_ceil(2);
        data.clear();
        data.reserve_exact(MOST + size);
        data.resize(data.as_ptr().align_offset(ALIGNMENT).min(MOST), 0);
        Self { data, size, lanes, depth }
    }

    /// All places, divided into cells in the order of [`corners`].
    fn cells(&mut self) -> Vec<Cell<'_, WIDTH>> {
        let (pairs, across) = (self.depth.div_ceil(2).max(1), self.depth.div_ceil(CELL));
        let mut cells = Vec::new();
        let panels = self.data.spare_capacity_mut()[..self.size].as_chunks_mut().0;
        for panels in panels.chunks_mut(CELL / WIDTH * pairs) {
            let first = cells.len();
            cells.resize_with(first + across, Vec::new);
            for panel in panels.chunks_mut(pairs) {
                let parts = panel.chunks_mut(CELL / 2);
                cells[first..].iter_mut().zip(parts).for_each(|(cell, part)| cell.push(part));
            }
        }
        cells
    }

    /// # Safety
    /// Every place of every cell must have been written.
    #[allow(unsafe_code)] // the length of a vector
    unsafe fn filled(self) -> Operand<WIDTH> {
        let Self { mut data, size, lanes, depth } = self;
        let skip = data.len();
        // SAFETY: the places follow the zeros, there is room for both, and by the contract of this function each
        // place is written.
        unsafe { data.set_len(skip + size) };
        Operand { data, skip, lanes, depth }
    }
}

/// Packs one cell: the rows of `from` are the lanes. Writes every place.
#[allow(unsafe_code)] // a call below a feature check
fn fill<const WIDTH: usize>(engine: Engine, threads: Threads, mut to: Cell<WIDTH>, from: Matrix) {
    match engine {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Instructions` exists only if the processor has every feature of the function.
        Engine::Processor(_) => unsafe { turn::processor(&mut to, from, threads) },
        Engine::Emulated => turn::emulated(&mut to, from),
    }
}
