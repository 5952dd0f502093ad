//! Tables that only data with a complete truth has.

use std::collections::BTreeSet;

use super::{NONE, Table, column, line, mark_best};
use crate::report::format::{count, prior, share, unit};
use crate::report::json::{Report, Row, Truth};

/// Measures against the complete truth; `None` where there is none.
pub(in crate::report) fn truth(report: &Report) -> Option<Table> {
    let truths: Vec<_> = report.rows.iter().map(|r| r.truth.as_ref()).collect();
    let first_prior = truths.iter().flatten().find_map(|t| t.prior);
    if truths.iter().all(Option::is_none) {
        return None;
    }
    let one_prior = truths.iter().flatten().all(|t| t.prior.is_none() || t.prior == first_prior);
    let at = match first_prior {
        Some(p) if one_prior => format!("Brier skill, p = {}", prior(p)),
        _ => "Brier skill, row's p".into(),
    };
    let values = |t: &Truth| {
        [t.map_at_r, t.r_precision, t.posterior_auc, t.brier_skill, t.brier_skill_at_base_rate]
    };
    let lines = report.rows.iter().map(|row| {
        let t = row.truth.clone().unwrap_or_default();
        let mut cells: Vec<_> = values(&t).map(|x| x.map_or(NONE.into(), unit)).into();
        cells.push(t.base_rate.map_or(NONE.into(), share));
        cells.push(t.candidates.map_or(NONE.into(), count));
        line(report, row, cells)
    });
    let mut table = Table {
        title: "Against the complete truth".into(),
        note: "mAP@R and R-precision: mean of both directions, all true items counted. Posterior: \
               as a detector of false negatives among candidates that survive the margin cut; \
               AUC 0.5 is guessing, Brier skill 0 is always saying the base rate."
            .into(),
        stub: "row",
        columns: [
            "mAP@R",
            "R-precision",
            "posterior AUC",
            &at,
            "Brier skill, p = base rate",
            "base rate",
            "candidates",
        ]
        .map(column)
        .into(),
        lines: lines.collect(),
    };
    for k in 0..2 {
        mark_best(&mut table, k, |i| truths[i].and_then(|t| values(t)[k]));
    }
    Some(table)
}

/// How many drawn negatives were true; `None` where that is not known.
pub(in crate::report) fn draws(report: &Report) -> Option<Table> {
    let known = |row: &Row| row.truth.as_ref().is_some_and(|t| t.drawn_true_share.is_some());
    if !report.rows.iter().any(known) {
        return None;
    }
    let truths = report.rows.iter().filter_map(|row| row.truth.as_ref());
    let others: BTreeSet<&String> = truths.flat_map(|t| t.other_true_shares.keys()).collect();
    let lines = report.rows.iter().map(|row| {
        let t = row.truth.clone().unwrap_or_default();
        let shares = [t.drawn_true_share, t.uniform_true_share, t.hardest_true_share];
        let of_others = others.iter().map(|name| t.other_true_shares.get(*name).copied());
        let shares = shares.into_iter().chain(of_others);
        let mut cells: Vec<_> = shares.map(|x| x.map_or(NONE.into(), share)).collect();
        cells.push(t.draws.map_or(NONE.into(), count));
        line(report, row, cells)
    });
    Some(Table {
        title: "Drawn negatives that were truly false negatives".into(),
        note: "Share of the negatives a row trained on that are in truth a match, beside what \
               uniform and hardest drawing, and the weights of FNE's presets, would have taken from \
               the same candidates. Lower is cleaner."
            .into(),
        stub: "row",
        columns: ["as drawn", "uniform", "hardest"]
            .into_iter()
            .chain(others.iter().map(|name| name.as_str()))
            .chain(["draws"])
            .map(column)
            .collect(),
        lines: lines.collect(),
    })
}
