//! Lines through points with intervals: recall over a parameter, shares over epochs.

use plotters::prelude::*;

use super::super::canvas::{Ink, Point, chart, draw, drawable, finite, mesh, padded, path};
use super::{Figure, Key, Series, Shape};

/// What one line goes through.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Trace {
    /// By ascending x.
    pub(in crate::report) points: Vec<Point>,
    /// `(x, [lo, hi])`, where it is known.
    pub(in crate::report) intervals: Vec<(f64, [f64; 2])>,
}

/// A line with dots a series, its intervals as bars.
pub(in crate::report) fn traces(
    label: &str,
    [x_desc, y_desc]: [&str; 2],
    series: &[Series<Trace>],
) -> Option<Figure> {
    let points: Vec<Point> = series.iter().flat_map(|s| finite(&s.data.points)).collect();
    let bars = || series.iter().flat_map(|s| &s.data.intervals);
    if points.is_empty() {
        return None;
    }
    let x = padded(points.iter().map(|p| p.0), 0.04);
    let ends = bars().flat_map(|(_, ends)| *ends).filter(|y| drawable(*y));
    let y = padded(points.iter().map(|p| p.1).chain(ends), 0.06);
    let svg = draw(label, |canvas| {
        let mut chart = chart(canvas, 0).build_cartesian_2d(x.clone(), y)?;
        mesh(&mut chart.configure_mesh(), x_desc, y_desc).draw()?;
        for s in series {
            let bar = |&(at, [lo, hi]): &(f64, [f64; 2])| {
                path(finite(&[(at, lo), (at, hi)]), Ink::Solid(s.series).faint(0.5).stroke_width(4))
            };
            chart.draw_series(s.data.intervals.iter().map(bar))?;
            let line = finite(&s.data.points);
            let dot = |p: &Point| Circle::new(*p, 9, Ink::Solid(s.series).rgb().filled());
            chart.draw_series(line.iter().map(dot))?;
            let style = Ink::Dashed(s.series).rgb().stroke_width(5);
            chart.draw_series([path(line, style)])?;
        }
        Ok(())
    });
    let drawn = series.iter().filter(|s| !finite(&s.data.points).is_empty());
    let key =
        |s: &Series<Trace>| Key { label: s.name.to_owned(), series: s.series, shape: Shape::Line };
    Some(Figure { svg, legend: drawn.map(key).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[Point], interval: Option<(f64, [f64; 2])>) -> Series<'static, Trace> {
        let data = Trace { points: points.into(), intervals: interval.into_iter().collect() };
        Series { name: "Full", series: 2, data }
    }

    #[test]
    fn a_line_a_dot_each_and_a_bar() {
        let bar = Some((2.0, [1.0, 5.0]));
        let drawn = series(&[(1.0, 2.0), (2.0, 3.0), (4.0, 3.5)], bar);
        let figure = traces("rSum", ["batch", "rSum"], &[drawn]).unwrap();
        assert_eq!(figure.svg.matches("<circle").count(), 3);
        let lines = figure.svg.split('<').filter(|e| e.starts_with("polyline"));
        assert_eq!(lines.filter(|e| e.contains("--s2")).count(), 2, "{}", figure.svg);
        assert_eq!(figure.legend.len(), 1);
    }

    #[test]
    fn nothing_and_what_is_no_number_are_not_drawn() {
        assert!(traces("x", ["", ""], &[]).is_none());
        assert!(traces("x", ["", ""], &[series(&[(1.0, f64::NAN)], None)]).is_none());
        let odd = series(&[(1.0, 1.0), (2.0, f64::NAN)], Some((1.0, [f64::NAN, 2.0])));
        let svg = traces("x", ["", ""], &[odd]).unwrap().svg;
        assert!(!svg.contains("NaN") && svg.matches("<circle").count() == 1, "{svg}");
    }
}
