//! Why a request is refused, as JSON for programs and as a page for people.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::frame;

/// A status and one line.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) line: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, line: impl Into<String>) -> Self {
        Self { status, line: line.into() }
    }

    /// There is no such address or picture.
    pub(crate) fn missing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is nothing at this address.")
    }

    /// The queue is full.
    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Too many requests wait. Try again in a second.")
    }

    fn answer(&self, body: impl IntoResponse) -> Response {
        let mut answer = (self.status, body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            answer.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        answer
    }
}

/// What the library refuses is a mistake in the request: a query, a filter, a picture that was sent.
impl From<itm_core::Error> for Refusal {
    fn from(error: itm_core::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

/// For programs: `{"error": …}`. A page for people must return [`ForPeople`].
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.answer(Json(serde_json::json!({ "error": self.line })))
    }
}

/// A refusal that a person reads.
#[derive(Debug)]
pub(crate) struct ForPeople(Refusal);

impl<E: Into<Refusal>> From<E> for ForPeople {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ForPeople {
    fn into_response(self) -> Response {
        self.0.answer(frame::refused(&self.0.line))
    }
}
