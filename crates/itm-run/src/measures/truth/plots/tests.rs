use itm_core::audit::ReliabilityBin;

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
    let points = vec![(0.0, 0.2), (0.5, f64::NAN), (0.6, 1.0)];
    similar_with(values, Some(("P".into(), points)))
}

fn similar_with(values: &[f32], posterior: Option<(String, Vec<Point>)>) -> Option<Figure> {
    let groups = vec![("pairs", values.to_vec())];
    similarities("Full, seed 1", &groups, posterior.as_ref())
}

/// Without a posterior there is nothing to read at a right axis.
#[test]
fn a_posterior_has_an_axis_of_its_own() {
    let has_axis = |figure: Option<Figure>| figure.unwrap().svg.into_string().contains("P(s)");
    let values = [0.1, 0.3, 0.9];
    assert!(has_axis(similar(&values)) && !has_axis(similar_with(&values, None)));
}

#[test]
fn nothing_to_draw_is_no_figure() {
    assert!(similar(&[]).is_none() && similar(&[f32::NAN, f32::INFINITY]).is_none());
    assert!(reliability("r", &Truth::default()).is_none());
    assert!(draw("r", &Truth::default()).is_none());
}

/// The axis for shares of 0.01 to 0.3 is in percent.
#[test]
fn shares_are_drawn_over_epochs() {
    let draws = |epoch| EpochDraws {
        epoch,
        drawn: 0.02,
        uniform: 0.01,
        hardest: 0.3,
        others: [("FNE paper".to_owned(), 0.015)].into(),
        detection: vec![],
    };
    let truth = Truth { epochs: vec![draws(1), draws(2)], ..Truth::default() };
    let figure = draw("Full", &truth).unwrap();
    assert_eq!(figure.title, "Full: negatives that are false, over epochs");
    let shares = figure.svg.into_string();
    assert!(shares.contains(">\n30\n<") && !shares.contains(">\n0.3\n<"), "{shares}");
    assert!(format!("{:?}", figure.legend).contains("FNE paper"));
}

#[test]
fn odd_data_draws_soundly() {
    sound(similar(&[0.3, 0.3, 0.3]));
    sound(similar(&[0.1, f32::NAN, 0.9]));
    let bin = |predicted, observed, count| ReliabilityBin { predicted, observed, count };
    let bins = vec![bin(0.1, f64::NAN, 0), bin(0.5, 0.5, u64::MAX)];
    let reliability = vec![Reliability { name: "p".into(), prior: 0.1, bins }];
    sound(super::reliability("r", &Truth { reliability, ..Truth::default() }));
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
