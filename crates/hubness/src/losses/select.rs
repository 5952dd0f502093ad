//! The largest scores of each row, chosen on the host.

use burn::tensor::{Device, Int, Tensor, TensorData};
use itm_core::host;

/// Columns of the `k` largest values of each row, best first; equal values: the smaller column first.
///
/// `skip` leaves out a column of a row. A NaN comes first, so that it reaches the loss and is seen there.
///
/// # Panics
/// If a row has fewer than `k` columns left.
pub(super) fn largest(
    scores: &Tensor<2>,
    k: usize,
    skip: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let (values, width) = (host(scores.clone()), scores.dims()[1].max(1));
    let mut columns = Vec::with_capacity(values.len() / width * k);
    for (r, row) in values.chunks_exact(width).enumerate() {
        let mut best: Vec<usize> = Vec::with_capacity(k + 1);
        for j in (0..row.len()).filter(|&j| !skip(r, j)) {
            if best.len() == k && best.last().is_none_or(|&last| !ahead(row[j], row[last])) {
                continue; // the common case: one comparison
            }
            let at = best.partition_point(|&c| !ahead(row[j], row[c]));
            best.insert(at, j);
            best.truncate(k);
        }
        assert_eq!(best.len(), k, "row {r} has {} columns to choose {k} from", best.len());
        columns.extend(best);
    }
    columns
}

/// The columns of each row as an index, `[b, k]`.
pub(super) fn index(columns: &[usize], k: usize, device: &Device) -> Tensor<2, Int> {
    let columns: Vec<i64> = columns.iter().map(|&j| j as i64).collect();
    let rows = columns.len() / k.max(1);
    Tensor::from_data(TensorData::new(columns, [rows, k]), device)
}

fn ahead(a: f32, b: f32) -> bool {
    // −0 equals +0, and a NaN is ahead of every number.
    a > b || (a.is_nan() && !b.is_nan())
}
