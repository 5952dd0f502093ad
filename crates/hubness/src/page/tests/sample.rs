//! A made-up report for the tests: every field filled, every number invented.

use std::collections::BTreeMap;

use crate::report::*;
use crate::{Direction, Setting};

/// Markup, a terminal escape and a right-to-left override: names come from outside.
pub(crate) const EVIL: &str = "<script>alert('hub')</script> & \x1b[2J\u{202e}\"x\"";

/// Eight methods in both directions.
pub(crate) fn report() -> Report {
    let rows = [
        row("nns", 438.6, Setting::Plain, 1.0),
        row("csls", 470.4, Setting::Transductive, 0.0002),
        row("is", 483.0, Setting::Transductive, 0.0001),
        row("rgm", 446.2, Setting::Transductive, 0.004),
        row("csls+rgm", 471.0, Setting::Transductive, 0.0002),
        row("nnn", 452.3, Setting::HeldOut, 0.001),
        row("qbnorm", 440.1, Setting::HeldOut, 0.41),
        row("sinkhorn", 429.5, Setting::Transductive, 0.003),
    ];
    let side = |d| side(d, &rows);
    let hubs = Hubs {
        sides: PerDirection { i2t: Some(side(Direction::I2t)), t2i: Some(side(Direction::T2i)) },
        hs_sum: Some(17.42),
    };
    let curves = Direction::BOTH.into_iter().flat_map(|d| ["rgm", "csls+rgm"].map(|m| curve(m, d)));
    Report {
        version: "0.1.0".into(),
        data: data(),
        settings: Conditions {
            seed: 0,
            resamples: 10_000,
            unit: "images".into(),
            tie_policy: "smaller index first".into(),
            hub_rule: "from twice the mean on".into(),
            command: Some(
                "hubness report --images images.npy --texts texts.npy --method auto".into(),
            ),
        },
        curves: curves.collect(),
        rows: rows.into(),
        hubs,
        seconds: 3.42,
        peak_memory_bytes: Some(187_000_000),
    }
}

/// The report with only one direction, as from one run file.
pub(crate) fn one_direction(direction: Direction) -> Report {
    fn keep<T>(of: &mut PerDirection<T>, direction: Direction) {
        match direction {
            Direction::I2t => of.t2i = None,
            Direction::T2i => of.i2t = None,
        }
    }
    let mut report = report();
    for row in &mut report.rows {
        keep(&mut row.params, direction);
        keep(&mut row.recalls, direction);
        keep(&mut row.ci95_recalls, direction);
        keep(&mut row.hubs_after, direction);
        row.rsum /= 2.0;
    }
    keep(&mut report.hubs.sides, direction);
    report.curves.retain(|c| c.direction == direction);
    report
}

/// The report with NaN, infinity or nothing wherever a number may be missing or wrong.
pub(crate) fn poisoned() -> Report {
    let mut report = report();
    let nan = f64::NAN;
    for row in &mut report.rows {
        row.rsum = nan;
        row.ci95 = Some([nan, f64::INFINITY]);
        row.p_value = Some(nan);
        row.difference = Some(Difference { rsum: nan, ci95: Some([nan; 2]), p_holm: Some(nan) });
        for recalls in [&mut row.recalls.i2t, &mut row.recalls.t2i].into_iter().flatten() {
            let rank = Some(f64::INFINITY);
            *recalls = Recalls {
                r1: nan,
                r5: nan,
                r10: nan,
                median_rank: rank,
                mean_rank: rank,
                map_at_r: None,
                r_precision: None,
                queries: 0,
                decided_by_ties: None,
            };
        }
        let ci = RecallIntervals { r1: [nan; 2], r5: [nan; 2], r10: [f64::NEG_INFINITY, nan] };
        row.ci95_recalls = PerDirection { i2t: Some(ci), t2i: Some(ci) };
        row.hubs_after = PerDirection::default();
    }
    for side in [&mut report.hubs.sides.i2t, &mut report.hubs.sides.t2i].into_iter().flatten() {
        for m in &mut side.measures {
            (m.skewness, m.gini, m.max, m.anti_hub_share) = (nan, nan, nan, f64::INFINITY);
        }
        for hub in &mut side.worst {
            hub.deserved = Some(nan);
            for victim in &mut hub.victims {
                (victim.hub_score, victim.true_score) = (nan, f64::NEG_INFINITY);
            }
        }
    }
    let measures = |side: &Option<HubSide>| side.as_ref().map(|side| side.measures.clone());
    let PerDirection { i2t, t2i } = &report.hubs.sides;
    report.rows[0].hubs_after = PerDirection { i2t: measures(i2t), t2i: measures(t2i) };
    for curve in &mut report.curves {
        curve.unconstrained = Some(nan);
        curve.x[0] = f64::INFINITY;
        curve.y[1] = nan;
    }
    report.hubs.hs_sum = Some(nan);
    report.seconds = nan;
    report
}

