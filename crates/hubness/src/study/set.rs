//! A set of scores with its pairs, and every correction that was fitted and scanned on it.

use itm_core::{Pairs, Result};

use super::answer::Answer;
use super::input::Held;
use super::method::Base;
use super::spec::{Fit, Spec, whole};
use crate::pass::{Scan, Scanned};
use crate::report::Params;
use crate::{AnyCorrection, Direction, Rescore, Scores, Survey};

/// Scores, pairs, and the corrections that were fitted on them.
pub(crate) struct Set<'a> {
    pub(crate) fit: Fit<'a>,
    pub(crate) pairs: &'a Pairs,
    pub(crate) directions: Vec<Direction>,
    /// A score at or below this value means that the run does not hold the pair.
    pub(crate) floor: Option<f32>,
    fitted: Vec<Fitted>,
}

/// A correction of one direction with its answer.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) spec: Spec,
    pub(crate) correction: AnyCorrection,
    pub(crate) params: Params,
    pub(crate) answer: Answer,
    /// How strongly the correction changes scores.
    pub(crate) strength: f64,
    listed: usize,
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

impl<'a> Set<'a> {
    pub(crate) fn new(
        fit: Fit<'a>,
        pairs: &'a Pairs,
        directions: Vec<Direction>,
        floor: Option<f32>,
    ) -> Self {
        Self { fit, pairs, directions, floor, fitted: Vec::new() }
    }

    /// The correction that was prepared for a direction.
    ///
    /// # Panics
    /// If it was not prepared.
    pub(crate) fn get(&self, direction: Direction, spec: Spec) -> &Fitted {
        let wanted = |f: &&Fitted| f.spec == spec && f.correction.direction() == direction;
        self.fitted.iter().find(wanted).expect("specs are prepared before they are used")
    }

    /// Whether this score means that the run does not hold the pair.
    pub(crate) fn is_missing(&self, score: f32) -> bool {
        self.floor.is_some_and(|floor| score <= floor)
    }

    /// Fits and scans the corrections that are not there yet. One pass serves all fits of CSLS and IS, one pass serves all
    /// ranks and lists of `k` items.
    pub(crate) fn prepare(&mut self, specs: &[Spec], k: usize) -> Result<()> {
        let mut fresh: Vec<Spec> = Vec::new();
        for &spec in specs {
            let there = |fitted: &Fitted| fitted.spec == spec && fitted.listed >= k;
            if !self.fitted.iter().any(there) && !fresh.contains(&spec) {
                fresh.push(spec);
            }
        }
        self.fitted.retain(|fitted| !fresh.contains(&fitted.spec));
        let fits = self.fits(&fresh)?;
        let scans: Vec<_> = fits
            .iter()
            .map(|(_, c, ..)| Scan::new(c, k).with_ranks(self.fit.test, self.pairs))
            .collect();
        let scanned = self.fit.test.run(&scans[..]);
        drop(scans);
        for ((spec, correction, params, strength), scanned) in fits.into_iter().zip(scanned) {
            let answer = self.answer(scanned, correction.direction());
            self.fitted.push(Fitted { spec, correction, params, answer, strength, listed: k });
        }
        Ok(())
    }

    fn fits(&self, fresh: &[Spec]) -> Result<Vec<(Spec, AnyCorrection, Params, f64)>> {
        let survey = self.survey(fresh)?;
        let mut fits = Vec::new();
        for &spec in fresh {
            for &direction in &self.directions {
                let surveyed = survey.as_ref().filter(|_| !spec.bank);
                let params = || spec.params(self.fit.settings);
                let (mut correction, params) = match (spec.base, spec.number, surveyed) {
                    (Base::Csls, Some(n), Some(survey)) => {
                        (survey.csls(direction, whole(n))?.into_any(), params())
                    }
                    (Base::Is, Some(beta), Some(survey)) => {
                        (survey.inverted_softmax(direction, beta)?.into_any(), params())
                    }
                    _ => spec.fit(&self.fit, direction)?,
                };
                let strength = strength(correction.map());
                if let Some(floor) = self.floor {
                    correction = correction.mapped(|inner| Box::new(OfRun { floor, inner }));
                }
                fits.push((spec, correction, params, strength));
            }
        }
        Ok(fits)
    }

    /// One survey for all fits of CSLS and IS, if both directions are measured on the same scores.
    fn survey(&self, fresh: &[Spec]) -> Result<Option<Survey<'a, Held<'a>>>> {
        let numbers = |base: Base| {
            let of = fresh.iter().filter(move |spec| spec.base == base && !spec.bank);
            of.filter_map(|spec| spec.number)
        };
        let ks: Vec<usize> = numbers(Base::Csls).map(whole).collect();
        let betas: Vec<f64> = numbers(Base::Is).collect();
        if self.directions.len() < 2 || ks.is_empty() && betas.is_empty() {
            return Ok(None);
        }
        let k = ks.into_iter().max().unwrap_or(1);
        Survey::new(self.fit.test, self.pairs, k, &betas).map(Some)
    }

    /// A query whose true items are all missing from a run hits nothing and has no rank.
    fn answer(&self, mut scanned: Scanned, direction: Direction) -> Answer {
        if self.floor.is_some() {
            let texts: Vec<_> = (0..self.pairs.texts()).collect();
            let scores = self.fit.test.pair_scores(self.pairs.image_of_text(), &texts);
            let missing = |&text: &usize| self.is_missing(scores[text]);
            for (query, standing) in scanned.standings.iter_mut().enumerate() {
                let lost = match direction {
                    Direction::I2t => self.pairs.texts_of(query).iter().all(missing),
                    Direction::T2i => missing(&query),
                };
                if lost {
                    standing.greater = u32::MAX;
                }
            }
        }
        Answer::ranked(scanned.standings, scanned.top)
    }
}

/// A correction of the pairs that a run holds. All other pairs come last, whatever the correction.
#[derive(Debug)]
struct OfRun {
    floor: f32,
    inner: Box<dyn Rescore>,
}

impl Rescore for OfRun {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        if score <= self.floor {
            return f64::NEG_INFINITY;
        }
        self.inner.rescore(query, item, score)
    }

    fn items(&self) -> usize {
        self.inner.items()
    }

    fn queries(&self) -> Option<usize> {
        self.inner.queries()
    }
}
