//! Weighted sums of rows of a table.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::bag::Bags;
use crate::embedding::check_ids;
use crate::ops::TableOps;

/// The weighted sum of the rows of each bag, `[v, d]` to `[bags, d]`: a bag of words. An empty bag gives zeros.
///
/// ```text
/// y_r = Σ_{k in bag r} a_k T[id_k];   dT[t] = Σ_{k: id_k = t} a_k g_{r(k)}
/// ```
///
/// This is the product of a sparse matrix of weights with the table. Its cost grows with the number of entries,
/// forward and backward. The weights get no gradient.
///
/// # Panics
/// If an id is not a row of the table.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use itm_kernels::bag::Bags;
///
/// let mut bags = Bags::default();
/// bags.push([(0, 1.0), (1, 0.5)]);
/// bags.push([]);
/// let table = Tensor::<2>::from_floats([[1., 2.], [4., 8.]], &Device::flex());
/// let sums = itm_kernels::bag(table, bags);
/// assert_eq!(sums.into_data().try_to_vec::<f32>().unwrap(), [3., 6., 0., 0.]);
/// # }
/// ```
pub fn bag(table: Tensor<2>, bags: Bags) -> Tensor<2> {
    check_ids(&bags.ids, table.dims()[0]);
    Tensor::from_dispatch(<Dispatch as TableOps>::bag_sums(table.into_dispatch(), bags))
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::super::uniform;
    use super::*;
    use crate::tests::close;

    /// Three bags over a table of seven rows: one is empty, and two share a row.
    fn bags() -> Bags {
        let mut bags = Bags::default();
        bags.push([(4, 0.5), (0, -2.0), (6, 1.5)]);
        bags.push([]);
        bags.push([(4, 3.0), (5, 0.25)]);
        bags
    }

    /// Values and gradient are the same as for the product with the dense matrix of weights.
    #[test]
    fn sums_and_gradients_are_those_of_the_dense_product() {
        let device = Device::flex().autodiff();
        let table = uniform([7, 37], 1.0, 1, &device).require_grad();
        let weights = uniform([3, 37], 1.0, 2, &device);
        let mut dense = vec![0.0f32; 21];
        for (at, value) in [(4, 0.5), (0, -2.0), (6, 1.5), (18, 3.0), (19, 0.25)] {
            dense[at] = value;
        }
        let dense = Tensor::<2>::from_data(TensorData::new(dense, [3, 7]), &device);
        let want = dense.matmul(table.clone());
        let got = bag(table.clone(), bags());
        close("sums", got.clone(), want.clone());
        let got = (got * weights.clone()).sum().backward();
        let want = (want * weights).sum().backward();
        close("gradient", table.grad(&got).unwrap(), table.grad(&want).unwrap());
    }

    /// The composed operation of backends without a kernel agrees with the kernel.
    #[test]
    fn agrees_with_composed() {
        let table = uniform([7, 37], 1.0, 1, &Device::flex());
        let grad = uniform([3, 37], 1.0, 2, &Device::flex());
        let plain = |x: &Tensor<2>| x.clone().into_dispatch();
        for (fused, composed) in [
            (
                <Dispatch as TableOps>::bag_sums(plain(&table), bags()),
                crate::ops::composed_bag::<Dispatch>(plain(&table), &bags(), None),
            ),
            (
                <Dispatch as TableOps>::bag_gradient(plain(&grad), bags(), 7),
                crate::ops::composed_bag::<Dispatch>(plain(&grad), &bags(), Some(7)),
            ),
        ] {
            let [fused, composed] = [fused, composed].map(Tensor::<2>::from_dispatch);
            close("composed", fused, composed);
        }
    }

    #[test]
    #[should_panic(expected = "id 3 is row 4 of a table of 4")]
    fn a_number_past_the_table_is_refused() {
        let mut bags = Bags::default();
        bags.push([(0, 1.0), (3, 1.0)]);
        bags.push([(1, 1.0), (4, 1.0)]);
        bag(Tensor::zeros([4, 2], &Device::flex()), bags);
    }
}
