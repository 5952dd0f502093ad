//! `--html`: one file that needs nothing else.

mod hubs;
mod page;

use super::format::{bytes, count, counted, duration, typeset};
use super::methods::{self, MARKS, chosen, citations, mark, params_greek};
use super::model::{Chosen, Report};
use super::plots;
use super::table::{self, Column};
use super::verdict::{self, Outcome};
use crate::Direction;
pub(super) use page::escape;
use page::{arrow, details, grid, section, table};

const STYLE: &str = include_str!("report.css");

pub(super) fn render(report: &Report) -> String {
    let mut out = String::with_capacity(1 << 17);
    head(&mut out, report);
    section(&mut out, "Recall before and after", |out| recalls(out, report));
    section(&mut out, "How often items turn up", |out| hubs::counts(out, report));
    let curves: Vec<_> =
        Direction::BOTH.into_iter().filter_map(|d| plots::curves(&report.curves, d)).collect();
    if !curves.is_empty() {
        section(&mut out, "R@10 against λ", |out| {
            *out += "<p>RGM lets an item into at most λ times its fair share of lists. Small λ \
                     forbids all hubs, large λ forbids none.</p>\n";
            grid(out, "", curves);
        });
    }
    section(&mut out, "The worst hubs", |out| hubs::worst(out, report));
    section(&mut out, "How to read this page", |out| reading(out, report));
    section(&mut out, "What was run", |out| run(out, report));
    section(&mut out, "How to cite", |out| cite(out, report));
    out + "</main>\n</body>\n</html>\n"
}

fn head(out: &mut String, report: &Report) {
    let verdict = verdict::of(report);
    let (class, word) = match verdict.outcome {
        Outcome::Helps => ("above", "Correcting for hubs helps."),
        Outcome::Nothing => ("unsure", "Correcting for hubs does not help here."),
        Outcome::Untested => ("unsure", "Not decided."),
    };
    let data = &report.data;
    let (images, texts) =
        (counted(data.images, "image", "images"), counted(data.texts, "text", "texts"));
    *out += &format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Hubs among {images} and {texts}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<header>\n\
         <h1>Hubs <span class=\"on\">among {images} and {texts}</span></h1>\n"
    );
    list(out, "warnings", "Warning", &data.warnings);
    let text = escape(&typeset(&verdict.text)).replace("N10", "N<sub>10</sub>");
    *out += &format!("<p class=\"verdict {class}\"><strong>{word}</strong> {text}</p>\n");
    list(out, "notes", "Note", &data.notes);
    *out += "</header>\n";
}

fn list(out: &mut String, class: &str, word: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    *out += &format!("<ul class=\"{class}\">\n");
    for item in items {
        *out += &format!("<li><strong>{word}:</strong> {}</li>\n", escape(item));
    }
    *out += "</ul>\n";
}

fn recalls(out: &mut String, report: &Report) {
    let mut columns = table::results(report);
    columns.retain(|c| c.group != "skewness");
    for column in &mut columns {
        if column.head == "parameters" {
            parameters(column, report);
        }
    }
    table(out, "Recall of all methods", report, &columns);
    let mut notes = vec!["Marked: the best of a column.".to_owned()];
    if report.rows.iter().any(verdict::significant) {
        notes.push(format!(
            "* differs from NNS: p < {}, paired randomisation over {}, corrected for the number of \
             rows by Holm’s method.",
            verdict::LEVEL,
            report.settings.unit
        ));
    }
    for (setting, word, _) in MARKS {
        if let Some(row) = report.rows.iter().find(|r| r.seen.0 == setting) {
            notes.push(format!("{}: {word}, see “How to read this page”.", mark(row)));
        }
    }
    if report.directions().count() == 1 {
        notes.push("rSum is of three recalls: only one direction was measured.".into());
    }
    *out += &format!("<p class=\"note\">{}</p>\n", escape(&notes.join(" ")));
    grid(out, "one", plots::rsums(report).into_iter().collect());
    grid(out, "", report.directions().filter_map(|d| plots::recalls(report, d)).collect());
    if let Some(ranks) = table::ranks(report) {
        details(out, "Median and mean ranks", |out| {
            table(out, "Median and mean ranks", report, &ranks);
            *out += "<p class=\"note\">From 1. Methods whose lists end early, such as RGM, have \
                     none.</p>\n";
        });
    }
}

/// Greek letters, and who chose the values.
fn parameters(column: &mut Column, report: &Report) {
    for (cell, row) in column.cells.iter_mut().zip(&report.rows) {
        let text = params_greek(row);
        cell.text = match row.chosen {
            Chosen::Default => text,
            _ if text.is_empty() => text,
            by => format!("{text}\n{}", chosen(by)),
        };
    }
}

