//! Queries and their first answers, for the eye.

use super::html::escape;
use super::{Answer, Example, Item, Mark, Picture};

/// What the numbers beside the answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scores {
    /// Cosines.
    Cosines,
    /// P(match | s) of items that are not annotated.
    Probabilities,
}

pub(super) fn render(out: &mut String, examples: &[Example], scores: Scores) {
    let said = match scores {
        Scores::Cosines => "Scores are cosines.",
        Scores::Probabilities => {
            "Annotated items are left out. Numbers: how probable a false negative it is at its \
             similarity, by the posterior as training left it."
        }
    };
    *out += &format!(
        "<p class=\"note\"><span class=\"mark annotated\">✓ annotated</span> the data set says \
             so · <span class=\"mark true\">≈ true</span> correct, but not annotated (a false \
             negative; known where the truth is complete) · <span class=\"mark other\">✗</span> \
             neither. {said}</p>\n<div class=\"examples\">\n"
    );
    for example in examples {
        one(out, example, scores);
    }
    *out += "</div>\n";
}

fn one(out: &mut String, example: &Example, scores: Scores) {
    let found = match example.annotated_rank {
        Some(rank) => format!(" · best annotated item at rank {rank}"),
        None => String::new(),
    };
    let row = escape(&example.row);
    let class = if matches!(example.query, Item::Image(_)) { " class=\"of-image\"" } else { "" };
    *out += &format!("<article{class}>\n<p class=\"by\">{row}{found}</p>\n<div class=\"query\">");
    item(out, &example.query);
    let pictures = example.answers.iter().any(|a| matches!(a.item, Item::Image(_)));
    *out += &format!("</div>\n<ol class=\"{}\">\n", if pictures { "pictures" } else { "captions" });
    for answer in &example.answers {
        let (class, word) = match answer.mark {
            Mark::Annotated => ("annotated", "✓ annotated"),
            Mark::TrueNotAnnotated => ("true", "≈ true"),
            Mark::Other => ("other", "✗"),
        };
        *out += &format!("<li class=\"{class}\">");
        item(out, &answer.item);
        let score = score(answer, scores);
        *out += &format!(
            " <span class=\"judged\"><span class=\"mark {class}\">{word}</span>{score}</span></li>\n"
        );
    }
    *out += "</ol>\n</article>\n";
}

fn score(answer: &Answer, scores: Scores) -> String {
    if !answer.score.is_finite() {
        return String::new();
    }
    let text = match scores {
        Scores::Cosines => format!("{:.2}", answer.score),
        Scores::Probabilities => format!("{:.4}", answer.score), // the prior alone is 0.0001
    };
    format!(" <span class=\"score\">{}</span>", text.replace('-', "−"))
}

fn item(out: &mut String, item: &Item) {
    *out += &match item {
        Item::Caption(text) => format!("<q>{}</q>", escape(text)),
        Item::Image(Picture { name, bytes, .. }) if bytes.is_empty() => {
            format!("<span class=\"absent\">{}</span>", escape(name))
        }
        Item::Image(Picture { name, mime, bytes }) => format!(
            "<img src=\"data:{};base64,{}\" alt=\"{}\">",
            escape(mime),
            base64(bytes),
            escape(name)
        ),
    };
}

/// Base64 of RFC 4648 §4, padded.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_scores_stand_beside_their_items() {
        let answer =
            |text: &str, score, mark| Answer { item: Item::Caption(text.into()), score, mark };
        let example = Example {
            row: "Full".into(),
            query: Item::Image(Picture { name: "7.jpg".into(), mime: "image/png", bytes: vec![] }),
            answers: vec![
                answer("one", 0.514, Mark::Annotated),
                answer("two", -0.2, Mark::TrueNotAnnotated),
                answer("three", f64::NAN, Mark::Other),
            ],
            annotated_rank: Some(1),
        };
        let mut out = String::new();
        one(&mut out, &example, Scores::Cosines);
        let items: Vec<_> =
            out.split("<li ").skip(1).map(|i| i.split("</li>").next().unwrap()).collect();
        let has = |k: usize, parts: &[&str]| {
            parts.iter().for_each(|p| assert!(items[k].contains(p), "{p}: {}", items[k]));
        };
        has(0, &["class=\"annotated\"", "<q>one</q>", "✓ annotated", ">0.51<"]);
        has(1, &["class=\"true\"", "<q>two</q>", "≈ true", ">−0.20<"]);
        has(2, &["class=\"other\"", "<q>three</q>", "✗"]);
        assert!(!items[2].contains("score") && out.contains("best annotated item at rank 1"));
        let mut probable = String::new();
        one(&mut probable, &example, Scores::Probabilities);
        assert!(probable.contains(">0.5140<"), "{probable}");
        assert!(out.contains("<span class=\"absent\">7.jpg</span>") && !out.contains("<img"));
    }

    /// The test vectors of RFC 4648 §10, and every digit.
    #[test]
    fn base64_as_the_standard_has_it() {
        let plain = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let coded = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (plain, coded) in plain.into_iter().zip(coded) {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0x00, 0x10, 0x83, 0xFB, 0xFF, 0xFE]), "ABCD+//+");
    }
}
