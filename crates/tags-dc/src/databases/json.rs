//! JSON files beside a database.

use std::path::Path;

use itm_core::files::{self, LARGEST_TEXT};
use itm_core::{Error, Result};
use serde::de::DeserializeOwned;

/// The content of a file.
pub(super) fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T> {
    let bytes = files::read(path, LARGEST_TEXT)?;
    serde_json::from_slice(&bytes).map_err(|e| Error::invalid(path.display(), what, e))
}
