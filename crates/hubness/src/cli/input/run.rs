//! TREC run files: `qid Q0 docid rank score tag`.

use std::collections::HashSet;
use std::fmt::Write;

use indexmap::IndexSet;
use itm_core::data::excerpt;
use itm_core::files::utf8;
use itm_core::{Error, Result};

use super::text::{each_line, fields};

/// A run as the file holds it: documents with scores for each query.
///
/// Names are in the order of their first appearance. The rank column is checked to be a number and then ignored, as
/// `trec_eval` does: the score decides. Scores are kept in f64 and are finite.
///
/// ```
/// use hubness::cli::input::Run;
///
/// let run = Run::parse("run", b"q1 Q0 d7 1 0.9 me\nq1 Q0 d2 2 0.4 me\n")?;
/// assert_eq!((run.queries.len(), run.docs[1].as_str(), run.lists[0][1]), (1, "d2", (1, 0.4)));
/// let error = Run::parse("run", b"q1 Q0 d7 1 nan me\n").unwrap_err().to_string();
/// assert_eq!(error, "run line 1: expected a finite score, got \"nan\"");
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Names of the queries.
    pub queries: Vec<String>,
    /// Names of the documents.
    pub docs: Vec<String>,
    /// The retrieved documents of each query, in the order of the file.
    pub lists: Vec<RankedList>,
}

/// Documents by their index in [`Run::docs`], and their scores.
pub(crate) type RankedList = Vec<(u32, f64)>;

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    /// If a line does not have six fields, a rank is not a number, a score is not a finite number, or a query retrieves a
    /// document twice (the error names the line); if the file is empty.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self> {
        let text = utf8(place, bytes)?;
        let (mut queries, mut docs) = (IndexSet::new(), IndexSet::new());
        let mut lists: Vec<RankedList> = Vec::new();
        let mut seen = HashSet::new();
        each_line(place, text, "a retrieved document on each line", |here, line| {
            let expected = "qid Q0 docid rank score tag (6 fields)";
            let [query, _, doc, rank, score, _] = fields(here, line, expected)?;
            if rank.parse::<u64>().is_err() {
                return Err(Error::invalid(here(), "a number as rank", excerpt(rank)));
            }
            let Some(score) = score.parse().ok().filter(|score: &f64| score.is_finite()) else {
                return Err(Error::invalid(here(), "a finite score", excerpt(score)));
            };
            // A name per line; files of 2³² lines are beyond any memory.
            let pair = (queries.insert_full(query).0 as u32, docs.insert_full(doc).0 as u32);
            if !seen.insert(pair) {
                let got = format!("{} again for {}", excerpt(doc), excerpt(query));
                return Err(Error::invalid(here(), "each document once per query", got));
            }
            let (query, doc) = (pair.0 as usize, pair.1);
            if query == lists.len() {
                lists.push(Vec::new());
            }
            lists[query].push((doc, score));
            Ok(())
        })?;
        let names = |all: IndexSet<&str>| all.into_iter().map(String::from).collect();
        Ok(Self { queries: names(queries), docs: names(docs), lists })
    }
}

/// The text of a run: the documents and scores of each query in the order of its list, best first. Ranks count from 1. Scores
/// read back exactly.
///
/// Documents with a score of −∞ are left out: the run that was read does not hold them. Equal scores keep the order of the
/// list, but a reader of the file may order them differently: `trec_eval` takes the later name first.
///
/// # Errors
/// If a name or the tag is empty or contains a space.
///
/// # Panics
/// If there is not one list per query, or a list holds a document without a name.
pub(crate) fn run_text(
    queries: &[String],
    docs: &[String],
    lists: &[RankedList],
    tag: &str,
) -> Result<String> {
    assert_eq!(queries.len(), lists.len(), "one list per query");
    let is_no_word = |name: &&String| name.is_empty() || name.contains(|c: char| c.is_whitespace());
    let tag_name = tag.to_string();
    let mut names = queries.iter().chain(docs).chain([&tag_name]);
    if let Some(name) = names.find(is_no_word) {
        return Err(Error::invalid("run file", "names without spaces", excerpt(name)));
    }
    let mut text = String::new();
    for (list, name) in lists.iter().zip(queries) {
        let finite = list.iter().filter(|(_, score)| *score > f64::NEG_INFINITY);
        for (rank, &(doc, score)) in finite.enumerate() {
            let (rank, doc) = (rank + 1, &docs[doc as usize]);
            writeln!(text, "{name} Q0 {doc} {rank} {score:?} {tag}").expect("a text grows");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
