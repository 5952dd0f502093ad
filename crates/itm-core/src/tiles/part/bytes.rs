//! A part as the bytes of a safetensors file: the header as JSON in its metadata, the state as tensors.

use std::path::Path;

use super::slots::Slots;
use super::{FORMAT, Header, Part};
use crate::arrays::{NamedArrays, array, to_bytes};
use crate::data::FileBytes;
use crate::{Error, Result, output};

/// Key of the header in the metadata.
const HEADER: &str = "part";

impl Part {
    /// The bytes of a safetensors file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = serde_json::to_string(&self.header).expect("plain numbers and words");
        let [first_image, first_text] = [&self.images, &self.texts].map(|s| s.first.to_string());
        let arrays = [("images", &self.images), ("texts", &self.texts)];
        let rows = |slots: &Slots| [slots.range().len(), slots.width];
        to_bytes(
            arrays.map(|(name, slots)| (name, array(&rows(slots), &slots.values))),
            &[(HEADER, &header), ("images.first", &first_image), ("texts.first", &first_text)],
        )
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave. `place` begins every error.
    ///
    /// # Errors
    /// If the bytes are cut short, are no part, or are of another version.
    pub fn from_bytes(place: &str, bytes: &[u8]) -> Result<Self> {
        let broken = |e: &dyn std::fmt::Display| Error::invalid(place, "a whole part", e);
        let file = NamedArrays::new(bytes).map_err(|e| broken(&e))?;
        let entry =
            |key: &str| file.about(key).ok_or_else(|| broken(&format!("one without {key}")));
        let format =
            serde_json::from_str::<Version>(entry(HEADER)?).map_err(|e| broken(&e))?.format;
        let expected = format_args!("a part of format {FORMAT}");
        Error::unless(format == FORMAT, place, expected, format)?;
        let header: Header = serde_json::from_str(entry(HEADER)?).map_err(|e| broken(&e))?;
        let side = |name: &str| {
            let first = entry(&format!("{name}.first"))?.parse().map_err(|e| broken(&e))?;
            let values = file.values(name, |shape| shape.len() == 2);
            let values = values.map_err(|got| broken(&format!("{name} of {got}")))?;
            Ok(Slots { first, width: file.shape(name).map_or(0, |shape| shape[1]), values })
        };
        let part = Self { header, images: side("images")?, texts: side("texts")? };
        let expected = "a state that fits its header";
        Error::unless(part.is_sound(), place, expected, "another")?;
        Ok(part)
    }

    /// Writes a file that appears whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        output::write_bytes(path, &self.to_bytes())
    }

    /// Reads a file that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`from_bytes`](Self::from_bytes).
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_bytes(&path.display().to_string(), &FileBytes::open(path)?)
    }

    /// Whether rectangles, which must not overlap, are within the whole, and the state is as long as they say.
    fn is_sound(&self) -> bool {
        let Header { covered, whole: [n, m], kind, .. } = &self.header;
        let inside = |[rows, columns]: &[std::ops::Range<usize>; 2]| {
            !rows.is_empty() && rows.end <= *n && !columns.is_empty() && columns.end <= *m
        };
        let hull = |side: usize| {
            let first = covered.iter().map(|both| both[side].start).min().unwrap_or(0);
            first..covered.iter().map(|both| both[side].end).max().unwrap_or(0)
        };
        let [of_images, of_texts] = kind.widths([*n, *m]);
        let fits = |slots: &Slots, width: usize, side: usize| match width {
            0 => slots.values.is_empty(),
            _ => slots.width == width && slots.range() == hull(side),
        };
        let texts = match kind {
            super::PartKind::PairScores { count, .. } => {
                self.texts.width == 1 && self.texts.range().end <= *count
            }
            _ => fits(&self.texts, of_texts, 1),
        };
        let is_sized = u32::try_from((*n).max(*m)).is_ok() && kind.widths([*n, *m]) != [0, 0];
        is_sized
            && !covered.is_empty()
            && covered.iter().all(inside)
            && super::seen_twice(covered.iter()).is_none()
            && fits(&self.images, of_images, 0)
            && texts
    }
}

/// The first thing to look at: other versions may have other headers.
#[derive(serde::Deserialize)]
struct Version {
    format: u32,
}
