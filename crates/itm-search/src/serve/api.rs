//! The interface for programs, version 1: JSON under `/api/v1`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query as Parameters, State as Extract};
use serde_json::{Value, json};

use super::ask::{Ask, AskParameters};
use super::layout::image;
use super::refusal::{Refusal, bad};
use super::state::{SharedState, State, when};
use crate::{Answer, Hit, Query};

pub(crate) type Reply = Result<Json<Value>, Refusal>;

/// A picture as the interface shows it. `answers` are the ordinary queries that it is the first answer to: uncorrected, corrected.
fn describe(state: &State, picture: usize) -> Value {
    let of = &state.searcher.index().pictures()[picture];
    json!({
        "picture": picture,
        "path": of.path, "size": of.size, "sha256": of.sha256, "modified": of.modified,
        "taken": of.taken, "camera": of.camera, "place": of.place,
        "answers": state.answers(picture),
        "hub": state.is_hub(picture),
        "thumbnail": image(state, "/thumbnails", picture, &[]),
        "preview": image(state, "/previews", picture, &[]),
    })
}

/// An answer, best first: each hit is a picture with its scores.
fn reply(state: &State, answer: &Answer) -> Value {
    let hit = |hit: &Hit| {
        let mut about = describe(state, hit.picture);
        about["score"] = digits(hit.score);
        about["cosine"] = digits(hit.cosine);
        about
    };
    let hits: Vec<Value> = answer.hits.iter().map(hit).collect();
    let (found, level) = (answer.found, digits(answer.level));
    json!({ "found": found, "level": level, "candidates": answer.candidates, "hits": hits })
}

/// A number of single precision with its own digits: `json!` would show those of the double that is equal to it.
pub(crate) fn digits(value: f32) -> Value {
    value.to_string().parse::<f64>().expect("digits of a number").into()
}

/// `GET /api/v1`: the index.
pub(crate) async fn about(Extract(state): SharedState) -> Json<Value> {
    let (index, encoder) = (state.searcher.index(), state.searcher.encoder());
    let levels = [false, true].map(|corrected| digits(index.level(corrected)));
    Json(json!({
        "version": 1, "model": encoder.model().name, "width": index.width(), "pictures": index.pictures().len(),
        "queries": index.bank().len(), "correction": index.correction(), "hubs": state.hubs.len(),
        "levels": levels,
    }))
}

/// `GET /api/v1/search`.
pub(crate) async fn search(Extract(state): SharedState, Parameters(ask): AskParameters) -> Reply {
    let query = |state: &State, ask: &Ask| {
        ask.query(state)?.ok_or_else(|| bad("q", "words or a picture", ""))
    };
    answer(state, ask, query).await
}

/// `GET /api/v1/similar`.
pub(crate) async fn similar(Extract(state): SharedState, Parameters(ask): AskParameters) -> Reply {
    answer(state, ask, |state, ask| Ok(Query::like(state.number(&ask.picture)?))).await
}

/// Answers the query of an address.
pub(crate) async fn answer(
    state: Arc<State>,
    ask: Ask,
    query: impl FnOnce(&State, &Ask) -> Result<Query, Refusal> + Send + 'static,
) -> Reply {
    let at = state.clone();
    let done = state.searches.run(move || {
        let options = ask.options(20, ask.corrected()?)?;
        Ok(reply(&at, &at.searcher.search(&query(&at, &ask)?, &options)?))
    });
    Ok(Json(done.await?))
}

/// `GET /api/v1/hubs`: the pictures that answer most ordinary queries.
pub(crate) async fn hubs(Extract(state): SharedState, Parameters(ask): AskParameters) -> Reply {
    let first = state.hubs.iter().take(ask.top(20)?);
    let hubs: Vec<Value> = first.map(|&picture| describe(&state, picture)).collect();
    let queries = state.searcher.index().bank().len();
    Ok(Json(json!({ "queries": queries, "all": state.hubs.len(), "hubs": hubs })))
}

/// `GET /api/v1/pictures`: the newest pictures that pass the filter.
pub(crate) async fn pictures(Extract(state): SharedState, Parameters(ask): AskParameters) -> Reply {
    let all = newest(&state, &ask)?;
    let first = all.iter().take(ask.top(20)?);
    let index = state.searcher.index();
    let shown =
        |&at: &usize| json!({ "when": when(&index.pictures()[at]), "about": describe(&state, at) });
    let pictures: Vec<Value> = first.map(shown).collect();
    Ok(Json(json!({ "candidates": all.len(), "pictures": pictures })))
}

/// `GET /api/v1/pictures/{number}`.
pub(crate) async fn picture(Extract(state): SharedState, Path(number): Path<String>) -> Reply {
    Ok(Json(describe(&state, state.number(&number)?)))
}

/// `GET /api/v1/why`: for each word of a query, its cosine with each patch of a picture.
pub(crate) async fn why(Extract(state): SharedState, Parameters(ask): AskParameters) -> Reply {
    let at = state.clone();
    let done = state.searches.run(move || {
        let why = at.why(&ask.q, at.number(&ask.picture)?)?;
        Ok(match &*why {
            None => json!({ "grid": null, "words": [] }),
            Some(why) => {
                let word = |(word, cosines): &(String, Vec<f32>)| {
                    let cosines: Vec<Value> =
                        cosines.iter().map(|&cosine| digits(cosine)).collect();
                    json!({ "word": word, "cosines": cosines })
                };
                let words: Vec<Value> = why.words.iter().map(word).collect();
                json!({ "grid": why.grid, "words": words })
            }
        })
    });
    Ok(Json(done.await?))
}

/// The newest pictures that pass the filter of an address.
pub(crate) fn newest(state: &State, ask: &Ask) -> Result<Vec<usize>, Refusal> {
    let (filter, pictures) = (ask.filter(), state.searcher.index().pictures());
    filter.check()?;
    Ok(state.newest.iter().copied().filter(|&at| filter.passes(&pictures[at])).collect())
}
