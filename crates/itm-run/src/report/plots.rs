//! The figures of `report.html`.

mod traces;

use std::collections::BTreeMap;
use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{
    HEIGHT, Ink, Point, TEXT, chart, draw, draw_high, drawable, finite, mesh, number, padded, path,
    text,
};
use super::json::{Measured, Reliability};
use super::{Curve, Similarities};

pub(super) use self::traces::{Trace, traces};

/// A figure and what its legend says.
pub(super) struct Figure {
    pub(super) svg: String,
    pub(super) legend: Vec<Key>,
}

/// A legend's entry.
pub(super) struct Key {
    pub(super) label: String,
    /// Number of the page's series colour and dash.
    pub(super) series: u8,
    pub(super) shape: Shape,
}

/// How a legend's entry looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Line,
    Area,
    Dot,
}

/// A row's name, its colour, and whatever a figure shows of it.
pub(super) struct Series<'a, T> {
    pub(super) name: &'a str,
    pub(super) series: u8,
    pub(super) data: T,
}

impl<'a, T> Series<'a, T> {
    /// The same row showing something else.
    pub(super) fn with<U>(&self, data: U) -> Series<'a, U> {
        Series { name: self.name, series: self.series, data }
    }
}

/// Which course of a [`Curve`] to draw.
pub(super) type Course = fn(&Curve) -> &Vec<Point>;

/// Loss or recall over epochs: a thin line per seed, a thick one for their mean. `levels` are
/// horizontal lines: rows that were not trained.
pub(super) fn curves(
    label: &str,
    y_desc: &str,
    rows: &[Series<Vec<&Curve>>],
    course: Course,
    levels: &[Series<f64>],
) -> Option<Figure> {
    let all: Vec<Point> =
        (rows.iter().flat_map(|r| &r.data)).flat_map(|c| finite(course(c))).collect();
    if all.is_empty() {
        return None;
    }
    let x = padded(all.iter().map(|p| p.0), 0.0);
    let y = padded(all.iter().map(|p| p.1).chain(levels.iter().map(|l| l.data)), 0.05);
    let svg = draw(label, |canvas| {
        let mut chart = chart(canvas, 0).build_cartesian_2d(x.clone(), y)?;
        mesh(&mut chart.configure_mesh(), "epochs", y_desc).draw()?;
        for level in levels {
            let line = [(x.start, level.data), (x.end, level.data)];
            chart.draw_series([path(
                line.into(),
                Ink::Dashed(level.series).rgb().stroke_width(3),
            )])?;
        }
        for row in rows.iter().filter(|r| r.data.len() > 1) {
            for seed in &row.data {
                let style = Ink::Solid(row.series).faint(0.4).stroke_width(2);
                chart.draw_series([path(finite(course(seed)), style)])?;
            }
        }
        for row in rows {
            let style = Ink::Dashed(row.series).rgb().stroke_width(5);
            chart.draw_series([path(mean(&row.data, course), style)])?;
        }
        Ok(())
    });
    let line = |name: &str, series| Key { label: name.to_owned(), series, shape: Shape::Line };
    let keys = rows.iter().filter(|r| r.data.iter().any(|c| !finite(course(c)).is_empty()));
    let legend = (keys.map(|r| line(r.name, r.series)))
        .chain(levels.iter().map(|l| line(l.name, l.series)))
        .collect();
    Some(Figure { svg, legend })
}

