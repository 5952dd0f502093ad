//! Text from outside: lines with their numbers, and names of parts.

use itm_core::data::excerpt;
use itm_core::{Error, Result};

use crate::words::{count, first_ten};

/// What `parse` makes of each line. It gets the place of the line for its errors.
///
/// # Errors
/// If there is no line: the error expects `each`. As `parse`.
pub(crate) fn each_line<'a, T>(
    place: &str,
    text: &'a str,
    each: &str,
    mut parse: impl FnMut(&dyn Fn() -> String, &'a str) -> Result<T>,
) -> Result<Vec<T>> {
    let all = text.lines().zip(1..).map(|(line, number)| parse(&|| at_line(place, number), line));
    let all: Vec<_> = all.collect::<Result<_>>()?;
    Error::unless(!all.is_empty(), place, each, "an empty file")?;
    Ok(all)
}

/// The fields of a line, between spaces.
///
/// # Errors
/// If there are fewer or more.
pub(crate) fn fields<'a, const N: usize>(
    here: &dyn Fn() -> String,
    line: &'a str,
    expected: &str,
) -> Result<[&'a str; N]> {
    let fields: Vec<_> = line.split_ascii_whitespace().take(N + 1).collect();
    <[&str; N]>::try_from(&fields[..]).map_err(|_| {
        let got = match fields.len() {
            0 => "an empty line".into(),
            n if n > N => format!("more fields in {}", excerpt(line)),
            n => format!("{} in {}", count(n, "field"), excerpt(line)),
        };
        Error::invalid(here(), expected, got)
    })
}

/// `FILE line N`.
pub(crate) fn at_line(place: &str, line: usize) -> String {
    format!("{place} line {line}")
}

/// The first ten names.
pub(crate) fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    first_ten(&names.into_iter().map(|name| excerpt(name.as_ref())).collect::<Vec<_>>())
}

/// The words of [`chosen`] for tensors.
pub(crate) fn tensor_words(none: &str) -> [&str; 4] {
    ["a tensor of 2 dimensions", "FILE:NAME, to choose a tensor", "a tensor", none]
}

/// The part of a file that has this name, or the only one of the `fitting` parts, and what `find` gives for its name. The words say what
/// fits, how a user chooses, what one part is called, and what there is without parts.
///
/// # Errors
/// If there is no such part, or not exactly one that fits.
pub(crate) fn chosen<'a, T>(
    place: &str,
    name: Option<&'a str>,
    [fits, choose, one, none]: [&str; 4],
    fitting: &[&'a str],
    all: &[impl AsRef<str>],
    find: impl FnOnce(&str) -> Option<T>,
) -> Result<(&'a str, T)> {
    let all = if all.is_empty() { none.to_owned() } else { listed(all) };
    let name = match (name, fitting) {
        (Some(name), _) | (None, &[name]) => name,
        (None, []) => return Err(Error::invalid(place, fits, format!("none among {all}"))),
        (None, _) => return Err(Error::invalid(place, choose, listed(fitting))),
    };
    let unknown = || Error::invalid(place, format!("{one} among {all}"), excerpt(name));
    Ok((name, find(name).ok_or_else(unknown)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one_and_the_last_end_is_no_line() {
        let all = |text| {
            each_line("f", text, "a line", |here, line| Ok((here(), line.to_owned()))).unwrap()
        };
        let want = |lines: &[&str]| -> Vec<_> {
            (1..).zip(lines).map(|(n, line)| (at_line("f", n), (*line).to_owned())).collect()
        };
        assert_eq!(all("a\r\n\nb\n"), want(&["a", "", "b"]));
        assert_eq!(all("a\n\n"), want(&["a", ""]));
        let error = each_line("f", "", "a line", |_, _| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "f: expected a line, got an empty file");
    }
}
