//! Weighted sums of rows of a table: bags of words.
//!
//! ```text
//! y_r = Σ_{k in bag r} a_k T[id_k];   dT[t] = Σ_{k: id_k = t} a_k g_{r(k)}, in the order of k
//! ```
//!
//! The work is proportional to the number of entries; the other rows of `dT` are zeros. Products are rounded before
//! they are added, so every instruction set gives the same bits.

use crate::blocks::{size, written};
use crate::dispatch::multiversion;
use crate::embedding::{check_ids, rows};

/// Rows of the table per task.
const ROWS: usize = 64;

/// Ids of rows and their weights, bag by bag.
///
/// ```
/// use itm_kernels::bag::{Bags, forward};
///
/// let mut bags = Bags::default();
/// bags.push([(0, 1.0), (2, 0.5)]);
/// bags.push([]);
/// assert_eq!(forward(&[1.0, 10.0, 2.0, 20.0, 4.0, 40.0], 2, &bags), [3.0, 30.0, 0.0, 0.0]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bags {
    /// id_k
    pub(crate) ids: Vec<u32>,
    /// a_k
    pub(crate) weights: Vec<f32>,
    /// Number of entries up to the end of each bag.
    ends: Vec<usize>,
}

impl Bags {
    /// Adds a bag, which may be empty.
    pub fn push(&mut self, entries: impl IntoIterator<Item = (u32, f32)>) {
        for (id, weight) in entries {
            self.ids.push(id);
            self.weights.push(weight);
        }
        self.ends.push(self.ids.len());
    }

    /// A bag for each row that was taken. The bags of row `frozen` are empty, so that it does not learn.
    pub(crate) fn of_rows(ids: &[u32], frozen: Option<u32>) -> Self {
        let mut bags = Self::default();
        ids.iter().for_each(|&id| bags.push((Some(id) != frozen).then_some((id, 1.0))));
        bags
    }

    /// Number of bags.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The weights, to change them in place: dropout.
    pub fn weights_mut(&mut self) -> &mut [f32] {
        &mut self.weights
    }

    /// r(k): the bag of every entry.
    pub(crate) fn owners(&self) -> Vec<usize> {
        let mut owners = Vec::with_capacity(self.ids.len());
        for (bag, &end) in self.ends.iter().enumerate() {
            owners.resize(end, bag);
        }
        owners
    }

    fn entries(&self, bag: usize) -> impl Iterator<Item = (usize, f32)> {
        let first = if bag == 0 { 0 } else { self.ends[bag - 1] };
        let range = first..self.ends[bag];
        self.ids[range.clone()]
            .iter()
            .map(|&id| id as usize)
            .zip(self.weights[range].iter().copied())
    }
}

/// The sum of each bag: a table `[v, d]` to `[bags, d]`; 0 for an empty bag.
///
/// # Panics
/// If an id is not a row of the table, or memory cannot hold the rows.
pub fn forward(table: &[f32], width: usize, bags: &Bags) -> Vec<f32> {
    check_ids(&bags.ids, rows(table, width));
    written(size(bags.len(), width), width, |bag, to| {
        for (id, weight) in bags.entries(bag) {
            add_scaled(to, &table[id * width..][..width], weight);
        }
    })
}

/// The gradient of a table of `rows` rows from the gradient of the sums.
///
/// # Panics
/// If the gradient does not have one row per bag, an id is not a row of the table, or memory cannot hold the table.
pub fn backward(grad: &[f32], width: usize, bags: &Bags, rows: usize) -> Vec<f32> {
    let n = size(bags.len(), width);
    assert_eq!(grad.len(), n, "gradients of {} bags of {width}", bags.len());
    let (ids, owners) = (&bags.ids, bags.owners());
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&k| ids[k]); // stable: equal ids keep their order
    let last = order.last().map_or(0, |&k| ids[k] as usize + 1);
    assert!(last <= rows, "row {} of a table of {rows}", last - 1);
    let before = |row: usize| order.partition_point(|&k| (ids[k] as usize) < row);
    written(size(rows, width), size(ROWS, width), |task, to| {
        let first = task * ROWS;
        for &k in &order[before(first)..before(first + ROWS)] {
            let to = &mut to[(ids[k] as usize - first) * width..][..width];
            add_scaled(to, &grad[owners[k] * width..][..width], bags.weights[k]);
        }
    })
}

