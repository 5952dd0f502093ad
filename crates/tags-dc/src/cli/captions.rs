//! Files of captions, read whole.

use std::collections::HashMap;
use std::path::Path;

use itm_core::data::excerpt;
use itm_core::{Error, Result, files};

/// The largest file that is read, in bytes: all captions of COCO have 40 MB.
const LARGEST: u64 = 1 << 30;

/// The longest caption, in bytes.
const LONGEST: usize = 10_000;

/// Ids and captions, in the file's order.
pub(super) fn read(path: &Path) -> Result<Vec<(String, String)>> {
    let text = text(path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Error::unless(!text.is_empty(), path.display(), "a caption on each line", "an empty file")?;
    let mut first_lines = HashMap::new();
    let mut captions = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let place = at_line(path, k);
        let (id, caption) = match line.split_once('\t') {
            Some((id, caption)) => (id.to_owned(), caption),
            None => (k.to_string(), line),
        };
        if id.trim().is_empty() {
            return Err(Error::invalid(place, "an id before the tab", "none"));
        }
        check(&place, caption)?;
        if let Some(first) = first_lines.insert(id.clone(), k + 1) {
            let got = format!("{}, which line {first} has", excerpt(&id));
            return Err(Error::invalid(place, "an id that no line before has", got));
        }
        captions.push((id, caption.to_owned()));
    }
    Ok(captions)
}

/// Refuses a blank caption, and one that is too long to be a caption.
pub(super) fn check(place: &str, caption: &str) -> Result<()> {
    Error::unless(!caption.trim().is_empty(), place, "a caption", "an empty line")?;
    if caption.len() > LONGEST {
        let expected = format!("a caption of at most {LONGEST} bytes");
        return Err(Error::invalid(place, expected, format!("{} bytes", caption.len())));
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    let bytes = files::read(path, LARGEST)?;
    String::from_utf8(bytes).map_err(|e| {
        let (at, bytes) = (e.utf8_error().valid_up_to(), e.as_bytes());
        let k = bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
        let got = format!("the byte 0x{:02x}", bytes[at]);
        Error::invalid(at_line(path, k), "a caption in UTF-8", got)
    })
}

/// Lines are counted from 1, as editors do.
fn at_line(path: &Path, k: usize) -> String {
    format!("{} line {}", path.display(), k + 1)
}
