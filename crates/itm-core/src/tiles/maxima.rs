//! The largest score of every image and of every text.

use std::ops::Range;

use super::kernel::widest;
use super::{Consumer, Tile};

/// The largest score of every row and of every column.
///
/// ```text
/// images[i] = maxⱼ s(i, j)      texts[j] = maxᵢ s(i, j)      −∞ if there is no score
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Maxima;

/// What [`Maxima`] gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Largest {
    /// The maximum over all texts, for each image.
    pub images: Vec<f32>,
    /// The maximum over all images, for each text.
    pub texts: Vec<f32>,
}

impl Consumer for Maxima {
    type State = (usize, usize, Largest); // first image, first text, maxima from there on
    type Output = Largest;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        let none = |range: &Range<usize>| vec![f32::NEG_INFINITY; range.len()];
        (images.start, texts.start, Largest { images: none(&images), texts: none(&texts) })
    }

    fn tile(&self, (image0, text0, largest): &mut Self::State, tile: &Tile<'_>) {
        let range = tile.texts();
        let columns = &mut largest.texts[range.start - *text0..range.end - *text0];
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    raise(columns, row);
                    let best = &mut largest.images[image - *image0];
                    *best = best.max(maximum(row));
                }
            },
        );
    }

    fn merge(&self, (_, _, total): &mut Self::State, (image0, text0, lane): Self::State) {
        raise(&mut total.images[image0..], &lane.images);
        raise(&mut total.texts[text0..], &lane.texts);
    }

    fn finish(&self, (_, _, total): Self::State) -> Largest {
        total
    }
}

#[inline(always)]
fn raise(best: &mut [f32], scores: &[f32]) {
    best.iter_mut().zip(scores).for_each(|(best, &s)| *best = if s > *best { s } else { *best });
}

/// Sixteen maxima side by side: with a single maximum every comparison would wait for the one before.
#[inline(always)]
fn maximum(row: &[f32]) -> f32 {
    let mut best = [f32::NEG_INFINITY; 16];
    row.chunks(best.len()).for_each(|scores| raise(&mut best, scores));
    best.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHAPES, everywhere, tiles, unit};
    use super::*;

    #[test]
    fn as_in_the_matrix() {
        for (n, m, d) in SHAPES {
            let (v, w) = (unit(n, d, 1), unit(m, d, 2));
            let tiles = tiles(&v, &w, d);
            let scores = tiles.scores();
            let max = |row: &[f32]| row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let columns = scores.transpose();
            let want = Largest {
                images: (0..n).map(|i| max(scores.row(i))).collect(),
                texts: (0..m).map(|j| max(columns.row(j))).collect(),
            };
            everywhere(&tiles, |tiles| assert_eq!(tiles.run(&Maxima), want, "{n} × {m} × {d}"));
        }
    }
}
