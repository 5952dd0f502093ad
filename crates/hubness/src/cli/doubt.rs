//! Recalls that say that something is wrong with the input, and not with the model.

use itm_core::Pairs;

use crate::Direction;
use crate::report::Report;

/// This many standard deviations from chance are no accident.
const FAR: f64 = 3.0;

/// What the recalls of nearest neighbours say against the data: pairs that were `guessed` wrongly, or distances in place of scores.
///
/// A ranking at random hits one of `c` true items among `m` in the first `k` with
///
/// ```text
/// p = 1 − Π (m − c − j) / (m − j)   for j = 0 … k − 1        z = (hits − Σ p) / √ Σ p (1 − p)   over the queries
/// ```
///
/// Recalls are at chance if `z` is small for `k` = 1 and 10: among a dozen items even ten random ones hit nearly always.
pub(super) fn doubts(report: &Report, pairs: &Pairs, guessed: bool) -> Vec<String> {
    let z: Vec<_> = report.directions().filter_map(|d| distances(report, pairs, d)).collect();
    let pairs_too = if guessed { ", and the pairs were guessed: try --pairs" } else { "" };
    let mut doubts = Vec::new();
    if !z.is_empty() && z.iter().all(|&[_, z]| z < -FAR) {
        doubts.push(format!(
            "recalls are far below chance: are these distances? A larger score must mean more similar (negate them){pairs_too}"
        ));
    } else if !z.is_empty() && z.as_flattened().iter().all(|&z| z < FAR) {
        doubts.push(format!(
            "recalls are at chance: are the rows of both sides in one order, and from one model{pairs_too}?"
        ));
    }
    if let Some(k) = guessed.then(|| copies(report)).flatten() {
        let of = 100 / k;
        doubts.push(format!(
            "R@1 is near {of}, which is 100/{k}, and nearly all is found at {k}: rows that are {k} copies of one image, taken as {k} images? Keep one of each, or give --pairs"
        ));
    }
    doubts
}

/// How far R@1 and R@10 are from chance, in standard deviations; `None` if chance decides nothing.
fn distances(report: &Report, pairs: &Pairs, direction: Direction) -> Option<[f64; 2]> {
    let recalls = report.baseline()?.recalls.get(direction)?;
    let of = |k, recall| distance((k, recall), pairs, direction);
    Some([of(1, recalls.r1)?, of(10, recalls.r10)?])
}

fn distance((k, recall): (usize, f64), pairs: &Pairs, direction: Direction) -> Option<f64> {
    let items = direction.items(pairs.images(), pairs.texts());
    let (mut queries, mut mean, mut variance) = (0.0, 0.0, 0.0);
    let truths = |query| direction.truths(pairs, query).len();
    let all = (0..direction.queries(pairs.images(), pairs.texts())).map(truths);
    for own in all.filter(|&own| own > 0) {
        let miss = |j: usize| items.saturating_sub(own + j) as f64 / (items - j) as f64;
        let p = 1.0 - (0..items.min(k)).map(miss).product::<f64>();
        queries += 1.0;
        mean += p;
        variance += p * (1.0 - p);
    }
    (variance > 0.0).then(|| (recall / 100.0 * queries - mean) / variance.sqrt())
}

/// How many copies of each image the rows may hold: among `k` equal rows the right one is first once in `k` times, and is
/// among the first `k` nearly always.
fn copies(report: &Report) -> Option<usize> {
    let (images, texts) = (report.data.images, report.data.texts);
    let i2t = report.baseline()?.recalls.get(Direction::I2t)?;
    let found = |k: usize| if k <= 5 { i2t.r5 } else { i2t.r10 };
    let near = |&k: &usize| {
        let close = if k < 4 { 0.01 } else { 0.1 };
        let first = i2t.r1 * k as f64 / found(k);
        images.is_multiple_of(k as u64) && found(k) >= 95.0 && (first - 1.0).abs() <= close
    };
    (images == texts).then(|| (2..=10).find(near)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScoreMatrix;
    use crate::rows::Length;
    use crate::study::{Base, ItemNames, Method, Study, Test, TestScores, Then};

    /// The doubts over scores of `n` images with `captions` texts each.
    fn of(n: usize, captions: usize, score: impl Fn(usize, usize) -> f32) -> Vec<String> {
        let m = n * captions;
        let values = (0..n * m).map(|at| score(at / m, at % m)).collect();
        let (scores, pairs) =
            (ScoreMatrix::new(n, m, values).unwrap(), Pairs::uniform(n, captions));
        let test = Test {
            scores: TestScores::All(&scores),
            pairs: &pairs,
            length: Length::Raw,
            names: &ItemNames::default(),
            banks: Default::default(),
            truth: None,
        };
        let methods = vec![Method::One(Base::Nns, Then::Ranking)];
        let study = Study { methods, resamples: 0, ..Study::default() };
        doubts(&study.run(&test, None).unwrap(), &pairs, true)
    }

    fn noise(image: usize, text: usize) -> f32 {
        ((image * 7919 + text * 104_729 + image * text * 31) % 1009) as f32 / 1009.0
    }

    #[test]
    fn a_good_model_is_not_doubted() {
        let good = |i: usize, t: usize| noise(i, t) + f32::from(u8::from(t / 3 == i)) * 0.7;
        assert!(of(60, 3, good).is_empty());
        for pairs in 11..=15 {
            assert!(of(pairs, 1, |i, t| f32::from(u8::from(i == t))).is_empty(), "{pairs}");
        }
        assert!(of(4, 1, noise).is_empty(), "among ten items chance finds everything");
    }

    #[test]
    fn distances_are_far_below_chance() {
        let said = of(60, 3, |i, t| noise(i, t) - f32::from(u8::from(t / 3 == i)) * 2.0);
        assert!(
            said.len() == 1 && said[0].contains("below chance: are these distances?"),
            "{said:?}"
        );
    }

    #[test]
    fn noise_is_at_chance() {
        for (images, captions) in [(60, 3), (12, 1)] {
            let said = of(images, captions, noise);
            assert!(said.len() == 1 && said[0].starts_with("recalls are at chance"), "{said:?}");
        }
    }

    /// Sixty rows that are twelve images, five times each, with captions of their own.
    #[test]
    fn copies_of_an_image_are_seen_by_their_recall() {
        let said = of(60, 1, |i, t| f32::from(u8::from(i / 5 == t / 5)) + 0.01 * (t % 5) as f32);
        assert!(
            said.len() == 1 && said[0].starts_with("R@1 is near 20, which is 100/5"),
            "{said:?}"
        );
    }
}
