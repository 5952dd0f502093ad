//! Opens every input, reads whole files with a size limit, and hashes them to record what was read.

use std::any::Any;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

pub use self::contents::contents;
use self::contents::{POINTER, kind_of};
use crate::{Error, Result};

mod contents;

/// The largest text or JSON file that is read whole, in bytes. COCO's Karpathy file has 144 MB.
pub const LARGEST_TEXT: u64 = 1 << 30;

/// The longest Git LFS pointer, in bytes: its specification says so.
const LONGEST_POINTER: u64 = 1024;

/// One file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHash {
    /// Path below the data folder, with `/` as separator.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl FileHash {
    /// The hash of a file with these bytes.
    pub(crate) fn of(root: &Path, path: &Path, bytes: &[u8]) -> Self {
        let (name, length) = (relative(root, path), bytes.len() as u64);
        Self { name, bytes: length, sha256: sha256_hex(bytes) }
    }
}

/// Every file that was read, and one hash over all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The files in the order of reading.
    pub files: Vec<FileHash>,
}

impl Manifest {
    /// Adds a file. Names below `root` are relative to `root`, so that the hash does not change when the folder moves.
    pub(crate) fn add(&mut self, root: &Path, path: &Path, bytes: &[u8]) {
        self.files.push(FileHash::of(root, path, bytes));
    }

    /// Reads a file of at most [`LARGEST_TEXT`] bytes, and adds it.
    pub(crate) fn read(&mut self, root: &Path, path: &Path) -> Result<Vec<u8>> {
        let bytes = read(path, LARGEST_TEXT)?;
        self.add(root, path, &bytes);
        Ok(bytes)
    }

    /// The lines of a file, which is added. Each line must hold `what`.
    pub(crate) fn read_lines(
        &mut self,
        root: &Path,
        path: &Path,
        what: &str,
    ) -> Result<Vec<String>> {
        lines(&path.display().to_string(), what, &self.read(root, path)?)
    }

    /// SHA-256 over the lines `<sha256>  <name>`, sorted by the bytes of the name: the hash that
    /// `sha256sum $(LC_ALL=C ls …) | sha256sum` prints inside the folder.
    pub fn combined(&self) -> String {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files.dedup();
        let mut hash = Sha256::new();
        for file in files {
            hash.update(format!("{}  {}\n", file.sha256, file.name));
        }
        format!("{:x}", hash.finalize())
    }

    /// Length of all files together, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
}

/// SHA-256 of some bytes, hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// SHA-256 of a file, hexadecimal. It is read in blocks.
///
/// # Errors
/// As [`open`], and if the file cannot be read.
pub fn sha256_of(path: impl AsRef<Path>) -> Result<String> {
    let (path, mut hash) = (path.as_ref(), Sha256::new());
    io::copy(&mut open(path)?, &mut hash).map_err(Error::io(path))?;
    Ok(format!("{:x}", hash.finalize()))
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = path.components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// Opens an input.
///
/// # Errors
/// If the file is missing or cannot be opened; if it is a folder, a named pipe, a socket or a device: reading one could wait
/// forever or have no end; and if it is a Git LFS pointer: no reader wants one.
pub fn open(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    regular(path, &fs::metadata(path).map_err(Error::io(path))?)?;
    let mut options = File::options();
    // What has become a pipe since does not wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let mut file = options.read(true).open(path).map_err(Error::io(path))?;
    let meta = file.metadata().map_err(Error::io(path))?;
    regular(path, &meta)?;
    if meta.len() <= LONGEST_POINTER {
        let mut bytes = Vec::new();
        (&mut file).take(LONGEST_POINTER).read_to_end(&mut bytes).map_err(Error::io(path))?;
        if bytes.starts_with(POINTER) {
            return Err(Error::invalid(path.display(), "the file itself", contents(&bytes)));
        }
        file.rewind().map_err(Error::io(path))?;
    }
    Ok(file)
}

/// Reads a whole file of at most `limit` bytes. The length is checked before anything is allocated, and again while
/// reading.
///
/// # Errors
/// As [`open`], and if the file is longer or does not fit into memory.
pub fn read(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = open(path)?;
    let length = file.metadata().map_err(Error::io(path))?.len();
    let expected = format_args!("at most {limit} bytes");
    Error::unless(length <= limit, path.display(), expected, format_args!("{length} bytes"))?;
    let mut bytes = Vec::new();
    if usize::try_from(length).map_or(true, |length| bytes.try_reserve_exact(length).is_err()) {
        let cause = format!("{length} bytes do not fit into memory");
        return Err(Error::io(path)(io::Error::new(io::ErrorKind::OutOfMemory, cause)));
    }
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io(path))?;
    Error::unless(bytes.len() as u64 <= limit, path.display(), expected, "more")?;
    Ok(bytes)
}

