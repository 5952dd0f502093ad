//! Phrases of captions in a file of JSON lines, one caption per line.
//!
//! ```text
//! {"id": "1000268201_0", "node": [[2], [7]], "attribute": [[1], [6]], "relation": [[3, 4]]}
//! ```
//!
//! Positions count words where words are masked, and word pieces where a tokeniser splits the words.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use itm_core::files::open;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::Phrases;
use crate::lines::each_line;

/// The longest line that is accepted, in bytes. A caption has about a dozen phrases.
const LONGEST: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhraseLine {
    id: String,
    node: Vec<Option<Vec<usize>>>,
    attribute: Vec<Option<Vec<usize>>>,
    relation: Vec<Option<Vec<usize>>>,
}

/// Writes a line.
///
/// # Errors
/// If the line cannot be written.
pub fn write(id: &str, phrases: &Phrases, out: &mut impl Write) -> std::io::Result<()> {
    let some = |lists: Vec<Vec<usize>>| lists.into_iter().map(Some).collect();
    let [node, attribute, relation] = phrases.clone().kinds().map(some);
    let line = PhraseLine { id: id.to_owned(), node, attribute, relation };
    writeln!(out, "{}", serde_json::to_string(&line)?)
}

/// Reads the phrases of `captions`, each given by its id and its number of tokens. The result has the order of `captions`. `null` and empty
/// lists are dropped, and lines of other captions are skipped.
///
/// # Errors
/// If the file cannot be read, a line is too long or is not such an object, a caption occurs twice or is missing, or a position lies
/// outside its caption.
pub fn read(path: impl AsRef<Path>, captions: &[(&str, usize)]) -> Result<Vec<Phrases>> {
    let path = path.as_ref();
    parse(&path.display().to_string(), BufReader::new(open(path)?), captions)
}

/// The phrases of captions from any source of lines. Errors give `name` as the place.
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, lines: impl BufRead, captions: &[(&str, usize)]) -> Result<Vec<Phrases>> {
    let number: HashMap<&str, usize> =
        captions.iter().enumerate().map(|(k, (id, _))| (*id, k)).collect();
    let mut found: Vec<Option<Phrases>> = vec![None; captions.len()];
    each_line(name, lines, LONGEST, |at, text| {
        let place = || format!("{name} line {at}");
        let line: PhraseLine = serde_json::from_slice(text)
            .map_err(|e| Error::invalid(place(), "phrases of a caption", e))?;
        let Some(&k) = number.get(&line.id[..]) else { return Ok(()) };
        if found[k].is_some() {
            let expected = "each caption once";
            return Err(Error::invalid(place(), expected, format!("`{}` again", line.id)));
        }
        let PhraseLine { id, node, attribute, relation } = line;
        let tokens = captions[k].1;
        let outside = |at| {
            let expected = format!("positions below {tokens}, the tokens of `{id}`");
            Error::invalid(place(), expected, at)
        };
        found[k] = Some(Phrases::within([node, attribute, relation], tokens, outside)?);
        Ok(())
    })?;
    let missing = |k: usize| {
        let expected = format!("phrases of caption `{}`", captions[k].0);
        Error::invalid(name, expected, "none")
    };
    found.into_iter().enumerate().map(|(k, of)| of.ok_or_else(|| missing(k))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Duplicates, parse};
    use super::*;

    fn refused(text: &str, captions: &[(&str, usize)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.jsonl");
        fs::write(&file, text).unwrap();
        let line = read(&file, captions).unwrap_err().to_string();
        line.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.jsonl");
        let all = ["A brown dog jumps.", "of", "Two men sit on a bench."]
            .map(|caption| parse(caption).phrases(Duplicates::Once));
        let mut bytes = vec![];
        for (k, of) in all.iter().enumerate() {
            write(&format!("c{k}"), of, &mut bytes).unwrap();
        }
        fs::write(&file, bytes).unwrap();
        let read = read(&file, &[("c2", 7), ("c0", 5)]).unwrap();
        assert_eq!(read, [all[2].clone(), all[0].clone()]);
    }

    #[test]
    fn null_and_empty_lists_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.jsonl");
        let text = r#"{"id":"c","node":[[1],null,[]],"attribute":[null],"relation":[]}"#;
        fs::write(&file, text).unwrap();
        let read = read(&file, &[("c", 2)]).unwrap().remove(0);
        assert_eq!((read.node, read.attribute.len()), (vec![vec![1]], 0));
    }

    #[test]
    fn bad_files_are_refused_in_one_line() {
        let good = r#"{"id":"c","node":[[1]],"attribute":[],"relation":[]}"#;
        let captions = &[("c", 2)][..];
        for (text, captions, want) in [
            ("", captions, "p.jsonl: expected phrases of caption `c`, got none"),
            (
                &format!("{good}\n{good}")[..],
                captions,
                "p.jsonl line 2: expected each caption once, got `c` again",
            ),
            (
                good,
                &[("c", 1)],
                "p.jsonl line 1: expected positions below 1, the tokens of `c`, got 1",
            ),
            ("{", captions, "p.jsonl line 1: expected phrases of a caption, got EOF"),
            (
                r#"{"id":"c","node":[[-1]],"attribute":[],"relation":[]}"#,
                captions,
                "p.jsonl line 1: expected phrases of a caption, got invalid value",
            ),
        ] {
            let line = refused(text, captions);
            assert!(line.starts_with(want) && !line.contains('\n'), "{line}");
        }
        assert!(
            read("no/such/file", captions).unwrap_err().to_string().starts_with("no/such/file: ")
        );
    }
}
