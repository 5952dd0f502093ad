//! Run files as score matrices: which names are rows and columns, and which entries the runs lack.

use std::collections::HashSet;

use itm_core::data::excerpt;
use itm_core::{Error, Pairs, Result, ScoreMatrix};

use super::loaded::{InputData, InputScores};
use super::messages::Messages;
use super::names::index;
use super::pairs::{name_the_lonely, true_pairs};
use super::qrels::Qrels;
use super::run::Run;
use crate::Direction;
use crate::report::PerDirection;
use crate::study::ItemNames;
use crate::words::{count, first_ten};

/// The largest number of scores in the matrix of a run: 4 GiB.
const LARGEST: usize = 1 << 30;

/// A run with its file's name.
pub(crate) struct RunFile {
    pub(crate) place: String,
    pub(crate) run: Run,
    pub(crate) direction: Direction,
}

impl RunFile {
    /// The names of the run that are queries of a direction.
    fn names(&self, asking: Direction) -> &[String] {
        if self.direction == asking { &self.run.queries } else { &self.run.docs }
    }
}

/// Puts runs and judgements on the same rows and columns. Names that are not `given` follow the order of the judgements, or are
/// sorted.
///
/// # Errors
/// If a name is not among the given names, or a matrix would be larger than 4 GiB.
pub(crate) fn spread(
    runs: &[RunFile],
    qrels: Option<(String, Qrels)>,
    given: ItemNames,
) -> Result<InputData> {
    let mut messages = Messages::default();
    let qrels = qrels.map(|judged| from_images(judged, runs)).transpose()?;
    if let Some((place, qrels)) = &qrels {
        runs.iter().try_for_each(|named| asks_the_judged(place, qrels, named))?;
    }
    let mut rows = |what: &str, given: Option<Vec<String>>, ask: Direction| {
        let judged = |(_, qrels): &(String, Qrels)| {
            qrels.judged.iter().map(|one| ask.queries(&one.query, &one.doc).clone()).collect()
        };
        let run = runs.iter().flat_map(|named| named.names(ask)).cloned().collect();
        order(what, given, qrels.as_ref().map(judged), run, &mut messages)
    };
    let images = rows("images", given.images, Direction::I2t);
    let texts = rows("texts", given.texts, Direction::T2i);
    let judged = qrels.as_ref();
    let pairs = judged.map(|judged| pairs(judged, &images, &texts, runs, &mut messages));
    let pairs = pairs.transpose()?;
    let mut scores = PerDirection::default();
    for named in runs {
        let run = dense(named, [&images, &texts], &mut messages)?;
        if let Some(pairs) = &pairs {
            let (of_images, of_texts) = pairs.list();
            let own = of_images.iter().zip(of_texts).map(|(&image, text)| run.row(image)[text]);
            // A missing true item is a miss at every K, even if the list has fewer than K entries.
            let missed = own.filter(|&score| score == f32::NEG_INFINITY).count();
            if missed > 0 {
                let (place, n) = (&named.place, count(missed, "true pair"));
                let line = format!("{place}: {n} not in the run: misses at every K");
                messages.warnings.push(line);
            }
        }
        *named.direction.queries(&mut scores.i2t, &mut scores.t2i) = Some(run);
    }
    let names = ItemNames { images: Some(images), texts: Some(texts) };
    let (scores, bank) = (InputScores::Runs(scores), PerDirection::default());
    Ok(InputData { scores, pairs, names, bank, messages })
}

/// The judgements with images first.
fn from_images((place, qrels): (String, Qrels), runs: &[RunFile]) -> Result<(String, Qrels)> {
    let names = |side: Direction| -> HashSet<&str> {
        runs.iter().flat_map(|named| named.names(side)).map(String::as_str).collect()
    };
    let [images, texts] = [Direction::I2t, Direction::T2i].map(names);
    let (is_image, is_text) =
        (|name: &str| images.contains(name), |name: &str| texts.contains(name));
    if let [RunFile { direction, .. }] = runs {
        qrels.check_direction(&place, is_image, is_text)?;
        // Its queries are the queries of the file.
        return Ok((place, if *direction == Direction::I2t { qrels } else { qrels.reversed() }));
    }
    let qrels = qrels.images_first(&place, is_image, is_text)?;
    Ok((place, qrels))
}

/// Refuses a run of which no query is judged: another data set, or swapped columns.
fn asks_the_judged(place: &str, qrels: &Qrels, named: &RunFile) -> Result<()> {
    let RunFile { place: run, run: Run { queries, .. }, direction } = named;
    let asks: HashSet<_> = queries.iter().map(String::as_str).collect();
    let any = |side: Direction| {
        qrels.judged.iter().any(|one| asks.contains(side.queries(&*one.query, &*one.doc)))
    };
    if any(*direction) {
        return Ok(());
    }
    let swapped =
        if any(direction.reversed()) { " (query and document columns swapped?)" } else { "" };
    let first = queries.first().map_or(String::new(), |query| excerpt(query));
    let expected = format!("judgements of the queries of {run}, such as {first}");
    Err(Error::invalid(place, expected, format!("none of them{swapped}")))
}

