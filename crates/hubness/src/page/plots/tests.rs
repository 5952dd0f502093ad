use super::super::tests::sample::{self, report, row_mut};
use super::*;

fn all(report: &Report) -> [Option<String>; 5] {
    let [i2t, t2i] = Direction::BOTH;
    [
        rsums(report),
        recalls(report, i2t),
        recalls(report, t2i),
        curves(&report.curves, i2t),
        curves(&report.curves, t2i),
    ]
    .map(|f| f.map(|f| f.svg.into_string()))
}

/// The indices of the figures that differ from the figures of the unchanged report.
fn changed(change: impl FnOnce(&mut Report)) -> Vec<usize> {
    let (before, mut report) = (report(), report());
    change(&mut report);
    let (a, b) = (all(&before), all(&report));
    (0..5).filter(|&i| a[i] != b[i]).collect()
}

#[test]
fn each_figure_shows_its_own_numbers() {
    assert_eq!(changed(|r| row_mut(r, "csls").rsum += 3.0), [0]);
    assert_eq!(changed(|r| row_mut(r, "csls").ci95 = None), [0]);
    assert_eq!(changed(|r| r.rows[2].recalls.i2t.as_mut().unwrap().r5 -= 9.0), [1]);
    assert_eq!(changed(|r| r.rows[2].ci95_recalls.t2i.as_mut().unwrap().r10[0] -= 9.0), [2]);
    assert_eq!(changed(|r| r.curves[0].y[3] += 1.0), [3]);
    assert_eq!(changed(|r| r.curves[3].unconstrained = None), [4]);
}

#[test]
fn every_row_is_in_every_figure_of_rows() {
    let report = report();
    for svg in all(&report).into_iter().take(3).flatten() {
        for row in &report.rows {
            assert!(svg.contains(&title(&row.method)), "{}", row.method);
        }
    }
}

#[test]
fn a_panel_for_each_method_and_no_other() {
    let report = report();
    let side = report.hubs.sides.t2i.as_ref().unwrap();
    let panels = counts(&report, side, Direction::T2i, 10);
    let titles: Vec<_> = panels.iter().map(|p| p.title.as_str()).collect();
    let want = ["CSLS", "IS", "RGM", "CSLS + RGM", "NNN", "QB-Norm", "Sinkhorn"];
    assert_eq!(titles, want);
    assert!(panels[0].detail.starts_with("skewness 5.10 → 1.05, largest 2,500 → "));
    assert!(counts(&report, side, Direction::T2i, 3).is_empty());

    let mut alone = side.clone();
    alone.histograms.retain(|h| h.method == "nns");
    let panels = counts(&report, &alone, Direction::T2i, 10);
    assert_eq!(panels.len(), 1);
    assert_eq!(panels[0].detail, "skewness 5.10, largest 2,500");
}

#[test]
fn levels_are_dashed_and_courses_are_not() {
    let svg = curves(&report().curves, Direction::I2t).unwrap().svg.into_string();
    assert_eq!(svg.matches("stroke-dasharray").count(), 2); // RGM, CSLS + RGM
    let mut report = report();
    report.curves.iter_mut().for_each(|c| c.unconstrained = None);
    let figure = curves(&report.curves, Direction::I2t).unwrap();
    assert!(!figure.svg.into_string().contains("stroke-dasharray"));
    assert_eq!(figure.legend.len(), 2);
}

#[test]
fn names_in_figures_are_never_markup() {
    let mut report = report();
    report.rows[1].method = sample::EVIL.into();
    report.curves[0].label = sample::EVIL.into();
    assert!(all(&report).into_iter().flatten().all(|svg| !svg.contains("<script")));
}

#[test]
fn what_is_no_number_is_not_drawn() {
    for svg in all(&sample::poisoned()).into_iter().flatten() {
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    let mut report = report();
    assert!(rsums(&report).unwrap().svg.into_string().contains("stroke-dasharray"));
    report.rows[0].rsum = f64::NAN;
    let figure = rsums(&report).unwrap();
    let svg = figure.svg.into_string();
    assert!(!svg.contains("stroke-dasharray") && !svg.contains("NNS"));
    assert!(all(&sample::empty()).iter().all(Option::is_none));
}

/// 90 items turn up once, 10 items twice: the points are (0, log10 0.9) and (log10 2, log10 0.1).
#[test]
fn points_are_logarithms_of_shares() {
    let h = Histogram { method: "nns".into(), k: 1, counts: vec![(1, 90), (2, 10)] };
    let course = shares(&h).concat();
    let want = [(0.0, -0.045757), (std::f64::consts::LOG10_2, -1.0)];
    assert_eq!(course.len(), 2);
    for (got, want) in course.iter().zip(want) {
        assert!((got.0 - want.0).abs() < 1e-5 && (got.1 - want.1).abs() < 1e-5, "{got:?}");
    }
}

/// Items in no list count in the share, but 0 has no logarithm and thus no point.
#[test]
fn anti_hubs_are_in_the_denominator() {
    let h = Histogram { method: "nns".into(), k: 1, counts: vec![(0, 99), (1, 1)] };
    assert_eq!(shares(&h), [vec![(0.0, -2.0)]]);
}

#[test]
fn a_gap_breaks_the_line() {
    let h = Histogram { method: "nns".into(), k: 1, counts: vec![(1, 5), (100, 5)] };
    assert_eq!(shares(&h).len(), 2);
}

#[test]
fn powers_of_ten_are_shares() {
    assert_eq!(
        [0, -1, -2, -3, -4, -5, -12].map(share_at),
        ["100 %", "10 %", "1 %", "0.1 %", "0.01 %", "10⁻³ %", "10⁻¹⁰ %"]
    );
}
