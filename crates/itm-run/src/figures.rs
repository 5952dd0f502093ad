//! What the HTML report draws beside its numbers: curves of the log, retrieved examples, and similarities.

use std::collections::BTreeMap;

use itm_core::Result;
use itm_core::learn::MatchProbability;
use itm_core::scored::Scored;

use crate::explanations::queries::{ANSWERS, Queries};
use crate::log::Line;
use crate::report::{
    Answer, Curve, Example, Item, Mark, PosteriorCurve, Similarities, SimilarityGroup,
};
use crate::source::Source;
use crate::split::Split;

/// Queries of each direction.
const QUERIES: usize = 6;

/// Images per block of scores.
const BAND: usize = 256;

/// Approximate number of other pairs in a histogram.
const OTHERS: usize = 20_000;

/// The course of a training, from its log.
pub(crate) fn curve(row: &str, seed: u64, log: &[Line], epoch_steps: usize) -> Curve {
    let epochs = |step: usize| step as f64 / epoch_steps as f64;
    let mut curve = Curve {
        row: row.into(),
        seed,
        loss: vec![],
        validation_rsum: vec![],
        numbers: BTreeMap::new(),
    };
    for line in log {
        match line {
            Line::Train { step, loss, numbers, .. } => {
                let at = epochs(*step);
                curve.loss.push((at, *loss));
                for (name, &value) in numbers {
                    curve.numbers.entry(name.clone()).or_default().push((at, value));
                }
            }
            &Line::Validation { step, rsum, .. } => {
                curve.validation_rsum.push((epochs(step), rsum));
            }
            Line::Draws { .. } => {}
        }
    }
    curve
}

/// A dozen queries spread evenly over the test split, with their first answers.
///
/// # Errors
/// If a score cannot be computed.
pub(crate) fn examples(row: &str, scored: &dyn Scored, source: &Source) -> Result<Vec<Example>> {
    let test = &source.dataset.test;
    let queries = Queries::spread(source, Split::Test, QUERIES);
    let image = |i: usize| Item::Image(source.picture(Split::Test, i));
    let caption = |t: usize| Item::Caption(test.captions[t].clone());
    let mark = |i: usize, t: usize| match &source.truth {
        _ if test.pairs.image_of(t) == i => Mark::Annotated,
        Some(truth) if truth.test.contains(i, t) => Mark::TrueNotAnnotated,
        _ => Mark::Other,
    };
    let mut examples = Vec::with_capacity(2 * QUERIES);
    let (n, m) = (scored.images(), scored.texts());
    for i in queries.images {
        let row_of = scored.block(i..i + 1, 0..m)?;
        let answer = |&t: &usize| Answer {
            item: caption(t),
            score: f64::from(row_of.values()[t]),
            mark: mark(i, t),
        };
        let own = |&t: &usize| test.pairs.image_of(t) == i;
        examples.push(example(row, image(i), &row_of.ranking(0), own, answer));
    }
    for t in queries.captions {
        let column = scored.block(0..n, t..t + 1)?.transpose();
        let answer = |&i: &usize| Answer {
            item: image(i),
            score: f64::from(column.values()[i]),
            mark: mark(i, t),
        };
        let own = |&i: &usize| test.pairs.image_of(t) == i;
        examples.push(example(row, caption(t), &column.ranking(0), own, answer));
    }
    Ok(examples)
}

fn example(
    row: &str,
    query: Item,
    ranking: &[usize],
    own: impl Fn(&usize) -> bool,
    answer: impl Fn(&usize) -> Answer,
) -> Example {
    Example {
        row: row.into(),
        query,
        answers: ranking.iter().take(ANSWERS).map(answer).collect(),
        annotated_rank: ranking.iter().position(own).map(|r| r + 1),
    }
}

