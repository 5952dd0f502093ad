//! Embeds a split block by block.

use burn::tensor::Tensor;

use crate::data::Features;
use crate::host;

/// Number of rows that a small encoder (one or two layers) encodes together.
pub(crate) const BLOCK: usize = 512;

/// Embeddings of features, `[rows, d]` row-major. `encode` gets at most 512 whole rows per call.
///
/// # Panics
/// If the values are not whole rows, or `encode` does not return one row per row.
pub fn embed_features(features: &Features, encode: impl Fn(&[f32]) -> Tensor<2>) -> Vec<f32> {
    let (n, dim) = (features.values.len(), features.dim);
    assert!(n.is_multiple_of(dim), "{n} values in rows of {dim}"); // of 0 only 0 is a multiple
    let blocks = features.values.chunks(BLOCK.saturating_mul(dim.max(1)));
    let rows_of = |block: &[f32]| {
        let (rows, wanted) = (encode(block), block.len() / dim);
        let [n, d] = rows.dims();
        assert!(n == wanted && d > 0, "rows of shape [{n}, {d}] for {wanted} images");
        host(rows)
    };
    blocks.flat_map(rows_of).collect()
}

/// Embeddings of texts, `[texts, d]` row-major, in the given order. `encode` gets at most `block` texts of similar
/// length per call.
///
/// # Panics
/// If `block` is 0, or `encode` does not return one row per text, always of one width.
pub fn embed_texts<C: AsRef<[u32]>>(
    texts: &[C],
    block: usize,
    mut encode: impl FnMut(&[&[u32]]) -> Tensor<2>,
) -> Vec<f32> {
    assert!(block > 0, "blocks of 0 texts");
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&i| texts[i].as_ref().len()); // so that blocks need little padding
    let mut out = vec![];
    for block in order.chunks(block) {
        let some: Vec<&[u32]> = block.iter().map(|&i| texts[i].as_ref()).collect();
        let rows = encode(&some);
        let ([n, d], wanted) = (rows.dims(), block.len());
        assert!(n == wanted && d > 0, "rows of shape [{n}, {d}] for {wanted} texts");
        let same = out.is_empty() || out.len() == texts.len() * d;
        assert!(same, "rows of width {d} beside rows of another");
        out.resize(texts.len() * d, 0.0);
        for (&i, row) in block.iter().zip(host(rows).chunks_exact(d)) {
            out[i * d..(i + 1) * d].copy_from_slice(row);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;

    fn tensor(values: Vec<f32>, width: usize) -> Tensor<2> {
        let shape = [values.len() / width, width];
        Tensor::from_data(TensorData::new(values, shape), &Device::flex())
    }

    /// Each text has its own row, although texts are encoded in the order of their lengths.
    #[test]
    fn texts_come_back_in_their_order() {
        let texts: Vec<Vec<u32>> = (0..7u32).map(|k| vec![k; 1 + (k as usize * 5) % 4]).collect();
        let embedded = embed_texts(&texts, 3, |some| {
            assert!(some.len() <= 3 && some.is_sorted_by_key(|text| text.len()));
            let rows = some.iter().flat_map(|text| [text[0] as f32, text.len() as f32]);
            tensor(rows.collect(), 2)
        });
        let want = texts.iter().flat_map(|text| [text[0] as f32, text.len() as f32]);
        assert_eq!(embedded, want.collect::<Vec<_>>());
        assert!(embed_texts::<Vec<u32>>(&[], 3, |_| unreachable!()).is_empty());
    }

    #[test]
    fn features_come_in_whole_rows() {
        let n = BLOCK + 1;
        let features = Features { dim: 3, values: (0..3 * n).map(|k| k as f32).collect() };
        let embedded = embed_features(&features, |block| {
            assert!(block.len() % 3 == 0 && block.len() <= 3 * BLOCK);
            tensor(block.iter().step_by(3).copied().collect(), 1)
        });
        assert_eq!(embedded, (0..n).map(|k| 3.0 * k as f32).collect::<Vec<_>>());
        let none = Features { dim: 0, values: vec![] };
        assert!(embed_features(&none, |_| unreachable!()).is_empty());
    }
}
