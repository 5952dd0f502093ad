//! The first sentence of a report: does any correction help?

use itm_report::format::{decimals, p_phrase, points, signed, signed_interval};

use super::methods::title;
use crate::report::{HubMeasures, Report, ReportRow};
use crate::{Direction, Setting};

/// A difference counts as real if its p-value (Holm) is below this level.
pub(super) const LEVEL: f64 = 0.05;

/// The verdict of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Whether anything helps.
    pub(super) outcome: Outcome,
    /// A few plain sentences.
    pub(super) text: String,
}

/// Whether any correction helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// At least one row is significantly above nearest neighbours.
    Helps,
    /// Rows were compared, but none is significantly above.
    Nothing,
    /// There is nothing to compare, or no test was made.
    Untested,
}

pub(super) fn of(report: &Report) -> Finding {
    let Some(base) = report.baseline() else {
        let text = "No verdict: plain nearest neighbours (nns) were not measured.".into();
        return Finding { outcome: Outcome::Untested, text };
    };
    let others: Vec<_> = report.rows.iter().filter(|r| r.method != Report::BASELINE).collect();
    let Some(top) = shown(report) else {
        let (rsum, hubs) = (points(base.rsum), hubs(report, base));
        let text = format!("rSum {rsum}; no correction to compare with.{hubs}");
        return Finding { outcome: Outcome::Untested, text };
    };
    let proven = || others.iter().copied().filter(|r| significant(r));
    let helping: Vec<_> = proven().filter(|r| gain(r) > 0.0).collect();
    let change =
        |row: &ReportRow| format!("rSum from {} to {}", points(base.rsum), points(row.rsum));
    let (outcome, mut text) = match best(helping.iter().copied()) {
        Some(row) => {
            let (name, change, detail) = (title(&row.method), change(row), detail(row));
            let text = format!("{name} lifts {change} ({detail}).{}", hubs(report, row));
            (Outcome::Helps, text + &without_leak(row, &helping, &others))
        }
        None => {
            let (outcome, what) = match others.iter().any(|r| p(r).is_some()) {
                true => (Outcome::Nothing, "No correction helps significantly"),
                false => (Outcome::Untested, "Differences were not tested"),
            };
            let (name, change, detail) = (title(&top.method), change(top), detail(top));
            let hubs = hubs(report, base);
            let holm = top.difference.and_then(|d| d.p_holm).is_some_and(f64::is_finite);
            let note = if holm { " Its p-value is Holm's over all rows." } else { "" };
            (outcome, format!("{what}: the best, {name}, takes {change} ({detail}).{note}{hubs}"))
        }
    };
    let harmful: Vec<_> = proven().filter(|r| gain(r) < 0.0).map(|r| title(&r.method)).collect();
    if !harmful.is_empty() {
        text += &format!(" Significantly worse than doing nothing: {}.", harmful.join(", "));
    }
    Finding { outcome, text }
}

/// The row with the highest rSum; of equal rows, the first.
fn best<'a>(rows: impl Iterator<Item = &'a ReportRow>) -> Option<&'a ReportRow> {
    rows.filter(|r| r.rsum.is_finite()).reduce(|a, b| if b.rsum > a.rsum { b } else { a })
}

/// The row that histograms compare with nearest neighbours: the best other row, whether it helps or
/// not.
pub(super) fn shown(report: &Report) -> Option<&ReportRow> {
    best(report.rows.iter().filter(|r| r.method != Report::BASELINE))
}

/// Whether a row's difference counts as real, up or down.
pub(super) fn significant(row: &ReportRow) -> bool {
    p(row).is_some_and(|p| p < LEVEL)
}

/// A row's p-value: Holm's if it is known, otherwise the raw one.
pub(super) fn p(row: &ReportRow) -> Option<f64> {
    row.difference.and_then(|d| d.p_holm).or(row.p_value).filter(|p| p.is_finite())
}

/// The measures at `k`.
pub(super) fn at(measures: Option<&Vec<HubMeasures>>, k: u64) -> Option<&HubMeasures> {
    measures?.iter().find(|m| m.k == k)
}

fn gain(row: &ReportRow) -> f64 {
    row.difference.map_or(0.0, |d| d.rsum)
}

fn detail(row: &ReportRow) -> String {
    let difference = row.difference;
    let mut parts: Vec<String> = difference.map(|d| signed(d.rsum)).into_iter().collect();
    parts.extend(difference.and_then(|d| d.ci95).map(|ci| format!("95 % {}", signed_interval(ci))));
    parts.extend(p(row).map(p_phrase));
    let setting = row.setting;
    parts.extend((setting != Setting::Plain).then(|| setting.to_string()));
    parts.join(", ")
}

/// A sentence on the best row that did not see the other test queries, if the best row saw them.
fn without_leak(row: &ReportRow, helping: &[&ReportRow], others: &[&ReportRow]) -> String {
    let blind = |r: &&ReportRow| r.setting != Setting::Transductive;
    if blind(&row) {
        return String::new();
    }
    let blind_rows = "correction that did not see the other test queries";
    match best(helping.iter().copied().filter(blind)) {
        Some(row) => {
            let (name, rsum) = (title(&row.method), points(row.rsum));
            format!(" The best {blind_rows} is {name}: rSum {rsum} ({}).", detail(row))
        }
        None if others.iter().any(blind) => format!(" No {blind_rows} helps significantly."),
        None => String::new(),
    }
}

/// The change of the skewness of N_10, in the direction where the skewness is worst.
fn hubs(report: &Report, row: &ReportRow) -> String {
    let skewness = |d: Direction| {
        let side = report.hubs.sides.get(d)?;
        let value = at(Some(&side.measures), 10)?.skewness;
        value.is_finite().then_some((value, d))
    };
    let worst = Direction::BOTH.into_iter().filter_map(skewness).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((before, direction)) = worst else { return String::new() };
    if row.method == Report::BASELINE {
        return format!(" The skewness of N10 {direction} is {}.", decimals(before, 2));
    }
    let after = at(row.hubs_after.get(direction), 10).map(|m| m.skewness);
    let Some(after) = after.filter(|v| v.is_finite()) else { return String::new() };
    let (from, to) = (decimals(before, 2), decimals(after, 2));
    let verb = if after < before { "falls" } else { "goes" };
    format!(" The skewness of N10 {direction} {verb} from {from} to {to}.")
}

#[cfg(test)]
mod tests;
