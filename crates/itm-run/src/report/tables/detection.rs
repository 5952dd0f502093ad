//! Drawn negatives over epochs, and how well the posterior names the false ones.

use super::{Cell, Column, Line, NONE, Role, Table, column, plain, role};
use crate::report::format::share;
use crate::report::json::{DetectionAt, EpochDraws, Kind, Report, Row};

/// The claim's row epoch by epoch, or the first row that has epochs; `None` without any.
pub(in crate::report) fn epochs(report: &Report) -> Option<Table> {
    let row = watched(report)?;
    let epochs = &row.truth.as_ref()?.epochs;
    let mut others: Vec<&String> = epochs.iter().flat_map(|e| e.others.keys()).collect();
    others.sort();
    others.dedup();
    let line = |e: &EpochDraws| Line {
        name: e.epoch.to_string(),
        role: Role::Other,
        cells: [e.drawn, e.uniform, e.hardest]
            .into_iter()
            .map(Some)
            .chain(others.iter().map(|name| e.others.get(*name).copied()))
            .map(|x| plain(x.map_or(NONE.into(), share)))
            .collect(),
    };
    let heads = ["as drawn", "uniform", "hardest"].map(str::to_owned).into_iter();
    Some(Table {
        title: format!("{}: drawn negatives that were false, by epoch", row.name),
        note: "Share of true pairs among the negatives, mean over seeds; the other columns are what \
               other ways to draw are expected to take from the same candidates. A preset of FNE has \
               no share as long as it has no posterior."
            .into(),
        stub: "epoch",
        columns: heads.chain(others.iter().map(|n| (*n).clone())).map(|h| column(&h)).collect(),
        lines: epochs.iter().map(line).collect(),
    })
}

/// The claim's row, or the first that has epochs.
fn watched(report: &Report) -> Option<&Row> {
    let has = |row: &&Row| row.truth.as_ref().is_some_and(|t| !t.epochs.is_empty());
    let row = report.row(&report.claim.row).filter(has);
    row.or_else(|| report.rows.iter().find(has))
}

/// Precision and recall of "this is a false negative" by epoch, at the configured prior; of the row of [`epochs`].
pub(in crate::report) fn detection_epochs(report: &Report) -> Option<Table> {
    let row = watched(report)?;
    let epochs = &row.truth.as_ref()?.epochs;
    let prior = epochs.iter().find_map(|e| Some(e.detection.first()?.name.as_str()))?;
    let at = |e: &EpochDraws| e.detection.iter().filter(|d| d.name == prior).cloned().collect();
    let of_epochs: Vec<(u32, Vec<DetectionAt>)> = epochs.iter().map(|e| (e.epoch, at(e))).collect();
    let thresholds = thresholds(of_epochs.iter().flat_map(|(_, all)| all));
    let line = |(epoch, all): &(u32, Vec<DetectionAt>)| Line {
        name: epoch.to_string(),
        role: Role::Other,
        cells: cells(&thresholds, |t| all.iter().find(|d| d.threshold == t)),
    };
    Some(Table {
        title: format!("{}: false negatives named by the posterior, by epoch", row.name),
        note: format!("At {prior}, mean over seeds; as below, which is of the last epoch."),
        stub: "epoch",
        columns: thresholds.iter().flat_map(heads).collect(),
        lines: of_epochs.iter().map(line).collect(),
    })
}

fn thresholds<'a>(all: impl Iterator<Item = &'a DetectionAt>) -> Vec<f64> {
    let mut thresholds: Vec<f64> = all.map(|d| d.threshold).collect();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    thresholds
}

fn heads(t: &f64) -> [Column; 2] {
    [column(&format!("precision, λ = {t}")), column("recall")]
}

/// Precision and recall at each threshold.
fn cells<'a>(thresholds: &[f64], at: impl Fn(f64) -> Option<&'a DetectionAt>) -> Vec<Cell> {
    let cell = |x: Option<f64>| plain(x.map_or(NONE.into(), share));
    let both = |&t: &f64| [at(t).and_then(|d| d.precision), at(t).and_then(|d| d.recall)];
    thresholds.iter().flat_map(both).map(cell).collect()
}

/// Precision and recall of "this is a false negative", a line for each row and prior; `None` where no row has any.
pub(in crate::report) fn detection(report: &Report) -> Option<Table> {
    let found = || report.rows.iter().filter_map(|r| Some((r, &r.truth.as_ref()?.detection)));
    let first = found().find(|(_, all)| !all.is_empty())?.1;
    let thresholds = thresholds(first.iter());
    let mut lines = Vec::new();
    for (row, all) in found() {
        let mut priors: Vec<&str> = all.iter().map(|d| d.name.as_str()).collect();
        priors.dedup();
        for prior in priors {
            let at = |t: f64| all.iter().find(|d| d.name == prior && d.threshold == t);
            lines.push(Line {
                name: format!("{}, {prior}", row.name),
                role: role(report, &row.name, Kind::Trained),
                cells: cells(&thresholds, at),
            });
        }
    }
    Some(Table {
        title: "False negatives named by the posterior".into(),
        note: "Among candidates that survive the margin cut, over the last epoch: flagged is what has \
               a posterior above λ. Precision: share of true pairs among those flagged; recall: share \
               of true pairs that are flagged."
            .into(),
        stub: "row, prior",
        columns: thresholds.iter().flat_map(heads).collect(),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::sample;
    use super::*;

    fn texts(line: &Line) -> Vec<&str> {
        line.cells.iter().map(|c| c.text.as_str()).collect()
    }

    #[test]
    fn epochs_and_thresholds_stand_under_their_heads() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(epochs(&report).is_none() && detection(&report).is_none());
        let truth = report.rows[2].truth.as_mut().unwrap();
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
        assert!(detection_epochs(&report).is_none());
        let truth = report.rows[2].truth.as_mut().unwrap();
        truth.epochs[1].detection = truth.detection.clone();
        let table = detection_epochs(&report).unwrap();
        assert_eq!(table.lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(texts(&table.lines[0]), ["–"; 4]);
        assert_eq!(texts(&table.lines[1]), ["75.0 %", "50.0 %", "–", "0.0 %"]);
        assert!(table.note.starts_with("At p = 1e-4") && table.columns.len() == 4);
        let table = epochs(&report).unwrap();
        assert_eq!(texts(&table.lines[0]), ["3.1 %", "2.0 %", "50.0 %", "–"]);
        assert_eq!(texts(&table.lines[1])[3], "2.4 %");
        assert_eq!(
            (table.lines[1].name.as_str(), table.columns[3].label.as_str()),
            ("2", "FNE paper")
        );
        let table = detection(&report).unwrap();
        let heads: Vec<_> = table.columns.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(heads, ["precision, λ = 0.001", "recall", "precision, λ = 0.5", "recall"]);
        assert_eq!(table.lines[0].name, "Full, p = 1e-4");
        assert_eq!(texts(&table.lines[0]), ["75.0 %", "50.0 %", "–", "0.0 %"]);
        assert_eq!(texts(&table.lines[1]), ["75.0 %", "100.0 %", "–", "–"]);
    }
}
