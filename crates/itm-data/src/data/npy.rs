//! NumPy's `.npy` files, memory-mapped, converted to f32 row by row.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::Path;

use half::f16;
use memmap2::Mmap;

use super::npy_header::{Dtype, NpyHeader};
use crate::files::open;
use crate::{Error, Result};

/// An array in a `.npy` file: versions 1–3, C order, little-endian.
///
/// The file stays mapped; nothing is copied until a caller reads a row. Opening checks the header, the product of the
/// shape and the length of the file against each other, so no size in a header is ever trusted.
///
/// ```no_run
/// use itm_data::data::Npy;
///
/// let regions = Npy::open("precomp/train_ims.npy")?; // [29000, 36, 2048]: 8.6 GB, not read
/// let mut row = vec![0.0; regions.row_len()];
/// regions.row_into(17, &mut row)?; // image 17: 36 · 2048 values
/// # Ok::<(), itm_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Npy {
    place: String,
    bytes: FileBytes,
    header: NpyHeader,
    scale: Option<Vec<f32>>,
}

/// The bytes of a memory-mapped file, or bytes that are already in memory (`Vec<u8>::into`).
#[derive(Debug)]
pub struct FileBytes(Bytes);

#[derive(Debug)]
enum Bytes {
    /// With the file, for reads that must not end the program if it is shortened.
    Mapped(Mmap, File),
    Owned(Vec<u8>),
}

impl FileBytes {
    /// Maps a file, read-only.
    ///
    /// # Errors
    /// As [`open`](crate::files::open), and if the system cannot map the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open(path)?;
        if file.metadata().map_err(Error::io(path))?.len() == 0 {
            return Ok(Vec::new().into()); // cannot be mapped
        }
        #[allow(unsafe_code, reason = "region features are larger than memory (COCO: 33 GB)")]
        // SAFETY: the map is read-only, private to this value and dropped with it, and its bytes are only ever read as
        // `u8`, for which every bit pattern is valid. One risk remains: another process may shorten the file while it is
        // mapped. The system then ends this program (SIGBUS) instead of returning wrong values. Like every reader of
        // mapped files, this code assumes that nobody writes the data files while they are read.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io(path))?;
        Ok(Self(Bytes::Mapped(map, file)))
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::Owned(bytes))
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(map, _) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Fills `bytes` from a place in a file.
#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            n => (bytes, at) = (&mut bytes[n..], at + n as u64),
        }
    }
    Ok(())
}

