//! Run files as score matrices: which names are rows and columns, and which entries the runs lack.

use std::collections::{HashMap, HashSet};

use itm_core::data::excerpt;
use itm_core::{Error, Pairs, Result, ScoreMatrix};

use super::messages::Messages;
use super::pairs::{name_the_lonely, true_pairs};
use super::qrels::Qrels;
use super::run::Run;
use crate::Direction;
use crate::words::{count, first_ten};

/// The largest number of scores in the matrix of a run: 4 GiB.
const LARGEST: usize = 1 << 30;

/// A run with its file's name.
pub(crate) struct RunFile {
    pub(crate) place: String,
    pub(crate) run: Run,
    pub(crate) direction: Direction,
}

/// The names that the user gave for each side. Other names follow the order of the judgements, or are sorted.
pub(crate) struct NameLists {
    pub(crate) images: Option<Vec<String>>,
    pub(crate) texts: Option<Vec<String>>,
}

/// Runs with one set of names.
pub(crate) struct RunMatrices {
    pub(crate) images: Vec<String>,
    pub(crate) texts: Vec<String>,
    pub(crate) pairs: Option<Pairs>,
    /// Images are always the rows. Only entries that the run lacks are −∞.
    pub(crate) scores: Vec<(Direction, ScoreMatrix)>,
}

/// Puts runs and judgements on the same rows and columns.
///
/// # Errors
/// If a name is not among the given names, or a matrix would be larger than 4 GiB.
pub(crate) fn spread(
    runs: &[RunFile],
    qrels: Option<(&str, Qrels)>,
    given: NameLists,
    messages: &mut Messages,
) -> Result<RunMatrices> {
    let qrels = qrels.map(|(place, qrels)| (place, from_images(qrels, runs)));
    if let Some((place, qrels)) = &qrels {
        runs.iter().try_for_each(|named| asks_the_judged(place, qrels, named))?;
    }
    let side = |ask: Direction| {
        let names = |named: &RunFile| {
            if named.direction == ask { named.run.queries.clone() } else { named.run.docs.clone() }
        };
        runs.iter().flat_map(names).collect::<Vec<_>>()
    };
    let judged = |names: fn(&Qrels) -> Vec<String>| qrels.as_ref().map(|(_, q)| names(q));
    let queries: fn(&Qrels) -> Vec<String> = |q| q.queries().map(String::from).collect();
    let docs: fn(&Qrels) -> Vec<String> = |q| q.docs().map(String::from).collect();
    let asked = |ask: Direction| qrels.is_some() && runs.iter().all(|n| n.direction == ask);
    let images = order(
        "images",
        given.images,
        judged(queries),
        side(Direction::I2t),
        asked(Direction::I2t),
        messages,
    );
    let texts = order(
        "texts",
        given.texts,
        judged(docs),
        side(Direction::T2i),
        asked(Direction::T2i),
        messages,
    );
    let pairs = match &qrels {
        None => None,
        Some((place, qrels)) => Some(pairs(place, qrels, &images, &texts, runs, messages)?),
    };
    let sides = SideIndex { images: index(&images), texts: index(&texts), strict: qrels.is_none() };
    let mut scores = Vec::new();
    for named in runs {
        let run = dense(named, &sides, messages)?;
        if let Some(pairs) = &pairs {
            let (of_images, of_texts) = pairs.list();
            let own = of_images.iter().zip(of_texts).map(|(&image, text)| run.row(image)[text]);
            // A missing true item is a miss at every K, even if the list has fewer than K entries.
            let missed = own.filter(|&score| score == f32::NEG_INFINITY).count();
            if missed > 0 {
                let n = count(missed, "true pair");
                messages.warn(format!("{}: {n} not in the run: misses at every K", named.place));
            }
        }
        scores.push((named.direction, run));
    }
    Ok(RunMatrices { images, texts, pairs, scores })
}

/// The judgements with images first. A file of judgements has the queries of one direction first.
fn from_images(qrels: Qrels, runs: &[RunFile]) -> Qrels {
    let known = |named: &&RunFile| {
        let asks: HashSet<_> = named.run.queries.iter().map(String::as_str).collect();
        qrels.queries().any(|query| asks.contains(query))
    };
    // One run needs no decision. With two runs images are the queries, unless the first run has none of their names.
    let direction = match runs {
        [one] => one.direction,
        _ => runs.iter().find(known).map_or(Direction::I2t, |named| named.direction),
    };
    match direction {
        Direction::I2t => qrels,
        Direction::T2i => qrels.reversed(),
    }
}

/// Refuses a run of which no query is judged: another data set, or swapped columns.
fn asks_the_judged(place: &str, qrels: &Qrels, named: &RunFile) -> Result<()> {
    let RunFile { place: run, run: Run { queries, .. }, direction } = named;
    let asks: HashSet<_> = queries.iter().map(String::as_str).collect();
    let [mut own, mut other]: [Box<dyn Iterator<Item = &str>>; 2] = match direction {
        Direction::I2t => [Box::new(qrels.queries()), Box::new(qrels.docs())],
        Direction::T2i => [Box::new(qrels.docs()), Box::new(qrels.queries())],
    };
    if own.any(|name| asks.contains(name)) {
        return Ok(());
    }
    let swapped = match other.any(|name| asks.contains(name)) {
        true => " (query and document columns swapped?)",
        false => "",
    };
    let first = queries.first().map_or(String::new(), |query| excerpt(query));
    let expected = format!("judgements of the queries of {run}, such as {first}");
    Err(Error::invalid(place, expected, format!("none of them{swapped}")))
}

