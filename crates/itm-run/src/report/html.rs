//! `report.html`: one file that needs nothing else.

use itm_report::html::{self, again, facts, grid, prose, section, titled};
use itm_report::table::Table;
use maud::{Markup, html};

use super::examples::{self, Scores};
use super::json::Report;
use super::tables::{self, Interval};
use super::verdict::{self, Outcome};
use super::{
    Example, JudgedPair, PairMaps, ReportInput, judged, plots, word_effects, word_patches,
};

pub(super) fn render(input: &ReportInput) -> String {
    let ReportInput { report, figures: drawn } = input;
    let verdict = verdict::of(report);
    let class = match verdict.outcome {
        Outcome::Above => "above",
        Outcome::Unsure | Outcome::Incomplete => "unsure",
        Outcome::Below => "below",
    };
    let recalls = tables::recalls(report, Interval::Ends);
    html::page(
        &format!("{} on {}", report.target, report.dataset),
        html! {
            header {
                h1 { (report.target) " " span.on { "on " (report.dataset) } }
                (html::verdict(class, verdict.words(), &verdict.text))
                @if let Some(why) = &report.substitution { p.aside { (prose(why)) } }
            }
            (section(&recalls.title, html! {
                (html::table(&recalls))
                (grid("", &plots::parameter(report)))
                (grid("", &plots::recall(report)))
                (each([tables::comparisons(report), tables::rescored(report)]))
            }))
            (section("Hubs", html! {
                (grid("", plots::distribution(report).as_slice()))
                (each([tables::hubs(report), tables::hub_differences(report), tables::hub_counts(report)]))
            }))
            @if let Some(paper) = tables::paper(report) {
                (section(&paper.title, html! {
                    (html::table(&paper))
                    (each([tables::paper_differences(report)]))
                }))
            }
            (section("Training", html! {
                (grid("", &plots::course(report, drawn)))
                (grid("", &plots::words(report, drawn)))
                @if report.rows.iter().any(|r| !r.measured.per_seed.is_empty()) { (titled(&tables::seeds(report))) }
            }))
            (section("False negatives", html! {
                (grid("", &plots::draw(report)))
                (grid("", &plots::posterior(report, drawn)))
                (each([
                    tables::truth(report),
                    tables::draws(report),
                    tables::epochs(report),
                    tables::detection_epochs(report),
                    tables::detection(report),
                ]))
            }))
            (section(
                "Most probable false negatives",
                examples::render(&drawn.false_negatives, Scores::Probabilities),
            ))
            (section("Words and patches", html! {
                (word_patches::render(&drawn.word_maps))
                (each([tables::pointing(report)]))
            }))
            (section("Words and regions", html! {
                (word_effects::render(&drawn.word_maps))
                (each([tables::grounding(report), tables::mismatch(report)]))
            }))
            (section("Synthetic sentences", html! {
                (each([tables::sentences(report), tables::sentences_by_kind(report), tables::edited(report)]))
            }))
            (section("Retrieved examples", examples::render(&drawn.examples, Scores::OfRow)))
            (section("What was run", run(report)))
        },
    )
}

/// A page of queries with their most probable false negatives; nothing is loaded from elsewhere.
pub(crate) fn explained(title: &str, found: &[Example]) -> String {
    headed(title, examples::render(found, Scores::Probabilities))
}

/// A page of pictures with the maps of words laid over them, or with regions and effects; nothing is loaded from elsewhere.
pub(crate) fn maps_page(title: &str, pairs: &[PairMaps]) -> String {
    headed(title, html! { (word_patches::render(pairs)) (word_effects::render(pairs)) })
}

/// A page of captions whose words are judged beside images; nothing is loaded from elsewhere.
pub(crate) fn judged_page(title: &str, pairs: &[JudgedPair]) -> String {
    headed(title, judged::render(pairs))
}

fn headed(title: &str, content: Markup) -> String {
    html::page(title, html! { h1 { (title) } (content) })
}

fn each<const N: usize>(tables: [Option<Table>; N]) -> Markup {
    html! { @for table in tables.iter().flatten() { (titled(table)) } }
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
