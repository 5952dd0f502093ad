//! Named arrays of numbers in one file, in the safetensors format.

use std::collections::HashMap;
use std::ops::Deref;

use bytemuck::Pod;
use safetensors::tensor::{Dtype, Metadata, SafeTensorError, SafeTensors, TensorView};

/// The named arrays of a file whose header was checked.
///
/// ```
/// use itm_data::arrays::{NamedArrays, array, to_bytes};
///
/// let bytes = to_bytes([("rows", array(&[2, 1], &[0.5f32, 2.0]))], &[("format", "example 1")]);
/// let file = NamedArrays::new(&bytes[..])?;
/// assert_eq!(file.about("format"), Some("example 1"));
/// assert_eq!(file.values::<f32>("rows", |shape| shape == [2, 1]).unwrap(), [0.5, 2.0]);
/// assert_eq!(file.values::<f64>("rows", |_| true).unwrap_err(), "F32 [2, 1]");
/// # Ok::<(), safetensors::SafeTensorError>(())
/// ```
#[derive(Debug)]
pub struct NamedArrays<B> {
    bytes: B,
    /// Where the values start.
    start: usize,
    metadata: Metadata,
}

impl<B: Deref<Target = [u8]>> NamedArrays<B> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the bytes are cut short or malformed.
    pub fn new(bytes: B) -> Result<Self, SafeTensorError> {
        let (header, metadata) = SafeTensors::read_metadata(&bytes)?;
        let start = header + size_of::<u64>(); // `read_metadata` checked that the values fill the rest of the file
        Ok(Self { bytes, start, metadata })
    }

    /// What the file says about itself under a key.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.metadata.metadata().as_ref()?.get(key).map(String::as_str)
    }

    /// The names of the arrays, as the values follow each other.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// The shape of an array, if there is one of this name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.metadata.info(name).map(|info| &info.shape[..])
    }

    /// The values of an array.
    ///
    /// # Errors
    /// If there is no array of this name, or it has another type, or its shape does not fit: what is there.
    pub fn values<T: ArrayValue>(
        &self,
        name: &str,
        fits: impl FnOnce(&[usize]) -> bool,
    ) -> Result<Vec<T>, String> {
        let info = self.metadata.info(name).ok_or("nothing")?;
        if info.dtype != T::DTYPE || !fits(&info.shape) {
            return Err(format!("{:?} {:?}", info.dtype, info.shape));
        }
        let (from, to) = info.data_offsets;
        let values = self.bytes[self.start..][from..to].chunks_exact(size_of::<T>());
        Ok(values.map(bytemuck::pod_read_unaligned).collect())
    }
}

/// The bytes of a file with these arrays. `about` is what it says about itself, by key.
///
/// # Panics
/// If two arrays have one name.
pub fn to_bytes<'a>(
    arrays: impl IntoIterator<Item = (&'a str, TensorView<'a>)>,
    about: &[(&str, &str)],
) -> Vec<u8> {
    let about = about.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let about = Some(about.collect::<HashMap<_, _>>()).filter(|about| !about.is_empty());
    safetensors::serialize(arrays, about).expect("every array has a name of its own")
}

/// An array for [`to_bytes`].
///
/// # Panics
/// If the shape does not have as many values.
pub fn array<'a, T: ArrayValue>(shape: &[usize], values: &'a [T]) -> TensorView<'a> {
    let view = TensorView::new(T::DTYPE, shape.to_vec(), bytemuck::cast_slice(values));
    view.expect("as many values as the shape has")
}

/// Numbers of an array.
pub trait ArrayValue: Pod {
    /// The format's name of their type.
    const DTYPE: Dtype;
}

macro_rules! numbers {
    ($($number:ty = $dtype:ident),*) => {
        $(impl ArrayValue for $number {
            const DTYPE: Dtype = Dtype::$dtype;
        })*
    };
}

numbers!(f32 = F32, f64 = F64, i64 = I64, u32 = U32, u64 = U64);

// The format is little-endian, and the values are written as they are in memory.
const _: () = assert!(cfg!(target_endian = "little"));
