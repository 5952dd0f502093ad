//! The largest score of every image and of every text.

use std::ops::Range;

use super::sides::BothSides;
use super::{Consumer, Tile, widest};

/// The largest score of every row and of every column.
///
/// ```text
/// images[i] = maxⱼ s(i, j)      texts[j] = maxᵢ s(i, j)      −∞ if there is no score
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Maxima;

impl Consumer for Maxima {
    type State = BothSides<f32>;
    type Output = BothSides<f32>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        BothSides::new(images, texts, f32::NEG_INFINITY)
    }

    fn tile(&self, largest: &mut Self::State, tile: &Tile<'_>) {
        let (images, texts) = largest.of_tile(tile);
        widest(
            #[inline(always)]
            || {
                for ((_, row), best) in tile.rows().zip(images) {
                    raise(texts, row);
                    *best = best.max(maximum(row));
                }
            },
        );
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        total.merge(lane, |best, s| *best = if s > *best { s } else { *best });
    }

    fn finish(&self, total: Self::State) -> Self::Output {
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
            let want = BothSides {
                first: [0, 0],
                images: (0..n).map(|i| max(scores.row(i))).collect(),
                texts: (0..m).map(|j| max(columns.row(j))).collect(),
            };
            everywhere(&tiles, |tiles| assert_eq!(tiles.run(&Maxima), want, "{n} × {m} × {d}"));
        }
    }
}