/// A report without rows, hubs and curves.
pub(crate) fn empty() -> Report {
    let mut report = report();
    report.rows.clear();
    report.hubs = Hubs::default();
    report.curves.clear();
    report
}

/// Whether the text has a word that no reader should meet.
pub(crate) fn says_no_number(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|w| ["nan", "inf", "null"].contains(&w.to_lowercase().as_str()))
}

/// The row of a method.
pub(crate) fn row_mut<'a>(report: &'a mut Report, method: &str) -> &'a mut ReportRow {
    report.rows.iter_mut().find(|r| r.method == method).unwrap()
}

fn data() -> Data {
    let file = |name: &str, digit: &str| File { name: name.into(), sha256: digit.repeat(64) };
    Data {
        images: 500,
        texts: 2500,
        dim: Some(512),
        pairs_note: "5 texts per image, guessed from the row counts".into(),
        files: vec![file("images.npy", "a"), file("texts.npy", "b")],
        notes: vec!["5 texts per image were guessed: 2,500 rows over 500.".into()],
        warnings: vec!["2 image rows are equal: 17 and 403.".into()],
    }
}

fn row(method: &str, rsum: f64, setting: Setting, p: f64) -> ReportRow {
    let at = |share: f64| (share * rsum).min(100.0);
    let recalls = |tilt: f64| Recalls {
        r1: at(0.112 * tilt),
        r5: at(0.183 * tilt),
        r10: at(0.205 * tilt),
        median_rank: (!method.contains("rgm")).then_some(2.0),
        mean_rank: (!method.contains("rgm")).then_some(11.37),
        map_at_r: None,
        r_precision: None,
        queries: 1_000,
        decided_by_ties: (!method.contains("rgm")).then_some(3),
    };
    let around = |r: Recalls| {
        let [r1, r5, r10] = r.values().map(|v| [v - 2.1, (v + 1.9).min(100.0)]);
        RecallIntervals { r1, r5, r10 }
    };
    let (i2t, t2i) = (recalls(1.05), recalls(0.95));
    let beats = method != "nns";
    let d = rsum - 438.6;
    let params = |first: f64| match method {
        "csls" | "csls+rgm" => Params::from([("k".into(), 10.0.into())]),
        "is" => Params::from([("beta".into(), Param::Each(vec![first.into(), 50.0.into()]))]),
        "rgm" => Params::from([("lambda".into(), 2.0.into())]),
        "nnn" => Params::from([("alpha".into(), 0.75.into()), ("k".into(), 128.0.into())]),
        _ => Params::new(),
    };
    let calm = if beats { (d.abs() / 40.0).min(0.8) } else { 0.0 };
    ReportRow {
        method: method.into(),
        params: PerDirection { i2t: Some(params(60.0)), t2i: Some(params(50.0)) },
        chosen: if method == "is" { ChoiceOrigin::CrossFitted } else { ChoiceOrigin::Default },
        transductive: setting == Setting::Transductive,
        setting,
        recalls: PerDirection { i2t: Some(i2t), t2i: Some(t2i) },
        rsum,
        ci95: Some([rsum - 12.4, rsum + 11.8]),
        ci95_recalls: PerDirection { i2t: Some(around(i2t)), t2i: Some(around(t2i)) },
        difference: beats.then_some(Difference {
            rsum: d,
            ci95: Some([d - 4.6, d + 4.9]),
            p_holm: Some((3.0 * p).min(1.0)),
        }),
        p_value: beats.then_some(p),
        hubs_after: PerDirection {
            i2t: Some(measures(3.4, 500, calm)),
            t2i: Some(measures(5.1, 2500, calm)),
        },
    }
}

