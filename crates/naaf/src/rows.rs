//! The rows of a split, block by block. Scores are computed from these rows.

use itm_core::encoders::InputDropout;
use itm_core::learn::{ImageItems, Images, embed_texts};
use itm_core::{Error, Result, host};

use crate::model::{NaafEncoders, PaddedRows, RegionEncoder};

/// Items that are encoded at once.
const BLOCK: usize = 128;

/// Rows of these images, or of all, one after another, `[Σ counts, d]`, and the counts.
///
/// # Errors
/// If a region or a picture cannot be read, or a picture is of another size than the encoder's.
pub(crate) fn of_regions(
    model: &NaafEncoders,
    images: ImageItems,
    which: Option<&[usize]>,
) -> Result<(Vec<f32>, Vec<usize>)> {
    let (mut values, mut counts) = (vec![], vec![]);
    for_each_block(model, images, which, |batch| {
        let padded = model.regions(batch, InputDropout::OFF);
        counts.extend(&padded.counts);
        real_rows(padded, |_, rows| values.extend_from_slice(rows));
    })?;
    Ok((values, counts))
}

/// The mean row of each image at unit length, `[images, d]`.
///
/// # Errors
/// If a region or a picture cannot be read, or a picture is of another size than the encoder's.
pub(crate) fn of_images(model: &NaafEncoders, images: ImageItems) -> Result<Vec<f32>> {
    let mut values = vec![];
    for_each_block(model, images, None, |batch| {
        values.extend(host(model.mapped(batch, InputDropout::OFF).means()));
    })?;
    Ok(values)
}

/// Rows of the words of all texts, text after text in the given order, `[Σ counts, d]`, and the counts.
pub(crate) fn of_words(
    model: &NaafEncoders,
    texts: &[Vec<u32>],
    d: usize,
) -> (Vec<f32>, Vec<usize>) {
    let counts = model.lengths(texts);
    let mut starts = vec![0];
    counts.iter().for_each(|count| starts.push(starts[starts.len() - 1] + count));
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&c| texts[c].len()); // little padding in a block
    let mut values = vec![0.0; starts[texts.len()] * d];
    for block in order.chunks(BLOCK) {
        let some: Vec<&[u32]> = block.iter().map(|&c| texts[c].as_slice()).collect();
        real_rows(model.words(&some, InputDropout::OFF), |k, rows| {
            values[starts[block[k]] * d..][..rows.len()].copy_from_slice(rows);
        });
    }
    (values, counts)
}

/// The mean row of each text at unit length, `[texts, d]`.
pub(crate) fn of_texts(model: &NaafEncoders, texts: &[Vec<u32>]) -> Vec<f32> {
    embed_texts(texts, BLOCK, |some| model.sums(some, InputDropout::OFF).means())
}

fn for_each_block(
    model: &NaafEncoders,
    images: ImageItems,
    which: Option<&[usize]>,
    mut take: impl FnMut(Images),
) -> Result<()> {
    match (images, &model.image) {
        (ImageItems::Pictures(pictures), RegionEncoder::Patches(encoder)) => {
            let all: Vec<usize> = (0..pictures.len()).collect();
            for batch in pictures.some(which.unwrap_or(&all)) {
                let batch = batch?;
                encoder.check(Images::from(&batch), batch.images)?;
                take(Images::from(&batch));
            }
        }
        (ImageItems::Regions(regions), _) => {
            let all: Vec<usize> = (0..regions.len()).collect();
            for block in which.unwrap_or(&all).chunks(BLOCK) {
                take(Images::from(&regions.rows(block)?));
            }
        }
        (images, _) => return Err(Error::invalid("images", "regions or pictures", images.kind())),
    }
    Ok(())
}

/// Calls `take(item, its rows)` without the padding.
fn real_rows(padded: PaddedRows, mut take: impl FnMut(usize, &[f32])) {
    let [_, l, d] = padded.rows.dims();
    let values = host(padded.rows);
    for (k, (item, count)) in values.chunks_exact(l * d).zip(padded.counts).enumerate() {
        take(k, &item[..count * d]);
    }
}
