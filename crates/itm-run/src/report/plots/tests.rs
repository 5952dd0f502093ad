use super::super::tests::sample;
use super::super::{PosteriorCurve, SimilarityGroup};
use super::*;

fn sound(figure: Option<Figure>) {
    let svg = figure.expect("a figure").svg.into_string();
    assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("#FE"), "{svg}");
    for element in svg.split('<') {
        // A point that overflowed the canvas's integers would lie far outside the canvas.
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
    similarities(&Similarities { row: "Full".into(), seed: 1, groups, posteriors })
}

#[test]
fn nothing_to_draw_is_no_figure() {
    assert!(similar(&[]).is_none() && similar(&[f32::NAN, f32::INFINITY]).is_none());
    assert!(reliability("r".into(), &[]).is_none());
    let mut report = sample::report(24.3, -5.5, &[1]);
    assert!(course(&report, &Figures::default()).is_empty());
    assert!(parameter(&report).is_empty() && distribution(&report).is_none());
    assert!(draw(&report).is_empty());
    report.rows.clear();
    assert!(recall(&report).is_empty());
}

#[test]
fn odd_data_draws_soundly() {
    sound(similar(&[0.3, 0.3, 0.3]));
    sound(similar(&[0.1, f32::NAN, 0.9]));
    let bin =
        |predicted, observed, count| super::super::ReliabilityBin { predicted, observed, count };
    let bins = vec![bin(0.1, f64::NAN, 0), bin(0.5, 0.5, u64::MAX)];
    sound(reliability("r".into(), &[Reliability { name: "p".into(), prior: 0.1, bins }]));
}

/// One line per seed and one for their mean. Rows without epochs are levels in the recall figure only.
#[test]
fn courses_have_their_seeds_and_levels() {
    let input = sample::input(24.3, -5.5, &[1, 2]);
    let [loss, recall] = &course(&input.report, &input.figures)[..] else { panic!("two figures") };
    let lines = |figure: &Figure, of: &str| {
        let svg = figure.svg.clone().into_string();
        let lines = svg.split('<').filter(|e| e.starts_with("polyline")).map(str::to_owned);
        lines.filter(|line| line.contains(of)).count()
    };
    assert_eq!([lines(loss, "--s0"), lines(recall, "--s0")], [3, 3]);
    assert_eq!([lines(loss, "--s7"), lines(recall, "--s7")], [0, 1], "CCA");
    assert_eq!((loss.legend.len(), recall.legend.len()), (4, 5));
    assert!(loss.svg.clone().into_string().contains(">\nmean loss\n"));
}

#[test]
fn the_mean_is_taken_where_all_seeds_are() {
    let a = vec![(1.0, 1.0), (2.0, 4.0), (3.0, 9.0), (4.0, f64::NAN)];
    let b = vec![(2.0, 2.0), (1.0, 2.0), (4.0, 1.0)];
    assert_eq!(mean(&[a, b]), [(1.0, 1.5), (2.0, 3.0)]);
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

/// By hand: the legend shows the last moments; a density of deviation 0.1 is 1 / (0.1 √2π) = 3.989 at its mean.
#[test]
fn word_scores_are_drawn_where_their_moments_are() {
    let mut input = sample::input(24.3, -5.5, &[1, 2]);
    assert!(words(&input.report, &input.figures).is_empty());
    let all = [0.3, 0.2, 0.1, 0.25, 0.2, 0.1];
    for (name, first) in WORDS.iter().zip(all) {
        let numbers = &mut input.figures.curves[0].numbers;
        numbers.insert((*name).to_owned(), vec![(1.0, first), (2.0, first + 0.1)]);
    }
    let figures = words(&input.report, &input.figures);
    assert_eq!(figures.len(), 2, "of the row with these numbers");
    let labels = |figure: &Figure| format!("{:?}", figure.legend);
    for part in
        ["matched words: μ 0.400, σ 0.300", "mismatched words: μ 0.200, σ 0.350", "t: 0.300"]
    {
        assert!(labels(&figures[0]).contains(part), "{part}: {}", labels(&figures[0]));
    }
    assert!(labels(&figures[1]).contains("t_s") && figures[1].title.starts_with("Full, seed 1"));
    assert!((normal(0.0, 0.1) - 3.989_423).abs() < 1e-6 && normal(0.1, 0.1) < normal(0.0, 0.1));
    assert_eq!(shifted(&[(1.0, 0.5)], &[(1.0, 0.2)], -1.0), [(1.0, 0.3)]);
    // First without the boundary of inference, then without a deviation.
    let numbers = &mut input.figures.curves[0].numbers;
    numbers.remove("t_s");
    assert_eq!(words(&input.report, &input.figures).len(), 2);
    let numbers = &mut input.figures.curves[0].numbers;
    numbers.get_mut("matched_deviation").unwrap()[1].1 = 0.0;
    assert_eq!(words(&input.report, &input.figures).len(), 1, "no density without a deviation");
}
