//! Log-sum-exp of every row and every column.

use std::ops::Range;

use super::kernel::{ALIGN, widest};
use super::{Consumer, Tile};

/// Log-sum-exp of the scores of every image and of every text, in double precision.
///
/// ```text
/// images[i] = log Σⱼ exp(β·s(i, j))      texts[j] = log Σᵢ exp(β·s(i, j))      −∞ over nothing
/// ```
///
/// Blocks of 64 × 64 scores share one maximum that is taken out, so that one exponential serves row and column. Where a
/// block spans more than e⁶⁰⁰ each row and column takes out its own. Block by block the sums are joined in ascending
/// order, lanes likewise: the bits do not depend on tile sizes or threads.
#[derive(Debug, Clone, Copy)]
pub struct ExpSums {
    beta: f64,
}

/// What [`ExpSums`] gives.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSums {
    /// Over all texts, for each image.
    pub images: Vec<f64>,
    /// Over all images, for each text.
    pub texts: Vec<f64>,
}

impl ExpSums {
    /// With an inverse temperature.
    ///
    /// # Panics
    /// If `beta` is not finite, or so large that `β·s` could overflow.
    pub fn new(beta: f64) -> Self {
        // |s| < 2¹²⁸, so β·s, and differences of two, stay finite.
        assert!(beta.abs() < 1e200, "β = {beta} is not a number that scores can be multiplied by");
        Self { beta }
    }
}

/// `sum · exp(shift)`; `shift` is near the largest exponent that went in.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LogSum {
    shift: f64,
    sum: f64,
}

impl LogSum {
    const NOTHING: Self = Self { shift: f64::NEG_INFINITY, sum: 0.0 };

    fn join(&mut self, other: Self) {
        if other.shift > self.shift {
            self.sum = self.sum * (self.shift - other.shift).exp() + other.sum;
            self.shift = other.shift;
        } else if other.sum > 0.0 {
            self.sum += other.sum * (other.shift - self.shift).exp();
        }
    }

    fn log(self) -> f64 {
        self.shift + self.sum.ln()
    }
}

/// The sums of some neighbouring images and texts.
#[derive(Debug, Clone)]
pub struct Sums {
    image0: usize,
    text0: usize,
    images: Vec<LogSum>,
    texts: Vec<LogSum>,
}

impl Consumer for ExpSums {
    type State = Sums;
    type Output = LogSums;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Sums {
        let nothing = |range: &Range<usize>| vec![LogSum::NOTHING; range.len()];
        Sums {
            image0: images.start,
            text0: texts.start,
            images: nothing(&images),
            texts: nothing(&texts),
        }
    }

    fn tile(&self, sums: &mut Sums, tile: &Tile<'_>) {
        let mut block = Block::default();
        for rows in super::pieces(tile.images(), ALIGN) {
            for columns in super::pieces(tile.texts(), ALIGN) {
                let (row0, column0) =
                    (rows.start - tile.images().start, columns.start - tile.texts().start);
                block.fill(rows.len(), columns.len(), self.beta, |row| {
                    &tile.row(row0 + row)[column0..column0 + columns.len()]
                });
                let images = &mut sums.images[rows.start - sums.image0..][..rows.len()];
                let texts = &mut sums.texts[columns.start - sums.text0..][..columns.len()];
                images.iter_mut().zip(block.row_sums).for_each(|(all, part)| all.join(part));
                texts.iter_mut().zip(block.column_sums).for_each(|(all, part)| all.join(part));
            }
        }
    }

    fn merge(&self, total: &mut Sums, lane: Sums) {
        let images = &mut total.images[lane.image0..];
        let texts = &mut total.texts[lane.text0..];
        images.iter_mut().zip(lane.images).for_each(|(all, part)| all.join(part));
        texts.iter_mut().zip(lane.texts).for_each(|(all, part)| all.join(part));
    }

    fn finish(&self, total: Sums) -> LogSums {
        let log = |sums: Vec<LogSum>| sums.into_iter().map(LogSum::log).collect();
        LogSums { images: log(total.images), texts: log(total.texts) }
    }
}

