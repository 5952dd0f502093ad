//! `report.html`: one file that needs nothing else.

use itm_report::html::{self, again, facts, grid, prose, section, titled};
use maud::{Markup, html};

use super::json::Report;
use super::{Section, tables, verdict};

pub(super) fn render(report: &Report, sections: &[&Section]) -> String {
    let verdict = verdict::of(report);
    let [words, class, _] = verdict.look();
    html::page(
        &format!("{} on {}", report.target, report.dataset),
        html! {
            header {
                h1 { (report.target) " " span.on { "on " (report.dataset) } }
                (html::verdict(class, words, &verdict.text))
                @if let Some(why) = &report.substitution { p.aside { (prose(why)) } }
            }
            @for section in sections { (laid_out(section)) }
            (section("What was run", run(report)))
        },
    )
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
