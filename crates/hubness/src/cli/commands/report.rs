//! `hubness report`: reads, analyses, shows.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use itm_core::data::Features;
use itm_core::tiles::Embeddings;
use itm_core::{Error, Pairs, Relevance, Result, ScoreMatrix};

use super::build::{Asked, Built, build};
use super::offer::offer;
use super::output;
use crate::choose::Split;
use crate::cli::analysis::{Banks, Fit, Row, Set, Side, analyse, curve, rows};
use crate::cli::args::{Report as Args, Settings};
use crate::cli::input::{self, Length, Loaded, LoadedScores, Request, RunScores, Source};
use crate::cli::methods::Then;
use crate::cli::report::{self, Curve, Palette, Report};
use crate::{Direction, Scores};

/// Where a terminal does not say how wide it is.
const WIDTH: usize = 100;

pub(super) fn run(args: Args, out: &mut impl Write) -> Result<()> {
    let start = Instant::now();
    args.settings.check()?;
    let methods = args.methods()?;
    let request = args.input.clone().request()?;
    one_bank(&args)?;
    args.html.as_deref().map_or(Ok(()), output::check)?;

    let mut loaded = input::load(&request)?;
    let Some(pairs) = loaded.pairs.clone() else {
        return Err(Error::invalid("--pairs", "qrels: a report counts what is right", "none"));
    };
    let truth = args.truth.as_ref().map(|path| truth(path, &pairs)).transpose()?;
    let validation = validation(&args, request.length)?;
    if let Some(Loaded { messages, .. }) = &validation {
        let said = |line: &String| format!("validation: {line}");
        loaded.messages.notes.extend(messages.notes.iter().map(said));
        loaded.messages.warnings.extend(messages.warnings.iter().map(said));
        loaded.messages.files.extend(messages.files.iter().cloned());
    }
    let offer = offer(&loaded, &directions(&loaded), request.length);
    if offer.alone && methods.is_empty() {
        let note = "a single image or query: corrections compare several and are left out";
        loaded.messages.notes.push(note.into());
    }
    let rows = rows(&methods, &args.settings, offer)?;
    // Drawn so rarely, no difference could ever count as real.
    let least = (rows.len() - 1) as f64 / (args.resamples + 1) as f64;
    if args.resamples > 0 && least >= 0.05 {
        let note = format!("with so few resamples no p over all rows can be below {least:.2}");
        loaded.messages.notes.push(note);
    }
    let others = Others { validation: validation.as_ref(), truth: truth.as_ref() };
    let built = analysed(&args, &loaded, &pairs, &others, &rows)?;
    let report = built.finish(&args, &loaded, start)?;
    if let Some(path) = &args.html {
        output::write(path, |file| file.write_all(report::html(&report).as_bytes()))?;
    }
    out.write_all(shown(&args, &report)?.as_bytes()).map_err(Error::io("standard output"))
}

/// For a terminal, or as JSON.
fn shown(args: &Args, report: &Report) -> Result<String> {
    if args.json {
        let failed = |error| Error::invalid("--json", "numbers that JSON can hold", error);
        return Ok(serde_json::to_string_pretty(report).map_err(failed)? + "\n");
    }
    let stdout = std::io::stdout();
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let width = columns.filter(|_| stdout.is_terminal()).unwrap_or(WIDTH);
    let page = args.html.as_ref().map(|path| format!("\nPage: {}\n", path.display()));
    Ok(report::terminal(report, width, Palette::of(&stdout)) + &page.unwrap_or_default())
}

/// Who asks: runs have only the directions that were given.
fn directions(loaded: &Loaded) -> Vec<Direction> {
    let asks = |direction: &Direction| match &loaded.scores {
        LoadedScores::Runs { i2t, t2i } => direction.queries(i2t, t2i).is_some(),
        _ => true,
    };
    Direction::BOTH.into_iter().filter(asks).collect()
}

/// Embeddings and matrices are one set of scores, runs one for each direction.
fn analysed(
    args: &Args,
    loaded: &Loaded,
    pairs: &Pairs,
    others: &Others<'_>,
    rows: &[Row],
) -> Result<Built> {
    let (banks, settings) = (banks(loaded)?, &args.settings);
    let both = || Direction::BOTH.to_vec();
    match &loaded.scores {
        LoadedScores::Embeddings { images, texts } => {
            let tiles = input::tiles(images, texts)?;
            let set = Set::new(Fit { test: &tiles, banks, settings }, pairs, both(), None);
            counted(args, loaded, pairs, vec![set], others, rows)
        }
        LoadedScores::Matrix(matrix) => {
            let set = Set::new(Fit { test: matrix, banks, settings }, pairs, both(), None);
            counted(args, loaded, pairs, vec![set], others, rows)
        }
        LoadedScores::Runs { i2t, t2i } => {
            let held = |run: &Option<RunScores>| run.as_ref().map(floored).transpose();
            let matrices = [(Direction::I2t, held(i2t)?), (Direction::T2i, held(t2i)?)];
            let mut sets = Vec::new();
            for (direction, matrix) in &matrices {
                let Some((matrix, floor)) = matrix else { continue };
                let fit = Fit { test: matrix, banks, settings };
                sets.push(Set::new(fit, pairs, vec![*direction], Some(*floor)));
            }
            counted(args, loaded, pairs, sets, others, rows)
        }
    }
}

/// Rows are of both directions: so must a bank be.
fn one_bank(args: &Args) -> Result<()> {
    let missing = match (&args.input.bank_images, &args.input.bank_texts) {
        (Some(_), None) => "--bank-texts",
        (None, Some(_)) => "--bank-images",
        _ => return Ok(()),
    };
    let expected = "banks of both sides: rows are of both directions";
    Err(Error::invalid(missing, expected, "none"))
}

