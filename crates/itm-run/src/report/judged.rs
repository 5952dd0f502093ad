//! TAGS-DC's Figure 4: the words of a caption, coloured by how little they match an image, with the corrections of a
//! model; and the negatives that the model makes from the caption.

use itm_report::format::decimals;
use itm_report::html::scroll;
use maud::{Markup, PreEscaped, html};

use super::PairKind;
use super::examples::data_url;
use super::word_patches::kind;
use crate::source::Picture;

/// A pair as a model judges it.
#[derive(Debug, Clone)]
pub(crate) struct JudgedPair {
    /// The image.
    pub(crate) picture: Picture,
    /// What image and caption are to each other.
    pub(crate) kind: PairKind,
    /// The caption.
    pub(crate) caption: JudgedCaption,
    /// Negatives that the model makes from the caption, the best first; empty if the caption belongs to another image.
    pub(crate) negatives: Vec<JudgedCaption>,
}

/// A caption, or a negative of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgedCaption {
    /// How probable it is that caption and image match.
    pub(crate) score: f32,
    /// The words in order.
    pub(crate) words: Vec<JudgedText>,
    /// Whether the image denies the sentence, if that is known.
    pub(crate) denied: Option<bool>,
}

/// A word of a caption or of a negative.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgedText {
    /// As it is written.
    pub(crate) text: String,
    /// Its number among the words of the caption; a punctuation mark has none.
    pub(crate) at: Option<usize>,
    /// Whether the caption has another word there.
    pub(crate) changed: bool,
    /// How probable it is that the word matches the image; `None` if the model has no word heads.
    pub(crate) matches: Option<f32>,
    /// Whether the model's word correction head proposes the caption's own word here.
    pub(crate) restored: bool,
    /// The word that this head proposes, if it is another word than the written one.
    pub(crate) correction: Option<String>,
}

/// Styles that only this page needs.
const STYLE: &str = "
.judged { display: grid; gap: 1.5rem; margin-top: 1rem; }
.judged article { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: 1rem; }
.judged img { width: 100%; height: auto; border-radius: .25rem; }
.judged .caption { font-size: 1.15rem; line-height: 1.9; margin: 0 0 .5rem; }
.judged .word { border-radius: .2rem; padding: .05rem .25rem; --strength: 0%; background: color-mix(in oklab, var(--s0) var(--strength), transparent); }
.judged .changed { text-decoration: underline; text-underline-offset: .25em; }
@media (max-width: 40rem) { .judged article { grid-template-columns: 1fr; } .judged img { max-width: 14rem; } }
";

/// Pairs, each with its picture.
pub(super) fn render(pairs: &[JudgedPair]) -> Markup {
    html! {
        style { (PreEscaped(STYLE)) }
        p.note {
            "A stronger colour means that a word matches the image less, by the model's word discrimination head (half: undecided). After \
             an arrow: the word that the word correction head proposes. Underlined: words that the model changed. Scores: the probability \
             that sentence and image match."
        }
        div.judged { @for pair in pairs { (one(pair)) } }
    }
}

fn one(pair: &JudgedPair) -> Markup {
    html! {
        article {
            div {
                @if pair.picture.bytes.is_empty() { p.by { (pair.picture.name) } }
                @else { img alt=(pair.picture.name) src=(data_url(&pair.picture)); }
            }
            div {
                p.by { (kind(pair.kind)) " · " (pair.picture.name) " · score " (score(&pair.caption)) }
                p.caption { (sentence(&pair.caption)) }
                @if pair.caption.words.iter().any(|word| word.matches.is_some()) {
                    (scroll("Words of the caption", numbers(&pair.caption)))
                }
                @if !pair.negatives.is_empty() {
                    p.by { "Negatives of the model, the best first" }
                    ol { @for negative in &pair.negatives {
                        li {
                            (sentence(negative)) " "
                            span.note { "score " (score(negative)) (truth(negative.denied)) }
                        }
                    } }
                }
            }
        }
    }
}

fn score(caption: &JudgedCaption) -> String {
    decimals(f64::from(caption.score), 3)
}

fn truth(denied: Option<bool>) -> &'static str {
    match denied {
        Some(true) => " · truly false",
        Some(false) => " · true",
        None => "",
    }
}

fn sentence(caption: &JudgedCaption) -> Markup {
    html! {
        @for word in &caption.words {
            @let percent = word.matches.map_or(0.0, |matches| (100.0 * (1.0 - matches)).round());
            span.word.changed[word.changed] style=(format!("--strength:{percent}%")) { (word.text) }
            @if let Some(correction) = word.correction.as_ref().filter(|_| word.matches.is_some_and(|p| p < 0.5)) {
                span.note { " → " (correction) }
            }
            " "
        }
    }
}

fn numbers(caption: &JudgedCaption) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "word" } th scope="col" { "matches" } th scope="col" { "correction" }
            } }
            tbody { @for word in &caption.words { tr {
                th scope="row" { (word.text) }
                td { @if let Some(matches) = word.matches { (decimals(f64::from(matches), 3)) } @else { "–" } }
                td { @if let Some(correction) = &word.correction { (correction) } @else { "–" } }
            } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_colour_of_their_mismatch() {
        let word = |text: &str, matches, correction: Option<&str>| JudgedText {
            text: text.into(),
            at: None,
            changed: correction.is_some(),
            matches: Some(matches),
            restored: false,
            correction: correction.map(String::from),
        };
        let words = vec![word("red", 0.1, Some("<blue>")), word("ball", 0.95, Some("cup"))];
        let caption = JudgedCaption { score: 0.25, words, denied: Some(true) };
        let picture = Picture { name: "7".into(), mime: "image/png", bytes: vec![] };
        let pair = JudgedPair {
            picture,
            kind: PairKind::Annotated,
            caption: caption.clone(),
            negatives: vec![caption],
        };
        let page = render(&[pair]).into_string();
        assert!(page.contains("--strength:90%\">red</span><span class=\"note\"> → &lt;blue&gt;"));
        assert!(
            page.contains("--strength:5%\">ball</span> "),
            "a word that matches needs no arrow"
        );
        assert!(page.contains("score 0.250 · truly false"), "{page}");
    }
}
