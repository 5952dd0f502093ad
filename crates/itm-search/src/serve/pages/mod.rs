//! Pages: each works without JavaScript.

mod hubs;

mod photograph;
mod results;

use axum::extract::{Path, Query as Parameters, State as Extract};
use axum::response::Html;

use super::ask::{Ask, AskParameters};
use super::refusal::{Refusal, bad};
use super::state::{SharedState, State};
use super::{api, ask};
use crate::{Answer, Query};
use results::{PageContent, Ranking};

/// Pictures of a page.
pub(crate) const TOP: usize = 60;
/// Similar pictures below a picture.
const SIMILAR: usize = 12;

type Page = Result<Html<String>, Refusal>;

/// `GET /`: the newest pictures, or the answer to a query.
pub(crate) async fn home(Extract(state): SharedState, Parameters(ask): AskParameters) -> Page {
    let at = state.clone();
    let done = state.searches.run(move || {
        let scores = Ranking::read(&ask.scores)
            .ok_or_else(|| bad("scores", "corrected, cosine or both", &ask.scores))?;
        let top = ask.top(TOP)?;
        let found = match ask.query(&at)? {
            None => PageContent::Newest(api::newest(&at, &ask)?),
            Some(query) => PageContent::Answers(answers(&at, &query, &ask, scores, top)?),
        };
        Ok(results::page(&at, &ask, scores, top, &found))
    });
    done.await
}

fn answers(
    state: &State,
    query: &Query,
    ask: &Ask,
    scores: Ranking,
    top: usize,
) -> Result<Vec<(bool, Answer)>, Refusal> {
    let corrected: &[bool] = match scores {
        _ if !query.has_words() => &[false],
        Ranking::Corrected => &[true],
        Ranking::Cosine => &[false],
        Ranking::Both => &[true, false],
    };
    let one = |&corrected: &bool| {
        Ok((corrected, state.searcher.search(query, &ask.options(top, corrected)?)?))
    };
    corrected.iter().map(one).collect()
}

/// The answer to a picture that was sent.
pub(crate) fn like_sent(state: &State, answer: Answer) -> Html<String> {
    let found = PageContent::Answers(vec![(false, answer)]);
    results::page(state, &Ask::default(), Ranking::Corrected, ask::MOST, &found)
}

/// `GET /picture/{number}`: a photograph, why a query finds it, and similar ones.
pub(crate) async fn picture(
    Extract(state): SharedState,
    Path(number): Path<String>,
    Parameters(ask): AskParameters,
) -> Page {
    let (at, number) = (state.clone(), state.number(&number)?);
    let done = state.searches.run(move || {
        let options = Ask::default().options(SIMILAR, false)?;
        let similar = at.searcher.search(&Query::like(number), &options)?;
        let why = if ask.q.trim().is_empty() { None } else { Some(at.why(&ask.q, number)) };
        // Whoever lost the photograph still sees the page: the heat map alone needs its pixels.
        let why = why.and_then(Result::ok);
        let why = why.as_deref().and_then(Option::as_ref);
        Ok(photograph::page(&at, &ask, number, &similar.hits, why))
    });
    done.await
}

/// `GET /hubs`: the pictures that answer far more ordinary queries than others.
pub(crate) async fn hubs(Extract(state): SharedState) -> Page {
    Ok(hubs::page(&state))
}
