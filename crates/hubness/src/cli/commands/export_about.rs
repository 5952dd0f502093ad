//! What an export says of itself.

use std::path::Path;

use itm_core::data::FileHash;
use itm_core::files::sha256_of;
use itm_core::{Error, Result};
use serde_json::Value;

use crate::Setting;

/// Length of the lists that an engine is checked against.
pub(super) const EXPECTED: usize = 10;

/// What `export.json` says of an export besides hashes of its files.
pub(super) struct About {
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) setting: Option<Setting>,
    pub(super) items: usize,
    pub(super) centre: f64,
    pub(super) width: usize,
    /// The length of the lists.
    pub(super) k: usize,
    pub(super) files: Vec<FileHash>,
}

pub(super) fn hash(path: &Path) -> Result<FileHash> {
    let bytes = std::fs::metadata(path).map_err(Error::io(path))?.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(FileHash { name, bytes, sha256: sha256_of(path)? })
}
