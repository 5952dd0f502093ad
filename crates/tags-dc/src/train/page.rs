//! The paper's Figure 4: the words of a caption, coloured by how little they match an image, with the corrections of a model; and the
//! negatives that the model makes from the caption.

use itm_report::format::decimals;
use itm_report::html::scroll;
use maud::{Markup, PreEscaped, html};

use super::SentenceText;

/// An image and a caption as a model sees both.
#[derive(Debug, Clone)]
pub struct PairSentences {
    /// Name of the image.
    pub name: String,
    /// Address of the picture, if there is one.
    pub picture: Option<String>,
    /// What image and caption are to each other.
    pub relation: &'static str,
    /// The caption.
    pub caption: SentenceText,
    /// Negatives that the model makes from the caption, the best first, and whether the image denies each, if that is known; empty if the
    /// caption belongs to another image.
    pub negatives: Vec<(SentenceText, Option<bool>)>,
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
pub fn page(pairs: &[PairSentences]) -> Markup {
    html! {
        style { (PreEscaped(STYLE)) }
        p.note {
            "A stronger colour means that a word matches the image less, by the model's word discrimination head (half: undecided). After \
             an arrow: the word that the word correction head proposes; corrected: the sentence with these words. Underlined: words that the model changed. Scores: the probability \
             that sentence and image match."
        }
        div.judged { @for pair in pairs { (one(pair)) } }
    }
}

fn one(pair: &PairSentences) -> Markup {
    html! {
        article {
            div {
                @if let Some(address) = &pair.picture { img alt=(pair.name) src=(address); }
                @else { p.by { (pair.name) } }
            }
            div {
                p.by { (pair.relation) " · " (pair.name) " · score " (score(&pair.caption)) }
                p.caption { (sentence(&pair.caption)) }
                @if pair.caption.words.iter().any(|word| word.matches.is_some()) {
                    (scroll("Words of the caption", numbers(&pair.caption)))
                }
                @if !pair.negatives.is_empty() {
                    p.by { "Negatives of the model, the best first" }
                    ol { @for (negative, denied) in &pair.negatives {
                        li {
                            (sentence(negative)) " "
                            span.note { "score " (score(negative)) (truth(*denied)) }
                            @if let Some(corrected) = negative.corrected.as_ref().filter(|text| **text != negative.text) {
                                br; span.note { "corrected: " (corrected) }
                            }
                        }
                    } }
                }
            }
        }
    }
}

fn score(caption: &SentenceText) -> String {
    decimals(f64::from(caption.score), 3)
}

fn truth(denied: Option<bool>) -> &'static str {
    match denied {
        Some(true) => " · truly false",
        Some(false) => " · true",
        None => "",
    }
}

fn sentence(caption: &SentenceText) -> Markup {
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

fn numbers(caption: &SentenceText) -> Markup {
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
    use crate::train::WordText;

    #[test]
    fn words_have_the_colour_of_their_mismatch() {
        let word = |text: &str, matches, correction: Option<&str>| WordText {
            text: text.into(),
            at: None,
            changed: correction.is_some(),
            matches: Some(matches),
            restored: false,
            correction: correction.map(String::from),
        };
        let words = vec![word("red", 0.1, Some("<blue>")), word("ball", 0.95, Some("cup"))];
        let corrected = Some("blue <ball>".to_owned());
        let caption =
            SentenceText { text: String::new(), score: 0.25, below: false, words, corrected };
        let pair = PairSentences {
            name: "7".into(),
            picture: None,
            relation: "annotated pair",
            caption: caption.clone(),
            negatives: vec![(caption, Some(true))],
        };
        let page = page(&[pair]).into_string();
        assert!(page.contains("--strength:90%\">red</span><span class=\"note\"> → &lt;blue&gt;"));
        assert!(
            page.contains("--strength:5%\">ball</span> "),
            "a word that matches needs no arrow"
        );
        assert!(page.contains("score 0.250 · truly false"), "{page}");
        assert!(page.contains("corrected: blue &lt;ball&gt;"), "{page}");
    }
}
