//! Tables that need data with a complete truth.

use std::collections::BTreeSet;

use itm_report::format::{count, decimals, share};
use itm_report::table::Table;

use super::Truth;
use crate::report::{Report, of_rows};

/// Measures against the complete truth; `None` where there is none.
pub(super) fn relevance(report: &Report, truths: &[Option<Truth>]) -> Option<Table> {
    let all = || truths.iter().map(Option::as_ref);
    all().find_map(|t| t)?;
    let priors = || all().filter_map(|t| t?.prior);
    let at = match priors().next() {
        Some(first) if priors().all(|p| p == first) => format!("Brier skill, p = {}", prior(first)),
        _ => "Brier skill, row's p".into(),
    };
    let mut t = of_rows(report, "Against the complete truth").noted(
        "mAP@R and R-precision: mean of both directions, all true items counted. Posterior: as a \
         detector of false negatives among candidates that survive the margin cut; AUC 0.5 is \
         guessing, Brier skill 0 is a constant forecast of the base rate.",
    );
    let unit = |x| decimals(x, 3);
    t.best("mAP@R", all().map(|t| t?.map_at_r), unit);
    t.best("R-precision", all().map(|t| t?.r_precision), unit);
    t.numbers("posterior AUC", all().map(|t| t?.posterior_auc), unit);
    t.numbers(at, all().map(|t| t?.brier_skill), unit);
    t.numbers("Brier skill, p = base rate", all().map(|t| t?.brier_skill_at_base_rate), unit);
    t.numbers("base rate", all().map(|t| t?.base_rate), share);
    t.numbers("candidates", all().map(|t| t?.candidates), count);
    Some(t)
}

/// Shares of drawn negatives that were false negatives; `None` where that is not known.
pub(super) fn draws(report: &Report, truths: &[Option<Truth>]) -> Option<Table> {
    let all = || truths.iter().map(Option::as_ref);
    all().find_map(|t| t?.drawn_true_share)?;
    let others: BTreeSet<&String> =
        all().flatten().flat_map(|t| t.other_true_shares.keys()).collect();
    let mut t = of_rows(report, "Drawn negatives that were truly false negatives").noted(
        "Share of false negatives among the negatives that a row trained on. The other columns are \
         the shares that uniform drawing, hardest drawing and the weights of the named presets would \
         have taken from the same candidates. Lower is cleaner.",
    );
    t.numbers("as drawn", all().map(|t| t?.drawn_true_share), share);
    t.numbers("uniform", all().map(|t| t?.uniform_true_share), share);
    t.numbers("hardest", all().map(|t| t?.hardest_true_share), share);
    for name in others {
        t.numbers(name, all().map(|t| t?.other_true_shares.get(name).copied()), share);
    }
    t.numbers("draws", all().map(|t| t?.draws), count);
    Some(t)
}

/// A prior as text: like `1e-4` below a hundredth, else like `0.021`.
fn prior(p: f64) -> String {
    if p > 0.0 && p < 1e-2 { format!("{p:e}") } else { decimals(p, 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_are_short() {
        assert_eq!([prior(1e-4), prior(0.0213)], ["1e-4", "0.021"]);
    }
}
