//! One model on the test split.

use hubness::hubs::Nearest;
use hubness::report::Report;
use itm_core::Result;
use itm_core::eval::{Evaluation, MultiEvaluation, Ranks, TiePolicy};
use itm_core::scored::Scored;
use itm_core::significance::Hits;

use crate::explanations::pointing::OfImages;
use crate::job::Job;
use crate::report::EpochDraws;
use crate::train::Progress;
use crate::{edited, sentences};

/// One model, evaluated on the test split.
#[derive(Debug, Clone)]
pub(crate) struct SeedRun {
    pub(crate) seed: u64,
    pub(crate) evaluation: Evaluation,
    pub(crate) hits: Hits,
    pub(crate) truth: Option<MultiEvaluation>,
    /// The nearest items of every query, where hubs are counted.
    pub(crate) nearest: Option<Nearest>,
    /// The results of training; `None` for a baseline.
    pub(crate) trained: Option<Trained>,
    /// The same scores under corrections for hubs.
    pub(crate) rescored: Vec<Report>,
    /// How long it took; zero for a baseline, because the baseline's row has the time.
    pub(crate) seconds: f64,
}

/// The results of training besides scores.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    /// The progress at the end.
    pub(crate) progress: Progress,
    /// The drawn negatives against the truth, epoch by epoch.
    pub(crate) epochs: Vec<EpochDraws>,
    pub(crate) prior: Option<f64>,
    /// Whether words point at what they name, image by image.
    pub(crate) pointing: Option<OfImages>,
    /// Sentences that the model makes from the test captions.
    pub(crate) sentences: Option<sentences::OfImages>,
    /// How the model scores edited captions.
    pub(crate) edited: Option<edited::OfImages>,
}

impl SeedRun {
    /// Evaluates scores of the test split.
    ///
    /// # Errors
    /// If the scores or their evaluation fail.
    pub(crate) fn evaluate(job: &Job, seed: u64, scored: &dyn Scored) -> Result<Self> {
        let source = &job.run.bench.source;
        let (pairs, protocol) = (&source.dataset.test.pairs, job.asked.protocol);
        let ranks: Vec<Ranks> = scored.ranks_by(protocol, pairs)?;
        let truth = source.truth.as_ref();
        let truth = truth.map(|t| scored.evaluate_multi(&t.test)).transpose()?;
        let nearest = || Nearest::new(scored, &protocol.folds(pairs)?);
        Ok(Self {
            seed,
            evaluation: Evaluation::new(&ranks, TiePolicy::Index),
            hits: Hits::new(&ranks, TiePolicy::Index)?,
            truth,
            nearest: job.asked.counts_hubs().then(nearest).transpose()?,
            trained: None,
            rescored: vec![],
            seconds: 0.0,
        })
    }
}
