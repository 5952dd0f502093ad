//! The numbers of a study: every row in every direction.

use itm_core::eval::{CUTS, DirectionMetrics, Standing, TiePolicy, precisions};
use itm_core::{Pairs, Result};

use super::choice::{Chooser, by_image};
use super::data::{Answer, StudyData};
use super::fit::Fit;
use super::matching::{self, matchings};
use super::method::Then;
use super::rows::StudyRow;
use super::settings::Choice;
use crate::choose::FoldSplit;
use crate::hubs::Counts;
use crate::report::{Param, Params, Recalls};
use crate::{Candidates, Direction, Setting};

/// One row in one direction.
#[derive(Debug, Clone)]
pub(crate) struct RowResult {
    pub(crate) direction: Direction,
    pub(crate) params: Params,
    pub(crate) setting: Setting,
    /// Hits at 1, 5, 10 of every image.
    pub(crate) hits: Vec<[u16; 3]>,
    pub(crate) recalls: Recalls,
    /// `N_1`, `N_5`, `N_10`.
    pub(crate) counts: [Counts; 3],
}

/// Length of the lists in which hubs are counted.
const LISTED: usize = 10;

/// Length of the lists of every query: with judged pairs at least the number of its true items.
fn list_length(data: &StudyData<'_>) -> usize {
    if !data.pairs.is_judged() {
        return LISTED;
    }
    let (images, texts) = (data.pairs.images(), data.pairs.texts());
    let of = |direction: Direction| {
        let queries = 0..direction.queries(images, texts);
        queries.map(move |query| direction.truths(data.pairs, query).len()).max()
    };
    data.set.directions.iter().filter_map(|&d| of(d)).fold(LISTED, usize::max)
}

/// All rows in all directions of a set of scores: `[row][direction]`.
///
/// `chooser` chooses the settings that are left open; none is needed if none is.
pub(crate) fn measure(
    data: &mut StudyData<'_>,
    mut chooser: Option<Chooser<'_>>,
    rows: &[StudyRow],
) -> Result<Vec<Vec<RowResult>>> {
    let fits_of = |wanted: fn(&StudyRow) -> bool| -> Vec<Fit> {
        rows.iter().filter(|row| wanted(row)).flat_map(|row| row.fits.clone()).collect()
    };
    let listed = list_length(data);
    data.prepare(&fits_of(|row| row.fits.len() == 1), listed)?;
    data.prepare(&fits_of(|row| row.fits.len() > 1), 0)?;
    if let Some(Chooser::Validation(validation)) = &mut chooser {
        validation.prepare(&fits_of(StudyRow::chooses), 0)?;
    }
    let chooser = chooser.as_ref();
    let directions = data.set.directions.clone();
    let choose = |row: &StudyRow, direction: Direction| -> Result<Vec<Fit>> {
        let places = chooser.map_or(Ok(vec![0]), |c| c.choose(row, data, direction))?;
        Ok(places.into_iter().map(|place| row.fits[place]).collect())
    };
    let of_row = |row| directions.iter().map(|&d| choose(row, d)).collect::<Result<Vec<_>>>();
    let chosen = rows.iter().map(of_row).collect::<Result<Vec<_>>>()?;
    data.prepare(&chosen.concat().concat(), listed)?;
    let one = |row: &StudyRow, fits: &[Vec<Fit>]| {
        let all = directions.iter().zip(fits);
        all.map(|(&direction, fits)| result(data, chooser, row, direction, fits)).collect()
    };
    rows.iter().zip(&chosen).map(|(row, fits)| one(row, fits)).collect()
}

fn result(
    data: &StudyData<'_>,
    chooser: Option<&Chooser<'_>>,
    row: &StudyRow,
    direction: Direction,
    fits: &[Fit],
) -> Result<RowResult> {
    let results: Vec<_> = fits.iter().map(|&fit| data.get(direction, fit)).collect();
    let mut params = joined(fits.iter().map(|&fit| named(row, data, direction, fit)).collect());
    if row.then == Then::Ranking {
        let settings = results.iter().map(|result| result.correction.setting());
        let setting = settings.max_by_key(|&setting| setting as u8).unwrap_or(Setting::Plain);
        let answers: Vec<_> = results.iter().map(|result| &result.answer).collect();
        return Ok(pooled(&answers, chooser, data, direction, (params, setting)));
    }
    let (lambdas, answers): (Vec<[f64; 3]>, Vec<_>) =
        matched(data, chooser, row, direction, fits)?.into_iter().unzip();
    // Equal values are written once.
    let lambdas = lambdas.into_iter().map(|at| one_or_each(at.map(Param::from).to_vec()));
    params.insert("lambda".into(), one_or_each(lambdas.collect()));
    params.extend(matching::unusual(data.settings));
    let answers: Vec<_> = answers.iter().collect();
    // A matching lets queries compete.
    Ok(pooled(&answers, chooser, data, direction, (params, Setting::Transductive)))
}

