//! The plots of a report, with their titles.

use super::super::format::rsum;
use super::super::json::{DistributionOf, EpochDraws, Measured, Report, Row};
use super::super::plots::{self, Figure, Series, Trace};
use super::super::tables::{self, Role};
use super::super::{CHANCE, Curve, Figures};

/// Colours of rows that are neither the claim's nor a baseline: five, then their pale ones.
const OTHERS: [u8; 10] = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12];

/// Every row with its colour: the claim's row has the first, baselines have two of their own; the eleventh row beside them is the
/// first to share one.
pub(super) fn rows(report: &Report) -> Vec<Series<'_, &Row>> {
    let mut trained = 0;
    let mut colour = |row: &Row| match tables::role(report, &row.name, row.kind) {
        Role::Method => 0,
        Role::Baseline if row.name == CHANCE => 6,
        Role::Baseline => 7,
        Role::Other => {
            trained += 1;
            OTHERS[(trained - 1) % OTHERS.len()]
        }
    };
    let colours: Vec<u8> = report.rows.iter().map(&mut colour).collect();
    let series = |(row, series)| -> Series<'_, &Row> {
        let row: &Row = row;
        Series { name: &row.name, series, data: row }
    };
    report.rows.iter().zip(colours).map(series).collect()
}

pub(super) fn recall(report: &Report, rows: &[Series<&Row>]) -> Vec<(String, Figure)> {
    let measured: Vec<_> = rows.iter().map(|r| r.with(&r.data.measured)).collect();
    let i2t: Vec<_> = (rows.iter().zip(&measured))
        .map(|(r, m)| r.with((m.data.i2t.values(), m.data.ci95_recalls.map(|ci| ci.i2t))))
        .collect();
    let t2i: Vec<_> = (rows.iter().zip(&measured))
        .map(|(r, m)| r.with((m.data.t2i.values(), m.data.ci95_recalls.map(|ci| ci.t2i))))
        .collect();
    let whiskers = if report.rows.iter().any(|r| r.measured.ci95_recalls.is_some()) {
        " with 95 % intervals"
    } else {
        ""
    };
    let (chance, ranked): (Vec<_>, Vec<_>) = measured.iter().partition(|m| m.name == CHANCE);
    let apart = match chance[..] {
        [m] if !ranked.is_empty() => format!("; {CHANCE}, {}, is not drawn", rsum(m.data.rsum)),
        _ => String::new(),
    };
    let figures = [
        (format!("rSum with 95 % interval; ticks: seeds{apart}"), "rSum by row"),
        (format!("Image → text{whiskers}"), "Recall, image to text"),
        (format!("Text → image{whiskers}"), "Recall, text to image"),
    ];
    let drawn = [
        plots::rsums(figures[0].1, &ranked),
        plots::recall_bars(figures[1].1, &i2t),
        plots::recall_bars(figures[2].1, &t2i),
    ];
    figures.into_iter().zip(drawn).filter_map(|((title, _), f)| Some((title, f?))).collect()
}

pub(super) fn course(
    report: &Report,
    figures: &Figures,
    rows: &[Series<&Row>],
) -> Vec<(String, Figure)> {
    let of = |row: &str| figures.curves.iter().filter(|c| c.row == row).collect::<Vec<&Curve>>();
    let trained: Vec<_> =
        rows.iter().map(|r| r.with(of(r.name))).filter(|r| !r.data.is_empty()).collect();
    let levels: Vec<_> = (rows.iter().filter(|r| of(r.name).is_empty()))
        .filter_map(|r| Some(r.with(r.data.measured.validation_rsum?)))
        .collect();
    let seeds = if report.seeds.len() > 1 { " (thin: one seed; thick: their mean)" } else { "" };
    let drawn = [
        (
            "Training loss",
            plots::curves("Loss over epochs", "mean loss", &trained, |c| &c.loss, &[]),
        ),
        (
            "Recall on the validation split",
            plots::curves(
                "Validation rSum over epochs",
                "validation rSum",
                &trained,
                |c| &c.validation_rsum,
                &levels,
            ),
        ),
    ];
    drawn.into_iter().filter_map(|(title, f)| Some((format!("{title}{seeds}"), f?))).collect()
}

