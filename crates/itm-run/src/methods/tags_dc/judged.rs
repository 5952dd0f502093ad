//! How well the words of captions match images by the model's word heads, and the negatives that the model makes.

use itm_core::Result;
use maud::Markup;
use tags_dc::train::{PairSentences, SentenceText, page};

use super::{caption, filler};
use crate::model::Model;
use crate::report::{self, Pair, PairKind};
use crate::split::Split;

/// The pairs as the model sees them; `None` if the model has no word heads, or a caption is a set of stems.
///
/// # Errors
/// If an item cannot be read.
pub(super) fn pairs(model: &Model, split: Split, pairs: &[Pair]) -> Result<Option<Markup>> {
    let (Some(method), Some(words)) = (filler(&*model.method), model.reading.spelled_by_number())
    else {
        return Ok(None);
    };
    let spell = |text: &str| model.reading.words(text);
    let mut all = vec![];
    for &Pair { image, text, kind } in pairs {
        let of = caption(model, (split, text), &words, &spell);
        let negatives = match kind {
            PairKind::Annotated => method.sentences(&of)?.unwrap_or_default(),
            PairKind::FalseNegative | PairKind::MostSimilar | PairKind::Asked => vec![],
        };
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