/// What is read beside the test.
struct Others<'a> {
    validation: Option<&'a Loaded>,
    truth: Option<&'a Relevance>,
}

/// Which texts are true of each image, by number.
fn truth(path: &Path, pairs: &Pairs) -> Result<Relevance> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let place = || path.display().to_string();
    let lists: Vec<Vec<u32>> = serde_json::from_str(&text)
        .map_err(|e| Error::invalid(place(), "a JSON list of lists of text numbers", e))?;
    if lists.len() != pairs.images() {
        let expected = format!("a list for each of {} images", pairs.images());
        return Err(Error::invalid(place(), expected, lists.len()));
    }
    for (image, texts) in lists.iter().enumerate() {
        if let Some(text) = texts.iter().find(|&&text| text as usize >= pairs.texts()) {
            let expected = format!("texts below {}", pairs.texts());
            return Err(Error::invalid(format!("{}, image {image}", place()), expected, text));
        }
    }
    Ok(Relevance::new(pairs.texts(), lists))
}

/// A second set, on which open settings are chosen.
fn validation(args: &Args, length: Length) -> Result<Option<Loaded>> {
    let source = match (&args.val_images, &args.val_texts, &args.val_scores) {
        (Some(images), Some(texts), _) => {
            Source::Embeddings { images: images.clone(), texts: texts.clone() }
        }
        (.., Some(scores)) => Source::Matrix(scores.clone()),
        _ => return Ok(None),
    };
    let request = Request { pairs: args.val_pairs.clone(), length, ..Request::of(source) };
    input::load(&request).map(Some)
}

/// Held-out embeddings beside those of the test.
pub(super) fn banks(loaded: &Loaded) -> Result<Banks<'_>> {
    let LoadedScores::Embeddings { images, texts } = &loaded.scores else {
        return Ok(Banks::default());
    };
    Ok(Banks {
        images: loaded.bank.images.as_ref().map(|f| of("bank images", f)).transpose()?,
        texts: loaded.bank.texts.as_ref().map(|f| of("bank texts", f)).transpose()?,
        test: Some((of("images", images)?, of("texts", texts)?)),
    })
}

fn of<'a>(name: &str, features: &'a Features) -> Result<Embeddings<'a>> {
    Embeddings::new(name, features.rows(), features.dim, &features.values)
}

/// A run's scores with a finite number, below all others, where the run has none.
pub(super) fn floored(run: &RunScores) -> Result<(ScoreMatrix, f32)> {
    let matrix = &run.matrix;
    let held = || matrix.values().iter().copied().filter(|s| s.is_finite());
    let (least, most) =
        (held().fold(f32::INFINITY, f32::min), held().fold(f32::NEG_INFINITY, f32::max));
    let floor = least - 0.05 * (most - least).max(least.abs() * 1e-3).max(1e-6);
    let values = matrix.values().iter().map(|s| if s.is_finite() { *s } else { floor }).collect();
    Ok((ScoreMatrix::new(matrix.images(), matrix.texts(), values)?, floor))
}

/// Every row of every set; curves where a page or JSON shows them.
fn counted<S: Scores>(
    args: &Args,
    loaded: &Loaded,
    pairs: &Pairs,
    mut sets: Vec<Set<'_, S>>,
    others: &Others<'_>,
    rows: &[Row],
) -> Result<Built> {
    let validation = others.validation;
    let ids: Vec<_> = (0..pairs.images()).map(|image| loaded.names.image(image)).collect();
    let open = rows.iter().any(Row::chooses) && validation.is_none();
    let split = open.then(|| Split::hashed(&ids, 2, args.seed)).transpose()?;
    let mut sides = vec![Vec::new(); rows.len()];
    for set in &mut sets {
        let found = with_validation(set, validation, &args.settings, rows, split.as_ref())?;
        sides.iter_mut().zip(found).for_each(|(all, of_set)| all.extend(of_set));
    }
    let mut curves = Vec::new();
    if args.html.is_some() || args.json {
        for row in rows.iter().filter(|row| row.then == Then::Rgm && row.specs.len() == 1) {
            for set in &sets {
                for &direction in &set.directions {
                    let label = &row.name_without_lambda();
                    let seen = |c: &Curve| c.label == *label && c.direction == direction;
                    if !curves.iter().any(seen) {
                        curves.push(curve(set, direction, row.specs[0], label)?);
                    }
                }
            }
        }
    }
    let asked = Asked { rows, sides, curves, validated: validation.is_some(), truth: others.truth };
    build(args, loaded, pairs, &sets, asked)
}

fn with_validation<S: Scores>(
    set: &mut Set<'_, S>,
    validation: Option<&Loaded>,
    settings: &Settings,
    rows: &[Row],
    split: Option<&Split>,
) -> Result<Vec<Vec<Side>>> {
    let (directions, banks) = (set.directions.clone(), set.fit.banks);
    let Some(Loaded { scores, pairs: Some(pairs), .. }) = validation else {
        return analyse(set, None::<&mut Set<'_, ScoreMatrix>>, rows, split);
    };
    match scores {
        LoadedScores::Embeddings { images, texts } => {
            let tiles = input::tiles(images, texts)?;
            let test = Some((of("images", images)?, of("texts", texts)?));
            let fit = Fit { test: &tiles, banks: Banks { test, ..banks }, settings };
            analyse(set, Some(&mut Set::new(fit, pairs, directions, None)), rows, split)
        }
        LoadedScores::Matrix(matrix) => {
            let fit = Fit { test: matrix, banks, settings };
            analyse(set, Some(&mut Set::new(fit, pairs, directions, None)), rows, split)
        }
        LoadedScores::Runs { .. } => unreachable!("no option reads a run to choose on"),
    }
}
