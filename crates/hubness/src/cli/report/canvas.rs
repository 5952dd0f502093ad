//! What the figures are drawn with: `plotters` into SVG, its colours turned into the page's.
//!
//! A figure is drawn with placeholder colours ([`Ink`]) that `themed` replaces by CSS variables,
//! so that one file reads well on light and dark screens and on paper.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::Pos;
pub(super) use plotters::style::text_anchor::{HPos, VPos};

/// Size of letters; a figure is shown at a little under half its size.
pub(super) const TEXT: f64 = 36.0;

/// A placeholder colour.
#[derive(Clone, Copy)]
pub(super) enum Ink {
    /// The page's text colour.
    Page,
    /// A series' colour.
    Solid(u8),
    /// A series' colour with short gaps: a level, not a measured course.
    Level(u8),
}

impl Ink {
    pub(super) fn rgb(self) -> RGBColor {
        match self {
            Self::Page => RGBColor(0xFE, 0, 0),
            Self::Solid(k) => RGBColor(0xFE, 1, k),
            Self::Level(k) => RGBColor(0xFE, 2, k),
        }
    }

    pub(super) fn faint(self, alpha: f64) -> RGBAColor {
        self.rgb().mix(alpha)
    }
}

pub(super) type Drawn = Result<(), Box<dyn Error>>;
pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Point = (f64, f64);

/// The pattern of a level.
pub(super) const LEVEL: &str = "14 12";

pub(super) fn draw(label: &str, size: (u32, u32), figure: impl FnOnce(&Canvas) -> Drawn) -> String {
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        figure(&canvas).expect("drawing into a string does not fail");
        canvas.present().expect("drawing into a string does not fail");
    }
    themed(&svg, label, size)
}

/// A chart with room for both axes.
pub(super) fn chart<'a, 'b>(canvas: &'a Canvas<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(canvas);
    builder.margin(16).margin_top(24).margin_right(34).x_label_area_size(96).y_label_area_size(130);
    builder
}

pub(super) fn path(points: Vec<Point>, style: impl Into<ShapeStyle>) -> PathElement<Point> {
    PathElement::new(points, style)
}

pub(super) fn text() -> TextStyle<'static> {
    ("sans-serif", TEXT).into_font().color(&Ink::Page.rgb())
}

/// Text whose point is in the middle of its top, or of its right edge.
pub(super) fn text_at(anchor: (HPos, VPos)) -> TextStyle<'static> {
    text().pos(Pos::new(anchor.0, anchor.1))
}

/// Replaces placeholder colours by the page's, the fixed size by a flexible one, and names it.
fn themed(svg: &str, label: &str, (w, h): (u32, u32)) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let label = super::html::escape(label);
    let mut out = format!("<svg viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{label}\">");
    let mut rest = body;
    // Every placeholder stands as ` fill="#FEkkss"` or ` stroke="#FEkkss"`.
    while let Some(at) = rest.find("=\"#FE") {
        let name_at = rest[..at].rfind(' ').map_or(0, |i| i + 1);
        let (name, code) = (&rest[name_at..at], &rest[at + 5..at + 9]);
        let series = u8::from_str_radix(&code[2..], 16).unwrap_or(0);
        out += &rest[..name_at];
        out += &match &code[..2] {
            "01" => format!("style=\"{name}:var(--s{series})\""),
            "02" => format!("style=\"{name}:var(--s{series});stroke-dasharray:{LEVEL}\""),
            _ => format!("{name}=\"currentColor\""),
        };
        rest = &rest[at + 10..];
    }
    out + rest
}

/// A range around the finite values, wider by `pad` of its width on both sides; never empty.
pub(super) fn padded(values: impl Iterator<Item = f64>, pad: f64) -> Range<f64> {
    let (lo, hi) = values
        .filter(|v| drawable(*v))
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

pub(super) fn finite(points: &[Point]) -> Vec<Point> {
    points.iter().copied().filter(|p| drawable(p.0) && drawable(p.1)).collect()
}

/// Not NaN, and not so large that an axis to hold it says nothing: `plotters` searches the ticks
/// of such an axis without end.
pub(super) fn drawable(v: f64) -> bool {
    v.abs() <= 1e12
}

/// A tick's label: no more digits than it needs.
pub(super) fn number(v: f64) -> String {
    let text = format!("{v:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".into(),
        _ => text.replace('-', "−"),
    }
}

/// 10 to the power of the whole number `exponent` as a share: `100 %`, `0.1 %`, `10⁻⁶`.
pub(super) fn share_at(exponent: i32) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match exponent {
        -2.. => format!("{} %", 10u64.pow((exponent + 2).min(9) as u32)),
        -4..-2 => format!("0.{}1 %", "0".repeat((-3 - exponent) as usize)),
        _ => {
            let small = |c: char| c.to_digit(10).map_or(c, |d| digits[d as usize]);
            format!("10⁻{}", (-exponent).to_string().chars().map(small).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(padded([0.0, 10.0, f64::NAN].into_iter(), 0.1), -1.0..11.0);
        assert_eq!(padded([3.0, 3.0].into_iter(), 0.1), 2.5..3.5);
        assert_eq!(padded([f64::NAN].into_iter(), 0.1), 0.0..1.0);
    }

    #[test]
    fn placeholders_become_the_page_s_colours() {
        let svg = "<svg width=\"9\">\n<rect fill=\"#FE0103\" stroke=\"none\"/>\
                   <path stroke=\"#FE0202\"/><text fill=\"#FE0000\">";
        let want = "<svg viewBox=\"0 0 12 7\" role=\"img\" aria-label=\"a&lt;b\">\n\
                    <rect style=\"fill:var(--s3)\" stroke=\"none\"/>\
                    <path style=\"stroke:var(--s2);stroke-dasharray:14 12\"/>\
                    <text fill=\"currentColor\">";
        assert_eq!(themed(svg, "a<b", (12, 7)), want);
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([0.0, -0.25, 100.0, 0.1 + 0.2].map(number), ["0", "−0.25", "100", "0.3"]);
    }

    #[test]
    fn powers_of_ten_are_shares() {
        assert_eq!(
            [0, -1, -2, -3, -4, -5, -12].map(share_at),
            ["100 %", "10 %", "1 %", "0.1 %", "0.01 %", "10⁻⁵", "10⁻¹²"]
        );
    }
}
