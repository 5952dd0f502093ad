//! `report.html`: one file that needs nothing else.

use itm_report::html::{self, again, facts, grid, prose, section, titled};
use maud::{Markup, html};

use super::examples::{self, AnswerNumbers};
use super::json::Report;
use super::verdict::{self, Outcome};
use super::{Example, PairMaps, Section, tables, word_pictures};

pub(super) fn render(report: &Report, sections: &[&Section]) -> String {
    let verdict = verdict::of(report);
    let class = match verdict.outcome {
        Outcome::Above => "above",
        Outcome::Unsure | Outcome::Incomplete => "unsure",
        Outcome::Below => "below",
    };
    html::page(
        &format!("{} on {}", report.target, report.dataset),
        html! {
            header {
                h1 { (report.target) " " span.on { "on " (report.dataset) } }
                (html::verdict(class, verdict.words(), &verdict.text))
                @if let Some(why) = &report.substitution { p.aside { (prose(why)) } }
            }
            @for section in sections { (laid_out(section)) }
            (section("What was run", run(report)))
        },
    )
}

/// A page of queries with their most probable false negatives; nothing is loaded from elsewhere.
pub(crate) fn explained(title: &str, found: &[Example]) -> String {
    headed(title, examples::render(found, AnswerNumbers::Probabilities))
}

/// A page of pictures with the maps of words laid over them, or with regions and effects; nothing is loaded from elsewhere.
pub(crate) fn maps_page(title: &str, pairs: &[PairMaps]) -> String {
    headed(title, word_pictures(pairs))
}

/// A page with a title; nothing is loaded from elsewhere.
pub(crate) fn headed(title: &str, content: Markup) -> String {
    html::page(title, html! { h1 { (title) } (content) })
}

/// A table with the section's title, then figures and pictures, then the other tables.
fn laid_out(of: &Section) -> Markup {
    let (first, others): (Vec<_>, Vec<_>) = of.tables.iter().partition(|t| t.title == of.title);
    section(
        &of.title,
        html! {
            @for table in first { (html::table(table)) }
            (grid("", &of.figures))
            (of.pictures)
            @for table in others { (titled(table)) }
        },
    )
}

fn run(report: &Report) -> Markup {
    html! {
        @if !report.notes.is_empty() {
            ul.notes { @for note in &report.notes { li { (prose(note)) } } }
        }
        (facts("", tables::facts(report)))
        (again(&report.command))
    }
}

#[cfg(test)]
mod tests;