multiversion! {
    // Never fused: see the module.
    fn add_scaled[_FMA](to: &mut [f32], from: &[f32], weight: f32) {
        to.iter_mut().zip(from).for_each(|(to, x)| *to += weight * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{on_every_instruction_set, on_every_thread_count, random};

    fn bags(all: &[&[(u32, f32)]]) -> Bags {
        let mut bags = Bags::default();
        all.iter().for_each(|bag| bags.push(bag.iter().copied()));
        bags
    }

    /// By hand: T = [1 2; 3 4; 5 6]; bags 2·T₂ − T₀, nothing, T₂ / 2.
    #[test]
    fn golden() {
        let bags = bags(&[&[(2, 2.0), (0, -1.0)], &[], &[(2, 0.5)]]);
        on_every_instruction_set(|| {
            let got = forward(&[1., 2., 3., 4., 5., 6.], 2, &bags);
            assert_eq!(got, [9., 10., 0., 0., 2.5, 3.]);
            let got = backward(&[1., 2., 10., 20., 100., 200.], 2, &bags, 3);
            assert_eq!(got, [-1., -2., 0., 0., 52., 104.]);
        });
    }

    /// By hand: rows 2, 0, 2 were taken.
    #[test]
    fn the_gradient_of_rows_and_a_frozen_row() {
        let grad = [1., 2., 10., 20., 100., 200.];
        for (frozen, want) in [
            (None, [10., 20., 0., 0., 101., 202.]),
            (Some(2), [10., 20., 0., 0., 0., 0.]),
            (Some(0), [0., 0., 0., 0., 101., 202.]),
        ] {
            assert_eq!(backward(&grad, 2, &Bags::of_rows(&[2, 0, 2], frozen), 3), want);
        }
    }

    /// Several tasks and an odd width, against the plain sums; bags of every length from 0 to 11.
    #[test]
    fn large_tables_are_the_plain_sums() {
        let (rows, width, count) = (200usize, 37, 90);
        let mut bags = Bags::default();
        let weights = random(count * 12, 3);
        for bag in 0..count {
            bags.push(
                (0..bag % 12).map(|k| ((bag * 31 + k * k * 7) as u32 % 200, weights[bag * 12 + k])),
            );
        }
        let (table, grad) = (random(rows * width, 1), random(count * width, 2));
        let (mut sums, mut slopes) = (vec![0.0; count * width], vec![0.0; rows * width]);
        for bag in 0..count {
            for (id, weight) in bags.entries(bag) {
                for c in 0..width {
                    sums[bag * width + c] += weight * table[id * width + c];
                    slopes[id * width + c] += weight * grad[bag * width + c];
                }
            }
        }
        on_every_instruction_set(|| {
            assert_eq!(forward(&table, width, &bags), sums);
            assert_eq!(backward(&grad, width, &bags, rows), slopes);
        });
        on_every_thread_count(|| {
            [forward(&table, width, &bags), backward(&grad, width, &bags, rows)].concat()
        });
    }

    #[test]
    fn nothing_in_any_bag_is_zero() {
        let bags = bags(&[&[], &[]]);
        assert_eq!(forward(&[1.0; 6], 2, &bags), [0.0; 4]);
        assert_eq!(backward(&[1.0; 4], 2, &bags, 3), [0.0; 6]);
    }

    #[test]
    #[should_panic(expected = "row 3 of a table of 3")]
    fn a_number_past_the_table_is_refused() {
        backward(&[0.0; 2], 2, &bags(&[&[(3, 1.0)]]), 3);
    }
}
