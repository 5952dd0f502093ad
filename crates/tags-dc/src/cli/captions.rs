//! Files of captions, read whole.

use std::collections::HashMap;
use std::path::Path;

use itm_core::files::{excerpt, read_text};
use itm_core::{Error, Result};

/// The longest caption, in bytes.
const LONGEST: usize = 10_000;

/// Ids and captions, in the file's order.
pub(super) fn read(path: &Path) -> Result<Vec<(String, String)>> {
    let text = read_text(path)?;
    Error::unless(!text.is_empty(), path.display(), "a caption on each line", "an empty file")?;
    let mut first_lines = HashMap::new();
    let mut captions = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let place = format!("{} line {}", path.display(), k + 1); // lines are counted from 1, as editors do
        let (id, caption) = match line.split_once('\t') {
            Some((id, caption)) => (id.to_owned(), caption),
            None => (k.to_string(), line),
        };
        Error::unless(!id.trim().is_empty(), &place, "an id before the tab", "none")?;
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
    let expected = format_args!("a caption of at most {LONGEST} bytes");
    let got = format_args!("{} bytes", caption.len());
    Error::unless(caption.len() <= LONGEST, place, expected, got)
}