/// The rows of a side. Their order breaks ties, so a note names the order. A query without a judgement is a row too: it was asked, so hubs
/// and corrections count it.
fn order(
    what: &str,
    given: Option<Vec<String>>,
    judged: Option<Vec<String>>,
    run: Vec<String>,
    messages: &mut Messages,
) -> Vec<String> {
    let mut note = |how: &str| {
        messages.notes.push(format!("order of {what}, for ties and in matrices: {how}"))
    };
    if let Some(names) = given {
        note("as the names are given");
        return names;
    }
    let has_judged = judged.is_some();
    let mut seen = HashSet::new();
    let mut fresh = |name: &String| seen.insert(name.clone());
    let mut names: Vec<_> = judged.into_iter().flatten().filter(&mut fresh).collect();
    let mut rest: Vec<_> = run.into_iter().filter(&mut fresh).collect();
    rest.sort();
    let n = rest.len();
    let then = if n > 0 { format!(", then {n} others sorted") } else { String::new() };
    note(&if has_judged { format!("as in the judgements{then}") } else { "sorted names".into() });
    names.extend(rest);
    names
}

fn pairs(
    (place, qrels): &(String, Qrels),
    images: &[String],
    texts: &[String],
    runs: &[RunFile],
    messages: &mut Messages,
) -> Result<Pairs> {
    let mut of = qrels.images_of_text();
    let row = index(place, images)?;
    let find = |name: &str| {
        let expected = "an image among the given names";
        row.get(name).copied().ok_or_else(|| Error::invalid(place, expected, excerpt(name)))
    };
    let images_of = |text: &String| {
        of.remove(text.as_str()).unwrap_or_default().into_iter().map(find).collect()
    };
    let images_of_text = texts.iter().map(images_of).collect::<Result<_>>()?;
    let pairs = true_pairs(images.len(), images_of_text)?;
    let directions: Vec<_> = runs.iter().map(|named| named.direction).collect();
    name_the_lonely(&pairs, [Some(images), Some(texts)], &directions, messages);
    Ok(pairs)
}

/// The matrix of a run, whose names must all be known.
fn dense(
    RunFile { place, run, direction }: &RunFile,
    names: [&[String]; 2],
    messages: &mut Messages,
) -> Result<ScoreMatrix> {
    let [images, texts] = names.map(<[_]>::len);
    let Some(size) = images.checked_mul(texts).filter(|&size| size <= LARGEST) else {
        let expected = format!("at most {LARGEST} scores when spread out");
        return Err(Error::invalid(place, expected, format!("{images} × {texts}")));
    };
    let (queries, items) = direction.sides(names[0], names[1]);
    let (ask, answer) = (index(place, queries)?, index(place, items)?);
    let unknown_docs = run.docs.iter().filter(|doc| !answer.contains_key(doc.as_str()));
    let unknown = run.queries.iter().filter(|query| !ask.contains_key(query.as_str()));
    let refused: Vec<_> = unknown_docs.chain(unknown).collect();
    let got = format!("{}: {}", count(refused.len(), "other"), first_ten(&refused));
    Error::unless(refused.is_empty(), place, "only the given names", got)?;
    let docs: Vec<_> = run.docs.iter().map(|doc| answer[doc.as_str()]).collect();
    let mut values = vec![f32::NEG_INFINITY; size];
    let mut merged = 0;
    for (query, list) in run.queries.iter().zip(&run.lists) {
        let query = ask[query.as_str()];
        let mut sorted: Vec<_> = list.iter().map(|&(_, score)| score).collect();
        sorted.sort_by(f64::total_cmp);
        let same = |two: &&[f64]| two[0] != two[1] && two[0] as f32 == two[1] as f32;
        merged += sorted.windows(2).filter(same).count();
        for &(doc, given) in list {
            let (item, score) = (docs[doc as usize], given as f32);
            Error::unless(score.is_finite(), place, "scores that are finite in f32", given)?;
            let (image, text) = direction.sides(query, item);
            values[image * texts + text] = score;
        }
    }
    if merged > 0 {
        let n = count(merged, "pair");
        messages.warnings.push(format!(
            "{place}: {n} of neighbouring scores differ in f64 but not in f32: ties"
        ));
    }
    let present: HashSet<_> = run.queries.iter().collect();
    let empty: Vec<_> = queries.iter().filter(|name| !present.contains(name)).collect();
    if !empty.is_empty() {
        let n =
            if empty.len() == 1 { "1 query".into() } else { format!("{} queries", empty.len()) };
        messages.warnings.push(format!("{place}: {n} without an entry: {}", first_ten(&empty)));
    }
    ScoreMatrix::new(images, texts, values)
}

#[cfg(test)]
mod tests;
