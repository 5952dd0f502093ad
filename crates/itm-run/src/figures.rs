//! What the HTML report draws beside its numbers: curves of the log, and retrieved examples.

use fne::Posterior;
use itm_core::ScoreMatrix;

use crate::log::Line;
use crate::report::{
    Answer, Curve, Example, Item, Mark, PosteriorCurve, Similarities, SimilarityGroup,
};
use crate::source::Source;

/// Queries of each direction, and answers of a query.
const QUERIES: usize = 6;
const ANSWERS: usize = 5;

/// Other pairs in a histogram, about.
const OTHERS: usize = 20_000;

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
            annotated_rank: ranking
                .iter()
                .position(|&t| test.pairs.image_of(t) == i)
                .map(|r| r + 1),
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
            annotated_rank: ranking
                .iter()
                .position(|&i| i == test.pairs.image_of(t))
                .map(|r| r + 1),
        });
    }
    examples
}

/// Similarities of the test split by kind of pair, with the posterior that the sampler ended with.
pub(crate) fn similarities(
    row: &str,
    seed: u64,
    scores: &ScoreMatrix,
    source: &Source,
    posterior: Option<Posterior>,
) -> Similarities {
    let pairs = &source.dataset.test.pairs;
    let truth = source.truth.as_ref().map(|truth| &truth.test);
    let [mut matching, mut unnoticed, mut other] = [vec![], vec![], vec![]];
    let stride = stride(scores.values().len(), scores.texts());
    for i in 0..scores.images() {
        for (t, &s) in scores.row(i).iter().enumerate() {
            if pairs.image_of(t) == i {
                matching.push(s);
            } else if truth.is_some_and(|truth| truth.contains(i, t)) {
                unnoticed.push(s);
            } else if (i * scores.texts() + t).is_multiple_of(stride) {
                other.push(s);
            }
        }
    }
    let group = |label: &str, values| SimilarityGroup { label: label.into(), values };
    let mut groups = vec![group("matching pairs", matching)];
    if truth.is_some() {
        groups.push(group("true, not annotated", unnoticed));
    }
    groups.push(group("other pairs", other));
    let posteriors = posterior.map(posterior_curve).into_iter().collect();
    Similarities { row: row.into(), seed, groups, posteriors }
}

/// About every how many-th pair; coprime to the texts of a row, or whole columns would be passed over.
fn stride(pairs: usize, texts: usize) -> usize {
    let coprime = |a: usize, b: usize| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    let least = (pairs / OTHERS).max(1);
    (least..).find(|&n| coprime(n, texts.max(1))).unwrap_or(1)
}

fn posterior_curve(posterior: Posterior) -> PosteriorCurve {
    let points = (0..=200).map(|k| f64::from(k) / 100.0 - 1.0);
    PosteriorCurve {
        label: format!("P(match | s), p = {:e}", posterior.prior),
        points: points.map(|s| (s, posterior.probability(s))).collect(),
    }
}
