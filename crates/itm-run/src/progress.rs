//! What a person sees while a command runs: lines, and bars on a terminal.

use std::io::Write;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use itm_core::{Error, Result};
use itm_report::format::clean_lines;

/// All bars of the process: several trainings may run at the same time.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Why a line could not be written.
static LOST: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Prints one or more lines on standard output, without characters of names and captions that would move the cursor or turn the
/// line. Bars make room for the lines; otherwise the lines would tear the bars apart.
pub(crate) fn say(text: impl std::fmt::Display) {
    say_painted(&clean_lines(&text.to_string()));
}

/// Prints lines as they are: of a report, which is clean and may have colours, or for a program.
pub(crate) fn say_painted(text: &str) {
    let written = BARS.suspend(|| writeln!(std::io::stdout(), "{text}"));
    if let Err(error) = written {
        *LOST.lock().expect("no panic under this lock") = Some(error);
    }
}

/// An error if a line was lost: a training goes on without its lines, but the command has failed.
///
/// # Errors
/// If standard output was full or closed.
pub(crate) fn said() -> Result<()> {
    let flushed = std::io::stdout().flush();
    let lost = LOST.lock().expect("no panic under this lock").take();
    lost.map_or(flushed, Err).map_err(Error::io("standard output"))
}

/// A bar of `length` steps with rate and time left, on standard error; hidden if that is no terminal. It is there until it is dropped.
pub(crate) fn bar(what: &str, unit: &str, length: usize) -> ProgressBar {
    let template = format!(
        "{{prefix}} {{wide_bar}} {{pos}}/{{len}} {unit}, {{per_sec}}, {{eta}} left {{msg}}"
    );
    let style = ProgressStyle::with_template(&template).expect("a template that a test renders");
    let bar =
        BARS.add(ProgressBar::new(length as u64)).with_style(style).with_prefix(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Does the work under a spinner.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _spinner = spinner(what);
    work()
}

/// A spinner with the elapsed time, for work without steps; hidden if there is no terminal. It is there until it is dropped.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
        .expect("a template that a test renders");
    let bar = BARS.add(ProgressBar::new_spinner());
    let bar = bar.with_style(style).with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    #[test]
    fn templates_are_valid() {
        super::bar("Full, seed 0", "steps", 2).finish_and_clear();
        super::during("CCA", || ());
    }
}
