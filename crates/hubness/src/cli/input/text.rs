//! Text from outside: lines with their numbers.

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
}
