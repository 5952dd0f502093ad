//! Log-sum-exp of every row and every column.

use std::ops::Range;

use super::kernel::ALIGN;
use super::moments::eight_sums;
use super::sides::BothSides;
use super::{Consumer, Tile, widest};

/// Log-sum-exp of the scores of every image and of every text, in double precision.
///
/// ```text
/// images[i] = log Σⱼ exp(z(i, j))      texts[j] = log Σᵢ exp(z(i, j))      −∞ if there is no score
/// z(i, j) = β·s(i, j) + x(i) + y(j)      x, y: shifts, 0 if none are given
/// ```
///
/// With β > 0, a score of −∞ adds nothing. If there is a single image (or text), the logarithm is the exponent itself,
/// to the last bit, so a ranking by the difference of the two ties there.
///
/// The scores of a 64 × 64 block share one maximum, which is taken out, so one exponential serves row and
/// column. Where a block spans more than e⁶⁰⁰, each row and column takes out its own maximum. The sums of
/// blocks and of lanes are joined in ascending order, so the bits do not depend on tile sizes or threads.
#[derive(Debug, Clone)]
pub struct ExpSums {
    beta: f64,
    shifts: Option<(Vec<f64>, Vec<f64>)>, // of images and of texts
}

impl ExpSums {
    /// Sums at the inverse temperature `beta`.
    ///
    /// # Panics
    /// If `beta` is not finite, or so large that `β·s` could overflow.
    pub fn new(beta: f64) -> Self {
        // |s| < 2¹²⁸, so β·s stays finite, and so does the difference of two such products.
        assert!(beta.abs() < 1e200, "β = {beta} is not a number that scores can be multiplied by");
        Self { beta, shifts: None }
    }

    /// Adds one shift per image and one per text to the exponents: for example the potentials of Sinkhorn's
    /// iteration.
    ///
    /// A later run panics if the numbers of images or texts differ from the numbers of shifts.
    ///
    /// # Panics
    /// If a shift is not finite, or its magnitude is 1e300 or more.
    #[must_use]
    pub fn with_shifts(mut self, images: Vec<f64>, texts: Vec<f64>) -> Self {
        for shift in images.iter().chain(&texts) {
            assert!(shift.abs() < 1e300, "a shift of {shift} cannot be added to an exponent");
        }
        self.shifts = Some((images, texts));
        self
    }

    /// The shifts of some neighbouring images and texts, at most 64 each.
    fn shifts_of(&self, rows: &Range<usize>, columns: &Range<usize>) -> (&[f64], &[f64]) {
        match &self.shifts {
            Some((images, texts)) => (&images[rows.clone()], &texts[columns.clone()]),
            None => (&[0.0; ALIGN][..rows.len()], &[0.0; ALIGN][..columns.len()]),
        }
    }
}

/// `sum · exp(shift)`; `shift` is near the largest exponent of the sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogSum {
    shift: f64,
    sum: f64,
}

impl LogSum {
    pub(super) const NOTHING: Self = Self { shift: f64::NEG_INFINITY, sum: 0.0 };

    /// A sum with its shift; the empty sum if the shift is −∞.
    #[inline(always)]
    pub(super) fn new(shift: f64, sum: f64) -> Self {
        if shift == f64::NEG_INFINITY { Self::NOTHING } else { Self { shift, sum } }
    }

    pub(super) fn join(&mut self, other: Self) {
        if other.shift > self.shift {
            self.sum = self.sum * (self.shift - other.shift).exp() + other.sum;
            self.shift = other.shift;
        } else if other.sum > 0.0 {
            self.sum += other.sum * (other.shift - self.shift).exp();
        }
    }

    pub(super) fn log(self) -> f64 {
        self.shift + self.sum.ln()
    }
}

