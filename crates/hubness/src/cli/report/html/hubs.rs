//! What the page says of hubs.

use super::super::format::{NONE, count, counted, score, share, typeset};
use super::super::methods::title;
use super::super::model::{Hub, HubSide, Report, Victim};
use super::super::plots::{self, Key, Shape};
use super::super::table::{self, items, queries};
use super::heading;
use super::page::{details, escape, grid, key, table};
use crate::Direction;

/// Measures and distributions of N_k, by direction.
pub(super) fn counts(out: &mut String, report: &Report) {
    let mut first = true;
    for (direction, side) in sides(report) {
        let lists = direction.queries(report.data.images, report.data.texts);
        let ([_, things], [one, many]) = (items(direction), queries(direction));
        let head = heading(direction);
        *out +=
            &format!("<h3>{head}: {things} in the lists of {}</h3>\n", counted(lists, one, many));
        let label = format!("Hub measures at k = 10, {head}");
        table(out, &label, report, &table::measures(report, direction, 10));
        *out += "<p class=\"note\">At k = 10, over all items, those in no list included.</p>\n";
        let figures = plots::counts(report, side, direction, 10);
        if !figures.is_empty() {
            *out += "<p class=\"note\">Share of the items (upwards) by N<sub>10</sub> (to the right), \
                     both logarithmic.</p>\n<p class=\"legend\">";
            for (label, series) in [("before: NNS", 6), ("after the method", 0)] {
                key(out, &Key { label: label.into(), shape: Shape::Line(series, "none") });
            }
            *out += "</p>\n";
            grid(out, "small", figures);
        }
        for k in side.measures.iter().map(|m| m.k).filter(|&k| k != 10) {
            details(out, &format!("The same at k = {k}"), |out| {
                let label = format!("Hub measures at k = {k}, {head}");
                table(out, &label, report, &table::measures(report, direction, k));
                grid(out, "small", plots::counts(report, side, direction, k));
            });
        }
        first = false;
    }
    if first {
        *out += "<p>Not measured.</p>\n";
    }
    if let Some(sum) = report.hubs.hs_sum.filter(|v| v.is_finite()) {
        *out += &format!(
            "<p class=\"note\">Sum of NNS’s skewness over k = 1, 5, 10 and the directions \
             measured: {}.</p>\n",
            typeset(&super::super::format::measure(sum))
        );
    }
}

/// The worst hubs by name, by direction.
pub(super) fn worst(out: &mut String, report: &Report) {
    let mut none = true;
    for (direction, side) in sides(report).filter(|(_, side)| !side.worst.is_empty()) {
        none = false;
        worst_of(out, report, direction, side);
    }
    if none {
        *out += "<p>None were listed.</p>\n";
    }
}

fn worst_of(out: &mut String, report: &Report, direction: Direction, side: &HubSide) {
    let [noun, things] = items(direction);
    let head = heading(direction);
    let deserved = side.worst.iter().any(|h| h.deserved.is_some());
    let listed = |method: &&str| side.worst.iter().any(|h| h.after.contains_key(*method));
    let methods: Vec<&str> = report.rows.iter().map(|r| r.method.as_str()).filter(listed).collect();
    let mut heads = vec![("N<sub>10</sub>".to_owned()), "first".into(), "wrong".into()];
    heads.extend(deserved.then(|| "deserved".into()));
    heads.extend(methods.iter().map(|m| escape(&title(m))));

    *out += &format!(
        "<h3>{head}: {things}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"The worst hubs, {head}\">\n<table class=\"worst\">\n<thead>\n"
    );
    if !methods.is_empty() {
        *out += &format!(
            "<tr>{}<th colspan=\"{}\" scope=\"colgroup\" class=\"group\">N<sub>10</sub> after</th>\
             </tr>\n",
            "<td></td>".repeat(4 + usize::from(deserved)),
            methods.len()
        );
    }
    *out += &format!("<tr><th scope=\"col\">{noun}</th>");
    heads.iter().for_each(|h| *out += &format!("<th scope=\"col\">{h}</th>"));
    *out += "</tr>\n</thead>\n<tbody>\n";
    for hub in &side.worst {
        row(out, hub, noun, deserved, &methods);
        victims(out, hub, direction, heads.len() + 1);
    }
    *out += "</tbody>\n</table>\n</div>\n<p class=\"note\">First: for how many queries it comes \
             first. Wrong: in how many of its lists it is not what was asked for.";
    if deserved {
        *out += " Deserved: the share of those that are right all the same, though not annotated.";
    }
    *out += "</p>\n";
}

fn row(out: &mut String, hub: &Hub, noun: &str, deserved: bool, methods: &[&str]) {
    *out += &format!("<tr><th scope=\"row\">{}</th>", called(hub.name.as_deref(), noun, hub.item));
    for n in [hub.count, hub.first, hub.wrong] {
        *out += &format!("<td>{}</td>", count(n));
    }
    if deserved {
        let text = hub.deserved.map_or_else(|| NONE.into(), share);
        *out += &format!("<td>{}</td>", typeset(&text));
    }
    for method in methods {
        let text = hub.after.get(*method).map_or_else(|| NONE.into(), |&n| count(n));
        *out += &format!("<td>{}</td>", typeset(&text));
    }
    *out += "</tr>\n";
}

fn victims(out: &mut String, hub: &Hub, direction: Direction, columns: usize) {
    if hub.victims.is_empty() {
        return;
    }
    let [one, many] = queries(direction);
    let n = counted(hub.victims.len() as u64, one, many);
    *out += &format!("<tr class=\"victims\"><td colspan=\"{columns}\">");
    details(out, &format!("for example {n} that it wrongly wins"), |out| {
        *out += "<ul>\n";
        for Victim { query, name, hub_score, true_score, true_rank } in &hub.victims {
            *out += &format!(
                "<li>{}<span class=\"by\">: {} over {}; the right one is at rank {}</span></li>\n",
                called(name.as_deref(), one, *query),
                typeset(&score(*hub_score)),
                typeset(&score(*true_score)),
                count(*true_rank)
            );
        }
        *out += "</ul>\n";
    });
    *out += "</td></tr>\n";
}

/// A name with its index, or `text 17`.
fn called(name: Option<&str>, noun: &str, index: u64) -> String {
    match name {
        Some(name) => {
            format!(
                "<q><bdi>{}</bdi></q> <span class=\"by\">{noun}&nbsp;{index}</span>",
                escape(name)
            )
        }
        None => format!("{noun} {index}"),
    }
}

fn sides(report: &Report) -> impl Iterator<Item = (Direction, &HubSide)> {
    Direction::BOTH.into_iter().filter_map(|d| Some((d, report.hubs.sides.get(d)?)))
}
