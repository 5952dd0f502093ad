//! Whether a file of rows holds each image several times in a row.

use std::fmt;

/// Rows whose difference is at most this part of their length are one image that was encoded several times: half precision,
/// other batches and other cores differ by less, two photographs by far more.
const ROUNDING: f64 = 1e-3;

/// How often each image is stored: rows are equal, in groups whose sizes have a common divisor above 1. A file with all rows
/// equal is collapsed, not repeated.
///
/// ```
/// use itm_data::data::Repeats;
///
/// let rows: [f64; 4] = [1.0, 1.0001, 3.0, 3.0];
/// let same = |a: usize, b: usize| rows[a] == rows[b];
/// let found = Repeats::of(4, 1, same, |row, out| out[0] = rows[row]).unwrap();
/// assert_eq!((found.every, found.exact), (2, false));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    /// Rows of each image, in succession.
    pub every: usize,
    /// Whether they are equal in every bit; otherwise up to rounding.
    pub exact: bool,
}

impl Repeats {
    /// The repeats among `rows` rows of `dim` numbers; `same` compares two rows in every bit, `fill` writes a row.
    pub fn of(
        rows: usize,
        dim: usize,
        same: impl FnMut(usize, usize) -> bool,
        mut fill: impl FnMut(usize, &mut [f64]),
    ) -> Option<Self> {
        if let Some(every) = groups(rows, same) {
            return Some(Self { every, exact: true });
        }
        let (mut one, mut other) = (vec![0.0; dim], vec![0.0; dim]);
        let near = |row: usize, first: usize| {
            fill(row, &mut one);
            fill(first, &mut other);
            let apart: f64 = one.iter().zip(&other).map(|(a, b)| (a - b).powi(2)).sum();
            let length: f64 = other.iter().map(|x| x * x).sum();
            apart <= ROUNDING * ROUNDING * length // false for NaN
        };
        groups(rows, near).map(|every| Self { every, exact: false })
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.exact {
            true => "rows equal in every bit",
            false => "rows equal up to rounding, at most 0.001 of their length",
        })
    }
}

/// The common divisor above 1 of the sizes of groups of equal rows. `same` compares a row with the first of its group.
fn groups(rows: usize, mut same: impl FnMut(usize, usize) -> bool) -> Option<usize> {
    let (mut common, mut size) = (0, 1);
    for row in 1..rows {
        if same(row, row - size) {
            size += 1;
        } else {
            common = gcd(common, size);
            size = 1;
            if common == 1 {
                return None;
            }
        }
    }
    common = gcd(common, size);
    (common > 1 && common < rows).then_some(common)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
