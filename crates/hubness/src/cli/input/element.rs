//! The types of stored numbers.

use half::{bf16, f16};
use itm_core::data::Npy;
use itm_core::{Error, Result};

/// The type of a stored number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    U8,
}

impl Element {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
            Self::I8 | Self::U8 => 1,
        }
    }

    pub(crate) fn is_byte(self) -> bool {
        matches!(self, Self::I8 | Self::U8)
    }

    /// The numbers of some bytes, as they are stored.
    ///
    /// # Panics
    /// If `out` is longer than the numbers.
    pub(crate) fn read(self, bytes: &[u8], out: &mut [f64]) {
        match self {
            Self::F16 => each(bytes, out, |b| f16::from_le_bytes(b).to_f64()),
            Self::Bf16 => each(bytes, out, |b| bf16::from_le_bytes(b).to_f64()),
            Self::F32 => each(bytes, out, |b| f64::from(f32::from_le_bytes(b))),
            Self::F64 => each(bytes, out, f64::from_le_bytes),
            Self::I8 => each(bytes, out, |b| f64::from(i8::from_le_bytes(b))),
            Self::U8 => each(bytes, out, |b| f64::from(u8::from_le_bytes(b))),
        }
    }

    /// The type that safetensors and PyTorch call by this name.
    ///
    /// # Errors
    /// If the numbers are neither real nor bytes.
    pub(crate) fn named(place: &str, tensor: &str, name: &str) -> Result<Self> {
        let expected = "a dtype among F16, BF16, F32, F64, I8, U8";
        Self::find(name).ok_or_else(|| Error::invalid(format!("{place}:{tensor}"), expected, name))
    }

    /// The type of a `.npy` array, if it holds real numbers or bytes.
    pub(crate) fn of(npy: &Npy) -> Result<Self> {
        let (expected, name) =
            ("real numbers of f16, f32 or f64, or bytes", npy.dtype().to_string());
        Self::find(&name).ok_or_else(|| Error::invalid(npy.place(), expected, name))
    }

    /// The type of this name, in letters of any case.
    fn find(name: &str) -> Option<Self> {
        let all = [Self::F16, Self::Bf16, Self::F32, Self::F64, Self::I8, Self::U8];
        all.into_iter().find(|of| format!("{of:?}").eq_ignore_ascii_case(name))
    }
}

fn each<const N: usize>(bytes: &[u8], out: &mut [f64], one: impl Fn([u8; N]) -> f64) {
    let (numbers, _) = bytes.as_chunks();
    out.iter_mut().zip(numbers).for_each(|(v, b)| *v = one(*b));
}
