//! NAAF's Figure 3: the scores of matched and mismatched words, and the boundary between them.

use std::collections::BTreeMap;

use itm_core::Result;
use itm_report::figure::{Course, Figure, Key, SIZE, Shape, courses};
use itm_report::plot::{Axis, Ink, Plot, Point, drawable, padded};

use crate::measures::{BySeed, Measure, Trial, course};
use crate::report::{Report, Section};

/// Word scores of the first seed of each row.
#[derive(Debug, Default)]
pub(super) struct WordScores(BySeed<Vec<Figure>>);

impl Measure for WordScores {
    fn look(&self, trial: &Trial) -> Result<()> {
        if let Some(trained) = trial.trained.filter(|trained| trained.first) {
            let numbers = course::numbers(trained.log, trained.model.plan.epoch_steps());
            self.0.put(trial, words(&trained.model.name(), &numbers));
        }
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let figures = self.0.rows(report, |seeds| Some(seeds[0].clone()));
        let figures = figures.into_iter().flatten().flatten().collect();
        Ok(Section { figures, ..Section::new("Word scores") })
    }
}

/// Moments of matched and mismatched word scores and the boundary between them, as a method names these numbers.
const WORDS: [&str; 6] =
    ["matched_mean", "matched_deviation", "mismatched_mean", "mismatched_deviation", "t", "t_s"];

/// The two distributions at the end of training, and their course with the boundary; nothing for a row without these numbers.
fn words(name: &str, numbers: &BTreeMap<String, Vec<Point>>) -> Vec<Figure> {
    let known = WORDS.map(|name| numbers.get(name));
    let [Some(matched), Some(of_matched), Some(mismatched), Some(of_mismatched), Some(t), t_s] =
        known
    else {
        return vec![];
    };
    let none = Vec::new();
    let boundary = [("boundary t", 4, t), ("boundary t_s of inference", 5, t_s.unwrap_or(&none))];
    let sides = [("matched", 1, matched, of_matched), ("mismatched", 0, mismatched, of_mismatched)];
    let title = format!("{name}: word scores and the boundary over training (thin: one deviation)");
    let mean = |(side, ink, mean, deviation): (&str, u8, &Vec<Point>, &Vec<Point>)| Course {
        thin: [-1.0, 1.0].map(|sign| shifted(mean, deviation, sign)).into(),
        ..Course::new(format!("mean of {side} words"), Ink::solid(ink), mean.clone())
    };
    let lines = boundary.map(|(label, ink, at)| Course::new(label, Ink::dashed(ink), at.clone()));
    let all: Vec<_> = sides.map(mean).into_iter().chain(lines).collect();
    let over = courses(title, ["epochs", "word score"], &all, &[]);
    [distributions(name, &sides, &boundary), over].into_iter().flatten().collect()
}

/// Normal densities of the last moments, and the boundary between them.
fn distributions(
    name: &str,
    sides: &[(&str, u8, &Vec<Point>, &Vec<Point>); 2],
    boundary: &[(&str, u8, &Vec<Point>); 2],
) -> Option<Figure> {
    let last = |points: &Vec<Point>| Some(points.last()?.1).filter(|&x| drawable(x));
    let mut moments = vec![];
    for &(label, ink, mean, deviation) in sides {
        moments.push((label, ink, last(mean)?, last(deviation).filter(|&d| d > 0.0)?));
    }
    let ends = moments.iter().flat_map(|&(_, _, m, d)| [m - 3.5 * d, m + 3.5 * d]);
    let across = padded(ends.chain(boundary.iter().filter_map(|b| last(b.2))), 0.02);
    let top = moments.iter().map(|&(_, _, _, d)| normal(0.0, d)).fold(0.0, f64::max) * 1.08;
    let mut plot =
        Plot::new(Axis::new("word score", across.clone()), Axis::new("density", 0.0..top));
    let mut legend = vec![];
    for (label, ink, m, d) in moments {
        let at = |k: u32| across.start + (across.end - across.start) * f64::from(k) / 200.0;
        let outline: Vec<Point> = (0..=200).map(at).map(|x| (x, normal(x - m, d))).collect();
        plot.line(&outline, Ink::solid(ink), 4);
        let ends = [(across.end, 0.0), (across.start, 0.0)];
        plot.area(outline.into_iter().chain(ends).collect(), Ink::solid(ink).faint(0.3));
        let label = format!("{label} words: μ {m:.3}, σ {d:.3}");
        legend.push(Key::new(label, Shape::Area, Ink::solid(ink)));
    }
    for &(label, ink, points) in boundary {
        let Some(at) = last(points) else { continue };
        plot.line(&[(at, 0.0), (at, top)], Ink::dashed(ink), 5);
        legend.push(Key::new(format!("{label}: {at:.3}"), Shape::Line, Ink::dashed(ink)));
    }
    let title = format!("{name}: distributions of word scores at the end of training");
    Some(Figure::new(title, SIZE, &plot).with(legend))
}

/// Density of a normal distribution at distance `x` from its mean.
fn normal(x: f64, deviation: f64) -> f64 {
    let z = x / deviation;
    (-0.5 * z * z).exp() / (deviation * std::f64::consts::TAU.sqrt())
}

/// A mean moved by a number of deviations, where both are known.
fn shifted(mean: &[Point], deviation: &[Point], times: f64) -> Vec<Point> {
    mean.iter().zip(deviation).map(|(&(x, m), &(_, d))| (x, m + times * d)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the legend shows the last moments; a density of deviation 0.1 is 1 / (0.1 √2π) = 3.989 at its mean.
    #[test]
    fn word_scores_are_drawn_where_their_moments_are() {
        let mut numbers = BTreeMap::new();
        assert!(words("Full, seed 1", &numbers).is_empty());
        let all = [0.3, 0.2, 0.1, 0.25, 0.2, 0.1];
        for (name, first) in WORDS.iter().zip(all) {
            numbers.insert((*name).to_owned(), vec![(1.0, first), (2.0, first + 0.1)]);
        }
        let figures = words("Full, seed 1", &numbers);
        assert_eq!(figures.len(), 2);
        let labels = |figure: &Figure| format!("{:?}", figure.legend);
        for part in
            ["matched words: μ 0.400, σ 0.300", "mismatched words: μ 0.200, σ 0.350", "t: 0.300"]
        {
            assert!(labels(&figures[0]).contains(part), "{part}: {}", labels(&figures[0]));
        }
        assert!(
            labels(&figures[1]).contains("t_s") && figures[1].title.starts_with("Full, seed 1")
        );
        assert!((normal(0.0, 0.1) - 3.989_423).abs() < 1e-6 && normal(0.1, 0.1) < normal(0.0, 0.1));
        assert_eq!(shifted(&[(1.0, 0.5)], &[(1.0, 0.2)], -1.0), [(1.0, 0.3)]);
        // First without the boundary of inference, then without a deviation.
        numbers.remove("t_s");
        assert_eq!(words("Full, seed 1", &numbers).len(), 2);
        numbers.get_mut("matched_deviation").unwrap()[1].1 = 0.0;
        assert_eq!(words("Full, seed 1", &numbers).len(), 1, "no density without a deviation");
    }
}
