//! `cargo xtask performance`: our time and memory beside PyTorch's. Every measurement is its own process.
//!
//! The rows come from `crates/itm-core/benches/encoders`, `crates/fne/benches/paper_step.rs`, `crates/naaf/benches/naaf_step.rs`,
//! `crates/tags-dc/benches/tags_step.rs`, and their twin `tests/reference/performance.py`. A round runs our variants, the bare matrix
//! products of the row if it has any, and every variant of PyTorch, one after the other. The best of all rounds counts.

mod machine;
mod process;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use process::{Program, build_benches};
use table::{Measured, Row};

/// A variant this much slower than the best of its kind in one round is not run again.
const HOPELESS: f64 = 1.3;

/// Our times and PyTorch's, row by row.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A Python interpreter with torch, and with transformers for its models.
    #[arg(long)]
    python: PathBuf,
    /// Only these rows, separated by commas; `docs/performance.md` is written only if all rows run.
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    rows: Vec<String>,
    /// Rounds; the best counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Threads of both sides [default: all of the machine].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seconds for which a process repeats its step; at least three steps.
    #[arg(long, value_name = "S", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Seconds after which a process is stopped and its cell becomes `-`.
    #[arg(long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

/// Measures the rows and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?;
    let threads = match arguments.threads {
        Some(threads) => usize::from(threads),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let torch = Program::python(&arguments.python, root, threads, arguments.limit);
    let torch_rows = torch.rows()?; // before minutes of building
    check(&arguments.rows, &torch_rows)?;
    let program = |path| Program::ours(path, threads, arguments.limit);
    let ours: Vec<Program> = build_benches(root)?.into_iter().map(program).collect();
    let mut our_rows = Vec::new();
    for program in &ours {
        our_rows.extend(program.rows()?.into_iter().map(|(name, with)| (program, name, with)));
    }
    let names: Vec<&String> = our_rows.iter().map(|(_, name, _)| name).collect();
    if names.iter().copied().ne(torch_rows.iter().map(|r| &r.0)) {
        bail!("the two sides have different rows: {names:?}, {torch_rows:?}");
    }

    let all = arguments.rows.is_empty();
    let wanted = |name: &String| all || arguments.rows.contains(name);
    let mut rows = Vec::new();
    for ((program, name, with), (_, variants)) in our_rows.into_iter().zip(torch_rows) {
        if wanted(&name) {
            rows.push(measure(program, &torch, &name, &with, &variants, arguments));
        }
    }
    let command = command(arguments, threads);
    let text = format!(
        "{}\n{}",
        machine::describe(root, threads, &rows),
        table::render(&rows, &command, arguments.repeat)
    );
    #[allow(clippy::print_stdout)] // the table is the command's output
    {
        println!("{text}");
    }
    if all {
        let path = root.join("docs/performance.md");
        let page = std::fs::read_to_string(&path).context("docs/performance.md")?;
        std::fs::write(&path, table::between_markers(&page, &text)?)
            .context("docs/performance.md")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All rounds of one row. A variant that cannot be measured has the reason instead.
fn measure(
    ours: &Program,
    torch: &Program,
    name: &str,
    with: &[String],
    variants: &[String],
    arguments: &Arguments,
) -> Row {
    let sides = with.iter().map(|variant| (ours, variant));
    let mut contenders: Vec<(&Program, Measured)> = sides
        .chain(variants.iter().map(|variant| (torch, variant)))
        .map(|(program, variant)| (program, Measured::new(variant)))
        .collect();
    for round in 1..=arguments.repeat {
        for (program, measured) in contenders.iter_mut().filter(|(_, m)| m.in_the_race) {
            let line = program.measure(name, &measured.variant, arguments.seconds);
            let what = format!("round {round} of {}: {}", arguments.repeat, measured.variant);
            eprintln!("{name}: {what}: {}", table::outcome(&line)); // a run that is stopped leaves these lines
            measured.add(line);
        }
        let mut all: Vec<&mut Measured> = contenders.iter_mut().map(|(_, m)| m).collect();
        table::drop_hopeless(&mut all, HOPELESS);
    }
    Row { name: name.to_owned(), measured: contenders.into_iter().map(|(_, m)| m).collect() }
}

fn check(wanted: &[String], known: &[(String, Vec<String>)]) -> Result<()> {
    for name in wanted {
        if !known.iter().any(|(row, _)| row == name) {
            let names: Vec<&str> = known.iter().map(|(row, _)| row.as_str()).collect();
            bail!("--rows: expected some of {}, got {name}", names.join(", "));
        }
    }
    Ok(())
}

/// The command line that gives this table, without the path of one machine's interpreter.
fn command(arguments: &Arguments, threads: usize) -> String {
    let mut line = "cargo xtask performance --python python".to_owned();
    if !arguments.rows.is_empty() {
        line += &format!(" --rows {}", arguments.rows.join(","));
    }
    let Arguments { repeat, seconds, .. } = arguments;
    line + &format!(" --repeat {repeat} --threads {threads} --seconds {seconds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_row_is_refused_in_one_line() {
        let known = [("vit".to_owned(), vec![]), ("bert".to_owned(), vec![])];
        assert!(check(&["bert".to_owned()], &known).is_ok());
        assert_eq!(
            check(&["bert".to_owned(), "gpt".to_owned()], &known).unwrap_err().to_string(),
            "--rows: expected some of vit, bert, got gpt"
        );
    }
}
