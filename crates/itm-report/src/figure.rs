//! Figures with a title and a legend.

use maud::{Markup, html};

use crate::plot::{Axis, GREY, Ink, Plot, Point, drawable, finite, padded};

/// A figure with its caption and its legend.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The title above the picture.
    pub title: String,
    /// Numbers below the title; may be empty.
    pub detail: String,
    /// The picture.
    pub svg: Markup,
    /// The meaning of the colours.
    pub legend: Vec<Key>,
}

impl Figure {
    /// A picture of this width and height under its title. Screen readers read the title.
    pub fn new(title: impl Into<String>, size: (u32, u32), plot: &Plot) -> Self {
        let title = title.into();
        Self { svg: plot.svg(&title, size), title, detail: String::new(), legend: vec![] }
    }

    /// This figure with a legend.
    #[must_use]
    pub fn with(self, legend: impl IntoIterator<Item = Key>) -> Self {
        Self { legend: legend.into_iter().collect(), ..self }
    }
}

/// An entry of a legend.
#[derive(Clone, Debug)]
pub struct Key {
    label: String,
    shape: Shape,
    ink: Ink,
}

/// What an entry of a legend looks like.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A stroke.
    Line,
    /// A filled square.
    Area,
    /// A dot.
    Dot,
}

impl Key {
    /// An entry.
    pub fn new(label: impl Into<String>, shape: Shape, ink: Ink) -> Self {
        Self { label: label.into(), shape, ink }
    }

    pub(crate) fn markup(&self) -> Markup {
        let stroke = || format!("{};stroke-width:12", self.ink.style("stroke"));
        html! {
            span.key {
                svg viewBox="0 0 112 40" aria-hidden="true" {
                    @match self.shape {
                        Shape::Line => path d="M0 20H112" style=(stroke()) {},
                        Shape::Area => path d="M36 0h44v40H36z" style=(self.ink.filled()) {},
                        Shape::Dot => circle cx="56" cy="20" r="17" style=(self.ink.filled()) {},
                    }
                }
                (self.label)
            }
        }
    }
}

/// Size of a figure with both axes.
pub const SIZE: (u32, u32) = (1200, 740);

/// A number of a row, with its spread.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The row.
    pub name: String,
    /// Number of the row's colour.
    pub series: u8,
    /// The number.
    pub value: f64,
    /// The interval of the number.
    pub interval: Option<[f64; 2]>,
    /// The values whose mean the number is; may be empty.
    pub parts: Vec<f64>,
}

/// Numbers below each other, each under its name: a dot, its interval, and a tick for each part. `level` is a dashed
/// line beside each number. `None` if no number can be drawn.
pub fn estimates(
    title: impl Into<String>,
    x: &str,
    rows: &[Estimate],
    level: Option<f64>,
) -> Option<Figure> {
    let rows: Vec<_> = rows.iter().filter(|r| drawable(r.value)).collect();
    let of = |r: &&Estimate| [r.value].into_iter().chain(r.interval.into_iter().flatten());
    let parts = rows.iter().flat_map(|r| r.parts.iter().copied());
    let range = padded(rows.iter().flat_map(of).chain(parts).chain(level), 0.05);
    let (n, start) = (rows.len() as f64, range.start);
    let mut plot = Plot::new(Axis::new(x, range), Axis::hidden(0.0..n));
    for (i, row) in rows.iter().enumerate() {
        let (y, ink) = (n - i as f64 - 0.66, Ink::solid(row.series));
        plot.text((start, y + 0.54), row.name.clone());
        // The level is drawn beside each interval, not through the names between the intervals.
        level
            .iter()
            .for_each(|&at| plot.line(&[(at, y - 0.24), (at, y + 0.14)], Ink::level(GREY), 4));
        row.interval.iter().for_each(|[lo, hi]| plot.line(&[(*lo, y), (*hi, y)], ink, 7));
        plot.dots(&[(row.value, y)], ink, 13);
        row.parts.iter().for_each(|&x| plot.line(&[(x, y - 0.13), (x, y + 0.13)], Ink::PAGE, 3));
    }
    let height = if x.is_empty() { 90 } else { 130 } + 112 * rows.len() as u32;
    (!rows.is_empty()).then(|| Figure::new(title, (SIZE.0, height), &plot))
}

/// R@1, R@5 and R@10 of a row, in percent.
#[derive(Clone, Debug)]
pub struct RecallBars {
    /// The row.
    pub name: String,
    /// Number of the row's colour.
    pub series: u8,
    /// The three values.
    pub values: [f64; 3],
    /// The intervals of the values.
    pub intervals: Option<[[f64; 2]; 3]>,
}