/// Histograms of the groups' similarities (left axis) and the posterior over them (right axis).
pub(super) fn similarities(label: &str, s: &Similarities) -> Option<Figure> {
    const BINS: usize = 60;
    let values = || s.groups.iter().flat_map(|g| &g.values).map(|&v| f64::from(v));
    if !values().any(drawable) {
        return None;
    }
    let x = padded(values(), 0.02);
    let groups: Vec<_> = s.groups.iter().map(|g| histogram(&g.values, &x, BINS)).collect();
    let top = groups.iter().flatten().fold(0.0, |a: f64, &b| a.max(b));
    let colours = [0, 2, 1]; // matching blue, unannotated green, other vermilion
    let colour = |g: usize| if s.groups.len() == 2 { [0, 1][g] } else { colours[g.min(2)] };
    let svg = draw(label, |canvas| {
        let mut chart = chart(canvas, 110)
            .build_cartesian_2d(x.clone(), 0.0..top * 1.08)?
            .set_secondary_coord(x.clone(), 0.0..1.04);
        mesh(&mut chart.configure_mesh(), "cosine s", "% of the group per bin").draw()?;
        chart
            .configure_secondary_axes()
            .axis_style(Ink::Page.faint(0.5))
            .label_style(text(TEXT))
            .axis_desc_style(text(TEXT))
            .y_labels(6)
            .y_label_formatter(&|v| number(*v))
            .y_desc("probability P(s)")
            .draw()?;
        for (g, shares) in groups.iter().enumerate() {
            let outline = steps(shares, &x);
            chart.draw_series([Polygon::new(outline.clone(), Ink::Solid(colour(g)).faint(0.3))])?;
            chart.draw_series([path(outline, Ink::Solid(colour(g)).rgb().stroke_width(3))])?;
        }
        for (k, curve) in s.posteriors.iter().enumerate() {
            let inside = |p: &Point| x.contains(&p.0) || p.0 == x.end;
            let points = finite(&curve.points).into_iter().filter(inside).collect();
            let style = Ink::Dashed(posterior(k)).rgb().stroke_width(5);
            chart.draw_secondary_series([path(points, style)])?;
        }
        Ok(())
    });
    let area = |(g, group): (usize, &super::SimilarityGroup)| Key {
        label: group.label.clone(),
        series: colour(g),
        shape: Shape::Area,
    };
    let line = |(k, p): (usize, &super::PosteriorCurve)| Key {
        label: p.label.clone(),
        series: posterior(k),
        shape: Shape::Line,
    };
    let legend = (s.groups.iter().enumerate().map(area))
        .chain(s.posteriors.iter().enumerate().map(line))
        .collect();
    Some(Figure { svg, legend })
}

/// Observed against predicted probability; a dot's area grows with the logarithm of its count.
pub(super) fn reliability(label: &str, priors: &[Reliability]) -> Option<Figure> {
    if priors.iter().all(|r| r.bins.is_empty()) {
        return None;
    }
    let dot = |count: u64| (5.0 + 3.0 * (1.0 + count as f64).log10()).round() as i32;
    let svg = draw(label, |canvas| {
        let mut chart = chart(canvas, 0).build_cartesian_2d(-0.02..1.02, -0.02..1.02)?;
        mesh(&mut chart.configure_mesh(), "predicted probability", "observed share").draw()?;
        let diagonal = path(vec![(0.0, 0.0), (1.0, 1.0)], Ink::Page.faint(0.45).stroke_width(2));
        chart.draw_series([diagonal])?;
        for (k, prior) in priors.iter().enumerate() {
            let k = posterior(k);
            let bins = || prior.bins.iter().filter(|b| drawable(b.predicted + b.observed));
            let points: Vec<_> = bins().map(|b| (b.predicted, b.observed)).collect();
            chart.draw_series([path(points, Ink::Dashed(k).rgb().stroke_width(4))])?;
            chart.draw_series(bins().map(|b| {
                Circle::new((b.predicted, b.observed), dot(b.count), Ink::Solid(k).rgb().filled())
            }))?;
        }
        Ok(())
    });
    let legend = (priors.iter().enumerate())
        .map(|(k, r)| Key { label: r.name.clone(), series: posterior(k), shape: Shape::Dot })
        .collect();
    Some(Figure { svg, legend })
}

/// One direction's recalls with their 95 % intervals: three values and, if known, `[lo, hi]` each.
pub(super) type Bars = ([f64; 3], Option<[[f64; 2]; 3]>);

