//! What a pair of towers needs of the data.

use std::path::PathBuf;

use itm_core::Result;
use itm_core::start::{BagPooling, TextForm};
use itm_core::text::Marks;
use itm_core::towers::{BagConfig, ImageConfig, LearningParts, ModelConfig, TextConfig};

use super::{ClosedForm, Facts};
use crate::encoded::{Captions, Cleaning};
use crate::inputs::Sees;
use crate::pictures::View;

/// The facts of a row with these towers, of which `parts` learn; `facts` has the others.
///
/// # Errors
/// If published weights are missing or do not fit the configuration.
pub(super) fn facts(model: &ModelConfig, parts: &LearningParts, facts: Facts) -> Result<Facts> {
    model.check_weights()?;
    let (captions, most_pieces) = captions(&model.text)?;
    let pooling = match model.text {
        TextConfig::Bag(BagConfig { pooling }) => pooling,
        _ => BagPooling::Off, // an encoder of words in their order begins with rows alone
    };
    let form = TextForm::Stems(pooling);
    let start = ClosedForm::of(model.closed_form(), model.embed_dim, form);
    let rows_of = if start.is_some() { rows_of(model)? } else { vec![] };
    let published = match (&model.image, &model.text) {
        (ImageConfig::Clip(image), TextConfig::Clip(text)) => image.weights == text.weights,
        _ => false,
    };
    let sees = sees(&model.image)?;
    let unchanged = matches!(sees, Sees::Pictures(View { augment: None, .. }));
    let keeps_states = parts.freezes() && unchanged;
    Ok(Facts { sees, captions, most_pieces, keeps_states, published, start, rows_of, ..facts })
}

fn rows_of(model: &ModelConfig) -> Result<Vec<PathBuf>> {
    let image = if let ImageConfig::Vit(vit) = &model.image { vit.weights.folder()? } else { None };
    let text = if let TextConfig::Bert(bert) = &model.text { bert.weights.folder()? } else { None };
    Ok(image.into_iter().chain(text).collect())
}

fn sees(image: &ImageConfig) -> Result<Sees> {
    let (augment, transform) = match image {
        ImageConfig::Features(_) => return Ok(Sees::Features),
        ImageConfig::Vit(vit) => (vit.augment, vit.transform()?),
        ImageConfig::Clip(clip) => (clip.augment, clip.transform()?),
    };
    Ok(Sees::Pictures(View { augment: augment.of(transform), transform }))
}

/// How captions are read, and the number of word pieces at which they are cut.
fn captions(text: &TextConfig) -> Result<(Captions, Option<usize>)> {
    Ok(match text {
        TextConfig::Gru(_) => (Captions::Words(Marks::Off), None),
        TextConfig::Bag(BagConfig { pooling: BagPooling::Off }) => (Captions::Rows, None),
        TextConfig::Bag(_) => (Captions::Stems, None),
        TextConfig::Bert(bert) => {
            let captions = match bert.weights.folder()? {
                Some(folder) if bert.sentence()?.is_some() => {
                    Captions::Pieces(folder, Cleaning::Raw)
                }
                Some(folder) => Captions::Pieces(folder, Cleaning::Cleaned),
                None => Captions::Words(Marks::StartEnd),
            };
            (captions, Some(bert.max_length))
        }
        TextConfig::Clip(clip) => {
            let (folder, shape) = clip.folder()?;
            (Captions::DualPieces(folder), Some(shape.text.positions))
        }
    })
}