/// Above this span (in the exponent) a common maximum would lose the smallest terms of a block.
const SPAN: f64 = 600.0;

/// A square of scores, and the sums of its rows and columns.
struct Block {
    z: Box<[[f64; ALIGN]; ALIGN]>, // β·s, then its exponential
    row_sums: [LogSum; ALIGN],
    column_sums: [LogSum; ALIGN],
}

impl Default for Block {
    fn default() -> Self {
        let none = [LogSum::NOTHING; ALIGN];
        Self { z: Box::new([[0.0; ALIGN]; ALIGN]), row_sums: none, column_sums: none }
    }
}

impl Block {
    fn fill<'s>(
        &mut self,
        rows: usize,
        columns: usize,
        beta: f64,
        scores: impl Fn(usize) -> &'s [f32],
    ) {
        widest(
            #[inline(always)]
            || {
                let mut highest = [f64::NEG_INFINITY; ALIGN];
                let mut lowest = [f64::INFINITY; ALIGN];
                for (row, z) in self.z[..rows].iter_mut().enumerate() {
                    for (c, &s) in scores(row)[..columns].iter().enumerate() {
                        z[c] = beta * f64::from(s);
                        highest[c] = if z[c] > highest[c] { z[c] } else { highest[c] };
                        lowest[c] = if z[c] < lowest[c] { z[c] } else { lowest[c] };
                    }
                }
                let most = highest.into_iter().fold(f64::NEG_INFINITY, f64::max);
                let least = lowest.into_iter().fold(f64::INFINITY, f64::min);
                if most - least <= SPAN {
                    self.sum_together(rows, columns, most);
                } else {
                    self.sum_apart(rows, columns, &highest);
                }
            },
        );
    }

    #[inline(always)]
    fn sum_together(&mut self, rows: usize, columns: usize, shift: f64) {
        let mut column_sums = [0.0; ALIGN];
        for (row, z) in self.z[..rows].iter_mut().enumerate() {
            let z = &mut z[..columns];
            for (z, sum) in z.iter_mut().zip(&mut column_sums) {
                *z = exp(*z - shift);
                *sum += *z;
            }
            self.row_sums[row] = LogSum { shift, sum: sum(z) };
        }
        for (all, &sum) in self.column_sums[..columns].iter_mut().zip(&column_sums) {
            *all = LogSum { shift, sum };
        }
    }

    #[inline(always)]
    fn sum_apart(&mut self, rows: usize, columns: usize, highest: &[f64; ALIGN]) {
        let mut column_sums = [0.0; ALIGN];
        for (row, z) in self.z[..rows].iter_mut().enumerate() {
            let z = &mut z[..columns];
            for ((z, sum), shift) in z.iter().zip(&mut column_sums).zip(highest) {
                *sum += exp(*z - shift);
            }
            let shift = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            z.iter_mut().for_each(|z| *z = exp(*z - shift));
            self.row_sums[row] = LogSum { shift, sum: sum(z) };
        }
        let sums = highest.iter().zip(column_sums).map(|(&shift, sum)| LogSum { shift, sum });
        self.column_sums[..columns].iter_mut().zip(sums).for_each(|(all, sum)| *all = sum);
    }
}

/// Eight sums side by side, joined at the end: one alone would wait for itself.
#[inline(always)]
fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for part in values.chunks(sums.len()) {
        part.iter().zip(&mut sums).for_each(|(v, sum)| *sum += v);
    }
    sums.iter().sum()
}

