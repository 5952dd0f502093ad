//! `--html`: one file that needs nothing else.

mod hubs;

use itm_report::format::{bytes, count, duration, n_of};
use itm_report::html::{self, details, facts, grid, section, term};
use maud::{Markup, html};

use super::methods::{self, chosen, citations, marks, params_greek};
use super::plots;
use super::table;
use super::verdict::{self, Outcome};
use crate::Direction;
use crate::report::{ChoiceOrigin, Report};

/// The report as one HTML file that needs nothing else: no script, no network, light and dark.
pub fn render(report: &Report) -> String {
    let verdict = verdict::of(report);
    let (class, word) = match verdict.outcome {
        Outcome::Helps => ("above", "Correcting for hubs helps."),
        Outcome::Nothing => ("unsure", "No proven gain."),
        Outcome::Untested => ("unsure", "Not decided."),
    };
    let among = format!("among {}", table::size(report).join(" and "));
    let curves: Vec<_> =
        Direction::BOTH.into_iter().filter_map(|d| plots::curves(&report.curves, d)).collect();
    html::page(
        &format!("Hubs {among}"),
        html! {
            header {
                h1 { "Hubs " span.on { (among) } }
                (list("warnings", "Warning:", &report.data.warnings))
                (html::verdict(class, word, &verdict.text.replace("N10", &n_of(10))))
                (list("notes", "Note:", &report.data.notes))
            }
            (section("Recall before and after", recalls(report)))
            (section("How often items turn up", hubs::counts(report)))
            @if !curves.is_empty() {
                (section("R@10 against λ", html! {
                    p {
                        "RGM lets an item into at most λ times its fair share of lists. Small λ forbids all hubs, large λ \
                         forbids none."
                    }
                    (grid("", &curves))
                }))
            }
            (section("The worst hubs", hubs::worst(report)))
            (section("How to read this page", reading(report)))
            (section("What was run", run(report)))
            (section("How to cite", cite(report)))
        },
    )
}

fn list(class: &str, word: &str, items: &[String]) -> Markup {
    html! {
        @if !items.is_empty() {
            ul class=(class) { @for item in items { li { strong { (word) } " " (item) } } }
        }
    }
}

fn recalls(report: &Report) -> Markup {
    let mut results = table::results(report);
    results.columns.retain(|c| c.group != "skewness");
    // Greek letters, and who chose the values.
    for column in results.columns.iter_mut().filter(|c| c.label == "parameters") {
        for (cell, row) in column.cells.iter_mut().zip(&report.rows) {
            cell.text = params_greek(row);
            if row.chosen != ChoiceOrigin::Default && !cell.text.is_empty() {
                cell.text += &format!("\n{}", chosen(row.chosen));
            }
        }
    }
    let unit = &report.settings.unit;
    let directions: Vec<_> = report.directions().collect();
    html! {
        (html::table(&results))
        p.note {
            "Marked: the best of a column."
            @if report.rows.iter().any(verdict::significant) {
                " * differs from NNS: p < " (verdict::LEVEL) ", paired randomisation over " (unit)
                ", corrected for the number of rows by Holm’s method."
            }
            @for (setting, mark, _) in marks(report) {
                " " (mark) ": " (setting) ", see “How to read this page”."
            }
            @if directions.len() == 1 {
                " rSum sums three recalls: only one direction was measured."
            }
        }
        (grid("one", plots::rsums(report).as_slice()))
        (grid("", &directions.iter().filter_map(|&d| plots::recalls(report, d)).collect::<Vec<_>>()))
        @if let Some(ranks) = table::ranks(report) {
            (details("Median and mean ranks", html::table(&ranks)))
        }
    }
}

fn reading(report: &Report) -> Markup {
    let (rule, unit) = (&report.settings.hub_rule, &report.settings.unit);
    html! {
        dl.terms {
            (term(html! { "N" sub { "k" } }, "The number of queries that have the item among their k best. A hub is in far \
             too many lists and pushes out the right answers."))
            (term("Skewness", html! { "Of N" sub { "k" } " over all items: 0 is even, a large value is a long tail of hubs." }))
            (term("Robin Hood", "Share of all list places that would have to move to give every item the same number."))
            (term("Gini, Atkinson", html! { "Inequality of N" sub { "k" } ": 0 is even, 1 is all in one item." }))
            (term("Hubs", html! {
                "Items that count as hubs: " (rule) ". “Places of hubs” is the share of all list places that hubs take; \
                 “largest” is the share of lists that hold the most frequent item."
            }))
            (term("95 %", html! {
                "Percentile intervals of a bootstrap over " (unit) ": the range to expect with other queries of the same kind. \
                 They cover neither the noise of training nor the choice of the best among several rows."
            }))
            @for (setting, mark, why) in marks(report) {
                @let (first, rest) = why.split_at(1);
                (term(html! { (mark) ": " (setting) }, html! { (first.to_uppercase()) (rest) }))
            }
            @if report.rows.iter().any(|r| r.chosen == ChoiceOrigin::CrossFitted) {
                (term("Cross-fitted", "Parameters were chosen for each half of the images by the labels of the other half, so no \
                 query chose its own parameters. Where the halves chose differently, a slash separates the two values."))
            }
            @if report.directions().count() == 2 {
                (term("a | b", "A bar separates the parameters of the directions: image to text, text to image."))
            }
        }
    }
}

fn run(report: &Report) -> Markup {
    let (data, settings) = (&report.data, &report.settings);
    let mut all = vec![
        ("Images", count(data.images)),
        ("Texts", count(data.texts)),
        ("Pairs", data.pairs_note.clone()),
    ];
    all.extend(data.dim.map(|d| ("Dimensions", count(d))));
    all.push(("Ties", table::ties(report)));
    all.push(("Seed", settings.seed.to_string()));
    if settings.resamples > 0 {
        all.push(("Resamples", format!("{} of {}", count(settings.resamples), settings.unit)));
    }
    all.push(("Time", duration(report.seconds)));
    all.extend(report.peak_memory_bytes.map(|b| ("Most memory held", bytes(b))));
    all.push(("Version", format!("hubness {}", report.version)));
    let files = data.files.iter().map(|f| (f.name.as_str(), format!("sha256 {}", f.sha256)));
    html! {
        (facts("", all))
        @if !data.files.is_empty() { (facts("files", files)) }
        @if let Some(command) = &settings.command { (html::again(command)) }
    }
}

fn cite(report: &Report) -> Markup {
    let methods = report.rows.iter().map(|r| r.method.as_str());
    let works = citations(methods.chain(methods::MEASURES));
    html! {
        dl.terms { @for (what, work) in works { (term(what, work)) } }
    }
}

#[cfg(test)]
mod tests;
