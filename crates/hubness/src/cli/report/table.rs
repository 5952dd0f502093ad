//! The tables, the same for terminal and page.

use super::format::{
    NONE, count, interval, measure, p, points, rank, share, signed, signed_interval,
};
use super::methods::{mark, params, title};
use super::model::{HubMeasures, Report, Row};
use super::verdict::{self, significant};
use crate::Direction;

/// A column: its cells stand one for each row of the report.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// What it shares with its neighbours: `i2t`.
    pub(super) group: &'static str,
    pub(super) head: String,
    /// The lower, the longer it stays where there is little room; 0 always stays.
    pub(super) rank: u8,
    pub(super) side: Side,
    pub(super) cells: Vec<Cell>,
}

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// One of the best of its column, as far as the printed digits tell.
    pub(super) best: bool,
}

/// Recalls of all rows with what is known of the differences; skewness at the end.
pub(super) fn results(report: &Report) -> Vec<Column> {
    let rows = &report.rows;
    let words = |head: &str, rank, f: &dyn Fn(&Row) -> String| {
        column("", head, rank, Side::Left, rows.iter().map(f))
    };
    let mut out = vec![
        words("method", 0, &|r| title(&r.method)),
        words("parameters", 6, &|r| params(&r.params)),
        words("", 0, &|r| mark(r).into()),
    ];
    for d in report.directions() {
        for (k, head) in ["R@1", "R@5", "R@10"].into_iter().enumerate() {
            let values = rows.iter().map(|r| r.recalls.get(d).map(|v| v.values()[k]));
            let rank = [2, 8, 7][k];
            out.push(best(
                column(name(d), head, rank, Side::Right, numbers(values.clone(), points)),
                values,
            ));
        }
    }
    let rsums = rows.iter().map(|r| Some(r.rsum));
    out.push(best(column("", "rSum", 0, Side::Right, numbers(rsums.clone(), points)), rsums));
    let right = |head: &str, rank, f: &dyn Fn(&Row) -> Option<String>| {
        let cells = rows.iter().map(|r| f(r).unwrap_or_else(|| NONE.into()));
        column("", head, rank, Side::Right, cells)
    };
    out.extend([
        right("95 %", 9, &|r| r.ci95.map(interval)),
        right("vs NNS", 0, &|r| {
            let star = if significant(r) { "*" } else { " " };
            r.difference.map(|d| signed(d.rsum) + star)
        }),
        right("95 % of it", 4, &|r| r.difference?.ci95.map(signed_interval)),
        right("p (Holm)", 1, &|r| verdict::p(r).map(p)),
    ]);
    for d in report.directions() {
        let skewness =
            rows.iter().map(|r| verdict::at(verdict::after(report, r, d), 10).map(|m| m.skewness));
        out.push(column(
            "skewness",
            &format!("N10 {d}"),
            3,
            Side::Right,
            numbers(skewness, measure),
        ));
    }
    // A column of nothing but dashes says nothing.
    out.retain(|c| {
        c.rank == 0 || c.cells.iter().any(|cell| cell.text != NONE && !cell.text.is_empty())
    });
    out
}

/// Hub measures at `k` of all rows, one direction.
pub(super) fn measures(report: &Report, direction: Direction, k: u64) -> Vec<Column> {
    let rows = || report.rows.iter().map(|r| verdict::at(verdict::after(report, r, direction), k));
    let number = |head: &str, f: &dyn Fn(&HubMeasures) -> String| {
        let cells = rows().map(|m| m.map_or_else(|| NONE.into(), f));
        column("", head, 0, Side::Right, cells)
    };
    vec![
        column("", "method", 0, Side::Left, report.rows.iter().map(|r| title(&r.method))),
        number("skewness", &|m| measure(m.skewness)),
        number("Robin Hood", &|m| measure(m.robin_hood)),
        number("Gini", &|m| measure(m.gini)),
        number("Atkinson", &|m| measure(m.atkinson)),
        number("in no list", &|m| share(m.anti_hub_share)),
        number("hubs", &|m| count(m.hubs)),
        number("places of hubs", &|m| share(m.hub_occurrence)),
        number("largest", &|m| share(m.max)),
    ]
}

/// Median and mean ranks of all rows; `None` if no row has any.
pub(super) fn ranks(report: &Report) -> Option<Vec<Column>> {
    let rows = &report.rows;
    let mut out = vec![column("", "method", 0, Side::Left, rows.iter().map(|r| title(&r.method)))];
    for d in report.directions() {
        let of = |f: fn(&super::Recalls) -> Option<f64>| {
            rows.iter().map(move |r| f(r.recalls.get(d)?))
        };
        let (median, mean) = (of(|r| r.median_rank), of(|r| r.mean_rank));
        out.push(column(name(d), "median", 0, Side::Right, numbers(median, rank)));
        out.push(column(name(d), "mean", 0, Side::Right, numbers(mean, rank)));
    }
    out[1..].iter().any(|c| c.cells.iter().any(|cell| cell.text != NONE)).then_some(out)
}

/// A direction as a heading.
pub(super) fn name(direction: Direction) -> &'static str {
    direction.queries("image -> text", "text -> image")
}

/// What the items of a direction are called: one and several.
pub(super) fn items(direction: Direction) -> [&'static str; 2] {
    direction.items(["image", "images"], ["text", "texts"])
}

/// What the queries of a direction are called: one and several.
pub(super) fn queries(direction: Direction) -> [&'static str; 2] {
    items(direction.reversed())
}

fn column(
    group: &'static str,
    head: &str,
    rank: u8,
    side: Side,
    cells: impl Iterator<Item = String>,
) -> Column {
    let cells = cells.map(|text| Cell { text, best: false }).collect();
    Column { group, head: head.to_owned(), rank, side, cells }
}

fn numbers(
    values: impl Iterator<Item = Option<f64>>,
    text: fn(f64) -> String,
) -> impl Iterator<Item = String> {
    values.map(move |v| v.map_or_else(|| NONE.into(), text))
}

/// Marks the highest value and all that print the same.
fn best(mut column: Column, values: impl Iterator<Item = Option<f64>>) -> Column {
    let values = values.zip(&column.cells).filter_map(|(v, cell)| Some((v?, &cell.text)));
    let top = values
        .filter(|(v, _)| v.is_finite())
        .reduce(|a, b| if b.0 > a.0 { b } else { a })
        .map(|(_, text)| text.clone());
    let several = column.cells.len() > 1;
    for cell in &mut column.cells {
        cell.best = several && Some(&cell.text) == top.as_ref();
    }
    column
}

#[cfg(test)]
mod tests;
