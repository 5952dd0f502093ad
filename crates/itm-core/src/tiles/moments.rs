//! Mean and deviation of every row and column.

use std::ops::Range;

use super::kernel::ALIGN;
use super::sides::BothSides;
use super::{Consumer, Tile, widest};

/// Mean and population deviation of the scores of every image and of every text, in f64.
///
/// Within a block of 64 × 64 scores the mean comes first; then the squared differences from the mean are
/// summed. Blocks are joined in ascending order by the parallel form of Welford's update. No digits cancel,
/// and the bits do not depend on tile sizes or threads.
#[derive(Debug, Clone, Copy)]
pub struct Moments;

/// Count, mean and sum of squared differences from the mean.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// Number of scores.
    pub count: f64,
    /// Their mean; 0 if there are none.
    pub mean: f64,
    /// `Σ (s − mean)²`.
    pub squares: f64,
}

impl Moment {
    /// Population deviation: divided by the count, not by the count − 1; 0 of no score.
    pub fn deviation(self) -> f64 {
        (self.squares / self.count.max(1.0)).sqrt()
    }

    /// Takes in the moments of other scores. The order of joins decides about the last bits.
    pub(super) fn join(&mut self, other: Self) {
        let count = self.count + other.count;
        if count > 0.0 {
            let apart = other.mean - self.mean;
            self.mean += apart * (other.count / count);
            self.squares += other.squares + apart * apart * (self.count * other.count / count);
            self.count = count;
        }
    }
}

impl Consumer for Moments {
    type State = BothSides<Moment>;
    type Output = BothSides<Moment>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        BothSides::new(images, texts, Moment::default())
    }

    fn tile(&self, state: &mut Self::State, tile: &Tile<'_>) {
        for square in tile.squares() {
            let (images, texts) = state.of_tile(&square);
            widest(
                #[inline(always)]
                || {
                    for ((_, row), image) in square.rows().zip(images) {
                        image.join(of_row(row));
                    }
                    join_columns(texts, &square);
                },
            );
        }
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        total.merge(lane, Moment::join);
    }

    fn finish(&self, total: Self::State) -> Self::Output {
        total
    }
}

#[inline(always)]
fn of_row(scores: &[f32]) -> Moment {
    let count = scores.len() as f64;
    let mean = eight_sums(scores, f64::from) / count;
    let squares = eight_sums(scores, |s| (f64::from(s) - mean) * (f64::from(s) - mean));
    Moment { count, mean, squares }
}

/// Eight independent sums, joined at the end. With a single sum, each addition would wait for the one before.
#[inline(always)]
pub(super) fn eight_sums<T: Copy>(values: &[T], term: impl Fn(T) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for part in values.chunks(sums.len()) {
        part.iter().zip(&mut sums).for_each(|(&value, sum)| *sum += term(value));
    }
    sums.iter().sum()
}

#[inline(always)]
fn join_columns(texts: &mut [Moment], square: &Tile<'_>) {
    let (mut means, mut squares) = ([0.0; ALIGN], [0.0; ALIGN]);
    let count = square.images().len() as f64;
    for (_, row) in square.rows() {
        row.iter().zip(&mut means).for_each(|(&s, sum)| *sum += f64::from(s));
    }
    means.iter_mut().for_each(|sum| *sum /= count);
    for (_, row) in square.rows() {
        for ((&s, mean), sum) in row.iter().zip(&means).zip(&mut squares) {
            *sum += (f64::from(s) - mean) * (f64::from(s) - mean);
        }
    }
    for ((text, &mean), &squares) in texts.iter_mut().zip(&means).zip(&squares) {
        text.join(Moment { count, mean, squares });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScoreMatrix;

    /// Against the definitions in two passes. The means drift from block to block, on a large offset.
    #[test]
    fn as_by_two_passes_over_whole_rows_and_columns() {
        for (n, m) in [(1, 1), (1, 700), (200, 3), (65, 129), (600, 150)] {
            let value = |at: usize| {
                let (i, j) = (at / m, at % m);
                1000.0 + (i as f32 / 16.0) - (j as f32 / 8.0) + (at * 37 % 101) as f32 / 64.0
            };
            let scores = ScoreMatrix::new(n, m, (0..n * m).map(value).collect()).unwrap();
            let BothSides { images, texts, .. } = scores.run(&Moments).unwrap();
            assert_eq!((images.len(), texts.len()), (n, m));
            let check = |got: Moment, values: Vec<f64>| {
                let count = values.len() as f64;
                let mean = values.iter().sum::<f64>() / count;
                let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
                let sd = (squares / count).sqrt();
                assert!((got.mean - mean).abs() < 1e-11, "{n} × {m}: mean {}, {mean}", got.mean);
                assert!((got.deviation() - sd).abs() < 1e-12 * sd.max(1.0), "{n} × {m}");
            };
            for (i, &moment) in images.iter().enumerate() {
                check(moment, scores.row(i).iter().map(|&s| f64::from(s)).collect());
            }
            for (j, &moment) in texts.iter().enumerate() {
                check(moment, (0..n).map(|i| f64::from(scores.row(i)[j])).collect());
            }
        }
    }

    #[test]
    fn constants_have_no_deviation_at_all() {
        let scores = ScoreMatrix::new(150, 70, vec![0.3; 150 * 70]).unwrap();
        let BothSides { images, texts, .. } = scores.run(&Moments).unwrap();
        assert!(images.iter().chain(&texts).all(|moment| moment.deviation() == 0.0));
    }
}
