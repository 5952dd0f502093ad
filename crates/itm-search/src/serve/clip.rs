//! The interface of clip-retrieval's back end, so that its clients search here.

use std::collections::HashSet;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State as Extract;
use axum::http::HeaderMap;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Reply, digits};
use super::ask::MOST;
use super::guard::host;
use super::layout::image;
use super::refusal::{Refusal, bad};
use super::state::{SharedState, State};
use super::upload::picture;
use crate::{Filter, Hit, Options, Query};

/// The name of the only index.
const INDEX: &str = "itm";

/// A request. Clients send more (a safety model, an aesthetic score): nothing here depends on these.
#[derive(Debug, Deserialize)]
pub(crate) struct Knn {
    text: Option<String>,
    /// Base64 of a file.
    image: Option<String>,
    image_url: Option<String>,
    embedding_input: Option<Value>,
    modality: Option<String>,
    num_images: Option<usize>,
    num_result_ids: Option<usize>,
    deduplicate: Option<bool>,
    /// Ours: `false` ranks by the cosine.
    corrected: Option<bool>,
}

/// `GET /indices-list`.
pub(crate) async fn indices() -> Json<[&'static str; 1]> {
    Json([INDEX])
}

/// `POST /knn-service`. The body is JSON, whatever its type is called: the Python client names none.
pub(crate) async fn knn(Extract(state): SharedState, headers: HeaderMap, body: Bytes) -> Reply {
    let host = host(&headers).unwrap_or_default().to_owned();
    let at = state.clone();
    let done = state.searches.run(move || {
        let knn: Knn = serde_json::from_slice(&body)
            .map_err(|error| bad("the body", "JSON", &error.to_string()))?;
        let shown = knn.num_images.unwrap_or(20);
        let top = knn.num_result_ids.unwrap_or(shown).max(shown).clamp(1, MOST);
        let query = knn.query(&at)?;
        let corrected = knn.corrected.unwrap_or(true);
        let options = Options { top, corrected, threshold: None, filter: Filter::default() };
        let mut hits = at.searcher.search(&query, &options)?.hits;
        if knn.deduplicate == Some(true) {
            let mut seen = HashSet::new();
            hits.retain(|hit| seen.insert(&at.searcher.index().pictures()[hit.picture].sha256));
        }
        Ok(hits.iter().enumerate().map(|(k, hit)| result(&at, hit, &host, k < shown)).collect())
    });
    Ok(Json(done.await?))
}

impl Knn {
    fn query(&self, state: &State) -> Result<Query, Refusal> {
        if self.modality.as_deref().is_some_and(|modality| modality != "image") {
            return Err(bad("modality", "image", self.modality.as_deref().unwrap_or_default()));
        }
        if self.image_url.is_some() {
            return Err(bad("image_url", "nothing: this server fetches nothing", "an address"));
        }
        if self.embedding_input.as_ref().is_some_and(|value| !value.is_null()) {
            return Err(bad("embedding_input", "text or image", "an embedding"));
        }
        match (self.text.as_deref().filter(|text| !text.is_empty()), &self.image) {
            (Some(text), None) => Ok(Query::parse(text, state.searcher.index())?),
            (None, Some(image)) => {
                let bytes = BASE64_STANDARD
                    .decode(image)
                    .map_err(|error| bad("image", "base64", &error.to_string()))?;
                Ok(Query::image(picture(&bytes)?))
            }
            _ => Err(bad("the body", "one of text and image", "none or both")),
        }
    }
}

/// A result: what it is, for the first `num_images`; a number and a score for the others.
fn result(state: &State, hit: &Hit, host: &str, shown: bool) -> Value {
    let (id, similarity) = (hit.picture, digits(hit.score));
    if !shown {
        return json!({ "id": id, "similarity": similarity });
    }
    let index = state.searcher.index();
    let path = &index.pictures()[id].path;
    let token = [("token", state.token.as_deref().unwrap_or_default())];
    json!({
        "id": id, "similarity": similarity, "caption": path, "image_path": path,
        "image": index.thumbnail(id).ok().map(|jpeg| BASE64_STANDARD.encode(jpeg)),
        "url": format!("http://{host}{}", image(state, "/previews", id, &token)),
    })
}
