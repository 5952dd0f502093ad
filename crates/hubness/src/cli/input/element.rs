//! The types of stored numbers.

use half::{bf16, f16};
use itm_core::data::{Dtype, Npy};
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
        let each = |out: &mut [f64], one: fn(&[u8]) -> f64| {
            let numbers = bytes.chunks_exact(self.size());
            out.iter_mut().zip(numbers).for_each(|(v, b)| *v = one(b));
        };
        match self {
            Self::F16 => each(out, |b| f16::from_le_bytes(array(b)).to_f64()),
            Self::Bf16 => each(out, |b| bf16::from_le_bytes(array(b)).to_f64()),
            Self::F32 => each(out, |b| f64::from(f32::from_le_bytes(array(b)))),
            Self::F64 => each(out, |b| f64::from_le_bytes(array(b))),
            Self::I8 => each(out, |b| f64::from(i8::from_le_bytes(array(b)))),
            Self::U8 => each(out, |b| f64::from(b[0])),
        }
    }

    /// The type of a `.npy` array, if it holds real numbers or bytes.
    pub(crate) fn of(npy: &Npy) -> Result<Self> {
        Ok(match npy.dtype() {
            Dtype::F16 => Self::F16,
            Dtype::F32 => Self::F32,
            Dtype::F64 => Self::F64,
            Dtype::I8 => Self::I8,
            Dtype::U8 => Self::U8,
            other => {
                let expected = "real numbers of f16, f32 or f64, or bytes";
                return Err(Error::invalid(npy.place(), expected, other));
            }
        })
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes); // N bytes, from chunks_exact(N)
    array
}
