//! A matrix of real numbers in a `.npy`, `.npz` or `.safetensors` file, or in numbered `.npy` files, read row by row.

use itm_core::data::{FileBytes, Npy, contents};
use itm_core::{Error, Result};

use super::element::Element;
use super::scale::{Scale, ScaleArray};
use super::{npz, safetensors};

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
    pub(super) element: Element,
    rows: usize,
    dim: usize,
    /// What the stored numbers are multiplied by.
    pub(super) scale: Option<Scale>,
}

/// Where the numbers are. The shape was checked against the length.
#[derive(Debug)]
pub(super) enum ArrayFile {
    Npy(Npy),
    /// Bytes, and the place of the first number.
    Bytes(FileBytes, usize),
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
            let name = part.unwrap_or_default();
            let got = format_args!("a .npy file, which has no part \"{name}\"");
            Error::unless(part.is_none(), place, "a .safetensors file", got)?;
            return Self::npy(place, bytes);
        }
        if bytes.starts_with(b"PK\x03\x04") {
            let (name, array, names) = npz::array(place, part, &bytes)?;
            let numbers = |name: &str| {
                let (name, array, _) = npz::array(place, Some(name), &bytes)?;
                ScaleArray::of_npy(&Npy::from_bytes(format!("{place}:{name}"), array)?)
            };
            let array = Self::npy(&format!("{place}:{name}"), array)?;
            return array.scaled(&name, |name| names.iter().any(|n| n == name), numbers);
        }
        // Eight bytes of length, then a JSON object.
        if bytes.get(8) != Some(&b'{') {
            let expected = "a .npy, .npz or .safetensors file";
            return Err(Error::invalid(place, expected, contents(&bytes)));
        }
        let (name, element, shape, first, scale) = safetensors::tensor(place, part, &bytes)?;
        let stored = ArrayFile::Bytes(bytes, first);
        Ok(Self { scale, ..Self::new(format!("{place}:{name}"), element, &shape, stored)? })
    }

    /// The array `name` with the scale of its bytes, if `has` says that there is one.
    ///
    /// # Errors
    /// As [`Scale::of`].
    pub(crate) fn scaled(
        self,
        name: &str,
        has: impl Fn(&str) -> bool,
        numbers: impl FnMut(&str) -> Result<ScaleArray>,
    ) -> Result<Self> {
        let of = (name, self.element, &[self.rows, self.dim][..]);
        Ok(Self { scale: Scale::of(of, has, numbers)?, ..self })
    }

    fn npy(place: &str, bytes: FileBytes) -> Result<Self> {
        let npy = Npy::from_bytes(place, bytes)?;
        let (element, shape) = (Element::of(&npy)?, npy.shape().to_vec());
        Self::new(place.into(), element, &shape, ArrayFile::Npy(npy))
    }

    /// # Errors
    /// If the array does not have two dimensions, or has no rows or columns.
    pub(super) fn new(
        place: String,
        element: Element,
        shape: &[usize],
        stored: ArrayFile,
    ) -> Result<Self> {
        let &[rows, dim] = shape else {
            let got = format!("{} (shape {shape:?})", shape.len());
            return Err(Error::invalid(place, "an array of 2 dimensions", got));
        };
        let (fits, got) = (rows > 0 && dim > 0, format_args!("{rows} × {dim}"));
        Error::unless(fits, &place, "at least one row and one column", got)?;
        Ok(Self { place, stored, element, rows, dim, scale: None })
    }

    /// The rows of several arrays, one after the other.
    ///
    /// # Errors
    /// If there is no array, or they differ in width or type.
    pub(crate) fn joined(place: &str, arrays: Vec<Self>) -> Result<Self> {
        Error::unless(!arrays.is_empty(), place, "numbered .npy files with rows", "none")?;
        let first = &arrays[0];
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
        Ok(Self { place: place.into(), stored, element, rows, dim, scale: None })
    }

    /// The file's name, followed by the tensor's name if there is one.
    pub(crate) fn place(&self) -> &str {
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
    pub(crate) fn row_bytes(&self, row: usize) -> &[u8] {
        match &self.stored {
            ArrayFile::Npy(npy) => npy.row_bytes(row),
            ArrayFile::Bytes(bytes, first) => {
                let size = self.dim * self.element.size();
                &bytes[*first..][row * size..][..size]
            }
            ArrayFile::Shards(shards) => {
                let (first, shard) = shard_of(shards, row);
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
        if let ArrayFile::Shards(shards) = &self.stored {
            let (first, shard) = shard_of(shards, row);
            return shard.row_into(row - first, out);
        }
        self.element.read(self.row_bytes(row), out);
        if let Some(scale) = &self.scale {
            scale.apply(row, out);
        }
    }
}

fn shard_of(shards: &[(usize, Array)], row: usize) -> &(usize, Array) {
    &shards[shards.partition_point(|(first, _)| *first <= row) - 1]
}

/// Whether the bytes begin as a `.npy` file does.
pub(crate) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x93NUMPY")
}
