//! Turns the results of the rows, and the differences between them, into the content of the reports.

mod row;
mod seed;

use itm_core::data::Split;
use itm_core::eval::{Evaluation, TiePolicy};
use itm_core::scored::Scored;
use itm_core::significance::{Interval, Measures, bootstrap_difference, paired_randomisation};
use itm_core::{Result, significance};

use crate::config::Exhibit;
use crate::experiment::Experiment;
use crate::explain::{Examples, FalseNegatives, Pointing};
use crate::measures::{Audit, Courses, Hubs, Judgements, Measure};
use crate::paper::paper_data;
use crate::report::{
    BAYES, CHANCE, CI95_UNIT, Comparison, Figure, FigurePoint, Measured, Numbers, ORACLE,
    PaperReference, Recalls, Report, Row, RowKind, SCHEMA_VERSION, SPECIFIC_ORACLE,
};
use crate::rescore::Rescoring;
use crate::system;

pub(crate) use self::row::RowResult;
pub(crate) use self::seed::SeedRun;

/// Replicates of a bootstrap and of a randomisation test.
const REPLICATES: usize = 10_000;
const RESAMPLING_SEED: u64 = 0;

/// Every measure of an experiment, in the order of the report.
pub(crate) fn measures<'a>(
    experiment: &'a Experiment,
    rescoring: Option<&'a Rescoring>,
) -> Vec<Box<dyn Measure + 'a>> {
    let mut all: Vec<Box<dyn Measure>> = vec![];
    if let Some(rescoring) = rescoring {
        all.push(Box::new(rescoring));
    }
    if experiment.kind.about_hubs || experiment.view.distribution().is_some() {
        let number = if let Exhibit::Figure(n) = experiment.shown { Some(n) } else { None };
        let figure = number.zip(experiment.view.distribution());
        all.push(Box::new(Hubs::new(figure, |name| experiment.printed_line(name)?.hs_sum)));
    }
    if !experiment.run.source.judgements.is_empty() {
        all.push(Box::new(Judgements::default()));
    }
    all.push(Box::new(Courses::default()));
    all.push(Box::new(Audit::default()));
    all.push(Box::new(FalseNegatives::default()));
    all.push(Box::new(Pointing::default()));
    all.extend((experiment.kind.measures)(&experiment.target));
    all.push(Box::new(Examples::of(experiment.view.rows.first().map_or("", String::as_str))));
    all
}

/// What every report has, without the sections of measures: rows whose recalls are computed, then measured rows.
pub(crate) fn report(
    experiment: &Experiment,
    computed: Vec<Row>,
    measured: &[RowResult],
    seconds: f64,
) -> Result<Report> {
    let Experiment { target, run, seeds, .. } = experiment;
    let (source, claim) = (&run.source, experiment.claim());
    let note = experiment.precision_note();
    let rows = computed.into_iter().map(Ok).chain(measured.iter().map(|row| row.row(experiment)));
    Ok(Report {
        schema_version: SCHEMA_VERSION,
        target: target.name.clone(),
        dataset: source.title.clone(),
        substituted: source.substitution.is_some(),
        substitution: source.substitution.clone(),
        commit: system::commit(),
        backend: experiment.backend.clone(),
        threads: rayon::current_num_threads(),
        preset: run.config.name.clone(),
        seeds: seeds.clone(),
        command: experiment.command.clone(),
        ci95_unit: CI95_UNIT.into(),
        tie_policy: "smaller index first".into(),
        rows: rows.collect::<Result<_>>()?,
        comparisons: comparisons(measured, &claim.row)?,
        claim,
        paper_reference: paper_reference(experiment, measured),
        figure: figure(experiment),
        notes: [source.notes.clone(), run.starts.notes(), Vec::from_iter(note)].concat(),
        seconds,
        peak_memory_bytes: system::peak_memory_bytes().unwrap_or(0),
        config_sha256: run.config.sha256.clone(),
        data_sha256: source.dataset.sha256.clone(),
        more: Numbers::new(),
    })
}

/// The paper's numbers for the rows on the paper's data, if these are other data.
fn paper_reference(experiment: &Experiment, rows: &[RowResult]) -> Option<PaperReference> {
    if experiment.paper_data().is_some() {
        return None;
    }
    let target = &experiment.target.target;
    let protocol = experiment.view.protocol.unwrap_or(target.protocol);
    let data = paper_data(target.dataset, protocol);
    let names = rows.iter().map(|row| row.name.as_str());
    let lines: Vec<_> = names.map(|name| (name, experiment.printed_name(name))).collect();
    experiment.paper.reference(experiment.paper_table()?, data, &lines)
}

