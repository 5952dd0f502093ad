use itm_core::eval::Fold;
use itm_core::{Pairs, ScoreMatrix};

use super::*;
use crate::report::tests::sample;

/// Four images and texts. Text 0 is nearest to the first `found` images; its own text is nearest to each other
/// image.
fn hub(found: usize) -> Nearest {
    let score = |at: usize| match (at / 4, at % 4) {
        (i, 0) if i < found => 1.0,
        (i, t) if i == t => 0.9,
        (_, t) => 0.1 * t as f32, // a fixed order of the rest
    };
    let scores = ScoreMatrix::new(4, 4, (0..16).map(score).collect()).unwrap();
    let fold = Fold::new(&Pairs::uniform(4, 1), 0..4);
    Nearest::new(&scores, &[fold]).unwrap()
}

fn row(name: &str, kind: RowKind) -> Row {
    Row { name: name.into(), kind, ..sample::report(1.0, 1.0, &[0]).rows.remove(0) }
}

/// By hand, N_1 i2t: with `found` 4 it is (4, 0, 0, 0), skewness 2/√3, Robin Hood 3/4; with `found` 1 it is all
/// ones, skewness 0.
#[test]
fn spreads_are_over_seeds() {
    let runs = [hub(4), hub(1)];
    let found = row_hubs("HAL", &runs, Some(9.0));
    assert_eq!((&found.row[..], found.paper_hs_sum), ("HAL", Some(9.0)));
    let n1 = &found.counts[0];
    assert_eq!((n1.direction, n1.k), (Direction::I2t, 1));
    let half = 1.0 / 3f64.sqrt();
    assert!((n1.skewness.mean - half).abs() < 1e-12);
    // Two values 2h apart: standard deviation h·√2.
    assert!((n1.skewness.sd.unwrap() - half * 2f64.sqrt()).abs() < 1e-12);
    assert_eq!([n1.robin_hood.mean, n1.never.mean, n1.largest.mean], [0.375, 0.375, 2.5]);
    let one = row_hubs("HAL", &[hub(4)], None);
    assert_eq!((one.counts[0].largest.sd, one.counts[1].largest.mean), (None, 4.0));
}

#[test]
fn the_claims_row_is_set_against_the_others_it_names() {
    let known = [
        (row("CCA", RowKind::Baseline), vec![hub(4)]),
        (row("SUM", RowKind::Trained), vec![hub(4), hub(4)]),
        (row("HAL", RowKind::Trained), vec![hub(1), hub(1)]),
        (row("MAX", RowKind::Trained), vec![hub(2)]), // fewer seeds: no pairs
    ];
    let all: Vec<_> = known.iter().map(|(row, runs)| (row, runs.clone())).collect();
    let claim = |row: &str| Claim {
        row: row.into(),
        against: ["CCA", "SUM", "MAX", "absent"].map(str::to_owned).into(),
    };
    let found = differences(&all, &claim("HAL"), (Direction::I2t, 1)).unwrap();
    let names: Vec<_> = found.iter().map(|d| (&d.row[..], &d.minus[..])).collect();
    assert_eq!(names, [("HAL", "SUM")]);
    let d = &found[0];
    assert!((d.skewness + 2.0 / 3f64.sqrt()).abs() < 1e-12, "{d:?}");
    // SUM has the same lists in every resample. HAL finds its own texts as often as they are drawn.
    assert!(d.skewness_ci95[0] <= d.skewness_ci95[1] && d.skewness_ci95[0] < 0.0, "{d:?}");
    let sum = |name: &str| {
        let (row, runs) = all.iter().find(|(row, _)| row.name == name).unwrap();
        row_hubs(&row.name, runs, None).hs_sum.mean
    };
    assert!((d.hs_sum - (sum("HAL") - sum("SUM"))).abs() < 1e-12);
    assert!(differences(&all, &claim("none"), (Direction::I2t, 1)).unwrap().is_empty());
}

#[test]
fn a_distribution_is_of_the_trained_rows_and_all_their_seeds() {
    let known = [
        (row("CCA", RowKind::Baseline), vec![hub(4)]),
        (row("HAL", RowKind::Trained), vec![hub(4), hub(1)]),
    ];
    let all: Vec<_> = known.iter().map(|(row, runs)| (row, runs.clone())).collect();
    let figure = distribution(2, (Direction::I2t, 1), &all);
    assert_eq!((figure.number, figure.k, figure.rows.len()), (2, 1, 1));
    let histogram = &figure.rows[0].histogram;
    assert_eq!((histogram.items, histogram.never), (8, 3));
    let bars: Vec<_> = histogram.bars.iter().map(|b| (b.count, b.items)).collect();
    assert_eq!(bars, [(1, 4), (4, 1)]);
}

/// 90 of 100 items are in 1 list, 10 are in 100 lists: (0, log₁₀ 0.9) and (2, −1). A row that is not in the report is
/// not drawn.
#[test]
fn distributions_are_drawn_on_logarithms() {
    use hubness::hubs::Bar;

    let report = sample::report(24.3, -5.5, &[1, 2]);
    let bars = [(1, 90), (100, 10)].map(|(count, items)| Bar { count, items });
    let of = |row: &str| DistributionOf {
        row: row.into(),
        histogram: Histogram { items: 100, never: 0, bars: bars.into() },
    };
    let rows = vec![of("Full"), of("w/o FNE"), of("gone")];
    let figure =
        drawn(&report, &Distribution { number: 2, direction: Direction::T2i, k: 1, rows }).unwrap();
    assert_eq!(figure.title, "Figure 2: distribution of N_1, text → image");
    let svg = figure.svg.into_string();
    assert_eq!(svg.matches("<circle").count(), 2 * 2, "{svg}");
    for label in [">\n2\n<", ">\n−1\n<", "log₁₀ N_1", "log₁₀ p(N_1)"] {
        assert!(svg.contains(label), "no {label} in {svg}");
    }
    assert!(format!("{:?}", figure.legend).contains("w/o FNE"));
}
