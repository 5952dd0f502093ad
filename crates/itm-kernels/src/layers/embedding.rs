//! Rows of a table.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::embedding::check_ids;
use crate::ops::{RowIds, TableOps};

/// Rows of a table by index, `[v, d]` to `[n, d]`, such as word vectors. Row `frozen` is read but does not learn.
///
/// ```text
/// y_k = T[id_k];   dT[r] = Σ_{k: id_k = r ≠ frozen} g_k
/// ```
///
/// On the CPU the sum is in the order of k, on any number of threads.
///
/// # Panics
/// If an id is not a row of the table.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use itm_kernels::embedding;
///
/// let table = Tensor::<2>::from_floats([[1., 2.], [3., 4.]], &Device::flex());
/// let rows = embedding(table, &[1, 1, 0], None);
/// assert_eq!(rows.into_data().try_to_vec::<f32>().unwrap(), [3., 4., 3., 4., 1., 2.]);
/// # }
/// ```
pub fn embedding(table: Tensor<2>, ids: &[u32], frozen: Option<u32>) -> Tensor<2> {
    check_ids(ids, table.dims()[0]);
    let taken = RowIds { ids: ids.to_vec(), frozen };
    Tensor::from_dispatch(<Dispatch as TableOps>::embedding_rows(table.into_dispatch(), taken))
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::super::uniform;
    use super::*;
    use crate::tests::{close, values};

    const IDS: [u32; 6] = [4, 0, 6, 4, 4, 0];

    /// Values and gradient are the same as with burn's `select`; the frozen row has gradient zero.
    #[test]
    fn rows_and_gradients_are_those_of_select() {
        let device = Device::flex().autodiff();
        let table = uniform([7, 5], 1.0, 1, &device).require_grad();
        let weights = uniform([6, 5], 1.0, 2, &device);
        let ids = TensorData::new(IDS.map(i64::from).to_vec(), [6]);
        let plain = table.clone().select(0, Tensor::from_data(ids, &device));
        let want = (plain.clone() * weights.clone()).sum().backward();
        let all = table.grad(&want).unwrap();
        for frozen in [None, Some(4), Some(3)] {
            let rows = embedding(table.clone(), &IDS, frozen);
            assert_eq!(values(rows.clone()), values(plain.clone()));
            let got = (rows * weights.clone()).sum().backward();
            let want = match frozen {
                Some(row) => {
                    let row = row as usize;
                    all.clone().slice_fill([row..row + 1, 0..5], 0.0)
                }
                None => all.clone(),
            };
            close("gradient", table.grad(&got).unwrap(), want.clone());
        }
    }

    #[test]
    #[should_panic(expected = "id 2 is row 7 of a table of 7")]
    fn a_number_past_the_table_is_refused() {
        embedding(Tensor::zeros([7, 2], &Device::flex()), &[0, 6, 7], None);
    }
}
