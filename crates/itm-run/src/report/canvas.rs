//! What the figures are drawn with: `plotters` on a canvas of SVG, its colours turned into the
//! page's.
//!
//! A figure is drawn with placeholder colours ([`Ink`]) that `themed` replaces by CSS variables,
//! so that one file reads well on light and dark screens and on paper.

use std::error::Error;
use std::ops::Range;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// Canvas of a figure; shown at about half this size, so whole numbers are fine enough.
const WIDTH: u32 = 1200;
pub(super) const HEIGHT: u32 = 740;
pub(super) const TEXT: f64 = 38.0;

/// A placeholder colour.
#[derive(Clone, Copy)]
pub(super) enum Ink {
    /// The page's text colour.
    Page,
    /// A series' colour.
    Solid(u8),
    /// A series' colour in its own dash pattern.
    Dashed(u8),
}

impl Ink {
    pub(super) fn rgb(self) -> RGBColor {
        match self {
            Self::Page => RGBColor(0xFE, 0, 0),
            Self::Solid(k) => RGBColor(0xFE, 1, k),
            Self::Dashed(k) => RGBColor(0xFE, 2, k),
        }
    }

    pub(super) fn faint(self, alpha: f64) -> RGBAColor {
        self.rgb().mix(alpha)
    }
}

pub(super) type Drawn = Result<(), Box<dyn Error>>;
pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Point = (f64, f64);

/// The pattern of series `k`, for its line and its legend alike.
pub(super) fn dash(series: u8) -> &'static str {
    ["none", "24 10", "6 9", "30 9 6 9", "none", "18 8", "5 7", "12 6"][usize::from(series % 8)]
}

pub(super) fn chart<'a, 'b>(
    canvas: &'a Canvas<'b>,
    right: i32,
) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(canvas);
    builder
        .margin(16)
        .margin_top(26)
        .margin_right(30)
        .x_label_area_size(100)
        .y_label_area_size(130);
    builder.right_y_label_area_size(right);
    builder
}

pub(super) type Mesh<'a, 'b, 'c> =
    MeshStyle<'a, 'b, RangedCoordf64, RangedCoordf64, SVGBackend<'c>>;

pub(super) fn mesh<'m, 'a, 'b, 'c>(
    mesh: &'m mut Mesh<'a, 'b, 'c>,
    x: &str,
    y: &str,
) -> &'m mut Mesh<'a, 'b, 'c> {
    mesh.bold_line_style(Ink::Page.faint(0.13))
        .light_line_style(TRANSPARENT)
        .axis_style(Ink::Page.faint(0.5))
        .label_style(text(TEXT))
        .axis_desc_style(text(TEXT))
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|v| number(*v))
        .y_label_formatter(&|v| number(*v))
        .set_all_tick_mark_size(8)
        .x_desc(x)
        .y_desc(y)
}

pub(super) fn path(points: Vec<Point>, style: ShapeStyle) -> PathElement<Point> {
    PathElement::new(points, style)
}

pub(super) fn text(size: f64) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&Ink::Page.rgb())
}

pub(super) fn draw(label: &str, figure: impl FnOnce(&Canvas) -> Drawn) -> String {
    draw_high(label, HEIGHT, figure)
}

/// A figure of another height.
pub(super) fn draw_high(label: &str, height: u32, figure: impl FnOnce(&Canvas) -> Drawn) -> String {
    let (mut svg, size) = (String::new(), (WIDTH, height));
    {
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        figure(&canvas).expect("drawing into a string does not fail");
        canvas.present().expect("drawing into a string does not fail");
    }
    themed(&svg, label, size)
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
            "02" => {
                format!("style=\"{name}:var(--s{series});stroke-dasharray:{}\"", dash(series))
            }
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

/// Not NaN, and not so large (a diverged loss) that an axis to hold it says nothing: `plotters`
/// searches the ticks of such an axis without end.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(padded([0.0, 10.0, f64::NAN].into_iter(), 0.1), -1.0..11.0);
        assert_eq!(padded([3.0, 3.0].into_iter(), 0.1), 2.5..3.5);
        assert_eq!(padded([400.0].into_iter(), 0.1), 380.0..420.0);
        assert_eq!(padded([f64::NAN].into_iter(), 0.1), 0.0..1.0);
    }

    #[test]
    fn placeholders_become_the_page_s_colours() {
        let svg = "<svg width=\"9\">\n<rect fill=\"#FE0103\" stroke=\"none\"/>\
                   <line opacity=\"1\" stroke=\"#FE0102\"/><path stroke=\"#FE0201\"/>\
                   <text fill=\"#FE0000\">";
        let want = "<svg viewBox=\"0 0 1200 740\" role=\"img\" aria-label=\"a&lt;b\">\n\
                    <rect style=\"fill:var(--s3)\" stroke=\"none\"/>\
                    <line opacity=\"1\" style=\"stroke:var(--s2)\"/>\
                    <path style=\"stroke:var(--s1);stroke-dasharray:24 10\"/>\
                    <text fill=\"currentColor\">";
        assert_eq!(themed(svg, "a<b", (WIDTH, HEIGHT)), want);
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(
            [0.0, 0.5, -0.25, 100.0, 0.1 + 0.2].map(number),
            ["0", "0.5", "−0.25", "100", "0.3"]
        );
    }
}
