//! How well the words of captions match images by the model's word heads, and the negatives that the model makes.

use itm_core::Result;

use super::sentences::{Caption, judged, sentences};
use crate::explanations::word_maps::Pair;
use crate::model::Model;
use crate::report::{JudgedCaption, JudgedPair, PairKind};
use crate::split::Split;

/// The pairs as the model judges them; `None` if it judges no words and makes no negatives.
///
/// # Errors
/// If an item cannot be read.
pub(super) fn pairs(
    model: &Model,
    split: Split,
    pairs: &[Pair],
) -> Result<Option<Vec<JudgedPair>>> {
    let (source, reading) = (model.source, model.reading);
    let (part, words) = (source.part(split).0, reading.spelled_by_number());
    let mut all = vec![];
    for pair in pairs {
        let of = Caption {
            items: model.inputs.items(split),
            text: pair.text,
            caption: &part.captions[pair.text],
            words: words.as_deref(),
            spell: &|text| reading.words(text),
        };
        let Some(caption) = judged(&*model.method, of, pair.image)? else {
            return Ok(None);
        };
        let negatives = match pair.kind {
            PairKind::Annotated => sentences(&*model.method, of)?.unwrap_or_default(),
            PairKind::FalseNegative | PairKind::MostSimilar | PairKind::Asked => vec![],
        };
        let negatives = negatives.into_iter().map(|made| JudgedCaption {
            denied: source.denies(split, pair.image, &made.text),
            ..made.judged
        });
        all.push(JudgedPair {
            picture: source.picture(split, pair.image),
            kind: pair.kind,
            caption: JudgedCaption {
                denied: source.denies(split, pair.image, &part.captions[pair.text]),
                ..caption
            },
            negatives: negatives.collect(),
        });
    }
    Ok(Some(all))
}
