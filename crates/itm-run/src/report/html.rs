//! `report.html`: one file that needs nothing else.

mod figures;

use super::examples::Scores;
use super::json::Report;
use super::plots::{Figure, Key, Shape};
use super::tables::{self, Interval, Role, Table};
use super::verdict::{self, Outcome};
use super::{Example, PairMaps, ReportInput, canvas, examples, word_patches};

const STYLE: &str = include_str!("report.css");

pub(super) fn render(input: &ReportInput) -> String {
    let ReportInput { report, figures: drawn } = input;
    let rows: Vec<_> = figures::rows(report);
    let mut out = String::with_capacity(1 << 18);
    head(&mut out, report);
    let recalls = tables::recalls(report, Interval::Ends);
    section(&mut out, &recalls.title, |out| {
        body(out, &recalls);
        grid(out, figures::parameter(report));
        grid(out, figures::recall(report, &rows));
        tables::comparisons(report).iter().for_each(|t| table(out, t));
        tables::rescored(report).iter().for_each(|t| table(out, t));
    });
    let hubs = [tables::hubs(report), tables::hub_differences(report), tables::hub_counts(report)];
    if hubs.iter().any(Option::is_some) {
        section(&mut out, "Hubs", |out| {
            grid(out, figures::distribution(report, &rows));
            hubs.iter().flatten().for_each(|t| table(out, t));
        });
    }
    if let Some(t) = tables::paper(report) {
        section(&mut out, &t.title, |out| {
            body(out, &t);
            tables::paper_differences(report).iter().for_each(|t| table(out, t));
        });
    }
    let courses = figures::course(report, drawn, &rows);
    if !courses.is_empty() || report.rows.iter().any(|r| !r.measured.per_seed.is_empty()) {
        section(&mut out, "Training", |out| {
            grid(out, courses);
            table(out, &tables::seeds(report));
        });
    }
    let posterior = figures::posterior(report, drawn);
    let known = [
        tables::truth(report),
        tables::draws(report),
        tables::epochs(report),
        tables::detection_epochs(report),
        tables::detection(report),
    ];
    if known.iter().any(Option::is_some) || !posterior.is_empty() {
        section(&mut out, "False negatives", |out| {
            grid(out, figures::draw(report));
            grid(out, posterior);
            known.iter().flatten().for_each(|t| table(out, t));
        });
    }
    if !drawn.false_negatives.is_empty() {
        section(&mut out, "Most probable false negatives", |out| {
            examples::render(out, &drawn.false_negatives, Scores::Probabilities);
        });
    }
    let pointing = tables::pointing(report);
    if pointing.is_some() || !drawn.word_patches.is_empty() {
        section(&mut out, "Words and patches", |out| {
            word_patches::render(out, &drawn.word_patches);
            pointing.iter().for_each(|t| table(out, t));
        });
    }
    if !drawn.examples.is_empty() {
        section(&mut out, "Retrieved examples", |out| {
            examples::render(out, &drawn.examples, Scores::Cosines);
        });
    }
    section(&mut out, "What was run", |out| run(out, report));
    out + "</main>\n</body>\n</html>\n"
}

/// A page of queries with their most probable false negatives.
pub(super) fn explained(title: &str, found: &[Example]) -> String {
    page(title, |out| examples::render(out, found, Scores::Probabilities))
}

/// A page of pictures with the maps of words laid over them.
pub(super) fn maps_page(title: &str, pairs: &[PairMaps]) -> String {
    page(title, |out| word_patches::render(out, pairs))
}

fn page(title: &str, content: impl FnOnce(&mut String)) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    content(&mut out);
    out + "</main>\n</body>\n</html>\n"
}

/// Text as text, in content and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(c),
        }
    }
    out
}

/// Text in which `backquotes` mark code.
fn prose(text: &str) -> String {
    let parts: Vec<_> = text.split('`').map(escape).collect();
    if parts.len().is_multiple_of(2) {
        return escape(text); // an odd backquote is only a character
    }
    let code = |(i, part)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part };
    parts.into_iter().enumerate().map(code).collect()
}

fn head(out: &mut String, report: &Report) {
    let verdict = verdict::of(report);
    let (class, word) = match verdict.outcome {
        Outcome::Above => ("above", "The claim holds"),
        Outcome::Unsure => ("unsure", "Not decided"),
        Outcome::Incomplete => ("unsure", "Not complete"),
        Outcome::Below => ("below", "The claim does not hold"),
    };
    let (target, data) = (escape(&report.target), escape(&report.dataset));
    *out += &format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{target} on {data}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{target} <span class=\"on\">on {data}</span></h1>\n\
         <p class=\"verdict {class}\"><strong>{word}.</strong> {}</p>\n",
        escape(&verdict.text)
    );
    if let Some(why) = &report.substitution {
        *out += &format!("<p class=\"aside\">{}</p>\n", prose(why));
    }
    *out += "</header>\n";
}

