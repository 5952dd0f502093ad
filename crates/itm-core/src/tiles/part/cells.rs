//! Sums in floating point. Their bits depend on the order, so they are made in the cells of a fixed grid, and the cells are joined in ascending
//! order when all are there.

use std::ops::Range;

use super::super::exp_sums::LogSum;
use super::super::{BothSides, Consumer, ExpSums, Moment, Moments, Tiles, pieces};
use super::slots::{CELL, Slots, cells};
use super::{Header, Part, PartKind, Side, invalid, unless};
use crate::Result;

/// # Errors
/// If a range begins or ends within a cell.
pub(super) fn check_grid(range: &Range<usize>, whole: usize, what: &str) -> Result<()> {
    let is_line = |at: usize| at.is_multiple_of(CELL) || at == whole;
    let expected = format!(
        "{what} that begin and end at multiples of {CELL} or at the end, {whole}, for sums"
    );
    let got = format!("{} to {}", range.start, range.end);
    unless(is_line(range.start) && is_line(range.end), expected, got)
}

/// The sums of each image or text over each cell, in the slot of the cell.
pub(super) fn sums(
    tiles: &Tiles<'_>,
    kind: &PartKind,
    (rows, columns): (&Range<usize>, &Range<usize>),
    whole: [usize; 2],
) -> Result<Slots> {
    match *kind {
        PartKind::ExpSums { of, beta } => {
            let consumer = ExpSums::new(f64::from_bits(beta));
            of_cells(tiles, &consumer, of, (rows, columns), whole, |log: f64| [log.to_bits()])
        }
        PartKind::Moments { of } => {
            let bits = |m: Moment| [m.mean.to_bits(), m.squares.to_bits()];
            of_cells(tiles, &Moments, of, (rows, columns), whole, bits)
        }
        _ => Ok(Slots::default()),
    }
}

fn of_cells<T, C: Consumer<Output = BothSides<T>>, const N: usize>(
    tiles: &Tiles<'_>,
    consumer: &C,
    of: Side,
    (rows, columns): (&Range<usize>, &Range<usize>),
    whole: [usize; 2],
    bits: impl Fn(T) -> [u64; N],
) -> Result<Slots> {
    let kept = of.of(rows, columns);
    let width = N * cells(of.other().of(whole[0], whole[1]));
    let mut values = Vec::new();
    let all = kept.len().checked_mul(width).filter(|&all| values.try_reserve_exact(all).is_ok());
    let Some(all) = all else {
        return invalid("sums that fit the memory", format!("{} rows of {width}", kept.len()));
    };
    values.resize(all, 0);
    for cell_rows in pieces(rows.clone(), CELL) {
        for cell_columns in pieces(columns.clone(), CELL) {
            let local = |cell: &Range<usize>, all: &Range<usize>| {
                cell.start - all.start..cell.end - all.start
            };
            let some = tiles.within(local(&cell_rows, rows), local(&cell_columns, columns));
            let (first, slot) =
                (of.of(&cell_rows, &cell_columns), of.other().of(&cell_rows, &cell_columns));
            let at = N * (slot.start / CELL);
            let found = some.run(consumer);
            for (row, value) in of.of(found.images, found.texts).into_iter().enumerate() {
                let row = first.start - kept.start + row;
                values[row * width + at..][..N].copy_from_slice(&bits(value));
            }
        }
    }
    Ok(Slots { first: kept.start, width, values })
}

impl Part {
    /// Whether [`log_sums`](Self::log_sums) are what the part is of.
    pub fn has_log_sums(&self) -> bool {
        matches!(self.header.kind, PartKind::ExpSums { .. })
    }

    /// Whether [`moments`](Self::moments) are what the part is of.
    pub fn has_moments(&self) -> bool {
        matches!(self.header.kind, PartKind::Moments { .. })
    }

    /// `log Σ exp(β·s)` of every image or text, whichever the part is of.
    ///
    /// # Errors
    /// As [`top`](Self::top).
    pub fn log_sums(&self) -> Result<Vec<f64>> {
        let PartKind::ExpSums { of, .. } = self.header.kind else {
            return self.refused("sums of exponentials");
        };
        self.check_whole()?;
        let log = |bits: &[u64]| {
            let mut sum = LogSum::NOTHING;
            bits.iter().for_each(|&bits| sum.join(LogSum::new(f64::from_bits(bits), 1.0)));
            Some(sum.log()).filter(|log| log.is_finite())
        };
        self.summed(of, log)
    }

    /// Mean and deviation of the scores of every image or text, whichever the part is of.
    ///
    /// # Errors
    /// As [`top`](Self::top).
    pub fn moments(&self) -> Result<Vec<Moment>> {
        let PartKind::Moments { of } = self.header.kind else {
            return self.refused("means and deviations");
        };
        self.check_whole()?;
        let Header { whole: [n, m], .. } = self.header;
        let across = of.other().of(n, m);
        let all = |bits: &[u64]| {
            let mut all = Moment::default();
            for (bits, cell) in bits.chunks(2).zip(pieces(0..across, CELL)) {
                let [mean, squares] = [0, 1].map(|at| f64::from_bits(bits[at]));
                all.join(Moment { count: cell.len() as f64, mean, squares });
            }
            Some(all).filter(|m| m.mean.is_finite() && m.squares.is_finite() && m.squares >= 0.0)
        };
        self.summed(of, all)
    }

    /// A number of each row; none is a state that no scores give.
    fn summed<T>(&self, of: Side, sum: impl Fn(&[u64]) -> Option<T>) -> Result<Vec<T>> {
        let sums: Option<Vec<T>> = of.of(&self.images, &self.texts).rows().map(sum).collect();
        sums.map_or_else(|| invalid("sums that are finite numbers", "another"), Ok)
    }
}

#[cfg(test)]
mod tests;
