//! The figures of recalls.

use itm_report::figure::{self, Course, Estimate, Figure, courses, estimates};
use itm_report::format::points;
use itm_report::plot::{Ink, Point};
use itm_report::table::Role;

use super::CHANCE;
use super::json::{Measured, Report, Row};
use super::tables::{is_bound, role};

/// Colours of rows that are neither the claim's nor a baseline: five colours, then their pale versions.
const OTHERS: [u8; 10] = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12];

/// Every row with its colour. The claim's row has the first colour, baselines have two colours of their own. The
/// eleventh other row is the first that shares a colour.
pub(crate) fn coloured(report: &Report) -> Vec<(&Row, u8)> {
    let mut others = OTHERS.into_iter().cycle();
    let mut colour = |row: &Row| match role(report, &row.name) {
        Role::Method => 0,
        Role::Baseline if row.name == CHANCE => 6,
        Role::Baseline | Role::Bound => 7,
        Role::Other => others.next().unwrap_or_default(),
    };
    report.rows.iter().map(|row| (row, colour(row))).collect()
}

/// rSum and recalls of the rows.
pub(super) fn recall(report: &Report) -> Vec<Figure> {
    let rows = coloured(report);
    let estimate = |&(row, series): &(&Row, u8)| Estimate {
        name: row.name.clone(),
        series,
        value: row.measured.rsum,
        interval: row.measured.ci95,
        parts: row.measured.per_seed.iter().map(|seed| seed.rsum).collect(),
    };
    let ranked: Vec<_> =
        rows.iter().filter(|(r, _)| r.name != CHANCE && !is_bound(&r.name)).map(estimate).collect();
    let chance = report.row(CHANCE).filter(|_| !ranked.is_empty());
    let apart = chance.map_or(String::new(), |row| {
        format!("; {CHANCE}, {}, is not drawn", points(row.measured.rsum))
    });
    type Bar = ([f64; 3], Option<[[f64; 2]; 3]>); // the recalls and, if known, their intervals
    let bars = |title: &str, of: fn(&Measured) -> Bar| {
        let row = |&(row, series): &(&Row, u8)| {
            let (name, (values, intervals)) = (row.name.clone(), of(&row.measured));
            figure::RecallBars { name, series, values, intervals }
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        let known = rows.iter().any(|row| row.intervals.is_some());
        let whiskers = if known { " with 95 % intervals" } else { "" };
        figure::recalls(format!("{title}{whiskers}"), &rows)
    };
    let title = format!("rSum with 95 % interval; ticks: seeds{apart}");
    let figures = [
        estimates(title, "rSum", &ranked, None),
        bars("Image → text", |m| (m.i2t.values(), m.ci95_recalls.map(|ci| ci.i2t))),
        bars("Text → image", |m| (m.t2i.values(), m.ci95_recalls.map(|ci| ci.t2i))),
    ];
    figures.into_iter().flatten().collect()
}

/// The paper's figure: recall over what differs between the rows.
pub(super) fn parameter(report: &Report) -> Vec<Figure> {
    let Some(of) = &report.figure else { return Vec::new() };
    let points = || of.points.iter().filter_map(|p| Some((p.x, &report.row(&p.row)?.measured)));
    type Value = fn(&Measured) -> f64;
    type Ends = fn(&Measured) -> Option<[f64; 2]>;
    let line = |name: &str, series, value: Value, ends: Ends| Course {
        intervals: points().filter_map(|(x, m)| Some((x, ends(m)?))).collect(),
        ..dotted(name, series, points().map(|(x, m)| (x, value(m))).collect())
    };
    let r1 = [
        line("image → text", 0, |m| m.i2t.r1, |m| m.ci95_recalls.map(|ci| ci.i2t[0])),
        line("text → image", 1, |m| m.t2i.r1, |m| m.ci95_recalls.map(|ci| ci.t2i[0])),
    ];
    let rsum = [line("rSum", 0, |m| m.rsum, |m| m.ci95)];
    let (number, x) = (of.number, of.x.as_str());
    let title = |what: &str| format!("Figure {number}: {what} over `{x}`, 95 % intervals");
    let figures = [
        courses(title("rSum"), [x, "rSum"], &rsum, &[]),
        courses(title("R@1"), [x, "R@1, %"], &r1, &[]),
    ];
    figures.into_iter().flatten().collect()
}

/// A line with dots.
pub(crate) fn dotted(name: &str, series: u8, points: Vec<Point>) -> Course {
    Course::new(name, Ink::dashed(series), points).dotted(9)
}

#[cfg(test)]
mod tests;