/// The result of answers over the folds of the images: `answers[f]` serves the queries of fold `f`; a single answer serves
/// all.
fn pooled(
    answers: &[&Answer],
    chooser: Option<&Chooser<'_>>,
    data: &StudyData<'_>,
    direction: Direction,
    (params, setting): (Params, Setting),
) -> RowResult {
    let pairs = data.pairs;
    let folds: Option<&FoldSplit> = match chooser {
        Some(Chooser::Folds(split)) if answers.len() > 1 => Some(split),
        _ => None,
    };
    let answer = |query: usize| {
        let of = |split: &FoldSplit| Some(split.of_image()[direction.unit(pairs, query)?]);
        let fold = folds.and_then(of).unwrap_or(0);
        answers[fold.min(answers.len() - 1)]
    };
    let queries = direction.queries(pairs.images(), pairs.texts());
    let hits: Vec<_> = (0..queries).map(|query| answer(query).hits[query]).collect();
    let has_truth = |query: &usize| !direction.truths(pairs, *query).is_empty();
    let measured: Vec<usize> = (0..queries).filter(has_truth).collect();
    let recall = |cut: usize| {
        let found = measured.iter().filter(|&&query| hits[query][cut]).count();
        100.0 * found as f64 / measured.len() as f64
    };
    let standing = |&query: &usize| Some(answer(query).standings.as_ref()?[query]);
    let standings: Option<Vec<_>> = measured.iter().map(standing).collect();
    // A true item that a run does not hold has no rank.
    let ranked = standings.as_ref().filter(|all| all.iter().all(|s| s.greater < u32::MAX));
    let decided = |s: &&Standing| CUTS.iter().any(|&k| s.decided_at(k));
    let decided_by_ties = standings.as_ref().map(|all| all.iter().filter(decided).count() as u64);
    let ranks = ranked.map(|all| DirectionMetrics::new(all, TiePolicy::Index));
    let whole = |query: usize| answer(query).lists.list(0, query);
    let precision = (pairs.is_judged() && standings.is_some())
        .then(|| mean_precisions(&measured, whole, pairs, direction));
    let recalls = Recalls {
        r1: recall(0),
        r5: recall(1),
        r10: recall(2),
        median_rank: ranks.map(|m| m.median),
        mean_rank: ranks.map(|m| m.mean),
        map_at_r: precision.map(|[map, _]| map),
        r_precision: precision.map(|[_, precision]| precision),
        queries: measured.len() as u64,
        decided_by_ties,
    };
    let items = direction.items(pairs.images(), pairs.texts());
    let counts = [0, 1, 2].map(|cut: usize| {
        let lists = (0..queries).map(|query| answer(query).lists.items(cut, query));
        Counts::new(items, CUTS[cut] as usize, lists)
    });
    let hits = by_image(&hits, pairs, direction);
    RowResult { direction, params, setting, hits, recalls, counts }
}

/// mAP@R and R-precision of the queries, in percent.
fn mean_precisions<'a>(
    queries: &[usize],
    list: impl Fn(usize) -> &'a [u32],
    pairs: &Pairs,
    direction: Direction,
) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for &query in queries {
        let truths = direction.truths(pairs, query);
        let is_true = |item: &u32| truths.binary_search(&(*item as usize)).is_ok();
        let of_query = precisions(list(query), truths.len(), is_true);
        sums = [sums[0] + of_query[0], sums[1] + of_query[1]];
    }
    sums.map(|sum| 100.0 * sum / queries.len() as f64)
}

