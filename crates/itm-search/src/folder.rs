//! The photographs of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf, is_separator};
use std::time::UNIX_EPOCH;

use itm_core::data::is_picture;
use itm_core::{Error, Result};

use crate::store::hash_of_thumbnail;

/// A file that may be a picture, before it was opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FolderFile {
    /// Below the folder, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) modified: i64,
}

/// What a folder has.
#[derive(Debug, Default)]
pub(crate) struct FolderListing {
    /// The files that end like pictures, in the order of their paths.
    pub(crate) files: Vec<FolderFile>,
    /// What is left out, by path, and why.
    pub(crate) left_out: Vec<(String, String)>,
    /// Paths that cannot be read now: whether pictures at or below them are still there is not known.
    pub(crate) unread: Vec<String>,
}

/// Folders of thumbnails that storage devices make beside the photographs.
const SKIPPED: [&str; 2] = ["@eaDir", "#recycle"];
/// Ends of pictures that are not read. They are counted, because their owner may miss them.
const OTHER_KINDS: [&str; 13] =
    ["arw", "avif", "bmp", "cr2", "cr3", "dng", "gif", "heic", "heif", "jxl", "nef", "tif", "tiff"];

/// Lists a folder. Left out are files and folders that have no name to show or cannot be opened, and for each other kind of picture how
/// many there are. Hidden files and folders are passed over, and thumbnails, because an index may stand among its photographs.
/// Links are not followed: a link can leave the folder, or lead into a circle.
pub(crate) fn walk(folder: &Path) -> Result<FolderListing> {
    let FolderListing { files: mut found, left_out: mut left, mut unread } = Default::default();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((at, prefix)) = open.pop() {
        let entries = match fs::read_dir(&at).map_err(Error::io(&at)) {
            Ok(entries) => entries,
            Err(error) if at != folder => {
                let path = prefix.trim_end_matches('/').to_owned();
                unread.push(path.clone());
                left.push((path, error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry.map_err(Error::io(&at))?;
            let kind = entry.file_type().map_err(Error::io(entry.path()))?;
            let name = entry.file_name();
            let shown = name.to_string_lossy();
            let wanted = kind.is_dir() || kind.is_file();
            if !wanted || shown.starts_with('.') || SKIPPED.contains(&&*shown) {
                continue;
            }
            if kind.is_file() && !is_picture(&name) {
                let end = Path::new(&name).extension().unwrap_or_default().to_ascii_lowercase();
                if let Some(end) = OTHER_KINDS.into_iter().find(|kind| end == *kind) {
                    *others.entry(end).or_default() += 1;
                }
                continue;
            }
            let path = format!("{prefix}{shown}");
            if name.to_str().is_none() || shown.contains(char::is_control) {
                // Neither a page nor a list could say this name.
                let path = path.escape_debug().to_string();
                let expected = "a name in UTF-8 without control characters";
                left.push((path.clone(), Error::invalid(path, expected, "another").to_string()));
            } else if kind.is_dir() {
                open.push((entry.path(), format!("{path}/")));
            } else if hash_of_thumbnail(&entry.path()).is_none() {
                let about = match entry.metadata().map_err(Error::io(entry.path())) {
                    Ok(about) => about,
                    Err(error) => {
                        unread.push(path.clone());
                        left.push((path, error.to_string()));
                        continue;
                    }
                };
                let since = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let modified = since.map_or(0, |since| since.as_nanos() as i64);
                found.push(FolderFile { path, bytes: about.len(), modified });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    left.extend(others.into_iter().map(|(end, count)| {
        let (path, got) = (format!("*.{end}"), format_args!("{count} of another kind"));
        let why = Error::invalid(&path, "JPEG, PNG or WebP", got).to_string();
        (path, why)
    }));
    Ok(FolderListing { files: found, left_out: left, unread })
}

/// The file of a picture, if it is still a plain file within its folder and no part of its path is a link.
pub(crate) fn locate(folder: &Path, path: &str) -> Result<PathBuf> {
    let gone = |got| Error::invalid(path, "a photograph of the index", got);
    let mut at = folder.to_owned();
    for part in path.split('/') {
        if matches!(part, "" | "." | "..") || part.contains(is_separator) {
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
