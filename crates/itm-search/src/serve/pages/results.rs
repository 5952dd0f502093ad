//! The first screen, and answers.

use std::collections::HashSet;

use axum::response::Html;
use maud::{Markup, html};

use crate::serve::ask::{Ask, MOST};
use crate::serve::layout::{address, image, name, number, page as frame};
use crate::serve::state::{State, when};
use crate::{Answer, Hit};

/// Which scores rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ranking {
    Corrected,
    Cosine,
    Both,
}

impl Ranking {
    const ALL: [(Self, &str, &str); 3] = [
        (Self::Corrected, "corrected", "Corrected"),
        (Self::Cosine, "cosine", "Uncorrected"),
        (Self::Both, "both", "Side by side"),
    ];

    pub(super) fn read(text: &str) -> Option<Self> {
        let found =
            Self::ALL.iter().find(|(_, value, _)| *value == text).map(|(scores, ..)| *scores);
        found.or_else(|| text.is_empty().then_some(Self::Corrected))
    }
}

/// What a page shows.
pub(super) enum PageContent {
    /// No query: pictures, the newest first.
    Newest(Vec<usize>),
    /// Answers, and whether their scores are corrected.
    Answers(Vec<(bool, Answer)>),
}

pub(super) fn page(
    state: &State,
    ask: &Ask,
    scores: Ranking,
    top: usize,
    found: &PageContent,
) -> Html<String> {
    let words = matches!(found, PageContent::Answers(answers) if !ask.q.trim().is_empty() && !answers.is_empty());
    let below = html! {
        div.tools {
            @if words { (switch(ask, scores)) }
            (filters(state, ask))
        }
    };
    let title = if words { format!("{} – itm", ask.q.trim()) } else { "itm".into() };
    let (name, content) = match found {
        PageContent::Newest(all) => ("All pictures", newest(state, ask, top, all)),
        PageContent::Answers(answers) => {
            let name = if words { ask.q.trim() } else { "Similar pictures" };
            (name, self::answers(state, ask, top, answers))
        }
    };
    frame(state, &title, ask, below, html! { h1.unseen { (name) } (content) })
}

fn here(ask: &Ask) -> String {
    address("/", &ask.kept())
}

fn switch(ask: &Ask, chosen: Ranking) -> Markup {
    html! {
        nav.switch aria-label="Scores" {
            @for (scores, value, label) in Ranking::ALL {
                a href=(here(&Ask { scores: value.into(), ..ask.clone() })) aria-current=[(scores == chosen).then_some("true")] { (label) }
            }
        }
    }
}

fn filters(state: &State, ask: &Ask) -> Markup {
    html! {
        details.filters open[ask.filters()] {
            summary { "Filter" }
            div.panel {
                form action="/" {
                    input type="hidden" name="q" value=(ask.q);
                    @if !ask.like.is_empty() { input type="hidden" name="like" value=(ask.like); }
                    @if !ask.scores.is_empty() { input type="hidden" name="scores" value=(ask.scores); }
                    label { "Folder "
                        select name="folder" {
                            option value="" { "all" }
                            @for folder in &state.folders { option value=(folder) selected[*folder == ask.folder] { (folder) } }
                        }
                    }
                    label { "Taken from " (date("after", &ask.after)) }
                    label { "before " (date("before", &ask.before)) }
                    button { "Apply" }
                    @if ask.filters() { a href=(here(&Ask { folder: String::new(), after: String::new(), before: String::new(), top: String::new(), ..ask.clone() })) { "Clear" } }
                }
                form #sent action="/like" method="post" enctype="multipart/form-data" {
                    label { "Like a picture " input type="file" name="picture" accept="image/jpeg,image/png,image/webp" required; }
                    button { "Find" }
                }
            }
        }
    }
}

/// A date of the filter. A field for whole dates would lose `2020` and `2024-05-01T12:30`.
fn date(name: &str, value: &str) -> Markup {
    let kind = if matches!(value.len(), 0 | 10) { "date" } else { "text" };
    html! { input type=(kind) name=(name) value=(value); }
}

fn newest(state: &State, ask: &Ask, top: usize, all: &[usize]) -> Markup {
    html! {
        @if all.is_empty() { (nothing(ask, 0)) }
        @else {
            p.count { "The newest of " (number(all.len())) " pictures" }
            ol.grid {
                @for &picture in all.iter().take(top) { (tile(state, picture, &address(&format!("/picture/{picture}"), &ask.kept()), None, false)) }
            }
            (more(ask, top, all.len()))
        }
    }
}

