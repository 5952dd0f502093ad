//! The real steps of a padded batch, side by side.

use rayon::prelude::*;

/// Where each real step of a padded batch lies when packed.
#[derive(Debug, Clone)]
pub struct Packing {
    pub(super) steps: usize,
    pub(super) lengths: Vec<usize>,
    /// Sequences, longest first; the earlier one first among equals.
    pub(super) order: Vec<usize>,
    /// The inverse of `order`.
    rank: Vec<usize>,
    /// First packed row of each step, and their number at the end: step t has `offset[t + 1] − offset[t]` sequences.
    offset: Vec<usize>,
}

impl Packing {
    /// The packing of sequences with these lengths, padded to `steps`.
    ///
    /// # Panics
    /// If there is no sequence, or a length is 0 or more than `steps`.
    pub fn new(lengths: &[usize], steps: usize) -> Self {
        assert!(!lengths.is_empty(), "a batch needs at least one sequence");
        for (row, &length) in lengths.iter().enumerate() {
            assert!(
                (1..=steps).contains(&length),
                "sequence {row}: length {length}, not 1 to {steps}"
            );
        }
        let mut order: Vec<_> = (0..lengths.len()).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(lengths[row]));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(j, &row)| rank[row] = j);
        let mut offset = vec![0];
        for t in 0..steps {
            offset.push(offset[t] + order.partition_point(|&row| lengths[row] > t));
        }
        Self { steps, lengths: lengths.to_vec(), order, rank, offset }
    }

    /// Number of real steps.
    pub fn rows(&self) -> usize {
        self.offset[self.steps]
    }

    /// Packed rows of one step.
    pub(super) fn step(&self, t: usize) -> std::ops::Range<usize> {
        self.offset[t]..self.offset[t + 1]
    }

    /// Real steps of a padded `[b, l, width]`, packed.
    pub(super) fn pack(&self, padded: &[f32], width: usize) -> Vec<f32> {
        let mut packed = vec![0.0; self.rows() * width];
        let mut rest = packed.as_mut_slice();
        let mut by_step = Vec::with_capacity(self.steps);
        for t in 0..self.steps {
            let (step, later) = rest.split_at_mut(self.step(t).len() * width);
            by_step.push(step);
            rest = later;
        }
        by_step.into_par_iter().enumerate().for_each(|(t, step)| {
            for (row, to) in self.order.iter().zip(step.chunks_exact_mut(width)) {
                to.copy_from_slice(&padded[(row * self.steps + t) * width..][..width]);
            }
        });
        packed
    }

    /// Packed rows back in a padded `[b, l, width]`; `fill` is called with what follows the real steps and the last one.
    pub(super) fn unpack(
        &self,
        packed: &[f32],
        width: usize,
        fill: fn(&mut [f32], &[f32]),
    ) -> Vec<f32> {
        let mut padded = vec![0.0; self.order.len() * self.steps * width];
        padded.par_chunks_exact_mut(self.steps * width).enumerate().for_each(|(row, sequence)| {
            let (real, padding) = sequence.split_at_mut(self.lengths[row] * width);
            for (t, to) in real.chunks_exact_mut(width).enumerate() {
                to.copy_from_slice(&packed[(self.offset[t] + self.rank[row]) * width..][..width]);
            }
            fill(padding, &real[real.len() - width..]);
        });
        padded
    }
}
