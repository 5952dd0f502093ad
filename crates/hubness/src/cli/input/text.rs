//! Text from outside: UTF-8, and lines with their numbers.

use itm_core::{Error, Result};

/// The bytes as text without a byte order mark. An error names the line of the first byte that is not UTF-8.
pub(crate) fn utf8<'a>(place: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let line = bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1;
        Error::invalid(at_line(place, line), "UTF-8", format!("the byte 0x{:02x}", bytes[at]))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

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

    #[test]
    fn bad_utf8_names_its_line() {
        let error = utf8("run.txt", b"one\ntw\xff\n").unwrap_err().to_string();
        assert_eq!(error, "run.txt line 2: expected UTF-8, got the byte 0xff");
        assert_eq!(utf8("x", "\u{feff}a".as_bytes()).unwrap(), "a");
    }
}
