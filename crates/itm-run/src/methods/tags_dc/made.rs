//! The sentences that a model makes from the test captions.

use itm_core::Result;
use tags_dc::train::SentenceText;

use super::{caption, filler};
use crate::model::Model;
use crate::source::Source;
use crate::split::Split;

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
    let (Some(method), Some(words)) = (filler(&*model.method), model.reading.spelled_by_number())
    else {
        return Ok(None);
    };
    let spell = |text: &str| model.reading.words(text);
    let mut all = vec![];
    for text in 0..part.captions.len() {
        let of = caption(model, (Split::Test, text), &words, &spell);
        let Some(made) = method.sentences(&of)? else { return Ok(None) };
        all.extend(made.into_iter().map(|sentence| Made { text, sentence }));
    }
    Ok(Some(all))
}
