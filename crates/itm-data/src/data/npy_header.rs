//! The header of a `.npy` file: a dictionary literal with three keys.

use std::fmt;

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
        let mut parser = Parser { place, rest: text };
        let (descr, fortran, shape) = parser.dictionary()?;
        let dtype = Dtype::parse(place, descr)?;
        let expected = "C order (rows together: numpy.ascontiguousarray)";
        Error::unless(!fortran || shape.len() < 2, place, expected, "Fortran order")?;
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
    let Some(text) = file.get(start..start + length) else {
        return Err(truncated(start + length));
    };
    match std::str::from_utf8(text) {
        Ok(text) => Ok((text, start + length)),
        Err(_) => Err(Error::invalid(format!("{place} header"), "text", "other bytes")),
    }
}

/// Reads exactly what NumPy writes: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
struct Parser<'a> {
    place: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn dictionary(&mut self) -> Result<(&'a str, bool, Vec<usize>)> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.need("{")?;
        while !self.take("}") {
            let key = self.string()?;
            self.need(":")?;
            let twice = match key {
                "descr" => {
                    if self.rest.trim_start().starts_with('[') {
                        return Err(self.error(DTYPES, "a structured dtype (named fields)"));
                    }
                    descr.replace(self.string()?).is_some()
                }
                "fortran_order" => fortran.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return Err(self.error("the keys descr, fortran_order and shape", key)),
            };
            if twice {
                return Err(self.error("each key once", format!("a second {key}")));
            }
            if !self.take(",") {
                self.need("}")?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(self.error("nothing after the dictionary", excerpt(self.rest.trim())));
        }
        let missing = |key: &str| self.error(key, "no such key");
        Ok((
            descr.ok_or_else(|| missing("descr"))?,
            fortran.ok_or_else(|| missing("fortran_order"))?,
            shape.ok_or_else(|| missing("shape"))?,
        ))
    }

    fn string(&mut self) -> Result<&'a str> {
        self.rest = self.rest.trim_start();
        let quote = if self.rest.starts_with('"') { '"' } else { '\'' };
        let body = self.rest.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        let Some((text, rest)) = body else {
            return Err(self.error("a string", excerpt(self.rest)));
        };
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool> {
        if self.take("True") { Ok(true) } else { self.need("False").map(|()| false) }
    }

    fn tuple(&mut self) -> Result<Vec<usize>> {
        let mut shape = Vec::new();
        self.need("(")?;
        while !self.take(")") {
            self.rest = self.rest.trim_start();
            let digits =
                self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let Ok(n) = self.rest[..digits].parse() else {
                return Err(self.error("a dimension", excerpt(self.rest)));
            };
            self.rest = &self.rest[digits..];
            self.take("L"); // Python 2 wrote long integers like this
            shape.push(n);
            if shape.len() > HIGHEST_RANK {
                return Err(self.error(format!("rank at most {HIGHEST_RANK}"), "more"));
            }
            if !self.take(",") {
                self.need(")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        rest.map(|rest| self.rest = rest).is_some()
    }

    fn need(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.error(token, excerpt(self.rest))) }
    }

    fn error(&self, expected: impl fmt::Display, got: impl fmt::Display) -> Error {
        Error::invalid(format!("{} header", self.place), expected, got)
    }
}