/// eˣ for x ≤ 0, as code without branches that a compiler can make vectors of; below −700, e⁻⁷⁰⁰.
///
/// ```text
/// x = n·ln 2 + r, |r| ≤ ln 2 / 2      eˣ = 2ⁿ · Σ rᵏ / k!, k ≤ 13
/// ```
#[inline(always)]
fn exp(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²: adding it leaves the nearest integer in the low bits
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000); // 21 zero bits: n · LN_2_HIGH is exact
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const INVERSE_FACTORIALS: [f64; 14] = {
        let mut inverse = [1.0; 14];
        let (mut k, mut factorial) = (1, 1.0);
        while k < 14 {
            factorial *= k as f64;
            inverse[k] = 1.0 / factorial;
            k += 1;
        }
        inverse
    };
    let x = if x < -700.0 { -700.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut sum = INVERSE_FACTORIALS[13];
    let mut k = 13;
    while k > 0 {
        k -= 1;
        sum = sum * r + INVERSE_FACTORIALS[k];
    }
    // n + 1023 is the exponent of 2ⁿ; the bits of ROUND above n are shifted out.
    sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPES, everywhere, tiles, unit};
    use super::*;

    /// Straight from the equation, two passes over whole rows.
    fn naive(row: &[f32], beta: f64) -> f64 {
        let z: Vec<_> = row.iter().map(|&s| beta * f64::from(s)).collect();
        let most = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if z.is_empty() {
            most
        } else {
            most + z.iter().map(|z| (z - most).exp()).sum::<f64>().ln()
        }
    }

    #[test]
    fn as_by_the_equation_with_the_same_bits_everywhere() {
        for (n, m, d) in SHAPES {
            let (v, w) = (unit(n, d, 1), unit(m, d, 2));
            let tiles = tiles(&v, &w, d);
            let scores = tiles.scores();
            let columns = scores.transpose();
            for beta in [0.0, 1.0, 30.0, -30.0, 1e4, 1e30] {
                let sums = tiles.run(&ExpSums::new(beta));
                let close = |got: f64, row: &[f32]| {
                    let want = naive(row, beta);
                    got == want || (got - want).abs() < 1e-12 * want.abs().max(1.0)
                };
                for i in 0..n {
                    assert!(close(sums.images[i], scores.row(i)), "β = {beta}, image {i}");
                }
                for j in 0..m {
                    assert!(close(sums.texts[j], columns.row(j)), "β = {beta}, text {j}");
                }
                everywhere(&tiles, |tiles| assert_eq!(tiles.run(&ExpSums::new(beta)), sums));
            }
        }
    }

    /// Worked by hand: log(e⁰ + e¹) = 1.3132616875182228; e¹⁰⁰⁰ overflows unless the maximum is taken out.
    #[test]
    fn golden_of_two_scores() {
        let tiles = tiles(&[1.0, 1000.0], &[0.0, 1.0], 1);
        let sums = tiles.run(&ExpSums::new(1.0));
        assert!((sums.images[0] - 1.313_261_687_518_222_8).abs() < 1e-15);
        assert_eq!(sums.images[1], 1000.0);
        assert!((sums.texts[0] - 2f64.ln()).abs() < 1e-15);
        assert_eq!(sums.texts[1], 1000.0);
    }

    /// One loud image must not swallow the small sums of the quiet ones beside it.
    #[test]
    fn a_wide_block_keeps_its_quiet_rows() {
        let v: Vec<_> = (0..300).map(|i| if i == 70 { 1.0 } else { 1e-4 * i as f32 }).collect();
        let tiles = tiles(&v, &[1.0, 0.5], 1);
        let scores = tiles.scores();
        let sums = tiles.run(&ExpSums::new(1e5));
        for i in 0..300 {
            let want = naive(scores.row(i), 1e5);
            assert!((sums.images[i] - want).abs() <= 1e-12 * want.max(1.0), "image {i}");
        }
    }

    #[test]
    fn the_exponential_is_good_to_the_last_bits() {
        for step in 0..70_000 {
            let x = -0.01 * f64::from(step) - 1e-3 / f64::from(step + 1);
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-15, "exp({x}) = {}", exp(x));
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e300), exp(-700.0));
        assert_eq!(exp(f64::NEG_INFINITY), exp(-700.0));
    }

    #[test]
    #[should_panic(expected = "β = NaN is not a number")]
    fn a_beta_that_is_no_number() {
        let _ = ExpSums::new(f64::NAN);
    }
}
