//! Trained rows under corrections for hubs.

use super::{Line, NONE, Table, column, plain, role};
use crate::report::format::{interval, p_value, points, rsum, signed};
use crate::report::json::{Kind, Report, Rescored};

/// Every row under every correction beside nearest neighbours; `None` if none was asked for.
pub(in crate::report) fn rescored(report: &Report) -> Option<Table> {
    if report.rescored.is_empty() {
        return None;
    }
    let none = || NONE.to_owned();
    let line = |r: &Rescored| {
        let seeds =
            |n: u64| r.difference.map_or_else(none, |_| format!("{n} of {}", r.per_seed.len()));
        let cells = [
            (if r.transductive { "transductive" } else { "inductive" }).to_owned(),
            rsum(r.rsum),
            r.difference.map_or_else(none, signed),
            r.ci95.map_or_else(none, interval),
            r.largest_p.map_or_else(none, p_value),
            seeds(r.above),
            seeds(r.below),
            r.skewness.map_or_else(none, points),
            r.lambda.clone().unwrap_or_else(none),
        ];
        Line {
            name: format!("{}, {}", r.row, r.method.to_uppercase()),
            role: role(report, &r.row, Kind::Trained),
            cells: cells.map(plain).into(),
        }
    };
    let heads =
        ["seen", "rSum", "to NNS", "interval", "p", "above", "below", "skewness", "λ of seed 0"];
    Some(Table {
        title: "Re-scored for hubs".into(),
        note: "NNS: nearest neighbours, as in the tables above. Transductive: the correction saw the \
               scores of all test queries, which nearest neighbours do not. Interval: the smallest \
               that holds each seed's 95 % interval of the difference (bootstrap over test images). \
               p: the largest of the seeds' (paired randomisation over images, Holm's correction). \
               Above, below: seeds (seeds and folds, where the split has folds) with p < 0.05. Skewness: of N_1, N_5 and N_10, both directions, \
               summed. λ of RGM: chosen on the validation split, for R@1/R@5/R@10."
            .into(),
        stub: "row",
        columns: heads.map(column).into(),
        lines: report.rescored.iter().map(line).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;

    #[test]
    fn a_line_a_row_and_method() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(rescored(&report).is_none());
        let nns = Rescored {
            row: "Full".into(),
            method: "nns".into(),
            transductive: false,
            rsum: 312.0,
            per_seed: vec![311.0, 313.0],
            difference: None,
            ci95: None,
            largest_p: None,
            above: 0,
            below: 0,
            skewness: Some(9.0),
            lambda: None,
        };
        let csls = Rescored {
            method: "csls".into(),
            transductive: true,
            difference: Some(4.0),
            ci95: Some([1.0, 7.0]),
            largest_p: Some(0.03),
            above: 2,
            ..nns.clone()
        };
        report.rescored = vec![nns, csls];
        let table = rescored(&report).unwrap();
        let texts = |i: usize| -> Vec<&str> {
            table.lines[i].cells.iter().map(|c| c.text.as_str()).collect()
        };
        assert_eq!(table.lines[1].name, "Full, CSLS");
        assert_eq!(texts(0), ["inductive", "312.0", "–", "–", "–", "–", "–", "9.0", "–"]);
        let want = ["transductive", "312.0", "+4.0", "1.0 to 7.0", "p = 0.030", "2 of 2", "0 of 2"];
        assert_eq!(texts(1)[..7], want);
        assert_eq!(table.columns.len(), texts(1).len());
    }
}
