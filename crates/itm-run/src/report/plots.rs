//! The figures of `report.html`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use itm_report::figure::{self, Course, Estimate, Figure, Key, SIZE, Shape, courses, estimates};
use itm_report::format::points;
use itm_report::plot::{Axis, Ink, Plot, Point, drawable, finite, padded};
use itm_report::table::Role;

use super::json::{EpochDraws, Measured, Recalls, Reliability, Report, Row};
use super::tables::{is_bound, role};
use super::{CHANCE, Curve, Figures, Similarities};

/// Colours of rows that are neither the claim's nor a baseline: five colours, then their pale versions.
const OTHERS: [u8; 10] = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12];

/// Every row with its colour. The claim's row has the first colour, baselines have two colours of their own. The
/// eleventh other row is the first that shares a colour.
pub(super) fn rows(report: &Report) -> Vec<(&Row, u8)> {
    let mut others = OTHERS.into_iter().cycle();
    let mut colour = |row: &Row| match role(report, &row.name, row.kind) {
        Role::Method => 0,
        Role::Baseline if row.name == CHANCE => 6,
        Role::Baseline | Role::Bound => 7,
        Role::Other => others.next().unwrap_or_default(),
    };
    report.rows.iter().map(|row| (row, colour(row))).collect()
}

/// rSum and recalls of the rows.
pub(super) fn recall(report: &Report) -> Vec<Figure> {
    let rows = rows(report);
    let estimate = |&(row, series): &(&Row, u8)| Estimate {
        name: row.name.clone(),
        series,
        value: row.measured.rsum,
        interval: row.measured.ci95,
        parts: row.measured.per_seed.iter().map(|seed| seed.rsum).collect(),
    };
    let ranked: Vec<_> =
        rows.iter().filter(|(r, _)| r.name != CHANCE && !is_bound(&r.name)).map(estimate).collect();
    let chance = report.row(CHANCE).filter(|_| !ranked.is_empty());
    let apart = chance.map_or(String::new(), |row| {
        format!("; {CHANCE}, {}, is not drawn", points(row.measured.rsum))
    });
    type Side = (Recalls, Option<[[f64; 2]; 3]>); // the recalls and, if known, their intervals
    let bars = |title: &str, of: fn(&Measured) -> Side| {
        let row = |&(row, series): &(&Row, u8)| {
            let (values, intervals) = of(&row.measured);
            figure::Recalls { name: row.name.clone(), series, values: values.values(), intervals }
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        let known = rows.iter().any(|row| row.intervals.is_some());
        let whiskers = if known { " with 95 % intervals" } else { "" };
        figure::recalls(format!("{title}{whiskers}"), &rows)
    };
    let title = format!("rSum with 95 % interval; ticks: seeds{apart}");
    let figures = [
        estimates(title, "rSum", &ranked, None),
        bars("Image → text", |m| (m.i2t, m.ci95_recalls.map(|ci| ci.i2t))),
        bars("Text → image", |m| (m.t2i, m.ci95_recalls.map(|ci| ci.t2i))),
    ];
    figures.into_iter().flatten().collect()
}

/// Loss and recall over epochs: a thin line per seed, a thick one for their mean, a level for a row without epochs.
pub(super) fn course(report: &Report, drawn: &Figures) -> Vec<Figure> {
    let rows: Vec<_> = rows(report)
        .into_iter()
        .map(|(row, series)| {
            let curves: Vec<_> = drawn.curves.iter().filter(|c| c.row == row.name).collect();
            (row, Ink::dashed(series), curves)
        })
        .collect();
    let seeds = if report.seeds.len() > 1 { " (thin: one seed; thick: their mean)" } else { "" };
    let lines = |of: fn(&Curve) -> &Vec<Point>| -> Vec<Course> {
        let trained = rows.iter().filter(|(_, _, curves)| !curves.is_empty());
        let line = |(row, ink, curves): &(&Row, Ink, Vec<&Curve>)| {
            let all: Vec<_> = curves.iter().map(|curve| of(curve).clone()).collect();
            let line = Course::new(row.name.as_str(), *ink, mean(&all));
            Course { thin: if all.len() > 1 { all } else { vec![] }, ..line }
        };
        trained.map(line).collect()
    };
    let untrained = rows.iter().filter(|(_, _, curves)| curves.is_empty());
    let levels: Vec<_> = untrained
        .filter_map(|(row, ink, _)| Some((*row, *ink, row.measured.validation_rsum?)))
        .collect();
    let at: Vec<_> = levels.iter().map(|&(_, ink, at)| (ink, at)).collect();
    let loss =
        courses(format!("Training loss{seeds}"), ["epochs", "mean loss"], &lines(|c| &c.loss), &[]);
    let mut recall = courses(
        format!("Recall on the validation split{seeds}"),
        ["epochs", "validation rSum"],
        &lines(|c| &c.validation_rsum),
        &at,
    );
    let keys = levels.iter().map(|(row, ink, _)| Key::new(row.name.as_str(), Shape::Line, *ink));
    recall.iter_mut().for_each(|figure| figure.legend.extend(keys.clone()));
    loss.into_iter().chain(recall).collect()
}

/// The paper's figure: recall over what differs between the rows.
pub(super) fn parameter(report: &Report) -> Vec<Figure> {
    let Some(of) = &report.figure else { return Vec::new() };
    let points = || of.points.iter().filter_map(|p| Some((p.x, &report.row(&p.row)?.measured)));
    type Value = fn(&Measured) -> f64;
    type Ends = fn(&Measured) -> Option<[f64; 2]>;
    let line = |name: &str, series, value: Value, ends: Ends| Course {
        intervals: points().filter_map(|(x, m)| Some((x, ends(m)?))).collect(),
        ..dotted(name, series, points().map(|(x, m)| (x, value(m))).collect())
    };
    let r1 = [
        line("image → text", 0, |m| m.i2t.r1, |m| m.ci95_recalls.map(|ci| ci.i2t[0])),
        line("text → image", 1, |m| m.t2i.r1, |m| m.ci95_recalls.map(|ci| ci.t2i[0])),
    ];
    let rsum = [line("rSum", 0, |m| m.rsum, |m| m.ci95)];
    let (number, x) = (of.number, of.x.as_str());
    let title = |what: &str| format!("Figure {number}: {what} over `{x}`, 95 % intervals");
    let figures = [
        courses(title("rSum"), [x, "rSum"], &rsum, &[]),
        courses(title("R@1"), [x, "R@1, %"], &r1, &[]),
    ];
    figures.into_iter().flatten().collect()
}

/// The paper's figure: how many items have each count, a line per row.
pub(super) fn distribution(report: &Report) -> Option<Figure> {
    let d = report.distribution.as_ref()?;
    let rows = rows(report);
    let line = |of: &super::DistributionOf| {
        let (row, series) = rows.iter().find(|(row, _)| row.name == of.row)?;
        Some(dotted(&row.name, *series, of.histogram.points()))
    };
    let lines: Vec<_> = d.rows.iter().filter_map(line).collect();
    let (k, way) = (d.k, d.direction.queries("image → text", "text → image"));
    let title = format!("Figure {}: distribution of N_{k}, {way}", d.number);
    courses(title, [&format!("log₁₀ N_{k}"), &format!("log₁₀ p(N_{k})")], &lines, &[])
}

/// Moments of matched and mismatched word scores and the boundary between them, as a method names these numbers.
const WORDS: [&str; 6] =
    ["matched_mean", "matched_deviation", "mismatched_mean", "mismatched_deviation", "t", "t_s"];

/// NAAF's Figure 3 for the first seed of each row with these numbers: the two distributions at the end of training, and
/// their course with the boundary.
pub(super) fn words(report: &Report, drawn: &Figures) -> Vec<Figure> {
    let of_row = |row: &Row| {
        let curve = drawn.curves.iter().find(|c| c.row == row.name)?; // the first seed
        let numbers = WORDS.map(|name| curve.numbers.get(name));
        let [Some(matched), Some(of_matched), Some(mismatched), Some(of_mismatched), Some(t), t_s] =
            numbers
        else {
            return None;
        };
        let none = Vec::new();
        let boundary =
            [("boundary t", 4, t), ("boundary t_s of inference", 5, t_s.unwrap_or(&none))];
        let sides =
            [("matched", 1, matched, of_matched), ("mismatched", 0, mismatched, of_mismatched)];
        let name = format!("{}, seed {}", curve.row, curve.seed);
        let title =
            format!("{name}: word scores and the boundary over training (thin: one deviation)");
        let mean = |(side, ink, mean, deviation): (&str, u8, &Vec<Point>, &Vec<Point>)| Course {
            thin: [-1.0, 1.0].map(|sign| shifted(mean, deviation, sign)).into(),
            ..Course::new(format!("mean of {side} words"), Ink::solid(ink), mean.clone())
        };
        let lines =
            boundary.map(|(label, ink, at)| Course::new(label, Ink::dashed(ink), at.clone()));
        let all: Vec<_> = sides.map(mean).into_iter().chain(lines).collect();
        let over = courses(title, ["epochs", "word score"], &all, &[]);
        Some([distributions(&name, &sides, &boundary), over])
    };
    report.rows.iter().filter_map(of_row).flatten().flatten().collect()
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

/// Shares of drawn negatives that were false, over epochs: one figure per row.
pub(super) fn draw(report: &Report) -> Vec<Figure> {
    let of_row = |row: &Row| {
        let epochs = &row.truth.as_ref()?.epochs;
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
        let title = format!("{}: negatives that are false, over epochs", row.name);
        courses(title, ["epoch", "% of the negatives"], &lines, &[])
    };
    report.rows.iter().filter_map(of_row).collect()
}

fn dotted(name: &str, series: u8, points: Vec<Point>) -> Course {
    Course::new(name, Ink::dashed(series), points).dotted(9)
}

/// Similarities with the posterior over them, and the reliability of the posterior.
pub(super) fn posterior(report: &Report, drawn: &Figures) -> Vec<Figure> {
    let of_row = |row: &Row| {
        let title = format!("{}: reliability of the posterior (diagonal: calibrated)", row.name);
        reliability(title, &row.truth.as_ref()?.reliability)
    };
    let similarities = drawn.similarities.iter().filter_map(similarities);
    similarities.chain(report.rows.iter().filter_map(of_row)).collect()
}

/// Histograms of the groups' similarities (left axis) and the posterior over them (right axis).
fn similarities(s: &Similarities) -> Option<Figure> {
    const BINS: usize = 60;
    let values = || s.groups.iter().flat_map(|g| &g.values).map(|&v| f64::from(v));
    if !values().any(drawable) {
        return None;
    }
    let range = padded(values(), 0.02);
    let groups: Vec<_> = s.groups.iter().map(|g| histogram(&g.values, &range, BINS)).collect();
    let top = groups.iter().flatten().fold(0.0, |a: f64, &b| a.max(b));
    let up = Axis::new("% of the group per bin", 0.0..top * 1.08);
    let right = Axis::new("probability P(s)", 0.0..1.04);
    let mut plot = Plot::new(Axis::new("score s", range.clone()), up).with_right(right);
    // Matching pairs are blue, pairs that are true but not annotated green, other pairs vermilion.
    let colours: &[u8] = if s.groups.len() == 2 { &[0, 1] } else { &[0, 2, 1] };
    let mut legend = Vec::new();
    for ((shares, group), &colour) in groups.iter().zip(&s.groups).zip(colours.iter().cycle()) {
        let outline = steps(shares, &range);
        plot.line(&outline, Ink::solid(colour), 3);
        plot.area(outline, Ink::solid(colour).faint(0.3));
        legend.push(Key::new(group.label.as_str(), Shape::Area, Ink::solid(colour)));
    }
    for (k, curve) in s.posteriors.iter().enumerate() {
        let inside = |p: &Point| range.contains(&p.0) || p.0 == range.end;
        let points: Vec<_> = curve.points.iter().copied().filter(inside).collect();
        plot.right_line(&points, prior(k), 5);
        legend.push(Key::new(curve.label.as_str(), Shape::Line, prior(k)));
    }
    let posterior = if s.posteriors.is_empty() { "" } else { " and the posterior" };
    let title = format!("{}, seed {}: scores of test pairs{posterior}", s.row, s.seed);
    Some(Figure::new(title, SIZE, &plot).with(legend))
}

/// Observed against predicted probability; a dot's area grows with the logarithm of its count.
fn reliability(title: String, priors: &[Reliability]) -> Option<Figure> {
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
    Some(Figure::new(title, SIZE, &plot).with(legend))
}

/// The line of the k-th prior, the same in every figure.
fn prior(k: usize) -> Ink {
    Ink::dashed(4 + (k % 2) as u8)
}

/// Mean over the curves at every x that all of them have.
fn mean(curves: &[Vec<Point>]) -> Vec<Point> {
    let mut at: BTreeMap<u64, (f64, f64, usize)> = BTreeMap::new();
    for (x, y) in curves.iter().flat_map(|c| finite(c)) {
        // Epochs are not negative, so the bits of x sort as x does.
        let sum = at.entry(x.max(0.0).to_bits()).or_insert((x, 0.0, 0));
        *sum = (x, sum.1 + y, sum.2 + 1);
    }
    let full = |(x, sum, n): (f64, f64, usize)| (n == curves.len()).then_some((x, sum / n as f64));
    at.into_values().filter_map(full).collect()
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
