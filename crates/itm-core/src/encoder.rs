//! From inputs to embeddings.

use burn::tensor::Tensor;

/// Turns inputs into tensors: images, texts, regions.
pub trait Encoder<X> {
    /// What one call gives; for most encoders `Tensor<2>`, one row an item.
    type Output;

    /// Encodes one batch.
    fn encode(&self, input: X) -> Self::Output;
}

/// Encodes batch after batch and joins the rows.
///
/// Keeps every batch's graph if the encoder's device has autodiff: give it `model.valid()`.
///
/// # Panics
/// If there is no batch.
pub fn encode_all<X, E>(encoder: &E, batches: impl IntoIterator<Item = X>) -> Tensor<2>
where
    E: Encoder<X, Output = Tensor<2>>,
{
    let rows: Vec<_> = batches.into_iter().map(|batch| encoder.encode(batch)).collect();
    assert!(!rows.is_empty(), "nothing to encode: at least one batch is needed");
    Tensor::cat(rows, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    struct Double;

    impl Encoder<Tensor<2>> for Double {
        type Output = Tensor<2>;

        fn encode(&self, input: Tensor<2>) -> Tensor<2> {
            input * 2.0
        }
    }

    #[test]
    fn batches_are_joined_in_order_and_may_differ_in_size() {
        let batch = |rows: Vec<f32>| {
            let n = rows.len();
            Tensor::<1>::from_floats(rows.as_slice(), &Device::flex()).reshape([n, 1])
        };
        let all = encode_all(&Double, [batch(vec![1., 2.]), batch(vec![3.])]);
        assert_eq!(all.dims(), [3, 1]);
        assert_eq!(all.into_data().try_to_vec::<f32>().unwrap(), [2., 4., 6.]);
    }

    #[test]
    #[should_panic(expected = "at least one batch")]
    fn no_batch_is_refused() {
        encode_all(&Double, std::iter::empty());
    }
}
