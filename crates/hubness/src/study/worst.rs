//! The hubs of nearest neighbours by name, and their counts under each row.

use itm_core::eval::TiePolicy;

use super::analysis::Side;
use super::answer::Found;
use super::input::Test;
use super::set::Set;
use super::spec::Spec;
use super::table::measures;
use crate::Direction;
use crate::hubs::{self, Counts, Worst, complete_truth, worst_hubs};
use crate::report::{Directed, Histogram, Hub, HubSide, Hubs, Victim};

/// A row by its name, with its side of one direction.
type Named<'a> = (&'a str, &'a Side);

/// The hubs of every measured direction. The first row must be nearest neighbours.
pub(crate) fn hubs_of<'a>(
    test: &Test<'_>,
    sets: &[Set<'_>],
    rows: impl Iterator<Item = (&'a str, &'a [Side])> + Clone,
) -> Hubs {
    let mut sides = Directed::default();
    for set in sets {
        for &direction in &set.directions {
            let of = |(name, sides): (&'a str, &'a [Side])| {
                Some((name, sides.iter().find(|side| side.pooled.direction == direction)?))
            };
            let named: Vec<Named<'_>> = rows.clone().filter_map(of).collect();
            let found = Some(hub_side(test, set, direction, &named));
            match direction {
                Direction::I2t => sides.i2t = found,
                Direction::T2i => sides.t2i = found,
            }
        }
    }
    let skewness = |side: &Side| side.pooled.counts.iter().map(Counts::skewness).sum::<f64>();
    let plain = rows.clone().next();
    Hubs { sides, hs_sum: plain.map(|(_, sides)| sides.iter().map(skewness).sum()) }
}

fn hub_side(test: &Test<'_>, set: &Set<'_>, direction: Direction, rows: &[Named<'_>]) -> HubSide {
    let histograms = rows
        .iter()
        .flat_map(|(name, side)| side.pooled.counts.iter().map(|counts| histogram(name, counts)));
    HubSide {
        measures: rows[0].1.pooled.counts.iter().map(measures).collect(),
        worst: worst(test, set, direction, rows),
        histograms: histograms.collect(),
    }
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
fn worst(test: &Test<'_>, set: &Set<'_>, direction: Direction, rows: &[Named<'_>]) -> Vec<Hub> {
    let (plain, pairs) = (set.get(direction, Spec::PLAIN), set.pairs);
    let Found::Top(top) = &plain.answer.found else { return Vec::new() };
    let mut hubs = worst_hubs(top, pairs, Worst::default());
    complete_truth(&mut hubs, pairs, set.fit.test, &plain.correction);
    let all = worst_hubs(top, pairs, Worst { within: 10, victims: 0, ..Worst::default() });
    let items: Vec<_> = all.iter().map(|hub| hub.item).collect();
    let number = direction.items(pairs.images(), pairs.texts());
    let lists = hubs::Lists::top(number, 10, top);
    let true_ones = test.truth.map(|truth| hubs::deserved(&lists, truth, &items, hubs::HALF));
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
        let count = |side: &Side, cut: usize| u64::from(side.pooled.counts[cut].values()[hub.item]);
        let after = rows.iter().skip(1).map(|(name, side)| ((*name).to_owned(), count(side, 2)));
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
    hubs.iter().zip(&all).enumerate().map(of_hub).collect()
}
