//! Errors of a step: their places.

use itm_core::Error;

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
