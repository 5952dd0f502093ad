//! What can be had of what was read.

use crate::Direction;
use crate::cli::analysis::Offer;
use crate::cli::input::{Length, Loaded, LoadedScores};

/// Above so many scores, proximity is not counted unless asked for.
const COUNTED: usize = 20_000_000;

/// What the input allows where these directions ask.
pub(super) fn offer(loaded: &Loaded, directions: &[Direction], length: Length) -> Offer {
    let (images, texts) = (loaded.images(), loaded.texts());
    let held = |d: Direction| d.queries(&loaded.bank.images, &loaded.bank.texts).is_some();
    let few = |d: &Direction| d.queries(images, texts) < 2;
    Offer {
        bank: directions.iter().all(|&d| held(d)),
        item_bank: directions.iter().all(|&d| held(d.reversed())),
        cosines: matches!(loaded.scores, LoadedScores::Embeddings { .. }) && length == Length::Unit,
        run: matches!(loaded.scores, LoadedScores::Runs { .. }),
        large: images.saturating_mul(texts) > COUNTED,
        alone: images < 2 || directions.iter().any(few),
    }
}
