//! Dropout of the inputs of an encoder.

use itm_kernels::Noise;
use itm_kernels::dropout::Mask;

/// Which inputs of an encoder are set to 0. The other inputs are divided by `1 − share`.
///
/// A mask is a function of the noise and of the position among the inputs of the batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InputDropout {
    /// Dropout probability, in `[0, 1)`.
    pub share: f64,
    /// Noise of the mask; `Noise::Off` in evaluation. Layers inside the encoder take parts of it.
    pub noise: Noise,
}

impl InputDropout {
    /// Evaluation: no dropout of the inputs or inside the encoder.
    pub const OFF: Self = Self { share: 0.0, noise: Noise::Off };

    pub(super) fn apply(self, inputs: &mut [f32]) {
        match self.noise {
            Noise::Seeded(seed) if self.share != 0.0 => Mask::new(self.share, seed).apply(inputs),
            Noise::Seeded(_) | Noise::Off => {}
        }
    }
}
