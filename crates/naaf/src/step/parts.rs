//! A batch of two towers in parts: a row of patches for each picture, and of word pieces for each caption, as one long row each.

use burn::tensor::Tensor;
use itm_core::learn::Images;
use itm_core::towers::{BatchEmbeddings, CaptionInput, Encoders, TowerDropout};

use crate::model::PaddedRows;

/// Makes the rows of a part, `[b, n · d]` and `[b, l · d]`, where l is the number of pieces of the longest of all texts.
pub(super) fn encoder<C: AsRef<[u32]>>(
    texts: &[C],
    [of_images, of_texts]: [TowerDropout; 2],
) -> impl Fn(&Encoders, Images, &CaptionInput, u64) -> [Tensor<2>; 2] + use<C> {
    let longest = texts.iter().map(|text| text.as_ref().len()).max().unwrap_or(0);
    move |towers, images, captions, number| {
        let patches = towers.image.tokens(images, of_images.of_part(number));
        let mut pieces = towers.text.tokens(captions, of_texts.of_part(number));
        let [b, l, d] = pieces.dims();
        if longest > l {
            let padding = Tensor::zeros([b, longest - l, d], &pieces.device());
            pieces = Tensor::cat(vec![pieces, padding], 1);
        }
        [patches, pieces].map(|rows| rows.flatten(1, 2))
    }
}

/// The rows of a batch, `[b, n, d]` and `[b, l, d]`. `lengths` count the pieces of each caption; all patches are real.
pub(super) fn padded(batch: &BatchEmbeddings, lengths: Vec<usize>, d: usize) -> [PaddedRows; 2] {
    let of = |rows: &Tensor<2>| {
        let [b, width] = rows.dims();
        rows.clone().reshape([b, width / d, d])
    };
    let (patches, pieces) = (of(&batch.images), of(&batch.texts));
    let counts = vec![patches.dims()[1]; lengths.len()];
    [PaddedRows { rows: patches, counts }, PaddedRows { rows: pieces, counts: lengths }]
}
