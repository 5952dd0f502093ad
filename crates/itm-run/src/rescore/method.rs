//! One inference over the seeds of a row.

use hubness::Direction;
use hubness::report::{Param, Report, ReportRow};
use serde::Serialize;

use crate::paper::Inferences;
use crate::report::mean;

/// A difference with a p-value below this level, after Holm's correction, is significant.
const LEVEL: f64 = 0.05;

/// One inference over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct MethodSummary {
    pub(super) method: String,
    pub(super) rsum: f64,
    pub(super) per_seed: Vec<f64>,
    /// Difference to nearest neighbours.
    pub(super) difference: Option<f64>,
    /// Number of reports in which it is significantly above nearest neighbours.
    pub(super) above: usize,
    /// Number of reports in which it is significantly below nearest neighbours.
    pub(super) below: usize,
    /// Sum of the skewness of N_1, N_5 and N_10 over both directions.
    pub(super) hs_sum: Option<f64>,
    /// λ of the first seed, if there is one.
    pub(super) lambda: Option<String>,
    /// The paper's rSum for the model of one of its lines.
    pub(super) paper: Option<f64>,
    /// The paper's difference to nearest neighbours.
    pub(super) paper_difference: Option<f64>,
}

impl MethodSummary {
    /// `printed` are the paper's numbers for the model.
    pub(super) fn new(method: &str, printed: &Inferences, reports: &[Report]) -> Self {
        let of_seeds = || reports.iter().filter_map(|r| Some((r, row_of(r, method)?)));
        let per_seed: Vec<_> = of_seeds().map(|(_, row)| row.rsum).collect();
        let differences = || of_seeds().filter_map(|(_, row)| row.difference);
        let significant = |sign: f64| {
            let clear = |p: Option<f64>| p.is_some_and(|p| p < LEVEL);
            differences().filter(|d| d.rsum * sign > 0.0 && clear(d.p_holm)).count()
        };
        let paper = printed.rsum.get(method).copied();
        let plain = printed.rsum.get(Report::BASELINE).copied();
        let is_plain = method == Report::BASELINE;
        Self {
            method: method.into(),
            rsum: mean(per_seed.iter().copied()).unwrap_or(f64::NAN),
            per_seed,
            difference: mean(differences().map(|d| d.rsum)),
            above: significant(1.0),
            below: significant(-1.0),
            hs_sum: mean(of_seeds().filter_map(|(_, row)| hs_sum(row))),
            lambda: of_seeds().next().and_then(|(_, row)| lambda(row)),
            paper,
            paper_difference: paper.zip(plain).filter(|_| !is_plain).map(|(a, b)| a - b),
        }
    }
}

/// The line of a method in a report.
pub(super) fn row_of<'a>(report: &'a Report, method: &str) -> Option<&'a ReportRow> {
    report.rows.iter().find(|row| row.method == method)
}

fn hs_sum(row: &ReportRow) -> Option<f64> {
    let sides = [row.hubs_after.i2t.as_ref()?, row.hubs_after.t2i.as_ref()?];
    Some(sides.into_iter().flatten().map(|measures| measures.skewness).sum())
}

/// λ as text: `i2t 1.50/2/2, t2i 1.20/2/3`.
fn lambda(row: &ReportRow) -> Option<String> {
    let side = |direction: Direction| {
        let value = row.params.get(direction)?.get("lambda")?;
        Some(format!("{direction} {}", param(value)))
    };
    let sides: Vec<_> = Direction::BOTH.into_iter().filter_map(side).collect();
    (!sides.is_empty()).then(|| sides.join(", "))
}

fn param(value: &Param) -> String {
    match value {
        Param::Count(n) => n.to_string(),
        Param::Number(x) => format!("{x:.2}"),
        Param::Word(word) => word.clone(),
        Param::Each(all) => all.iter().map(param).collect::<Vec<_>>().join("/"),
    }
}
