//! Axes and marks, drawn by `plotters` into SVG in the colours of the page.
//!
//! A figure is drawn in placeholder colours ([`Ink`]) that become CSS variables, so that one file reads well on light and dark
//! screens and on paper.

use std::error::Error;
use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::{
    BoldPoints, KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter,
};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A point in the coordinates of the axes.
pub type Point = (f64, f64);

/// Font size. A page shows a figure at a little less than half its size.
const TEXT: f64 = 36.0;

/// The grey series, with which other series are compared.
pub const GREY: u8 = 6;

/// A colour of the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    kind: u8,
    series: u8,
    alpha: f64,
}

impl Ink {
    /// The page's text colour.
    pub const PAGE: Self = Self { kind: 0, series: 0, alpha: 1.0 };

    /// The colour of a series.
    pub const fn solid(series: u8) -> Self {
        Self { kind: 1, series, alpha: 1.0 }
    }

    /// The colour and the dash pattern of a series.
    pub const fn dashed(series: u8) -> Self {
        Self { kind: 2, series, alpha: 1.0 }
    }

    /// The colour of a series with short gaps, for a level that is not a measured line.
    pub const fn level(series: u8) -> Self {
        Self { kind: 3, series, alpha: 1.0 }
    }

    /// This ink with another opacity.
    pub const fn faint(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// This ink without a dash pattern.
    pub const fn undashed(self) -> Self {
        Self { kind: 1, ..self }
    }

    fn colour(self) -> RGBAColor {
        RGBColor(0xFE, self.kind, self.series).mix(self.alpha)
    }

    /// The CSS style of the property `name`, which is `fill` or `stroke`.
    pub(crate) fn style(self, name: &str) -> String {
        let dash = match self.kind {
            2 => ["none", "24 10", "6 9", "30 9 6 9", "none", "18 8", "5 7", "12 6"]
                [usize::from(self.series % 8)],
            3 => "14 12",
            _ => return format!("{name}:var(--s{})", self.series),
        };
        format!("{name}:var(--s{});stroke-dasharray:{dash}", self.series)
    }

    /// The CSS style of a fill, with its opacity.
    pub(crate) fn filled(self) -> String {
        format!("{};fill-opacity:{}", self.style("fill"), self.alpha)
    }
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    name: String,
    range: Range<f64>,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

impl Axis {
    /// An axis with about six ticks; `name` may be empty.
    pub fn new(name: impl Into<String>, range: Range<f64>) -> Self {
        let range = padded([range.start, range.end], 0.0); // ends that can be drawn
        let ticks = RangedCoordf64::from(range.clone()).key_points(BoldPoints(6));
        let is_close = ticks.windows(2).any(|two| two[1] - two[0] < 1e-3);
        Self { name: name.into(), range, ticks, label: if is_close { close_tick } else { tick } }
    }

    /// An axis of decimal logarithms. Ticks are at powers of ten, at most six, and `label` formats a logarithm.
    pub fn decades(name: impl Into<String>, range: Range<f64>, label: fn(f64) -> String) -> Self {
        let range = padded([range.start, range.end], 0.0); // ends that can be drawn
        let every = ((range.end - range.start) / 5.5).ceil().max(1.0);
        let first = (range.start / every).ceil();
        let ticks = (0..6).map(|k| every * (first + f64::from(k)));
        let ticks = ticks.filter(|&at| at <= range.end).collect();
        Self { name: name.into(), range, ticks, label }
    }

    /// An axis that is not shown.
    pub(crate) fn hidden(range: Range<f64>) -> Self {
        Self { name: String::new(), range, ticks: vec![], label: tick }
    }

    /// This axis with ticks in percent.
    #[must_use]
    pub(crate) fn percent(self) -> Self {
        Self { label: |v| tick(v) + " %", ..self }
    }

    fn is_shown(&self) -> bool {
        !self.ticks.is_empty()
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { vec![] } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

enum Mark {
    Line(Vec<Point>, ShapeStyle),
    Dot(Point, Ink, i32),
    Area(Vec<Point>, Ink),
    Text(Point, String),
}

/// A figure under construction.
pub struct Plot {
    x: Axis,
    y: Axis,
    /// An axis on the right with its line.
    right: Option<(Axis, Vec<Point>, ShapeStyle)>,
    marks: Vec<Mark>,
}

impl Plot {
    /// An empty figure.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, right: None, marks: vec![] }
    }

    /// Adds a line of this width through the drawable points.
    pub fn line(&mut self, points: &[Point], ink: Ink, width: u32) {
        let style = ink.colour().stroke_width(width);
        self.marks.push(Mark::Line(finite(points), style));
    }

    /// Adds a second axis on the right and its line, which lies above all else.
    pub fn right_line(&mut self, axis: Axis, points: &[Point], ink: Ink, width: u32) {
        self.right = Some((axis, finite(points), ink.colour().stroke_width(width)));
    }

    /// Adds a dot at each drawable point.
    pub fn dots(&mut self, points: &[Point], ink: Ink, radius: i32) {
        self.marks.extend(finite(points).into_iter().map(|p| Mark::Dot(p, ink, radius)));
    }

    /// Adds a filled polygon.
    pub fn area(&mut self, outline: Vec<Point>, ink: Ink) {
        self.marks.push(Mark::Area(outline, ink));
    }

    /// Adds a text below a point, which starts at the point.
    pub(crate) fn text(&mut self, at: Point, text: impl Into<String>) {
        self.marks.push(Mark::Text(at, text.into()));
    }

    /// The figure as SVG. Screen readers read `label`.
    ///
    /// # Panics
    /// If [`Plot::area`] or a label added a point that is not drawable.
    pub fn svg(&self, label: &str, size: (u32, u32)) -> Markup {
        let mut svg = String::new();
        self.draw(&mut svg, size).expect("drawing into a string does not fail");
        themed(&svg, label, size)
    }

    fn draw(&self, svg: &mut String, size: (u32, u32)) -> Result<(), Box<dyn Error>> {
        let canvas = SVGBackend::with_string(svg, size).into_drawing_area();
        let mut builder = ChartBuilder::on(&canvas);
        let (left, right) = if self.y.is_shown() { (16, 34) } else { (40, 60) };
        builder.margin(16).margin_top(24).margin_left(left).margin_right(right);
        builder.x_label_area_size(if self.x.name.is_empty() { 56 } else { 96 });
        builder.y_label_area_size(if self.y.is_shown() { 130 } else { 0 });
        builder.right_y_label_area_size(if self.right.is_some() { 110 } else { 0 });
        let beside = self.right.as_ref().map_or(&self.y, |(axis, ..)| axis);
        let mut chart = builder
            .build_cartesian_2d(self.x.clone(), self.y.clone())?
            .set_secondary_coord(self.x.clone(), beside.clone());
        let text = || ("sans-serif", TEXT).into_font().color(&Ink::PAGE.colour());
        chart
            .configure_mesh()
            .bold_line_style(Ink::PAGE.faint(0.13).colour())
            .light_line_style(TRANSPARENT)
            .axis_style(Ink::PAGE.faint(0.5).colour())
            .label_style(text())
            .axis_desc_style(text())
            .set_all_tick_mark_size(8)
            .x_desc(self.x.name.as_str())
            .y_desc(self.y.name.as_str())
            .draw()?;
        if let Some((axis, ..)) = &self.right {
            chart
                .configure_secondary_axes()
                .axis_style(Ink::PAGE.faint(0.5).colour())
                .label_style(text())
                .axis_desc_style(text())
                .y_desc(axis.name.as_str())
                .draw()?;
        }
        for mark in &self.marks {
            match mark {
                Mark::Line(points, style) => {
                    chart.draw_series([PathElement::new(points.as_slice(), *style)])?;
                }
                Mark::Dot(at, ink, radius) => {
                    chart.draw_series([Circle::new(*at, *radius, ink.colour().filled())])?;
                }
                Mark::Area(outline, ink) => {
                    chart.draw_series([Polygon::new(outline.as_slice(), ink.colour())])?;
                }
                Mark::Text(at, words) => {
                    chart.draw_series([Text::new(words.clone(), *at, text())])?;
                }
            }
        }
        if let Some((_, points, style)) = &self.right {
            chart.draw_secondary_series([PathElement::new(points.as_slice(), *style)])?;
        }
        canvas.present()?;
        Ok(())
    }
}

/// Replaces placeholder colours by the colours of the page and the fixed size by a flexible size, and adds the label.
fn themed(svg: &str, label: &str, (w, h): (u32, u32)) -> Markup {
    let mut rest = svg.split_once('>').map_or("", |(_, body)| body).trim_end();
    rest = rest.strip_suffix("</svg>").unwrap_or(rest);
    let mut body = String::with_capacity(rest.len());
    // Every placeholder has the form ` fill="#FEkkss"` or ` stroke="#FEkkss"`.
    while let Some(at) = rest.find("=\"#FE") {
        let name_at = rest[..at].rfind(' ').map_or(0, |i| i + 1);
        let digits = |from: usize| u8::from_str_radix(&rest[from..from + 2], 16).unwrap_or(0);
        let (name, ink) =
            (&rest[name_at..at], Ink { kind: digits(at + 5), ..Ink::solid(digits(at + 7)) });
        body += &rest[..name_at];
        body += &match ink.kind {
            0 => format!("{name}=\"currentColor\""),
            _ => format!("style=\"{}\"", ink.style(name)),
        };
        rest = &rest[at + 10..];
    }
    html! {
        svg viewBox={ "0 0 " (w) " " (h) } role="img" aria-label=(label) { (PreEscaped(body + rest)) }
    }
}

/// A range around the drawable values, wider by `pad` of its width on both sides; never empty.
pub fn padded(values: impl IntoIterator<Item = f64>, pad: f64) -> Range<f64> {
    let (lo, hi) = (values.into_iter().filter(|v| drawable(*v)))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    if lo > hi {
        return 0.0..1.0;
    }
    let width = hi - lo;
    if width <= 1e-9 * hi.abs().max(1e-3) {
        let half = (0.05 * hi.abs()).max(0.5);
        return lo - half..hi + half;
    }
    lo - pad * width..hi + pad * width
}

/// The points that can be drawn.
pub fn finite(points: &[Point]) -> Vec<Point> {
    points.iter().copied().filter(|p| drawable(p.0) && drawable(p.1)).collect()
}

/// Whether a value is not NaN and not too large, like a diverged loss. `plotters` searches forever for the ticks of
/// an axis with such a value.
pub fn drawable(v: f64) -> bool {
    v.abs() <= 1e12
}

/// The label of a tick, with no more digits than it needs.
pub(crate) fn tick(v: f64) -> String {
    trimmed(v, 3)
}

/// The label of a tick that is less than 0.001 from the next.
fn close_tick(v: f64) -> String {
    trimmed(v, 9)
}

fn trimmed(v: f64, places: usize) -> String {
    let text = format!("{v:.places$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".into(),
        _ => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(padded([0.0, 10.0, f64::NAN], 0.1), -1.0..11.0);
        assert_eq!(padded([3.0, 3.0], 0.1), 2.5..3.5);
        assert_eq!(padded([400.0], 0.1), 380.0..420.0);
        assert_eq!(padded([f64::NAN], 0.1), 0.0..1.0);
    }

    /// Ticks 0.0003 apart were `0.024 0.024 0.025`.
    #[test]
    fn neighbours_have_different_labels() {
        for range in [0.0239..0.0251, -1e-7..2e-7, 0.0..f64::INFINITY, f64::NAN..1.0] {
            let axis = Axis::new("", range);
            let labels: Vec<_> = axis.ticks.iter().map(|&at| (axis.label)(at)).collect();
            let differ = labels.windows(2).all(|two| two[0] != two[1]);
            assert!(labels.len() > 2 && differ, "{labels:?}");
        }
    }

    #[test]
    fn placeholders_become_the_page_s_colours() {
        let svg = "<svg width=\"9\">\n<rect fill=\"#FE0103\" stroke=\"none\"/>\
                   <line opacity=\"1\" stroke=\"#FE0102\"/><path stroke=\"#FE0201\"/>\
                   <path stroke=\"#FE0302\"/><text fill=\"#FE0000\"></text></svg>\n";
        let want = "<svg viewBox=\"0 0 12 7\" role=\"img\" aria-label=\"a&lt;b\">\n\
                    <rect style=\"fill:var(--s3)\" stroke=\"none\"/>\
                    <line opacity=\"1\" style=\"stroke:var(--s2)\"/>\
                    <path style=\"stroke:var(--s1);stroke-dasharray:24 10\"/>\
                    <path style=\"stroke:var(--s2);stroke-dasharray:14 12\"/>\
                    <text fill=\"currentColor\"></text></svg>";
        assert_eq!(themed(svg, "a<b", (12, 7)).into_string(), want);
    }

    #[test]
    fn ticks_are_short() {
        let ticks = [0.0, 0.5, -0.25, 100.0, 0.1 + 0.2].map(tick);
        assert_eq!(ticks, ["0", "0.5", "−0.25", "100", "0.3"]);
    }

    #[test]
    fn decades_are_at_most_six() {
        let ticks = |range| Axis::decades("", range, tick).ticks;
        assert_eq!(ticks(-0.1..2.3), [0.0, 1.0, 2.0]);
        assert_eq!(ticks(-5.0..0.0), [-5.0, -4.0, -3.0, -2.0, -1.0, 0.0]);
        assert_eq!(ticks(-7.0..0.0), [-6.0, -4.0, -2.0, 0.0]);
    }

    /// A billion powers of ten were tried one by one, and an axis that ends at infinity cannot be drawn.
    #[test]
    fn decades_of_any_range_can_be_drawn() {
        for range in [f64::NAN..1.0, 0.0..f64::INFINITY, -1e300..1e300, -1e12..1e12] {
            let Axis { range, ticks, .. } = Axis::decades("", range, tick);
            assert!(range.start.abs() <= 1e12 && range.end.abs() <= 1e12, "{range:?}");
            assert!((1..=6).contains(&ticks.len()), "{ticks:?}");
        }
    }

    /// A line of two points rises, in the colour and dash pattern of the page. NaN and infinity are not drawn.
    #[test]
    fn a_line_is_where_it_should_be() {
        let axis = |name, end| Axis::new(name, 0.0..end);
        let mut plot = Plot::new(axis("epochs", 4.0), axis("loss", 1.0));
        plot.line(&[(0.0, 0.0), (2.0, f64::NAN), (4.0, 1.0)], Ink::dashed(0), 5);
        plot.dots(&[(1.0, f64::INFINITY), (1.0, 0.5)], Ink::solid(2), 7);
        let svg = plot.svg("l", (1200, 740)).into_string();
        let line = svg.split('<').find(|e| e.contains("var(--s0)")).unwrap();
        assert!(line.contains("style=\"stroke:var(--s0);stroke-dasharray:none\""), "{line}");
        let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let xy: Vec<i32> = points.split([',', ' ']).filter_map(|n| n.parse().ok()).collect();
        assert!(xy.len() == 4 && xy[0] < xy[2] && xy[1] > xy[3], "{xy:?}");
        assert!(svg.contains(">\nloss\n") && svg.contains(">\nepochs\n"), "{svg}");
        assert!(svg.matches("<circle").count() == 1 && !svg.contains("NaN"));
    }
}
