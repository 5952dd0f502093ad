//! A photograph: what is known of it, why a query finds it, similar ones.

use axum::response::Html;
use maud::{Markup, html};

use crate::serve::ask::Ask;
use crate::serve::layout::{address, image, name, number, page as frame};
use crate::serve::state::{State, when};
use crate::{Hit, Why};

pub(super) fn page(
    state: &State,
    ask: &Ask,
    picture: usize,
    similar: &[Hit],
    why: Option<&Why>,
) -> Html<String> {
    let word = why.and_then(|why| ask.word.parse().ok().filter(|&at: &usize| at < why.words.len()));
    let of = &state.searcher.index().pictures()[picture];
    let body = html! {
        p.count { a #back href=(address("/", &ask.kept())) { "← " (back(ask)) } }
        article.photograph {
            div.stage {
                img src=(image(state, "/previews", picture, &[])) alt=(name(state, picture)) width=(of.size[0]) height=(of.size[1]);
                @if let Some(word) = word { img #heat.heat src=(heat(state, ask, picture, word)) alt=""; }
            }
            div.facts {
                h1 { (name(state, picture)) }
                (facts(state, picture))
                (hub(state, picture))
                @if let Some(why) = why { (words(state, ask, picture, why, word)) }
                p { a href=(address("/", &[("like", &picture.to_string())])) { "Pictures like this" } }
            }
        }
        @if !similar.is_empty() {
            h2 { "Similar" }
            ol.grid.small {
                @for hit in similar {
                    li { a.tile href=(format!("/picture/{}", hit.picture)) title=(state.searcher.index().pictures()[hit.picture].path) {
                        img src=(image(state, "/thumbnails", hit.picture, &[])) alt=(name(state, hit.picture)) loading="lazy" decoding="async";
                        span.line { span.score { (format!("{:.3}", hit.score)) } }
                    } }
                }
            }
        }
    };
    frame(state, name(state, picture), ask, html! {}, body)
}

/// What the page is called that a photograph was opened from.
fn back(ask: &Ask) -> String {
    match ask.q.trim() {
        _ if !ask.like.is_empty() => "Similar pictures".into(),
        "" if ask.filters() => "Filtered pictures".into(),
        "" => "All pictures".into(),
        q => format!("Results for “{q}”"),
    }
}

fn heat(state: &State, ask: &Ask, picture: usize, word: usize) -> String {
    image(state, "/heat", picture, &[("q", &ask.q), ("word", &word.to_string())])
}

fn facts(state: &State, picture: usize) -> Markup {
    let of = &state.searcher.index().pictures()[picture];
    html! {
        dl {
            dt { @if of.taken.is_some() { "Taken" } @else { "Written" } } dd { (when(of).replace('T', " ")) }
            @if let Some(camera) = &of.camera { dt { "Camera" } dd { (camera) } }
            @if let Some([latitude, longitude]) = of.place { dt { "Place" } dd { (format!("{latitude:.4}, {longitude:.4}")) } }
            dt { "Size" } dd { (of.size[0]) " × " (of.size[1]) ", " (size(of.bytes)) }
            dt { "Path" } dd.path { (of.path) }
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn hub(state: &State, picture: usize) -> Markup {
    let index = state.searcher.index();
    let [plain, corrected] = state.answers(picture).map(|count| number(count as usize));
    html! {
        p.note.is-hub[state.is_hub(picture)] {
            @if state.is_hub(picture) { "A " a href="/hubs" { "hub" } ": it answers " } @else { "It answers " }
            (plain) " of " (number(index.bank().len())) " ordinary queries, and " (corrected) " with the correction."
        }
    }
}

fn words(state: &State, ask: &Ask, picture: usize, why: &Why, chosen: Option<usize>) -> Markup {
    html! {
        section.why {
            h2 { "Where each word is found" }
            p.words {
                @for (k, (word, cosines)) in why.words.iter().enumerate() {
                    @let word_is = k.to_string();
                    @let parameters = [&ask.kept()[..], &[("word", if chosen == Some(k) { "" } else { &word_is })]].concat();
                    a href=(address(&format!("/picture/{picture}"), &parameters)) data-heat=(heat(state, ask, picture, k)) aria-current=[(chosen == Some(k)).then_some("true")] {
                        (word) small { (format!("{:.2}", cosines.iter().copied().fold(f32::MIN, f32::max))) }
                    }
                }
            }
            p.note { "The number is the largest cosine of a patch with the word." }
        }
    }
}
