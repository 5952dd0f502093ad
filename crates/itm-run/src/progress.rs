//! What a person sees while a command runs: lines, and bars on a terminal.

use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// All bars of the process: several trainings may run at the same time.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Prints one or more lines on standard output. Bars make room for the lines; otherwise the lines would tear the bars apart.
pub(crate) fn say(text: impl std::fmt::Display) {
    // A closed pipe is the reader's wish, not an error.
    BARS.suspend(|| _ = writeln!(std::io::stdout(), "{text}"));
}

/// A bar with rate and time left, on standard error; hidden if that is no terminal.
pub(crate) fn bar(what: &str, unit: &str) -> ProgressBar {
    let template = format!(
        "{{prefix}} {{wide_bar}} {{pos}}/{{len}} {unit}, {{per_sec}}, {{eta}} left {{msg}}"
    );
    let style = ProgressStyle::with_template(&template).expect("a template that a test renders");
    let bar = BARS.add(ProgressBar::new(0)).with_style(style).with_prefix(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A spinner with the elapsed time, for work without steps; hidden if there is no terminal.
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
        super::bar("Full, seed 0", "steps").finish_and_clear();
        super::spinner("CCA").finish_and_clear();
    }
}
