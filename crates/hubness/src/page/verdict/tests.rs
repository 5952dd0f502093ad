use super::super::tests::sample::{self, report, row_mut};
use super::*;

/// Leaves only some rows.
fn only(methods: &[&str]) -> Report {
    let mut report = report();
    report.rows.retain(|r| methods.contains(&r.method.as_str()));
    report
}

#[test]
fn the_best_row_that_helps_is_named_with_its_leak() {
    let v = of(&only(&["nns", "csls"]));
    assert_eq!(v.outcome, Outcome::Helps);
    assert_eq!(
        v.text,
        "CSLS lifts rSum from 438.6 to 470.4 (+31.8, 95 % +27.2 to +36.7, p < 0.001, transductive). \
         The skewness of N10 t2i falls from 5.10 to 1.05."
    );
}

#[test]
fn the_best_row_without_a_leak_is_named_too() {
    let text = of(&only(&["nns", "is", "nnn"])).text;
    let want = "The best correction that did not see the other test queries is NNN: rSum 452.3 (+13.7, \
                95 % +9.1 to +18.6, p = 0.003, held-out bank).";
    assert!(text.starts_with("IS lifts") && text.contains(want), "{text}");
    let text = of(&only(&["nns", "is", "qbnorm"])).text;
    assert!(
        text.contains("No correction that did not see the other test queries helps significantly."),
        "{text}"
    );
    let text = of(&only(&["nns", "nnn"])).text;
    assert!(text.starts_with("NNN lifts") && !text.contains("did not see the other"), "{text}");
}

#[test]
fn a_higher_row_that_is_not_significant_does_not_lift() {
    let mut report = only(&["nns", "csls", "is"]);
    row_mut(&mut report, "is").difference.as_mut().unwrap().p_holm = Some(0.05);
    assert!(of(&report).text.starts_with("CSLS lifts"), "{}", of(&report).text);
}

#[test]
fn nothing_helps() {
    let v = of(&only(&["nns", "qbnorm"]));
    assert_eq!(v.outcome, Outcome::Nothing);
    assert_eq!(
        v.text,
        "No correction helps significantly: the best, QB-Norm, takes rSum from 438.6 to 440.1 (+1.5, \
         95 % −3.1 to +6.4, p = 1.00, held-out bank). Its p-value is Holm's over all \
         rows. The skewness of N10 t2i is 5.10."
    );
}

#[test]
fn harm_is_said() {
    let v = of(&only(&["nns", "sinkhorn"]));
    assert_eq!(v.outcome, Outcome::Nothing);
    assert!(v.text.ends_with("Significantly worse than doing nothing: Sinkhorn."), "{}", v.text);
}

#[test]
fn without_tests_nothing_is_claimed() {
    let mut report = only(&["nns", "csls"]);
    let row = row_mut(&mut report, "csls");
    row.p_value = None;
    row.difference.as_mut().unwrap().p_holm = None;
    let v = of(&report);
    assert_eq!(v.outcome, Outcome::Untested);
    assert!(v.text.starts_with("Differences were not tested: the best, CSLS, takes"), "{}", v.text);
    assert_eq!(of(&only(&["csls"])).outcome, Outcome::Untested);
    assert_eq!(
        of(&only(&["nns"])).text,
        "rSum 438.6; no correction to compare with. The skewness of N10 t2i is 5.10."
    );
}

/// Holm's p-value decides where it is known: a raw p-value of 0.02 is not significant among many rows.
#[test]
fn the_corrected_p_value_decides() {
    let mut report = only(&["nns", "csls"]);
    let row = row_mut(&mut report, "csls");
    row.p_value = Some(0.02);
    row.difference.as_mut().unwrap().p_holm = Some(0.14);
    assert!(!significant(row));
    row.difference.as_mut().unwrap().p_holm = None;
    assert!(significant(row));
}

#[test]
fn skewness_is_of_the_worse_direction() {
    let mut report = only(&["nns", "csls"]);
    report.hubs.sides.i2t.as_mut().unwrap().measures[2].skewness = 9.0;
    let text = of(&report).text;
    assert!(text.contains("skewness of N10 i2t falls from 9.00 to 0.70"), "{text}");
}

#[test]
fn no_number_is_no_best() {
    let v = of(&sample::poisoned());
    assert_eq!(v.outcome, Outcome::Untested);
    assert!(!sample::says_no_number(&v.text), "{}", v.text);
}
