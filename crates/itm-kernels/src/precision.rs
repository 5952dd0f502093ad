//! The precision of products.

#[cfg(feature = "burn")]
use burn::tensor::Device;
#[cfg(feature = "burn")]
use serde::{Deserialize, Serialize};

use crate::bf16;

/// How linear maps and attention round the operands of their products. Weights, sums, bias and all other functions are
/// always f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "burn", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
pub enum Precision {
    /// No rounding.
    #[default]
    F32,
    /// To bf16, with sums in f32: [`crate::bf16`]. This needs the CPU backend. A processor without AVX512-BF16
    /// computes in f32.
    Bf16,
}

impl Precision {
    /// The precision that this processor uses: f32 if it has no instructions for bf16 products.
    pub fn here(self) -> Self {
        if self == Self::Bf16 && !bf16::supported() { Self::F32 } else { self }
    }

    /// Whether products of this precision run on a device: bf16 needs the CPU backend.
    #[cfg(feature = "burn")]
    pub fn runs_on(self, device: &Device) -> bool {
        #[cfg(feature = "flex")]
        let cpu = device.clone().without_autodiff() == Device::flex();
        #[cfg(not(feature = "flex"))]
        let (cpu, _) = (false, device);
        self == Self::F32 || cpu
    }

    /// Whether this is f32, which a config file may leave out.
    pub fn is_f32(&self) -> bool {
        *self == Self::F32
    }

    /// # Panics
    /// If the precision is not f32.
    #[cfg(feature = "burn")]
    pub(crate) fn only_f32(self) {
        assert!(self == Self::F32, "precision bf16: expected the CPU backend, got another");
    }
}
