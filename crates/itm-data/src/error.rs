//! One error type for all data from outside: where, expected, got.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Why data from outside was refused. Its `Display` is one line that names file and place.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused: a missing file, a full disk, no permission.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The data was read, but it is not what it must be.
    Invalid {
        /// File and line, field or row.
        place: String,
        /// What was expected there.
        expected: String,
        /// What was found there.
        got: String,
    },
    /// The data can be read, but not by this build.
    Feature {
        /// The file, folder or name.
        place: String,
        /// The feature of this crate that the build lacks.
        feature: &'static str,
    },
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The data was read, but it is not what it must be.
    ///
    /// ```
    /// let e = itm_data::Error::invalid("caps.txt line 7", "a caption", "an empty line");
    /// assert_eq!(e.to_string(), "caps.txt line 7: expected a caption, got an empty line");
    /// ```
    pub fn invalid(
        place: impl fmt::Display,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Self {
        Self::Invalid {
            place: place.to_string(),
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }

    /// Refuses data of which `holds` is false.
    ///
    /// # Errors
    /// [`invalid`](Self::invalid) with the other arguments.
    pub fn unless(
        holds: bool,
        place: impl fmt::Display,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Result<()> {
        if holds { Ok(()) } else { Err(Self::invalid(place, expected, got)) }
    }

    /// Refuses values of which one is not finite.
    ///
    /// # Errors
    /// [`invalid`](Self::invalid) with the first such value; `place` gets its index and gives its place.
    pub fn unless_finite(
        values: &[f32],
        place: impl FnOnce(usize) -> String,
        expected: &str,
    ) -> Result<()> {
        let bad = |x: &f32| !x.is_finite();
        // Values are looked at 64 at a time, because a fold has no branch for each.
        let part =
            values.chunks(64).position(|part| part.iter().fold(false, |any, x| any | bad(x)));
        let Some(first) = part.map(|part| 64 * part) else { return Ok(()) };
        let at = first + values[first..].iter().take_while(|x| !bad(x)).count();
        Err(Self::invalid(place(at), expected, values[at]))
    }

    /// Adapter for `map_err`: puts the place of invalid data inside an outer place.
    pub fn inside(outer: impl fmt::Display) -> impl FnOnce(Self) -> Self {
        move |error| match error {
            Self::Invalid { place, expected, got } => {
                Self::Invalid { place: format!("{outer}, {place}"), expected, got }
            }
            other => other,
        }
    }

    /// Adapter for `map_err`: names the file that an I/O error belongs to.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = OneLine(f);
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Invalid { place, expected, got } => {
                write!(f, "{place}: expected {expected}, got {got}")
            }
            Self::Feature { place, feature } => {
                write!(f, "{place}: expected a build with the feature `{feature}`, got one without")
            }
        }
    }
}

/// Escapes control characters, and characters that turn the direction of a line: file names, captions and other programs'
/// messages may hold line ends and codes of a terminal.
pub(crate) struct OneLine<'a, 'b>(pub(crate) &'a mut fmt::Formatter<'b>);

/// Whether a character ends a line, moves the cursor of a terminal or turns the direction of a line.
fn is_harmful(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

impl Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            c if is_harmful(c) => write!(self.0, "{}", c.escape_default()),
            c => self.0.write_char(c),
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Invalid { .. } | Self::Feature { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_it_quotes() {
        let line = Error::invalid("a\nb.txt", "one\r\nline", "two\u{2028}lines, é").to_string();
        assert_eq!(line, r"a\nb.txt: expected one\r\nline, got two\u{2028}lines, é");
        let line = Error::io("a\tb")(io::Error::other("no\nspace")).to_string();
        assert_eq!(line, r"a\tb: no\nspace");
        let line = Error::invalid("a\x1b[2J", "x\u{9b}1m", "y\u{202e}z").to_string();
        assert_eq!(line, r"a\u{1b}[2J: expected x\u{9b}1m, got y\u{202e}z");
    }

    #[test]
    fn the_first_value_that_is_not_finite_is_named() {
        let mut values = vec![1.0; 200];
        let check = |values: &[f32]| Error::unless_finite(values, |at| at.to_string(), "numbers");
        assert!(check(&values).is_ok() && check(&[]).is_ok());
        for at in (0..200).rev() {
            values[at] = if at % 2 == 0 { f32::NAN } else { f32::NEG_INFINITY };
            let line = check(&values).unwrap_err().to_string();
            assert_eq!(line, format!("{at}: expected numbers, got {}", values[at]));
        }
    }
}
