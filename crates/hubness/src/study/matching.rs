//! Greedy matching after a correction, with λ given or chosen.

use std::ops::Range;

use itm_core::Result;
use itm_core::eval::CUTS;

use super::choice::{choose_by_folds, hits_of_table};
use super::data::StudyData;
use super::fit::Fit;
use super::settings::{Runs, Settings};
use crate::choose::{FoldSplit, Goal, HitTable, choose_on_validation};
use crate::report::{Curve, Param, Params};
use crate::{
    Candidates, CapacityScale, Direction, GreedyOptions, GreedySweep, Matching, Stop,
    greedy_matching,
};

/// The most items of a query that a matching of a study gives.
pub(crate) const LONGEST: usize = 10;

/// `auto` tries λ from 1 to this value.
const MOST: f64 = 10.0;

/// The settings of matchings that differ from the defaults, as parameters of a row.
pub(crate) fn unusual(settings: &Settings) -> Params {
    let literal = || Param::Word("literal".into());
    let said = [
        (settings.rgm_capacity == CapacityScale::Literal).then(|| ("capacity".into(), literal())),
        (settings.rgm_stop == Stop::Literal).then(|| ("stop".into(), literal())),
        (settings.rgm_runs == Runs::Single).then(|| ("runs".into(), Param::Count(1))),
    ];
    said.into_iter().flatten().collect()
}

/// The cuts for which λ is chosen: each K separately, or all three together.
fn choices(settings: &Settings) -> Vec<(Range<usize>, Goal)> {
    match settings.rgm_runs {
        Runs::Single => vec![(0..3, Goal::Sum)],
        Runs::PerK => (0..3).map(|cut| cut..cut + 1).zip(Goal::EACH).collect(),
    }
}

/// The most capacities that are tried, not counting the one without a bound. The sets of the paper have fewer.
const MOST_CAPACITIES: usize = 500;

/// The hits under every λ.
struct LambdaTable {
    /// First without a bound, then from loose to tight bounds.
    table: HitTable,
    /// The λ of each entry.
    lambdas: Vec<f64>,
    /// The smallest λ that bounds nothing on this set, if it is at most 10; otherwise ∞.
    idle: f64,
}

/// Hits without a bound and for every capacity that bounds something; for at most [`MOST_CAPACITIES`] of these.
fn lambda_table(
    data: &StudyData<'_>,
    candidates: &Candidates<'_>,
    cut: usize,
) -> Result<LambdaTable> {
    let &Settings { rgm_capacity: scale, rgm_stop: stop, .. } = data.settings;
    let (direction, k) = (candidates.direction, CUTS[cut] as usize);
    let share = fair_share(candidates, k, scale);
    let unit = candidates.capacity(1.0, k, scale)?;
    let mut sweep = GreedySweep::new(candidates, k)?;
    let mut all = HitTable::default();
    let hits = |sweep: &GreedySweep<'_>| {
        let places = sweep.places(stop, data.pairs);
        let hit = |place: &Option<usize>| {
            // If each K has its own run, only the cut of that K matters.
            CUTS.map(|k| place.is_some_and(|place| place < k as usize))
        };
        let hits: Vec<_> = places.iter().map(hit).collect();
        hits_of_table(&hits, data.pairs, direction)
    };
    all.push("lambda=inf", 0.0, hits(&sweep))?;
    let mut lambdas = vec![f64::INFINITY];
    let loose = (MOST * share) as usize;
    // The share may be fractional: 5 queries for 2 items are 2.5 per item, and λ = 1 allows 3.
    let lambda_of = |capacity: usize| if capacity == unit { 1.0 } else { capacity as f64 / share };
    let idle = match sweep.largest().max(unit) {
        largest if largest <= loose.max(unit) => lambda_of(largest),
        _ => f64::INFINITY,
    };
    let end = (loose + 1).min(sweep.largest());
    // Few items share many queries: thousands of capacities, and each looks at all edges.
    let step = end.saturating_sub(unit).div_ceil(MOST_CAPACITIES).max(1);
    for capacity in (unit..end).step_by(step).rev() {
        sweep.lower(capacity)?;
        let lambda = lambda_of(capacity);
        all.push(format_args!("lambda={lambda}"), 1.0 / capacity as f64, hits(&sweep))?;
        lambdas.push(lambda);
    }
    Ok(LambdaTable { table: all, lambdas, idle })
}

/// The capacity at λ = 1 before rounding.
fn fair_share(candidates: &Candidates<'_>, k: usize, scale: CapacityScale) -> f64 {
    let each = candidates.queries as f64 / candidates.items as f64;
    match scale {
        CapacityScale::Balanced => k as f64 * each.max(1.0),
        CapacityScale::Literal => k as f64,
    }
}

/// λ for every fold and cut, chosen on other images.
pub(crate) fn cross_fitted(
    data: &StudyData<'_>,
    candidates: &Candidates<'_>,
    split: &FoldSplit,
) -> Result<Vec<[f64; 3]>> {
    let mut chosen = vec![[f64::INFINITY; 3]; split.folds];
    for (cuts, goal) in choices(data.settings) {
        let LambdaTable { table, lambdas, .. } = lambda_table(data, candidates, cuts.end - 1)?;
        let picks = choose_by_folds(&table, split, (data.pairs, candidates.direction), goal)?;
        for (fold, pick) in chosen.iter_mut().zip(picks) {
            fold[cuts.clone()].fill(lambdas[pick]);
        }
    }
    Ok(chosen)
}