/// λ and matchings for each fold; a single entry if all folds share one.
fn matched(
    data: &StudyData<'_>,
    chooser: Option<&Chooser<'_>>,
    row: &StudyRow,
    direction: Direction,
    fits: &[Fit],
) -> Result<Vec<([f64; 3], Answer)>> {
    let folds = match (row.lambda, chooser) {
        (Choice::Auto, Some(Chooser::Folds(split))) => split.folds,
        _ => fits.len(),
    };
    let fit_of = |fold: usize| fits[fold.min(fits.len() - 1)];
    let mut all: Vec<Option<([f64; 3], Answer)>> = vec![None; folds];
    while let Some(first) = all.iter().position(Option::is_none) {
        // One pass for the candidates serves every fold that has this correction.
        let fit = fit_of(first);
        let correction = &data.get(direction, fit).correction;
        let candidates = Candidates::new(data.set.scores(), correction, matching::LONGEST)?;
        let lambdas = match (row.lambda, chooser) {
            (Choice::Number(lambda), _) => vec![[lambda; 3]; folds],
            (Choice::Auto, Some(Chooser::Validation(set))) => {
                vec![matching::validated(set, direction, fit)?; folds]
            }
            (Choice::Auto, Some(Chooser::Folds(split))) => {
                matching::cross_fitted(data, &candidates, split)?
            }
            (Choice::Auto, None) => unreachable!("a row with an open λ chooses"),
        };
        for fold in (first..folds).filter(|&fold| fit_of(fold) == fit) {
            let runs = matchings(data.settings, &candidates, lambdas[fold])?;
            all[fold] = Some((lambdas[fold], Answer::matched(runs, data.pairs)));
        }
    }
    Ok(all.into_iter().flatten().collect())
}

/// A correction's parameters. If the row chooses among several corrections: only the label of the chosen setting.
fn named(row: &StudyRow, data: &StudyData<'_>, direction: Direction, fit: Fit) -> Params {
    let params = &data.get(direction, fit).params;
    if row.fits.iter().any(|other| other.base != fit.base) {
        return Params::from([("setting".into(), Param::Word(fit.used(params).label()))]);
    }
    params.clone()
}

/// One set of parameters, with a value for each fold where the folds differ.
fn joined(folds: Vec<Params>) -> Params {
    let mut all = Params::new();
    for name in folds.iter().flat_map(|params| params.keys()) {
        let values: Vec<_> = folds.iter().filter_map(|params| params.get(name)).cloned().collect();
        all.insert(name.clone(), one_or_each(values));
    }
    all
}

/// One value if all are the same.
fn one_or_each(values: Vec<Param>) -> Param {
    let same = values.windows(2).all(|pair| pair[0] == pair[1]);
    if same { values[0].clone() } else { Param::Each(values) }
}

#[cfg(test)]
mod tests {
    use super::super::data::AnswerLists;
    use super::super::input::{Banks, ScoreSet, TestScores};
    use super::super::method::{Base, Method};
    use super::super::rows::{Limits, rows};
    use super::super::settings::Settings;
    use super::*;
    use crate::rows::Length;
    use crate::{Pairs, ScoreMatrix};

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
        let names: Vec<_> = (0..30).map(|image| image.to_string()).collect();
        let halves = FoldSplit::hashed(&names, 2, 0).unwrap();
        let row = rgm_row(&settings);
        assert_eq!((&row.fits[..], row.lambda), (&[Fit::PLAIN][..], Choice::Auto));
        let (mut differ, direction) = (0, Direction::T2i);
        for seed in 0..10 {
            let scores = scores(seed);
            let set = ScoreSet { directions: vec![direction], ..ScoreSet::whole(&scores) };
            let mut data = StudyData::new(set, &pairs, Banks::default(), &settings);
            data.prepare(&row.fits, LISTED).unwrap();
            let correction = &data.get(direction, Fit::PLAIN).correction;
            let candidates = Candidates::new(&scores, correction, 10).unwrap();
            let chosen = matching::cross_fitted(&data, &candidates, &halves).unwrap();
            let chooser = Chooser::Folds(&halves);
            let found = matched(&data, Some(&chooser), &row, direction, &row.fits).unwrap();
            assert_eq!(found.len(), 2);
            for ((lambda, answer), chosen) in found.iter().zip(&chosen) {
                assert_eq!(lambda, chosen);
                let AnswerLists::Matchings(runs) = &answer.lists else { panic!("a matching") };
                assert_eq!(**runs, matchings(&settings, &candidates, *chosen).unwrap());
            }
            differ += usize::from(found[0].1.hits != found[1].1.hits);
        }
        assert!(differ > 2, "folds that choose alike show nothing");
    }

    fn rgm_row(settings: &Settings) -> StudyRow {
        let scores = ScoreMatrix::from_rows([[0.5; 2]; 2]);
        let (all, banks) = (TestScores::All(&scores), Banks::default());
        let limits = Limits::new(&all, Length::Unit, &banks, &Direction::BOTH);
        rows(&[Method::One(Base::Nns, Then::Rgm)], settings, limits).unwrap().remove(1)
    }
}