fn measures(skewness: f64, queries: u64, calm: f64) -> Vec<HubMeasures> {
    let of = |k: u64| HubMeasures {
        k,
        skewness: skewness * (1.0 - calm) * (1.2 - k as f64 / 50.0),
        robin_hood: 0.52 - 0.3 * calm,
        gini: 0.66 - 0.3 * calm,
        atkinson: 0.44 - 0.2 * calm,
        anti_hub_share: 0.21 * (1.0 - calm),
        hub_occurrence: 0.48 - 0.3 * calm,
        hubs: 63 - (40.0 * calm) as u64,
        max: (0.16 - 0.1 * calm) * 500.0 / queries as f64 * 5.0,
    };
    [1, 5, 10].map(of).into()
}

fn side(direction: Direction, rows: &[ReportRow]) -> HubSide {
    let (queries, items) = (direction.queries(500u64, 2500), direction.items(500u64, 2500));
    let histograms = rows.iter().flat_map(|row| {
        [1, 5, 10].map(|k| {
            let calm = row.difference.map_or(0.0, |d| (d.rsum.abs() / 60.0).min(0.5));
            histogram(
                &row.method,
                k,
                queries as f64 * k as f64 / items as f64,
                items,
                queries,
                calm,
            )
        })
    });
    let names = [
        "a dog runs over the grass with a stick in its mouth",
        EVIL,
        "犬が草の上を走っている写真、とても長い説明文がここに続きます",
    ];
    let hub = |i: u64| Hub {
        item: 17 * i + 3,
        name: (i < 3).then(|| names[i as usize].to_owned()),
        count: 412 - 57 * i,
        first: 61 - 7 * i,
        wrong: 398 - 57 * i,
        deserved: (direction == Direction::T2i).then_some(0.12 + 0.01 * i as f64),
        after: rows.iter().skip(1).map(|r| (r.method.clone(), 74 - 6 * i)).collect(),
        victims: (0..3).map(|v| victim(5 * i + v)).collect(),
    };
    HubSide {
        measures: rows[0].hubs_after.get(direction).cloned().unwrap_or_default(),
        worst: (0..6).map(hub).collect(),
        histograms: histograms.collect(),
    }
}

fn victim(i: u64) -> Victim {
    Victim {
        query: 31 * i + 5,
        name: (i % 3 < 2)
            .then(|| format!("two people <b>number {i}</b> look at a boat in the harbour")),
        hub_score: 0.312 - 0.001 * i as f64,
        true_score: 0.301 - 0.002 * i as f64,
        true_rank: 4 + i * i,
    }
}

/// Counts with a long tail around the given mean; `calm` shortens the tail.
fn histogram(method: &str, k: u64, mean: f64, items: u64, queries: u64, calm: f64) -> Histogram {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for i in 0..items {
        // Quantiles of a log-logistic distribution, close enough to the counts of hubs.
        let u = (i as f64 + 0.5) / items as f64;
        let z = (u / (1.0 - u)).ln() / 1.6;
        let n = mean * 0.6 * (z * (1.1 - calm)).exp();
        *counts.entry((n as u64).min(queries)).or_default() += 1;
    }
    Histogram { method: method.into(), k, counts: counts.into_iter().collect() }
}

fn curve(method: &str, direction: Direction) -> Curve {
    let x: Vec<f64> = (0..37).map(|i| 1.0 + 0.25 * f64::from(i)).collect();
    let top = if method == "rgm" { 84.0 } else { 88.5 };
    let y = x.iter().map(|l| top + 3.0 * (-(l - 2.5).powi(2) / 6.0).exp() - 5.0 / (l * l * l));
    Curve { label: method.into(), direction, y: y.collect(), x, unconstrained: Some(top) }
}