fn section(out: &mut String, title: &str, content: impl FnOnce(&mut String)) {
    *out += &format!("<section>\n<h2>{}</h2>\n", escape(title));
    content(out);
    *out += "</section>\n";
}

fn run(out: &mut String, report: &Report) {
    if !report.notes.is_empty() {
        *out += "<ul class=\"notes\">\n";
        for note in &report.notes {
            *out += &format!("<li>{}</li>\n", prose(note));
        }
        *out += "</ul>\n";
    }
    *out += "<dl class=\"facts\">\n";
    for (label, value) in tables::facts(report) {
        let class = if label.contains("SHA") || label == "Commit" { " class=\"hash\"" } else { "" };
        let value = escape(&value);
        *out += &format!("<div><dt>{label}</dt><dd{class}>{value}</dd></div>\n");
    }
    *out += &format!("</dl>\n<p>Again:</p>\n<pre>{}</pre>\n", escape(&report.command));
}

fn table(out: &mut String, t: &Table) {
    *out += &format!("<h3>{}</h3>\n", escape(&t.title));
    body(out, t);
}

fn body(out: &mut String, t: &Table) {
    let title = escape(&t.title);
    *out += &format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n\
         <table>\n<thead>\n"
    );
    let grouped = t.columns.iter().any(|c| !c.group.is_empty());
    if grouped {
        *out += "<tr><td></td>";
        for group in t.columns.chunk_by(|a, b| a.group == b.group) {
            let (n, name) = (group.len(), group[0].group);
            *out += &if name.is_empty() {
                "<td></td>".repeat(n)
            } else {
                format!("<th colspan=\"{n}\" scope=\"colgroup\" class=\"group\">{name}</th>")
            };
        }
        *out += "</tr>\n";
    }
    *out += &format!("<tr><th scope=\"col\">{}</th>", t.stub);
    for c in &t.columns {
        *out += &format!("<th scope=\"col\">{}</th>", escape(&c.label));
    }
    *out += "</tr>\n</thead>\n<tbody>\n";
    let mut bold = false;
    for line in &t.lines {
        let class = match line.role {
            Role::Baseline => " class=\"baseline\"",
            Role::Method => " class=\"method\"",
            Role::Other => "",
        };
        *out += &format!("<tr{class}><th scope=\"row\">{}</th>", escape(&line.name));
        for cell in &line.cells {
            let text = escape(&cell.text);
            bold |= cell.best;
            *out += &match cell.best {
                true => format!("<td class=\"best\">{text}</td>"),
                false => format!("<td>{text}</td>"),
            };
        }
        *out += "</tr>\n";
    }
    let best = if bold { " Marked: the best of its column." } else { "" };
    *out +=
        &format!("</tbody>\n</table>\n</div>\n<p class=\"note\">{}{best}</p>\n", escape(&t.note));
}

fn grid(out: &mut String, figures: Vec<(String, Figure)>) {
    if figures.is_empty() {
        return;
    }
    *out += "<div class=\"grid\">\n";
    for (title, figure) in figures {
        *out += &format!("<figure>\n<figcaption>{}</figcaption>\n", escape(&title));
        if !figure.legend.is_empty() {
            *out += "<p class=\"legend\">";
            figure.legend.iter().for_each(|k| key(out, k));
            *out += "</p>\n";
        }
        *out += &format!("{}\n</figure>\n", figure.svg);
    }
    *out += "</div>\n";
}

fn key(out: &mut String, k: &Key) {
    let colour = format!("var(--s{})", k.series);
    let shape = match k.shape {
        Shape::Line => format!(
            "<path d=\"M0 20H112\" style=\"stroke:{colour};stroke-width:12;stroke-dasharray:{}\"/>",
            canvas::dash(k.series)
        ),
        Shape::Area => format!("<path d=\"M36 0h44v40H36z\" style=\"fill:{colour}\"/>"),
        Shape::Dot => format!("<circle cx=\"56\" cy=\"20\" r=\"17\" style=\"fill:{colour}\"/>"),
    };
    *out += &format!(
        "<span class=\"key\"><svg viewBox=\"0 0 112 40\" aria-hidden=\"true\">{shape}</svg>{}</span> ",
        escape(&k.label)
    );
}

#[cfg(test)]
mod tests;