/// λ for every cut, chosen on a validation set; of equally good values, the smallest.
pub(crate) fn validated(data: &StudyData<'_>, direction: Direction, fit: Fit) -> Result<[f64; 3]> {
    let correction = &data.get(direction, fit).correction;
    let candidates = Candidates::new(data.set.scores(), correction, LONGEST)?;
    let mut chosen = [f64::INFINITY; 3];
    for (cuts, goal) in choices(data.settings) {
        let LambdaTable { mut table, mut lambdas, idle } =
            lambda_table(data, &candidates, cuts.end - 1)?;
        // No bound gives the same hits as the smallest λ that bounds nothing, and that λ is smaller than ∞.
        lambdas[0] = idle;
        table.candidates.reverse(); // of equally good ones, the first is chosen
        lambdas.reverse();
        chosen[cuts].fill(lambdas[choose_on_validation(&table, goal)?]);
    }
    Ok(chosen)
}

/// The matchings behind the three recalls: one for each K, or one for all.
pub(crate) fn matchings(
    settings: &Settings,
    candidates: &Candidates<'_>,
    lambda: [f64; 3],
) -> Result<Vec<Matching>> {
    let &Settings { rgm_capacity: scale, rgm_stop: stop, .. } = settings;
    let matching = |(cuts, _): (Range<usize>, Goal)| {
        let cut = cuts.end - 1;
        let options = GreedyOptions { k: CUTS[cut] as usize, lambda: lambda[cut], scale, stop };
        greedy_matching(candidates, &options)
    };
    choices(settings).into_iter().map(matching).collect()
}

/// R@10 against λ from 1 to 10, as in the paper's Figure 4.
pub(crate) fn curve(
    data: &StudyData<'_>,
    direction: Direction,
    fit: Fit,
    label: &str,
) -> Result<Curve> {
    let &Settings { rgm_capacity: scale, rgm_stop: stop, .. } = data.settings;
    let correction = &data.get(direction, fit).correction;
    let candidates = Candidates::new(data.set.scores(), correction, LONGEST)?;
    let mut sweep = GreedySweep::new(&candidates, 10)?;
    let recall = |sweep: &GreedySweep<'_>| {
        let places = sweep.places(stop, data.pairs);
        let queries = (0..places.len()).filter(|&q| !direction.truths(data.pairs, q).is_empty());
        100.0 * places.iter().flatten().count() as f64 / queries.count() as f64
    };
    let unconstrained = Some(recall(&sweep));
    let mut points = Vec::new();
    for lambda in (4..=40).rev().map(|quarter| f64::from(quarter) / 4.0) {
        sweep.lower(candidates.capacity(lambda, 10, scale)?)?;
        points.push((lambda, recall(&sweep)));
    }
    points.reverse();
    let (x, y) = points.into_iter().unzip();
    Ok(Curve { label: label.into(), direction, x, y, unconstrained })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::input::{Banks, ScoreSet};
    use crate::{Correction, Pairs, ScoreMatrix};

    /// 20 queries for 8 items are 2.5 per item: every λ of the table must give the capacity that its hits were counted with.
    #[test]
    fn a_lambda_means_its_capacity_where_the_share_is_no_whole_number() {
        let value = |at: usize| ((at * 7919) % 101) as f32 / 101.0 + (at / 20 == 3) as u8 as f32;
        let scores = ScoreMatrix::new(8, 20, (0..160).map(value).collect()).unwrap();
        let pairs = Pairs::new(8, (0..20).map(|t| t % 8).collect()).unwrap();
        let settings = Settings::default();
        let set = ScoreSet { directions: vec![Direction::T2i], ..ScoreSet::whole(&scores) };
        let data = StudyData::new(set, &pairs, Banks::default(), &settings);
        let plain = Correction::none(&scores, Direction::T2i);
        let candidates = Candidates::new(&scores, &plain, 1).unwrap();
        let LambdaTable { table, lambdas, idle } = lambda_table(&data, &candidates, 0).unwrap();
        assert!(lambdas.len() > 3 && lambdas.contains(&1.0));
        // A capacity of at least the largest number of queries that hold one item changes nothing.
        let most = GreedySweep::new(&candidates, 1).unwrap().largest();
        assert_eq!(candidates.capacity(idle, 1, CapacityScale::Balanced).unwrap(), most);
        for (candidate, &lambda) in table.candidates.iter().zip(&lambdas).skip(1) {
            let capacity = candidates.capacity(lambda, 1, CapacityScale::Balanced).unwrap();
            assert!((candidate.correction * capacity as f64 - 1.0).abs() < 1e-12, "λ = {lambda}");
        }
    }

    /// Two images are the answers of 4,000 texts: 2,000 capacities would each look at all of them.
    #[test]
    fn many_queries_of_few_items_try_some_capacities() {
        let scores = [0.9, 0.1].map(|score| vec![score; 4000]).concat();
        let scores = ScoreMatrix::new(2, 4000, scores).unwrap();
        let pairs = Pairs::new(2, (0..4000).map(|text| text % 2).collect()).unwrap();
        let settings = Settings::default();
        let set = ScoreSet { directions: vec![Direction::T2i], ..ScoreSet::whole(&scores) };
        let data = StudyData::new(set, &pairs, Banks::default(), &settings);
        let plain = Correction::none(&scores, Direction::T2i);
        let candidates = Candidates::new(&scores, &plain, 1).unwrap();
        let LambdaTable { lambdas, .. } = lambda_table(&data, &candidates, 0).unwrap();
        assert!(
            (MOST_CAPACITIES / 2..=MOST_CAPACITIES + 1).contains(&lambdas.len()),
            "{}",
            lambdas.len()
        );
        assert!(lambdas.contains(&1.0));
    }
}
