//! Dropout whose mask is a function of (seed, position). The mask is recomputed, not stored.
//!
//! ```text
//! y = x / (1 − rate) where bits(seed, position) ≥ rate · 2³², else 0
//! ```
//!
//! SplitMix64 makes a key of 64 bits from the seed for each block of 1,024 positions. Within a block, the bits come
//! from three rounds of multiplication and shift in 32 bits, for which every instruction set has vector instructions.

use crate::blocks;
use crate::dispatch::multiversion;
use crate::lanes::{each, each_with};
use crate::random;

/// A mask: the positions that stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mask {
    seed: u64,
    /// A position with bits below this is dropped.
    threshold: u32,
    scale: f32,
}

impl Mask {
    /// # Panics
    /// If the rate is not in `[0, 1)`.
    pub fn new(rate: f64, seed: u64) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout {rate}, not in 0 to 1");
        let threshold = (rate * 4_294_967_296.0).round() as u32; // saturates
        Self { seed, threshold, scale: (1.0 / (1.0 - rate)) as f32 }
    }

    /// The factor of each of the first `n` positions: 0 or 1 / (1 − rate).
    pub fn factors(&self, n: usize) -> Vec<f32> {
        self.applied(&vec![1.0; n])
    }

    /// `x` times the factors.
    pub fn applied(&self, x: &[f32]) -> Vec<f32> {
        blocks::changed(x, |k, block| drop_some(block, self, self.key(k)))
    }

    /// [`Mask::applied`] in place. The backward pass applies the same function to the gradient.
    pub fn apply(&self, x: &mut [f32]) {
        blocks::change(x, |k, block| drop_some(block, self, self.key(k)));
    }

    /// `x` times the factors, plus `r`, in place.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn apply_and_add(&self, x: &mut [f32], r: &[f32]) {
        assert_eq!(x.len(), r.len(), "values of the two summands");
        blocks::change(x, |k, block| {
            let r = &r[k * blocks::BLOCK..][..block.len()];
            drop_some_and_add(block, r, self, self.key(k));
        });
    }

    fn key(&self, block: usize) -> u64 {
        random::derive(self.seed, block as u64)
    }
}

/// Random bits of a position within the block with this key.
#[inline(always)]
fn bits(key: u64, position: u32) -> u32 {
    let mut x = position.wrapping_add(key as u32);
    x = (x ^ (x >> 17)).wrapping_mul(0xED5A_D4BB);
    x ^= (key >> 32) as u32;
    x = (x ^ (x >> 11)).wrapping_mul(0xAC4C_1B51);
    x = (x ^ (x >> 15)).wrapping_mul(0x3184_8BAB);
    x ^ (x >> 14)
}

/// The factor of a position.
#[inline(always)]
fn factor(mask: &Mask, key: u64, position: u32) -> f32 {
    if bits(key, position) >= mask.threshold { mask.scale } else { 0.0 }
}

multiversion! {
    fn drop_some[_FMA](values: &mut [f32], mask: &Mask, key: u64) {
        each(values, |k, x| x * factor(mask, key, k));
    }
}

multiversion! {
    fn drop_some_and_add[_FMA](values: &mut [f32], r: &[f32], mask: &Mask, key: u64) {
        // Never fused: the two roundings of dropout, then sum.
        each_with(values, r, |k, x, r| x * factor(mask, key, k) + r);
    }
}

#[cfg(test)]
mod tests;
