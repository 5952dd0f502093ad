//! The first line of a report: does the claim hold?

use itm_report::format::{interval, p_phrase, points};

use super::CCA;
use super::json::Report;

/// The answer to a report's claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether the claim holds.
    pub(super) outcome: Outcome,
    /// Which rows the claim's row is above or below, by how much, and how surely.
    pub(super) text: String,
}

impl Verdict {
    /// The answer in a few words, its class on the page and its colour in a terminal.
    pub(super) fn look(&self) -> [&'static str; 3] {
        match self.outcome {
            Outcome::Above => ["The claim holds.", "above", "1;32"],
            Outcome::Unsure => ["The claim is not decided.", "unsure", "1;33"],
            Outcome::Incomplete => ["The claim cannot be judged yet.", "unsure", "1;33"],
            Outcome::Below => ["The claim does not hold.", "below", "1;31"],
        }
    }

    /// The words, then the reasons.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.look()[0], self.text)
    }
}

/// Whether the claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// Above every named row, and each interval excludes zero.
    Above,
    /// Surely below no named row, but not surely above each.
    Unsure,
    /// A row of the claim was not run, and the claim's row is surely below none of the others.
    Incomplete,
    /// Below at least one row, and the interval excludes zero.
    Below,
}

pub(super) fn of(report: &Report) -> Verdict {
    let claim = &report.claim;
    let Some(row) = report.row(&claim.row) else {
        let text = format!("The row {} was not run.", claim.row);
        return Verdict { outcome: Outcome::Incomplete, text };
    };
    let (found, missing): (Vec<_>, Vec<_>) =
        claim.against.iter().partition(|name| report.row(name).is_some());
    let mut against: Vec<_> = found.into_iter().map(|name| compare(report, name)).collect();
    against.sort_by_key(|(outcome, _)| std::cmp::Reverse(*outcome)); // the worst first; stable

    let mut outcome = against.first().map_or(Outcome::Incomplete, |worst| worst.0);
    let parts: Vec<_> = against.into_iter().map(|(_, phrase)| phrase).collect();
    let who = format!("{} (rSum {})", claim.row, points(row.measured.rsum));
    let mut text = match parts.split_first() {
        None => format!("{who} has nothing to be compared with"),
        Some((first, [])) => format!("{who} {first}"),
        Some((first, rest)) => format!("{who} {first}, and {}", rest.join(", and ")),
    };
    text.push('.');
    if !missing.is_empty() {
        outcome = outcome.max(Outcome::Incomplete);
        let names: Vec<_> = missing.iter().map(|s| s.as_str()).collect();
        text += &format!(" Not run: {}.", names.join(", "));
    }
    // The paper claims nothing about the closed form.
    if report.row(CCA).is_some() && !claim.against.iter().any(|row| row == CCA) {
        text += &format!(" Apart from the claim, {} {}.", claim.row, compare(report, CCA).1);
    }
    if let [seed] = report.seeds[..] {
        let noise = "the intervals do not cover the noise of training";
        text += &format!(" One seed only ({seed}): {noise}.");
    }
    if report.substituted {
        let paper = report.paper_reference.as_ref();
        let not = paper.map_or(String::new(), |paper| format!(", not on {}", paper.dataset));
        text += &format!(" Measured on {}{not}.", report.dataset);
    }
    Verdict { outcome, text }
}

