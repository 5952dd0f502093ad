//! Rows of a table by index, such as word vectors.
//!
//! ```text
//! y_k = T[id_k];   dT[r] = Σ_{k: id_k = r} g_k, in the order of k
//! ```

use crate::blocks::{size, written};

/// Rows of the table per task.
const ROWS: usize = 64;

/// `T[id_k]` for every k: `[v, d]` to `[n, d]`.
///
/// # Panics
/// If an id is not a row of the table, or memory cannot hold the rows.
pub fn forward(table: &[f32], width: usize, ids: &[u32]) -> Vec<f32> {
    check_ids(ids, rows(table, width));
    written(size(ids.len(), width), width, |k, row| {
        let first = ids[k] as usize * width;
        row.copy_from_slice(&table[first..first + width]);
    })
}

/// The gradient of a table of `rows` rows from the gradient of the rows taken. Positions with id `frozen` add nothing, and
/// nothing checks that `frozen` is a row of the table.
///
/// # Panics
/// If the gradient does not have one row per id, another id is not a row of the table, or memory cannot hold the table.
pub fn backward(
    grad: &[f32],
    width: usize,
    ids: &[u32],
    rows: usize,
    frozen: Option<u32>,
) -> Vec<f32> {
    let n = size(ids.len(), width);
    assert_eq!(grad.len(), n, "gradients of {} rows of {width}", ids.len());
    let taken = (0..ids.len()).filter(|&k| Some(ids[k]) != frozen).collect();
    scattered(ids, taken, [rows, width], |k, to| {
        to.iter_mut().zip(&grad[k * width..][..width]).for_each(|(to, g)| *to += g);
    })
}

/// Number of rows of a table. There is no limit to rows without a value.
pub(crate) fn rows(table: &[f32], width: usize) -> usize {
    table.len().checked_div(width).unwrap_or(usize::MAX)
}

/// Refuses an id that is not a row of a table of `rows` rows.
pub(crate) fn check_ids(ids: &[u32], rows: usize) {
    if let Some(k) = ids.iter().position(|&id| id as usize >= rows) {
        panic!("id {k} is row {} of a table of {rows}", ids[k]);
    }
}

/// A table of zeros to which each `k` of `taken` adds its part by `add(k, row ids[k])`. The parts of one row are
/// added in the order of `taken`.
///
/// # Panics
/// If an id is not a row of the table.
pub(crate) fn scattered(
    ids: &[u32],
    taken: Vec<usize>,
    [rows, width]: [usize; 2],
    add: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut order = taken;
    order.sort_by_key(|&k| ids[k]); // stable: equal ids keep their order
    let last = order.last().map_or(0, |&k| ids[k] as usize + 1);
    assert!(last <= rows, "row {} of a table of {rows}", last - 1);
    let before = |row: usize| order.partition_point(|&k| (ids[k] as usize) < row);
    written(size(rows, width), size(ROWS, width), |task, to| {
        let first = task * ROWS;
        for &k in &order[before(first)..before(first + ROWS)] {
            add(k, &mut to[(ids[k] as usize - first) * width..][..width]);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: T = [1 2; 3 4; 5 6], ids 2, 0, 2.
    #[test]
    fn golden() {
        let table = [1., 2., 3., 4., 5., 6.];
        assert_eq!(forward(&table, 2, &[2, 0, 2]), [5., 6., 1., 2., 5., 6.]);
        let grad = [1., 2., 10., 20., 100., 200.];
        assert_eq!(backward(&grad, 2, &[2, 0, 2], 3, None), [10., 20., 0., 0., 101., 202.]);
        assert_eq!(backward(&grad, 2, &[2, 0, 2], 3, Some(2)), [10., 20., 0., 0., 0., 0.]);
        assert_eq!(backward(&grad, 2, &[2, 0, 2], 3, Some(0)), [0., 0., 0., 0., 101., 202.]);
    }

    /// A table of several tasks, with repeated rows, against the plain sum.
    #[test]
    fn large_tables_are_the_plain_sum() {
        let (rows, width) = (3 * ROWS + 5, 3);
        let ids: Vec<u32> = (0..2 * rows).map(|k| (k * k % rows) as u32).collect();
        let grad: Vec<f32> = (0..ids.len() * width).map(|k| (k % 13) as f32).collect();
        let mut want = vec![0.0; rows * width];
        for (k, &id) in ids.iter().enumerate() {
            for c in 0..width {
                want[id as usize * width + c] += grad[k * width + c];
            }
        }
        assert_eq!(backward(&grad, width, &ids, rows, None), want);
        let frozen = ids[7] as usize * width;
        want[frozen..frozen + width].fill(0.0);
        assert_eq!(backward(&grad, width, &ids, rows, Some(ids[7])), want);
    }

    #[test]
    fn nothing_taken_is_no_gradient() {
        assert!(forward(&[1.0; 6], 2, &[]).is_empty());
        assert_eq!(backward(&[], 2, &[], 3, None), [0.0; 6]);
    }

    #[test]
    #[should_panic(expected = "row 3 of a table of 3")]
    fn a_number_past_the_table_is_refused() {
        backward(&[0.0; 2], 2, &[3], 3, None);
    }
}