/// Why no picture is shown, though `candidates` pass the filter.
fn nothing(ask: &Ask, candidates: usize) -> Markup {
    let why = match (ask.filters(), ask.like.is_empty()) {
        _ if candidates > 0 && !ask.threshold.is_empty() => "No picture reaches this threshold.",
        (false, _) => "The index has no other picture.",
        (true, true) => "No picture passes this filter.",
        (true, false) => "No other picture passes this filter.",
    };
    html! { div.none { h2 { "No picture here." } p { (why) } } }
}

fn answers(state: &State, ask: &Ask, top: usize, answers: &[(bool, Answer)]) -> Markup {
    let sets: Vec<HashSet<usize>> = answers
        .iter()
        .map(|(_, answer)| answer.hits.iter().map(|hit| hit.picture).collect())
        .collect();
    let both = answers.len() == 2;
    let shown = answers.iter().map(|(_, answer)| answer.hits.len()).max().unwrap_or(0);
    let candidates = answers.first().map_or(0, |(_, answer)| answer.candidates);
    html! {
        @if !ask.like.is_empty() { (like(state, ask)) }
        div.columns.two[both] {
            @for (k, (corrected, answer)) in answers.iter().enumerate() {
                section {
                    @if both { h2 { @if *corrected { "Corrected" small { " " (correction(state)) } } @else { "Uncorrected" } } }
                    @if answer.hits.is_empty() { (nothing(ask, answer.candidates)) }
                    @else if !answer.found { (no_match(answer)) }
                    ol.grid.grey[!answer.found] {
                        @for hit in &answer.hits {
                            @let only = both && !sets[1 - k].contains(&hit.picture);
                            (tile(state, hit.picture, &address(&format!("/picture/{}", hit.picture), &ask.kept()), Some((hit, *corrected)), only))
                        }
                    }
                }
            }
        }
        @if shown == top { (more(ask, top, candidates)) }
    }
}

fn like(state: &State, ask: &Ask) -> Markup {
    let picture =
        ask.like.parse().ok().filter(|&at: &usize| at < state.searcher.index().pictures().len());
    html! {
        @if let Some(picture) = picture {
            p.count { "Pictures like " a href=(format!("/picture/{picture}")) { (name(state, picture)) } }
        }
    }
}

fn correction(state: &State) -> &str {
    if state.corrects() { state.searcher.index().correction() } else { "not needed" }
}

fn no_match(answer: &Answer) -> Markup {
    let best = answer.hits.first().map_or(0.0, |hit| hit.score);
    html! {
        div.none {
            h2 { "Nothing here matches." }
            p { "The best picture has a score of " (format!("{best:.3}")) ". Half of the ordinary queries reach " (format!("{:.3}", answer.level)) " or more. The nearest pictures follow." }
        }
    }
}

fn tile(
    state: &State,
    picture: usize,
    href: &str,
    scored: Option<(&Hit, bool)>,
    only: bool,
) -> Markup {
    let index = state.searcher.index();
    let of = &index.pictures()[picture];
    html! {
        li.only[only] {
            a.tile href=(href) title=(of.path) {
                img src=(image(state, "/thumbnails", picture, &[])) alt=(name(state, picture)) width=(of.size[0]) height=(of.size[1]) loading="lazy" decoding="async";
                span.line {
                    @match scored {
                        Some((hit, corrected)) => {
                            span.score { (format!("{:.3}", hit.score)) }
                            @if corrected && state.corrects() { span.soft title="cosine" { (format!("{:.3}", hit.cosine)) } }
                        }
                        None => span.soft { (&when(of)[..10]) },
                    }
                    @if only { span.mark { "only here" } }
                }
                @if state.is_hub(picture) {
                    span.hub title=(format!("A hub: it answers {} of {} ordinary queries", number(state.answers(picture)[0] as usize), number(index.bank().len()))) {
                        "hub " (number(state.answers(picture)[0] as usize))
                    }
                }
            }
        }
    }
}

fn more(ask: &Ask, top: usize, all: usize) -> Markup {
    let next = (2 * top).min(MOST);
    html! {
        @if all > top && next > top { p.more { a href=(here(&Ask { top: next.to_string(), ..ask.clone() })) { "Show more" } } }
    }
}
