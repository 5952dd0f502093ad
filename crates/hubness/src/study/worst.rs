//! The hubs of nearest neighbours by name, and their counts under each row.

use itm_core::Result;
use itm_core::eval::TiePolicy;

use super::data::{AnswerLists, StudyData};
use super::fit::Fit;
use super::input::Test;
use super::results::RowResult;
use super::table::measures;
use crate::Direction;
use crate::hubs::{self, Counts, Worst, complete_truth, worst_hubs};
use crate::report::{Directed, Histogram, Hub, HubSide, Hubs, Victim};

/// A row by its name, with its result in one direction.
type NamedResult<'a> = (&'a str, &'a RowResult);

/// The hubs of every measured direction. The first row must be nearest neighbours.
pub(crate) fn hubs_of<'a>(
    test: &Test<'_>,
    sets: &[StudyData<'_>],
    rows: impl Iterator<Item = (&'a str, &'a [RowResult])> + Clone,
) -> Result<Hubs> {
    let mut sides = Directed::default();
    for data in sets {
        for &direction in &data.set.directions {
            let of = |(name, results): (&'a str, &'a [RowResult])| {
                Some((name, results.iter().find(|result| result.direction == direction)?))
            };
            let named: Vec<NamedResult<'_>> = rows.clone().filter_map(of).collect();
            *direction.queries(&mut sides.i2t, &mut sides.t2i) =
                Some(hub_side(test, data, direction, &named)?);
        }
    }
    let skewness = |result: &RowResult| result.counts.iter().map(Counts::skewness).sum::<f64>();
    let plain = rows.clone().next();
    Ok(Hubs { sides, hs_sum: plain.map(|(_, results)| results.iter().map(skewness).sum()) })
}

fn hub_side(
    test: &Test<'_>,
    data: &StudyData<'_>,
    direction: Direction,
    rows: &[NamedResult<'_>],
) -> Result<HubSide> {
    let counts = |(name, result): &NamedResult<'_>| {
        result.counts.iter().map(|counts| histogram(name, counts)).collect::<Vec<_>>()
    };
    Ok(HubSide {
        measures: rows[0].1.counts.iter().map(measures).collect(),
        worst: worst(test, data, direction, rows)?,
        histograms: rows.iter().flat_map(counts).collect(),
    })
}

fn histogram(method: &str, counts: &Counts) -> Histogram {
    let found = hubs::Histogram::new(counts);
    let never = (found.never > 0).then_some((0, found.never as u64));
    let bars = found.bars.iter().map(|bar| (u64::from(bar.count), bar.items as u64));
    Histogram {
        method: method.into(),
        k: counts.k() as u64,
        counts: never.into_iter().chain(bars).collect(),
    }
}

/// The items with the largest N_10 under nearest neighbours, by name.
fn worst(
    test: &Test<'_>,
    data: &StudyData<'_>,
    direction: Direction,
    rows: &[NamedResult<'_>],
) -> Result<Vec<Hub>> {
    let (plain, pairs) = (data.get(direction, Fit::PLAIN), data.pairs);
    let AnswerLists::Top(top) = &plain.answer.lists else { return Ok(Vec::new()) };
    let mut hubs = worst_hubs(top, pairs, Worst::default());
    complete_truth(&mut hubs, pairs, data.set.scores, &plain.correction)?;
    let all = worst_hubs(top, pairs, Worst { within: 10, victims: 0, ..Worst::default() });
    let items: Vec<_> = all.iter().map(|hub| hub.item).collect();
    let number = direction.items(pairs.images(), pairs.texts());
    let lists = hubs::Lists::top(number, 10, top);
    let true_ones = test.truth.map(|truth| hubs::deserved(&lists, truth, &items));
    // Of the lists in which the hub is wrong by the pairs, the share in which it is right by the truth.
    let deserved = |at: usize| {
        let (found, wrong) = (true_ones.as_ref()?[at], all[at].wrong);
        let paired = (found.count as usize).saturating_sub(wrong);
        let right = (found.relevant as usize).saturating_sub(paired);
        (wrong > 0).then(|| right as f64 / wrong as f64)
    };
    let name = |direction: Direction, index: usize| {
        let names = direction.queries(&test.names.images, &test.names.texts);
        names.as_ref().map(|names| names[index].clone())
    };
    let standings = plain.answer.standings.as_deref().unwrap_or_default();
    let victim = |victim: &hubs::Victim| {
        let truth = victim.truth?;
        let rank = standings.get(victim.query)?.rank(TiePolicy::Index) + 1.0;
        let known = truth.score.is_finite() && rank < f64::from(u32::MAX);
        known.then(|| Victim {
            query: victim.query as u64,
            name: name(direction, victim.query),
            hub_score: victim.score,
            true_score: truth.score,
            true_rank: rank as u64,
        })
    };
    let of_hub = |(at, (hub, all)): (usize, (&hubs::Hub, &hubs::Hub))| {
        let count =
            |result: &RowResult, cut: usize| u64::from(result.counts[cut].values()[hub.item]);
        let after =
            rows.iter().skip(1).map(|(name, result)| ((*name).to_owned(), count(result, 2)));
        Hub {
            item: hub.item as u64,
            name: name(direction.reversed(), hub.item),
            count: count(rows[0].1, 2),
            first: count(rows[0].1, 0),
            wrong: all.wrong as u64,
            deserved: deserved(at),
            after: after.collect(),
            victims: hub.victims.iter().filter_map(victim).collect(),
        }
    };
    Ok(hubs.iter().zip(&all).enumerate().map(of_hub).collect())
}
