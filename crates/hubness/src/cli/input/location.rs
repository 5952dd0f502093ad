//! Where an input is: a file, standard input, or a part of either.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use itm_core::data::{FileBytes, sha256_hex};
use itm_core::files::sha256_of;
use itm_core::{Error, Result};
use serde::Deserialize;

use crate::report;

/// A file or standard input (`-`), and optionally the name of a part of it.
///
/// ```
/// use hubness::cli::input::Location;
///
/// let at = |text: &str| text.parse::<Location>().unwrap();
/// assert_eq!(at("a.npy").part, None);
/// assert_eq!(at("model.safetensors:text.weight").part.as_deref(), Some("text.weight"));
/// assert_eq!(at("both.npz:image").part.as_deref(), Some("image"));
/// assert_eq!(at("rows.jsonl:caption").part.as_deref(), Some("caption"));
/// assert_eq!(at("-").to_string(), "standard input");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file; standard input if there is none.
    pub path: Option<PathBuf>,
    /// A tensor of a safetensors or PyTorch file, an array of an `.npz` archive, a column of a Parquet table or of a folder of numbered
    /// tables, a field of a `.jsonl` file.
    pub part: Option<String>,
}

impl Location {
    pub(crate) fn is_folder(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.is_dir())
    }

    /// Whether the file's name has this extension; standard input has no name.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        let own = self.path.as_ref().and_then(|path| path.extension());
        own.is_some_and(|own| own.eq_ignore_ascii_case(extension))
    }
}

impl FromStr for Location {
    type Err = Infallible;

    /// If a file exists whose name is the whole text, the text means that file. Otherwise `:part` may follow
    /// `.safetensors`, `.npz`, `.parquet`, `.pt`, `.pth`, `.jsonl`, a folder that exists or `-`.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let end = [".safetensors:", ".npz:", ".jsonl:", ".parquet:", ".pt:", ".pth:"]
            .iter()
            .find_map(|end| Some(text.find(end)? + end.len()));
        let folder = || text.rsplit_once(':').filter(|(folder, _)| Path::new(folder).is_dir());
        let end = end.or_else(|| Some(folder()?.0.len() + 1));
        let end = end.filter(|_| !Path::new(text).exists());
        let end = if text.starts_with("-:") { Some(2) } else { end };
        let (path, part) = match end {
            Some(end) => (&text[..end - 1], Some(text[end..].into())),
            None => (text, None),
        };
        Ok(Self { path: (path != "-").then(|| path.into()), part })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => f.write_str("standard input"),
        }
    }
}

/// Opens inputs, hashes them, and lets only one of them be standard input.
pub(crate) struct Files<'a> {
    stdin: Option<&'a mut dyn Read>,
    /// What was read, in the order of reading.
    pub(crate) hashes: Vec<report::File>,
    opened: Vec<String>, // SHA-256 of each file since the last `identity`
}

impl<'a> Files<'a> {
    pub(crate) fn new(stdin: &'a mut dyn Read) -> Self {
        Self { stdin: Some(stdin), hashes: Vec::new(), opened: Vec::new() }
    }

    pub(crate) fn open(&mut self, location: &Location) -> Result<FileBytes> {
        let bytes = match &location.path {
            Some(path) => open(path)?,
            None => {
                let place = "standard input";
                let second = || Error::invalid(place, "one option that reads it", "a second `-`");
                all(self.stdin.take().ok_or_else(second)?).map_err(Error::io(place))?
            }
        };
        let name = location.to_string();
        let known = self.hashes.iter().find(|hash| hash.name == name);
        let sha256 = if let Some(known) = known {
            known.sha256.clone()
        } else {
            // Read in blocks: a mapped file would stay in memory as a whole.
            let sha256 = match &location.path {
                Some(path) if path.is_file() => sha256_of(path)?,
                _ => sha256_hex(&bytes),
            };
            location.path.as_deref().map_or(Ok(()), |path| of_export(path, &sha256))?;
            self.hashes.push(report::File { name, sha256: sha256.clone() });
            sha256
        };
        self.opened.push(sha256);
        Ok(bytes)
    }

    /// One hash of the files that were opened since the last call, and of the name of the array in them that `place` has.
    pub(crate) fn identity(&mut self, at: &Location, place: &str) -> String {
        let mut all = std::mem::take(&mut self.opened);
        all.extend(place.strip_prefix(&at.to_string()).map(str::to_owned));
        sha256_hex(all.join(" ").as_bytes())
    }
}

/// Refuses a file that `export.json` of its folder describes with another hash.
fn of_export(path: &Path, sha256: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Export {
        written: Vec<report::File>,
    }
    let Some(name) = path.file_name() else { return Ok(()) };
    let description = path.with_file_name("export.json");
    let Ok(bytes) = FileBytes::open(&description) else { return Ok(()) };
    // Another program's file of this name, or an export before there were hashes, says nothing.
    let Ok(Export { written }) = serde_json::from_slice(&bytes) else { return Ok(()) };
    match written.into_iter().find(|file| name == file.name.as_str()) {
        Some(file) if file.sha256 != sha256 => {
            let expected = format!("SHA-256 {} as in {}", file.sha256, description.display());
            Err(Error::invalid(path.display(), expected, sha256))
        }
        _ => Ok(()),
    }
}

/// Maps a file. A pipe that this process was given (`<(…)` of a shell, `/dev/stdin`) is read to its end.
fn open(path: &Path) -> Result<FileBytes> {
    let given = ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|at| path.starts_with(at));
    if !given || path.is_file() {
        return FileBytes::open(path);
    }
    File::open(path).and_then(|mut file| all(&mut file)).map_err(Error::io(path))
}

fn all(from: &mut dyn Read) -> io::Result<FileBytes> {
    let mut bytes = Vec::new(); // grows with what arrives: no size is trusted
    from.read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_exists_is_meant_as_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("a.safetensors:b");
        let text = odd.to_str().unwrap();
        assert_eq!(text.parse::<Location>().unwrap().part.as_deref(), Some("b"));
        fs::write(&odd, "").unwrap();
        assert_eq!(text.parse::<Location>().unwrap(), Location { path: Some(odd), part: None });
        let both = "-:text".parse::<Location>().unwrap();
        assert_eq!(both, Location { path: None, part: Some("text".into()) });
    }

    #[test]
    fn only_one_input_is_standard_input() {
        let mut stdin = b"abc".as_slice();
        let mut files = Files::new(&mut stdin);
        let dash = Location { path: None, part: None };
        assert_eq!(&*files.open(&dash).unwrap(), b"abc");
        // NIST's example of SHA-256.
        assert!(files.hashes[0].sha256.starts_with("ba7816bf8f01cfea414140de5dae2223"));
        let error = files.open(&dash).unwrap_err().to_string();
        assert_eq!(error, "standard input: expected one option that reads it, got a second `-`");
    }

    #[test]
    fn missing_files_and_folders_are_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut stdin = io::empty();
        let mut files = Files::new(&mut stdin);
        let line = |files: &mut Files, path: &Path| {
            let location = Location { path: Some(path.into()), part: None };
            files.open(&location).unwrap_err().to_string().replace(path.to_str().unwrap(), "P")
        };
        assert_eq!(line(&mut files, dir.path()), "P: expected a file, got a folder");
        let missing = dir.path().join("no");
        assert_eq!(line(&mut files, &missing), "P: No such file or directory (os error 2)");
    }
}
