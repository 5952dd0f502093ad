//! The figures of the page.

use plotters::prelude::*;

pub(super) use super::canvas::LEVEL;
use super::canvas::{
    Canvas, Ink, Point, chart, draw, drawable, finite, number, padded, path, text,
};
use super::format::points;
use super::methods::title;
use super::model::{Curve, Report, Row};
use super::table::name;
use super::verdict;
use crate::{Direction, Setting};
pub(super) use counts::counts;

mod counts;

/// A figure, what stands above it and what its legend says.
pub(super) struct Figure {
    pub(super) title: String,
    /// Numbers that belong to it.
    pub(super) detail: String,
    pub(super) svg: String,
    pub(super) legend: Vec<Key>,
}

/// A legend's entry: its text and the SVG style of its stroke or area.
pub(super) struct Key {
    pub(super) label: String,
    pub(super) shape: Shape,
}

/// How a legend's entry looks.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A line of a series' colour in a dash pattern.
    Line(u8, &'static str),
    /// An area of a series' colour, more or less opaque.
    Area(u8, f64),
}

const WIDTH: u32 = 1200;
const GREY: u8 = 6;
/// How opaque the bars of R@1, R@5 and R@10 are.
const TINTS: [f64; 3] = [0.95, 0.6, 0.33];

/// The colour of what a row has seen.
fn colour(setting: Setting) -> u8 {
    match setting {
        Setting::Plain => GREY,
        Setting::HeldOut => 2,
        Setting::Transductive => 0,
    }
}

/// rSum of every row with its interval, set against nearest neighbours.
pub(super) fn rsums(report: &Report) -> Option<Figure> {
    let rows: Vec<&Row> = report.rows.iter().filter(|r| drawable(r.rsum)).collect();
    let ends = rows.iter().flat_map(|r| r.ci95.into_iter().flatten().chain([r.rsum]));
    let x = padded(ends, 0.06);
    let base = report.baseline().map(|r| r.rsum).filter(|v| drawable(*v));
    let n = rows.len() as f64;
    let heads = "rSum by method with 95 % intervals";
    let svg = (!rows.is_empty()).then(|| {
        draw(heads, (WIDTH, 130 + 112 * rows.len() as u32), |canvas| {
            let mut builder = ChartBuilder::on(canvas);
            builder.margin(16).margin_left(40).margin_right(60).x_label_area_size(56);
            let mut chart = builder.build_cartesian_2d(x.clone(), 0.0..n)?;
            chart
                .configure_mesh()
                .bold_line_style(Ink::Page.faint(0.13))
                .light_line_style(TRANSPARENT)
                .axis_style(Ink::Page.faint(0.5))
                .label_style(text())
                .x_labels(6)
                .x_label_formatter(&|v| number(*v))
                .disable_y_mesh()
                .y_labels(0)
                .draw()?;
            for (i, row) in rows.iter().enumerate() {
                let (y, ink) = (n - i as f64 - 0.66, Ink::Solid(colour(row.seen.0)));
                let star = if verdict::significant(row) { " *" } else { "" };
                let label = format!("{}: {}{star}", title(&row.method), points(row.rsum));
                chart.draw_series([Text::new(label, (x.start, y + 0.54), text())])?;
                if let Some(base) = base {
                    // Beside each interval, not through the labels between them.
                    let ends = vec![(base, y - 0.24), (base, y + 0.14)];
                    let line = path(ends, Ink::Level(GREY).rgb().stroke_width(4));
                    chart.draw_series([line])?;
                }
                if let Some([lo, hi]) = row.ci95 {
                    let line = path(finite(&[(lo, y), (hi, y)]), ink.rgb().stroke_width(7));
                    chart.draw_series([line])?;
                }
                chart.draw_series([Circle::new((row.rsum, y), 13, ink.rgb().filled())])?;
            }
            Ok(())
        })
    })?;
    let seen = |(setting, word)| {
        let any = report.rows.iter().any(|r| r.seen.0 == setting);
        let shape = Shape::Line(colour(setting), "none");
        any.then_some(Key { label: word, shape })
    };
    let words = [
        (Setting::Plain, "saw the query alone".to_owned()),
        (Setting::HeldOut, "saw a held-out bank".to_owned()),
        (Setting::Transductive, "saw the other test queries".to_owned()),
    ];
    let mut legend: Vec<_> = words.into_iter().filter_map(seen).collect();
    legend.extend(base.map(|_| Key { label: "NNS".into(), shape: Shape::Line(GREY, LEVEL) }));
    Some(Figure { title: "rSum with 95 % intervals".into(), detail: String::new(), svg, legend })
}

