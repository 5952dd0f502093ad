//! `hubness rescore`: corrected scores or lists, in a file.

use std::io::Write;
use std::path::Path;

use itm_core::{Error, Result, ScoreMatrix};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

use super::offer::offer;
use super::output;
use super::report::{banks, floored};
use crate::cli::analysis::{Fit, Spec};
use crate::cli::args::{Rescore as Args, Settings};
use crate::cli::input::{self, Length, Loaded, LoadedScores, write_lists};
use crate::cli::methods::{Base, Choice, Method, Then};
use crate::cli::report::Params;
use crate::{
    AnyCorrection, Candidates, Direction, GreedyOptions, Scores, Setting, TopLists,
    greedy_matching, pass,
};

pub(super) fn run(args: Args, out: &mut impl Write) -> Result<()> {
    let direction = Direction::from(args.direction);
    let (base, then) = one(&args.method, &args.settings)?;
    check(&args, then)?;
    let request = args.input.clone().request()?;
    let loaded = input::load(&request)?;
    available(&loaded, Method::One(base, then), direction, request.length)?;
    match &loaded.scores {
        LoadedScores::Embeddings { images, texts } => {
            let tiles = input::tiles(images, texts)?;
            let (correction, _) = fit(&args.settings, base, direction, &tiles, &loaded)?;
            write(&args, then, &correction, &tiles, &loaded, None, out)
        }
        LoadedScores::Matrix(matrix) => {
            let (correction, _) = fit(&args.settings, base, direction, matrix, &loaded)?;
            write(&args, then, &correction, matrix, &loaded, None, out)
        }
        LoadedScores::Runs { i2t, t2i } => {
            let Some(run) = direction.queries(i2t, t2i) else {
                let option = direction.queries("--run-i2t", "--run-t2i");
                return Err(Error::invalid(option, "a run of this direction", "none"));
            };
            let (matrix, floor) = floored(run)?;
            let (correction, _) = fit(&args.settings, base, direction, &matrix, &loaded)?;
            write(&args, then, &correction, &matrix, &loaded, Some(floor), out)
        }
    }
}

/// What can be refused before anything is read.
fn check(args: &Args, then: Then) -> Result<()> {
    if args.top == 0 {
        return Err(Error::invalid("--top", "at least 1 item", 0));
    }
    if then != Then::Ranking && is_matrix(&args.out) {
        let expected = "a run file: a matching gives lists, not scores";
        return Err(Error::invalid("--out", expected, args.out.display()));
    }
    if args.out == Path::new("-") { Ok(()) } else { output::check(&args.out) }
}

fn is_matrix(out: &Path) -> bool {
    matches!(extension(out), "npy" | "safetensors")
}

fn extension(out: &Path) -> &str {
    out.extension().and_then(|e| e.to_str()).unwrap_or_default()
}

/// Whether a method can be had of what was read; a bank must be of the side that asks.
pub(super) fn available(
    loaded: &Loaded,
    method: Method,
    direction: Direction,
    length: Length,
) -> Result<()> {
    let offer = offer(loaded, &[direction], length);
    if !offer.bank && (loaded.bank.images.is_some() || loaded.bank.texts.is_some()) {
        let option = direction.queries("--bank-images", "--bank-texts");
        return Err(Error::invalid(
            option,
            format!("held-out queries, as {direction} asks"),
            "none",
        ));
    }
    offer.check(method)
}

/// Notes and warnings, where they do not mix with a run on standard output.
pub(super) fn say(loaded: &Loaded) {
    for warning in &loaded.messages.warnings {
        eprintln!("warning: {warning}");
    }
    for note in &loaded.messages.notes {
        eprintln!("note: {note}");
    }
}

/// A single correction by its name, its number given: choosing needs pairs, and a report to say what was chosen.
pub(super) fn one(name: &str, settings: &Settings) -> Result<(Base, Then)> {
    settings.check()?;
    let Method::One(base, then) = name.parse()? else {
        let expected =
            "one correction with its number (`hubness report --method auto` chooses one)";
        return Err(Error::invalid("--method", expected, name));
    };
    corrects_by(base, settings)?;
    if then == Then::Rgm {
        number("--rgm-lambda", &settings.rgm_lambda)?;
    }
    Ok((base, then))
}

/// CSLS's k or IS's β.
fn corrects_by(base: Base, settings: &Settings) -> Result<Option<f64>> {
    match base {
        Base::Csls => number("--csls-k", &settings.csls_k).map(Some),
        Base::Is => number("--is-beta", &settings.is_beta).map(Some),
        _ => Ok(None),
    }
}

fn number(option: &str, choices: &[Choice]) -> Result<f64> {
    match choices {
        [Choice::Number(number)] => Ok(*number),
        other => {
            let got: Vec<_> = other.iter().map(Choice::to_string).collect();
            let expected = "one number (`hubness report` chooses one)";
            Err(Error::invalid(option, expected, got.join(",")))
        }
    }
}

/// Fits one correction on the test queries, or on a bank if there is one.
pub(super) fn fit<S: Scores>(
    settings: &Settings,
    base: Base,
    direction: Direction,
    scores: &S,
    loaded: &Loaded,
) -> Result<(AnyCorrection, Params)> {
    let banks = banks(loaded)?;
    let number = corrects_by(base, settings)?;
    let bank = base.takes_bank() && banks.has(direction);
    let spec = Spec { base, number, bank };
    spec.fit(&Fit { test: scores, banks, settings }, direction)
}

