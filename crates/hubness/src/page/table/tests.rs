use itm_report::table::Column;

use super::super::tests::sample::{self, report, row_mut};
use super::*;

fn column_of<'a>(table: &'a Table, group: &str, head: &str) -> &'a Column {
    table.columns.iter().find(|c| c.group == group && c.label == head).unwrap()
}

fn marked(column: &Column) -> Vec<usize> {
    (0..column.cells.len()).filter(|&i| column.cells[i].best).collect()
}

#[test]
fn the_best_of_a_column_are_all_that_print_the_same() {
    let mut report = report();
    row_mut(&mut report, "csls").rsum = 483.04;
    row_mut(&mut report, "is").rsum = 482.96;
    row_mut(&mut report, "rgm").rsum = 482.94;
    let table = results(&report);
    assert_eq!(marked(column_of(&table, "", "rSum")), [1, 2]); // 483.0 twice, then 482.9
    assert!(marked(column_of(&table, "", "vs NNS")).is_empty());
}

/// A query without a true item has no hit that a tie could decide.
#[test]
fn ties_are_counted_among_the_queries_of_the_recalls() {
    let mut report = report();
    report.rows[0].recalls.i2t.as_mut().unwrap().queries = 33;
    let want = "smaller index first, which decides a hit of NNS for 3 of 33 i2t and 3 of 1,000 t2i queries";
    assert_eq!(ties(&report), want);
}

#[test]
fn a_single_row_is_not_the_best_of_anything() {
    let mut report = report();
    report.rows.truncate(1);
    assert!(results(&report).columns.iter().all(|c| marked(c).is_empty()));
}

#[test]
fn stars_stand_at_significant_rows_alone() {
    let table = results(&report());
    let cells = &column_of(&table, "", "vs NNS").cells;
    let texts: Vec<_> = cells.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(texts, ["–", "+31.8*", "+44.4*", "+7.6*", "+32.4*", "+13.7*", "+1.5 ", "−9.1*"]);
}

/// Each recall is in its own column: all values here differ.
#[test]
fn recalls_stand_where_they_belong() {
    let mut report = report();
    let recalls = |r1, r5, r10| {
        Some(crate::report::Recalls {
            r1,
            r5,
            r10,
            median_rank: None,
            mean_rank: None,
            map_at_r: None,
            r_precision: None,
            queries: 0,
            decided_by_ties: None,
        })
    };
    report.rows[0].recalls =
        crate::report::PerDirection { i2t: recalls(1.0, 2.0, 3.0), t2i: recalls(4.0, 5.0, 6.0) };
    let table = results(&report);
    let got = ["image → text", "text → image"].map(|group| {
        ["R@1", "R@5", "R@10"].map(|head| column_of(&table, group, head).cells[0].text.clone())
    });
    assert_eq!(got, [["1.0", "2.0", "3.0"], ["4.0", "5.0", "6.0"]]);
}

#[test]
fn a_direction_that_was_not_measured_has_no_columns() {
    for (direction, absent) in [(Direction::I2t, "text → image"), (Direction::T2i, "image → text")]
    {
        let report = sample::one_direction(direction);
        assert!(results(&report).columns.iter().all(|c| c.group != absent));
        assert!(ranks(&report).unwrap().columns.iter().all(|c| c.group != absent));
    }
}

#[test]
fn columns_of_nothing_are_left_out() {
    let mut report = report();
    for row in &mut report.rows {
        row.ci95 = None;
        row.p_value = None;
        row.difference = row.difference.map(|d| crate::report::Difference { p_holm: None, ..d });
        row.recalls = Default::default();
    }
    let table = results(&report);
    assert!(table.columns.iter().all(|c| c.label != "95 %" && c.label != "p (Holm)"));
    assert!(ranks(&report).is_none());
}

#[test]
fn missing_ranks_are_dashes() {
    let table = ranks(&report()).unwrap();
    let median = column_of(&table, "text → image", "median");
    assert_eq!([&median.cells[0].text, &median.cells[3].text], ["2", "–"]); // NNS, RGM
}

#[test]
fn measures_are_those_of_the_direction_and_length_asked_for() {
    let skewness =
        |direction, k| measures(&report(), direction, k).columns[0].cells[0].text.clone();
    // Invented as skewness · (1.2 − k/50), 3.4 for i2t and 5.1 for t2i.
    assert_eq!(skewness(Direction::I2t, 10), "3.40");
    assert_eq!(skewness(Direction::T2i, 10), "5.10");
    assert_eq!(skewness(Direction::T2i, 1), "6.02");
    assert_eq!(skewness(Direction::T2i, 7), "–");
}
