use super::super::tests::sample;
use super::*;

#[test]
fn nothing_to_draw_is_no_figure() {
    let mut report = sample::report(24.3, -5.5, &[1]);
    assert!(parameter(&report).is_empty());
    report.rows.clear();
    assert!(recall(&report).is_empty());
}

/// Two points over the bank size; a row that was not run has none.
#[test]
fn a_figure_of_the_paper_has_the_rows_that_were_run() {
    let mut report = sample::report(24.3, -5.5, &[1, 2]);
    let point = |row: &str, x| crate::report::FigurePoint { row: row.into(), x };
    report.figure = Some(crate::report::Figure {
        number: 5,
        x: "sampler.bank_size".into(),
        points: vec![point("w/o MMM", 256.0), point("Full", 1024.0), point("gone", 1.0)],
    });
    let figures = parameter(&report);
    assert_eq!(figures.len(), 2);
    assert!(figures[0].title.starts_with("Figure 5: rSum over `sampler.bank_size`"));
    assert_eq!(figures[0].svg.clone().into_string().matches("<circle").count(), 2);
}

/// A row's seed ticks and interval follow the row's own numbers.
#[test]
fn estimates_are_those_of_their_rows() {
    let report = sample::report(24.3, -5.5, &[1, 2]);
    let svg = |report: &Report| recall(report)[0].svg.clone().into_string();
    type Change = fn(&mut Measured);
    let changes: [Change; 3] =
        [|m| m.rsum += 3.0, |m| m.ci95 = None, |m| m.per_seed[1].rsum -= 3.0];
    for (k, change) in changes.into_iter().enumerate() {
        let mut changed = report.clone();
        change(&mut changed.rows[2].measured);
        assert_ne!(svg(&changed), svg(&report), "change {k}");
    }
    let figure = &recall(&report)[0];
    assert!(figure.title.ends_with("; chance, 6.8, is not drawn"), "{}", figure.title);
    assert!(!figure.svg.clone().into_string().contains("chance<"));
}

/// Changing one direction's recalls or intervals changes only that direction's figure.
#[test]
fn each_direction_has_its_own_bars() {
    let bars = |report: &Report| {
        let figures = recall(report);
        [1, 2].map(|k| figures[k].svg.clone().into_string())
    };
    let report = sample::report(24.3, -5.5, &[1, 2]);
    let [i2t, t2i] = bars(&report);
    type Change = fn(&mut Measured);
    let changes: [(Change, [bool; 2]); 4] = [
        (|m| m.i2t.r1 += 9.0, [true, false]),
        (|m| m.t2i.r1 += 9.0, [false, true]),
        (|m| m.ci95_recalls.as_mut().unwrap().i2t[2][1] += 9.0, [true, false]),
        (|m| m.ci95_recalls.as_mut().unwrap().t2i[2][1] += 9.0, [false, true]),
    ];
    for (k, (change, want)) in changes.into_iter().enumerate() {
        let mut changed = report.clone();
        change(&mut changed.rows[2].measured);
        let [a, b] = bars(&changed);
        assert_eq!([a != i2t, b != t2i], want, "change {k}");
    }
}
