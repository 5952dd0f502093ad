//! A set of scores with its pairs, and every correction that was fitted and scanned on it.

use itm_core::{Pairs, Result};

use super::answer::{Answer, by_image};
use super::spec::{Fit, Spec, whole};
use crate::choose::HitTable;
use crate::cli::methods::Base;
use crate::cli::report::Params;
use crate::pass::Scan;
use crate::{AnyCorrection, Direction, Rescore, Scores, Survey};

/// Scores and pairs, and what has been made of them.
pub(crate) struct Set<'a, S> {
    pub(crate) fit: Fit<'a, S>,
    pub(crate) pairs: &'a Pairs,
    pub(crate) directions: Vec<Direction>,
    /// Scores up to this one stand for entries that a run does not hold.
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
    listed: usize,
}

impl Fitted {
    /// How much it corrects: the spread of what items lose, in units of the score.
    fn strength(&self) -> f64 {
        let Some(affine) = self.correction.rescore.affine() else { return f64::MAX };
        let items = &affine.items[0];
        let n = items.len().max(1) as f64;
        let mean = items.iter().sum::<f64>() / n;
        let variance = items.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / n;
        variance.sqrt() / affine.scale
    }
}

impl<'a, S: Scores> Set<'a, S> {
    pub(crate) fn new(
        fit: Fit<'a, S>,
        pairs: &'a Pairs,
        directions: Vec<Direction>,
        floor: Option<f32>,
    ) -> Self {
        Self { fit, pairs, directions, floor, fitted: Vec::new() }
    }

    /// Fits and scans what is not there yet: one pass for the fits of CSLS and IS, one for all ranks and lists of `k` items.
    pub(crate) fn prepare(&mut self, specs: &[Spec], k: usize) -> Result<()> {
        let mut fresh: Vec<Spec> = Vec::new();
        for &spec in specs {
            let there = |fitted: &Fitted| fitted.spec == spec && fitted.listed >= k;
            if !self.fitted.iter().any(there) && !fresh.contains(&spec) {
                fresh.push(spec);
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.fitted.retain(|fitted| !fresh.contains(&fitted.spec));
        let survey = self.survey(&fresh)?;
        let mut fits = Vec::new();
        for &spec in &fresh {
            for &direction in &self.directions {
                let surveyed = survey.as_ref().filter(|_| !spec.bank);
                let (correction, params) = match (spec.base, spec.number, surveyed) {
                    (Base::Csls, Some(n), Some(survey)) => {
                        let found = survey.csls(direction, whole(n)?)?;
                        (found.into_any(), spec.params(self.fit.settings))
                    }
                    (Base::Is, Some(beta), Some(survey)) => {
                        let found = survey.inverted_softmax(direction, beta)?;
                        (found.into_any(), spec.params(self.fit.settings))
                    }
                    _ => spec.fit(&self.fit, direction)?,
                };
                fits.push((spec, correction, params));
            }
        }
        drop(survey);
        let masked: Vec<_> = fits.iter().map(|(_, c, _)| self.masked(&*c.rescore)).collect();
        let scan = |(map, (_, c, _)): (&Masked<'_>, &(Spec, AnyCorrection, Params))| {
            // SAFETY of meaning: without a floor the map is the correction itself, and keeps its fast form.
            Scan::new(c.direction, map.or_inner(), k).with_ranks(self.fit.test, self.pairs)
        };
        todo_scan(masked, scan);
        Ok(())
    }
}
