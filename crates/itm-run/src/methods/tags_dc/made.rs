//! The sentences that a model makes from captions: of the test split, and beside pairs with how well their words match.

use itm_core::Result;
use itm_core::data::Split;
use maud::Markup;
use tags_dc::train::{Caption, PairSentences, SentenceText, TagsDc, page};

use super::filler;
use crate::model::Model;
use crate::report::{self, Pair, PairKind};
use crate::source::Source;

/// A sentence that a model makes from a test caption.
#[derive(Debug, Clone)]
pub(super) struct Made {
    /// Number of the caption.
    pub(super) text: usize,
    pub(super) sentence: SentenceText,
}

/// The sentences that a trained model makes from the test captions; `None` if it makes none, or without a truth.
///
/// # Errors
/// If an item cannot be read.
pub(super) fn sentences(source: &Source, model: &Model) -> Result<Option<Vec<Made>>> {
    let (part, Some(_)) = source.part(Split::Test) else { return Ok(None) };
    let Some((method, words)) = filler_with_words(model) else { return Ok(None) };
    let (items, spell) = (model.inputs.items(Split::Test), |text: &str| model.reading.words(text));
    let mut all = vec![];
    for (text, caption) in part.captions.iter().enumerate() {
        let of = Caption { items, text, caption, words: &words, spell: &spell };
        let Some(made) = method.sentences(&of)? else { return Ok(None) };
        all.extend(made.into_iter().map(|sentence| Made { text, sentence }));
    }
    Ok(Some(all))
}

/// The pairs as the model sees them; `None` if the model has no word heads, or a caption is a set of stems.
///
/// # Errors
/// If an item cannot be read.
pub(super) fn judged(model: &Model, split: Split, pairs: &[Pair]) -> Result<Option<Markup>> {
    let Some((method, words)) = filler_with_words(model) else { return Ok(None) };
    let (items, spell) = (model.inputs.items(split), |text: &str| model.reading.words(text));
    let mut all = vec![];
    for &Pair { image, text, kind } in pairs {
        let caption = &model.source.part(split).0.captions[text];
        let of = Caption { items, text, caption, words: &words, spell: &spell };
        let is_own = kind == PairKind::Annotated;
        let negatives = if is_own { method.sentences(&of)?.unwrap_or_default() } else { vec![] };
        let denied = |sentence: SentenceText| {
            let denied = model.source.denies(split, image, &sentence.text);
            (sentence, denied)
        };
        let picture = model.source.picture(split, image);
        all.push(PairSentences {
            picture: (!picture.bytes.is_empty()).then(|| report::data_url(&picture)),
            name: picture.name,
            relation: report::kind(kind),
            caption: method.caption(&of, image)?,
            negatives: negatives.into_iter().map(denied).collect(),
        });
    }
    Ok(Some(page(&all)))
}

/// The model with the word of each number, if it fills in words and reads captions as words or word pieces.
fn filler_with_words<'a>(model: &'a Model) -> Option<(&'a TagsDc, Vec<String>)> {
    Some((filler(&*model.method)?, model.reading.spelled_by_number()?))
}
