//! Random numbers that are a function of (seed, position): no state, any order, any thread.

/// The number in `[0, 1)` at a position of the stream of `seed`: SplitMix64, 24 bits.
#[inline(always)]
pub fn unit(seed: u64, position: u64) -> f32 {
    // Seeds go through the mixer too, because the streams of 1 and 2 must not be shifted copies of each other.
    let bits = mix(mix(seed).wrapping_add(position.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    (bits >> 40) as f32 * (1.0 / (1 << 24) as f32)
}

/// Dropout's multiplier at a position: 0 with probability `rate`, else `1 / (1 − rate)`.
#[inline(always)]
pub(crate) fn keep(seed: u64, position: u64, rate: f32) -> f32 {
    if unit(seed, position) < rate { 0.0 } else { 1.0 / (1.0 - rate) }
}

/// A seed for a part of something with a seed, such as a layer or a step.
#[inline]
pub fn derive(seed: u64, part: u64) -> u64 {
    mix(mix(seed) ^ mix(part.wrapping_add(0x6A09_E667_F3BC_C909)))
}

/// The source of randomness for the dropout of a layer.
///
/// A mask depends only on the seed, the layer and the position. So a forward pass that runs again for the gradient,
/// or on another number of threads, drops the same values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// No value is dropped: evaluation.
    Off,
    /// A seed of a training step, or of a part of the step.
    Seeded(u64),
}

impl Noise {
    /// The noise of a part, such as a layer of a model or a function of a layer.
    pub fn part(self, part: u64) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Seeded(seed) => Self::Seeded(derive(seed, part)),
        }
    }
}

/// The output of SplitMix64 after one step from the state `z`.
#[inline(always)]
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 with state 1234567, as its author publishes them.
    #[test]
    fn golden_splitmix64() {
        let step = 0x9E37_79B9_7F4A_7C15u64;
        let got = [0, 1, 2].map(|k: u64| mix(1_234_567u64.wrapping_add(k.wrapping_mul(step))));
        assert_eq!(
            got,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    /// χ² over 64 bins, 63 degrees of freedom: one stream in a hundred thousand exceeds 120. Neighbours are uncorrelated.
    #[test]
    fn streams_are_uniform_and_unrelated() {
        let n = 1 << 16;
        for seed in 0..8 {
            let mut bins = [0u32; 64];
            let mut correlation = [0.0f64; 3];
            for k in 0..n {
                let u = unit(seed, k);
                assert!((0.0..1.0).contains(&u));
                bins[(u * 64.0) as usize] += 1;
                let centred = f64::from(u) - 0.5;
                correlation[0] += centred * (f64::from(unit(seed, k + 1)) - 0.5);
                correlation[1] += centred * (f64::from(unit(seed + 1, k)) - 0.5);
                let next = f64::from(unit(seed, k + 1)) - 0.5;
                correlation[2] += next * (f64::from(unit(seed + 1, k)) - 0.5);
            }
            let expected = n as f64 / 64.0;
            let chi2: f64 =
                bins.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
            assert!(chi2 < 120.0, "seed {seed}: χ² {chi2}");
            // Var(u) = 1/12: four standard errors.
            let bound = 4.0 * (n as f64).sqrt() / 12.0;
            assert!(correlation.iter().all(|c| c.abs() < bound), "seed {seed}: {correlation:?}");
        }
        assert_ne!(derive(1, 2), derive(2, 1));
    }
}
