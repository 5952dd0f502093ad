//! Slices as whole registers; the last register is padded.
//!
//! A loop over both parts has one body with plain loads and stores. A branch or a choice of pointers at each step
//! would keep the compiler from using vectors.

use std::hint::black_box;
use std::slice;

use crate::math::LANES;

/// A slice as arrays of `N` values.
pub(crate) struct Lanes<'a, const N: usize> {
    whole: &'a [[f32; N]],
    /// The remaining values, then the padding.
    last: [f32; N],
    has_last: bool,
}

impl<'a, const N: usize> Lanes<'a, N> {
    #[inline(always)]
    pub(crate) fn new(from: &'a [f32], fill: f32) -> Self {
        let (whole, rest) = from.as_chunks();
        Self { whole, last: filled(rest, fill), has_last: !rest.is_empty() }
    }

    /// The whole arrays, then the last.
    #[inline(always)]
    pub(crate) fn parts(&self) -> [&[[f32; N]]; 2] {
        [self.whole, if self.has_last { slice::from_ref(&self.last) } else { &[] }]
    }
}

/// [`Lanes`] that can be changed. [`LanesMut::finish`] writes the remaining values back.
pub(crate) struct LanesMut<'a, const N: usize> {
    whole: &'a mut [[f32; N]],
    rest: &'a mut [f32],
    last: [f32; N],
}

impl<'a, const N: usize> LanesMut<'a, N> {
    #[inline(always)]
    pub(crate) fn new(from: &'a mut [f32], fill: f32) -> Self {
        let (whole, rest) = from.as_chunks_mut();
        let last = filled(rest, fill);
        Self { whole, rest, last }
    }

    /// The whole arrays, then the last.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> [&mut [[f32; N]]; 2] {
        let has_last = !self.rest.is_empty();
        [self.whole, if has_last { slice::from_mut(&mut self.last) } else { &mut [] }]
    }

    #[inline(always)]
    pub(crate) fn finish(self) {
        if !self.rest.is_empty() {
            self.rest.copy_from_slice(&self.last[..self.rest.len()]);
        }
    }
}

/// Changes every value by `change(its place, the value)`.
#[inline(always)]
pub(crate) fn each(values: &mut [f32], change: impl Fn(u32, f32) -> f32) {
    let (mut values, mut at) = (LanesMut::<LANES>::new(values, 0.0), 0);
    for part in values.parts() {
        for values in part {
            step();
            let mut changed = *values;
            for (k, x) in (at..).zip(&mut changed) {
                *x = change(k, *x);
            }
            *values = changed;
            at += LANES as u32;
        }
    }
    values.finish();
}

/// Changes every value by `change(its place, the value, the value of others there)`.
#[inline(always)]
pub(crate) fn each_with(values: &mut [f32], others: &[f32], change: impl Fn(u32, f32, f32) -> f32) {
    let (mut values, others) =
        (LanesMut::<LANES>::new(values, 0.0), Lanes::<LANES>::new(others, 0.0));
    let mut at = 0;
    for (part, others) in values.parts().into_iter().zip(others.parts()) {
        for (values, others) in part.iter_mut().zip(others) {
            step();
            let (mut changed, others) = (*values, *others);
            for (k, (x, other)) in (at..).zip(changed.iter_mut().zip(others)) {
                *x = change(k, *x, other);
            }
            *values = changed;
            at += LANES as u32;
        }
    }
    values.finish();
}

#[inline(always)]
fn filled<const N: usize>(rest: &[f32], fill: f32) -> [f32; N] {
    let mut last = [fill; N];
    if !rest.is_empty() {
        last[..rest.len()].copy_from_slice(rest);
    }
    last
}

/// A loop calls this once per step, so that the compiler makes vectors of the values of one step. Otherwise it may
/// make vectors of the k-th values of many steps, which it must gather.
#[inline(always)]
pub(crate) fn step() {
    black_box(0u8);
}

/// The sum in a fixed order: halves are added to halves. `N` must be a power of two.
#[inline(always)]
pub(crate) fn sum<const N: usize>(mut values: [f32; N]) -> f32 {
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            values[k] += values[k + half];
        }
        half /= 2;
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every length, reading gives the slice and then the padding, and writing changes only the slice.
    #[test]
    fn a_slice_is_read_and_written_whole() {
        for n in 0..50usize {
            let from: Vec<f32> = (0..n).map(|k| k as f32).collect();
            let mut to = from.clone();
            let lanes = Lanes::<16>::new(&from, -1.0);
            let mut changed = LanesMut::<16>::new(&mut to, -1.0);
            let mut read = Vec::new();
            for (part, changed) in lanes.parts().into_iter().zip(changed.parts()) {
                assert_eq!(part, changed);
                for (values, changed) in part.iter().zip(changed) {
                    read.extend(*values);
                    *changed = values.map(|v| v + 0.5);
                }
            }
            changed.finish();
            assert_eq!(read.len(), n.next_multiple_of(16));
            assert_eq!(read[..n], from);
            assert!(read[n..].iter().all(|&v| v == -1.0));
            assert!(to.iter().zip(&from).all(|(t, f)| *t == f + 0.5));
        }
    }

    #[test]
    fn a_sum_has_every_value_once() {
        let values: [f32; 32] = std::array::from_fn(|k| (1u32 << (k % 24)) as f32);
        assert_eq!(sum(values), ((1u32 << 24) - 1 + (1 << 8) - 1) as f32);
    }
}
