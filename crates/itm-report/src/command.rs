//! How a command ends: nothing, or one line on standard error, and an exit code; how it is repeated; and the memory that it took.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use crate::format::clean;

/// The parser's message in one line. Its hints, which begin after an empty line, give way to the name of the program's help.
pub fn one_line(program: &str, message: &str) -> String {
    let reason = message.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let reason = reason.collect::<Vec<_>>().join(" ");
    format!("{} (`{program} --help` says what there is)", clean(&reason))
}

/// Prints the line on standard error; the code of bad input is 2.
pub fn refuse(line: &str) -> ExitCode {
    eprintln!("{line}");
    ExitCode::from(2)
}

/// The end of a command that writes to standard output. A reader that closed it, as in `… | head`, has seen enough: no error.
pub fn end(done: Result<(), impl Error>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => refuse(&format!("error: {error}")),
    }
}

/// An argument as a shell takes it.
///
/// ```
/// use itm_report::command::quoted;
///
/// assert_eq!(["a.npy", "two words", "it's"].map(quoted), ["a.npy", "'two words'", r"'it'\''s'"]);
/// ```
pub fn quoted(argument: impl Display) -> String {
    let argument = argument.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

/// The number of a line `FIELD N kB` of a file of the system, in bytes; `None` if there is no such line.
pub fn bytes_of(file: &Path, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn is_closed_pipe(error: &impl Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_and_control_characters_go() {
        let message = "error: unknown `\u{1b}[2J\u{202e}`\n  of these\n\nUsage: …\n";
        let line = one_line("itm", message);
        assert_eq!(
            line,
            "error: unknown `\u{fffd}[2J\u{fffd}` of these (`itm --help` says what there is)"
        );
    }
}
