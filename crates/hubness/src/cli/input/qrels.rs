//! TREC's judgements: `qid 0 docid relevance`.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use itm_core::data::excerpt;
use itm_core::files::utf8;
use itm_core::{Error, Result};

use super::text::{each_line, fields};

/// Judged pairs of names, in the order of the file.
///
/// ```
/// use hubness::cli::input::Qrels;
///
/// let qrels = Qrels::parse("qrels", b"cap7 0 img1 1\ncap7 0 img2 0\n")?;
/// assert!(qrels.judged[0].relevance > 0);
/// let error = Qrels::parse("qrels", b"cap7 img1 1\n").unwrap_err().to_string();
/// assert_eq!(error, "qrels line 1: expected qid 0 docid relevance (4 fields), got 3 fields in \"cap7 img1 1\"");
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qrels {
    /// One per line.
    pub judged: Vec<Judgement>,
}

/// One judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The query.
    pub query: String,
    /// The judged document.
    pub doc: String,
    /// Above 0: relevant.
    pub relevance: i64,
}

impl Qrels {
    /// Reads a file.
    ///
    /// # Errors
    /// If a line does not have four fields, a relevance is not an integer, or a pair is judged twice; if the file is empty.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self> {
        let text = utf8(place, bytes)?;
        let mut seen = HashSet::new();
        let judged = each_line(place, text, "a judgement on each line", |here, line| {
            let expected = "qid 0 docid relevance (4 fields)";
            let [query, _, doc, relevance] = fields(here, line, expected)?;
            let Ok(relevance) = relevance.parse() else {
                let expected = "an integer as relevance";
                return Err(Error::invalid(here(), expected, excerpt(relevance)));
            };
            if !seen.insert((query, doc)) {
                let got = format!("{} and {} again", excerpt(query), excerpt(doc));
                return Err(Error::invalid(here(), "each pair once", got));
            }
            Ok(Judgement { query: query.into(), doc: doc.into(), relevance })
        })?;
        Ok(Self { judged })
    }

    /// Queries and documents swapped.
    pub(crate) fn reversed(mut self) -> Self {
        self.judged.iter_mut().for_each(|one| std::mem::swap(&mut one.query, &mut one.doc));
        self
    }

    /// Refuses images and texts as queries: the judgements of two directions in one file.
    ///
    /// # Errors
    /// If names that only images have and names that only texts have are queries.
    pub(crate) fn check_direction(
        &self,
        place: &str,
        is_image: impl Fn(&str) -> bool,
        is_text: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let only = |name: &str| (is_image(name) != is_text(name)).then(|| is_image(name));
        let from_image = |one: &Judgement| Some((only(&one.query)?, only(&one.doc)?));
        let known = self.judged.iter().filter_map(from_image);
        let mut from = known.filter(|(query, doc)| query != doc).map(|(query, _)| query);
        let fits = from.next().is_none_or(|first| from.all(|other| other == first));
        Error::unless(fits, place, "queries of one side, images or texts", "queries of both")
    }

    /// The judgements with images as queries. A file has the queries of one direction first: the one in which more names fit.
    ///
    /// # Errors
    /// As [`check_direction`](Self::check_direction), and if both fit as many judgements, and it matters.
    pub(crate) fn images_first(
        self,
        place: &str,
        is_image: impl Fn(&str) -> bool,
        is_text: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        self.check_direction(place, &is_image, &is_text)?;
        let fits = |image: &str, text: &str| usize::from(is_image(image) && is_text(text));
        let one_way: usize = self.judged.iter().map(|one| fits(&one.query, &one.doc)).sum();
        let other_way: usize = self.judged.iter().map(|one| fits(&one.doc, &one.query)).sum();
        match one_way.cmp(&other_way) {
            Ordering::Less => Ok(self.reversed()),
            Ordering::Equal if one_way > 0 && self.judged.iter().any(|j| j.query != j.doc) => {
                let expected = "names that tell images from texts";
                Err(Error::invalid(place, expected, "names that images and texts share"))
            }
            _ => Ok(self),
        }
    }

    /// The images of every text that has one. Images must be the queries.
    pub(crate) fn images_of_text(&self) -> HashMap<&str, Vec<&str>> {
        let mut images_of = HashMap::<_, Vec<_>>::new();
        for one in self.judged.iter().filter(|one| one.relevance > 0) {
            images_of.entry(one.doc.as_str()).or_default().push(one.query.as_str());
        }
        images_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of two runs without names are row numbers, which images and texts share.
    #[test]
    fn images_come_first_by_both_columns() {
        let read = |text: &str, [images, texts]: [usize; 2]| {
            let row = |of: usize| move |name: &str| name.parse().is_ok_and(|row: usize| row < of);
            let of_file = Qrels::parse("q", text.as_bytes()).unwrap();
            let judged = of_file.images_first("q", row(images), row(texts));
            judged
                .map(|qrels| qrels.judged.into_iter().map(|j| j.query + &j.doc).collect::<Vec<_>>())
        };
        let texts_first = "0 0 0 1\n1 0 0 1\n2 0 1 1\n";
        assert_eq!(read(texts_first, [2, 3]).unwrap(), ["00", "01", "12"]);
        assert_eq!(read(texts_first, [3, 2]).unwrap(), ["00", "10", "21"]);
        assert_eq!(
            read("0 0 1 1\n1 0 0 1\n", [2, 2]).unwrap_err().to_string(),
            "q: expected names that tell images from texts, got names that images and texts share"
        );
        assert_eq!(read("0 0 0 1\n1 0 1 1\n", [2, 2]).unwrap(), ["00", "11"], "either way");
    }

    #[test]
    fn malformed_lines_have_their_number() {
        let line = |bytes: &[u8]| Qrels::parse("q", bytes).unwrap_err().to_string();
        for (bytes, want) in [
            (
                "a 0 b 1\n\n",
                "q line 2: expected qid 0 docid relevance (4 fields), got an empty line",
            ),
            (
                "a 0 b 1 x\n",
                "q line 1: expected qid 0 docid relevance (4 fields), got more fields in \"a 0 b 1 x\"",
            ),
            ("a 0 b yes\n", "q line 1: expected an integer as relevance, got \"yes\""),
            ("a 0 b 1\na 0 b 0", "q line 2: expected each pair once, got \"a\" and \"b\" again"),
            ("", "q: expected a judgement on each line, got an empty file"),
        ] {
            assert_eq!(line(bytes.as_bytes()), want);
        }
    }

    #[test]
    fn a_text_may_have_several_images() {
        let qrels = Qrels::parse("q", b"i1 0 t1 1\ni2 0 t1 2\ni2 0 t2 0\n").unwrap();
        assert_eq!(qrels.images_of_text(), HashMap::from([("t1", vec!["i1", "i2"])]));
        let turned = qrels.reversed();
        assert_eq!(
            turned.images_of_text(),
            HashMap::from([("i1", vec!["t1"]), ("i2", vec!["t1"])])
        );
    }
}
