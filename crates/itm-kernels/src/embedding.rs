//! Rows of a table by index, such as word vectors.
//!
//! ```text
//! y_k = T[id_k];   dT[r] = Σ_{k: id_k = r} g_k, in the order of k
//! ```
//!
//! The gradient is [`bag::backward`](crate::bag::backward) of one bag per row taken.

use crate::blocks::{size, written};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: T = [1 2; 3 4; 5 6], ids 2, 0, 2.
    #[test]
    fn golden() {
        let table = [1., 2., 3., 4., 5., 6.];
        assert_eq!(forward(&table, 2, &[2, 0, 2]), [5., 6., 1., 2., 5., 6.]);
        assert!(forward(&table, 2, &[]).is_empty());
    }
}
