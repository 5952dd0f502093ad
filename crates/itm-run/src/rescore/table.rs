//! Trained rows under corrections for hubs.

use itm_report::format::{interval, p_phrase, points, signed};
use itm_report::table::Table;

use super::Rescored;
use crate::report::{Report, role};

/// Every row under every correction beside nearest neighbours.
pub(super) fn rescored(report: &Report, rescored: &[Rescored]) -> Table {
    let all = || rescored.iter();
    let name = |r: &Rescored| format!("{}, {}", r.row, r.method.to_uppercase());
    let lines = all().map(|r| (name(r), role(report, &r.row)));
    let mut t = Table::new("Re-scored for hubs", "row", lines).noted(
        "NNS: nearest neighbours, as in the tables above. Transductive: the correction saw the scores \
         of all test queries, which nearest neighbours do not. Interval: the smallest that holds each \
         seed's 95 % interval of the difference (bootstrap over test images). p: the largest p of a \
         seed (paired randomisation over images, Holm's correction). Above, below: seeds (seeds and \
         folds, where the split has folds) with p < 0.05. Skewness: the sum over N_1, N_5, N_10 and \
         both directions.",
    );
    let seen = |r: &Rescored| if r.transductive { "transductive" } else { "inductive" };
    t.column("seen", all().map(seen));
    t.column("rSum", all().map(|r| points(r.rsum)));
    t.numbers("to NNS", all().map(|r| r.difference), signed);
    t.numbers("interval", all().map(|r| r.ci95), interval);
    t.numbers("p", all().map(|r| r.largest_p), p_phrase);
    let seeds = |r: &Rescored, n: u64| r.difference.map(|_| format!("{n} of {}", r.per_seed.len()));
    t.numbers("above", all().map(|r| seeds(r, r.above)), |text| text);
    t.numbers("below", all().map(|r| seeds(r, r.below)), |text| text);
    t.numbers("skewness", all().map(|r| r.skewness), points);
    if all().any(|r| r.lambda.is_some()) {
        t.note += " λ of RGM: chosen on the validation split, for R@1/R@5/R@10.";
        t.numbers("λ of seed 0", all().map(|r| r.lambda.clone()), |text| text);
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    #[test]
    fn a_line_a_row_and_method() {
        let report = sample::report(24.3, -5.5, &[1]);
        assert!(rescored(&report, &[]).lines.is_empty());
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
        let rgm = Rescored { method: "rgm".into(), lambda: Some("1/2/3".into()), ..csls.clone() };
        let with_lambda = rescored(&report, &[nns.clone(), rgm]);
        assert_eq!(texts(&with_lambda, "Full, RGM")[8], "1/2/3");
        let table = rescored(&report, &[nns, csls]);
        assert_eq!(
            texts(&table, "Full, NNS"),
            ["inductive", "312.0", "–", "–", "–", "–", "–", "9.0"]
        );
        let want = ["transductive", "312.0", "+4.0", "1.0 to 7.0", "p = 0.030", "2 of 2", "0 of 2"];
        assert_eq!(texts(&table, "Full, CSLS")[..7], want);
    }
}