/// The curve of a figure: its rows by the number on the x axis.
fn figure(experiment: &Experiment) -> Option<Figure> {
    let Experiment { shown, view, run, .. } = experiment;
    let (&Exhibit::Figure(number), Some(key)) = (shown, &view.x) else { return None };
    let points = run.config.points(shown, view).ok()?; // checked when the experiment was built
    let points = points.into_iter().map(|(row, x)| FigurePoint { row, x }).collect();
    Some(Figure { number, x: key.clone(), points })
}

/// Compares the claimed row, or else the first trained row, with the other trained rows; and every trained row with the
/// baseline.
fn comparisons(rows: &[RowResult], claimed: &str) -> Result<Vec<Comparison>> {
    let trained = || rows.iter().filter(|row| row.kind == RowKind::Trained);
    let Some(full) = trained().find(|row| row.name == claimed).or_else(|| trained().next()) else {
        return Ok(vec![]);
    };
    let cca = rows.iter().find(|row| row.kind == RowKind::Baseline);
    let others = trained().filter(|row| row.name != full.name);
    // A row of ensembles has fewer runs than a row of models: their runs cannot be paired.
    let paired = |a: &RowResult, b: &RowResult| a.runs.len() == b.runs.len() || b.runs.len() == 1;
    let of_full = others.clone().map(|other| (full, other)).chain(cca.map(|cca| (full, cca)));
    let of_cca = cca.into_iter().flat_map(|cca| others.clone().map(move |other| (other, cca)));
    let pairs = of_full.chain(of_cca).filter(|(row, minus)| paired(row, minus));
    pairs.map(|(row, minus)| comparison(row, minus)).collect()
}

fn comparison(row: &RowResult, minus: &RowResult) -> Result<Comparison> {
    let a = row.hits();
    let mut b = minus.hits();
    if b.len() == 1 {
        b = vec![b[0].clone(); a.len()]; // a baseline without seeds is paired with every seed
    }
    let interval = bootstrap_difference(&a, &b, REPLICATES, RESAMPLING_SEED)?.rsum;
    let test = paired_randomisation(&a, &b, REPLICATES, RESAMPLING_SEED)?;
    Ok(Comparison {
        row: row.name.clone(),
        minus: minus.name.clone(),
        rsum: row.rsum() - minus.rsum(),
        ci95: ends(interval),
        p_value: test.p,
        test: "paired randomisation over images, 10,000 draws".into(),
    })
}

fn expected_row(experiment: &Experiment, name: &str, expected: &Measures<f64>) -> Row {
    let [i2t, t2i] = [expected.i2t, expected.t2i].map(|[r1, r5, r10]| Recalls { r1, r5, r10 });
    let measured = Measured { i2t, t2i, rsum: expected.rsum, ..Measured::default() };
    let (name, kind, protocol) = (name.into(), RowKind::Baseline, experiment.ranked());
    Row { name, kind, protocol, measured, ..Row::default() }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.lo, interval.hi]
}

/// Recalls of ranking at random; for one fold if there are several folds, which have equal sizes. Also the oracles
/// that the truth allows, if the truth is known and there is one fold.
pub(crate) fn expected(experiment: &Experiment) -> Result<Vec<Row>> {
    let (source, protocol) = (&experiment.run.source, experiment.protocol);
    let (part, truth) = source.part(Split::Test);
    let folds = protocol.folds(&part.pairs).unwrap_or_default();
    let mut rows =
        vec![(CHANCE, significance::chance(folds.first().map_or(&part.pairs, |f| &f.pairs)))];
    if let Some(truth) = truth.filter(|_| folds.len() <= 1) {
        let [ties, specific] = significance::ceilings(&part.pairs, truth);
        rows.extend([(ORACLE, ties), (SPECIFIC_ORACLE, specific)]);
    }
    if let Some(odds) = source.odds(Split::Test).filter(|_| folds.len() <= 1) {
        let ranks = <dyn Scored>::ranks_by(&odds?, protocol, &part.pairs)?;
        let Evaluation { i2t, t2i, .. } = Evaluation::new(&ranks, TiePolicy::Expected);
        rows.push((BAYES, Measures::of_recalls(i2t.recalls(), t2i.recalls())));
    }
    Ok(rows.iter().map(|(name, recalls)| expected_row(experiment, name, recalls)).collect())
}

#[cfg(test)]
mod tests;
