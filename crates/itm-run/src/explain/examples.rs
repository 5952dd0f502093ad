//! Queries to look at: their first answers, and their most probable false negatives.

use itm_core::data::Split;
use itm_core::scored::Scored;
use itm_core::{Result, ScoreMatrix};

use super::queries::{ANSWERS, AnswerRanking, Queries, answered, false_negatives};
use crate::measures::{BySeed, Measure, Trial};
use crate::report::{AnswerNumbers, Example, Report, Section, shown_examples};
use crate::source::Source;

/// Queries of each direction.
const QUERIES: usize = 6;
/// Queries of each direction whose most probable false negatives a report shows.
const FALSE_NEGATIVES: usize = 3;

/// A dozen queries with the first answers of one row.
#[derive(Debug)]
pub(crate) struct Examples {
    found: BySeed<Vec<Example>>,
    /// The row whose answers are shown.
    row: String,
}

impl Examples {
    pub(crate) fn of(row: &str) -> Self {
        Self { found: BySeed::default(), row: row.to_owned() }
    }
}

impl Measure for Examples {
    fn look(&self, trial: &Trial) -> Result<()> {
        if trial.row == self.row && trial.trained.is_some_and(|trained| trained.first) {
            self.found.put(trial, examples(trial.row, trial.scores, trial.source)?);
        }
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        Ok(pictures("Retrieved examples", &self.found, report, AnswerNumbers::Scores))
    }
}

/// Some queries with the unannotated items that a row's posterior takes for matches.
#[derive(Debug, Default)]
pub(crate) struct FalseNegatives(BySeed<Vec<Example>>);

impl Measure for FalseNegatives {
    fn look(&self, trial: &Trial) -> Result<()> {
        let Some(trained) = trial.trained.filter(|trained| trained.first) else { return Ok(()) };
        let Some(posterior) = trained.model.method.posterior() else { return Ok(()) };
        let Trial { row, source, scores, .. } = *trial;
        let queries = Queries::spread(source, Split::Test, FALSE_NEGATIVES);
        let found = false_negatives(row, scores, &posterior, source, (Split::Test, &queries))?;
        self.0.put(trial, found);
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        Ok(pictures("Most probable false negatives", &self.0, report, AnswerNumbers::Probabilities))
    }
}

/// The examples of the first row that has any.
fn pictures(
    title: &str,
    found: &BySeed<Vec<Example>>,
    report: &Report,
    numbers: AnswerNumbers,
) -> Section {
    let of_rows = found.rows(report, |seeds| Some(shown_examples(seeds[0], numbers)));
    let pictures = of_rows.into_iter().flatten().next().unwrap_or_default();
    Section { pictures, ..Section::new(title) }
}

/// A dozen queries spread evenly over the test split, with their first answers.
///
/// # Errors
/// If a score cannot be computed.
fn examples(row: &str, scored: &dyn Scored, source: &Source) -> Result<Vec<Example>> {
    let queries = Queries::spread(source, Split::Test, QUERIES);
    let rank = |scores: &ScoreMatrix, own: &dyn Fn(usize) -> bool| -> AnswerRanking {
        let ranking = scores.ranking(0);
        let best = ranking.iter().take(ANSWERS).map(|&k| (k, f64::from(scores.values()[k])));
        (best.collect(), ranking.iter().position(|&k| own(k)).map(|r| r + 1))
    };
    answered(row, scored, source, (Split::Test, &queries), rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Item, PairKind, RankedItem};
    use crate::tests::{self, by_truth};

    #[test]
    fn examples_are_a_dozen_and_marked_by_the_truth() {
        let source = tests::small_scenes([8, 4, 12]).1;
        let examples = examples("Full", &by_truth(&source), &source).unwrap();
        assert_eq!(examples.len(), 12);
        let names = |e: &Example| match &e.query {
            Item::Image(picture) => Some((picture.name.clone(), picture.bytes.len() > 100)),
            Item::Caption(_) => None,
        };
        let images: Vec<_> = examples.iter().filter_map(names).collect();
        let want = [1, 3, 5, 7, 9, 11].map(|i| (format!("test_{i:06}.png"), true));
        assert_eq!(images, want, "spread over the split");
        for example in &examples {
            assert_eq!(example.answers.len(), 5);
            // Only true answers without annotation come before the first annotated answer.
            let first = example.answers.iter().position(|a| a.mark == PairKind::Annotated);
            assert!(first.is_none_or(|first| example.annotated_rank == Some(first + 1)));
            for RankedItem { score, mark, .. } in &example.answers {
                let want = [PairKind::Asked, PairKind::Annotated, PairKind::FalseNegative];
                assert_eq!(*mark, want[*score as usize - 1]);
            }
        }
        let marks = || examples.iter().flat_map(|e| &e.answers).map(|a| a.mark);
        for kind in [PairKind::Asked, PairKind::Annotated, PairKind::FalseNegative] {
            assert!(marks().any(|mark| mark == kind), "no {kind:?}");
        }
    }
}
