//! `hubness rescore`: corrected scores or lists, in a file.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use itm_core::arrays::{array, to_bytes};
use itm_core::data::excerpt;
use itm_core::output;
use itm_core::tiles::TopK;
use itm_core::{Error, Result};
use itm_report::format::clean;

use super::{npy, option, put};
use crate::cli::args::{FitArgs, RescoreArgs};
use crate::cli::input::{self, InputData, RankedList, run_text};
use crate::report::Params;
use crate::study::fit::Fit;
use crate::study::input::ScoreSet;
use crate::study::rows::Limits;
use crate::study::{Base, Choice, Method, Settings, Then};
use crate::{AnyCorrection, Candidates, GreedyOptions, Setting, greedy_matching, pass};

pub(super) fn run(args: RescoreArgs, out: &mut impl Write) -> Result<()> {
    let (base, then) = one(&args.fit)?;
    check(&args, then)?;
    let loaded = input::load_rows(&args.fit.input)?;
    let words = if is_matrix(&args.out) { None } else { Some(words(&loaded)?) };
    let (set, correction, _) = fitted(&args.fit, (base, then), &loaded)?;
    say(&loaded);
    set.note().iter().for_each(|note| eprintln!("note: {note}"));
    // The queries of a matching compete, whatever its scores were fitted on.
    let setting = if then == Then::Ranking { correction.setting() } else { Setting::Transductive };
    let direction = correction.direction();
    eprintln!("{} {direction}: {setting}", args.fit.method);
    let Some([images, texts]) = words else {
        let matrix = correction.apply(set.scores())?;
        return match extension(&args.out) {
            "npy" => npy(&args.out, "<f4", matrix.texts(), matrix.values()),
            _ => {
                let scores = array(&[matrix.images(), matrix.texts()], matrix.values());
                let file = to_bytes([(&direction.to_string()[..], scores)], &[]);
                output::write_bytes(&args.out, &file)
            }
        };
    };
    let (queries, docs) = direction.sides(&images, &texts);
    // Lists leave out entries that the input run does not hold.
    let lists = match then {
        Then::Ranking => {
            let top = pass::top(set.scores(), &correction, args.top)?;
            ranked(&top, top.queries())
        }
        _ => matched(&args, then, &set, &correction)?,
    };
    let tag = format!("hubness-{}", args.fit.method);
    put(&run_text(queries, docs, &lists, &tag)?, &args.out, out, "run file")
}

/// The most items of a list.
const MOST_ITEMS: usize = 1_000_000_000;

/// Refuses bad options before any file is read.
fn check(args: &RescoreArgs, then: Then) -> Result<()> {
    let expected = format_args!("1 to {MOST_ITEMS} items");
    Error::unless((1..=MOST_ITEMS).contains(&args.top), "--top", expected, args.top)?;
    let fits = then == Then::Ranking || !is_matrix(&args.out);
    let expected = "a run file: a matching gives lists, not scores";
    Error::unless(fits, "--out", expected, args.out.display())?;
    if args.out == Path::new("-") { Ok(()) } else { output::check(&args.out) }
}

fn is_matrix(out: &Path) -> bool {
    matches!(extension(out), "npy" | "safetensors")
}

fn extension(out: &Path) -> &str {
    out.extension().and_then(|e| e.to_str()).unwrap_or_default()
}

/// Prints notes and warnings to standard error, so that they do not mix with a run on standard output.
pub(super) fn say(loaded: &InputData) {
    let messages = &loaded.messages;
    messages.warnings.iter().for_each(|warning| eprintln!("warning: {}", clean(warning)));
    messages.notes.iter().for_each(|note| eprintln!("note: {}", clean(note)));
}

