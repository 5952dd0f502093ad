//! Hubs of the rows: how unequally their nearest neighbours find items, and whether one row has fewer than another.

mod tables;

use hubness::Direction;
use hubness::hubs::{Counts, Histogram, Nearest, bootstrap_difference};
use itm_core::Result;
use itm_report::figure::{Figure, courses};
use serde::{Deserialize, Serialize};

use super::{BySeed, Measure, Trial};
use crate::config::Claim;
use crate::report::{Report, Row, RowKind, Section, coloured, dotted, mean};

/// Hubs of every row with scores.
pub(crate) struct Hubs<'a> {
    nearest: BySeed<Nearest>,
    figure: Option<HubFigure>,
    printed: Box<Printed<'a>>,
}

/// The paper's sum of skewnesses of a row.
type Printed<'a> = dyn Fn(&str) -> Option<f64> + Send + Sync + 'a;

/// A figure of the paper that draws N_k: its number, the direction, k.
pub(crate) type HubFigure = (u32, (Direction, usize));

/// A row, and the nearest neighbours of each of its seeds.
type RowRuns<'a> = (&'a Row, Vec<Nearest>);

impl<'a> Hubs<'a> {
    /// `figure` is drawn; `printed` gives a row's printed sum of skewnesses.
    pub(crate) fn new(
        figure: Option<HubFigure>,
        printed: impl Fn(&str) -> Option<f64> + Send + Sync + 'a,
    ) -> Self {
        Self { nearest: BySeed::default(), figure, printed: Box::new(printed) }
    }
}

impl Measure for Hubs<'_> {
    fn look(&self, trial: &Trial) -> Result<()> {
        let folds = trial.protocol.folds(&trial.source.dataset.test.pairs)?;
        self.nearest.put(trial, Nearest::new(trial.scores, &folds)?);
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let all = |seeds: &[&Nearest]| Some(seeds.iter().map(|run| (*run).clone()).collect());
        let known = report.rows.iter().zip(self.nearest.rows(report, all));
        let rows: Vec<RowRuns> = known.filter_map(|(row, runs)| Some((row, runs?))).collect();
        let of = self.figure.map_or((Direction::T2i, 1), |(_, of)| of);
        let hubs = |(row, runs): &RowRuns| row_hubs(&row.name, runs, (self.printed)(&row.name));
        let found = HubNumbers {
            distribution: self.figure.map(|(number, of)| distribution(number, of, &rows)),
            hubs: rows.iter().map(hubs).collect(),
            hub_differences: differences(&rows, &report.claim, of)?,
        };
        let figure = found.distribution.as_ref().and_then(|d| drawn(report, d));
        let section = Section {
            figures: figure.into_iter().collect(),
            tables: vec![
                tables::hubs(report, &found.hubs),
                tables::hub_differences(report, &found.hub_differences),
                tables::hub_counts(report, &found.hubs),
            ],
            ..Section::new("Hubs")
        };
        report.more.extend(section.keys(&found)?);
        Ok(section)
    }
}

/// Everything about hubs in `report.json`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct HubNumbers {
    /// The distributions of the paper that these rows draw, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distribution: Option<Distribution>,
    /// Hubs of every row with scores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hubs: Vec<RowHubs>,
    /// Paired differences of hubs: the claim's row minus each row that it should beat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hub_differences: Vec<HubDifference>,
}

/// A number over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// Its mean.
    pub(crate) mean: f64,
    /// Its standard deviation, with n − 1; `null` with one seed.
    pub(crate) sd: Option<f64>,
}

/// Hubs of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowHubs {
    /// The row.
    pub(crate) row: String,
    /// Sum of the skewness of N_1, N_5 and N_10 over both directions.
    pub(crate) hs_sum: Spread,
    /// The paper's sum on the same data; `null` on other data or if not printed.
    pub(crate) paper_hs_sum: Option<f64>,
    /// N_1 and N_10, both directions.
    pub(crate) counts: Vec<HubCounts>,
}

/// N_k of a direction: how many queries have an item among their k nearest. An item in no list has count 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HubCounts {
    /// Direction of the queries.
    pub(crate) direction: Direction,
    /// k.
    pub(crate) k: usize,
    /// Skewness.
    pub(crate) skewness: Spread,
    /// Share of all answers that would have to move so that all items have equal counts.
    pub(crate) robin_hood: Spread,
    /// Share of items in no list.
    pub(crate) never: Spread,
    /// The largest count.
    pub(crate) largest: Spread,
}

/// Hubs of `row` less the hubs of `minus`, paired over the same seeds and queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HubDifference {
    /// The row that is expected to have fewer hubs.
    pub(crate) row: String,
    /// The row subtracted from it.
    pub(crate) minus: String,
    /// Difference of the sums of skewnesses.
    pub(crate) hs_sum: f64,
    /// Its 95 % interval: bootstrap over seeds and test images.
    pub(crate) hs_sum_ci95: [f64; 2],
    /// Direction of `skewness`.
    pub(crate) direction: Direction,
    /// k of `skewness`.
    pub(crate) k: usize,
    /// Difference of the skewnesses of N_k.
    pub(crate) skewness: f64,
    /// Its 95 % interval, made the same way.
    pub(crate) skewness_ci95: [f64; 2],
}

