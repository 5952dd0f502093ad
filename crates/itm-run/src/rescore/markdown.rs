//! `summary.md`: first a verdict for each row, then tables that are also readable in a terminal.

use std::fmt::Write;

use itm_report::format;

use super::orderings::upper;
use super::summary::{CountsSummary, CurveSummary, HubsOfSide, Origin, RowSummary, Summary};
use crate::run_dir::short;

/// Values of λ in the table of curves. The page of each seed draws the whole curves.
const LAMBDAS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0];

/// Number of hubs per direction in the table.
const HUBS: usize = 5;

/// Maximum number of characters of a hub's name.
const NAME: usize = 48;

pub(super) fn render(summary: &Summary) -> String {
    let mut out = String::new();
    for row in &summary.rows {
        _ = writeln!(out, "{}\n", row.verdict);
    }
    _ = writeln!(out, "# {}\n", summary.target);
    if let Some(why) = &summary.substitution {
        _ = writeln!(out, "> {why}\n");
    }
    for row in &summary.rows {
        render_row(&mut out, row, summary);
    }
    out += "## Run\n\n";
    for (label, value) in [
        ("paper", format!("{}, table {}", summary.paper, summary.table)),
        ("data", format!("{} (sha256 {})", summary.dataset, short(&summary.data_sha256))),
        ("config", short(&summary.config_sha256).to_owned()),
        ("seconds", format!("{:.0}", summary.seconds)),
    ] {
        _ = writeln!(out, "- {label}: {value}");
    }
    _ = writeln!(out, "\n```sh\n{}\n```", summary.command);
    out
}

fn render_row(out: &mut String, row: &RowSummary, summary: &Summary) {
    _ = writeln!(out, "## {}\n", row.row);
    _ = writeln!(out, "{}\n", origin(&row.source));
    inferences(out, row, summary.resamples);
    _ = writeln!(out, "### The paper's orderings\n");
    let lines = row.orderings.iter().map(|o| {
        let holds = if o.holds { "yes" } else { "no" };
        vec![
            o.text.clone(),
            holds.into(),
            format::signed(o.difference),
            format!("{} of {}", o.seeds, row.seeds),
            signed(o.paper_difference),
        ]
    });
    table(out, &["ordering", "holds", "difference", "seeds", "paper"], lines.collect());
    _ = writeln!(
        out,
        "rSum of the greater minus the lesser, mean over seeds. Only differences to NNS are tested.\n"
    );
    counts(out, &row.counts);
    curves(out, &row.curves);
    hubs(out, &row.hubs);
}

/// What a reader must know about the model before its inferences.
fn origin(origin: &Origin) -> String {
    let Some(rsum) = origin.rsum else { return String::new() };
    let model = format!("The models reach rSum {rsum:.1} on test");
    match origin.cca {
        Some(cca) if cca > rsum => format!(
            "{model}: below the closed-form CCA, {cca:.1}. The results below are of weak models."
        ),
        Some(cca) => format!("{model}; the closed-form CCA reaches {cca:.1}."),
        None => format!("{model}."),
    }
}

fn inferences(out: &mut String, row: &RowSummary, resamples: usize) {
    let lines = row.methods.iter().map(|m| {
        vec![
            upper(&m.method),
            format::points(m.rsum),
            signed(m.difference),
            m.difference.map_or_else(dash, |_| format!("{} of {}", m.above, row.seeds)),
            m.difference.map_or_else(dash, |_| format!("{} of {}", m.below, row.seeds)),
            m.hs_sum.map_or_else(dash, format::points),
            m.paper.map_or_else(dash, format::points),
            signed(m.paper_difference),
            m.lambda.clone().unwrap_or_else(dash),
        ]
    });
    let heads = [
        "inference",
        "rSum",
        "to NNS",
        "above",
        "below",
        "skewness",
        "paper",
        "to NNS",
        "λ of seed 0",
    ];
    table(out, &heads, lines.collect());
    _ = writeln!(
        out,
        "Mean over {}. Above, below: seeds with a significant difference to NNS (randomisation test, {resamples} draws, \
         Holm's correction, 0.05). Skewness: the sum over N_1, N_5, N_10 and both directions.{} λ: chosen on the \
         validation split, for R@1/R@5/R@10. `rows/*/seed-*/rescored/report.html` shows N_k before and after, and all \
         curves.\n",
        seeds(row.seeds),
        paper(row)
    );
}

/// Which line of the paper is beside the numbers.
fn paper(row: &RowSummary) -> String {
    if row.printed.is_empty() {
        return String::new();
    }
    let on = if row.printed_on == "mscoco" { "MS-COCO, five folds" } else { "Flickr30K" };
    format!(" Paper: {on}, its model line {}.", row.printed)
}

