//! Hubs of the rows: how unequally their nearest neighbours find items, and whether one row has fewer than another.

use hubness::Direction;
use hubness::hubs::{Counts, Histogram, HubMeasures, HubSize, Nearest, bootstrap_difference};
use itm_core::Result;

use super::{RESAMPLING_SEED, RowResult, ends};
use crate::mean::mean;
use crate::report::{
    Claim, Distribution, DistributionOf, HubCounts, HubDifference, Kind, RowHubs, Spread,
};

/// Replicates of a bootstrap of hubs. Each replicate counts every list again.
const REPLICATES: usize = 2_000;

/// The N_k that the tables show.
const SHOWN: [(Direction, usize); 4] =
    [(Direction::I2t, 1), (Direction::I2t, 10), (Direction::T2i, 1), (Direction::T2i, 10)];

/// Hubs of the rows whose nearest items were kept; `paper` gives a row's printed sum of skewnesses.
pub(super) fn rows(rows: &[RowResult], paper: impl Fn(&str) -> Option<f64>) -> Vec<RowHubs> {
    let of_row = |row: &RowResult| {
        let runs = nearest(row)?;
        Some(RowHubs {
            row: row.name.clone(),
            hs_sum: spread(runs.iter().map(Nearest::hs_sum)),
            paper_hs_sum: paper(&row.name),
            counts: SHOWN.map(|(direction, k)| counts(&runs, direction, k)).into(),
        })
    };
    rows.iter().filter_map(of_row).collect()
}

fn counts(runs: &[Nearest], direction: Direction, k: usize) -> HubCounts {
    let over_folds = |measure: &dyn Fn(&Counts) -> f64| {
        spread(runs.iter().map(|run| {
            let folds = run.counts(direction, k);
            mean(folds.iter().map(measure)).unwrap_or(0.0)
        }))
    };
    let of = |measure: fn(&HubMeasures) -> f64| {
        over_folds(&|counts| measure(&HubMeasures::new(counts, HubSize::default())))
    };
    HubCounts {
        direction,
        k,
        skewness: of(|m| m.skewness),
        robin_hood: of(|m| m.robin_hood),
        never: of(|m| m.anti_hub_share),
        largest: over_folds(&|c| f64::from(c.values().iter().max().copied().unwrap_or(0))),
    }
}

/// The claim's row minus each trained row that it should beat: by the sum of skewnesses and by the N_k that `of` names.
pub(super) fn differences(
    rows: &[RowResult],
    claim: &Claim,
    of: (Direction, usize),
) -> Result<Vec<HubDifference>> {
    let named = |name: &str| {
        let row = rows.iter().find(|row| row.name == name && row.kind == Kind::Trained)?;
        Some((row.name.clone(), nearest(row)?))
    };
    let Some((row, own)) = named(&claim.row) else { return Ok(vec![]) };
    let others = claim.against.iter().filter_map(|name| named(name));
    others
        .filter(|(_, runs)| runs.len() == own.len())
        .map(|(minus, runs)| {
            let (hs_sum, hs_sum_ci95) = difference(&own, &runs, &Nearest::of_hs_sum())?;
            let (skewness, skewness_ci95) = difference(&own, &runs, &[of])?;
            let (row, (direction, k)) = (row.clone(), of);
            Ok(HubDifference {
                row,
                minus,
                hs_sum,
                hs_sum_ci95,
                direction,
                k,
                skewness,
                skewness_ci95,
            })
        })
        .collect()
}

/// Difference of the summed skewness, with its interval.
fn difference(a: &[Nearest], b: &[Nearest], of: &[(Direction, usize)]) -> Result<(f64, [f64; 2])> {
    let of_run = |run: &Nearest| {
        let sides = of.iter().map(|&(direction, k)| run.counts(direction, k));
        sides.map(|folds| mean(folds.iter().map(Counts::skewness)).unwrap_or(0.0)).sum::<f64>()
    };
    let of_all = |runs: &[Nearest]| mean(runs.iter().map(of_run)).unwrap_or(f64::NAN);
    let interval =
        bootstrap_difference(a, b, of, Nearest::skewnesses, REPLICATES, RESAMPLING_SEED)?;
    Ok((of_all(a) - of_all(b), ends(interval)))
}

/// The distributions of a figure, one per trained row.
pub(super) fn distribution(
    number: u32,
    (direction, k): (Direction, usize),
    rows: &[RowResult],
) -> Distribution {
    let of_row = |row: &RowResult| {
        let folds: Vec<_> = nearest(row)?.iter().flat_map(|run| run.counts(direction, k)).collect();
        Some(DistributionOf { row: row.name.clone(), histogram: Histogram::of_all(&folds) })
    };
    let trained = rows.iter().filter(|row| row.kind == Kind::Trained);
    Distribution { number, direction, k, rows: trained.filter_map(of_row).collect() }
}

