//! Names of rows: one per line, or a field of each line of a `.jsonl` file.

use std::collections::HashMap;

use itm_core::data::excerpt;
use itm_core::files::utf8;
use itm_core::{Error, Pairs, Result};
use serde_json::{Map, Value};

use super::text::{at_line, each_line, listed};
use crate::words::count;

/// Reads names. With [`NameFormat::Jsonl`] each line is a JSON object.
///
/// # Errors
/// If the file is not UTF-8, is empty or has an empty line; for JSON lines, if a line is not an object or does not have the
/// field. Without a field, the error lists the fields to choose from.
pub fn parse_names(place: &str, format: NameFormat<'_>, bytes: &[u8]) -> Result<Vec<String>> {
    let text = utf8(place, bytes)?;
    each_line(place, text, "a name on each line", |here, line| match format {
        _ if line.trim().is_empty() => Err(Error::invalid(here(), "a name", "an empty line")),
        NameFormat::Lines => Ok(line.to_string()),
        NameFormat::Jsonl(name) => field(&here(), name, line),
    })
}

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFormat<'a> {
    /// One per line.
    Lines,
    /// This field of the object on each line.
    Jsonl(Option<&'a str>),
}

fn field(place: &str, name: Option<&str>, line: &str) -> Result<String> {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|e| Error::invalid(place, "a JSON object", e))?;
    let fields = || listed(object.keys());
    let Some(name) = name else {
        return Err(Error::invalid(place, "FILE:FIELD, to choose a field", fields()));
    };
    match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => {
            let expected = format!("a text or number in {}", excerpt(name));
            Err(Error::invalid(place, expected, "something else"))
        }
        None => Err(Error::invalid(place, format!("the field {}", excerpt(name)), fields())),
    }
}

/// One name per image. A list with one line per *text* also works if there are pairs and the lines of each image agree.
///
/// # Errors
/// If the number of names is neither the number of images nor, with pairs, of texts, or the texts of an image have different names.
pub(crate) fn fit_images(
    place: &str,
    names: Vec<String>,
    images: usize,
    pairs: Option<&Pairs>,
) -> Result<Vec<String>> {
    if names.len() == images {
        return Ok(names);
    }
    let by_text = |pairs: &&Pairs| pairs.texts() == names.len() && !pairs.is_judged();
    let Some(pairs) = pairs.filter(by_text) else {
        let expected = format!("a name for each of {images} images");
        return Err(Error::invalid(place, expected, count(names.len(), "name")));
    };
    let of_image = |image: usize| {
        let [first, rest @ ..] = pairs.texts_of(image) else { return Ok(image.to_string()) };
        match rest.iter().find(|&&text| names[text] != names[*first]) {
            None => Ok(names[*first].clone()),
            Some(&text) => {
                let expected = format!("{} as in line {}", excerpt(&names[*first]), first + 1);
                Err(Error::invalid(at_line(place, text + 1), expected, excerpt(&names[text])))
            }
        }
    };
    (0..images).map(of_image).collect()
}

/// The row of each name.
///
/// # Errors
/// If a name comes twice.
pub(crate) fn index<'a>(place: &str, names: &'a [String]) -> Result<HashMap<&'a str, usize>> {
    let mut index = HashMap::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        if let Some(first) = index.insert(name.as_str(), at) {
            let got = format!("{} again (first in line {})", excerpt(name), first + 1);
            return Err(Error::invalid(at_line(place, at + 1), "each name once", got));
        }
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn names_are_lines_or_fields() {
        let lines = parse_names("n.txt", NameFormat::Lines, b"a b\r\nc\n").unwrap();
        assert_eq!(lines, ["a b", "c"]);
        let json = b"{\"row\": 7, \"caption\": \"A dog .\"}\n";
        let one = |field| parse_names("n.jsonl", NameFormat::Jsonl(field), json);
        assert_eq!(one(Some("caption")).unwrap(), ["A dog ."]);
        assert_eq!(one(Some("row")).unwrap(), ["7"]);
        let want =
            "n.jsonl line 1: expected FILE:FIELD, to choose a field, got \"caption\", \"row\"";
        assert_eq!(error(one(None)), want);
        let want = "n.jsonl line 1: expected the field \"id\", got \"caption\", \"row\"";
        assert_eq!(error(one(Some("id"))), want);
    }

    #[test]
    fn empty_lines_and_files_are_refused() {
        let parse = |bytes| parse_names("n.txt", NameFormat::Lines, bytes);
        let want = "n.txt line 2: expected a name, got an empty line";
        assert_eq!(error(parse(b"a\n\nb\n")), want);
        let want = "n.txt: expected a name on each line, got an empty file";
        assert_eq!(error(parse(b"")), want);
    }

    #[test]
    fn a_line_for_each_text_names_images() {
        let pairs = Pairs::new(2, vec![1, 0, 1]).unwrap();
        let names = |all: [&str; 3]| all.map(String::from).to_vec();
        let fit = |all| fit_images("n.txt", names(all), 2, Some(&pairs));
        assert_eq!(fit(["b", "a", "b"]).unwrap(), ["a", "b"]);
        let want = "n.txt line 3: expected \"b\" as in line 1, got \"a\"";
        assert_eq!(error(fit(["b", "a", "a"])), want);
        let want = "n.txt: expected a name for each of 2 images, got 3 names";
        let judged = Pairs::judged(2, vec![vec![1], vec![0], vec![0, 1]]).unwrap();
        for pairs in [Some(&judged), None] {
            assert_eq!(error(fit_images("n.txt", names(["a", "b", "c"]), 2, pairs)), want);
        }
    }

    #[test]
    fn a_second_name_has_its_line() {
        let names = ["a", "b", "a"].map(String::from);
        let want = "n.txt line 3: expected each name once, got \"a\" again (first in line 1)";
        assert_eq!(error(index("n.txt", &names)), want);
    }
}
