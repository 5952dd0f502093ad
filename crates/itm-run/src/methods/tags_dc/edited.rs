//! Captions with one change that makes them false of their image, by rules and without a model.

use itm_core::Result;
use itm_core::data::Part;
use tags_dc::edits::{Captions, Edits, NounTable, Quota, Rules, each};
use tags_dc::fluency::{self, Trigrams};
use tags_dc::phrases::{Sentence, parse};
use tags_dc::record::Kind;

use crate::report::Fluency;

/// VSE-C's kinds.
const KINDS: [Kind; 3] = [Kind::Noun, Kind::Numeral, Kind::Relation];
/// Seed of the draws.
const SEED: u64 = 0;

/// A caption with one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    /// Number of the caption.
    pub(crate) text: usize,
    /// The kind of the edit; `None` if the kind was drawn.
    pub(crate) kind: Option<&'static str>,
    pub(crate) sentence: String,
}

/// For each caption, one edit of a drawn kind, and one edit of every kind. The training captions decide which noun may replace which.
///
/// # Errors
/// Edits have no errors, and no writer can fail here.
pub(crate) fn edited(train: &Part, part: &Part) -> Result<Vec<Edited>> {
    let parsed = |image| -> Vec<Sentence> {
        train.pairs.texts_of(image).iter().map(|&text| parse(&train.captions[text])).collect()
    };
    let training: Vec<_> = (0..train.pairs.images()).map(parsed).collect();
    let edits = Edits { nouns: NounTable::fit(&training), rules: Rules::VseC };
    let texts = |image| part.pairs.texts_of(image);
    let captions = |image: usize| Captions {
        id: image.to_string(),
        texts: texts(image).iter().map(|&text| part.captions[text].clone()).collect(),
    };
    let images: Vec<_> = (0..part.pairs.images()).map(captions).collect();
    let mut all = vec![];
    let mut of = |kinds: &[Kind], kind: Option<&'static str>| {
        let wanted = Quota { seed: SEED, per_caption: 1, kinds: kinds.to_vec() };
        each(&images, &edits, &wanted, |record| {
            let (image, number) = record.caption.split_once('#').expect("as ids are made");
            let [image, number] = [image, number].map(|n| n.parse::<usize>().expect("a number"));
            all.push(Edited { text: texts(image)[number], kind, sentence: record.text });
            Ok(())
        })
    };
    of(&KINDS, None)?;
    for (kind, name) in KINDS.into_iter().zip(["noun", "numeral", "relation"]) {
        of(&[kind], Some(name))?;
    }
    Ok(all)
}

/// A language model of the training captions, which measures how well sentences read.
pub(crate) struct Reader(Trigrams);

impl Reader {
    pub(crate) fn of(train: &Part) -> Self {
        Self(Trigrams::fit(train.captions.iter().map(String::as_str)))
    }

    /// The fluency of these sentences; `None` if there are none.
    pub(crate) fn fluency<'a>(
        &self,
        sentences: impl IntoIterator<Item = &'a str>,
    ) -> Option<Fluency> {
        let read = fluency::Fluency::of(&self.0, sentences)?;
        let fluency::Fluency { mean_perplexity, of_mean_sentence, of_mean_word, sentences } = read;
        Some(Fluency { mean_perplexity, of_mean_sentence, of_mean_word, sentences })
    }
}