/// Figure 3 in numbers.
fn counts(out: &mut String, counts: &[CountsSummary]) {
    _ = writeln!(out, "### Figure 3: N_10 of the images, text → image\n");
    let decimal = |x: Option<f64>, places: usize| x.map_or_else(dash, |x| format!("{x:.places$}"));
    let lines = counts.iter().map(|c| {
        vec![
            upper(&c.method),
            decimal(c.skewness, 2),
            decimal(c.largest, 1),
            c.never.map_or_else(dash, percent),
        ]
    });
    table(out, &["inference", "skewness", "largest", "in no list"], lines.collect());
    _ = writeln!(
        out,
        "N_10: how many captions have an image among their ten nearest. Means over the seeds; `summary.json` has the \
         distributions, `rows/*/seed-*/rescored/report.html` draws them.\n"
    );
}

fn curves(out: &mut String, curves: &[CurveSummary]) {
    if curves.is_empty() {
        return;
    }
    _ = writeln!(out, "### Figure 4: R@10 against λ\n");
    let labels = LAMBDAS.map(|lambda| lambda.to_string());
    let mut heads = vec!["inference", "direction"];
    heads.extend(labels.iter().map(String::as_str));
    heads.extend(["∞", "best λ"]);
    let lines = curves.iter().map(|curve| {
        let at = |lambda: &f64| curve.lambda.iter().position(|x| (x - lambda).abs() < 1e-9);
        let r10 = |lambda: &f64| at(lambda).map_or_else(dash, |k| format!("{:.1}", curve.r10[k]));
        let mut line = vec![upper(&curve.method), curve.direction.clone()];
        line.extend(LAMBDAS.iter().map(r10));
        line.push(curve.unconstrained.map_or_else(dash, |r10| format!("{r10:.1}")));
        line.push(best(curve));
        line
    });
    table(out, &heads, lines.collect());
    _ = writeln!(out, "These curves are of the test split: λ was not chosen on them.\n");
}

/// The smallest λ with the highest R@10.
fn best(curve: &CurveSummary) -> String {
    let points = curve.lambda.iter().zip(&curve.r10);
    let best = points.reduce(|best, point| if point.1 > best.1 { point } else { best });
    best.map_or_else(dash, |(lambda, r10)| format!("{lambda} ({r10:.1})"))
}

fn hubs(out: &mut String, sides: &[HubsOfSide]) {
    for side in sides {
        let items = if side.direction == "i2t" { "texts" } else { "images" };
        _ = writeln!(out, "### Worst hubs, {}: {items}\n", side.direction);
        let after: Vec<_> =
            side.worst.first().map(|hub| hub.after.keys().cloned().collect()).unwrap_or_default();
        let heads: Vec<_> = after.iter().map(|method| upper(method)).collect();
        let mut columns = vec!["item", "N_10", "wrong", "deserved"];
        columns.extend(heads.iter().map(String::as_str));
        let lines = side.worst.iter().take(HUBS).map(|hub| {
            let name = hub.name.clone().unwrap_or_else(|| hub.item.to_string());
            let mut line = vec![cut(&name), hub.count.to_string(), hub.wrong.to_string()];
            line.push(hub.deserved.map_or_else(dash, percent));
            let count = |method: &String| hub.after.get(method).map_or_else(dash, u64::to_string);
            line.extend(after.iter().map(count));
            line
        });
        table(out, &columns, lines.collect());
        let wrong = side.wrong;
        _ = match side.deserved {
            Some(share) => writeln!(
                out,
                "Over all seeds, the worst hubs have {wrong} wrong places; {} are true beyond the annotation: deserved.\n",
                percent(share)
            ),
            None => {
                writeln!(out, "Nothing here says which of the {wrong} wrong places are deserved.\n")
            }
        };
    }
}

fn table(out: &mut String, heads: &[&str], lines: Vec<Vec<String>>) {
    let heads: Vec<_> = heads.iter().map(|head| (*head).to_owned()).collect();
    let length = |text: &String| text.chars().count();
    let all = || std::iter::once(&heads).chain(&lines);
    let width = |k: usize| all().map(|line| length(&line[k])).max().unwrap_or(0);
    let widths: Vec<_> = (0..heads.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(k, (cell, &width))| match k {
            0 => format!(" {cell:<width$} |"),
            _ => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    *out += &line(&heads);
    let rule = widths.iter().enumerate().map(|(k, &width)| {
        if k == 0 {
            format!("{}|", "-".repeat(width + 2))
        } else {
            format!("{}:|", "-".repeat(width + 1))
        }
    });
    _ = writeln!(out, "|{}", rule.collect::<String>());
    lines.iter().for_each(|cells| *out += &line(cells));
    out.push('\n');
}

fn seeds(count: usize) -> String {
    if count == 1 { "one seed".into() } else { format!("{count} seeds") }
}

/// The name, cut and without `|`, so that it breaks no table.
fn cut(name: &str) -> String {
    let name = name.replace('|', "/");
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name,
    }
}

fn signed(difference: Option<f64>) -> String {
    difference.map_or_else(dash, format::signed)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn dash() -> String {
    "–".into()
}
