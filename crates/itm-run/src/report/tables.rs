//! The tables of recalls.

mod paper;

use itm_report::format::{bytes, count, duration, interval, p_phrase, points, signed};
use itm_report::table::{Role, Table};

use super::json::{Report, Row, RowKind};
use super::{BAYES, CCA, ORACLE, SPECIFIC_ORACLE};

pub(super) use paper::{paper, paper_differences};

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
    let note = format!(
        "Recall in percent. {} Interval: {}. Ties: {}{}.",
        over_seeds(report),
        report.ci95_unit,
        report.tie_policy,
        ties(report)
    );
    let mut t = of_rows(report, format!("Recall on {}", report.dataset)).noted(note);
    for (k, (group, short, head)) in SIX.into_iter().enumerate() {
        t.best(head, rows().map(|r| Some(six(r)[k])), points).under(group, short);
    }
    t.best("rSum", rows().map(|r| Some(r.measured.rsum)), points);
    t.numbers("95 % interval", rows().map(|r| r.measured.ci95), interval);
    if rows().any(|r| r.paper.is_some()) {
        t.numbers("paper rSum", rows().map(|r| r.paper.as_ref()?.rsum), points);
    }
    t
}

/// The short table: R@1 in both directions, rSum with its interval, and its difference to the closed form.
pub(super) fn summary(report: &Report) -> Table {
    let rows = || report.rows.iter();
    let mut t = of_rows(report, format!("Recall on {}, in percent", report.dataset));
    for k in [0, 3] {
        let (_, short, head) = SIX[k];
        t.best(format!("{short}{head}"), rows().map(|r| Some(six(r)[k])), points);
    }
    t.best("rSum", rows().map(|r| Some(r.measured.rsum)), points);
    t.numbers("±", rows().map(|r| r.measured.ci95), |[lo, hi]| points((hi - lo) / 2.0));
    let beside = |r: &Row| report.comparison(&r.name, CCA);
    if rows().any(|r| beside(r).is_some()) {
        t.numbers("− CCA", rows().map(|r| Some(beside(r)?.rsum)), signed);
        t.numbers("95 % interval", rows().map(|r| beside(r)?.ci95), interval);
    }
    t
}

/// Paired tests between rows; `None` if none was made.
pub(super) fn comparisons(report: &Report) -> Option<Table> {
    let all = || report.comparisons.iter();
    let made = match all().next()?.ci95 {
        Some(_) => "Interval: the same queries for both rows. ",
        None => "",
    };
    let test = all().find_map(|c| c.test.as_deref()).unwrap_or("none");
    let lines = all().map(|c| (format!("{} − {}", c.row, c.minus), trained(report, &c.row)));
    let mut t = Table::new("Differences between rows", "difference", lines);
    t.column("rSum", all().map(|c| signed(c.rsum)));
    t.numbers("95 % interval", all().map(|c| c.ci95), interval);
    t.numbers("two-sided test", all().map(|c| c.p_value), p_phrase);
    Some(t.noted(format!("{made}Test: {test}.")))
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
        ("Preset", report.preset.clone()),
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
        1 => ", which decided 1 query".into(),
        n => format!(", which decided {} queries", count(n)),
    }
}

fn six(row: &Row) -> [f64; 6] {
    let ([a, b, c], [d, e, f]) = (row.measured.i2t.values(), row.measured.t2i.values());
    [a, b, c, d, e, f]
}

/// A table with a line for each row and no columns yet.
pub(crate) fn of_rows(report: &Report, title: impl Into<String>) -> Table {
    let line = |r: &Row| (r.name.clone(), role(report, &r.name, r.kind));
    Table::new(title, "row", report.rows.iter().map(line))
}

/// The role of the row `name` in the claim.
pub(crate) fn role(report: &Report, name: &str, kind: RowKind) -> Role {
    match kind {
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

/// The role of a row that is not a baseline.
pub(crate) fn trained(report: &Report, name: &str) -> Role {
    role(report, name, RowKind::Trained)
}

#[cfg(test)]
mod tests;
