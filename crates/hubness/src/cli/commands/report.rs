//! `hubness report`: reads the files, runs the study, shows the report.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use itm_core::files::{read_json, sha256_of};
use itm_core::output;
use itm_core::{Error, Pairs, Relevance, Result};
use itm_report::command::{bytes_of, quoted};
use itm_report::terminal::Palette;

use super::option;
use crate::cli::args::{ReportArgs, ValidationArgs};
use crate::cli::doubt::doubts;
use crate::cli::input::{self, InputArgs, InputData, InputScores};
use crate::page;
use crate::report::{File, Report};
use crate::study::{Test, TestScores, Validation};

/// Width of the text if the terminal does not tell its width.
const WIDTH: usize = 100;
/// The widest text, whatever the terminal says of its width.
const WIDEST: usize = 10_000;

pub(super) fn run(args: ReportArgs, out: &mut impl Write) -> Result<()> {
    let start = Instant::now();
    args.settings.check().map_err(option)?;
    let study = args.study().map_err(option)?;
    args.html.as_deref().map_or(Ok(()), output::check)?;

    let (input, found) = args.input.clone().with_tables();
    let mut loaded = input::load(&input)?;
    loaded.messages.notes.extend(found);
    let Some(pairs) = loaded.pairs.take() else {
        return Err(Error::invalid("--pairs", "qrels: a report needs the true pairs", "none"));
    };
    let truth = args.truth.as_ref().map(|path| truth(path, &pairs)).transpose()?;
    let validation = validation(&args)?;
    let other = validation.as_ref().and_then(|other| match (other.test_scores(), &other.pairs) {
        (TestScores::All(scores), Some(pairs)) => Some(Validation { scores, pairs }),
        _ => None,
    });
    let test = Test {
        scores: loaded.test_scores(),
        pairs: &pairs,
        length: args.input.length(),
        names: &loaded.names,
        banks: loaded.banks()?,
        truth: truth.as_ref(),
    };
    let mut report = study.run(&test, other.as_ref()).map_err(option)?;
    said(&mut report, &loaded, validation.as_ref());
    if let Some(path) = &args.truth {
        let (name, sha256) = (path.display().to_string(), sha256_of(path)?);
        report.data.files.push(File { name, sha256 });
    }
    // A run lacks entries, so chance says nothing about its recalls.
    if !matches!(loaded.scores, InputScores::Runs(_)) {
        report.data.warnings.extend(doubts(&report, &pairs, loaded.messages.guessed));
    }
    report.seconds = start.elapsed().as_secs_f64();
    report.peak_memory_bytes = bytes_of(Path::new("/proc/self/status"), "VmHWM:");
    if let Some(path) = &args.html {
        output::write_bytes(path, page::html(&report).as_bytes())?;
    }
    out.write_all(shown(&args, &report)?.as_bytes()).map_err(Error::io("standard output"))
}

/// The report for a terminal, or as JSON.
fn shown(args: &ReportArgs, report: &Report) -> Result<String> {
    if args.json {
        let failed = |error| Error::invalid("--json", "numbers that JSON can hold", error);
        return Ok(serde_json::to_string_pretty(report).map_err(failed)? + "\n");
    }
    let stdout = std::io::stdout();
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let columns = columns.map(|columns: usize| columns.min(WIDEST));
    let width = columns.filter(|_| stdout.is_terminal()).unwrap_or(WIDTH);
    let page = args.html.as_ref().map(|path| format!("\nPage: {}\n", path.display()));
    Ok(page::terminal(report, width, Palette::of(&stdout)) + &page.unwrap_or_default())
}

/// Adds the messages of reading to the report, before the notes of the study, and the command line.
fn said(report: &mut Report, loaded: &InputData, validation: Option<&InputData>) {
    let (data, messages) = (&mut report.data, &loaded.messages);
    data.pairs_note = messages.pairs.clone().unwrap_or_else(|| "pairs as judged".into());
    let of_study = std::mem::replace(&mut data.notes, messages.notes.clone());
    data.warnings = messages.warnings.clone();
    data.files = messages.files.clone();
    if let Some(InputData { messages, scores, .. }) = validation {
        if *scores == loaded.scores {
            data.warnings.push("the validation set is the test set itself".into());
        }
        let of_validation = |line: &String| format!("validation: {line}");
        data.notes.extend(messages.notes.iter().map(of_validation));
        data.warnings.extend(messages.warnings.iter().map(of_validation));
        data.files.extend(messages.files.iter().cloned());
    }
    data.notes.extend(of_study);
    let line: Vec<_> = std::env::args_os().map(|word| quoted(word.to_string_lossy())).collect();
    report.settings.command = Some(line.join(" "));
}

/// Reads which texts are true of each image, by number.
fn truth(path: &Path, pairs: &Pairs) -> Result<Relevance> {
    let place = path.display();
    let lists: Vec<Vec<u32>> = read_json(path, "a JSON list of lists of text numbers")?;
    let expected = format_args!("a list for each of {} images", pairs.images());
    Error::unless(lists.len() == pairs.images(), &place, expected, lists.len())?;
    for (image, texts) in lists.iter().enumerate() {
        if let Some(text) = texts.iter().find(|&&text| text as usize >= pairs.texts()) {
            let expected = format!("texts below {}", pairs.texts());
            return Err(Error::invalid(format!("{place}, image {image}"), expected, text));
        }
    }
    Ok(Relevance::new(pairs.texts(), lists))
}

/// The validation set, on which open settings are chosen.
fn validation(args: &ReportArgs) -> Result<Option<InputData>> {
    let ValidationArgs { val_images, val_texts, val_scores, val_pairs } = args.validation.clone();
    let input = InputArgs {
        images: val_images,
        texts: val_texts,
        scores: val_scores,
        pairs: val_pairs,
        raw: args.input.raw,
        ..InputArgs::default()
    };
    let named = input.images.is_some() || input.scores.is_some();
    named.then(|| input::load(&input)).transpose()
}