/// A single correction by its name, with a given number. Only `report` chooses numbers: a choice needs pairs and must be
/// reported.
pub(super) fn one(FitArgs { method: name, settings, .. }: &FitArgs) -> Result<(Base, Then)> {
    settings.check().map_err(option)?;
    let Method::One(base, then) = name.parse().map_err(option)? else {
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
pub(super) fn corrects_by(base: Base, settings: &Settings) -> Result<Option<f64>> {
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

/// Fits one correction on the bank of queries if there is one, otherwise on the test queries: the scores, the correction and its
/// parameters. A bank of only the other side is an error.
pub(super) fn fitted<'a>(
    args: &FitArgs,
    (base, then): (Base, Then),
    loaded: &'a InputData,
) -> Result<(ScoreSet<'a>, AnyCorrection, Params)> {
    let &FitArgs { ref settings, direction, ref input, .. } = args;
    let (scores, banks) = (loaded.test_scores(), loaded.banks()?);
    let mut sets = scores.sets()?.into_iter();
    let Some(set) = sets.find(|set| set.directions.contains(&direction)) else {
        let option = direction.queries("--run-i2t", "--run-t2i");
        return Err(Error::invalid(option, "a run of this direction", "none"));
    };
    let limits = Limits::new(&scores, input.length(), &banks, &[direction]);
    let fits = limits.bank || (banks.images.is_none() && banks.texts.is_none());
    let place = direction.queries("--bank-images", "--bank-texts");
    let expected = format_args!("held-out queries for {direction}");
    Error::unless(fits, place, expected, "none")?;
    limits.check(Method::One(base, then)).map_err(option)?;
    let bank = base != Base::Nns && banks.has(direction);
    let fit = Fit { base, number: corrects_by(base, settings)?, bank };
    let (correction, params) = fit.fit(set.scores(), &banks, settings, direction)?;
    let correction = set.held(correction);
    Ok((set, correction, params))
}

/// The best items of every query, best first; lists of no items do not know how many `queries` there are. Entries that the input run does not hold
/// come last, with −∞.
pub(super) fn ranked<S: Copy + Into<f64>>(top: &TopK<S>, queries: usize) -> Vec<RankedList> {
    let scores = |query| top.scores(query).iter().map(|&score| score.into());
    let list = |query| top.items(query).iter().copied().zip(scores(query)).collect();
    (0..queries).map(list).collect()
}

/// The lists of a matching with `--top` items per query.
fn matched(
    args: &RescoreArgs,
    then: Then,
    set: &ScoreSet<'_>,
    correction: &AnyCorrection,
) -> Result<Vec<RankedList>> {
    let lambda = match then {
        Then::Gm => 1.0,
        _ => number("--rgm-lambda", &args.fit.settings.rgm_lambda)?,
    };
    let k = args.top;
    let &Settings { rgm_capacity: scale, rgm_stop: stop, .. } = &args.fit.settings;
    let (direction, map) = (correction.direction(), correction.map());
    let candidates = Candidates::new(set.scores(), correction, k)?;
    let matching = greedy_matching(&candidates, &GreedyOptions { k, lambda, scale, stop })?;
    let queries: Vec<_> = (0..matching.queries()).collect();
    let mut found = Vec::with_capacity(queries.len());
    direction.batches(set.scores(), &queries, |some, rows| {
        for (&query, row) in some.iter().zip(rows.chunks(candidates.items.max(1))) {
            let score = |&item: &u32| (item, map.rescore(query, item as usize, row[item as usize]));
            found.push(matching.items(query).iter().map(score).collect());
        }
    })?;
    Ok(found)
}

/// Names of images and of texts as a run can hold them: spaces, which separate the fields of a run, become `_`.
///
/// # Errors
/// If a side has two equal names, or names that only spaces tell apart: a reader of the run could not tell them apart.
fn words(loaded: &InputData) -> Result<[Vec<String>; 2]> {
    let (images, texts) = loaded.test_scores().shape();
    let images = words_of("images", (0..images).map(|image| loaded.names.image(image)))?;
    Ok([images, words_of("texts", (0..texts).map(|text| loaded.names.text(text)))?])
}

fn words_of(what: &str, names: impl Iterator<Item = String>) -> Result<Vec<String>> {
    let mut first: HashMap<String, (usize, String)> = HashMap::new();
    let mut words = Vec::new();
    for (row, name) in names.enumerate() {
        let word = name.split_whitespace().collect::<Vec<_>>().join("_");
        let refused = |expected: &str, got: String| {
            let place = format!("names of {what}, row {row}");
            Err(Error::invalid(place, expected, got))
        };
        if word.is_empty() {
            return refused("a name that a run can hold", excerpt(&name));
        }
        if let Some((at, other)) = first.get(&word) {
            let got = format!("{} after {} in row {at}", excerpt(&name), excerpt(other));
            return refused("names that differ when spaces are written as _", got);
        }
        first.insert(word.clone(), (row, name));
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_run_can_be_told_apart() {
        let of = |names: &[&str]| words_of("texts", names.iter().map(|&name| name.into()));
        assert_eq!(of(&["A dog", "A_cat", "b"]).unwrap(), ["A_dog", "A_cat", "b"]);
        for (names, want) in [
            (
                ["A dog", "x", "A_dog"],
                "expected names that differ when spaces are written as _, got \"A_dog\" after \"A dog\" in row 0",
            ),
            (
                ["x", "y", "x"],
                "expected names that differ when spaces are written as _, got \"x\" after \"x\" in row 0",
            ),
            (["x", "y", "  "], "expected a name that a run can hold, got \"  \""),
        ] {
            let line = of(&names).unwrap_err().to_string();
            assert_eq!(line, format!("names of texts, row 2: {want}"));
        }
    }
}
