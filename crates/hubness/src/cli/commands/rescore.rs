//! `hubness rescore`: corrected scores or lists, in a file.

use std::io::Write;
use std::path::Path;

use itm_core::{Error, Result, ScoreMatrix};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

use super::output;
use super::report::{banks, floored};
use crate::cli::analysis::{Fit, Spec};
use crate::cli::args::{Rescore as Args, Settings};
use crate::cli::input::{self, Loaded, LoadedScores, write_lists, write_run};
use crate::cli::methods::{Base, Choice, Method, Then};
use crate::{AnyCorrection, Candidates, Direction, GreedyOptions, Scores, greedy_matching, pass};

pub(super) fn run(args: Args, out: &mut impl Write) -> Result<()> {
    let direction = Direction::from(args.direction);
    let (base, then) = ranking(&args.method)?;
    let loaded = input::load(&args.input.clone().request()?)?;
    say(&loaded);
    match &loaded.scores {
        LoadedScores::Embeddings { images, texts } => {
            write(&args, base, then, direction, &input::tiles(images, texts)?, &loaded, out)
        }
        LoadedScores::Matrix(matrix) => write(&args, base, then, direction, matrix, &loaded, out),
        LoadedScores::Runs { i2t, t2i } => {
            let Some(run) = direction.queries(i2t, t2i) else {
                let option = direction.queries("--run-i2t", "--run-t2i");
                return Err(Error::invalid(option, "a run of this direction", "none"));
            };
            let (matrix, floor) = floored(&run.matrix)?;
            let held = |found: AnyCorrection| (found, Some(floor));
            write_fitted(
                &args,
                then,
                held(fit(&args.settings, base, direction, &matrix, &loaded)?),
                &matrix,
                &loaded,
                out,
            )
        }
    }
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

/// A single correction by its name.
pub(super) fn ranking(name: &str) -> Result<(Base, Then)> {
    match name.parse()? {
        Method::One(base, then) => Ok((base, then)),
        Method::Auto => {
            let expected =
                "one correction with its number (`hubness report --method auto` chooses one)";
            Err(Error::invalid("--method", expected, name))
        }
    }
}

/// A number that nobody chooses here: choosing needs pairs, and a report to say what was chosen.
pub(super) fn number(option: &str, choices: &[Choice]) -> Result<f64> {
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
) -> Result<AnyCorrection> {
    let banks = banks(loaded)?;
    let number = match base {
        Base::Csls => Some(number("--csls-k", &settings.csls_k)?),
        Base::Is => Some(number("--is-beta", &settings.is_beta)?),
        _ => None,
    };
    let bank = base.takes_bank() && banks.has(direction);
    let spec = Spec { base, number, bank };
    Ok(spec.fit(&Fit { test: scores, banks, settings }, direction)?.0)
}

fn write<S: Scores>(
    args: &Args,
    base: Base,
    then: Then,
    direction: Direction,
    scores: &S,
    loaded: &Loaded,
    out: &mut impl Write,
) -> Result<()> {
    let correction = fit(&args.settings, base, direction, scores, loaded)?;
    write_fitted(args, then, (correction, None), scores, loaded, out)
}

fn write_fitted<S: Scores>(
    args: &Args,
    then: Then,
    (correction, floor): (AnyCorrection, Option<f32>),
    scores: &S,
    loaded: &Loaded,
    out: &mut impl Write,
) -> Result<()> {
    eprintln!("{} {}: {}", args.method, correction.direction, correction.setting);
    let kind = args.out.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if matches!(kind, "npy" | "safetensors") {
        if then != Then::Ranking {
            let expected = "a run file: a matching gives lists, not scores";
            return Err(Error::invalid("--out", expected, args.out.display()));
        }
        let matrix = corrected(scores, &correction, floor)?;
        return match kind {
            "npy" => output::npy(&args.out, matrix.texts(), matrix.values().iter().copied()),
            _ => safetensors(&args.out, &correction, &matrix),
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
        let found = pass::top(scores, correction.direction, &*correction.rescore, args.top);
        if then == Then::Ranking {
            return write_run(&queries, &docs, &found, &tag(&args.method), &mut out);
        }
        let list = matched(args, then, scores, &correction)?;
        write_lists(&queries, &docs, list, &tag(&args.method), &mut out)
    };
    if args.out == Path::new("-") {
        return fill(out);
    }
    let mut lines = Vec::new();
    fill(&mut lines)?;
    output::write(&args.out, |file| file.write_all(&lines))
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