/// Reads a text of at most [`LARGEST_TEXT`] bytes, without a byte order mark.
///
/// # Errors
/// As [`read`] and [`utf8`].
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let bytes = read(path, LARGEST_TEXT)?;
    Ok(utf8(&path.display().to_string(), &bytes)?.to_owned())
}

/// Reads a JSON file of at most [`LARGEST_TEXT`] bytes; `what` says what it should hold.
///
/// # Errors
/// As [`read`], and if the file holds something else. The error has the line and column, or says what a file is that is no JSON.
pub fn read_json<T: DeserializeOwned>(path: impl AsRef<Path>, what: &str) -> Result<T> {
    let path = path.as_ref();
    parse_json(&path.display().to_string(), what, &read(path, LARGEST_TEXT)?)
}

/// Reads a file with JSON on each line; `what` says what a line should hold.
///
/// # Errors
/// As [`read_text`], and if a line holds something else. The error has its number.
pub fn read_json_lines<T: DeserializeOwned>(path: impl AsRef<Path>, what: &str) -> Result<Vec<T>> {
    let path = path.as_ref();
    let line = |(k, line): (usize, &str)| {
        let place = || format!("{} line {}", path.display(), k + 1);
        serde_json::from_str(line).map_err(|e| Error::invalid(place(), what, e))
    };
    read_text(path)?.lines().enumerate().map(line).collect()
}

/// [`read_json`] of bytes from `place`.
pub(crate) fn parse_json<T: DeserializeOwned>(place: &str, what: &str, bytes: &[u8]) -> Result<T> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let got = |e| Error::invalid(place, what, not_json(bytes, &e));
    serde_json::from_slice(bytes).map_err(got)
}

/// What is wrong with the JSON by its parser, whose line about a file that is no JSON at all names no cause.
pub(crate) fn not_json(bytes: &[u8], parser: &dyn std::fmt::Display) -> String {
    match bytes.trim_ascii_start() {
        [b'{' | b'[', ..] => parser.to_string(),
        _ => contents(bytes),
    }
}

/// Turns a panic of a library that reads a file into the panic's text, and prints nothing.
///
/// # Errors
/// If `read` panics.
pub fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(read)); // what it was building is dropped
    QUIET.set(false);
    done.map_err(|panic| format!("one that stops its reader ({})", panic_text(&*panic)))
}

/// What a panic said.
pub fn panic_text(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Refuses what has no length.
fn regular(path: &Path, meta: &fs::Metadata) -> Result<()> {
    Error::unless(meta.is_file(), path.display(), "a file", kind(meta.file_type()))
}

fn kind(found: fs::FileType) -> &'static str {
    if found.is_dir() {
        return "a folder";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.is_fifo() {
            return "a named pipe";
        }
        if found.is_socket() {
            return "a socket";
        }
    }
    "a device"
}