/// R@1, R@5 and R@10 of every row as bars, one direction.
pub(super) fn recalls(report: &Report, direction: Direction) -> Option<Figure> {
    let of = |r: &Row| {
        let values = r.recalls.get(direction)?.values();
        let ci = r.ci95_recalls.get(direction).map(|ci| ci.values());
        Some((title(&r.method), values, ci))
    };
    let rows: Vec<_> = report.rows.iter().filter_map(of).collect();
    let whiskers = rows.iter().any(|r| r.2.is_some());
    if rows.is_empty() {
        return None;
    }
    let heading = name(direction).replace("->", "→");
    let n = rows.len() as f64;
    let label = format!("Recall by method, {heading}");
    let svg = draw(&label, (WIDTH, 130 + 150 * rows.len() as u32), |canvas: &Canvas| {
        let mut builder = ChartBuilder::on(canvas);
        builder.margin(16).margin_left(40).margin_right(60).x_label_area_size(56);
        let mut chart = builder.build_cartesian_2d(0.0..100.0, 0.0..n)?;
        chart
            .configure_mesh()
            .bold_line_style(Ink::Page.faint(0.13))
            .light_line_style(TRANSPARENT)
            .axis_style(Ink::Page.faint(0.5))
            .label_style(text())
            .x_labels(6)
            .x_label_formatter(&|v| format!("{} %", number(*v)))
            .disable_y_mesh()
            .y_labels(0)
            .draw()?;
        for (i, (name, values, ci)) in rows.iter().enumerate() {
            let top = n - i as f64 - 0.06;
            chart.draw_series([Text::new(name.clone(), (0.6, top), text())])?;
            for (k, &value) in values.iter().enumerate().filter(|(_, v)| drawable(**v)) {
                let y = top - 0.31 - 0.19 * k as f64;
                let bar = [(0.0, y), (value, y - 0.17)];
                chart.draw_series([Rectangle::new(bar, Ink::Solid(0).faint(TINTS[k]).filled())])?;
                if let Some([lo, hi]) = ci.map(|ci| ci[k]) {
                    let line = finite(&[(lo, y - 0.085), (hi, y - 0.085)]);
                    chart.draw_series([path(line, Ink::Page.rgb().stroke_width(4))])?;
                }
            }
        }
        Ok(())
    });
    let legend = ["R@1", "R@5", "R@10"].into_iter().zip(TINTS);
    let legend = legend
        .map(|(label, tint)| Key { label: label.into(), shape: Shape::Area(0, tint) })
        .collect();
    let what = if whiskers { ", with 95 % intervals" } else { "" };
    Some(Figure { title: format!("{heading}{what}"), detail: String::new(), svg, legend })
}

/// R@10 against λ, and as a level what it is without RGM.
pub(super) fn curves(all: &[Curve], direction: Direction) -> Option<Figure> {
    let points =
        |c: &Curve| finite(&c.x.iter().copied().zip(c.y.iter().copied()).collect::<Vec<_>>());
    let of = |c: &&Curve| c.direction == direction && !points(c).is_empty();
    let mine: Vec<&Curve> = all.iter().filter(of).collect();
    if mine.is_empty() {
        return None;
    }
    let level = |c: &Curve| c.unconstrained.filter(|v| drawable(*v));
    let x = padded(mine.iter().flat_map(|c| points(c)).map(|p| p.0), 0.02);
    let values = mine.iter().flat_map(|c| points(c).into_iter().map(|p| p.1).chain(level(c)));
    let y = padded(values, 0.08);
    let heading = name(direction).replace("->", "→");
    let label = format!("R@10 against lambda, {heading}");
    let svg = draw(&label, (WIDTH, 740), |canvas| {
        let mut chart = chart(canvas).build_cartesian_2d(x.clone(), y)?;
        chart
            .configure_mesh()
            .bold_line_style(Ink::Page.faint(0.13))
            .light_line_style(TRANSPARENT)
            .axis_style(Ink::Page.faint(0.5))
            .label_style(text())
            .axis_desc_style(text())
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|v| number(*v))
            .y_label_formatter(&|v| number(*v))
            .set_all_tick_mark_size(8)
            .x_desc("λ")
            .y_desc("R@10, %")
            .draw()?;
        for (k, curve) in mine.iter().enumerate() {
            let series = (k % 6) as u8;
            if let Some(v) = level(curve) {
                let line = vec![(x.start, v), (x.end, v)];
                chart.draw_series([path(line, Ink::Level(series).rgb().stroke_width(4))])?;
            }
            let course: Vec<Point> = points(curve);
            let dots = course.iter().map(|&p| Circle::new(p, 7, Ink::Solid(series).rgb().filled()));
            chart.draw_series(dots.collect::<Vec<_>>())?;
            chart.draw_series([path(course, Ink::Solid(series).rgb().stroke_width(5))])?;
        }
        Ok(())
    });
    let key = |(k, c): (usize, &&Curve)| Key {
        label: title(&c.label),
        shape: Shape::Line((k % 6) as u8, "none"),
    };
    let mut legend: Vec<_> = mine.iter().enumerate().map(key).collect();
    if mine.iter().any(|c| level(c).is_some()) {
        legend
            .push(Key { label: "without RGM (λ = ∞)".into(), shape: Shape::Line(GREY, LEVEL) });
    }
    Some(Figure { title: heading, detail: String::new(), svg, legend })
}

#[cfg(test)]
mod tests;
