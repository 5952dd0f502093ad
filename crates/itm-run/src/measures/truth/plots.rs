//! Draws over epochs, similarities with the posterior over them, and the reliability of the posterior.

use std::collections::BTreeSet;
use std::ops::Range;

use itm_report::figure::{Figure, Key, SIZE, Shape, courses};
use itm_report::plot::{Axis, Ink, Plot, Point, drawable, padded};

use super::similarities::Group;
use super::{EpochDraws, Reliability, Truth};
use crate::report::dotted;

/// Shares of drawn negatives that were false, over epochs.
pub(super) fn draw(row: &str, truth: &Truth) -> Option<Figure> {
    let epochs = &truth.epochs;
    let line = |name: &str, series, value: &dyn Fn(&EpochDraws) -> Option<f64>| {
        let point = |e: &EpochDraws| Some((f64::from(e.epoch), 100.0 * value(e)?));
        dotted(name, series, epochs.iter().filter_map(point).collect())
    };
    let names: BTreeSet<&String> = epochs.iter().flat_map(|e| e.others.keys()).collect();
    let own = [
        line("as drawn", 0, &|e| Some(e.drawn)),
        line("uniform", 6, &|e| Some(e.uniform)),
        line("hardest", 1, &|e| Some(e.hardest)),
    ];
    let other = |(name, series): (&String, u8)| {
        line(name, series, &|e: &EpochDraws| e.others.get(name).copied())
    };
    let lines: Vec<_> =
        own.into_iter().chain(names.into_iter().zip((2..6).cycle()).map(other)).collect();
    let title = format!("{row}: negatives that are false, over epochs");
    courses(title, ["epoch", "% of the negatives"], &lines, &[])
}

/// Histograms of the groups' similarities (left axis) and the posterior of the row's sampler over them (right axis).
pub(super) fn similarities(
    name: &str,
    groups: &[Group],
    posterior: Option<&(String, Vec<Point>)>,
) -> Option<Figure> {
    const BINS: usize = 60;
    let values = || groups.iter().flat_map(|(_, values)| values).map(|&v| f64::from(v));
    if !values().any(drawable) {
        return None;
    }
    let range = padded(values(), 0.02);
    let shares: Vec<_> = groups.iter().map(|(_, values)| histogram(values, &range, BINS)).collect();
    let top = shares.iter().flatten().fold(0.0, |a: f64, &b| a.max(b));
    let up = Axis::new("% of the group per bin", 0.0..top * 1.08);
    let mut plot = Plot::new(Axis::new("score s", range.clone()), up);
    // Matching pairs are blue, pairs that are true but not annotated green, other pairs vermilion.
    let colours: &[u8] = if groups.len() == 2 { &[0, 1] } else { &[0, 2, 1] };
    let mut legend = Vec::new();
    for ((shares, (label, _)), &colour) in shares.iter().zip(groups).zip(colours.iter().cycle()) {
        let outline = steps(shares, &range);
        plot.line(&outline, Ink::solid(colour), 3);
        plot.area(outline, Ink::solid(colour).faint(0.3));
        legend.push(Key::new(*label, Shape::Area, Ink::solid(colour)));
    }
    if let Some((label, curve)) = posterior {
        let inside = |p: &Point| range.contains(&p.0) || p.0 == range.end;
        let points: Vec<_> = curve.iter().copied().filter(inside).collect();
        plot.right_line(Axis::new("probability P(s)", 0.0..1.04), &points, prior(0), 5);
        legend.push(Key::new(label.as_str(), Shape::Line, prior(0)));
    }
    let posterior = if posterior.is_none() { "" } else { " and the posterior" };
    let title = format!("{name}: scores of test pairs{posterior}");
    Some(Figure::new(title, SIZE, &plot).with(legend))
}

/// Observed against predicted probability; a dot's area grows with the logarithm of its count.
pub(super) fn reliability(row: &str, truth: &Truth) -> Option<Figure> {
    let priors = &truth.reliability;
    if priors.iter().all(|r| r.bins.is_empty()) {
        return None;
    }
    let axis = |name| Axis::new(name, -0.02..1.02);
    let mut plot = Plot::new(axis("predicted probability"), axis("observed share"));
    plot.line(&[(0.0, 0.0), (1.0, 1.0)], Ink::PAGE.faint(0.45), 2);
    for (k, of_prior) in priors.iter().enumerate() {
        let points: Vec<_> = of_prior.bins.iter().map(|b| (b.predicted, b.observed)).collect();
        plot.line(&points, prior(k), 4);
        for (bin, point) in of_prior.bins.iter().zip(points) {
            let radius = (5.0 + 3.0 * (1.0 + bin.count as f64).log10()).round() as i32;
            plot.dots(&[point], prior(k).undashed(), radius);
        }
    }
    let key =
        |(k, r): (usize, &Reliability)| Key::new(r.name.as_str(), Shape::Dot, prior(k).undashed());
    let legend = priors.iter().enumerate().map(key);
    let title = format!("{row}: reliability of the posterior (diagonal: calibrated)");
    Some(Figure::new(title, SIZE, &plot).with(legend))
}

/// The line of the k-th prior, the same in every figure.
fn prior(k: usize) -> Ink {
    Ink::dashed(4 + (k % 2) as u8)
}

/// Percent of the drawable values in each of `bins` equal parts of `range`.
fn histogram(values: &[f32], range: &Range<f64>, bins: usize) -> Vec<f64> {
    let mut counts = vec![0.0; bins];
    let scale = bins as f64 / (range.end - range.start);
    let mut total = 0.0f64;
    for v in values.iter().map(|&v| f64::from(v)).filter(|v| drawable(*v)) {
        let bin = ((v - range.start) * scale) as usize;
        counts[bin.min(bins - 1)] += 1.0;
        total += 1.0;
    }
    counts.iter().map(|c| 100.0 * c / total.max(1.0)).collect()
}

/// The outline of a histogram, from the axis to the axis.
fn steps(shares: &[f64], range: &Range<f64>) -> Vec<Point> {
    let edge = |k: usize| range.start + (range.end - range.start) * k as f64 / shares.len() as f64;
    let tops = shares.iter().enumerate().flat_map(|(k, &y)| [(edge(k), y), (edge(k + 1), y)]);
    [(range.start, 0.0)].into_iter().chain(tops).chain([(range.end, 0.0)]).collect()
}

#[cfg(test)]
mod tests;
