//! The tables of recalls, and of the paper's printed numbers.

use itm_core::cca::BestPoint;
use itm_report::format::{bytes, count, duration, interval, p_phrase, points, signed};
use itm_report::table::{Role, Table};

use super::json::{PaperNumbers, Report, Row, RowKind};
use super::{BAYES, CCA, ORACLE, SPECIFIC_ORACLE};

/// Of each of the six recalls: the shared head, the short form of that head, and the recall's own head.
const SIX: [(&str, &str, &str); 6] = [
    ("image → text", "i2t ", "R@1"),
    ("image → text", "i2t ", "R@5"),
    ("image → text", "i2t ", "R@10"),
    ("text → image", "t2i ", "R@1"),
    ("text → image", "t2i ", "R@5"),
    ("text → image", "t2i ", "R@10"),
];

/// Recalls of all rows. The last column is the paper's rSum, if the paper measured the same data.
pub(super) fn recalls(report: &Report) -> Table {
    let rows = || report.rows.iter();
    let Report { ci95_unit: unit, tie_policy: policy, .. } = report;
    let (seeds, ties, chosen) = (over_seeds(report), ties(report), chosen(report));
    let note =
        format!("Recall in percent. {seeds} Interval: {unit}. Ties: {policy}{ties}.{chosen}");
    let mut t = of_rows(report, format!("Recall on {}", report.dataset)).noted(note);
    for (k, (group, short, head)) in SIX.into_iter().enumerate() {
        t.best(head, rows().map(|r| Some(recall(r, k))), points).under(group, short);
    }
    t.best("rSum", rows().map(|r| Some(r.measured.rsum)), points);
    t.numbers("95 % interval", rows().map(|r| r.measured.ci95), interval);
    if rows().any(|r| r.paper.is_some()) {
        t.numbers("paper rSum", rows().map(|r| r.paper.as_ref()?.rsum), points);
    }
    t
}

/// What the validation split chose for the closed form.
fn chosen(report: &Report) -> String {
    let Some(best) = report.row(CCA).and_then(|row| row.chosen) else { return String::new() };
    let BestPoint { ridge_image, ridge_text, power, dims } = best;
    format!(
        " {CCA}: ridges {ridge_image} of images and {ridge_text} of texts, power {power}, {dims} dimensions, the best of its grid on validation."
    )
}

/// The short table: R@1 in both directions, rSum with its interval, and its difference to the closed form.
pub(super) fn summary(report: &Report) -> Table {
    let rows = || report.rows.iter();
    let mut t = of_rows(report, format!("Recall on {}, in percent", report.dataset));
    for k in [0, 3] {
        let (_, short, head) = SIX[k];
        t.best(format!("{short}{head}"), rows().map(|r| Some(recall(r, k))), points);
    }
    t.best("rSum", rows().map(|r| Some(r.measured.rsum)), points);
    t.numbers("±", rows().map(|r| r.measured.ci95), |[lo, hi]| points((hi - lo) / 2.0));
    let beside = |r: &Row| report.comparison(&r.name, CCA);
    if rows().any(|r| beside(r).is_some()) {
        t.numbers("− CCA", rows().map(|r| Some(beside(r)?.rsum)), signed);
        t.numbers("95 % interval", rows().map(|r| Some(beside(r)?.ci95)), interval);
    }
    t
}

/// Paired tests between rows; `None` if none was made.
pub(super) fn comparisons(report: &Report) -> Option<Table> {
    let all = || report.comparisons.iter();
    let test = &all().next()?.test;
    let lines = all().map(|c| (format!("{} − {}", c.row, c.minus), role(report, &c.row)));
    let mut t = Table::new("Differences between rows", "difference", lines);
    t.column("rSum", all().map(|c| signed(c.rsum)));
    t.column("95 % interval", all().map(|c| interval(c.ci95)));
    t.column("two-sided test", all().map(|c| p_phrase(c.p_value)));
    Some(t.noted(format!("Interval: the same queries for both rows. Test: {test}.")))
}

/// The paper's printed lines; `None` if the run has none.
pub(super) fn paper(report: &Report) -> Option<Table> {
    let reference = report.paper_reference.as_ref();
    let printed: Vec<(&str, &PaperNumbers)> = match reference {
        Some(p) => p.rows.iter().map(|r| (r.name.as_str(), &r.numbers)).collect(),
        None => {
            report.rows.iter().filter_map(|r| Some((r.name.as_str(), r.paper.as_ref()?))).collect()
        }
    };
    let table = printed.first()?.1.table;
    let dataset = reference.map_or(&report.dataset, |p| &p.dataset);
    let protocol = reference.map_or(String::new(), |p| format!(", protocol {}", p.protocol));
    let apart = reference
        .map_or(String::new(), |_| format!(" Not comparable with recalls on {}.", report.dataset));
    let lines = printed.iter().map(|(name, _)| (*name, role(report, name)));
    let mut t = Table::new(format!("{dataset} (paper)"), "row", lines)
        .noted(format!("Table {table} as printed{protocol}; rSum is our sum.{apart}"));
    for (k, (group, short, head)) in SIX.into_iter().enumerate() {
        let of = |n: &PaperNumbers| [n.i2t, n.t2i][k / 3].values()[k % 3];
        t.numbers(head, printed.iter().map(|(_, n)| of(n)), points).under(group, short);
    }
    t.numbers("rSum", printed.iter().map(|(_, n)| n.rsum), points);
    Some(t)
}

