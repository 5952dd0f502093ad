//! The binary `itm`.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as NoArguments;
use itm_core::Error;
use itm_report::command::{one_line, refuse};
use itm_run::cli::Cli;

/// The exit code if only a build with more features can run the command. `cargo xtask` then makes it.
const ANOTHER_BUILD: u8 = 3;

fn main() -> ExitCode {
    itm_kernels::memory::keep_freed();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() || error.kind() == NoArguments => error.exit(),
        Err(error) => return refuse(&one_line("itm", &error.to_string())),
    };
    if let Some(line) = itm_core::threads::cap() {
        eprintln!("{line}");
    }
    // Runs on a thread of the pool, so that a parallel operation starts here at once, without waking another thread and waiting.
    match rayon::scope(|_| itm_run::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ Error::Feature { .. }) => {
            eprintln!("{error}");
            ExitCode::from(ANOTHER_BUILD)
        }
        Err(error) => match itm_run::stop::exit_code() {
            Some(code) => {
                eprintln!("stopped: {error}");
                ExitCode::from(code)
            }
            None => refuse(&format!("error: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_one_line() {
        let line =
            |args: &[&str]| one_line("itm", &Cli::try_parse_from(args).unwrap_err().to_string());
        assert_eq!(
            line(&["itm", "reproduce"]),
            "error: the following required arguments were not provided: <TARGET> \
             (`itm --help` says what there is)"
        );
        let seeds = line(&["itm", "reproduce", "fne-scenes", "--seeds", "x"]);
        assert!(seeds.contains("'x' for '--seeds <N>'") && seeds.lines().count() == 1, "{seeds}");
        assert!(!line(&["itm", "\u{1b}[2J\u{202e}"]).contains(['\u{1b}', '\u{202e}']));
    }
}
