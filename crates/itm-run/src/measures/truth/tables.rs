//! Tables that need data with a complete truth: relevance, drawn negatives, and how well the posterior finds the false ones.

use std::collections::BTreeSet;

use itm_report::format::{count, decimals, share};
use itm_report::table::{Role, Table};

use super::{EpochDraws, Truth};
use crate::audit::DetectionAt;
use crate::report::{Report, Row, of_rows, role};

/// Measures against the complete truth.
pub(super) fn relevance(report: &Report, truths: &[Option<Truth>]) -> Table {
    let all = || truths.iter().map(Option::as_ref);
    let priors = || all().filter_map(|t| t?.prior);
    let at = match priors().next() {
        Some(first) if priors().all(|p| p == first) => format!("Brier skill, p = {}", prior(first)),
        _ => "Brier skill, row's p".into(),
    };
    let mut t = of_rows(report, "Against the complete truth")
        .noted("mAP@R and R-precision: mean of both directions, all true items counted.");
    let unit = |x| decimals(x, 3);
    t.best("mAP@R", all().map(|t| t?.map_at_r), unit);
    t.best("R-precision", all().map(|t| t?.r_precision), unit);
    if all().flatten().any(|truth| truth.posterior_auc.is_some()) {
        t.note += " Posterior: as a detector of false negatives among candidates that survive the \
                   margin cut; AUC 0.5 is guessing, Brier skill 0 is a constant forecast of the \
                   base rate.";
        t.numbers("posterior AUC", all().map(|t| t?.posterior_auc), unit);
        t.numbers(at, all().map(|t| t?.brier_skill), unit);
        t.numbers("Brier skill, p = base rate", all().map(|t| t?.brier_skill_at_base_rate), unit);
        t.numbers("base rate", all().map(|t| t?.base_rate), share);
        t.numbers("candidates", all().map(|t| t?.candidates), count);
    }
    t
}

/// Shares of drawn negatives that were false negatives.
pub(super) fn draws(report: &Report, truths: &[Option<Truth>]) -> Table {
    let all = || truths.iter().map(Option::as_ref);
    let others: BTreeSet<&String> =
        all().flatten().flat_map(|t| t.other_true_shares.keys()).collect();
    let mut t = of_rows(report, "Drawn negatives that were truly false negatives").noted(
        "Share of false negatives among the negatives that a row trained on. The other columns are \
         the shares that other ways to draw would have taken from the same candidates. Lower is \
         cleaner.",
    );
    if !others.is_empty() {
        t.note += " A preset's share counts only the epochs in which it has a posterior.";
    }
    t.numbers("as drawn", all().map(|t| t?.drawn_true_share), share);
    t.numbers("uniform", all().map(|t| t?.uniform_true_share), share);
    t.numbers("hardest", all().map(|t| t?.hardest_true_share), share);
    for name in others {
        t.numbers(name, all().map(|t| t?.other_true_shares.get(name).copied()), share);
    }
    t.numbers("draws", all().map(|t| t?.draws), count);
    t
}

/// The epochs of the claim's row, or of the first row that has epochs; `None` if no row has epochs.
pub(super) fn epochs(report: &Report, truths: &[Option<Truth>]) -> Option<Table> {
    let (row, Truth { epochs, .. }) = watched(report, truths)?;
    let others: BTreeSet<&String> = epochs.iter().flat_map(|e| e.others.keys()).collect();
    let title = format!("{}: drawn negatives that were false, by epoch", row.name);
    let mut t = by_epoch(title, epochs).noted(
        "Share of true pairs among the negatives, mean over seeds. The other columns are the expected \
         shares of other ways to draw from the same candidates.",
    );
    if !others.is_empty() {
        t.note += " A preset has no share before it has a posterior.";
    }
    t.column("as drawn", epochs.iter().map(|e| share(e.drawn)));
    t.column("uniform", epochs.iter().map(|e| share(e.uniform)));
    t.column("hardest", epochs.iter().map(|e| share(e.hardest)));
    for name in others {
        t.numbers(name, epochs.iter().map(|e| e.others.get(name).copied()), share);
    }
    Some(t)
}

/// The claim's row, or else the first row that has epochs.
fn watched<'a>(report: &'a Report, truths: &'a [Option<Truth>]) -> Option<(&'a Row, &'a Truth)> {
    let rows = report.rows.iter().zip(truths);
    let known = rows.filter_map(|(row, truth)| Some((row, truth.as_ref()?)));
    let mut known = known.filter(|(_, truth)| !truth.epochs.is_empty());
    let claimed = known.clone().find(|(row, _)| row.name == report.claim.row);
    claimed.or_else(|| known.next())
}

/// Precision and recall of "this is a false negative" by epoch, at the configured prior, for the row of [`epochs`].
pub(super) fn detection_epochs(report: &Report, truths: &[Option<Truth>]) -> Option<Table> {
    let (row, Truth { epochs, .. }) = watched(report, truths)?;
    let prior = epochs.iter().find_map(|e| Some(e.detection.first()?.name.as_str()))?;
    let detections = epochs.iter().map(|e| e.detection.iter().filter(|d| d.name == prior));
    let of_epochs: Vec<Vec<&DetectionAt>> = detections.map(Iterator::collect).collect();
    let title = format!("{}: false negatives named by the posterior, by epoch", row.name);
    let mut t = by_epoch(title, epochs)
        .noted(format!("At {prior}, mean over seeds. The next table is of the last epoch."));
    thresholds(&mut t, of_epochs.concat().as_slice(), &of_epochs);
    Some(t)
}

