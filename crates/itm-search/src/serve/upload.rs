//! A picture that somebody sends.

use axum::body::Bytes;
use axum::extract::{Multipart, Query as Parameters, Request, State as Extract};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};

use image::DynamicImage;
use itm_core::data::upright_bytes;

use super::api::{Reply, answer};
use super::ask::{Ask, AskParameters};
use super::pages;
use super::refusal::Refusal;
use super::state::SharedState;
use crate::Query;

/// Bytes of a picture that is sent.
pub(crate) const MOST: usize = 20 << 20;
/// Bytes of a request: Base64 and JSON make a third more of a picture.
pub(crate) const MOST_BODY: usize = MOST / 3 * 4 + (64 << 10);

/// Refuses an upload before its body is read: if it is too long, or while others are read, because each is held in memory.
pub(crate) async fn place(Extract(state): SharedState, request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > MOST_BODY as u64) {
        return large().into_response();
    }
    match state.uploads.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_) => Refusal::busy().into_response(),
    }
}

/// More than 20 MiB.
pub(crate) fn large() -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "A picture has at most 20 MiB.")
}

/// A picture that somebody sent: its head is checked before anything is decoded.
pub(crate) fn picture(bytes: &[u8]) -> Result<DynamicImage, Refusal> {
    if bytes.len() > MOST {
        return Err(large());
    }
    Ok(DynamicImage::ImageRgb8(upright_bytes("the picture", bytes)?))
}

/// `POST /like`: the form with a file.
pub(crate) async fn page(
    Extract(state): SharedState,
    mut form: Multipart,
) -> Result<Html<String>, Refusal> {
    let bad = |error: axum::extract::multipart::MultipartError| {
        Refusal::new(error.status(), error.body_text())
    };
    while let Some(field) = form.next_field().await.map_err(bad)? {
        if field.name() == Some("picture") {
            let bytes = field.bytes().await.map_err(bad)?;
            let at = state.clone();
            let found = state.searches.run(move || {
                let options = Ask::default().options(pages::TOP, false)?;
                Ok(at.searcher.search(&Query::image(picture(&bytes)?), &options)?)
            });
            return Ok(pages::like_sent(&state, found.await?));
        }
    }
    Err(Refusal::new(StatusCode::BAD_REQUEST, "The form has no picture."))
}

/// `POST /api/v1/similar`: the body is a JPEG, PNG or WebP.
pub(crate) async fn api(
    Extract(state): SharedState,
    Parameters(ask): AskParameters,
    body: Bytes,
) -> Reply {
    answer(state, ask, move |_, _| Ok(Query::image(picture(&body)?))).await
}
