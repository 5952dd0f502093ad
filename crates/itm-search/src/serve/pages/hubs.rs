//! All hubs of an index.

use axum::response::Html;
use maud::html;

use crate::serve::ask::Ask;
use crate::serve::layout::{image, name, number, page as frame};
use crate::serve::state::State;

/// Hubs of the page.
const MOST: usize = 200;

pub(super) fn page(state: &State) -> Html<String> {
    let index = state.searcher.index();
    let most = state.hubs.first().map_or(1, |&first| state.answers(first)[0].max(1));
    let body = html! {
        p.count { a #back href="/" { "← All pictures" } }
        h1 { "Hubs" }
        p.lead {
            "A hub is a picture that answers far more queries than others, whatever they ask. "
            "Each picture was ranked for " (number(index.bank().len())) " ordinary queries; these " (number(state.hubs.len()))
            " are the first answer more than two standard deviations above the mean. "
            @if state.corrects() { "The correction is " code { (index.correction()) } "." } @else { "No correction has fewer hubs on these queries, so nothing is corrected." }
        }
        @if state.hubs.is_empty() { div.none { h2 { "This index has no hub." } } }
        ol.hubs {
            @for &picture in state.hubs.iter().take(MOST) {
                @let [plain, corrected] = state.answers(picture);
                li { a.tile href=(format!("/picture/{picture}")) title=(index.pictures()[picture].path) {
                    img src=(image(state, "/thumbnails", picture, &[])) alt=(name(state, picture)) loading="lazy" decoding="async";
                    span.bars {
                        meter.plain min="0" max=(most) value=(plain) {}
                        span { (number(plain as usize)) " uncorrected" }
                        meter.corrected min="0" max=(most) value=(corrected) {}
                        span { (number(corrected as usize)) " corrected" }
                    }
                } }
            }
        }
    };
    frame(state, "Hubs – itm", &Ask::default(), html! {}, body)
}
