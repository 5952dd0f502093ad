//! `hubness report`: reads, analyses, shows.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use itm_core::data::Features;
use itm_core::tiles::Embeddings;
use itm_core::{Error, Pairs, Relevance, Result, ScoreMatrix};

use super::build::{Asked, Built, build};
use super::output;
use crate::choose::Split;
use crate::cli::analysis::{Banks, Fit, Offer, Row, Set, Side, analyse, curve, rows};
use crate::cli::args::{Report as Args, Settings};
use crate::cli::input::{self, Length, Loaded, LoadedScores, Request, Source};
use crate::cli::methods::Then;
use crate::cli::report::{self, Curve, Palette};
use crate::{Direction, Scores};

/// Where a terminal does not say how wide it is.
const WIDTH: usize = 100;

/// Above so many scores, proximity is not counted unless asked for.
const COUNTED: usize = 20_000_000;

pub(super) fn run(args: Args, out: &mut impl Write) -> Result<()> {
    let start = Instant::now();
    let request = args.input.clone().request()?;
    let raw = request.length == Length::Raw;
    let loaded = input::load(&request)?;
    let Some(pairs) = &loaded.pairs else {
        return Err(Error::invalid("--pairs", "qrels: a report counts what is right", "none"));
    };
    let truth = args.truth.as_ref().map(|path| truth(path, pairs)).transpose()?;
    let validation = validation(&args, request.length)?;
    let others = Others { validation: validation.as_ref(), truth: truth.as_ref() };
    let methods = args.methods()?;
    let offer = |directions: &[Direction], banks: &Banks<'_>, run: bool| Offer {
        bank: directions.iter().all(|&d| banks.has(d)),
        item_bank: directions.iter().all(|&d| banks.has(d.reversed())),
        cosines: banks.test.is_some() && !raw,
        run,
        large: loaded.images().saturating_mul(loaded.texts()) > COUNTED,
    };
    let banks = banks(&loaded)?;
    let built = match &loaded.scores {
        LoadedScores::Embeddings { images, texts } => {
            let tiles = input::tiles(images, texts)?;
            let fit = Fit { test: &tiles, banks, settings: &args.settings };
            let rows = rows(&methods, &args.settings, offer(&Direction::BOTH, &banks, false))?;
            let set = Set::new(fit, pairs, Direction::BOTH.to_vec(), None);
            analysed(&args, &loaded, pairs, vec![set], &others, &rows)?
        }
        LoadedScores::Matrix(matrix) => {
            let fit = Fit { test: matrix, banks, settings: &args.settings };
            let rows = rows(&methods, &args.settings, offer(&Direction::BOTH, &banks, false))?;
            let set = Set::new(fit, pairs, Direction::BOTH.to_vec(), None);
            analysed(&args, &loaded, pairs, vec![set], &others, &rows)?
        }
        LoadedScores::Runs { i2t, t2i } => {
            let held = |run: &Option<input::RunScores>| {
                run.as_ref().map(|r| floored(&r.matrix)).transpose()
            };
            let matrices = [(Direction::I2t, held(i2t)?), (Direction::T2i, held(t2i)?)];
            let mut sets = Vec::new();
            for (direction, matrix) in &matrices {
                let Some((matrix, floor)) = matrix else { continue };
                let fit = Fit { test: matrix, banks, settings: &args.settings };
                sets.push(Set::new(fit, pairs, vec![*direction], Some(*floor)));
            }
            let rows = rows(&methods, &args.settings, offer(&[], &banks, true))?;
            analysed(&args, &loaded, pairs, sets, &others, &rows)?
        }
    };
    let report = built.finish(&args, &loaded, start)?;
    if let Some(path) = &args.html {
        output::write(path, |file| file.write_all(report::html(&report).as_bytes()))?;
    }
    let text = if args.json {
        let failed = |error| Error::invalid("--json", "numbers that JSON can hold", error);
        serde_json::to_string_pretty(&report).map_err(failed)? + "\n"
    } else {
        let stdout = std::io::stdout();
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let width = columns.filter(|_| stdout.is_terminal()).unwrap_or(WIDTH);
        let page = args.html.as_ref().map(|path| format!("\nPage: {}\n", path.display()));
        report::terminal(&report, width, Palette::of(&stdout)) + &page.unwrap_or_default()
    };
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
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
    let (Some(images), Some(texts)) = (&args.val_images, &args.val_texts) else { return Ok(None) };
    let source = Source::Embeddings { images: images.clone(), texts: texts.clone() };
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
pub(super) fn floored(matrix: &ScoreMatrix) -> Result<(ScoreMatrix, f32)> {
    let held = || matrix.values().iter().copied().filter(|s| s.is_finite());
    let (least, most) =
        (held().fold(f32::INFINITY, f32::min), held().fold(f32::NEG_INFINITY, f32::max));
    let floor = least - 0.05 * (most - least).max(least.abs() * 1e-3).max(1e-6);
    let values = matrix.values().iter().map(|s| if s.is_finite() { *s } else { floor }).collect();
    Ok((ScoreMatrix::new(matrix.images(), matrix.texts(), values)?, floor))
}

/// Every row of every set; curves where a page or JSON shows them.
fn analysed<S: Scores>(
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
                    let label = &row.name;
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
    let Some(Loaded {
        scores: LoadedScores::Embeddings { images, texts }, pairs: Some(pairs), ..
    }) = validation
    else {
        return analyse(set, None::<&mut Set<'_, ScoreMatrix>>, rows, split);
    };
    let open = |row: &&Row| row.chooses();
    if rows.iter().filter(open).flat_map(|row| &row.specs).any(|spec| spec.bank) {
        let expected = "no bank beside a validation set, or numbers instead of auto";
        return Err(Error::invalid("--bank-images, --bank-texts", expected, "both"));
    }
    let tiles = input::tiles(images, texts)?;
    let test = Some((of("images", images)?, of("texts", texts)?));
    let fit = Fit { test: &tiles, banks: Banks { test, ..Banks::default() }, settings };
    let mut validation = Set::new(fit, pairs, set.directions.clone(), None);
    analyse(set, Some(&mut validation), rows, split)
}
