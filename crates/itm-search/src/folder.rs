//! The photographs of a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use itm_core::data::is_picture;
use itm_core::{Error, Result};

/// A file that may be a picture, before it was opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FolderFile {
    /// Below the folder, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) modified: i64,
}

/// Folders of thumbnails that storage devices make beside the photographs.
const SKIPPED: [&str; 2] = ["@eaDir", "#recycle"];

/// The files that end like pictures, in the order of their paths. Hidden files and folders are left out, and links are not followed: a
/// link can leave the folder, or lead into a circle. `out` is left out too, so that an index may stand inside of its photographs.
pub(crate) fn walk(folder: &Path, out: &Path) -> Result<Vec<FolderFile>> {
    let (mut found, mut open) = (vec![], vec![(folder.to_owned(), String::new())]);
    let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    while let Some((at, prefix)) = open.pop() {
        for entry in fs::read_dir(&at).map_err(Error::io(&at))? {
            let entry = entry.map_err(Error::io(&at))?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.contains(char::is_control)) else {
                continue; // neither a page nor a list could say its name
            };
            if name.starts_with('.') || SKIPPED.contains(&name) {
                continue;
            }
            let kind = entry.file_type().map_err(Error::io(entry.path()))?;
            let path = format!("{prefix}{name}");
            if kind.is_dir() && entry.path().canonicalize().is_ok_and(|path| path != out) {
                open.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() && is_picture(name) {
                let about = entry.metadata().map_err(Error::io(entry.path()))?;
                let since = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let modified = since.map_or(0, |since| since.as_nanos() as i64);
                found.push(FolderFile { path, bytes: about.len(), modified });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The file of a picture, if it is still a plain file within its folder and no part of its path is a link.
pub(crate) fn locate(folder: &Path, path: &str) -> Result<PathBuf> {
    let gone = |got| Error::invalid(path, "a photograph of the index", got);
    let mut at = folder.to_owned();
    for part in path.split('/') {
        if matches!(part, "" | "." | "..") || part.contains('\\') {
            return Err(gone("a path out of its folder"));
        }
        at.push(part);
        let kind = fs::symlink_metadata(&at).map_err(|_| gone("none: it was moved or deleted"))?;
        if kind.is_symlink() {
            return Err(gone("a link"));
        }
    }
    if at.is_file() { Ok(at) } else { Err(gone("something else")) }
}