impl Consumer for ExpSums {
    type State = BothSides<LogSum>;
    type Output = BothSides<f64>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        if let Some((x, y)) = &self.shifts {
            let (n, m) = (x.len(), y.len());
            let enough = images.end <= n && texts.end <= m;
            assert!(enough, "shifts of ({n}, {m}), scores of {images:?} and {texts:?}");
        }
        BothSides::new(images, texts, LogSum::NOTHING)
    }

    fn tile(&self, sums: &mut Self::State, tile: &Tile<'_>) {
        let mut block = ScoreSquare::default();
        for square in tile.squares() {
            let (rows, columns) = (square.images(), square.texts());
            let (x, y) = self.shifts_of(&rows, &columns);
            block.fill(self.beta, (x, y), &square);
            let z = |row: usize, column: usize| {
                self.beta * f64::from(square.row(row)[column]) + x[row] + y[column]
            };
            if single(sums.first[0], &sums.images) {
                (0..columns.len()).for_each(|c| block.column_sums[c] = LogSum::new(z(0, c), 1.0));
            }
            if single(sums.first[1], &sums.texts) {
                (0..rows.len()).for_each(|r| block.row_sums[r] = LogSum::new(z(r, 0), 1.0));
            }
            let (images, texts) = sums.of_tile(&square);
            images.iter_mut().zip(block.row_sums).for_each(|(all, part)| all.join(part));
            texts.iter_mut().zip(block.column_sums).for_each(|(all, part)| all.join(part));
        }
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        total.merge(lane, LogSum::join);
    }

    fn finish(&self, total: Self::State) -> Self::Output {
        if let Some((images, texts)) = &self.shifts {
            let (shifts, sums) =
                ((images.len(), texts.len()), (total.images.len(), total.texts.len()));
            assert_eq!(shifts, sums, "shifts of {shifts:?}, scores of {sums:?} images and texts");
        }
        let log = |sums: Vec<LogSum>| sums.into_iter().map(LogSum::log).collect();
        BothSides { first: total.first, images: log(total.images), texts: log(total.texts) }
    }
}

/// Whether there is only one image (or text): with more, the first lane would be longer.
fn single(first: usize, sums: &[LogSum]) -> bool {
    first == 0 && sums.len() == 1
}

/// Above this span (in the exponent) a common maximum would lose the smallest terms of a block.
const SPAN: f64 = 600.0;

/// A square of scores, and the sums of its rows and columns.
struct ScoreSquare {
    z: Box<[[f64; ALIGN]; ALIGN]>, // first the exponents, then their exponentials
    row_sums: [LogSum; ALIGN],
    column_sums: [LogSum; ALIGN],
}

impl Default for ScoreSquare {
    fn default() -> Self {
        let none = [LogSum::NOTHING; ALIGN];
        Self { z: Box::new([[0.0; ALIGN]; ALIGN]), row_sums: none, column_sums: none }
    }
}

impl ScoreSquare {
    fn fill(
        &mut self,
        beta: f64,
        (row_shifts, column_shifts): (&[f64], &[f64]),
        square: &Tile<'_>,
    ) {
        let (rows, columns) = (row_shifts.len(), column_shifts.len());
        widest(
            #[inline(always)]
            || {
                let mut highest = [f64::NEG_INFINITY; ALIGN];
                let mut lowest = [f64::INFINITY; ALIGN];
                for (row, z) in self.z[..rows].iter_mut().enumerate() {
                    let x = row_shifts[row];
                    let scores = square.row(row)[..columns].iter().zip(&column_shifts[..columns]);
                    for (c, (&s, &y)) in scores.enumerate() {
                        z[c] = beta * f64::from(s) + x + y;
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
            self.row_sums[row] = LogSum { shift, sum: eight_sums(z, |z| z) };
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
            self.row_sums[row] = LogSum::new(shift, eight_sums(z, |z| z));
        }
        let sums = highest.iter().zip(column_sums).map(|(&shift, sum)| LogSum::new(shift, sum));
        self.column_sums[..columns].iter_mut().zip(sums).for_each(|(all, sum)| *all = sum);
    }
}

/// eˣ for x ≤ 0, and e⁻⁷⁰⁰ below −700. The code has no branches, so the compiler can vectorise it.
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
mod tests;
