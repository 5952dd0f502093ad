//! One set of scores with the corrections that were fitted on it, and their answers.

use itm_core::eval::{CUTS, Standing, TiePolicy};
use itm_core::scored::visit;
use itm_core::{Pairs, Result};

use super::fit::{Fit, whole};
use super::input::{Banks, ScoreSet};
use super::method::Base;
use super::settings::Settings;
use crate::pass::{RankScan, ScanResult};
use crate::report::Params;
use crate::{AnyCorrection, Direction, Matching, Rescore, Survey, TopLists};

/// Scores, pairs, and the corrections that were fitted on them.
pub(crate) struct StudyData<'a> {
    pub(crate) set: ScoreSet<'a>,
    pub(crate) pairs: &'a Pairs,
    pub(crate) banks: Banks<'a>,
    pub(crate) settings: &'a Settings,
    results: Vec<FitResult>,
}

/// A correction of one direction with its answer.
#[derive(Debug)]
pub(crate) struct FitResult {
    fit: Fit,
    pub(crate) correction: AnyCorrection,
    pub(crate) params: Params,
    pub(crate) answer: Answer,
    /// How strongly the correction changes scores.
    pub(crate) strength: f64,
    listed: usize,
}

/// The lists of one method in one direction, and what they hit.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Whether each query hits at 1, 5, 10.
    pub(crate) hits: Vec<[bool; 3]>,
    /// Ranks of the true items; none after a matching.
    pub(crate) standings: Option<Vec<Standing>>,
    pub(crate) lists: AnswerLists,
}

/// The lists behind R@1, R@5 and R@10 of every query.
#[derive(Debug, Clone)]
pub(crate) enum AnswerLists {
    /// One ranking; R@K looks at its first K. Items that a run does not hold come last, with −∞.
    Top(TopLists),
    /// One matching for each K, or one for all.
    Matchings(Vec<Matching>),
}

impl AnswerLists {
    /// The items of a query that R@1, R@5 or R@10 (`cut` 0, 1, 2) looks at.
    pub(crate) fn items(&self, cut: usize, query: usize) -> &[u32] {
        let list = self.list(cut, query);
        &list[..list.len().min(CUTS[cut] as usize)]
    }

    /// The whole list behind [`items`](Self::items), without what a run does not hold.
    pub(crate) fn list(&self, cut: usize, query: usize) -> &[u32] {
        match self {
            Self::Top(top) => top.held(query),
            Self::Matchings(runs) => runs[cut.min(runs.len() - 1)].items(query),
        }
    }
}

impl Answer {
    fn ranked(standings: Vec<Standing>, top: TopLists) -> Self {
        let hit = |s: &Standing| CUTS.map(|k| s.hit(k, TiePolicy::Index) > 0.0);
        let hits = standings.iter().map(hit).collect();
        Self { hits, standings: Some(standings), lists: AnswerLists::Top(top) }
    }

    pub(crate) fn matched(runs: Vec<Matching>, pairs: &Pairs) -> Self {
        let places = [0, 1, 2].map(|cut: usize| runs[cut.min(runs.len() - 1)].places(pairs));
        let hit = |cut: usize, query: usize| {
            places[cut][query].is_some_and(|place| place < CUTS[cut] as usize)
        };
        let hits = (0..places[0].len()).map(|query| [0, 1, 2].map(|cut| hit(cut, query))).collect();
        Self { hits, standings: None, lists: AnswerLists::Matchings(runs) }
    }
}

impl<'a> StudyData<'a> {
    pub(crate) fn new(
        set: ScoreSet<'a>,
        pairs: &'a Pairs,
        banks: Banks<'a>,
        settings: &'a Settings,
    ) -> Self {
        Self { set, pairs, banks, settings, results: Vec::new() }
    }

    /// The correction that was prepared for a direction.
    ///
    /// # Panics
    /// If it was not prepared.
    pub(crate) fn get(&self, direction: Direction, fit: Fit) -> &FitResult {
        let wanted = |r: &&FitResult| r.fit == fit && r.correction.direction() == direction;
        self.results.iter().find(wanted).expect("fits are prepared before they are used")
    }

