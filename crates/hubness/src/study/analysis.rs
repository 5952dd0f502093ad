//! The numbers of a study: every row in every direction.

use itm_core::Result;

use super::answer::{Answer, Pooled};
use super::choice::{Chooser, Picks, by_folds, on_validation, spec_table};
use super::matching::{self, lists, matchings};
use super::method::Then;
use super::plan::Plan;
use super::set::Set;
use super::settings::Choice;
use super::spec::Spec;
use crate::choose::Goal;
use crate::report::{Param, Params};
use crate::{Candidates, Direction, Scores, Setting};

/// One row in one direction.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) params: Params,
    pub(crate) setting: Setting,
    pub(crate) pooled: Pooled,
}

/// Length of the lists in which hubs are counted.
const LISTED: usize = 10;

/// All rows in all directions of a set: `[row][direction]`.
///
/// `chooser` chooses the settings that are left open.
pub(crate) fn analyse(
    test: &mut Set<'_>,
    mut chooser: Chooser<'_>,
    plans: &[Plan],
) -> Result<Vec<Vec<Side>>> {
    let (open, settled): (Vec<&Plan>, Vec<&Plan>) =
        plans.iter().partition(|plan| plan.specs.len() > 1);
    let all = |plans: &[&Plan]| plans.iter().flat_map(|p| p.specs.clone()).collect::<Vec<_>>();
    test.prepare(&all(&settled), LISTED)?;
    test.prepare(&all(&open), 0)?;
    if let Chooser::Validation(validation) = &mut chooser {
        let choosing: Vec<&Plan> = plans.iter().filter(|plan| plan.chooses()).collect();
        validation.prepare(&all(&choosing), 0)?;
    }
    let mut picks: Vec<Vec<Picks>> = Vec::new();
    for plan in plans {
        let pick = |&direction: &Direction| pick(test, &chooser, plan, direction);
        picks.push(test.directions.iter().map(pick).collect::<Result<_>>()?);
    }
    let chosen = plans.iter().zip(&picks).flat_map(|(plan, by_direction)| {
        by_direction.iter().flatten().map(|&pick| plan.specs[pick]).collect::<Vec<_>>()
    });
    test.prepare(&chosen.collect::<Vec<_>>(), LISTED)?;
    let side = |plan: &Plan, by_direction: &[Picks]| {
        let directions = test.directions.iter().zip(by_direction);
        directions.map(|(&d, picks)| side(test, &chooser, plan, d, picks)).collect()
    };
    plans.iter().zip(&picks).map(|(plan, picks)| side(plan, picks)).collect()
}

fn pick(test: &Set<'_>, chooser: &Chooser<'_>, plan: &Plan, direction: Direction) -> Result<Picks> {
    match (&plan.specs[..], chooser) {
        ([_], _) => Ok(vec![0]),
        (specs, Chooser::Validation(set)) => {
            on_validation(&spec_table(set, direction, specs)?, Goal::Sum)
        }
        (specs, Chooser::Halves(halves)) => {
            let table = spec_table(test, direction, specs)?;
            by_folds(&table, halves.split()?, test.pairs, Goal::Sum)
        }
    }
}

fn side(
    test: &Set<'_>,
    chooser: &Chooser<'_>,
    plan: &Plan,
    direction: Direction,
    picks: &[usize],
) -> Result<Side> {
    let specs: Vec<Spec> = picks.iter().map(|&pick| plan.specs[pick]).collect();
    let fitted = |spec: Spec| test.get(direction, spec);
    let missing = |query: usize, item: usize| {
        let (image, text) = (direction.queries(query, item), direction.items(query, item));
        test.floor.is_some() && test.is_missing(test.fit.test.pair_scores(&[image], &[text])[0])
    };
    let setting =
        specs.iter().map(|&spec| fitted(spec).correction.setting()).max_by_key(|&s| s as u8);
    let setting = setting.unwrap_or(Setting::Plain);
    let mut params = joined(specs.iter().map(|&spec| named(plan, test, direction, spec)).collect());
    let pool = |answers: &[&Answer]| {
        let split = chooser.split(answers.len())?;
        Pooled::new(answers, split, test.pairs, direction, missing)
    };
    if plan.then == Then::Ranking {
        let answers: Vec<_> = specs.iter().map(|&spec| &fitted(spec).answer).collect();
        let pooled = pool(&answers)?;
        return Ok(Side { params, setting, pooled });
    }
    let (lambdas, answers): (Vec<_>, Vec<_>) =
        matched(test, chooser, plan, direction, &specs)?.into_iter().unzip();
    let answers: Vec<_> = answers.iter().collect();
    let pooled = pool(&answers)?;
    params.insert("lambda".into(), lambda_param(&lambdas));
    params.extend(matching::unusual(test.fit.settings));
    let setting = Setting::Transductive; // a matching lets queries compete
    Ok(Side { params, setting, pooled })
}