/// The rows of a side. Their order breaks ties, so a note names the order.
fn order(
    what: &str,
    given: Option<Vec<String>>,
    judged: Option<Vec<String>>,
    run: Vec<String>,
    only_judged: bool,
    messages: &mut Messages,
) -> Vec<String> {
    if let Some(names) = given {
        messages.note(format!("order of {what} (it breaks ties): as the names are given"));
        return names;
    }
    let has_judged = judged.is_some();
    let mut seen = HashSet::new();
    let mut names: Vec<_> =
        judged.into_iter().flatten().filter(|name| seen.insert(name.clone())).collect();
    let mut rest: Vec<_> = run.into_iter().filter(|name| seen.insert(name.clone())).collect();
    rest.sort();
    if !has_judged {
        messages.note(format!("order of {what} (it breaks ties): sorted names"));
        return rest;
    }
    let n = rest.len();
    if only_judged {
        if n > 0 {
            let first = first_ten(&rest);
            messages.warn(format!("{n} of the query {what} not judged, left out: {first}"));
        }
        messages.note(format!("order of {what} (it breaks ties): as in the judgements"));
        return names;
    }
    let then = if n > 0 { format!(", then {n} others sorted") } else { String::new() };
    messages.note(format!("order of {what} (it breaks ties): as in the judgements{then}"));
    names.extend(rest);
    names
}

fn pairs(
    place: &str,
    qrels: &Qrels,
    images: &[String],
    texts: &[String],
    runs: &[RunFile],
    messages: &mut Messages,
) -> Result<Pairs> {
    let mut of = qrels.images_of_text();
    let row = index(images);
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

struct SideIndex<'a> {
    images: HashMap<&'a str, usize>,
    texts: HashMap<&'a str, usize>,
    /// Without judgements every name of the run must be known.
    strict: bool,
}

fn index(names: &[String]) -> HashMap<&str, usize> {
    names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect()
}

fn dense(named: &RunFile, sides: &SideIndex<'_>, messages: &mut Messages) -> Result<ScoreMatrix> {
    let RunFile { place, run, direction } = named;
    let (images, texts) = (sides.images.len(), sides.texts.len());
    let Some(size) = images.checked_mul(texts).filter(|&size| size <= LARGEST) else {
        let expected = format!("at most {LARGEST} scores when spread out");
        return Err(Error::invalid(place, expected, format!("{images} × {texts}")));
    };
    let (ask, answer) = (
        direction.queries(&sides.images, &sides.texts),
        direction.items(&sides.images, &sides.texts),
    );
    let docs: Vec<_> = run.docs.iter().map(|doc| answer.get(doc.as_str()).copied()).collect();
    let unknown: Vec<_> =
        run.docs.iter().filter(|doc| !answer.contains_key(doc.as_str())).collect();
    let strangers: Vec<_> = run.queries.iter().filter(|q| !ask.contains_key(q.as_str())).collect();
    let refused = if sides.strict { [&unknown[..], &strangers[..]].concat() } else { unknown };
    if !refused.is_empty() {
        let got = format!("{}: {}", count(refused.len(), "other"), first_ten(&refused));
        return Err(Error::invalid(place, "only the given names", got));
    }
    let mut values = vec![f32::NEG_INFINITY; size];
    let mut merged = 0;
    for (query, list) in run.queries.iter().zip(&run.lists) {
        let Some(&query) = ask.get(query.as_str()) else { continue };
        let mut sorted: Vec<_> = list.iter().map(|entry| entry.score).collect();
        sorted.sort_by(f64::total_cmp);
        merged += sorted
            .windows(2)
            .filter(|two| two[0] != two[1] && two[0] as f32 == two[1] as f32)
            .count();
        for entry in list {
            let Some(item) = docs[entry.doc as usize] else { continue };
            let score = entry.score as f32;
            if !score.is_finite() {
                let expected = "scores that are finite in f32";
                return Err(Error::invalid(place, expected, entry.score));
            }
            let (image, text) = (direction.queries(query, item), direction.items(query, item));
            values[image * texts + text] = score;
        }
    }
    if merged > 0 {
        let n = count(merged, "pair");
        messages.warn(format!(
            "{place}: {n} of neighbouring scores differ in f64 but not in f32: ties"
        ));
    }
    let empty: Vec<_> = {
        let present: HashSet<_> = run.queries.iter().map(String::as_str).collect();
        let mut absent: Vec<_> = ask.keys().filter(|name| !present.contains(*name)).collect();
        absent.sort_by_key(|name| ask[**name]);
        absent
    };
    if !empty.is_empty() {
        let n =
            if empty.len() == 1 { "1 query".into() } else { format!("{} queries", empty.len()) };
        messages.warn(format!("{place}: {n} without an entry: {}", first_ten(&empty)));
    }
    ScoreMatrix::new(images, texts, values)
}

#[cfg(test)]
mod tests;