    /// Fits and scans the corrections that are not there yet. One pass serves all fits of CSLS and IS, one pass serves all
    /// ranks and lists of `k` items.
    pub(crate) fn prepare(&mut self, fits: &[Fit], k: usize) -> Result<()> {
        let mut fresh: Vec<Fit> = Vec::new();
        for &fit in fits {
            let there = |result: &FitResult| result.fit == fit && result.listed >= k;
            if !self.results.iter().any(there) && !fresh.contains(&fit) {
                fresh.push(fit);
            }
        }
        self.results.retain(|result| !fresh.contains(&result.fit));
        let corrections = self.corrections(&fresh)?;
        let mut scans = Vec::with_capacity(corrections.len());
        for (_, correction, ..) in &corrections {
            scans.push(RankScan::new(correction, k).with_ranks(self.set.scores(), self.pairs)?);
        }
        let scanned = visit(self.set.scores(), &scans)?;
        drop(scans);
        for ((fit, correction, params, strength), scanned) in corrections.into_iter().zip(scanned) {
            let answer = self.answer(scanned, correction.direction())?;
            let result = FitResult { fit, correction, params, answer, strength, listed: k };
            self.results.push(result);
        }
        Ok(())
    }

    /// Every correction for every direction, with its parameters and its strength.
    fn corrections(&self, fresh: &[Fit]) -> Result<Vec<(Fit, AnyCorrection, Params, f64)>> {
        let survey = self.survey(fresh)?;
        let (images, texts) = (self.set.scores().images(), self.set.scores().texts());
        let mut corrections = Vec::new();
        for &fit in fresh {
            for &direction in &self.set.directions {
                let sizes = direction.sides(images, texts);
                let params = || fit.params(self.settings, sizes);
                let (correction, params) = match (fit.base, fit.number, &survey) {
                    (Base::Csls, Some(n), Some(survey)) if !fit.bank => {
                        (survey.csls(direction, whole(n))?.into_any(), params())
                    }
                    (Base::Is, Some(beta), Some(survey)) if !fit.bank => {
                        (survey.inverted_softmax(direction, beta)?.into_any(), params())
                    }
                    _ => fit.fit(self.set.scores(), &self.banks, self.settings, direction)?,
                };
                let strength = strength(correction.map());
                corrections.push((fit, self.set.held(correction), params, strength));
            }
        }
        Ok(corrections)
    }

    /// One survey for all fits of CSLS and IS, if both directions are measured on the same scores.
    fn survey(&self, fresh: &[Fit]) -> Result<Option<Survey<'_>>> {
        let numbers = |base: Base| {
            let of = fresh.iter().filter(move |fit| fit.base == base && !fit.bank);
            of.filter_map(|fit| fit.number)
        };
        let ks: Vec<usize> = numbers(Base::Csls).map(whole).collect();
        let betas: Vec<f64> = numbers(Base::Is).collect();
        if self.set.directions.len() < 2 || ks.is_empty() && betas.is_empty() {
            return Ok(None);
        }
        let k = ks.into_iter().max().unwrap_or(1);
        Survey::fit(self.set.scores(), k, &betas).map(Some)
    }

    /// A query whose true items are all missing from a run hits nothing and has no rank.
    fn answer(&self, mut scanned: ScanResult, direction: Direction) -> Result<Answer> {
        let Some(floor) = self.set.floor else {
            return Ok(Answer::ranked(scanned.standings, scanned.top));
        };
        let (images, texts) = self.pairs.list();
        let scores = self.set.scores().pairs(images, &texts)?;
        let mut held = vec![false; scanned.standings.len()];
        for ((&image, &text), &score) in images.iter().zip(&texts).zip(&scores) {
            held[direction.queries(image, text)] |= score > floor;
        }
        for (standing, held) in scanned.standings.iter_mut().zip(held) {
            if !held && standing.is_query() {
                standing.greater = u32::MAX;
            }
        }
        Ok(Answer::ranked(scanned.standings, scanned.top))
    }
}

/// The standard deviation of the item biases, in units of the score; the largest number if the correction is not affine.
fn strength(map: &dyn Rescore) -> f64 {
    let Some(affine) = map.affine() else { return f64::MAX };
    let items = &affine.items[0];
    let n = items.len().max(1) as f64;
    let mean = items.iter().sum::<f64>() / n;
    let variance = items.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / n;
    variance.sqrt() / affine.scale
}