/// `floor` and what is below stands for entries that a run does not hold: no list has them.
fn write<S: Scores>(
    args: &Args,
    then: Then,
    correction: &AnyCorrection,
    scores: &S,
    loaded: &Loaded,
    floor: Option<f32>,
    out: &mut impl Write,
) -> Result<()> {
    say(loaded);
    // Queries of a matching compete, whatever its scores were made of.
    let setting = if then == Then::Ranking { correction.setting } else { Setting::Transductive };
    eprintln!("{} {}: {setting}", args.method, correction.direction);
    if is_matrix(&args.out) {
        let matrix = corrected(scores, correction, floor)?;
        return match extension(&args.out) {
            "npy" => output::npy(&args.out, matrix.texts(), matrix.values().iter().copied()),
            _ => safetensors(&args.out, correction, &matrix),
        };
    }
    let (images, texts) = (loaded.images(), loaded.texts());
    let names = |direction: Direction| match direction {
        Direction::I2t => (0..images).map(|i| one_word(loaded.names.image(i))).collect::<Vec<_>>(),
        Direction::T2i => (0..texts).map(|t| one_word(loaded.names.text(t))).collect(),
    };
    let (queries, docs) = (names(correction.direction), names(correction.direction.reversed()));
    let fill = |out: &mut dyn Write| -> Result<()> {
        let mut out = out;
        if then != Then::Ranking {
            let list = matched(args, then, scores, correction)?;
            return write_lists(&queries, &docs, list, &tag(&args.method), &mut out);
        }
        let found = pass::top(scores, correction.direction, &*correction.rescore, args.top);
        let list = |query: usize| ranked(scores, correction.direction, &found, floor, query);
        write_lists(&queries, &docs, list, &tag(&args.method), &mut out)
    };
    if args.out == Path::new("-") {
        return fill(out);
    }
    let mut lines = Vec::new();
    fill(&mut lines)?;
    output::write(&args.out, |file| file.write_all(&lines))
}

/// A query's list without what a run does not hold.
fn ranked(
    scores: &impl Scores,
    direction: Direction,
    found: &TopLists,
    floor: Option<f32>,
    query: usize,
) -> Vec<(u32, f64)> {
    let row = floor.map(|floor| (scores.rows(direction, &[query]), floor));
    let held = |item: u32| row.as_ref().is_none_or(|(row, floor)| row[item as usize] > *floor);
    let list = found.items(query).iter().copied().zip(found.scores(query).iter().copied());
    list.filter(|&(item, _)| held(item)).collect()
}

/// Lists of a matching of `--top` items a query.
fn matched<S: Scores>(
    args: &Args,
    then: Then,
    scores: &S,
    correction: &AnyCorrection,
) -> Result<impl Fn(usize) -> Vec<(u32, f64)>> {
    let lambda = match then {
        Then::Gm => 1.0,
        _ => number("--rgm-lambda", &args.settings.rgm_lambda)?,
    };
    let (scale, stop) = crate::cli::analysis::rules(&args.settings);
    let (direction, map) = (correction.direction, &*correction.rescore);
    let lists = pass::top(scores, direction, map, Candidates::<S>::advised(args.top));
    let candidates = Candidates::new(scores, direction, map, &lists);
    let found = greedy_matching(&candidates, &GreedyOptions { k: args.top, lambda, scale, stop })?;
    let values: Vec<Vec<(u32, f64)>> = (0..found.queries())
        .map(|query| {
            let row = scores.rows(direction, &[query]);
            let score = |&item: &u32| (item, map.rescore(query, item as usize, row[item as usize]));
            found.items(query).iter().map(score).collect()
        })
        .collect();
    Ok(move |query: usize| values[query].clone())
}

/// All corrected scores, images × texts.
fn corrected<S: Scores>(
    scores: &S,
    correction: &AnyCorrection,
    floor: Option<f32>,
) -> Result<ScoreMatrix> {
    let (n, m) = (scores.images(), scores.texts());
    let images: Vec<usize> = (0..n).collect();
    let rows = images.par_chunks(64).flat_map_iter(|images| {
        let rows = scores.rows(Direction::I2t, images);
        let value = |(at, score): (usize, f32)| {
            let (image, text) = (images[at / m], at % m);
            let direction = correction.direction;
            let (query, item) = (direction.queries(image, text), direction.items(image, text));
            match floor.is_some_and(|floor| score <= floor) {
                true => f32::NEG_INFINITY,
                false => correction.rescore.rescore(query, item, score) as f32,
            }
        };
        rows.into_iter().enumerate().map(value).collect::<Vec<_>>()
    });
    ScoreMatrix::new(n, m, rows.collect())
}

fn safetensors(path: &Path, correction: &AnyCorrection, matrix: &ScoreMatrix) -> Result<()> {
    let shape = vec![matrix.images(), matrix.texts()];
    let bytes: &[u8] = bytemuck::cast_slice(matrix.values());
    let failed = |error| Error::invalid(path.display(), "a tensor that can be written", error);
    let tensor = TensorView::new(Dtype::F32, shape, bytes).map_err(failed)?;
    let name = correction.direction.to_string();
    let file = safetensors::serialize([(name, tensor)], None).map_err(failed)?;
    output::write(path, |out| out.write_all(&file))
}

/// A run's fields are parted by spaces.
fn one_word(name: String) -> String {
    name.split_whitespace().collect::<Vec<_>>().join("_")
}

fn tag(method: &str) -> String {
    format!("hubness-{method}")
}
