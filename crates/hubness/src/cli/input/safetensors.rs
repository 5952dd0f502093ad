//! One tensor of a `.safetensors` file.

use std::ops::Range;

use itm_core::data::{FileBytes, excerpt};
use itm_core::{Error, Result};
use safetensors::tensor::{SafeTensorError, SafeTensors};

use super::element::Element;
use super::scale::{Scale, ScaleArray, is_scale};
use super::text::chosen;

/// A tensor of real numbers. Its shape was checked against its bytes.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
    bytes: FileBytes,
    range: Range<usize>,
}

impl Tensor {
    /// A tensor in memory.
    pub(crate) fn new(name: String, element: Element, shape: Vec<usize>, values: Vec<u8>) -> Self {
        Self { name, element, shape, range: 0..values.len(), bytes: values.into() }
    }

    /// Takes the named tensor, or the only tensor with two dimensions.
    ///
    /// # Errors
    /// If the file is malformed or cut short, there is no such tensor or several to choose from (the error lists their
    /// names), or the dtype is not one of [`Element`].
    pub(crate) fn parse(place: &str, name: Option<&str>, bytes: FileBytes) -> Result<Self> {
        let (name, element, shape, range) = find(place, name, &bytes)?;
        Ok(Self { name, element, shape, range, bytes })
    }

    /// The scale of the bytes of this tensor.
    ///
    /// # Errors
    /// As [`Scale::of`].
    pub(crate) fn scale(&self, place: &str) -> Result<Option<Scale>> {
        let &[rows, dim] = &self.shape[..] else { return Ok(None) };
        if !self.element.is_byte() {
            return Ok(None);
        }
        let has = |name: &str| {
            SafeTensors::read_metadata(&self.bytes).is_ok_and(|(_, all)| all.info(name).is_some())
        };
        let numbers = |name: &str| {
            let (name, element, shape, range) = find(place, Some(name), &self.bytes)?;
            let mut values = vec![0.0; range.len() / element.size()];
            element.read(&self.bytes[range], &mut values);
            Ok(ScaleArray { place: format!("{place}:{name}"), shape, values })
        };
        Scale::of((&self.name, [rows, dim]), has, numbers)
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// Name, type, shape and place of a tensor, as [`Tensor::parse`] takes it.
fn find(
    place: &str,
    name: Option<&str>,
    bytes: &[u8],
) -> Result<(String, Element, Vec<usize>, Range<usize>)> {
    let (header, metadata) =
        SafeTensors::read_metadata(bytes).map_err(|e| malformed(place, bytes, e))?;
    let all = metadata.offset_keys();
    let two = |name: &&str| {
        metadata.info(name).is_some_and(|info| info.shape.len() == 2) && !is_scale(name)
    };
    let matrices: Vec<_> = all.iter().map(String::as_str).filter(two).collect();
    let none = ("a tensor of 2 dimensions", format!("none among {}", names(&all)));
    let several = ("FILE:NAME, to choose a tensor", names(&matrices));
    let name = chosen(place, name, &matrices, none, several)?;
    let Some(info) = metadata.info(name) else {
        let expected = format!("a tensor among {}", names(&all));
        return Err(Error::invalid(place, expected, excerpt(name)));
    };
    let element = Element::named(place, name, &info.dtype.to_string())?;
    let (from, to) = info.data_offsets;
    let start = 8 + header;
    Ok((name.to_owned(), element, info.shape.clone(), start + from..start + to))
}

fn names<S: AsRef<str>>(names: &[S]) -> String {
    let first: Vec<_> = names.iter().take(20).map(|name| excerpt(name.as_ref())).collect();
    let more = names.len().saturating_sub(first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if names.is_empty() { "no tensors".into() } else { format!("{}{more}", first.join(", ")) }
}

/// Our own error for a file that is cut short or has too large a header; otherwise the library's error.
fn malformed(place: &str, bytes: &[u8], error: SafeTensorError) -> Error {
    let header = bytes.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
    let got = format!("{} bytes", bytes.len());
    match error {
        SafeTensorError::InvalidHeaderLength => {
            let expected = format!("at least {} bytes of header", header.saturating_add(8));
            Error::invalid(place, expected, got)
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            let expected = "as many bytes as the header's tensors have (a file cut short?)";
            Error::invalid(place, expected, got)
        }
        SafeTensorError::HeaderTooLarge => {
            let expected = "a header of at most 100000000 bytes";
            Error::invalid(place, expected, format!("{header} bytes"))
        }
        other => Error::invalid(place, "a .safetensors file", other),
    }
}
