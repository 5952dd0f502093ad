//! The rows of a split, block by block. Scores are computed from these rows.

use itm_core::encoders::InputDropout;
use itm_core::learn::{ImageItems, Images, embed_texts};
use itm_core::{Error, Result, host};

use crate::model::{NaafEncoders, PaddedRows};

/// Items that are encoded at once.
const BLOCK: usize = 128;

/// Rows of all images one after another, `[Σ counts, d]`, and the counts.
///
/// # Errors
/// If a region or a picture cannot be read.
pub(crate) fn of_regions(
    model: &NaafEncoders,
    images: ImageItems,
) -> Result<(Vec<f32>, Vec<usize>)> {
    let (mut values, mut counts) = (vec![], vec![]);
    for_each_block(images, |batch| {
        let padded = model.regions(batch, InputDropout::Off);
        counts.extend(&padded.counts);
        real_rows(padded, |_, rows| values.extend_from_slice(rows));
    })?;
    Ok((values, counts))
}

/// The mean row of each image at unit length, `[images, d]`.
///
/// # Errors
/// If a region or a picture cannot be read.
pub(crate) fn of_images(model: &NaafEncoders, images: ImageItems) -> Result<Vec<f32>> {
    let mut values = vec![];
    for_each_block(images, |batch| {
        values.extend(host(model.mapped(batch, InputDropout::Off).means()));
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
    starts.extend(counts.iter().scan(0, |end, count| {
        *end += count;
        Some(*end)
    }));
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&c| texts[c].len()); // little padding in a block
    let mut values = vec![0.0; starts[texts.len()] * d];
    for block in order.chunks(BLOCK) {
        let some: Vec<&[u32]> = block.iter().map(|&c| texts[c].as_slice()).collect();
        real_rows(model.words(&some, InputDropout::Off), |k, rows| {
            values[starts[block[k]] * d..][..rows.len()].copy_from_slice(rows);
        });
    }
    (values, counts)
}

/// The mean row of each text at unit length, `[texts, d]`.
pub(crate) fn of_texts(model: &NaafEncoders, texts: &[Vec<u32>]) -> Vec<f32> {
    embed_texts(texts, BLOCK, |some| model.sums(some, InputDropout::Off).means())
}

fn for_each_block(images: ImageItems, mut take: impl FnMut(Images)) -> Result<()> {
    if let ImageItems::Pictures(pictures) = images {
        let all: Vec<usize> = (0..pictures.len()).collect();
        return pictures.some(&all).try_for_each(|batch| {
            take(Images::from(&batch?));
            Ok(())
        });
    }
    let ImageItems::Regions(regions) = images else {
        return Err(Error::invalid("images", "regions or pictures", images.kind()));
    };
    let images: Vec<usize> = (0..regions.len()).collect();
    for block in images.chunks(BLOCK) {
        let rows = regions.rows(block)?;
        take(Images::from(&rows));
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