/// Differences of rSum between the claim's row and the other rows, in the paper and here. `None` if
/// the run measured the paper's own data, or ran fewer than two of the paper's rows.
pub(super) fn paper_differences(report: &Report) -> Option<Table> {
    let reference = report.paper_reference.as_ref()?;
    let method = &report.claim.row;
    let paper = reference.rows.iter().find(|r| r.name == *method)?.numbers.rsum?;
    let others = reference.rows.iter().filter(|r| r.name != *method);
    let found: Vec<_> = others
        .filter_map(|r| {
            let here = report.difference(method, &r.name)?;
            let ci95 = report.comparison(method, &r.name).map(|c| c.ci95);
            Some((&r.name, paper - r.numbers.rsum?, here, ci95))
        })
        .collect();
    let agrees = |&(_, paper, here, ci): &(&String, f64, f64, Option<[f64; 2]>)| match ci {
        Some([lo, hi]) if lo <= 0.0 && hi >= 0.0 => "unsure",
        _ if here * paper > 0.0 => "yes",
        _ => "no",
    };
    let lines = found.iter().map(|d| (format!("{method} − {}", d.0), Role::Other));
    let mut t = Table::new("The same differences, paper and here", "difference", lines).noted(
        "Differences of rSum between rows, each on its own data: the sign and the order can be \
         compared, the sizes cannot. \"unsure\": the interval here includes zero.",
    );
    t.column(format!("{} (paper)", reference.dataset), found.iter().map(|d| signed(d.1)));
    t.column(format!("{} (here)", report.dataset), found.iter().map(|d| signed(d.2)));
    t.numbers("95 % interval here", found.iter().map(|d| d.3), interval);
    t.column("same sign", found.iter().map(agrees));
    (!found.is_empty()).then_some(t)
}

/// What was run, as pairs of label and value.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let seeds: Vec<_> = report.seeds.iter().map(u64::to_string).collect();
    let mut protocols: Vec<&str> = report.rows.iter().map(|r| r.protocol.as_str()).collect();
    protocols.dedup();
    vec![
        ("Target", report.target.clone()),
        ("Data", report.dataset.clone()),
        ("Protocol", protocols.join("; ")),
        ("Seeds", if seeds.is_empty() { "none".into() } else { seeds.join(", ") }),
        ("Backend", report.backend.clone()),
        ("Threads", report.threads.to_string()),
        ("Time", duration(report.seconds)),
        ("Peak memory", bytes(report.peak_memory_bytes)),
        ("Commit", report.commit.clone()),
        ("Config SHA-256", report.config_sha256.clone()),
        ("Data SHA-256", report.data_sha256.clone()),
    ]
}

fn over_seeds(report: &Report) -> String {
    match report.seeds.len() {
        0 => String::new(),
        1 => "Trained rows: one seed.".into(),
        n => format!("Trained rows: mean of {n} seeds."),
    }
}

fn ties(report: &Report) -> String {
    let decided: Vec<_> = report.rows.iter().filter_map(|r| r.measured.ties_decided).collect();
    match decided.iter().sum::<u64>() {
        _ if decided.is_empty() => String::new(),
        0 => ", which decided no query".into(),
        1 => ", which decided 1 query of all rows".into(),
        n => format!(", which decided {} queries of all rows", count(n)),
    }
}

/// The k-th of [`SIX`].
fn recall(row: &Row, k: usize) -> f64 {
    [row.measured.i2t, row.measured.t2i][k / 3].values()[k % 3]
}

/// An interval of shares, in percent.
pub(crate) fn percent(ends: [f64; 2]) -> String {
    format!("{} %", interval(ends.map(|end| 100.0 * end)))
}

/// A table with a line for each row and no columns yet.
pub(crate) fn of_rows(report: &Report, title: impl Into<String>) -> Table {
    let line = |r: &Row| (r.name.clone(), role(report, &r.name));
    Table::new(title, "row", report.rows.iter().map(line))
}

/// The role of the row `name` in the claim.
pub(crate) fn role(report: &Report, name: &str) -> Role {
    match report.row(name).map_or(RowKind::Trained, |row| row.kind) {
        _ if name == report.claim.row => Role::Method,
        RowKind::Baseline if is_bound(name) => Role::Bound,
        RowKind::Baseline => Role::Baseline,
        RowKind::Trained => Role::Other,
    }
}

/// Whether a row is of an oracle.
pub(super) fn is_bound(name: &str) -> bool {
    [ORACLE, SPECIFIC_ORACLE, BAYES].contains(&name)
}

#[cfg(test)]
mod tests;
