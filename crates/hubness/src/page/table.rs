//! The tables, the same for terminal and page.

use itm_report::format::{
    NONE, count, counted, decimals, interval, p, points, rank, share, signed, signed_interval,
};
use itm_report::table::{Role, Table};

use super::methods::{mark, params, title};
use super::verdict::{self, significant};
use crate::Direction;
use crate::report::{HubMeasures, HubSide, Report, ReportRow};

/// Recalls of all rows, their differences from NNS where known, and skewness at the end.
pub(super) fn results(report: &Report) -> Table {
    let rows = || report.rows.iter();
    let mut t = of_rows(report, "Recall of all methods");
    t.column("parameters", rows().map(|r| params(&r.params))).words().ranked(6);
    t.column("", rows().map(mark)).words();
    for d in report.directions() {
        for (k, (head, rank)) in [("R@1", 2), ("R@5", 8), ("R@10", 7)].into_iter().enumerate() {
            let values = rows().map(|r| Some(r.recalls.get(d)?.values()[k]));
            let short = if k == 0 { d.queries("i2t\n", "t2i\n") } else { "" };
            t.best(head, values, points).under(name(d), short).ranked(rank);
        }
        let precision = rows().map(|r| r.recalls.get(d)?.map_at_r);
        t.best("mAP@R", precision, points).under(name(d), "").ranked(5);
        let precision = rows().map(|r| r.recalls.get(d)?.r_precision);
        t.best("R-P", precision, points).under(name(d), "").ranked(5);
    }
    t.best("rSum", rows().map(|r| Some(r.rsum)), points);
    t.numbers("95 %", rows().map(|r| r.ci95), interval).ranked(9);
    let star = |r: &ReportRow| if significant(r) { "*" } else { " " };
    let differences = rows().map(|r| Some((r.difference?.rsum, star(r))));
    t.numbers("vs NNS", differences, |(rsum, star)| signed(rsum) + star);
    t.numbers("95 % of it", rows().map(|r| r.difference?.ci95), signed_interval).ranked(4);
    t.numbers("p (Holm)", rows().map(verdict::p), p).ranked(1);
    for (i, d) in report.directions().enumerate() {
        let skewness = rows().map(|r| Some(verdict::at(r.hubs_after.get(d), 10)?.skewness));
        let short = if i == 0 { "skewness\n" } else { "" };
        t.numbers(format!("N10 {d}"), skewness, |x| decimals(x, 2))
            .under("skewness", short)
            .ranked(3);
    }
    // A column of dashes says nothing.
    let says = |text: &str| !text.is_empty() && text != NONE;
    t.columns.retain(|c| c.rank == 0 || c.cells.iter().any(|cell| says(&cell.text)));
    t
}

/// Hub measures at `k` of all rows in one direction.
pub(super) fn measures(report: &Report, direction: Direction, k: u64) -> Table {
    let mut t = of_rows(report, format!("Hub measures at k = {k}, {}", name(direction)));
    let mut number = |head: &str, text: fn(&HubMeasures) -> String| {
        let rows = report.rows.iter();
        t.numbers(head, rows.map(|r| verdict::at(r.hubs_after.get(direction), k)), text);
    };
    number("skewness", |m| decimals(m.skewness, 2));
    number("Robin Hood", |m| decimals(m.robin_hood, 2));
    number("Gini", |m| decimals(m.gini, 2));
    number("Atkinson", |m| decimals(m.atkinson, 2));
    number("in no list", |m| share(m.anti_hub_share));
    number("hubs", |m| count(m.hubs));
    number("places of hubs", |m| share(m.hub_occurrence));
    number("largest", |m| share(m.max));
    t
}

/// Median and mean ranks of all rows; `None` if no row has any.
pub(super) fn ranks(report: &Report) -> Option<Table> {
    let mut t = of_rows(report, "Median and mean ranks")
        .noted("Ranks count from 1. Methods whose lists end early, such as RGM, have none.");
    for d in report.directions() {
        let recalls = || report.rows.iter().map(|r| r.recalls.get(d));
        t.numbers("median", recalls().map(|r| r?.median_rank), rank).under(name(d), "");
        t.numbers("mean", recalls().map(|r| r?.mean_rank), rank).under(name(d), "");
    }
    let known = t.columns.iter().flat_map(|c| &c.cells).any(|cell| cell.text != NONE);
    known.then_some(t)
}

/// The first `most` of the worst hubs of a direction: N_10 before and after each of `methods`.
pub(super) fn hubs(side: &HubSide, direction: Direction, most: usize, methods: &[&str]) -> Table {
    let hubs = || side.worst.iter().take(most);
    let names = hubs().map(|_| (String::new(), Role::Other));
    let title_of = format!("The worst hubs, {}", name(direction));
    let mut t = Table::new(title_of, items(direction)[0], names);
    t.column("N10", hubs().map(|h| count(h.count)));
    t.column("first", hubs().map(|h| count(h.first)));
    t.column("wrong", hubs().map(|h| count(h.wrong)));
    if hubs().any(|h| h.deserved.is_some()) {
        t.numbers("deserved", hubs().map(|h| h.deserved), share);
    }
    for &method in methods.iter().filter(|m| hubs().any(|h| h.after.contains_key(**m))) {
        let after = hubs().map(|h| h.after.get(method).copied());
        t.numbers(title(method), after, count).under("N₁₀ after", "N10 ");
    }
    t
}

/// A direction as a heading.
pub(super) fn name(direction: Direction) -> &'static str {
    direction.queries("image → text", "text → image")
}

/// The word for the items of a direction, singular and plural.
pub(super) fn items(direction: Direction) -> [&'static str; 2] {
    direction.items(["image", "images"], ["text", "texts"])
}

/// The word for the queries of a direction, singular and plural.
pub(super) fn queries(direction: Direction) -> [&'static str; 2] {
    items(direction.reversed())
}

/// The number of images and of texts, with their nouns.
pub(super) fn size(report: &Report) -> [String; 2] {
    let data = &report.data;
    [counted(data.images, "image", "images"), counted(data.texts, "text", "texts")]
}

/// Which of two equal scores comes first, and how many queries that decides with nearest neighbours.
pub(super) fn ties(report: &Report) -> String {
    let decided = |d: Direction| {
        let recalls = report.baseline()?.recalls.get(d)?;
        Some(format!("{} of {} {d}", count(recalls.decided_by_ties?), count(recalls.queries)))
    };
    let decided: Vec<_> = report.directions().filter_map(decided).collect();
    let policy = &report.settings.tie_policy;
    match decided.as_slice() {
        [] => policy.clone(),
        all => format!("{policy}, which decides a hit of NNS for {} queries", all.join(" and ")),
    }
}

/// A table with a line for each row and no columns yet.
fn of_rows(report: &Report, name: impl Into<String>) -> Table {
    let role =
        |r: &ReportRow| if r.method == Report::BASELINE { Role::Baseline } else { Role::Other };
    Table::new(name, "method", report.rows.iter().map(|r| (title(&r.method), role(r))))
}

#[cfg(test)]
mod tests;
