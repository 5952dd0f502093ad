//! The real steps of a padded batch, packed side by side.

use rayon::prelude::*;

use crate::rows::{STEPS, check_lengths};

/// Where a unit begins to read a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// At its first step.
    Forward,
    /// At its last real step.
    Reverse,
}

/// Columns `at..at + width` of a padded `[b, l, stride]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub(super) at: usize,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl Columns {
    pub(super) fn all(width: usize) -> Self {
        Self { at: 0, width, stride: width }
    }
}

/// The packed row of each real step of a padded batch.
#[derive(Debug, Clone)]
pub struct Packing {
    pub(super) direction: Direction,
    pub(super) steps: usize,
    pub(super) lengths: Vec<usize>,
    /// Sequences, longest first; equally long sequences keep their order.
    pub(super) order: Vec<usize>,
    /// The inverse of `order`.
    rank: Vec<usize>,
    /// First packed row of each step, then the number of all rows: step t has `offset[t + 1] − offset[t]` sequences.
    /// Steps are counted in the direction of reading.
    offset: Vec<usize>,
}

impl Packing {
    /// The packing of sequences with these lengths, padded to `steps`, read forwards.
    ///
    /// # Panics
    /// If there is no sequence, a length is 0 or more than `steps`, or there are more than 2²⁴ steps.
    pub fn new(lengths: &[usize], steps: usize) -> Self {
        assert!(!lengths.is_empty(), "a batch needs at least one sequence");
        assert!(steps <= STEPS, "{steps} steps, not at most {STEPS}");
        check_lengths(lengths, steps);
        let mut order: Vec<_> = (0..lengths.len()).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(lengths[row]));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(j, &row)| rank[row] = j);
        let mut offset = vec![0];
        for t in 0..steps {
            offset.push(offset[t] + order.partition_point(|&row| lengths[row] > t));
        }
        let (direction, lengths) = (Direction::Forward, lengths.to_vec());
        Self { direction, steps, lengths, order, rank, offset }
    }

    /// The same sequences, read in `direction`.
    pub(super) fn towards(self, direction: Direction) -> Self {
        Self { direction, ..self }
    }

    /// Position in sequence `row` of the step that the unit reads as number `t`.
    fn position(&self, row: usize, t: usize) -> usize {
        match self.direction {
            Direction::Forward => t,
            Direction::Reverse => self.lengths[row] - 1 - t,
        }
    }

    /// Range of the values of this step in a padded `[b, l, stride]`.
    pub(super) fn place(&self, row: usize, t: usize, columns: Columns) -> std::ops::Range<usize> {
        let start = (row * self.steps + self.position(row, t)) * columns.stride + columns.at;
        start..start + columns.width
    }

    /// Number of values of a padded `[b, l, stride]`.
    pub(super) fn padded(&self, stride: usize) -> usize {
        self.order.len() * self.steps * stride
    }

    /// Number of real steps.
    pub(crate) fn rows(&self) -> usize {
        self.offset[self.steps]
    }

    /// Packed rows of one step.
    pub(super) fn step(&self, t: usize) -> std::ops::Range<usize> {
        self.offset[t]..self.offset[t + 1]
    }

    /// Real steps of a padded `[b, l, stride]`, packed.
    pub(super) fn pack(&self, padded: &[f32], columns: Columns) -> Vec<f32> {
        let width = columns.width;
        let mut packed = vec![0.0; self.rows() * width];
        let mut rest = packed.as_mut_slice();
        let mut by_step = Vec::with_capacity(self.steps);
        for t in 0..self.steps {
            let (step, later) = rest.split_at_mut(self.step(t).len() * width);
            by_step.push(step);
            rest = later;
        }
        by_step.into_par_iter().enumerate().for_each(|(t, step)| {
            for (&row, to) in self.order.iter().zip(step.chunks_exact_mut(width)) {
                to.copy_from_slice(&padded[self.place(row, t, columns)]);
            }
        });
        packed
    }

    /// Calls `f` with each real step of a padded `[b, l, stride]` and its packed row.
    pub(super) fn unpack(
        &self,
        packed: &[f32],
        padded: &mut [f32],
        columns: Columns,
        f: impl Fn(&mut [f32], &[f32]) + Sync,
    ) {
        let Columns { width, stride, .. } = columns;
        padded.par_chunks_exact_mut(self.steps * stride).enumerate().for_each(|(row, sequence)| {
            let start = row * self.steps * stride;
            for t in 0..self.lengths[row] {
                let place = self.place(row, t, columns);
                let from = &packed[(self.offset[t] + self.rank[row]) * width..][..width];
                f(&mut sequence[place.start - start..place.end - start], from);
            }
        });
    }

    /// Repeats the last real step of a padded `[b, l, stride]` over the padding.
    pub(super) fn repeat_last(&self, padded: &mut [f32], columns: Columns) {
        let Columns { at, width, stride } = columns;
        padded.par_chunks_exact_mut(self.steps * stride).zip(&self.lengths).for_each(
            |(sequence, &length)| {
                let (real, padding) = sequence.split_at_mut(length * stride);
                let last = &real[(length - 1) * stride + at..][..width];
                for step in padding.chunks_exact_mut(stride) {
                    step[at..at + width].copy_from_slice(last);
                }
            },
        );
    }
}
