use super::super::{PosteriorCurve, SimilarityGroup};
use super::*;

fn curve(loss: &[Point]) -> Curve {
    Curve { row: "Full".into(), seed: 1, loss: loss.into(), validation_rsum: Vec::new() }
}

fn loss_figure(curves: &[Curve]) -> Option<Figure> {
    let rows = [Series { name: "Full", series: 0, data: curves.iter().collect() }];
    super::curves("loss", "mean loss", &rows, |c| &c.loss, &[])
}

fn sound(figure: Option<Figure>) {
    let svg = figure.expect("a figure").svg;
    assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("#FE"), "{svg}");
    for element in svg.split('<') {
        assert!(element.matches("style=").count() <= 1, "{element}");
        // A point that overflowed the canvas's integers would stand far outside.
        let numbers = element.split(|c: char| !c.is_ascii_digit());
        for n in numbers.filter(|n| !n.is_empty() && !element.starts_with("text")) {
            assert!(n.len() <= 5, "{element}");
        }
    }
}

fn similar(values: &[f32]) -> Option<Figure> {
    let groups = vec![SimilarityGroup { label: "pairs".into(), values: values.into() }];
    let points = vec![(0.0, 0.2), (0.5, f64::NAN), (0.6, 1.0)];
    let posteriors = vec![PosteriorCurve { label: "P".into(), points }];
    similarities("s", &Similarities { row: "Full".into(), seed: 1, groups, posteriors })
}

#[test]
fn nothing_to_draw_is_no_figure() {
    assert!(loss_figure(&[]).is_none());
    assert!(loss_figure(&[curve(&[(1.0, f64::NAN)])]).is_none());
    assert!(similar(&[]).is_none() && similar(&[f32::NAN, f32::INFINITY]).is_none());
    assert!(reliability("r", &[]).is_none());
    assert!(recall_bars("b", &[]).is_none() && rsums("r", &[]).is_none());
}

#[test]
fn odd_data_draws_soundly() {
    sound(loss_figure(&[curve(&[(1.0, 0.5)])]));
    sound(loss_figure(&[curve(&[(1.0, 0.0), (2.0, 0.0)])]));
    sound(loss_figure(&[curve(&[(1.0, f64::NAN), (2.0, 3.0), (3.0, f64::INFINITY)])]));
    sound(loss_figure(&[curve(&[(1.0, 1e30), (2.0, 1.0)])]));
    sound(loss_figure(&[curve(&[(1.0, 1e12), (2.0, -1e12)])]));
    sound(loss_figure(&[curve(&[(1.0, 1e12), (2.0, 1e12 + 1.0)])]));
    sound(loss_figure(&[curve(&[(1.0, 1e-12), (2.0, 2e-12)])]));
    assert!(loss_figure(&[curve(&[(1.0, -1e308), (2.0, 1e308)])]).is_none());
    sound(similar(&[0.3, 0.3, 0.3]));
    sound(similar(&[0.1, f32::NAN, 0.9]));
    let bin =
        |predicted, observed, count| super::super::ReliabilityBin { predicted, observed, count };
    let bins = vec![bin(0.1, f64::NAN, 0), bin(0.5, 0.5, u64::MAX)];
    sound(reliability("r", &[Reliability { name: "p".into(), prior: 0.1, bins }]));
    let bars = |v| Series { name: "Full", series: 0, data: ([v; 3], Some([[v, v]; 3])) };
    sound(recall_bars("b", &[bars(0.0), bars(f64::NAN), bars(100.0)]));
}

/// A name never stands on the mark of the row above it: many rows make the figure higher.
#[test]
fn many_rows_are_as_high_as_few() {
    let report = super::super::sample::report(24.3, -5.5, &[]);
    let series = Series { name: "Full", series: 3, data: &report.rows[2].measured };
    let height = |n: usize| -> u32 {
        let svg = rsums("rSum", &vec![&series; n]).unwrap().svg;
        svg.split('"').nth(1).unwrap().split(' ').nth(3).unwrap().parse().unwrap()
    };
    assert_eq!([height(1), height(6), height(12)], [740, 740, 132 + 12 * 90]);
}

#[test]
fn the_mean_is_taken_where_all_seeds_are() {
    let a = curve(&[(1.0, 1.0), (2.0, 4.0), (3.0, 9.0)]);
    let b = curve(&[(2.0, 2.0), (1.0, 2.0)]);
    assert_eq!(mean(&[&a, &b], |c| &c.loss), [(1.0, 1.5), (2.0, 3.0)]);
}

#[test]
fn histograms_share_out_all_values() {
    let h = histogram(&[0.0, 0.24, 0.26, 1.0, f32::NAN], &(0.0..1.0), 4);
    assert_eq!(h, [50.0, 25.0, 0.0, 25.0]);
    assert_eq!(
        steps(&[3.0, 5.0], &(0.0..1.0)),
        [(0.0, 0.0), (0.0, 3.0), (0.5, 3.0), (0.5, 5.0), (1.0, 5.0), (1.0, 0.0)]
    );
}

/// A line through two points: y runs upwards on the page, its colour and dash are the page's.
#[test]
fn a_line_is_where_it_should_be() {
    let svg = loss_figure(&[curve(&[(0.0, 0.0), (4.0, 1.0)])]).unwrap().svg;
    let line = svg.split('<').find(|e| e.contains("var(--s0)")).unwrap();
    assert!(line.contains("style=\"stroke:var(--s0);stroke-dasharray:none\""), "{line}");
    let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
    let xy: Vec<i32> = points.split([',', ' ']).filter_map(|n| n.parse().ok()).collect();
    assert!(xy[0] < xy[2] && xy[1] > xy[3], "{xy:?}");
    assert!(svg.contains(">\nmean loss\n") && svg.contains(">\nepochs\n"), "{svg}");
}

#[test]
fn an_interval_reaches_from_low_to_high() {
    let report = super::super::sample::report(24.3, -5.5, &[]);
    let series = Series { name: "Full", series: 3, data: &report.rows[2].measured };
    let svg = rsums("rSum", &[&series]).unwrap().svg;
    let line = svg.split('<').find(|e| e.starts_with("polyline") && e.contains("--s3")).unwrap();
    let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
    let xy: Vec<i32> = points.split([',', ' ']).filter_map(|n| n.parse().ok()).collect();
    let dot = svg.split('<').find(|e| e.starts_with("circle")).unwrap();
    let middle: i32 = dot.split('"').nth(1).unwrap().parse().unwrap();
    assert!(xy[0] + 100 < middle && middle + 100 < xy[2] && xy[1] == xy[3], "{xy:?}, {middle}");
}
