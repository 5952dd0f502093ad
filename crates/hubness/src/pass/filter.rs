//! Corrected scores compared with thresholds: f32 decides the clear cases, f64 the rest.
//!
//! A correction is compared in f64: two items of a query may differ in the twelfth digit, where an f32 would call them tied. But
//! almost no item is that near to a threshold. So an affine correction is first computed in f32, whose rounding is bounded.
//! Only scores within that bound of the threshold are computed again with [`Rescore::rescore`].
//!
//! ```text
//! ũ = fl(scale · s − item − query),  t̃ = fl(t)
//! |(ũ − t̃) − (u − t)| ≤ 2⁻²¹ (|scale| · max|s| + max|item| + max|query| + |t|) = e
//! ũ − t̃ > e: above      ũ − t̃ < −e: below      else: ask f64
//! ```

use crate::{Affine, Direction, Rescore};

/// Number of scores that are compared together.
pub(super) const STRETCH: usize = 32;

/// Eight half units in the last place of an f32; the terms' own roundings need fewer than five.
const ROUNDING: f32 = 1.0 / (1 << 21) as f32;

/// A correction, prepared for tiles.
#[derive(Debug)]
pub(super) struct TileFilter<'a> {
    pub(super) direction: Direction,
    map: &'a dyn Rescore,
    fast: Option<Fast<'a>>,
}

/// An affine correction in f32.
#[derive(Debug)]
struct Fast<'a> {
    scale: f32,
    items: Vec<Vec<f32>>,
    queries: Vec<f32>,
    groups: &'a [u8],
    largest: f32, // max |item| + max |query|
}

impl<'a> TileFilter<'a> {
    pub(super) fn new(direction: Direction, map: &'a dyn Rescore) -> Self {
        let normal = |affine: &&Affine| affine.scale >= f64::from(f32::MIN_POSITIVE);
        Self { direction, map, fast: map.affine().filter(normal).map(Fast::new) }
    }

    /// The exact corrected score.
    pub(super) fn exact(&self, image: usize, text: usize, score: f32) -> f64 {
        let (query, item) = self.direction.sides(image, text);
        self.map.rescore(query, item, score)
    }

    /// The sum in the error bound without `|t|`, for a tile with these scores.
    #[inline(always)]
    pub(super) fn slack(&self, largest_score: f32) -> f32 {
        match &self.fast {
            Some(fast) => fast.scale.abs() * largest_score + fast.largest,
            None => f32::INFINITY,
        }
    }

    /// Corrected scores of a stretch in f32. Without an affine form all are 0, and [`TileFilter::slack`] is
    /// infinite, so that no score is clear.
    #[inline(always)]
    pub(super) fn stretch(&self, image: usize, text0: usize, row: &[f32]) -> [f32; STRETCH] {
        let Some(fast) = &self.fast else { return [0.0; STRETCH] };
        let texts = text0..text0 + row.len();
        match self.direction {
            Direction::I2t => {
                let items = &fast.items_for(image)[texts];
                let own = fast.queries.get(image).copied().unwrap_or(0.0);
                filled(row, |i| items[i] + own, fast.scale)
            }
            Direction::T2i if !fast.groups.is_empty() => {
                let groups = &fast.groups[texts];
                let own = |i: usize| fast.queries.get(text0 + i).copied().unwrap_or(0.0);
                let item = |i: usize| fast.items[usize::from(groups[i])][image];
                filled(row, |i| item(i) + own(i), fast.scale)
            }
            Direction::T2i if !fast.queries.is_empty() => {
                let (item, own) = (fast.items[0][image], &fast.queries[texts]);
                filled(row, |i| item + own[i], fast.scale)
            }
            Direction::T2i => {
                let item = fast.items[0][image];
                filled(row, |_| item, fast.scale)
            }
        }
    }
}

impl<'a> Fast<'a> {
    fn new(affine: &'a Affine) -> Self {
        let single = |values: &[f64]| values.iter().map(|&v| v as f32).collect::<Vec<_>>();
        let largest = |values: &[f32]| values.iter().fold(0.0, |most: f32, v| most.max(v.abs()));
        let whole = |items: &Vec<f64>| match affine.fine.len() {
            0 => single(items),
            _ => single(&items.iter().zip(&affine.fine).map(|(a, b)| a + b).collect::<Vec<_>>()),
        };
        let items: Vec<_> = affine.items.iter().map(whole).collect();
        let queries = single(&affine.queries);
        let most = items.iter().map(|items| largest(items)).fold(0.0, f32::max);
        Self {
            scale: affine.scale as f32,
            largest: most + largest(&queries),
            items,
            queries,
            groups: &affine.groups,
        }
    }

    #[inline(always)]
    fn items_for(&self, query: usize) -> &[f32] {
        &self.items[usize::from(self.groups.get(query).copied().unwrap_or(0))]
    }
}

#[inline(always)]
fn filled(row: &[f32], bias: impl Fn(usize) -> f32, scale: f32) -> [f32; STRETCH] {
    let mut out = [0.0; STRETCH];
    let n = row.len().min(STRETCH);
    if n == STRETCH {
        for i in 0..STRETCH {
            out[i] = scale * row[i] - bias(i); // a known length: vector code
        }
    } else {
        for i in 0..n {
            out[i] = scale * row[i] - bias(i);
        }
    }
    out
}

/// Two edges: scores above the first are surely above the threshold, scores below the second are surely below it.
#[inline(always)]
pub(super) fn edges(threshold: f32, slack: f32) -> (f32, f32) {
    let threshold = threshold.min(f32::MAX); // +∞, of no list or no true item, is above every score
    // Below the smallest normal number rounding is absolute.
    let e = ROUNDING * (slack + threshold.abs()) + f32::MIN_POSITIVE;
    (threshold + e, threshold - e) // two infinities give NaN, which is on no side
}

/// Bit `i` is set where the `i`-th score is above its edge.
#[inline(always)]
pub(super) fn above(scores: &[f32; STRETCH], edge: impl Fn(usize) -> f32, length: usize) -> u32 {
    bits(length, |i| scores[i] > edge(i))
}

/// Bit `i` is set where the `i`-th score is below its edge.
#[inline(always)]
pub(super) fn below(scores: &[f32; STRETCH], edge: impl Fn(usize) -> f32, length: usize) -> u32 {
    bits(length, |i| scores[i] < edge(i))
}

#[inline(always)]
fn bits(length: usize, is: impl Fn(usize) -> bool) -> u32 {
    if length == STRETCH {
        (0..STRETCH).fold(0, |mask, i| mask | u32::from(is(i)) << i) // a known length: vector code
    } else {
        (0..length).fold(0, |mask, i| mask | u32::from(is(i)) << i)
    }
}

/// The first `length` bits.
#[inline(always)]
pub(super) fn all(length: usize) -> u32 {
    u32::MAX >> (STRETCH - length)
}

/// The largest magnitude of the finite scores of a row.
#[inline(always)]
pub(super) fn largest(row: &[f32]) -> f32 {
    let magnitude = |s: f32| if s.abs() < f32::INFINITY { s.abs() } else { 0.0 };
    row.iter().fold(0.0, |most, &s| if magnitude(s) > most { magnitude(s) } else { most })
}
