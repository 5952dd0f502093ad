use itm_report::table::Column;

use super::super::tests::sample;
use super::super::{CCA, CHANCE};
use super::*;
use crate::tests::texts;

#[test]
fn every_table_of_rows_carries_the_baselines() {
    let report = sample::report(24.3, -5.5, &[1, 2, 3]);
    let of_rows = [recalls(&report), summary(&report)];
    for table in &of_rows {
        let names: Vec<_> = table.lines.iter().map(|l| l.0.as_str()).collect();
        assert_eq!(names, [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"]);
    }
    let others = [paper(&report), paper_differences(&report), comparisons(&report)];
    for table in of_rows.into_iter().chain(others.into_iter().flatten()) {
        let height = table.lines.len();
        assert!(table.columns.iter().all(|c| c.cells.len() == height), "{}", table.title);
    }
}

#[test]
fn cells_stand_under_their_heads() {
    let report = sample::report(24.3, -5.5, &[1, 2, 3]);
    let table = recalls(&report);
    let heads: Vec<_> = table.columns.iter().map(Column::head).collect();
    let want = "i2t R@1,i2t R@5,i2t R@10,t2i R@1,t2i R@5,t2i R@10,rSum,95 % interval";
    assert_eq!(heads.join(","), want);
    let m = &report.rows[2].measured;
    assert_eq!(texts(&table, "Full")[..4], [m.i2t.r1, m.i2t.r5, m.i2t.r10, m.t2i.r1].map(points));
    assert_eq!(texts(&table, "Full")[6..], ["312.0", "304.1 to 320.3"]);
    assert_eq!(texts(&summary(&report), "Full")[2..4], ["312.0", "8.1"]); // (7.9 + 8.3) / 2
}

#[test]
fn the_best_is_marked_and_equals_share_it() {
    let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
    let best = |report: &Report| -> Vec<String> {
        let table = recalls(report);
        let lines = table.lines.iter().zip(&table.columns[6].cells).filter(|(_, cell)| cell.best);
        lines.map(|(line, _)| line.0.clone()).collect()
    };
    assert_eq!(best(&report), [CCA]);
    report.rows[2].measured.rsum = 317.49; // printed as 317.5, like CCA
    assert_eq!(best(&report), [CCA, "Full"]);
    report.rows.truncate(1);
    assert!(best(&report).is_empty());
}

#[test]
fn paper_numbers_stand_apart_from_other_data() {
    let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
    assert!(recalls(&report).columns.iter().all(|c| c.label != "paper rSum"));
    let block = paper(&report).unwrap();
    assert_eq!(block.title, "Flickr30K (paper)");
    assert_eq!(texts(&block, "w/o MMM")[..2], ["77.0", "95.0"]);

    report.paper_reference = None;
    assert!(paper(&report).is_none() && paper_differences(&report).is_none());
    let printed = crate::tests::paper("fne").reference(3, None, &[("Full", "Full")]).unwrap();
    report.rows[2].paper = Some(printed.rows[0].numbers.clone());
    let table = recalls(&report);
    assert_eq!(table.columns.last().unwrap().label, "paper rSum");
    assert_eq!(texts(&table, "Full").last(), Some(&"533.0"));
    assert_eq!(texts(&table, CCA).last(), Some(&"–"));
}

/// Table 3: Full 533.0, w/o FNE 528.8, w/o MMM 516.4.
#[test]
fn differences_are_compared_by_sign() {
    let report = sample::report(-24.3, -5.5, &[1, 2, 3]);
    let table = paper_differences(&report).unwrap();
    let want = ["+4.2", "−24.3", "−27.3 to −21.3", "no"];
    assert_eq!(texts(&table, "Full − w/o FNE"), want);
    assert_eq!(texts(&table, "Full − w/o MMM")[..2], ["+16.6", "+21.0"]);
    assert_eq!(texts(&table, "Full − w/o MMM")[3], "yes");
    let unsure = paper_differences(&sample::report(2.0, -5.5, &[1, 2, 3])).unwrap();
    assert_eq!(texts(&unsure, "Full − w/o FNE")[3], "unsure");
}