/// The nearest items of every run; `None` where they were not kept.
fn nearest(row: &RowResult) -> Option<Vec<Nearest>> {
    let runs: Option<Vec<_>> = row.runs.iter().map(|run| run.nearest.clone()).collect();
    runs.filter(|runs| !runs.is_empty())
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let values: Vec<f64> = values.collect();
    let average = mean(values.iter().copied()).unwrap_or(f64::NAN);
    let squares: f64 = values.iter().map(|x| (x - average).powi(2)).sum();
    let sd = (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt());
    Spread { mean: average, sd }
}

#[cfg(test)]
mod tests {
    use itm_core::eval::Fold;
    use itm_core::{Pairs, ScoreMatrix};

    use super::super::SeedRun;
    use super::super::tests::run;
    use super::*;

    /// Four images and texts. Text 0 is nearest to the first `found` images; its own text is nearest to each other
    /// image.
    fn hub(seed: u64, found: usize) -> SeedRun {
        let score = |at: usize| match (at / 4, at % 4) {
            (i, 0) if i < found => 1.0,
            (i, t) if i == t => 0.9,
            (_, t) => 0.1 * t as f32, // a fixed order of the rest
        };
        let scores = ScoreMatrix::new(4, 4, (0..16).map(score).collect()).unwrap();
        let fold = Fold::new(&Pairs::uniform(4, 1), 0..4);
        SeedRun { nearest: Some(Nearest::new(&scores, &[fold]).unwrap()), ..run(seed, 4) }
    }

    fn row(name: &str, kind: Kind, runs: Vec<SeedRun>) -> RowResult {
        RowResult { kind, runs, ..RowResult::trained(name) }
    }

    /// By hand, N_1 i2t: with `found` 4 it is (4, 0, 0, 0), skewness 2/√3, Robin Hood 3/4; with `found` 1 it is all
    /// ones, skewness 0.
    #[test]
    fn spreads_are_over_seeds() {
        let runs = vec![hub(0, 4), hub(1, 1)];
        let found = rows(&[row("HAL", Kind::Trained, runs)], |name| (name == "HAL").then_some(9.0));
        assert_eq!((found.len(), found[0].paper_hs_sum), (1, Some(9.0)));
        let n1 = &found[0].counts[0];
        assert_eq!((n1.direction, n1.k), (Direction::I2t, 1));
        let half = 1.0 / 3f64.sqrt();
        assert!((n1.skewness.mean - half).abs() < 1e-12);
        // Two values 2h apart: standard deviation h·√2.
        assert!((n1.skewness.sd.unwrap() - half * 2f64.sqrt()).abs() < 1e-12);
        assert_eq!([n1.robin_hood.mean, n1.never.mean, n1.largest.mean], [0.375, 0.375, 2.5]);
        let one = rows(&[row("HAL", Kind::Trained, vec![hub(0, 4)])], |_| None);
        assert_eq!((one[0].counts[0].largest.sd, one[0].counts[1].largest.mean), (None, 4.0));
        assert!(rows(&[row("HAL", Kind::Trained, vec![run(0, 4)])], |_| None).is_empty());
    }

    #[test]
    fn the_claims_row_is_set_against_the_others_it_names() {
        let all = [
            row("CCA", Kind::Baseline, vec![hub(0, 4)]),
            row("SUM", Kind::Trained, vec![hub(0, 4), hub(1, 4)]),
            row("HAL", Kind::Trained, vec![hub(0, 1), hub(1, 1)]),
            row("MAX", Kind::Trained, vec![hub(0, 2)]), // fewer seeds: no pairs
        ];
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
        let sums = rows(&all, |_| None);
        let sum = |name: &str| sums.iter().find(|r| r.row == name).unwrap().hs_sum.mean;
        assert!((d.hs_sum - (sum("HAL") - sum("SUM"))).abs() < 1e-12);
        assert!(differences(&all, &claim("none"), (Direction::I2t, 1)).unwrap().is_empty());
    }

    #[test]
    fn a_distribution_is_of_the_trained_rows_and_all_their_seeds() {
        let all = [
            row("CCA", Kind::Baseline, vec![hub(0, 4)]),
            row("HAL", Kind::Trained, vec![hub(0, 4), hub(1, 1)]),
        ];
        let figure = distribution(2, (Direction::I2t, 1), &all);
        assert_eq!((figure.number, figure.k, figure.rows.len()), (2, 1, 1));
        let histogram = &figure.rows[0].histogram;
        assert_eq!((histogram.items, histogram.never), (8, 3));
        let bars: Vec<_> = histogram.bars.iter().map(|b| (b.count, b.items)).collect();
        assert_eq!(bars, [(1, 4), (4, 1)]);
    }
}
