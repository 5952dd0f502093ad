//! The state of a part: some numbers for each of some neighbouring images, texts or pairs.

use std::ops::Range;

use super::{PartKind, Side, invalid};
use crate::Result;

/// Images and texts of a cell of the grid on which floating-point sums are made.
pub(super) const CELL: usize = 4096;

/// The number of cells along a side.
pub(super) fn cells(whole: usize) -> usize {
    whole.div_ceil(CELL)
}

/// `width` numbers for each of some neighbours; 0 says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Slots {
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) values: Vec<u64>,
}

impl PartKind {
    /// Makes one row of two. All numbers are exact, and the order of the parts does not matter.
    fn merge(&self, own: &mut [u64], new: &[u64]) {
        match self {
            // Descending keys of items: the best of both.
            Self::TopTexts { .. } | Self::TopImages { .. } => {
                let both = own.to_vec();
                let (mut a, mut b) = (both.iter().peekable(), new.iter().peekable());
                for slot in own {
                    let next = if a.peek() >= b.peek() { a.next() } else { b.next() };
                    *slot = next.copied().unwrap_or(0);
                }
            }
            // Counts. A file may hold any number; one that is too large is refused where ranks are made.
            Self::Standings { .. } => {
                own.iter_mut().zip(new).for_each(|(own, new)| *own = own.saturating_add(*new))
            }
            // The number of the part that has one.
            Self::PairScores { .. } | Self::ExpSums { .. } | Self::Moments { .. } => {
                own.iter_mut().zip(new).for_each(|(own, new)| *own = (*own).max(*new))
            }
        }
    }

    /// The numbers of each image, and of each text or pair.
    pub(super) fn widths(&self, [n, m]: [usize; 2]) -> [usize; 2] {
        let of_cells =
            |of: Side, numbers: usize| of.of([numbers * cells(m), 0], [0, numbers * cells(n)]);
        match *self {
            Self::TopTexts { k } => [k, 0],
            Self::TopImages { k } => [0, k],
            Self::Standings { .. } => [3, 3],
            Self::PairScores { .. } => [0, 1],
            Self::ExpSums { of, .. } => of_cells(of, 1),
            Self::Moments { of } => of_cells(of, 2),
        }
    }
}

impl Slots {
    pub(super) fn range(&self) -> Range<usize> {
        let rows = self.values.len().checked_div(self.width).unwrap_or(0);
        self.first..self.first.saturating_add(rows)
    }

    /// The numbers of each neighbour.
    pub(super) fn rows(&self) -> std::slice::Chunks<'_, u64> {
        self.values.chunks(self.width.max(1))
    }

    /// # Errors
    /// If the union, with what lies between, does not fit the memory.
    pub(super) fn join(&mut self, other: &Self, kind: &PartKind) -> Result<()> {
        if other.values.is_empty() {
            return Ok(());
        }
        let (own, new) = (self.range(), other.range());
        if self.values.is_empty() {
            *self = other.clone();
            return Ok(());
        }
        let (first, end) = (own.start.min(new.start), own.end.max(new.end));
        let all = (end - first).checked_mul(self.width);
        let more = all.unwrap_or(usize::MAX).saturating_sub(self.values.len());
        if self.values.try_reserve(more).is_err() {
            return invalid("parts whose union fits the memory", format!("{} rows", end - first));
        }
        if first < own.start {
            let more = (own.start - first) * self.width;
            self.values.splice(0..0, std::iter::repeat_n(0, more));
            self.first = first;
        }
        self.values.resize((end - first) * self.width, 0);
        let at = (new.start - first) * self.width;
        let rows = self.values[at..].chunks_mut(self.width);
        rows.zip(other.rows()).for_each(|(own, new)| kind.merge(own, new));
        Ok(())
    }
}