/// A figure of the paper: how many items have each N_k.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Distribution {
    /// Its number in the paper.
    pub(crate) number: u32,
    /// Direction of the queries.
    pub(crate) direction: Direction,
    /// k.
    pub(crate) k: usize,
    /// One curve per row.
    pub(crate) rows: Vec<DistributionOf>,
}

/// The items of a row, all seeds and folds together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DistributionOf {
    /// The row.
    pub(crate) row: String,
    /// How many items have each count.
    pub(crate) histogram: Histogram,
}

/// Replicates of a bootstrap of hubs. Each replicate counts every list again.
const REPLICATES: usize = 2_000;
const SEED: u64 = 0;

/// The N_k that the tables show.
const SHOWN: [(Direction, usize); 4] =
    [(Direction::I2t, 1), (Direction::I2t, 10), (Direction::T2i, 1), (Direction::T2i, 10)];

/// Hubs of a row; `paper_hs_sum` is its printed sum of skewnesses.
fn row_hubs(row: &str, runs: &[Nearest], paper_hs_sum: Option<f64>) -> RowHubs {
    RowHubs {
        row: row.to_owned(),
        hs_sum: spread(runs.iter().map(Nearest::hs_sum)),
        paper_hs_sum,
        counts: SHOWN.map(|(direction, k)| counts(runs, direction, k)).into(),
    }
}

fn counts(runs: &[Nearest], direction: Direction, k: usize) -> HubCounts {
    let of = |measure: fn(&Counts) -> f64| {
        spread(runs.iter().map(|run| {
            let folds = run.counts(direction, k);
            mean(folds.iter().map(measure)).unwrap_or(0.0)
        }))
    };
    HubCounts {
        direction,
        k,
        skewness: of(Counts::skewness),
        robin_hood: of(Counts::robin_hood),
        never: of(Counts::anti_hubs),
        largest: of(|c| f64::from(c.values.iter().max().copied().unwrap_or(0))),
    }
}

/// The claim's row minus each trained row that it should beat: by the sum of skewnesses and by this N_k.
fn differences(
    rows: &[RowRuns],
    claim: &Claim,
    (direction, k): (Direction, usize),
) -> Result<Vec<HubDifference>> {
    let named = |name: &str| {
        let found = rows.iter().find(|(row, _)| row.name == name && row.kind == RowKind::Trained);
        found.map(|(row, runs)| (row.name.clone(), runs))
    };
    let Some((row, own)) = named(&claim.row) else { return Ok(vec![]) };
    let others = claim.against.iter().filter_map(|name| named(name));
    let paired = others.filter(|(_, runs)| runs.len() == own.len());
    let compare = |(minus, runs): (String, &Vec<Nearest>)| {
        let (hs_sum, hs_sum_ci95) = difference(own, runs, &Nearest::of_hs_sum())?;
        let (skewness, skewness_ci95) = difference(own, runs, &[(direction, k)])?;
        let row = row.clone();
        Ok(HubDifference { row, minus, hs_sum, hs_sum_ci95, direction, k, skewness, skewness_ci95 })
    };
    paired.map(compare).collect()
}

/// Difference of the summed skewness, with its interval.
fn difference(a: &[Nearest], b: &[Nearest], of: &[(Direction, usize)]) -> Result<(f64, [f64; 2])> {
    let of_run = |run: &Nearest| {
        let sides = of.iter().map(|&(direction, k)| run.counts(direction, k));
        sides.map(|folds| mean(folds.iter().map(Counts::skewness)).unwrap_or(0.0)).sum::<f64>()
    };
    let of_all = |runs: &[Nearest]| mean(runs.iter().map(of_run)).unwrap_or(f64::NAN);
    let interval = bootstrap_difference(a, b, of, Nearest::skewnesses, REPLICATES, SEED)?;
    Ok((of_all(a) - of_all(b), [interval.lo, interval.hi]))
}

/// The distributions of a figure, one per trained row.
fn distribution(number: u32, (direction, k): (Direction, usize), rows: &[RowRuns]) -> Distribution {
    let of_row = |(row, runs): &RowRuns| {
        let folds: Vec<_> = runs.iter().flat_map(|run| run.counts(direction, k)).collect();
        DistributionOf { row: row.name.clone(), histogram: Histogram::of_all(&folds) }
    };
    let trained = rows.iter().filter(|(row, _)| row.kind == RowKind::Trained);
    Distribution { number, direction, k, rows: trained.map(of_row).collect() }
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let values: Vec<f64> = values.collect();
    let average = mean(values.iter().copied()).unwrap_or(f64::NAN);
    let squares: f64 = values.iter().map(|x| (x - average).powi(2)).sum();
    let sd = (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt());
    Spread { mean: average, sd }
}

/// The paper's figure: how many items have each count, a line per row.
fn drawn(report: &Report, d: &Distribution) -> Option<Figure> {
    let rows = coloured(report);
    let line = |of: &DistributionOf| {
        let (row, series) = rows.iter().find(|(row, _)| row.name == of.row)?;
        Some(dotted(&row.name, *series, of.histogram.points()))
    };
    let lines: Vec<_> = d.rows.iter().filter_map(line).collect();
    let (k, way) = (d.k, d.direction.queries("image → text", "text → image"));
    let title = format!("Figure {}: distribution of N_{k}, {way}", d.number);
    courses(title, [&format!("log₁₀ N_{k}"), &format!("log₁₀ p(N_{k})")], &lines, &[])
}

#[cfg(test)]
mod tests;
