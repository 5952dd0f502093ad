//! What the HTML report draws beside its numbers: curves of the log, and retrieved examples.

use itm_core::ScoreMatrix;

use crate::log::Line;
use crate::report::{Answer, Curve, Example, Item, Mark};
use crate::source::Source;

/// Queries of each direction, and answers of a query.
const QUERIES: usize = 6;
const ANSWERS: usize = 5;

/// The course of a training, from its log.
pub(crate) fn curve(row: &str, seed: u64, log: &[Line], epoch_steps: usize) -> Curve {
    let epochs = |step: usize| step as f64 / epoch_steps as f64;
    let mut curve = Curve { row: row.into(), seed, loss: vec![], validation_rsum: vec![] };
    for line in log {
        match *line {
            Line::Train { step, loss, .. } => curve.loss.push((epochs(step), loss)),
            Line::Validation { step, rsum, .. } => curve.validation_rsum.push((epochs(step), rsum)),
            Line::Draws { .. } => {}
        }
    }
    curve
}

/// A dozen queries spread evenly over the test split, with their first answers.
pub(crate) fn examples(row: &str, scores: &ScoreMatrix, source: &Source) -> Vec<Example> {
    let test = &source.dataset.test;
    let spread = |count: usize| (0..QUERIES).map(move |k| (2 * k + 1) * count / (2 * QUERIES));
    let image = |i: usize| Item::Image(source.picture(i));
    let caption = |t: usize| Item::Caption(test.captions[t].clone());
    let mark = |i: usize, t: usize| match &source.truth {
        _ if test.pairs.image_of(t) == i => Mark::Annotated,
        Some(truth) if truth.test.contains(i, t) => Mark::TrueNotAnnotated,
        _ => Mark::Other,
    };
    let mut examples = Vec::with_capacity(2 * QUERIES);
    for i in spread(test.pairs.images()) {
        let ranking = scores.ranking(i);
        let answer = |&t: &usize| Answer {
            item: caption(t),
            score: f64::from(scores.row(i)[t]),
            mark: mark(i, t),
        };
        examples.push(Example {
            row: row.into(),
            query: image(i),
            answers: ranking.iter().take(ANSWERS).map(answer).collect(),
            annotated_rank: ranking.iter().position(|&t| test.pairs.image_of(t) == i).map(|r| r + 1),
        });
    }
    let transposed = scores.transpose();
    for t in spread(test.pairs.texts()) {
        let ranking = transposed.ranking(t);
        let answer = |&i: &usize| Answer {
            item: image(i),
            score: f64::from(transposed.row(t)[i]),
            mark: mark(i, t),
        };
        examples.push(Example {
            row: row.into(),
            query: caption(t),
            answers: ranking.iter().take(ANSWERS).map(answer).collect(),
            annotated_rank: ranking.iter().position(|&i| i == test.pairs.image_of(t)).map(|r| r + 1),
        });
    }
    examples
}