/// How the claim's row compares with another row, also in words.
fn compare(report: &Report, minus: &str) -> (Outcome, String) {
    let row = &report.claim.row;
    let paired = report.comparison(row, minus);
    let difference = report.difference(row, minus).unwrap_or(0.0);
    let ci95 = paired.map(|c| c.ci95);
    let sure = ci95.is_some_and(|[lo, hi]| lo > 0.0 || hi < 0.0);
    let outcome = match sure {
        true if difference > 0.0 => Outcome::Above,
        true => Outcome::Below,
        false => Outcome::Unsure,
    };
    // What is printed as 0.0 is level, or rows that differ in the last bits would stand above one another.
    let level = points(difference.abs()) == points(0.0);
    let difference = if level { 0.0 } else { difference };
    let mut detail: Vec<String> = Vec::new();
    let of_by = |[lo, hi]: [f64; 2]| if difference < 0.0 { [0.0 - hi, 0.0 - lo] } else { [lo, hi] };
    detail.extend(ci95.map(|ci| format!("95 % interval {}", interval(of_by(ci)))));
    detail.extend(paired.map(|c| p_phrase(c.p_value)));
    if !sure {
        let what = if ci95.is_some() { "within the noise" } else { "no interval" };
        detail.push(what.into());
    }
    let (by, detail) = (points(difference.abs()), detail.join("; "));
    let phrase = if difference > 0.0 {
        format!("is above {minus} by {by} ({detail})")
    } else if difference < 0.0 {
        format!("stays below {minus} by {by} ({detail})")
    } else {
        format!("is level with {minus} ({detail})")
    };
    (outcome, phrase)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample::report;
    use super::*;

    #[test]
    fn above_both() {
        let v = of(&report(24.3, 5.5, &[1, 2, 3]));
        assert_eq!(v.outcome, Outcome::Above);
        assert_eq!(
            v.text,
            "Full (rSum 312.0) is above w/o FNE by 24.3 (95 % interval 21.3 to 27.3; p < 0.001). \
             Apart from the claim, Full is above CCA (closed form) by 5.5 (95 % interval 2.5 to 8.5; p = 0.031). \
             Measured on Scenes, not on Flickr30K."
        );
    }

    #[test]
    fn a_closed_form_that_is_better_stands_apart_from_the_claim() {
        let v = of(&report(24.3, -5.5, &[1, 2, 3]));
        assert_eq!(v.outcome, Outcome::Above);
        let first = "The claim holds. Full (rSum 312.0) is above w/o FNE by 24.3";
        assert!(v.line().starts_with(first), "{}", v.line());
        let apart = " Apart from the claim, Full stays below CCA (closed form) by 5.5";
        assert!(v.text.contains(apart), "{}", v.text);
    }

    /// If the claim names the closed form, the verdict mentions the closed form only once.
    #[test]
    fn a_claim_may_be_of_the_closed_form() {
        let mut r = report(24.3, -5.5, &[1, 2, 3]);
        r.claim.against = vec![CCA.into()];
        let v = of(&r);
        assert_eq!(v.outcome, Outcome::Below);
        assert!(v.line().starts_with("The claim does not hold. Full (rSum 312.0) stays below CCA"));
        assert!(!v.text.contains("Apart"), "{}", v.text);
    }

    #[test]
    fn below_without_fne() {
        let v = of(&report(-9.0, 5.5, &[1, 2, 3]));
        assert_eq!(v.outcome, Outcome::Below);
        assert!(
            v.text.starts_with(
                "Full (rSum 312.0) stays below w/o FNE by 9.0 (95 % interval 6.0 to 12.0"
            ),
            "{}",
            v.text
        );
    }

    #[test]
    fn a_difference_within_the_noise_decides_nothing() {
        let v = of(&report(1.2, 24.3, &[1, 2, 3]));
        assert_eq!(v.outcome, Outcome::Unsure);
        let what = "is above w/o FNE by 1.2 (95 % interval −1.8 to 4.2; ";
        assert!(v.text.contains(what), "{}", v.text);
        assert!(v.text.contains("; within the noise)."), "{}", v.text);
        for equal in [0.0, 5e-14, -5e-14] {
            let v = of(&report(equal, 24.3, &[1, 2]));
            assert_eq!(v.outcome, Outcome::Unsure);
            assert!(
                v.text.contains("is level with w/o FNE (95 % interval −3.0 to 3.0; "),
                "{}",
                v.text
            );
        }
        assert_eq!(of(&report(-1.2, 24.3, &[1, 2])).outcome, Outcome::Unsure);
    }

    #[test]
    fn one_seed_is_said() {
        let text = of(&report(24.3, 5.5, &[7])).text;
        assert!(text.contains("One seed only (7)"), "{text}");
        assert!(!of(&report(24.3, 5.5, &[1, 2])).text.contains("One seed"));
    }

    #[test]
    fn without_paired_tests_the_means_are_compared_and_nothing_is_sure() {
        let mut r = report(24.3, 5.5, &[1, 2]);
        r.comparisons.clear();
        let v = of(&r);
        assert_eq!(v.outcome, Outcome::Unsure);
        assert!(v.text.contains("above w/o FNE by 24.3 (no interval)"), "{}", v.text);
    }

    #[test]
    fn rows_that_did_not_run_are_named() {
        let mut r = report(24.3, 5.5, &[1, 2]);
        r.rows.retain(|row| row.name != "w/o FNE");
        let v = of(&r);
        assert_eq!(v.outcome, Outcome::Incomplete);
        assert!(v.text.contains("Not run: w/o FNE."), "{}", v.text);
        r.rows.retain(|row| row.name != "Full");
        assert_eq!(of(&r).text, "The row Full was not run.");
        let mut below = report(-24.3, -5.5, &[1, 2]);
        below.claim.against = vec!["w/o FNE".into(), CCA.into()];
        below.rows.retain(|row| row.name != "w/o FNE");
        assert_eq!(of(&below).outcome, Outcome::Below);
    }
}