/// Recalls as bars under the names of their rows.
pub fn recalls(title: impl Into<String>, rows: &[RecallBars]) -> Option<Figure> {
    const TINTS: [f64; 3] = [0.95, 0.6, 0.33];
    let n = rows.len() as f64;
    let x = Axis::new("", 0.0..100.0).percent();
    let mut plot = Plot::new(x, Axis::hidden(0.0..n));
    for (i, row) in rows.iter().enumerate() {
        let top = n - i as f64 - 0.06;
        plot.text((0.6, top), row.name.clone());
        for (k, &value) in row.values.iter().enumerate().filter(|(_, v)| drawable(**v)) {
            let y = top - 0.31 - 0.19 * k as f64;
            let bar = vec![(0.0, y), (value, y), (value, y - 0.17), (0.0, y - 0.17)];
            plot.area(bar, Ink::solid(row.series).faint(TINTS[k]));
            if let Some([lo, hi]) = row.intervals.map(|all| all[k]) {
                plot.line(&[(lo, y - 0.085), (hi, y - 0.085)], Ink::PAGE, 4);
            }
        }
    }
    let series = rows.first()?.series;
    let key = |(label, tint)| Key::new(label, Shape::Area, Ink::solid(series).faint(tint));
    let legend = ["R@1", "R@5", "R@10"].into_iter().zip(TINTS).map(key);
    Some(Figure::new(title, (SIZE.0, 90 + 150 * rows.len() as u32), &plot).with(legend))
}

/// One line of [`courses`].
#[derive(Clone, Debug)]
pub struct Course {
    /// The name in the legend.
    pub name: String,
    /// The colour.
    pub ink: Ink,
    /// The points by ascending x.
    pub points: Vec<Point>,
    /// Radius of the dot at each point; 0 draws no dots but for a lone point, which makes no line.
    pub dots: i32,
    /// The known intervals, `(x, [lo, hi])`.
    pub intervals: Vec<(f64, [f64; 2])>,
    /// Thin lines behind this line, such as the lines whose mean it is.
    pub thin: Vec<Vec<Point>>,
}

impl Course {
    /// A line without dots, intervals and thin lines.
    pub fn new(name: impl Into<String>, ink: Ink, points: Vec<Point>) -> Self {
        Self { name: name.into(), ink, points, dots: 0, intervals: vec![], thin: vec![] }
    }

    /// This line with dots.
    #[must_use]
    pub fn dotted(self, dots: i32) -> Self {
        Self { dots, ..self }
    }
}

/// Lines over an x axis, and `levels` as dashed lines across the figure. `None` if no point can be drawn.
pub fn courses(
    title: impl Into<String>,
    [x, y]: [&str; 2],
    courses: &[Course],
    levels: &[(Ink, f64)],
) -> Option<Figure> {
    let lines = || courses.iter().flat_map(|c| c.thin.iter().chain([&c.points]));
    let all: Vec<Point> = lines().flat_map(|points| finite(points)).collect();
    if all.is_empty() {
        return None;
    }
    let across = padded(all.iter().map(|p| p.0), 0.03);
    let ends = courses.iter().flat_map(|c| &c.intervals).flat_map(|(_, ends)| *ends);
    let values = all.iter().map(|p| p.1).chain(ends).chain(levels.iter().map(|level| level.1));
    let up = padded(values, 0.06);
    let mut plot = Plot::new(Axis::new(x, across.clone()), Axis::new(y, up));
    for &(ink, at) in levels {
        plot.line(&[(across.start, at), (across.end, at)], ink, 4);
    }
    for c in courses {
        c.thin.iter().for_each(|points| plot.line(points, c.ink.undashed().faint(0.4), 2));
        for &(at, [lo, hi]) in &c.intervals {
            plot.line(&[(at, lo), (at, hi)], c.ink.undashed().faint(0.5), 4);
        }
        let dots = if finite(&c.points).len() == 1 { c.dots.max(7) } else { c.dots };
        if dots > 0 {
            plot.dots(&c.points, c.ink.undashed(), dots);
        }
    }
    courses.iter().for_each(|c| plot.line(&c.points, c.ink, 5));
    let drawn = courses
        .iter()
        .filter(|c| c.thin.iter().chain([&c.points]).any(|points| !finite(points).is_empty()));
    let legend = drawn.map(|c| Key::new(c.name.as_str(), Shape::Line, c.ink));
    Some(Figure::new(title, SIZE, &plot).with(legend))
}

#[cfg(test)]
mod tests;
