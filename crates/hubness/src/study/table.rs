//! The rows of a report: recalls, their intervals, and tests against nearest neighbours.

use itm_core::significance::{
    Hits, Interval, Measures, bootstrap, bootstrap_difference, holm, paired_randomisation,
};
use itm_core::{Pairs, Result};

use super::Study;
use super::results::RowResult;
use super::rows::StudyRow;
use crate::choose::joined_hits;
use crate::hubs::HubMeasures;
use crate::report::{ChoiceOrigin, Difference, PerDirection, RecallIntervals, ReportRow};
use crate::{Direction, Setting};

/// A row for each row of the study, with a value for each direction measured.
pub(crate) fn report_rows(
    study: &Study,
    study_rows: &[StudyRow],
    results: &[Vec<RowResult>],
    pairs: &Pairs,
    chosen: impl Fn(&StudyRow) -> ChoiceOrigin,
) -> Result<Vec<ReportRow>> {
    let systems: Vec<[Hits; 1]> =
        results.iter().map(|results| Ok([system(results, pairs)?])).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for ((row, results), system) in study_rows.iter().zip(results).zip(&systems) {
        let draws = (study.resamples > 0).then_some(study.resamples);
        let intervals = draws.map(|n| bootstrap(system, n, study.seed)).transpose()?;
        let of_direction = |result: &RowResult, all: Measures<Interval>| {
            let [r1, r5, r10] = result.direction.queries(all.i2t, all.t2i).map(ends);
            RecallIntervals { r1, r5, r10 }
        };
        let recalls = |all| directed(results, |result| of_direction(result, all));
        let settings = results.iter().map(|result| result.setting);
        let setting = settings.max_by_key(|&s| s as u8).unwrap_or(Setting::Plain);
        rows.push(ReportRow {
            method: row.name.clone(),
            params: directed(results, |result| result.params.clone()),
            chosen: chosen(row),
            transductive: setting == Setting::Transductive,
            setting,
            recalls: directed(results, |result| result.recalls),
            rsum: results.iter().flat_map(|result| result.recalls.values()).sum(),
            ci95: intervals.map(|m| ends(m.rsum)),
            ci95_recalls: intervals.map(recalls).unwrap_or_default(),
            difference: None,
            p_value: None,
            hubs_after: directed(results, |result| {
                result.counts.iter().map(HubMeasures::new).collect()
            }),
        });
    }
    compare(study, &mut rows, &systems)?;
    Ok(rows)
}

/// One value for each direction that was measured.
fn directed<T>(results: &[RowResult], of: impl Fn(&RowResult) -> T) -> PerDirection<T> {
    let one = |direction| results.iter().find(|result| result.direction == direction).map(&of);
    PerDirection { i2t: one(Direction::I2t), t2i: one(Direction::T2i) }
}

/// Hits of the images that have texts. A direction that was not measured has none.
fn system(results: &[RowResult], pairs: &Pairs) -> Result<Hits> {
    let asking: Vec<_> = (0..pairs.images()).filter(|&i| !pairs.texts_of(i).is_empty()).collect();
    let of = |direction: Direction| -> Vec<_> {
        let result = results.iter().find(|result| result.direction == direction);
        asking.iter().map(|&i| result.map_or([0; 3], |result| result.hits[i])).collect()
    };
    let captions: Vec<_> = asking.iter().map(|&i| pairs.unit(i).count() as u16).collect();
    joined_hits(&of(Direction::I2t), &of(Direction::T2i), &captions)
}

/// Compares every row with the first row, nearest neighbours.
fn compare(study: &Study, rows: &mut [ReportRow], systems: &[[Hits; 1]]) -> Result<()> {
    let (Some(plain), true) = (systems.first(), rows.len() > 1) else { return Ok(()) };
    let baseline = rows[0].rsum;
    let mut p_values = Vec::new();
    for (row, system) in rows.iter_mut().zip(systems).skip(1) {
        let mut difference = Difference { rsum: row.rsum - baseline, ci95: None, p_holm: None };
        if study.resamples > 0 {
            let interval = bootstrap_difference(system, plain, study.resamples, study.seed)?.rsum;
            let test = paired_randomisation(system, plain, study.resamples, study.seed)?;
            difference.ci95 = Some(ends(interval));
            row.p_value = Some(test.p);
            p_values.push(test.p);
        }
        row.difference = Some(difference);
    }
    let differences = rows.iter_mut().filter_map(|row| row.difference.as_mut());
    differences.zip(holm(&p_values)).for_each(|(difference, p)| difference.p_holm = Some(p));
    Ok(())
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.lo, interval.hi]
}
