//! Why a request is refused, as JSON for programs and as a page for people.

use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::frame;

/// The longest line of a refusal, in bytes.
const MOST_LINE: usize = 64 << 10;

/// A status and one line. [`show`] lays it out.
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

    /// There is no such photograph any more.
    pub(crate) fn gone() -> Self {
        let line = "The photograph was moved or deleted, or cannot be read any more.";
        Self::new(StatusCode::GONE, line)
    }

    /// The queue is full.
    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Too many requests wait. Try again in a second.")
    }
}

/// A mistake in a request: what was expected at a place, and what was there.
pub(crate) fn bad(place: &str, expected: &str, got: &str) -> Refusal {
    let got = if got.is_empty() { "nothing" } else { got };
    let got: String = got.chars().take(80).collect();
    itm_core::Error::invalid(place, expected, got).into()
}

/// What the library refuses is a mistake in the request: a query, a filter, a picture that was sent.
impl From<itm_core::Error> for Refusal {
    fn from(error: itm_core::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, self.line).into_response()
    }
}

/// Shows every refusal, also one of the framework's own, as its address promises: to programs as `{"error": …}`, to people as a page.
pub(crate) async fn show(request: Request, next: Next) -> Response {
    let of_programs = ["/api", "/knn-service", "/indices-list"];
    let is_program = of_programs.iter().any(|at| request.uri().path().starts_with(at));
    let answer = next.run(request).await;
    let status = answer.status();
    if !status.is_client_error() && !status.is_server_error() {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let line = to_bytes(body, MOST_LINE).await.unwrap_or_default();
    let line = match line.is_empty() {
        true => status.canonical_reason().unwrap_or_default().into(),
        false => String::from_utf8_lossy(&line),
    };
    let mut shown = match status {
        _ if is_program => Json(serde_json::json!({ "error": line })).into_response(),
        StatusCode::UNAUTHORIZED => frame::token().into_response(),
        _ => frame::refused(&line).into_response(),
    };
    *shown.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        shown.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    parts.headers.remove(header::CONTENT_TYPE);
    parts.headers.remove(header::CONTENT_LENGTH);
    shown.headers_mut().extend(parts.headers);
    shown
}
