//! The hubs of nearest neighbours by name, and their counts under each row.

use itm_core::Result;

use super::data::{AnswerLists, StudyData};
use super::fit::Fit;
use super::input::Test;
use super::results::RowResult;
use super::rows::StudyRow;
use crate::Direction;
use crate::hubs::{Counts, HubMeasures, worst_hubs};
use crate::report::{Histogram, Hub, HubSide, Hubs, PerDirection};

/// A row by its name, with its result in one direction.
type NamedResult<'a> = (&'a str, &'a RowResult);

/// The hubs of every measured direction. The first row must be nearest neighbours.
pub(crate) fn hubs_of<'a>(
    test: &Test<'_>,
    sets: &[StudyData<'_>],
    (rows, results): (&'a [StudyRow], &'a [Vec<RowResult>]),
) -> Result<Hubs> {
    let mut sides = PerDirection::default();
    for data in sets {
        for &direction in &data.set.directions {
            let of = |(row, results): (&'a StudyRow, &'a Vec<RowResult>)| {
                Some((&*row.name, results.iter().find(|result| result.direction == direction)?))
            };
            let named: Vec<NamedResult<'_>> = rows.iter().zip(results).filter_map(of).collect();
            let histograms = named.iter().flat_map(|(name, result)| {
                result.counts.iter().map(|counts| Histogram::new(name, counts))
            });
            let side = HubSide {
                measures: named[0].1.counts.iter().map(HubMeasures::new).collect(),
                worst: worst(test, data, direction, &named)?,
                histograms: histograms.collect(),
            };
            *direction.queries(&mut sides.i2t, &mut sides.t2i) = Some(side);
        }
    }
    let skewness = |result: &RowResult| result.counts.iter().map(Counts::skewness).sum::<f64>();
    let hs_sum = results.first().map(|results| results.iter().map(skewness).sum());
    Ok(Hubs { sides, hs_sum })
}

/// The items with the largest N_10 under nearest neighbours, by name.
fn worst(
    test: &Test<'_>,
    data: &StudyData<'_>,
    direction: Direction,
    rows: &[NamedResult<'_>],
) -> Result<Vec<Hub>> {
    let plain = data.get(direction, Fit::PLAIN);
    let (AnswerLists::Top(top), Some(standings)) = (&plain.answer.lists, &plain.answer.standings)
    else {
        return Ok(Vec::new());
    };
    let (scores, correction) = (data.set.scores(), &plain.correction);
    let mut hubs = worst_hubs((top, standings), data.pairs, test.truth, scores, correction)?;
    let name = |direction: Direction, index: u64| {
        let names = direction.queries(&test.names.images, &test.names.texts);
        names.as_ref().map(|names| names[index as usize].clone())
    };
    for hub in &mut hubs {
        hub.name = name(direction.reversed(), hub.item);
        for (method, result) in rows.iter().skip(1) {
            let count = result.counts[2].values[hub.item as usize];
            hub.after.insert((*method).to_owned(), u64::from(count));
        }
        for victim in &mut hub.victims {
            victim.name = name(direction, victim.query);
        }
    }
    Ok(hubs)
}