fn reading(out: &mut String, report: &Report) {
    let rule = escape(&report.settings.hub_rule);
    let mut terms = vec![
        (
            "N<sub>k</sub>".to_owned(),
            "In how many of the queries’ lists of the k best an item turns up. A hub turns up in far \
             too many, and pushes out what was asked for."
                .to_owned(),
        ),
        ("Skewness".into(), "Of N<sub>k</sub> over all items; 0 is even, large is a long tail of \
          hubs.".into()),
        ("Robin Hood".into(), "Share of the places in all lists that would have to move for every \
          item to have the same.".into()),
        ("Gini, Atkinson".into(), "Inequality of N<sub>k</sub>: 0 is even, 1 is all in one \
          item.".into()),
        ("Hubs".into(), format!("Items counted as such: {rule}. “Places of hubs” is the share of \
          all list places they take; “largest” the share of lists that hold the most frequent \
          item.")),
        ("95 %".into(), format!("Percentile intervals of a bootstrap over {}: what other queries \
          of the same kind would give. They do not cover the noise of training, nor that the best \
          of several rows was picked.", escape(&report.settings.unit))),
    ];
    for (setting, word, why) in MARKS {
        if let Some(row) = report.rows.iter().find(|r| r.seen.0 == setting) {
            let mut capital = why.chars();
            let first: String = capital.next().into_iter().flat_map(char::to_uppercase).collect();
            let letter = mark(row);
            terms.push((format!("{letter}: {word}"), first + &escape(capital.as_str())));
        }
    }
    if report.rows.iter().any(|r| r.chosen == Chosen::CrossFitted) {
        terms.push((
            "Cross-fitted".into(),
            "Parameters were chosen for each half of the images by the labels of the other half, \
             so no query chose its own. Where the halves chose differently, both values stand \
             there with a slash between."
                .into(),
        ));
    }
    if report.directions().count() == 2 {
        terms.push((
            "a | b".into(),
            "Two parameters apart by a bar: image to text, text to \
          image."
                .into(),
        ));
    }
    *out += "<dl class=\"terms\">\n";
    for (term, what) in terms {
        *out += &format!("<div><dt>{term}</dt><dd>{what}</dd></div>\n");
    }
    *out += "</dl>\n";
}

fn run(out: &mut String, report: &Report) {
    let (data, settings) = (&report.data, &report.settings);
    let mut facts: Vec<(String, String)> = vec![
        ("Images".into(), count(data.images)),
        ("Texts".into(), count(data.texts)),
        ("Pairs".into(), data.pairs_note.clone()),
    ];
    facts.extend(data.dim.map(|d| ("Dimensions".into(), count(d))));
    facts.extend([
        ("Ties".into(), settings.tie_policy.clone()),
        ("Seed".into(), settings.seed.to_string()),
    ]);
    if settings.resamples > 0 {
        facts.push((
            "Resamples".into(),
            format!("{} of {}", count(settings.resamples), settings.unit),
        ));
    }
    facts.extend(settings.more.iter().map(|(k, v)| (k.clone(), v.clone())));
    facts.push(("Time".into(), duration(report.seconds)));
    facts.extend(report.peak_memory_bytes.map(|b| ("Most memory held".into(), bytes(b))));
    facts.push(("Version".into(), format!("hubness {}", report.version)));
    *out += "<dl class=\"facts\">\n";
    for (label, value) in facts {
        *out += &format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(&label), escape(&value));
    }
    *out += "</dl>\n";
    if !data.files.is_empty() {
        *out += "<dl class=\"facts files\">\n";
        for file in &data.files {
            *out += &format!(
                "<div><dt>{}</dt><dd class=\"hash\">sha256 {}</dd></div>\n",
                escape(&file.name),
                escape(&file.sha256)
            );
        }
        *out += "</dl>\n";
    }
    if let Some(command) = &settings.command {
        *out += &format!("<p>Again:</p>\n<pre>{}</pre>\n", escape(command));
    }
}

fn cite(out: &mut String, report: &Report) {
    let methods = citations(report.rows.iter().map(|r| r.method.as_str()));
    *out += "<dl class=\"terms\">\n";
    for (what, work) in methods.into_iter().chain(methods::MEASURES) {
        let what = escape(what).replace("N_k", "N<sub>k</sub>");
        *out += &format!("<div><dt>{what}</dt><dd>{}</dd></div>\n", escape(work));
    }
    *out += "</dl>\n";
}

/// A direction as a heading of the page.
fn heading(direction: Direction) -> String {
    arrow(table::name(direction))
}

#[cfg(test)]
mod tests;