fn by_epoch(title: String, epochs: &[EpochDraws]) -> Table {
    Table::new(title, "epoch", epochs.iter().map(|e| (e.epoch.to_string(), Role::Other)))
}

/// Adds precision and recall of each line at each threshold of `any`.
fn thresholds(t: &mut Table, any: &[&DetectionAt], lines: &[Vec<&DetectionAt>]) {
    let mut all: Vec<f64> = any.iter().map(|d| d.threshold).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    for at in all {
        let found = || lines.iter().map(|line| line.iter().find(|d| d.threshold == at));
        t.numbers(format!("precision, λ = {at}"), found().map(|d| d?.precision), share);
        t.numbers(format!("recall, λ = {at}"), found().map(|d| d?.recall), share);
    }
}

/// Precision and recall of "this is a false negative", a line for each row and prior; `None` where no row has any.
pub(super) fn detection(report: &Report, truths: &[Option<Truth>]) -> Option<Table> {
    let rows = || report.rows.iter().zip(truths);
    let found = || rows().filter_map(|(r, truth)| Some((r, &truth.as_ref()?.detection)));
    let first: Vec<_> = found().find(|(_, all)| !all.is_empty())?.1.iter().collect();
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    for (row, all) in found() {
        for of_prior in all.chunk_by(|a, b| a.name == b.name) {
            names.push((format!("{}, {}", row.name, of_prior[0].name), role(report, &row.name)));
            lines.push(of_prior.iter().collect());
        }
    }
    let mut t = Table::new("False negatives named by the posterior", "row, prior", names).noted(
        "Among candidates that survive the margin cut, over the last epoch. A candidate is flagged if \
         its posterior is above λ. Precision: share of true pairs among the flagged candidates; \
         recall: share of true pairs that are flagged.",
    );
    thresholds(&mut t, &first, &lines);
    Some(t)
}

/// A prior as text: like `1e-4` below a hundredth, else like `0.021`.
fn prior(p: f64) -> String {
    if p > 0.0 && p < 1e-2 { format!("{p:e}") } else { decimals(p, 3) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    #[test]
    fn epochs_and_thresholds_stand_under_their_heads() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut all: Vec<_> = report.rows.iter().map(|_| Some(Truth::default())).collect();
        assert!(epochs(&report, &all).is_none() && detection(&report, &all).is_none());
        let truth = all[2].as_mut().unwrap();
        let draws = |epoch, others| EpochDraws {
            epoch,
            drawn: 0.031,
            uniform: 0.02,
            hardest: 0.5,
            others,
            detection: vec![],
        };
        let paper = BTreeMap::from([("FNE paper".to_owned(), 0.024)]);
        truth.epochs = vec![draws(1, BTreeMap::new()), draws(2, paper)];
        let at = |name: &str, threshold, recall| DetectionAt {
            name: name.into(),
            prior: 1e-4,
            threshold,
            flagged: 0.1,
            precision: (recall > 0.0).then_some(0.75),
            recall: Some(recall),
        };
        truth.detection =
            vec![at("p = 1e-4", 0.001, 0.5), at("p = 1e-4", 0.5, 0.0), at("rate", 0.001, 1.0)];
        assert!(detection_epochs(&report, &all).is_none());
        let truth = all[2].as_mut().unwrap();
        truth.epochs[1].detection = truth.detection.clone();
        let table = detection_epochs(&report, &all).unwrap();
        assert_eq!(table.lines.iter().map(|l| l.0.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(texts(&table, "1"), ["–"; 4]);
        assert_eq!(texts(&table, "2"), ["75.0 %", "50.0 %", "–", "0.0 %"]);
        assert!(table.note.starts_with("At p = 1e-4") && table.columns.len() == 4);
        let table = epochs(&report, &all).unwrap();
        assert_eq!(texts(&table, "1"), ["3.1 %", "2.0 %", "50.0 %", "–"]);
        assert_eq!(
            (texts(&table, "2")[3], table.columns[3].label.as_str()),
            ("2.4 %", "FNE paper")
        );
        let table = detection(&report, &all).unwrap();
        let heads: Vec<_> = table.columns.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(heads[..2], ["precision, λ = 0.001", "recall, λ = 0.001"]);
        assert_eq!(heads[2..], ["precision, λ = 0.5", "recall, λ = 0.5"]);
        assert_eq!(texts(&table, "Full, p = 1e-4"), ["75.0 %", "50.0 %", "–", "0.0 %"]);
        assert_eq!(texts(&table, "Full, rate"), ["75.0 %", "100.0 %", "–", "–"]);
    }

    #[test]
    fn priors_are_short() {
        assert_eq!([prior(1e-4), prior(0.0213)], ["1e-4", "0.021"]);
    }
}
