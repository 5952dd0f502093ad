//! Rows that a stopped update leaves to the next one.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use itm_core::files::read;
use itm_core::{Error, Result};

use crate::encoder::is_unit;
use crate::store::is_hash;
use crate::{Encoder, Picture};

/// A longer file is not of this program.
const MOST_BYTES: u64 = 1 << 38;

/// A picture and its row.
type Encoded = (Picture, Vec<f32>);

/// A file of records. The first names model and folder; each of the others is a picture with its row.
///
/// ```text
/// length of the text: u32, little-endian    text: JSON    row: d × f32, little-endian (not in the first)
/// ```
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins a file with the whole records that an update of the same model and folder has left, and gives them.
    pub(crate) fn open(
        out: &Path,
        folder: &Path,
        encoder: &dyn Encoder,
    ) -> Result<(Self, Vec<Encoded>)> {
        let path = out.join("encoded.part");
        let head = serde_json::to_vec(&(encoder.model().identity, folder)).expect("two strings");
        let bytes = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => vec![],
            _ => read(&path, MOST_BYTES)?,
        };
        let left = records(&bytes, &head, encoder.model().width);
        // Written anew and renamed, so that a kill here loses nothing.
        let mut whole = record(&head, &[]);
        left.iter().for_each(|(picture, row)| whole.extend(record(&about(picture), row)));
        itm_core::output::write_bytes(&path, &whole)?;
        let file = File::options().append(true).open(&path).map_err(Error::io(&path))?;
        Ok((Self { path, file }, left))
    }

    pub(crate) fn add(&mut self, picture: &Picture, row: &[f32]) -> Result<()> {
        self.file.write_all(&record(&about(picture), row)).map_err(Error::io(&self.path))
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io(&self.path))
    }

    /// Removes the file: its rows are in the index. If that fails, the next update reads it again and removes it.
    pub(crate) fn forget(self) {
        _ = fs::remove_file(&self.path);
    }
}

fn about(picture: &Picture) -> Vec<u8> {
    serde_json::to_vec(picture).expect("a picture")
}

fn record(text: &[u8], row: &[f32]) -> Vec<u8> {
    let row = row.iter().flat_map(|value| value.to_le_bytes());
    (text.len() as u32).to_le_bytes().into_iter().chain(text.iter().copied()).chain(row).collect()
}

/// The whole records after the first, if the first is `head`. What a kill has cut ends them.
fn records(mut bytes: &[u8], head: &[u8], width: usize) -> Vec<Encoded> {
    if text(&mut bytes) != Some(head) {
        return vec![];
    }
    let mut records = vec![];
    while let Some(about) = text(&mut bytes)
        && let Ok(picture) = serde_json::from_slice::<Picture>(about)
        && let Some(row) = width.checked_mul(4).and_then(|length| bytes.split_off(..length))
    {
        let row: Vec<_> =
            row.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
        if !is_unit(&row) || !is_hash(&picture.sha256) {
            break; // a full disk or a power cut can leave zeros
        }
        records.push((picture, row));
    }
    records
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = bytes.split_off(..4)?.try_into().expect("four bytes");
    bytes.split_off(..u32::from_le_bytes(length) as usize)
}