/// λ and matchings for each fold; a single entry if all folds share one.
fn matched(
    test: &Set<'_>,
    chooser: &Chooser<'_>,
    plan: &Plan,
    direction: Direction,
    specs: &[Spec],
) -> Result<Vec<([f64; 3], Answer)>> {
    let folds = match (plan.lambda, chooser) {
        (Choice::Auto, Chooser::Halves(halves)) => halves.split()?.folds(),
        _ => specs.len(),
    };
    let spec_of = |fold: usize| specs[fold.min(specs.len() - 1)];
    let mut found: Vec<Option<([f64; 3], Answer)>> = vec![None; folds];
    while let Some(first) = found.iter().position(Option::is_none) {
        // One pass for the candidates serves every fold that has this correction.
        let spec = spec_of(first);
        let lists = lists(test, direction, spec)?;
        let correction = &test.get(direction, spec).correction;
        let candidates = Candidates::new(test.fit.test, correction, &lists)?;
        let lambdas = match (plan.lambda, chooser) {
            (Choice::Number(lambda), _) => vec![[lambda; 3]; folds],
            (Choice::Auto, Chooser::Validation(set)) => {
                vec![matching::validated(set, direction, spec)?; folds]
            }
            (Choice::Auto, Chooser::Halves(halves)) => {
                matching::cross_fitted(test, &candidates, halves.split()?)?
            }
        };
        for fold in (first..folds).filter(|&fold| spec_of(fold) == spec) {
            let runs = matchings(test.fit.settings, &candidates, lambdas[fold])?;
            found[fold] = Some((lambdas[fold], Answer::matched(runs, test.pairs)));
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// A correction's parameters. If the plan chooses among several corrections: only the label of the chosen setting.
fn named(plan: &Plan, test: &Set<'_>, direction: Direction, spec: Spec) -> Params {
    let mut params = test.get(direction, spec).params.clone();
    if plan.specs.iter().any(|other| other.base != spec.base) {
        params.clear();
        params.insert("setting".into(), Param::Word(spec.label()));
    }
    params
}

/// One set of parameters, with a value for each fold where the folds differ.
fn joined(folds: Vec<Params>) -> Params {
    let mut all = Params::new();
    for name in folds.iter().flat_map(|params| params.keys()) {
        let values: Vec<_> = folds.iter().filter_map(|params| params.get(name)).cloned().collect();
        let same = values.windows(2).all(|pair| pair[0] == pair[1]);
        let value = if same { values[0].clone() } else { Param::Each(values) };
        all.insert(name.clone(), value);
    }
    all
}

/// λ by fold and K; equal values are written once.
fn lambda_param(folds: &[[f64; 3]]) -> Param {
    let of = |at: &[f64; 3]| match at {
        [a, b, c] if a == b && b == c => Param::from(*a),
        all => Param::Each(all.iter().map(|&lambda| Param::from(lambda)).collect()),
    };
    match folds {
        [one] => of(one),
        all if all.windows(2).all(|pair| pair[0] == pair[1]) => of(&all[0]),
        all => Param::Each(all.iter().map(of).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Found;
    use super::super::choice::Halves;
    use super::super::input::{Banks, Source};
    use super::super::method::{Base, Method};
    use super::super::plan::{Offer, plans};
    use super::super::settings::Settings;
    use super::super::spec::Fit;
    use super::*;
    use crate::{Pairs, ScoreMatrix, TopLists};

    /// Noise, a lift for true pairs, and image 3 as a hub.
    fn scores(seed: usize) -> ScoreMatrix {
        let noise = |at: usize| ((at * 7919 + seed * 104_729) % 1009) as f32 / 1009.0;
        let lift = |image: usize, text: usize| f32::from(u8::from(text / 3 == image)) * 0.4;
        let hub = |image: usize| if image == 3 { 0.3 } else { 0.0 };
        let value = |at: usize| noise(at) + lift(at / 90, at % 90) + hub(at / 90);
        ScoreMatrix::new(30, 90, (0..30 * 90).map(value).collect()).unwrap()
    }

    #[test]
    fn every_fold_is_matched_with_the_lambda_that_others_chose_for_it() {
        let settings = Settings::default();
        let pairs = Pairs::uniform(30, 3);
        let halves = Halves::new((0..30).map(|image| image.to_string()).collect(), 0);
        let plan = rgm_plan(&settings);
        assert_eq!((&plan.specs[..], plan.lambda), (&[Spec::PLAIN][..], Choice::Auto));
        let (mut differ, direction) = (0, Direction::T2i);
        for seed in 0..10 {
            let (scores, banks) = (scores(seed), Banks::default());
            let source = Source::from(&scores);
            let parts = source.parts().unwrap();
            let fit = Fit { test: &parts[0].scores, source, banks, settings: &settings };
            let mut set = Set::new(fit, &pairs, vec![direction], None);
            set.prepare(&plan.specs, LISTED).unwrap();
            let lists: TopLists = lists(&set, direction, Spec::PLAIN).unwrap();
            let correction = &set.get(direction, Spec::PLAIN).correction;
            let candidates = Candidates::new(set.fit.test, correction, &lists).unwrap();
            let chosen =
                matching::cross_fitted(&set, &candidates, halves.split().unwrap()).unwrap();
            let chooser = Chooser::Halves(&halves);
            let found = matched(&set, &chooser, &plan, direction, &plan.specs).unwrap();
            assert_eq!(found.len(), 2);
            for ((lambda, answer), chosen) in found.iter().zip(&chosen) {
                assert_eq!(lambda, chosen);
                let Found::Runs(runs) = &answer.found else { panic!("a matching") };
                assert_eq!(**runs, matchings(&settings, &candidates, *chosen).unwrap());
            }
            differ += usize::from(found[0].1.hits != found[1].1.hits);
        }
        assert!(differ > 2, "folds that choose alike show nothing");
    }

    fn rgm_plan(settings: &Settings) -> Plan {
        let scores = ScoreMatrix::from_rows([[0.5; 2]; 2]);
        let offer = Offer::new(&Source::from(&scores), &Banks::default(), &Direction::BOTH);
        let method = Method::One(Base::Nns, Then::Rgm);
        plans(&[method], settings, offer).unwrap().remove(1)
    }
}