/// The bytes as text without a byte order mark.
///
/// # Errors
/// If the bytes are not UTF-8; the error names the line, or what the file is if its beginning shows it.
pub fn utf8<'a>(place: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let text = std::str::from_utf8(bytes).map_err(|e| match kind_of(bytes) {
        Some(kind) => Error::invalid(place, "text in UTF-8", kind),
        None => {
            let at = e.valid_up_to();
            let line = bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1;
            let got = format!("the byte 0x{:02x}", bytes[at]);
            Error::invalid(format!("{place} line {line}"), "UTF-8", got)
        }
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The lines of a text in UTF-8, without line ends. Each line must hold `what`; an empty line is an error.
pub(crate) fn lines(place: &str, what: &str, bytes: &[u8]) -> Result<Vec<String>> {
    let lines = empty_or_lines(place, what, bytes)?;
    if let Some(number) = lines.iter().position(|line| line.trim().is_empty()) {
        let place = format!("{place} line {}", number + 1);
        return Err(Error::invalid(place, what, "an empty line"));
    }
    Ok(lines)
}

/// The lines of a text in UTF-8, without line ends. Lines may be empty, but an empty text is an error.
pub(crate) fn empty_or_lines(place: &str, what: &str, bytes: &[u8]) -> Result<Vec<String>> {
    let text = utf8(place, bytes)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let expected = format_args!("{what} on each line");
    Error::unless(!text.is_empty(), place, expected, "an empty file")?;
    let line = |line: &str| line.strip_suffix('\r').unwrap_or(line).to_string();
    Ok(text.split('\n').map(line).collect())
}

/// The files and folders of a folder, sorted by name.
///
/// # Errors
/// If the folder cannot be read.
pub fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs::read_dir(dir).and_then(|all| all.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = paths.map_err(Error::io(dir))?;
    paths.sort();
    Ok(paths)
}

/// The last component of a path that a data file names, with `/` or `\` as separator.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Refuses a path that a data file names if it leads out of the data folder.
///
/// # Errors
/// If the path is absolute, or has `..`.
pub fn check_below(place: &str, path: &str) -> Result<()> {
    let drive = path.as_bytes().get(1) == Some(&b':');
    if path.starts_with(['/', '\\']) || drive || path.split(['/', '\\']).any(|part| part == "..") {
        return Err(Error::invalid(place, "a path below the data folder", excerpt(path)));
    }
    Ok(())
}

