//! One tensor of a `.safetensors` file.

use std::ops::Range;

use itm_core::{Error, Result};
use safetensors::tensor::{SafeTensorError, SafeTensors};

use super::element::Element;
use super::scale::{Scale, ScaleArray, is_scale};
use super::text::{chosen, tensor_words};

/// Name, type and shape of a tensor, where its bytes begin, and its scale if it holds bytes.
type SafeTensor = (String, Element, Vec<usize>, usize, Option<Scale>);

/// The named tensor, or the only tensor with two dimensions.
///
/// # Errors
/// If the file is malformed or cut short, there is no such tensor or several to choose from (the error lists their
/// names), or the dtype is not one of [`Element`]; as [`Scale::of`].
pub(crate) fn tensor(place: &str, name: Option<&str>, bytes: &[u8]) -> Result<SafeTensor> {
    let (name, element, shape, range) = find(place, name, bytes)?;
    let has = |name: &str| {
        SafeTensors::read_metadata(bytes).is_ok_and(|(_, all)| all.info(name).is_some())
    };
    let numbers = |name: &str| {
        let (name, element, shape, range) = find(place, Some(name), bytes)?;
        let mut values = vec![0.0; range.len() / element.size()];
        element.read(&bytes[range], &mut values);
        Ok(ScaleArray { place: format!("{place}:{name}"), shape, values })
    };
    let scale = Scale::of((&name, element, &shape), has, numbers)?;
    Ok((name, element, shape, range.start, scale))
}

/// Name, type, shape and place of a tensor, as [`tensor`] takes it.
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
    let find = |name: &str| metadata.info(name);
    let (name, info) = chosen(place, name, tensor_words("no tensors"), &matrices, &all, find)?;
    let element = Element::named(place, name, &info.dtype.to_string())?;
    let (from, to) = info.data_offsets;
    let start = 8 + header;
    Ok((name.to_owned(), element, info.shape.clone(), start + from..start + to))
}

/// Our own error for a file that is cut short or has too large a header; otherwise the library's error.
fn malformed(place: &str, bytes: &[u8], error: SafeTensorError) -> Error {
    let header = bytes.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
    let (least, got) = (header.saturating_add(8), format!("{} bytes", bytes.len()));
    let (expected, got): (String, _) = match error {
        SafeTensorError::InvalidHeaderLength => (format!("at least {least} bytes of header"), got),
        SafeTensorError::MetadataIncompleteBuffer => {
            ("as many bytes as the header's tensors have (a file cut short?)".into(), got)
        }
        SafeTensorError::HeaderTooLarge => {
            ("a header of at most 100000000 bytes".into(), format!("{header} bytes"))
        }
        other => ("a .safetensors file".into(), other.to_string()),
    };
    Error::invalid(place, expected, got)
}