impl Npy {
    /// Maps a file and checks its header.
    ///
    /// # Errors
    /// If the file is missing or truncated, has trailing bytes, is big-endian or in Fortran order, or has a dtype that is
    /// not in [`Dtype`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_bytes(path.display().to_string(), FileBytes::open(path)?)
    }

    /// Takes bytes and checks their header; errors name `place`.
    ///
    /// # Errors
    /// As [`Npy::open`].
    pub fn from_bytes(place: impl Into<String>, bytes: impl Into<FileBytes>) -> Result<Self> {
        let (place, bytes) = (place.into(), bytes.into());
        Error::unless(!bytes.is_empty(), &place, "a .npy file", "an empty file")?;
        let header = NpyHeader::parse(&place, &bytes)?;
        Ok(Self { place, bytes, header, scale: None })
    }

    /// Real value = stored value × `scale[dimension]`, over the last dimension; a single value serves all dimensions.
    ///
    /// # Errors
    /// If `scale` has neither one value nor as many as the last dimension, or a value is not finite.
    pub(crate) fn with_scale(mut self, scale: Vec<f32>) -> Result<Self> {
        let width = self.header.shape.last().copied().unwrap_or(1);
        let expected = format_args!("a scale of 1 or {width} values (the last dimension)");
        Error::unless([1, width].contains(&scale.len()), &self.place, expected, scale.len())?;
        let place = |i| format!("scale of {}, value {i}", self.place);
        Error::unless_finite(&scale, place, "a finite number")?;
        self.scale = Some(scale);
        Ok(self)
    }

    /// The name of the file in errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The whole file with its header, for hashes.
    pub(crate) fn file_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The type of a stored number.
    pub fn dtype(&self) -> Dtype {
        self.header.dtype
    }

    /// The shape; empty for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// Length of the first dimension.
    pub fn rows(&self) -> usize {
        self.header.shape.first().copied().unwrap_or(1)
    }

    /// Numbers in a row: the product of the other dimensions.
    pub fn row_len(&self) -> usize {
        self.header.shape.iter().skip(1).product()
    }

    /// The stored bytes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_bytes(&self, row: usize) -> &[u8] {
        assert!(row < self.rows(), "row {row} of {} rows", self.rows());
        let size = self.row_len() * self.header.dtype.size();
        &self.file_bytes()[self.header.data..][row * size..][..size]
    }

    /// Converts a row.
    ///
    /// # Errors
    /// If a value is NaN or infinite as f32; the error names the row and, above rank 1, the column.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not as long as a row.
    pub fn row_into(&self, row: usize, out: &mut [f32]) -> Result<()> {
        self.converted(row, self.row_bytes(row), out)
    }

    /// [`row_into`](Self::row_into), but the bytes are read and not taken from the map: while a training runs, another process may
    /// shorten the file.
    ///
    /// # Errors
    /// As [`row_into`](Self::row_into), and if the file is shorter than when it was opened, or cannot be read.
    pub(super) fn read_row_into(&self, row: usize, out: &mut [f32]) -> Result<()> {
        let Bytes::Mapped(map, file) = &self.bytes.0 else { return self.row_into(row, out) };
        assert!(row < self.rows(), "row {row} of {} rows", self.rows());
        let mut bytes = vec![0; self.row_len() * self.header.dtype.size()];
        let at = (self.header.data + row * bytes.len()) as u64;
        read_at(file, &mut bytes, at).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => {
                let expected = format!("{} bytes, as when it was opened", map.len());
                Error::invalid(&self.place, expected, "fewer")
            }
            _ => Error::io(&self.place)(source),
        })?;
        self.converted(row, &bytes, out)
    }

    fn converted(&self, row: usize, bytes: &[u8], out: &mut [f32]) -> Result<()> {
        assert_eq!(out.len(), self.row_len(), "out for a row of {:?}", self.shape());
        convert(self.header.dtype, bytes, out);
        match self.scale.as_deref() {
            None | Some([]) => {}
            Some([one]) => out.iter_mut().for_each(|v| *v *= one),
            Some(scale) => out
                .chunks_mut(scale.len())
                .for_each(|part| part.iter_mut().zip(scale).for_each(|(v, s)| *v *= s)),
        }
        let column =
            |k| if self.shape().len() > 1 { format!(", column {k}") } else { String::new() };
        let place = |k| format!("{} row {row}{}", self.place, column(k));
        Error::unless_finite(out, place, "a finite number")
    }

    /// All values.
    ///
    /// # Errors
    /// If a value is not finite.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        let (rows, len) = (self.rows(), self.row_len());
        let mut values = vec![0.0; rows * len];
        for (row, out) in values.chunks_exact_mut(len.max(1)).enumerate() {
            self.row_into(row, out)?;
        }
        Ok(values)
    }

    /// The values of an array of rank 1 as f64, without rounding; only i64 beyond 2⁵³ are rounded.
    ///
    /// # Errors
    /// If the rank is not 1, the array is empty, or a value is not finite; then the error names the row.
    pub fn to_f64(&self) -> Result<Vec<f64>> {
        self.check_rank(&[1])?;
        let value: fn(&[u8]) -> f64 = match self.header.dtype {
            Dtype::F64 => |b| f64::from_le_bytes(array(b)),
            Dtype::I32 => |b| f64::from(i32::from_le_bytes(array(b))),
            Dtype::I64 => |b| i64::from_le_bytes(array(b)) as f64,
            _ => return Ok(self.to_vec()?.into_iter().map(f64::from).collect()), // f32 has their values
        };
        let data = &self.file_bytes()[self.header.data..];
        let values: Vec<f64> = data.chunks_exact(self.header.dtype.size()).map(value).collect();
        if let Some(row) = values.iter().position(|x| !x.is_finite()) {
            let place = format!("{} row {row}", self.place);
            return Err(Error::invalid(place, "a finite number", values[row]));
        }
        Ok(values)
    }

    /// The values of an integer array of rank 1 without negative values: row numbers.
    ///
    /// # Errors
    /// If the rank is not 1, the dtype is not an integer, the array is empty, or a value is negative; then the error names
    /// the row.
    pub fn to_indices(&self) -> Result<Vec<usize>> {
        self.check_rank(&[1])?;
        let integer: fn(&[u8]) -> i64 = match self.header.dtype {
            Dtype::I8 => |b| i64::from(b[0] as i8),
            Dtype::U8 => |b| i64::from(b[0]),
            Dtype::I32 => |b| i64::from(i32::from_le_bytes(array(b))),
            Dtype::I64 => |b| i64::from_le_bytes(array(b)),
            other => return Err(Error::invalid(&self.place, "integers", other)),
        };
        let index = |(row, bytes): (usize, &[u8])| {
            let (number, place) = (integer(bytes), || format!("{} row {row}", self.place));
            usize::try_from(number).map_err(|_| Error::invalid(place(), "a row number", number))
        };
        let data = &self.file_bytes()[self.header.data..];
        data.chunks_exact(self.header.dtype.size()).enumerate().map(index).collect()
    }

    /// Refuses other ranks, and arrays without numbers.
    pub(crate) fn check_rank(&self, ranks: &[usize]) -> Result<()> {
        let shape = self.shape();
        let fits = ranks.contains(&shape.len());
        let ranks = ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
        let got = format_args!("rank {} (shape {shape:?})", shape.len());
        Error::unless(fits, &self.place, format_args!("an array of rank {ranks}"), got)?;
        let (fits, expected) = (!shape.contains(&0), "an array that is not empty");
        Error::unless(fits, &self.place, expected, format_args!("shape {shape:?}"))
    }
}

fn convert(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    let each = |out: &mut [f32], size: usize, one: fn(&[u8]) -> f32| {
        out.iter_mut().zip(bytes.chunks_exact(size)).for_each(|(v, b)| *v = one(b));
    };
    match dtype {
        Dtype::F16 => each(out, 2, |b| f16::from_le_bytes(array(b)).to_f32()),
        Dtype::F32 => each(out, 4, |b| f32::from_le_bytes(array(b))),
        Dtype::F64 => each(out, 8, |b| f64::from_le_bytes(array(b)) as f32),
        Dtype::I8 => each(out, 1, |b| f32::from(b[0] as i8)),
        Dtype::U8 => each(out, 1, |b| f32::from(b[0])),
        Dtype::I32 => each(out, 4, |b| i32::from_le_bytes(array(b)) as f32),
        Dtype::I64 => each(out, 8, |b| i64::from_le_bytes(array(b)) as f32),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes); // chunks_exact(N) gave it
    array
}

#[cfg(test)]
mod tests;
