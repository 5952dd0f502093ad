//! The figures of the page.

use std::ops::Range;

use itm_report::figure::{
    self, Course, Estimate, Figure, Key, RecallBars, Shape, courses, estimates,
};
use itm_report::format::{count, decimals, n_of, points};
use itm_report::plot::{Axis, GREY, Ink, Plot, Point, drawable};

use super::histogram::{Bin, decades};
use super::methods::title;
use super::table::name;
use super::verdict::{self, at};
use crate::report::{Curve, Histogram, HubSide, Report, ReportRow};
use crate::{Direction, Setting};

/// The colour and the legend for what a row has seen.
const SEEN: [(Setting, u8, &str); 3] = [
    (Setting::Plain, GREY, "saw only the query"),
    (Setting::HeldOut, 2, "saw a held-out bank"),
    (Setting::Transductive, 0, "saw the other test queries"),
];

/// rSum of every row with its interval, compared with nearest neighbours.
pub(super) fn rsums(report: &Report) -> Option<Figure> {
    let seen = |r: &ReportRow| SEEN.into_iter().find(|seen| seen.0 == r.setting);
    let row = |r: &ReportRow| {
        let star = if verdict::significant(r) { " *" } else { "" };
        Estimate {
            name: format!("{}: {}{star}", title(&r.method), points(r.rsum)),
            series: seen(r).map_or(GREY, |seen| seen.1),
            value: r.rsum,
            interval: r.ci95,
            parts: vec![],
        }
    };
    let rows: Vec<_> = report.rows.iter().map(row).collect();
    let base = report.baseline().map(|r| r.rsum).filter(|v| drawable(*v));
    let any = SEEN.into_iter().filter(|seen| report.rows.iter().any(|r| r.setting == seen.0));
    let legend = any.map(|(_, series, word)| Key::new(word, Shape::Line, Ink::solid(series)));
    let nns = base.map(|_| Key::new("NNS", Shape::Line, Ink::level(GREY)));
    Some(estimates("rSum with 95 % intervals", "", &rows, base)?.with(legend.chain(nns)))
}

/// R@1, R@5 and R@10 of every row as bars, one direction.
pub(super) fn recalls(report: &Report, direction: Direction) -> Option<Figure> {
    let of = |r: &ReportRow| {
        Some(RecallBars {
            name: title(&r.method),
            series: 0,
            values: r.recalls.get(direction)?.values(),
            intervals: r.ci95_recalls.get(direction).map(|ci| ci.values()),
        })
    };
    let rows: Vec<_> = report.rows.iter().filter_map(of).collect();
    let known = rows.iter().any(|r| r.intervals.is_some());
    let what = if known { ", with 95 % intervals" } else { "" };
    figure::recalls(format!("{}{what}", name(direction)), &rows)
}

/// R@10 against λ, with a level line for R@10 without RGM.
pub(super) fn curves(all: &[Curve], direction: Direction) -> Option<Figure> {
    let mine = || all.iter().filter(|c| c.direction == direction).zip((0..6).cycle());
    let course = |(c, series): (&Curve, u8)| {
        let points = c.x.iter().copied().zip(c.y.iter().copied()).collect();
        Course::new(title(&c.label), Ink::solid(series), points).dotted(7)
    };
    let level = |(c, series): (&Curve, u8)| {
        Some((Ink::level(series), c.unconstrained.filter(|v| drawable(*v))?))
    };
    let levels: Vec<_> = mine().filter_map(level).collect();
    let lines: Vec<_> = mine().map(course).collect();
    let mut figure = courses(name(direction), ["λ", "R@10, %"], &lines, &levels)?;
    let without = Key::new("without RGM (λ = ∞)", Shape::Line, Ink::level(GREY));
    figure.legend.extend((!levels.is_empty()).then_some(without));
    Some(figure)
}