/// The beginning of a text, for error lines: one line in quotes, at most 60 characters, then `…` if the text is longer.
///
/// ```
/// use itm_data::data::excerpt;
///
/// assert_eq!(excerpt("two\nlines"), r#""two\nlines""#);
/// assert_eq!(excerpt(&"a".repeat(61)), format!("\"{}…\"", "a".repeat(60)));
/// ```
pub fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() { format!("\"{short}…\"") } else { format!("\"{short}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST's examples.
    #[test]
    fn sha256_of_known_bytes() {
        assert!(sha256_hex(b"").starts_with("e3b0c44298fc1c149afbf4c8996fb924"));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
    }

    /// `printf '%s  a.txt\n%s  b.txt\n' $(printf abc | sha256sum | cut -c-64) $(printf '' | sha256sum | cut -c-64) | sha256sum`
    #[test]
    fn combined_is_the_hash_of_a_sorted_listing() {
        let root = Path::new("data");
        let mut one = Manifest::default();
        one.add(root, Path::new("data/b.txt"), b"");
        one.add(root, Path::new("data/a.txt"), b"abc");
        let mut two = Manifest::default();
        two.add(root, Path::new("data/a.txt"), b"abc");
        two.add(root, Path::new("data/b.txt"), b"");
        assert_eq!(one.combined(), two.combined());
        assert_eq!(
            one.combined(),
            "b49791236586476825b333079257905f8aa8f3f74345d698a8a081c6b77b6977"
        );
        assert_eq!(one.bytes(), 3);
    }

    #[test]
    fn lines_name_the_empty_one() {
        assert_eq!(lines("caps.txt", "a caption", b"one\r\ntwo\n").unwrap(), ["one", "two"]);
        let error = lines("caps.txt", "a caption", b"one\n \ntwo\n").unwrap_err().to_string();
        assert_eq!(error, "caps.txt line 2: expected a caption, got an empty line");
        assert!(lines("caps.txt", "a caption", b"").is_err());
        assert!(lines("caps.txt", "a caption", b"one\n\n").is_err());
    }

    #[test]
    fn bad_utf8_names_its_line() {
        let line = |bytes| utf8("caps.txt", bytes).unwrap_err().to_string();
        assert_eq!(line(b"one\ntw\xff\n"), "caps.txt line 2: expected UTF-8, got the byte 0xff");
        let want = "caps.txt: expected text in UTF-8, got ";
        assert_eq!(line(b"\x1f\x8b\x08"), format!("{want}a gzip archive (.gz): unpack it first"));
        assert_eq!(line(b"\xff\xfea\0"), format!("{want}text in UTF-16: save it as UTF-8"));
        assert_eq!(utf8("caps.txt", "\u{feff}a".as_bytes()).unwrap(), "a");
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        fs::write(&path, [0; 11]).unwrap();
        assert!(read(&path, 10).unwrap_err().to_string().contains("at most 10 bytes"));
        assert_eq!(read(&path, 11).unwrap().len(), 11);
        let sparse = fs::File::create(dir.path().join("sparse")).unwrap();
        let promises = fs::read_to_string("/proc/sys/vm/overcommit_memory");
        let promises_all = promises.is_ok_and(|how| how.trim() == "1"); // a system that refuses no size
        if !promises_all && sparse.set_len(1 << 43).is_ok() {
            let line = read(dir.path().join("sparse"), u64::MAX).unwrap_err().to_string();
            assert!(line.ends_with("sparse: 8796093022208 bytes do not fit into memory"), "{line}");
        }
    }

    /// Every reader opens its file here, so none takes a pointer for text or JSON.
    #[test]
    fn a_pointer_of_git_lfs_is_refused_by_every_reader() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pairs.txt");
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5120\n";
        fs::write(&path, pointer).unwrap();
        let want = format!(
            "{}: expected the file itself, got a Git LFS pointer to a file of 5120 bytes: fetch it with `git lfs pull`",
            path.display()
        );
        for error in [
            open(&path).unwrap_err(),
            read(&path, 200).unwrap_err(),
            read_text(&path).unwrap_err(),
            read_json::<u8>(&path, "a number").unwrap_err(),
            crate::data::FileBytes::open(&path).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), want);
        }
        // A short file of another kind is read from its beginning.
        fs::write(&path, "version 1\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "version 1\n");
    }

    #[test]
    fn what_is_no_json_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let line = |text: &str| {
            fs::write(&path, text).unwrap();
            let error = read_json::<Vec<u8>>(&path, "a list").unwrap_err().to_string();
            error.replace(&format!("{}: expected a list, got ", path.display()), "")
        };
        assert_eq!(line("<html>404"), "an HTML page (a server's answer in place of the file?)");
        assert_eq!(line(""), "an empty file");
        assert_eq!(line("Entry not found"), "text that begins \"Entry not found\"");
        assert_eq!(line("[1, x]"), "expected value at line 1 column 5");
    }

    /// A pipe that nobody writes made the reader wait forever.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_refused_by_kind() {
        let dir = tempfile::tempdir().unwrap();
        let [pipe, socket] = ["pipe", "socket"].map(|name| dir.path().join(name));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, got) in [
            (dir.path(), "a folder"),
            (&pipe, "a named pipe"),
            (&socket, "a socket"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let line = read(path, 10).unwrap_err().to_string();
            assert_eq!(line, format!("{}: expected a file, got {got}", path.display()));
            assert_eq!(crate::data::FileBytes::open(path).unwrap_err().to_string(), line);
        }
    }
}
