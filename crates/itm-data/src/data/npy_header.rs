//! The header of a `.npy` file: a dictionary literal with three keys.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::files::{contents, excerpt};
use crate::{Error, Result};

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy writes headers of 128 bytes; its own reader refuses more than 10,000.
const LONGEST_HEADER: usize = 10_000;
/// NumPy's own limit.
const HIGHEST_RANK: usize = 32;

const DTYPES: &str = "a dtype among f16, f32, f64, i8, u8, i32, i64";

/// The header of a `.npy` file of format 1.0, with `kind` as NumPy names it, `<f4`: magic, version, length and a Python dictionary. It has 128
/// bytes, or more for a shape of many dimensions.
pub fn npy_header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let shape = shape.trim_end();
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + text.len() + 1).max(128).next_multiple_of(64) - 10;
    let mut bytes = [MAGIC, b"\x01\x00"].concat();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{text:<width$}\n", width = length - 1).bytes());
    bytes
}

/// The type of the numbers in a `.npy` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Signed byte, usually with a scale.
    I8,
    /// Unsigned byte, usually with a scale.
    U8,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
}

impl Dtype {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }

    fn parse(place: &str, descr: &str) -> Result<Self> {
        Ok(match descr {
            "<f2" => Self::F16,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            "|i1" | "<i1" => Self::I8,
            "|u1" | "<u1" => Self::U8,
            "<i4" => Self::I32,
            "<i8" => Self::I64,
            big if big.starts_with('>') => {
                let got = format!("big-endian {}", excerpt(big));
                return Err(Error::invalid(place, "a little-endian dtype", got));
            }
            "|O" | "O" => {
                return Err(Error::invalid(place, DTYPES, "Python objects (dtype object)"));
            }
            other => return Err(Error::invalid(place, DTYPES, excerpt(other))),
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A checked header: `data + product(shape) · dtype.size()` is the length of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    /// Where the numbers begin.
    pub(crate) data: usize,
}

impl NpyHeader {
    pub(crate) fn parse(place: &str, file: &[u8]) -> Result<Self> {
        let (text, data) = dictionary(place, file)?;
        let read = Dictionary::parse(&format!("{place} header"), text)?;
        let dtype = read.dtype(place)?;
        let shape = read.shape;
        let expected = "C order (rows together: numpy.ascontiguousarray)";
        Error::unless(!read.fortran_order || shape.len() < 2, place, expected, "Fortran order")?;
        // Without the zeros, so that no product of some of the dimensions overflows later.
        let nonzero = shape.iter().filter(|&&n| n > 0);
        let bytes = nonzero.copied().try_fold(dtype.size(), usize::checked_mul);
        let bytes = bytes.map(|b| if shape.contains(&0) { 0 } else { b });
        let Some(total) = bytes.and_then(|b| b.checked_add(data)) else {
            let got = format!("shape {shape:?} of {dtype}");
            return Err(Error::invalid(place, "a shape that fits into memory", got));
        };
        let expected = format_args!("{total} bytes ({data} of header, {dtype} {shape:?})");
        let got = format_args!("{} bytes", file.len());
        Error::unless(total == file.len(), place, expected, got)?;
        Ok(Self { dtype, shape, data })
    }
}

/// The dictionary's text and where it ends.
fn dictionary<'a>(place: &str, file: &'a [u8]) -> Result<(&'a str, usize)> {
    let Some(head) = file.strip_prefix(MAGIC) else {
        return Err(Error::invalid(place, "a .npy file", contents(file)));
    };
    let truncated = |needed: usize| {
        let expected = format!("at least {needed} bytes of header");
        Error::invalid(place, expected, format!("{} bytes", file.len()))
    };
    let (start, length) = match *head {
        [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([a, b]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        [] | [_] | [1, ..] => return Err(truncated(10)),
        [2 | 3, ..] => return Err(truncated(12)),
        [major, minor, ..] => {
            let got = format!("version {major}.{minor}");
            return Err(Error::invalid(place, ".npy version 1, 2 or 3", got));
        }
    };
    let expected = format_args!("a header of at most {LONGEST_HEADER} bytes");
    let got = format_args!("{length} bytes");
    Error::unless(length <= LONGEST_HEADER, place, expected, got)?;
    let text = file.get(start..start + length).ok_or_else(|| truncated(start + length))?;
    match std::str::from_utf8(text) {
        Ok(text) => Ok((text, start + length)),
        Err(_) => Err(Error::invalid(format!("{place} header"), "text", "other bytes")),
    }
}

/// What NumPy writes: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dictionary {
    descr: Value,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// The signs of Python's literal that JSON writes differently. Python 2 wrote long integers with an L.
const AS_JSON: [(&str, &str); 8] = [
    ("L ", " "),
    ("L,", ","),
    ("L)", ")"),
    ("'", "\""),
    ("True", "true"),
    ("False", "false"),
    ("(", "["),
    (")", "]"),
];

impl Dictionary {
    fn parse(place: &str, text: &str) -> Result<Self> {
        let text = AS_JSON.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        let mut json = String::new();
        for (number, part) in text.split(',').enumerate() {
            if number > 0 && !part.trim_start().starts_with([']', '}']) {
                json.push(','); // JSON has no comma after the last
            }
            json.push_str(part);
        }
        let expected = "a dictionary of descr, fortran_order and shape";
        let got = |e| Error::invalid(place, expected, e);
        let read: Self = serde_json::from_str(&json).map_err(got)?;
        let expected = format_args!("rank at most {HIGHEST_RANK}");
        Error::unless(read.shape.len() <= HIGHEST_RANK, place, expected, "more")?;
        Ok(read)
    }

    fn dtype(&self, place: &str) -> Result<Dtype> {
        let got = match &self.descr {
            Value::String(name) => return Dtype::parse(place, name),
            Value::Array(_) => "a structured dtype (named fields)".to_owned(),
            other => excerpt(&other.to_string()),
        };
        Err(Error::invalid(place, DTYPES, got))
    }
}
