//! Dropout of the inputs of an encoder.

use itm_kernels::dropout::Mask;
use itm_kernels::{Noise, random};

/// Which inputs of an encoder are set to 0. The other inputs are divided by `1 − share`.
///
/// A mask is a function of the seed and of the position among the inputs of the batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InputDropout {
    /// Evaluation: no dropout of the inputs or inside the encoder.
    Off,
    /// Training.
    On {
        /// Dropout probability, in `[0, 1)`.
        share: f64,
        /// Seed of the mask. Layers inside the encoder derive their own seeds from it.
        seed: u64,
    },
}

impl InputDropout {
    pub(super) fn apply(self, inputs: &mut [f32]) {
        match self {
            Self::On { share, seed } if share != 0.0 => Mask::new(share, seed).apply(inputs),
            Self::On { .. } | Self::Off => {}
        }
    }

    /// Dropout of the inputs of a part inside the encoder.
    pub(super) fn inside(self, part: u64, share: f64) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::On { seed, .. } => Self::On { share, seed: random::derive(seed, part) },
        }
    }

    /// Noise of a layer inside the encoder.
    pub(super) fn noise(self, part: u64) -> Noise {
        match self {
            Self::Off => Noise::Off,
            Self::On { seed, .. } => Noise::Seeded(random::derive(seed, part)),
        }
    }
}