/// Similarities of the test split by kind of pair, with the final posterior of the sampler.
///
/// # Errors
/// If a score cannot be computed.
pub(crate) fn similarities(
    row: &str,
    seed: u64,
    scored: &dyn Scored,
    source: &Source,
    posterior: Option<&MatchProbability>,
) -> Result<Similarities> {
    let pairs = &source.dataset.test.pairs;
    let truth = source.truth.as_ref().map(|truth| &truth.test);
    let [mut matching, mut unnoticed, mut other] = [vec![], vec![], vec![]];
    let (n, m) = (scored.images(), scored.texts());
    let stride = stride(n * m, m);
    for first in (0..n).step_by(BAND) {
        let band = scored.block(first..(first + BAND).min(n), 0..m)?;
        for (i, row) in (first..n).zip(band.values().chunks_exact(m)) {
            for (t, &s) in row.iter().enumerate() {
                if pairs.image_of(t) == i {
                    matching.push(s);
                } else if truth.is_some_and(|truth| truth.contains(i, t)) {
                    unnoticed.push(s);
                } else if (i * m + t).is_multiple_of(stride) {
                    other.push(s);
                }
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
    Ok(Similarities { row: row.into(), seed, groups, posteriors })
}

/// The stride that takes about [`OTHERS`] pairs; coprime to the texts of a row, because otherwise it would skip whole columns.
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

fn posterior_curve(posterior: &MatchProbability) -> PosteriorCurve {
    let points = (0..=200).map(|k| f64::from(k) / 100.0 - 1.0);
    PosteriorCurve {
        label: format!("P(match | s), p = {:e}", posterior.prior),
        points: points.map(|s| (s, (posterior.of)(s))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use itm_core::ScoreMatrix;

    use super::*;
    use crate::testing;

    fn small_scenes() -> Source {
        testing::small_scenes([8, 4, 12]).1
    }

    /// Scores of 3 for true pairs that nobody annotated, 2 for annotated pairs, and 1 for all others.
    fn by_truth(source: &Source) -> ScoreMatrix {
        let (test, truth) = (&source.dataset.test.pairs, &source.truth.as_ref().unwrap().test);
        let score = |k: usize| match (k / test.texts(), k % test.texts()) {
            (i, t) if test.image_of(t) == i => 2.0,
            (i, t) if truth.contains(i, t) => 3.0,
            _ => 1.0,
        };
        let values = (0..test.images() * test.texts()).map(score).collect();
        ScoreMatrix::new(test.images(), test.texts(), values).unwrap()
    }

    #[test]
    fn examples_are_a_dozen_and_marked_by_the_truth() {
        let source = small_scenes();
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
            let first = example.answers.iter().position(|a| a.mark == Mark::Annotated);
            assert!(first.is_none_or(|first| example.annotated_rank == Some(first + 1)));
            for Answer { score, mark, .. } in &example.answers {
                let want = [Mark::Other, Mark::Annotated, Mark::TrueNotAnnotated];
                assert_eq!(*mark, want[*score as usize - 1]);
            }
        }
        let marks = || examples.iter().flat_map(|e| &e.answers).map(|a| a.mark);
        for kind in [Mark::Other, Mark::Annotated, Mark::TrueNotAnnotated] {
            assert!(marks().any(|mark| mark == kind), "no {kind:?}");
        }
    }

    #[test]
    fn similarities_are_grouped_by_the_truth() {
        let source = small_scenes();
        let scores = by_truth(&source);
        let groups = similarities("Full", 0, &scores, &source, None).unwrap().groups;
        assert_eq!(groups.len(), 3);
        for (group, value) in groups.iter().zip([2.0, 3.0, 1.0]) {
            assert!(!group.values.is_empty() && group.values.iter().all(|&v| v == value));
        }
        assert_eq!(groups[0].values.len(), 60);
        assert_eq!(groups.iter().map(|g| g.values.len()).sum::<usize>(), 12 * 60);
    }

    #[test]
    fn a_stride_passes_over_no_column() {
        for (images, texts) in [(1000, 5000), (500, 2500), (60, 5000), (5000, 25_000), (3, 7)] {
            let stride = stride(images * texts, texts);
            let taken = images * texts / stride;
            assert!(taken.min(OTHERS) * 2 >= OTHERS.min(images * texts), "{taken}");
            let columns: std::collections::HashSet<_> =
                (0..5 * stride).step_by(stride).map(|k| k % 5).collect();
            assert!(columns.len() == 5 || stride == 1, "{images} × {texts}: {stride}");
        }
    }

    #[test]
    fn curves_count_in_epochs() {
        let log = [
            Line::Train {
                epoch: 0,
                step: 5,
                loss: 2.0,
                grad_norm: 1.0,
                active: 0.5,
                numbers: [("t".to_owned(), 0.3)].into(),
            },
            Line::Validation { epoch: 0, step: 10, rsum: 123.0, among: None },
            Line::Draws {
                epoch: 0,
                drawn_true: 0.1,
                uniform_true: 0.2,
                hardest_true: 0.3,
                others_true: Default::default(),
                detection: vec![],
            },
        ];
        let curve = curve("Full", 1, &log, 10);
        assert_eq!((curve.loss, curve.validation_rsum), (vec![(0.5, 2.0)], vec![(1.0, 123.0)]));
        assert_eq!(curve.numbers, BTreeMap::from([("t".to_owned(), vec![(0.5, 0.3)])]));
    }
}
