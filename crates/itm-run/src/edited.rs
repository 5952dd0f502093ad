//! Compares test captions with edits of them that are false of their image: Table 4 of TAGS-DC, for any model.
//!
//! ```text
//! below = #{edits with s(image, edit) < s(image, caption)} / #{edits}          a tie counts against the model
//! ```
//!
//! The edits are VSE-C's: they replace a noun, a number or a relation. One edit is drawn per caption, its kind first.

use std::collections::BTreeMap;

use itm_core::learn::Items;
use itm_core::significance::Share;
use itm_core::{Pairs, Result};

use crate::bench::Model;
use crate::methods::{self, Reader};
use crate::report::{EditedCaptions, Fluency};
use crate::source::Source;
use crate::split::Split;

/// Counts per test image, for one trained row and seed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OfImages {
    /// Counts over the drawn edits.
    below: Vec<[u64; 2]>,
    /// Counts over the edits of each kind.
    by_kind: BTreeMap<&'static str, Vec<[u64; 2]>>,
    ties: u64,
    /// Captions that no rule changes.
    without: u64,
    /// Fluency of the captions, and of the drawn edits.
    fluency: [Option<Fluency>; 2],
}

/// Scores edits of the test captions; `None` unless the target has this measure on.
///
/// # Errors
/// If an edit cannot be read as the row reads captions, or an item cannot be read.
pub(crate) fn measure(source: &Source, model: &Model, asked: bool) -> Result<Option<OfImages>> {
    if !asked {
        return Ok(None);
    }
    let (part, reading) = (&source.dataset.test, model.reading()?);
    let edits = methods::edited(&source.dataset.train, part)?;
    let own = part.pairs.texts();
    let mut texts = reading.texts(Split::Test).to_vec();
    let mut image_of = part.pairs.image_of_text().to_vec();
    for edit in &edits {
        texts.push(reading.read(&edit.sentence)?);
        image_of.push(part.pairs.image_of(edit.text));
    }
    let pairs = Pairs::new(part.pairs.images(), image_of.clone())?;
    let items = Items { texts: &texts, pairs: &pairs, ..model.inputs.items(Split::Test) };
    let all: Vec<usize> = (0..texts.len()).collect();
    let scores = model.method.scored(items)?.pairs(&image_of, &all)?;
    let mut counts = OfImages { below: vec![[0; 2]; part.pairs.images()], ..OfImages::default() };
    let mut drawn = vec![false; own];
    for (k, edit) in edits.iter().enumerate() {
        let (caption, changed) = (scores[edit.text], scores[own + k]);
        let (image, below) = (image_of[edit.text], u64::from(changed < caption));
        let of = match edit.kind {
            None => {
                drawn[edit.text] = true;
                counts.ties += u64::from(changed == caption);
                &mut counts.below
            }
            Some(kind) => {
                let none = || vec![[0; 2]; part.pairs.images()];
                counts.by_kind.entry(kind).or_insert_with(none)
            }
        };
        of[image][0] += below;
        of[image][1] += 1;
    }
    let reader = Reader::of(&source.dataset.train);
    let read = edits.iter().filter(|edit| edit.kind.is_none()).map(|edit| &edit.sentence[..]);
    let captions = part.captions.iter().map(String::as_str);
    counts.fluency = [reader.fluency(captions), reader.fluency(read)];
    counts.without = drawn.iter().filter(|drawn| !**drawn).count() as u64;
    Ok(Some(counts))
}

/// The shares over all seeds of a row; `None` if nothing was measured.
pub(crate) fn summarise(runs: &[&OfImages]) -> Option<EditedCaptions> {
    let first = runs.first()?;
    let share = |of: &dyn Fn(&OfImages) -> Option<&Vec<[u64; 2]>>| {
        let runs: Vec<&[[u64; 2]]> = runs.iter().filter_map(|run| Some(&of(run)?[..])).collect();
        Share::over(&runs)
    };
    let kinds = first.by_kind.keys();
    let kinds =
        kinds.filter_map(|&kind| Some((kind.to_owned(), share(&|run| run.by_kind.get(kind))?)));
    Some(EditedCaptions {
        below: share(&|run| Some(&run.below))?,
        by_kind: kinds.collect(),
        ties: runs.iter().map(|run| run.ties).sum(),
        without: first.without,
        fluency_of_captions: first.fluency[0],
        fluency: first.fluency[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, two seeds of two images: 3 of 4 and 1 of 2 drawn edits below; nouns 1 of 1 and 0 of 1.
    #[test]
    fn golden_shares_of_two_seeds() {
        let of = |below, nouns, ties| OfImages {
            below,
            by_kind: BTreeMap::from([("noun", nouns)]),
            ties,
            without: 3,
            fluency: [None; 2],
        };
        let (first, second) = (
            of(vec![[2, 2], [1, 2]], vec![[1, 1], [0, 0]], 1),
            of(vec![[1, 2], [0, 0]], vec![[0, 1], [0, 0]], 0),
        );
        let got = summarise(&[&first, &second]).unwrap();
        assert_eq!((got.below.value, got.below.of), (4.0 / 6.0, 6));
        assert_eq!((got.by_kind["noun"].value, got.by_kind["noun"].of), (0.5, 2));
        assert_eq!((got.ties, got.without), (1, 3));
        assert_eq!(summarise(&[]), None);
    }
}
