//! `report.html`: one file that needs nothing else.

use super::examples::Scores;
use super::format::rsum;
use super::json::{DistributionOf, EpochDraws, Measured, Report, Row};
use super::plots::{self, Figure, Key, Series, Shape, Trace};
use super::tables::{self, Interval, Role, Table};
use super::verdict::{self, Outcome};
use super::{
    CHANCE, Curve, Example, Figures, PairMaps, ReportInput, canvas, examples, word_patches,
};

const STYLE: &str = include_str!("report.css");

pub(super) fn render(input: &ReportInput) -> String {
    let ReportInput { report, figures } = input;
    let rows: Vec<_> = rows(report);
    let mut out = String::with_capacity(1 << 18);
    head(&mut out, report);
    let recalls = tables::recalls(report, Interval::Ends);
    section(&mut out, &recalls.title, |out| {
        body(out, &recalls);
        grid(out, parameter_figures(report));
        grid(out, recall_figures(report, &rows));
        tables::comparisons(report).iter().for_each(|t| table(out, t));
        tables::rescored(report).iter().for_each(|t| table(out, t));
    });
    let hubs = [tables::hubs(report), tables::hub_differences(report), tables::hub_counts(report)];
    if hubs.iter().any(Option::is_some) {
        section(&mut out, "Hubs", |out| {
            grid(out, distribution_figures(report, &rows));
            hubs.iter().flatten().for_each(|t| table(out, t));
        });
    }
    if let Some(t) = tables::paper(report) {
        section(&mut out, &t.title, |out| {
            body(out, &t);
            tables::paper_differences(report).iter().for_each(|t| table(out, t));
        });
    }
    let courses = course_figures(report, figures, &rows);
    if !courses.is_empty() || report.rows.iter().any(|r| !r.measured.per_seed.is_empty()) {
        section(&mut out, "Training", |out| {
            grid(out, courses);
            table(out, &tables::seeds(report));
        });
    }
    let posterior = posterior_figures(report, figures);
    let known = [
        tables::truth(report),
        tables::draws(report),
        tables::epochs(report),
        tables::detection_epochs(report),
        tables::detection(report),
    ];
    if known.iter().any(Option::is_some) || !posterior.is_empty() {
        section(&mut out, "False negatives", |out| {
            grid(out, draw_figures(report));
            grid(out, posterior);
            known.iter().flatten().for_each(|t| table(out, t));
        });
    }
    if !figures.false_negatives.is_empty() {
        section(&mut out, "Most probable false negatives", |out| {
            examples::render(out, &figures.false_negatives, Scores::Probabilities);
        });
    }
    let pointing = tables::pointing(report);
    if pointing.is_some() || !figures.word_patches.is_empty() {
        section(&mut out, "Words and patches", |out| {
            word_patches::render(out, &figures.word_patches);
            pointing.iter().for_each(|t| table(out, t));
        });
    }
    if !figures.examples.is_empty() {
        section(&mut out, "Retrieved examples", |out| {
            examples::render(out, &figures.examples, Scores::Cosines);
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

/// Every row with its colour: the claim's row has the first, baselines the last two.
fn rows(report: &Report) -> Vec<Series<'_, &Row>> {
    let mut trained = 0;
    let mut colour = |row: &Row| match tables::role(report, &row.name, row.kind) {
        Role::Method => 0,
        Role::Baseline if row.name == CHANCE => 6,
        Role::Baseline => 7,
        Role::Other => {
            trained += 1;
            1 + (trained - 1) % 5
        }
    };
    let colours: Vec<u8> = report.rows.iter().map(&mut colour).collect();
    let series = |(row, series)| -> Series<'_, &Row> {
        let row: &Row = row;
        Series { name: &row.name, series, data: row }
    };
    report.rows.iter().zip(colours).map(series).collect()
}

fn recall_figures(report: &Report, rows: &[Series<&Row>]) -> Vec<(String, Figure)> {
    let measured: Vec<_> = rows.iter().map(|r| r.with(&r.data.measured)).collect();
    let i2t: Vec<_> = (rows.iter().zip(&measured))
        .map(|(r, m)| r.with((m.data.i2t.values(), m.data.ci95_recalls.map(|ci| ci.i2t))))
        .collect();
    let t2i: Vec<_> = (rows.iter().zip(&measured))
        .map(|(r, m)| r.with((m.data.t2i.values(), m.data.ci95_recalls.map(|ci| ci.t2i))))
        .collect();
    let whiskers = if report.rows.iter().any(|r| r.measured.ci95_recalls.is_some()) {
        " with 95 % intervals"
    } else {
        ""
    };
    let (chance, ranked): (Vec<_>, Vec<_>) = measured.iter().partition(|m| m.name == CHANCE);
    let apart = match chance[..] {
        [m] if !ranked.is_empty() => format!("; {CHANCE}, {}, is not drawn", rsum(m.data.rsum)),
        _ => String::new(),
    };
    let figures = [
        (format!("rSum with 95 % interval; ticks: seeds{apart}"), "rSum by row"),
        (format!("Image → text{whiskers}"), "Recall, image to text"),
        (format!("Text → image{whiskers}"), "Recall, text to image"),
    ];
    let drawn = [
        plots::rsums(figures[0].1, &ranked),
        plots::recall_bars(figures[1].1, &i2t),
        plots::recall_bars(figures[2].1, &t2i),
    ];
    figures.into_iter().zip(drawn).filter_map(|((title, _), f)| Some((title, f?))).collect()
}

fn course_figures(
    report: &Report,
    figures: &Figures,
    rows: &[Series<&Row>],
) -> Vec<(String, Figure)> {
    let of = |row: &str| figures.curves.iter().filter(|c| c.row == row).collect::<Vec<&Curve>>();
    let trained: Vec<_> =
        rows.iter().map(|r| r.with(of(r.name))).filter(|r| !r.data.is_empty()).collect();
    let levels: Vec<_> = (rows.iter().filter(|r| of(r.name).is_empty()))
        .filter_map(|r| Some(r.with(r.data.measured.validation_rsum?)))
        .collect();
    let seeds = if report.seeds.len() > 1 { " (thin: one seed; thick: their mean)" } else { "" };
    let drawn = [
        (
            "Training loss",
            plots::curves("Loss over epochs", "mean loss", &trained, |c| &c.loss, &[]),
        ),
        (
            "Recall on the validation split",
            plots::curves(
                "Validation rSum over epochs",
                "validation rSum",
                &trained,
                |c| &c.validation_rsum,
                &levels,
            ),
        ),
    ];
    drawn.into_iter().filter_map(|(title, f)| Some((format!("{title}{seeds}"), f?))).collect()
}

/// The paper's figure: recall over what differs between the rows.
fn parameter_figures(report: &Report) -> Vec<(String, Figure)> {
    let Some(figure) = &report.figure else { return Vec::new() };
    let points = || figure.points.iter().filter_map(|p| Some((p.x, &report.row(&p.row)?.measured)));
    let trace = |value: fn(&Measured) -> f64, interval: fn(&Measured) -> Option<[f64; 2]>| Trace {
        points: points().map(|(x, m)| (x, value(m))).collect(),
        intervals: points().filter_map(|(x, m)| Some((x, interval(m)?))).collect(),
    };
    let series = |name, series, data| Series { name, series, data };
    let r1 = [
        series("image → text", 0, trace(|m| m.i2t.r1, |m| m.ci95_recalls.map(|ci| ci.i2t[0]))),
        series("text → image", 1, trace(|m| m.t2i.r1, |m| m.ci95_recalls.map(|ci| ci.t2i[0]))),
    ];
    let rsum = [series("rSum", 0, trace(|m| m.rsum, |m| m.ci95))];
    let x = figure.x.as_str();
    let title = |what: &str| format!("Figure {}: {what} over `{x}`, 95 % intervals", figure.number);
    [
        (title("rSum"), plots::traces("rSum", [x, "rSum"], &rsum)),
        (title("R@1"), plots::traces("R@1", [x, "R@1, %"], &r1)),
    ]
    .into_iter()
    .filter_map(|(title, drawn)| Some((title, drawn?)))
    .collect()
}

/// The paper's figure: how many items have each count, a line a row.
fn distribution_figures(report: &Report, rows: &[Series<&Row>]) -> Vec<(String, Figure)> {
    let Some(d) = &report.distribution else { return Vec::new() };
    let series = |of: &'_ DistributionOf| {
        let row = rows.iter().find(|row| row.name == of.row)?;
        Some(row.with(Trace { points: of.histogram.points(), intervals: vec![] }))
    };
    let series: Vec<_> = d.rows.iter().filter_map(series).collect();
    let (k, way) = (d.k, d.direction.queries("image → text", "text → image"));
    let title = format!("Figure {}: distribution of N_{k}, {way}", d.number);
    let (x, y) = (format!("log₁₀ N_{k}"), format!("log₁₀ p(N_{k})"));
    let drawn = plots::traces(&title, [&x, &y], &series);
    drawn.into_iter().map(|figure| (title.clone(), figure)).collect()
}

/// Shares of drawn negatives that were false, over epochs: a figure a row.
fn draw_figures(report: &Report) -> Vec<(String, Figure)> {
    let of_row = |row: &Row| {
        let epochs = &row.truth.as_ref()?.epochs;
        let trace = |value: &dyn Fn(&EpochDraws) -> Option<f64>| Trace {
            points: epochs
                .iter()
                .filter_map(|e| Some((f64::from(e.epoch), 100.0 * value(e)?)))
                .collect(),
            intervals: vec![],
        };
        let mut names: Vec<&str> =
            epochs.iter().flat_map(|e| e.others.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let own = [
            Series { name: "as drawn", series: 0, data: trace(&|e| Some(e.drawn)) },
            Series { name: "uniform", series: 6, data: trace(&|e| Some(e.uniform)) },
            Series { name: "hardest", series: 1, data: trace(&|e| Some(e.hardest)) },
        ];
        let others = names.iter().enumerate().map(|(k, &name)| Series {
            name,
            series: 2 + (k % 4) as u8,
            data: trace(&|e| e.others.get(name).copied()),
        });
        let all: Vec<_> = own.into_iter().chain(others).collect();
        let title = format!("{}: negatives that are false, over epochs", row.name);
        let drawn = plots::traces(&title, ["epoch", "% of the negatives"], &all)?;
        Some((title, drawn))
    };
    report.rows.iter().filter_map(of_row).collect()
}

fn posterior_figures(report: &Report, figures: &Figures) -> Vec<(String, Figure)> {
    let mut out = Vec::new();
    for s in &figures.similarities {
        let title = format!("{}, seed {}: similarities and the posterior", s.row, s.seed);
        out.extend(plots::similarities(&title, s).map(|f| (title, f)));
    }
    for row in &report.rows {
        let Some(truth) = &row.truth else { continue };
        let title = format!("{}: reliability of the posterior (diagonal: calibrated)", row.name);
        out.extend(plots::reliability(&title, &truth.reliability).map(|f| (title, f)));
    }
    out
}

#[cfg(test)]
mod tests;
