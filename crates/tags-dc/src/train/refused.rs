//! Errors of a step: their places, and texts that the model cannot read.

use itm_core::{Error, Result};

use crate::model::Uniter;

/// Puts the place of an error inside an outer place.
pub(super) fn within(outer: impl std::fmt::Display) -> impl FnOnce(Error) -> Error {
    move |error| match error {
        Error::Invalid { place, expected, got } => {
            Error::Invalid { place: format!("{outer}, {place}"), expected, got }
        }
        other => other,
    }
}

pub(super) fn of_caption(caption: usize) -> impl FnOnce(Error) -> Error {
    within(format!("caption {caption}"))
}

/// Refuses texts, with `[CLS]` and `[SEP]`, that are empty, that need more positions than the model has, or that have a token outside its
/// table.
///
/// # Errors
/// The error names the text by `place`.
pub(super) fn check_tokens<C: AsRef<[u32]>>(
    model: &Uniter,
    texts: &[C],
    place: impl Fn(usize) -> String,
) -> Result<()> {
    let shape = &model.shape.text;
    for (k, text) in texts.iter().enumerate() {
        let text = text.as_ref();
        if text.is_empty() || text.len() > shape.positions {
            let expected = format!("1 to {} tokens, [CLS] and [SEP] included", shape.positions);
            return Err(Error::invalid(place(k), expected, text.len()));
        }
        if let Some(token) = text.iter().find(|&&token| token as usize >= shape.vocabulary) {
            let expected = format!("tokens below {}", shape.vocabulary);
            return Err(Error::invalid(place(k), expected, token));
        }
    }
    Ok(())
}
