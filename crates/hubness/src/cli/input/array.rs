//! A matrix of real numbers in a `.npy`, `.npz` or `.safetensors` file, or in numbered `.npy` files, read row by row.

use half::{bf16, f16};
use itm_core::data::{Dtype, FileBytes, Npy, contents};
use itm_core::{Error, Result};

use super::npz;
use super::safetensors::{Element, Tensor};

/// A two-dimensional array of f16, bf16, f32, f64 or bytes, as the file holds it.
///
/// The shape is checked against the length of the file before a row can be read. A number in a header never decides an
/// allocation.
///
/// ```
/// use hubness::cli::input::Array;
///
/// let cut = b"\x93NUMPY\x01\x00".to_vec();
/// let error = Array::parse("x.npy", None, cut).unwrap_err().to_string();
/// assert_eq!(error, "x.npy: expected at least 10 bytes of header, got 8 bytes");
/// ```
#[derive(Debug)]
pub struct Array {
    place: String,
    stored: ArrayFile,
    element: Element,
    rows: usize,
    dim: usize,
}

#[derive(Debug)]
enum ArrayFile {
    Npy(Npy),
    Tensor(Tensor),
    /// Arrays one after the other, each with the number of its first row.
    Shards(Vec<(usize, Array)>),
}

impl Array {
    /// Recognises the format by the first bytes and checks the header. `part` names the tensor of a safetensors file
    /// or the array of an `.npz` archive; without `part` the file must hold exactly one.
    ///
    /// # Errors
    /// If the file has neither format or is cut short; for Fortran order, big-endian numbers, Python objects and integers of
    /// more than a byte;
    /// if the array does not have two dimensions, or has no rows or columns; if there is no such tensor, or several to
    /// choose from.
    pub fn parse(place: &str, part: Option<&str>, bytes: impl Into<FileBytes>) -> Result<Self> {
        let bytes = bytes.into();
        if is_npy(&bytes) {
            if let Some(part) = part {
                let got = format!("a .npy file, which has no part \"{part}\"");
                return Err(Error::invalid(place, "a .safetensors file", got));
            }
            return Self::npy(place, bytes);
        }
        if bytes.starts_with(b"PK\x03\x04") {
            let (name, array) = npz::array(place, part, &bytes)?;
            return Self::npy(&format!("{place}:{name}"), array);
        }
        // Eight bytes of length, then a JSON object.
        if bytes.get(8) != Some(&b'{') {
            return Err(Error::invalid(
                place,
                "a .npy, .npz or .safetensors file",
                contents(&bytes),
            ));
        }
        Self::of_tensor(place, Tensor::parse(place, part, bytes)?)
    }

    pub(crate) fn of_tensor(place: &str, tensor: Tensor) -> Result<Self> {
        let (place, element) = (format!("{place}:{}", tensor.name), tensor.element);
        Self::new(place, element, &tensor.shape.clone(), ArrayFile::Tensor(tensor))
    }

    fn npy(place: &str, bytes: FileBytes) -> Result<Self> {
        let npy = Npy::from_bytes(place, bytes)?;
        let element = match npy.dtype() {
            Dtype::F16 => Element::F16,
            Dtype::F32 => Element::F32,
            Dtype::F64 => Element::F64,
            Dtype::I8 => Element::I8,
            Dtype::U8 => Element::U8,
            other => {
                return Err(Error::invalid(
                    place,
                    "real numbers of f16, f32 or f64, or bytes",
                    other,
                ));
            }
        };
        let shape = npy.shape().to_vec();
        Self::new(place.into(), element, &shape, ArrayFile::Npy(npy))
    }

    fn new(place: String, element: Element, shape: &[usize], stored: ArrayFile) -> Result<Self> {
        let &[rows, dim] = shape else {
            let got = format!("{} (shape {shape:?})", shape.len());
            return Err(Error::invalid(place, "an array of 2 dimensions", got));
        };
        if rows == 0 || dim == 0 {
            let got = format!("{rows} × {dim}");
            return Err(Error::invalid(place, "at least one row and one column", got));
        }
        Ok(Self { place, stored, element, rows, dim })
    }

    /// The rows of several arrays, one after the other.
    ///
    /// # Errors
    /// If there is no array, or they differ in width or type.
    pub(crate) fn joined(place: &str, arrays: Vec<Self>) -> Result<Self> {
        let Some(first) = arrays.first() else {
            return Err(Error::invalid(place, "numbered .npy files", "none"));
        };
        let (element, dim) = (first.element, first.dim);
        if let Some(other) = arrays.iter().find(|a| a.dim != dim || a.element != element) {
            let expected = format!("{dim} columns of {element:?} as in {}", first.place);
            let got = format!("{} of {:?}", other.dim, other.element);
            return Err(Error::invalid(&other.place, expected, got));
        }
        let mut rows = 0;
        let numbered = arrays.into_iter().map(|array| {
            let first = rows;
            rows += array.rows;
            (first, array)
        });
        let stored = ArrayFile::Shards(numbered.collect());
        Ok(Self { place: place.into(), stored, element, rows, dim })
    }

    /// Whether the numbers are bytes, which usually had a scale.
    pub(crate) fn is_of_bytes(&self) -> bool {
        matches!(self.element, Element::I8 | Element::U8)
    }

    /// The file's name, followed by the tensor's name if there is one.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Width of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The stored bytes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_bytes(&self, row: usize) -> &[u8] {
        match &self.stored {
            ArrayFile::Npy(npy) => npy.row_bytes(row),
            ArrayFile::Tensor(tensor) => {
                let size = self.dim * self.element.size();
                &tensor.data()[row * size..][..size]
            }
            ArrayFile::Shards(shards) => {
                let (first, shard) =
                    &shards[shards.partition_point(|(first, _)| *first <= row) - 1];
                shard.row_bytes(row - first)
            }
        }
    }

    /// A row as it is stored, NaN and infinity included.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not as long as a row.
    pub fn row_into(&self, row: usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.dim, "out for a row of {}", self.dim);
        let bytes = self.row_bytes(row);
        let each = |out: &mut [f64], one: fn(&[u8]) -> f64| {
            let numbers = bytes.chunks_exact(self.element.size());
            out.iter_mut().zip(numbers).for_each(|(v, b)| *v = one(b));
        };
        match self.element {
            Element::F16 => each(out, |b| f16::from_le_bytes(array(b)).to_f64()),
            Element::Bf16 => each(out, |b| bf16::from_le_bytes(array(b)).to_f64()),
            Element::F32 => each(out, |b| f64::from(f32::from_le_bytes(array(b)))),
            Element::F64 => each(out, |b| f64::from_le_bytes(array(b))),
            Element::I8 => each(out, |b| f64::from(i8::from_le_bytes(array(b)))),
            Element::U8 => each(out, |b| f64::from(b[0])),
        }
    }
}

/// Whether the bytes begin as a `.npy` file does.
pub(crate) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x93NUMPY")
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes); // N bytes, from chunks_exact(N)
    array
}