/// The paper's figure: recall over what differs between the rows.
pub(super) fn parameter(report: &Report) -> Vec<(String, Figure)> {
    let Some(figure) = &report.figure else { return Vec::new() };
    let points = || figure.points.iter().filter_map(|p| Some((p.x, &report.row(&p.row)?.measured)));
    let trace = |value: fn(&Measured) -> f64, interval: fn(&Measured) -> Option<[f64; 2]>| Trace {
        points: points().map(|(x, m)| (x, value(m))).collect(),
        intervals: points().filter_map(|(x, m)| Some((x, interval(m)?))).collect(),
    };
    let series = |name, series, data| Series { name, series, data };
    let r1 = [
        series("image → text", 0, trace(|m| m.i2t.r1, |m| m.ci95_recalls.map(|ci| ci.i2t[0]))),
        series("text → image", 1, trace(|m| m.t2i.r1, |m| m.ci95_recalls.map(|ci| ci.t2i[0]))),
    ];
    let rsum = [series("rSum", 0, trace(|m| m.rsum, |m| m.ci95))];
    let x = figure.x.as_str();
    let title = |what: &str| format!("Figure {}: {what} over `{x}`, 95 % intervals", figure.number);
    [
        (title("rSum"), plots::traces("rSum", [x, "rSum"], &rsum)),
        (title("R@1"), plots::traces("R@1", [x, "R@1, %"], &r1)),
    ]
    .into_iter()
    .filter_map(|(title, drawn)| Some((title, drawn?)))
    .collect()
}

/// The paper's figure: how many items have each count, a line a row.
pub(super) fn distribution(report: &Report, rows: &[Series<&Row>]) -> Vec<(String, Figure)> {
    let Some(d) = &report.distribution else { return Vec::new() };
    let series = |of: &'_ DistributionOf| {
        let row = rows.iter().find(|row| row.name == of.row)?;
        Some(row.with(Trace { points: of.histogram.points(), intervals: vec![] }))
    };
    let series: Vec<_> = d.rows.iter().filter_map(series).collect();
    let (k, way) = (d.k, d.direction.queries("image → text", "text → image"));
    let title = format!("Figure {}: distribution of N_{k}, {way}", d.number);
    let (x, y) = (format!("log₁₀ N_{k}"), format!("log₁₀ p(N_{k})"));
    let drawn = plots::traces(&title, [&x, &y], &series);
    drawn.into_iter().map(|figure| (title.clone(), figure)).collect()
}

/// Shares of drawn negatives that were false, over epochs: a figure a row.
pub(super) fn draw(report: &Report) -> Vec<(String, Figure)> {
    let of_row = |row: &Row| {
        let epochs = &row.truth.as_ref()?.epochs;
        let trace = |value: &dyn Fn(&EpochDraws) -> Option<f64>| Trace {
            points: epochs
                .iter()
                .filter_map(|e| Some((f64::from(e.epoch), 100.0 * value(e)?)))
                .collect(),
            intervals: vec![],
        };
        let mut names: Vec<&str> =
            epochs.iter().flat_map(|e| e.others.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let own = [
            Series { name: "as drawn", series: 0, data: trace(&|e| Some(e.drawn)) },
            Series { name: "uniform", series: 6, data: trace(&|e| Some(e.uniform)) },
            Series { name: "hardest", series: 1, data: trace(&|e| Some(e.hardest)) },
        ];
        let others = names.iter().enumerate().map(|(k, &name)| Series {
            name,
            series: 2 + (k % 4) as u8,
            data: trace(&|e| e.others.get(name).copied()),
        });
        let all: Vec<_> = own.into_iter().chain(others).collect();
        let title = format!("{}: negatives that are false, over epochs", row.name);
        let drawn = plots::traces(&title, ["epoch", "% of the negatives"], &all)?;
        Some((title, drawn))
    };
    report.rows.iter().filter_map(of_row).collect()
}

pub(super) fn posterior(report: &Report, figures: &Figures) -> Vec<(String, Figure)> {
    let mut out = Vec::new();
    for s in &figures.similarities {
        let title = format!("{}, seed {}: similarities and the posterior", s.row, s.seed);
        out.extend(plots::similarities(&title, s).map(|f| (title, f)));
    }
    for row in &report.rows {
        let Some(truth) = &row.truth else { continue };
        let title = format!("{}: reliability of the posterior (diagonal: calibrated)", row.name);
        out.extend(plots::reliability(&title, &truth.reliability).map(|f| (title, f)));
    }
    out
}
