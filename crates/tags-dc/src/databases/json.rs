//! JSON files beside a database.

use std::fs;
use std::path::Path;

use itm_core::{Error, Result};
use serde::de::DeserializeOwned;

/// The content of a file.
pub(super) fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T> {
    let bytes = fs::read(path).map_err(Error::io(path))?;
    serde_json::from_slice(&bytes).map_err(|e| Error::invalid(path.display(), what, e))
}
