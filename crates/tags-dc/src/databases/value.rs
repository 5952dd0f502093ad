//! Values of a database: compressed MessagePack, arrays, archives of arrays.

use std::fmt;
use std::io::{Cursor, Read};
use std::marker::PhantomData;

use half::f16;
use itm_core::data::Npy;
use itm_core::{Error, Result};
use lz4_flex::frame::FrameDecoder;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use zip::ZipArchive;

/// The most bytes that a value may unpack to, whatever length it claims. The regions of an image have about a megabyte.
const MOST: u64 = 1 << 26;

/// Unpacks a whole LZ4 frame.
pub(super) fn unpacked(place: &str, value: &[u8]) -> Result<Vec<u8>> {
    bounded(place, "an LZ4 frame", FrameDecoder::new(value))
}

/// Everything that a reader gives, at most [`MOST`] bytes.
fn bounded(place: &str, what: &str, from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    from.take(MOST + 1).read_to_end(&mut bytes).map_err(|e| Error::invalid(place, what, e))?;
    Error::unless(bytes.len() as u64 <= MOST, place, format_args!("at most {MOST} bytes"), "more")?;
    Ok(bytes)
}

/// Reads a MessagePack map.
pub(super) fn message<'a, T: Deserialize<'a>>(
    place: &str,
    what: &str,
    bytes: &'a [u8],
) -> Result<T> {
    let read: Result<FromMap<T>, _> = rmp_serde::from_slice(bytes);
    read.map(|map| map.0).map_err(|e| Error::invalid(place, what, e))
}

/// A struct that is written as a map. A derived reader would also take a list, and would read its values by position.
pub(super) struct FromMap<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FromMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = FromMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FromMap<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(FromMap)
            }
        }
        deserializer.deserialize_map(OnlyMap(PhantomData))
    }
}

/// An array of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NdArray {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
}

/// An array in MessagePack, as `msgpack_numpy` writes it. Keys and texts are byte strings or, in older files, strings.
#[derive(serde::Deserialize)]
pub(super) struct Packed<'a> {
    nd: bool,
    #[serde(rename = "type", borrow)]
    kind: &'a [u8],
    shape: Vec<usize>,
    #[serde(borrow)]
    data: &'a [u8],
}

impl Packed<'_> {
    pub(super) fn array(self, place: &str) -> Result<NdArray> {
        Error::unless(self.nd, place, "an array", "a single number")?;
        let kind = String::from_utf8_lossy(self.kind);
        let values = floats(place, &kind, self.data)?;
        let wanted = self.shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
        let expected = format_args!("numbers of shape {:?}", self.shape);
        let got = format_args!("{} numbers", values.len());
        Error::unless(wanted == Some(values.len()), place, expected, got)?;
        Ok(NdArray { shape: self.shape, values })
    }
}

/// Little-endian floating-point numbers of a NumPy type.
fn floats(place: &str, kind: &str, data: &[u8]) -> Result<Vec<f32>> {
    fn each<const N: usize>(data: &[u8], value: fn([u8; N]) -> f32) -> Option<Vec<f32>> {
        let (chunks, rest) = data.as_chunks::<N>();
        rest.is_empty().then(|| chunks.iter().map(|&bytes| value(bytes)).collect())
    }
    let values = match kind {
        "<f2" => each(data, |bytes| f16::from_le_bytes(bytes).to_f32()),
        "<f4" => each(data, f32::from_le_bytes),
        "<f8" => each(data, |bytes| f64::from_le_bytes(bytes) as f32),
        other => return Err(Error::invalid(place, "numbers of type <f2, <f4 or <f8", other)),
    };
    values.ok_or_else(|| {
        let expected = format!("complete numbers of type {kind}");
        Error::invalid(place, expected, format!("{} bytes", data.len()))
    })
}

/// A member of an NPZ archive; `None` if there is no such member.
pub(super) fn member(place: &str, archive: &[u8], name: &str) -> Result<Option<NdArray>> {
    let place = &format!("{place} {name}");
    let refused = |e: &dyn fmt::Display| Error::invalid(place, "an NPZ archive", e);
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(|e| refused(&e))?;
    let bytes = match archive.by_name(&format!("{name}.npy")) {
        Ok(file) => bounded(place, "a whole member of an archive", file)?,
        Err(zip::result::ZipError::FileNotFound) => return Ok(None),
        Err(e) => return Err(refused(&e)),
    };
    let array = Npy::from_bytes(place.clone(), bytes)?;
    Ok(Some(NdArray { shape: array.shape().to_vec(), values: array.to_vec()? }))
}
