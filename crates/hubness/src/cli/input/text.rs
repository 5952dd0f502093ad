//! Text from outside: lines with their numbers, and names of parts.

use itm_core::data::excerpt;
use itm_core::{Error, Result};

use crate::words::first_ten;

/// The lines with their numbers from 1, without line ends. A line end at the end of the text starts no new line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let parts = if text.is_empty() { None } else { Some(text.split('\n')) };
    let parts = parts.into_iter().flatten().map(|line| line.strip_suffix('\r').unwrap_or(line));
    parts.enumerate().map(|(at, line)| (at + 1, line))
}

/// `FILE line N`.
pub(crate) fn at_line(place: &str, line: usize) -> String {
    format!("{place} line {line}")
}

/// The first ten names.
pub(crate) fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    first_ten(&names.into_iter().map(|name| excerpt(name.as_ref())).collect::<Vec<_>>())
}

/// The part of a file that has this name, or the only one of the `fitting` parts.
///
/// # Errors
/// If there is no name, and not one part that fits. `none` and `several` are what the error expects and what it got.
pub(crate) fn chosen<'a>(
    place: &str,
    name: Option<&'a str>,
    fitting: &[&'a str],
    none: (&str, String),
    several: (&str, String),
) -> Result<&'a str> {
    match (name, fitting) {
        (Some(name), _) | (None, &[name]) => Ok(name),
        (None, []) => Err(Error::invalid(place, none.0, none.1)),
        (None, _) => Err(Error::invalid(place, several.0, several.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one_and_the_last_end_is_no_line() {
        let all = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(all("a\r\n\nb\n"), [(1, "a"), (2, ""), (3, "b")]);
        assert_eq!(all("a\n\n"), [(1, "a"), (2, "")]);
        assert!(all("").is_empty());
    }
}
