//! One model on the test split.

use itm_core::data::Split;
use itm_core::eval::{Evaluation, Ranks, TiePolicy};
use itm_core::scored::Scored;
use itm_core::significance::Hits;
use itm_core::{Result, ScoreMatrix};

use crate::experiment::Experiment;
use crate::log::Log;
use crate::measures::{AllMeasures, Trained, Trial};
use crate::model::Model;
use crate::train::{Best, Progress};

/// One model, evaluated on the test split.
#[derive(Debug, Clone)]
pub(crate) struct SeedRun {
    pub(crate) seed: u64,
    pub(crate) evaluation: Evaluation,
    pub(crate) hits: Hits,
    /// The validation that chose the checkpoint; `None` for a row without a training.
    pub(crate) best: Option<Best>,
    /// How long it took; zero for a baseline, because the baseline's row has the time.
    pub(crate) seconds: f64,
}

impl SeedRun {
    /// Evaluates scores of the test split, and shows them to the measures; `trained` is the model behind them.
    ///
    /// # Errors
    /// If the scores, their evaluation or a measure fail.
    pub(crate) fn evaluate<'a>(
        experiment: &'a Experiment,
        measures: &AllMeasures,
        (row, seed): (&'a str, u64),
        scores: &'a dyn Scored,
        trained: Option<Trained<'a>>,
    ) -> Result<Self> {
        let (source, protocol) = (&experiment.run.source, experiment.protocol);
        let ranks: Vec<Ranks> = scores.ranks_by(protocol, &source.dataset.test.pairs)?;
        let trial = Trial { row, seed, source, protocol, scores, trained };
        measures.iter().try_for_each(|measure| measure.look(&trial))?;
        Ok(Self {
            seed,
            evaluation: Evaluation::new(&ranks, TiePolicy::Index),
            hits: Hits::new(&ranks, TiePolicy::Index)?,
            best: trained.and_then(|trained| trained.progress.best),
            seconds: 0.0,
        })
    }

    /// Evaluates a trained model. Also returns all test scores, if they are averaged with the scores of other models.
    ///
    /// # Errors
    /// If an item or the log cannot be read, or a measure fails.
    pub(crate) fn of_model(
        experiment: &Experiment,
        measures: &AllMeasures,
        model: &Model,
        progress: &Progress,
    ) -> Result<(Self, Option<ScoreMatrix>)> {
        let scored = experiment.run.scores(model, Split::Test)?;
        let held;
        let scores: &dyn Scored = match scored.rows() {
            Some(rows) => rows,
            None => {
                held = scored.matrix()?; // a model that reads image and text together scores each pair only once
                &held
            }
        };
        let folder = experiment.run.dir().folder(&model.row, model.seed);
        let trained = Trained {
            model,
            progress,
            log: &Log::read(&folder.join("log.jsonl"))?,
            first: model.seed == experiment.seeds[0],
            validation: &|| experiment.run.scores(model, Split::Val),
            folder: &folder,
        };
        let of = (&model.row[..], model.seed);
        let run = Self::evaluate(experiment, measures, of, scores, Some(trained))?;
        let view = &experiment.view;
        let averaged = view.ensemble > 1 || view.together.contains(&model.row);
        Ok((run, averaged.then(|| scores.matrix()).transpose()?))
    }
}
