//! How often items turn up, before and after, on logarithmic axes.

use std::ops::Range;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::super::canvas::{
    Canvas, Drawn, HPos, Ink, Point, VPos, chart, draw, path, share_at, text, text_at,
};
use super::super::format::{count, measure, n_of};
use super::super::histogram::decades;
use super::super::methods::title;
use super::super::model::{Histogram, HubMeasures, HubSide, Report};
use super::super::verdict::{after, at};
use super::{Figure, GREY};
use crate::Direction;

/// The distribution of N_k after each method, over the grey one of nearest neighbours; on the same
/// axes for all. Without nearest neighbours, or with them alone, each stands for itself.
pub(in super::super) fn counts(
    report: &Report,
    side: &HubSide,
    direction: Direction,
    k: u64,
) -> Vec<Figure> {
    let all: Vec<&Histogram> = side.histograms.iter().filter(|h| h.k == k && h.max() > 0).collect();
    let max = all.iter().map(|h| h.max()).max().unwrap_or(0);
    let rarest = all.iter().flat_map(|h| courses(h)).flatten().map(|p| p.1);
    let low = rarest.fold(-1.0, f64::min);
    let axes = (-0.06..(max.max(2) as f64).log10() * 1.04 + 0.06, low.floor()..0.0);

    let before = all.iter().find(|h| h.method == Report::BASELINE);
    let others = || all.iter().filter(|h| h.method != Report::BASELINE);
    let skewness = |method: &str| {
        let row = report.rows.iter().find(|r| r.method == method)?;
        at(after(report, row, direction), k).map(|m: &HubMeasures| m.skewness)
    };
    let detail = |h: &Histogram| {
        let own = skewness(&h.method).map(measure);
        let largest = count(h.max());
        match (before.filter(|b| b.method != h.method), skewness(Report::BASELINE), own) {
            (Some(b), Some(from), Some(to)) => {
                let (from, most) = (measure(from), count(b.max()));
                format!("skewness {from} → {to}, largest {most} → {largest}")
            }
            (_, _, Some(to)) => format!("skewness {to}, largest {largest}"),
            _ => format!("largest {largest}"),
        }
    };
    let panel = |h: &Histogram, under: Option<&Histogram>| Figure {
        title: title(&h.method),
        detail: detail(h),
        svg: panel(h, under, &axes),
        legend: Vec::new(),
    };
    match before {
        Some(before) if others().next().is_none() => vec![panel(before, None)],
        before => others().map(|h| panel(h, before.copied())).collect(),
    }
}

fn panel(of: &Histogram, under: Option<&Histogram>, (x, y): &(Range<f64>, Range<f64>)) -> String {
    let k = of.k;
    let label =
        format!("Share of items by {} under {}, both axes logarithmic", n_of(k), title(&of.method));
    draw(&label, (820, 560), |canvas| {
        let mut chart = chart(canvas).build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(Ink::Page.faint(0.5))
            .axis_desc_style(text())
            .x_labels(0)
            .y_labels(0)
            .x_desc(n_of(k))
            .draw()?;
        decade_lines(canvas, &mut chart, x, y)?;
        let own = if under.is_some() { 0 } else { GREY };
        for (histogram, series) in under.map(|h| (h, GREY)).into_iter().chain([(of, own)]) {
            let ink = Ink::Solid(series).rgb();
            for course in courses(histogram) {
                chart.draw_series(course.iter().map(|&p| Circle::new(p, 7, ink.filled())))?;
                chart.draw_series([path(course, ink.stroke_width(5))])?;
            }
        }
        Ok(())
    })
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Lines and labels at the powers of ten.
fn decade_lines(canvas: &Canvas, chart: &mut Chart, x: &Range<f64>, y: &Range<f64>) -> Drawn {
    let whole = |r: &Range<f64>| (r.start.ceil() as i32..=r.end.floor() as i32).map(f64::from);
    let faint = || Ink::Page.faint(0.13);
    for at in whole(x) {
        chart.draw_series([path(vec![(at, y.start), (at, y.end)], faint())])?;
        let (px, py) = chart.plotting_area().map_coordinate(&(at, y.start));
        let label = count(10f64.powf(at).round() as u64);
        canvas.draw(&Text::new(label, (px, py + 12), text_at((HPos::Center, VPos::Top))))?;
    }
    // At most four labels, whatever the range.
    let every = ((y.end - y.start) / 4.0).ceil().max(1.0);
    for at in whole(y).filter(|at| (at % every).abs() < 0.5) {
        chart.draw_series([path(vec![(x.start, at), (x.end, at)], faint())])?;
        let (px, py) = chart.plotting_area().map_coordinate(&(x.start, at));
        let label = share_at(at as i32);
        canvas.draw(&Text::new(label, (px - 10, py), text_at((HPos::Right, VPos::Center))))?;
    }
    Ok(())
}

/// log10 of N_k and of the share of items for each of its values, by bins; broken where no item is.
fn courses(histogram: &Histogram) -> Vec<Vec<Point>> {
    let items = histogram.items() as f64;
    let bins = decades(histogram, histogram.max());
    let filled = bins.split(|bin| bin.items == 0).filter(|run| !run.is_empty());
    let point = |bin: &super::super::histogram::Bin| {
        let middle = (bin.lo as f64 * bin.hi as f64).sqrt();
        let share = bin.items as f64 / items / (bin.hi - bin.lo + 1) as f64;
        (middle.log10(), share.log10())
    };
    filled.map(|run| run.iter().map(point).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 90 items once, 10 items 2 times: log10(0.9) at 0, log10(0.1) at log10 2.
    #[test]
    fn points_are_logarithms_of_shares() {
        let h = Histogram { method: "nns".into(), k: 1, counts: vec![(1, 90), (2, 10)] };
        let course = courses(&h).concat();
        let want = [(0.0, -0.045757), (std::f64::consts::LOG10_2, -1.0)];
        assert_eq!(course.len(), 2);
        for (got, want) in course.iter().zip(want) {
            assert!((got.0 - want.0).abs() < 1e-5 && (got.1 - want.1).abs() < 1e-5, "{got:?}");
        }
    }

    /// Items in no list count in the share, but have no logarithm.
    #[test]
    fn anti_hubs_are_in_the_denominator() {
        let h = Histogram { method: "nns".into(), k: 1, counts: vec![(0, 99), (1, 1)] };
        assert_eq!(courses(&h), [vec![(0.0, -2.0)]]);
    }

    #[test]
    fn a_gap_breaks_the_line() {
        let h = Histogram { method: "nns".into(), k: 1, counts: vec![(1, 5), (100, 5)] };
        assert_eq!(courses(&h).len(), 2);
    }
}
