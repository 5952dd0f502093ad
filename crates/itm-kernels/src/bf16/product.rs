//! The product of packed operands, in parts that fit the second-level cache.

use std::mem::MaybeUninit;

use rayon::prelude::*;

use super::tile::{self, Base, Left, OutRows, Right};
use super::{COLUMNS, Engine, LeftOperand, ROWS, RightOperand};
use crate::blocks::room;
use crate::product::{Into, Threads};

/// Pairs of one pass: 16 KiB of a left panel and 96 KiB of a right panel.
pub(super) const PASS: usize = 512;
/// Rows of a part: 512 KiB per pass.
const PART_ROWS: usize = 256;
/// Columns of a part.
const PART_COLUMNS: usize = 16 * COLUMNS;
/// For several threads, parts are made smaller until there are at least this number.
const PARTS: usize = 16;
/// Up to this number of products of pairs, some 10 µs, another thread is not worth it.
const SMALL: usize = 1 << 20;

/// `S + A B`, row-major; S has the same row for each row of the product, or is 0. The memory is written once.
///
/// # Panics
/// If the operands or the row do not fit, or memory cannot hold the product.
#[allow(unsafe_code)] // the product writes every value
pub fn product_new(row: Option<&[f32]>, a: &LeftOperand, b: &RightOperand) -> Vec<f32> {
    let n = a.lanes() * b.lanes();
    let mut to = room(n);
    let places = &mut to.spare_capacity_mut()[..n];
    compute(Engine::best(), Threads::All, places, row.map_or(Base::Zero, Base::Row), a, b);
    // SAFETY: there is room for n values, and `compute` has written each.
    unsafe { to.set_len(n) };
    to
}

/// `to = A B` or `to += A B`, row-major, on the calling thread alone.
///
/// # Panics
/// If the operands or the destination do not fit.
pub(crate) fn product_here(to: &mut [f32], how: Into, a: &LeftOperand, b: &RightOperand) {
    let base = match how {
        Into::Replace => Base::Zero,
        Into::Add => Base::Held, // `places` holds values
    };
    compute(Engine::best(), Threads::This, places(to), base, a, b);
}

/// Initialised values as places to write to.
#[allow(unsafe_code)] // the same memory under another type
pub(super) fn places(to: &mut [f32]) -> &mut [MaybeUninit<f32>] {
    // SAFETY: the layout is the same, and this module writes only values there.
    unsafe { &mut *(std::ptr::from_mut(to) as *mut [MaybeUninit<f32>]) }
}

/// Without [`Base::Held`], writes every place.
pub(super) fn compute(
    engine: Engine,
    threads: Threads,
    to: &mut [MaybeUninit<f32>],
    base: Base,
    a: &LeftOperand,
    b: &RightOperand,
) {
    let (m, k, n) = (a.lanes(), a.depth(), b.lanes());
    assert_eq!(k, b.depth(), "product of {m} × {k} and {} × {n}", b.depth());
    if let Base::Row(row) = base {
        assert_eq!(row.len(), n, "{} values for rows of {n}", row.len());
    }
    assert_eq!(to.len(), m * n, "values of a product");
    if m == 0 || n == 0 {
        return;
    }
    let least = if threads == Threads::All { PARTS } else { 1 };
    let parts = split(to, [m, n], least);
    if threads == Threads::This || m * n * a.pairs() <= SMALL {
        parts.into_iter().for_each(|part| part.compute(engine, base, a, b));
    } else {
        parts.into_par_iter().for_each(|part| part.compute(engine, base, a, b));
    }
}

/// One part of the product: neighbouring panels of both operands, and the pieces of rows that receive their product.
struct ProductPart<'a> {
    /// Number of the first panel of rows.
    i: usize,
    /// Number of the first panel of columns.
    j: usize,
    /// Pieces of equal length.
    rows: Vec<&'a mut [MaybeUninit<f32>]>,
}

fn split(to: &mut [MaybeUninit<f32>], [m, n]: [usize; 2], least: usize) -> Vec<ProductPart<'_>> {
    let [high, wide] = panels_of_a_part(m, n, least);
    let mut parts = Vec::new();
    for (band, rows) in to.chunks_mut(high * ROWS * n).enumerate() {
        let (first, i) = (parts.len(), band * high);
        let firsts = (0..n.div_ceil(COLUMNS)).step_by(wide);
        parts.extend(firsts.map(|j| ProductPart { i, j, rows: Vec::with_capacity(high * ROWS) }));
        for row in rows.chunks_mut(n) {
            let pieces = row.chunks_mut(wide * COLUMNS);
            parts[first..].iter_mut().zip(pieces).for_each(|(part, piece)| part.rows.push(piece));
        }
    }
    parts
}

/// Panels of rows and of columns per part. Parts are equal, and only the shape and `least`, the smallest number of parts,
/// decide their size. No sum depends on the size.
fn panels_of_a_part(m: usize, n: usize, least: usize) -> [usize; 2] {
    let panels = [m.div_ceil(ROWS), n.div_ceil(COLUMNS)];
    let mut parts = [m.div_ceil(PART_ROWS), n.div_ceil(PART_COLUMNS)];
    loop {
        let [high, wide] = [0, 1].map(|d| panels[d].div_ceil(parts[d]));
        if parts[0] * parts[1] >= least || high * wide == 1 {
            return [high, wide];
        }
        let split_columns = high == 1 || (wide > 1 && wide * COLUMNS > high * ROWS);
        parts[usize::from(split_columns)] += 1;
    }
}

impl ProductPart<'_> {
    fn compute(mut self, engine: Engine, base: Base, a: &LeftOperand, b: &RightOperand) {
        let pairs = a.pairs();
        let passes = pairs.div_ceil(PASS).max(1); // without pairs, one pass writes the start
        let length = pairs.div_ceil(passes);
        for pass in 0..passes {
            let depth = pass * length..pairs.min((pass + 1) * length);
            let base = if pass == 0 { base } else { Base::Held }; // the first pass left values
            let width = self.rows[0].len();
            for (j, at) in (self.j..).zip((0..width).step_by(COLUMNS)) {
                let (b, base) = (&b.panel(j)[depth.clone()], base.at_column(j * COLUMNS));
                for (i, rows) in (self.i..).zip(self.rows.chunks_mut(ROWS)) {
                    tile(engine, &a.panel(i)[depth.clone()], b, rows, at, base);
                }
            }
        }
    }
}

#[allow(unsafe_code)] // a call below a feature check
fn tile(engine: Engine, a: &Left, b: &Right, rows: &mut OutRows, at: usize, base: Base) {
    match engine {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Instructions` exists only if the processor has every feature of the function.
        Engine::Processor(_) => unsafe { tile::processor(a, b, rows, at, base) },
        Engine::Emulated => tile::emulated(a, b, rows, at, base),
    }
}