/// The distribution of N_k after each method, drawn over the grey distribution of nearest
/// neighbours. All figures have the same axes. Without nearest neighbours, or without any other
/// method, each figure shows a single distribution.
pub(super) fn counts(report: &Report, side: &HubSide, direction: Direction, k: u64) -> Vec<Figure> {
    let all: Vec<&Histogram> = side.histograms.iter().filter(|h| h.k == k && h.max() > 0).collect();
    let max = all.iter().map(|h| h.max()).max().unwrap_or(0);
    let rarest = all.iter().flat_map(|h| shares(h)).flatten().map(|p| p.1);
    let low = rarest.fold(-1.0, f64::min);
    let axes = [-0.06..(max.max(2) as f64).log10() * 1.04 + 0.06, low.floor()..0.0];

    let (nns, others): (Vec<&Histogram>, Vec<_>) =
        all.into_iter().partition(|h| h.method == Report::BASELINE);
    let (before, shown) = match (nns.first(), others.is_empty()) {
        (Some(_), true) => (None, nns),
        (before, _) => (before.copied(), others),
    };
    let skewness = |method: &str| {
        let row = report.rows.iter().find(|r| r.method == method)?;
        Some(decimals(at(row.hubs_after.get(direction), k)?.skewness, 2))
    };
    let detail = |h: &Histogram| {
        let largest = count(h.max());
        match (before, skewness(Report::BASELINE), skewness(&h.method)) {
            (Some(b), Some(from), Some(to)) => {
                format!("skewness {from} → {to}, largest {} → {largest}", count(b.max()))
            }
            (_, _, Some(to)) => format!("skewness {to}, largest {largest}"),
            _ => format!("largest {largest}"),
        }
    };
    shown.into_iter().map(|h| Figure { detail: detail(h), ..panel(h, before, &axes) }).collect()
}

fn panel(of: &Histogram, under: Option<&Histogram>, [x, y]: &[Range<f64>; 2]) -> Figure {
    let k = n_of(of.k);
    let power = |at: f64| count(10f64.powf(at).round() as u64);
    let x = Axis::decades(k.as_str(), x.clone(), power);
    let mut plot = Plot::new(x, Axis::decades("", y.clone(), |at| share_at(at as i32)));
    let own = if under.is_some() { 0 } else { GREY };
    for (histogram, series) in under.map(|h| (h, GREY)).into_iter().chain([(of, own)]) {
        for course in shares(histogram) {
            plot.dots(&course, Ink::solid(series), 7);
            plot.line(&course, Ink::solid(series), 5);
        }
    }
    let title = title(&of.method);
    let label =
        format!("Share of items per value of {k}, by {k}, under {title}, both axes logarithmic");
    Figure { title, detail: String::new(), svg: plot.svg(&label, (820, 560)), legend: vec![] }
}

/// log10 of N_k and of the share of items per value of N_k, one point per bin. An empty bin breaks the
/// line.
fn shares(histogram: &Histogram) -> Vec<Vec<Point>> {
    let items = histogram.items() as f64;
    let bins = decades(histogram, histogram.max());
    let filled = bins.split(|bin| bin.items == 0).filter(|run| !run.is_empty());
    let point = |bin: &Bin| {
        let middle = (bin.lo as f64 * bin.hi as f64).sqrt();
        let share = bin.items as f64 / items / (bin.hi - bin.lo + 1) as f64;
        (middle.log10(), share.log10())
    };
    filled.map(|run| run.iter().map(point).collect()).collect()
}

/// 10 to the power `exponent` (at most 0) as a share: `100 %`, `0.1 %`, `10⁻³ %`.
fn share_at(exponent: i32) -> String {
    match exponent {
        -2.. => format!("{} %", 10u64.pow((exponent + 2).min(9) as u32)),
        -4..-2 => format!("0.{}1 %", "0".repeat((-3 - exponent) as usize)),
        _ => {
            let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
            let small = |c: char| c.to_digit(10).map_or(c, |d| digits[d as usize]);
            let percent = (-2 - exponent).to_string().chars().map(small).collect::<String>();
            format!("10⁻{percent} %")
        }
    }
}

#[cfg(test)]
mod tests;