/// Bars of R@1, R@5 and R@10, one per row.
pub(super) fn recall_bars(label: &str, rows: &[Series<Bars>]) -> Option<Figure> {
    if rows.is_empty() {
        return None;
    }
    let width = 0.84 / rows.len() as f64;
    let left = |group: usize, bar: usize| group as f64 + 0.08 + bar as f64 * width;
    let svg = draw(label, |canvas| {
        let mut chart = chart(canvas, 0).build_cartesian_2d(0.0..3.0, 0.0..100.0)?;
        let mut mesh = chart.configure_mesh();
        self::mesh(&mut mesh, "", "recall, %").disable_x_axis().x_labels(0).draw()?;
        for (g, name) in ["R@1", "R@5", "R@10"].into_iter().enumerate() {
            let (w, h) = chart.plotting_area().dim_in_pixel();
            let x = chart.plotting_area().get_base_pixel().0
                + (w as f64 * (g as f64 + 0.5) / 3.0) as i32;
            let y = chart.plotting_area().get_base_pixel().1 + h as i32 + 14;
            canvas.draw(&Text::new(
                name,
                (x, y),
                text(TEXT).pos(Pos::new(HPos::Center, VPos::Top)),
            ))?;
        }
        for (b, row) in rows.iter().enumerate() {
            for (g, value) in row.data.0.into_iter().enumerate().filter(|(_, v)| drawable(*v)) {
                let (x0, x1) = (left(g, b), left(g, b) + width * 0.9);
                let style = Ink::Solid(row.series).faint(0.85).filled();
                chart.draw_series([Rectangle::new([(x0, 0.0), (x1, value)], style)])?;
                if let Some(ci) = row.data.1 {
                    let (middle, [lo, hi]) = ((x0 + x1) / 2.0, ci[g]);
                    let style = Ink::Page.rgb().stroke_width(3);
                    chart.draw_series([path(finite(&[(middle, lo), (middle, hi)]), style)])?;
                }
            }
        }
        Ok(())
    });
    let legend = (rows.iter())
        .map(|r| Key { label: r.name.to_owned(), series: r.series, shape: Shape::Area })
        .collect();
    Some(Figure { svg, legend })
}

/// Least height of a row in [`rsums`]: a name, and its mark below it.
const ROW: u32 = 90;

/// rSum of every row with its interval, and a small mark for every seed.
pub(super) fn rsums(label: &str, rows: &[&Series<&Measured>]) -> Option<Figure> {
    let values = rows.iter().flat_map(|r| {
        let seeds = r.data.per_seed.iter().map(|s| s.rsum);
        [r.data.rsum].into_iter().chain(r.data.ci95.into_iter().flatten()).chain(seeds)
    });
    let x = padded(values, 0.04);
    if rows.is_empty() {
        return None;
    }
    let n = rows.len() as f64;
    let svg = draw_high(label, HEIGHT.max(132 + ROW * rows.len() as u32), |canvas| {
        let mut builder = ChartBuilder::on(canvas);
        builder.margin(16).margin_right(40).x_label_area_size(100);
        let mut chart = builder.build_cartesian_2d(x.clone(), 0.0..n)?;
        let mut mesh = chart.configure_mesh();
        self::mesh(&mut mesh, "rSum", "").disable_y_mesh().y_labels(0).draw()?;
        for (i, row) in rows.iter().enumerate() {
            let (y, m) = (n - i as f64 - 0.7, row.data);
            let colour = Ink::Solid(row.series);
            let name = Text::new(row.name.to_owned(), (x.start, y + 0.62), text(TEXT));
            chart.draw_series([name])?;
            if let Some([lo, hi]) = m.ci95 {
                let style = colour.rgb().stroke_width(6);
                chart.draw_series([path(finite(&[(lo, y), (hi, y)]), style)])?;
            }
            if drawable(m.rsum) {
                chart.draw_series([Circle::new((m.rsum, y), 14, colour.rgb().filled())])?;
            }
            let seeds = m.per_seed.iter().map(|s| (s.rsum, y)).filter(|p| drawable(p.0));
            let style = Ink::Page.rgb().stroke_width(3);
            chart
                .draw_series(seeds.map(|(s, y)| path(vec![(s, y - 0.13), (s, y + 0.13)], style)))?;
        }
        Ok(())
    });
    Some(Figure { svg, legend: Vec::new() })
}

/// The series of the k-th prior, the same in every figure.
fn posterior(k: usize) -> u8 {
    4 + (k % 2) as u8
}

/// Mean over the curves at every x that all of them have.
fn mean(curves: &[&Curve], course: Course) -> Vec<Point> {
    let mut at: BTreeMap<u64, (f64, f64, usize)> = BTreeMap::new();
    for (x, y) in curves.iter().flat_map(|c| finite(course(c))) {
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
