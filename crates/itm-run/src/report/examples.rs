//! Queries and their first answers, to look at.

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{Markup, html};

use super::{Example, Item, PairKind, RankedItem};
use crate::source::Thumbnail;

/// What the numbers beside the answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerNumbers {
    /// What the row ranks by.
    Scores,
    /// P(match | s) of items that are not annotated.
    Probabilities,
}

/// Renders nothing if there is no example.
pub(crate) fn render(examples: &[Example], numbers: AnswerNumbers) -> Markup {
    let said = match numbers {
        AnswerNumbers::Scores => {
            "Numbers are the scores of the row: cosines, or logits of a model that reads both sides together."
        }
        AnswerNumbers::Probabilities => {
            "Annotated items are left out. Numbers: the probability that an item is a false negative, \
             given its similarity, by the posterior of the chosen checkpoint."
        }
    };
    html! {
        @if !examples.is_empty() {
            p.note {
                span.mark.annotated { "✓ annotated" } " the data set says so · "
                span.mark.true { "≈ true" }
                " correct, but not annotated (a false negative; known where the truth is complete) · "
                span.mark.other { "✗" } " not known to be true. " (said)
            }
            div.examples { @for example in examples { (one(example, numbers)) } }
        }
    }
}

fn one(example: &Example, numbers: AnswerNumbers) -> Markup {
    let is_image = |item: &Item| matches!(item, Item::Image(_));
    let pictures = example.answers.iter().any(|a| is_image(&a.item));
    html! {
        article class=[is_image(&example.query).then_some("of-image")] {
            p.by {
                (example.row)
                @if let Some(rank) = example.annotated_rank { " · best annotated item at rank " (rank) }
            }
            div.query { (item(&example.query)) }
            ol class=(if pictures { "pictures" } else { "captions" }) {
                @for answer in &example.answers { (judged(answer, numbers)) }
            }
        }
    }
}

fn judged(answer: &RankedItem, numbers: AnswerNumbers) -> Markup {
    let (class, word) = match answer.mark {
        PairKind::Annotated => ("annotated", "✓ annotated"),
        PairKind::FalseNegative => ("true", "≈ true"),
        PairKind::MostSimilar | PairKind::Asked => ("other", "✗"),
    };
    // The prior of probabilities alone is 0.0001.
    let places = if numbers == AnswerNumbers::Scores { 2 } else { 4 };
    html! {
        li class=(class) {
            (item(&answer.item)) " "
            span.judged {
                span class={ "mark " (class) } { (word) }
                @if answer.score.is_finite() {
                    " " span.score { (itm_report::format::decimals(answer.score, places)) }
                }
            }
        }
    }
}

fn item(item: &Item) -> Markup {
    html! {
        @match item {
            Item::Caption(text) => q { (text) },
            Item::Image(Thumbnail { name, bytes, .. }) if bytes.is_empty() => span.absent { (name) },
            Item::Image(picture) => img src=(data_url(picture)) alt=(picture.name);,
        }
    }
}

/// The picture as a `data:` address.
pub(crate) fn data_url(picture: &Thumbnail) -> String {
    format!("data:{};base64,{}", picture.mime, BASE64_STANDARD.encode(&picture.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_scores_stand_beside_their_items() {
        let answer =
            |text: &str, score, mark| RankedItem { item: Item::Caption(text.into()), score, mark };
        let example = Example {
            row: "Full".into(),
            query: Item::Image(Thumbnail {
                name: "7.jpg".into(),
                mime: "image/png",
                bytes: vec![],
            }),
            answers: vec![
                answer("one", 0.514, PairKind::Annotated),
                answer("two", -0.2, PairKind::FalseNegative),
                answer("three", f64::NAN, PairKind::Asked),
            ],
            annotated_rank: Some(1),
        };
        let out = one(&example, AnswerNumbers::Scores).into_string();
        let items: Vec<_> =
            out.split("<li ").skip(1).map(|i| i.split("</li>").next().unwrap()).collect();
        let has = |k: usize, parts: &[&str]| {
            parts.iter().for_each(|p| assert!(items[k].contains(p), "{p}: {}", items[k]));
        };
        has(0, &["class=\"annotated\"", "<q>one</q>", "✓ annotated", ">0.51<"]);
        has(1, &["class=\"true\"", "<q>two</q>", "≈ true", ">−0.20<"]);
        has(2, &["class=\"other\"", "<q>three</q>", "✗"]);
        assert!(!items[2].contains("score") && out.contains("best annotated item at rank 1"));
        let probable = one(&example, AnswerNumbers::Probabilities).into_string();
        assert!(probable.contains(">0.5140<"), "{probable}");
        assert!(out.contains("<span class=\"absent\">7.jpg</span>") && !out.contains("<img"));
    }
}
