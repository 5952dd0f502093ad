//! Whether a model separates words that do not match an image from words that match: by what a word takes from the
//! score, and by the word's best region.
//!
//! ```text
//! AUC = P(x_mismatched < x_matched) + ½ P(x_mismatched = x_matched),   x = neg_j  or  max_k s_jk
//! ```
//!
//! over all words of the pairs that say something about an image. There are three kinds of pairs: each caption with
//! its own image, with the hardest image that it is false of, and with a random image that it is false of. A caption
//! is true of its own image, so these pairs have no mismatched word and no AUC. For them only the share of words that
//! take from the score by mistake is known.

use itm_core::scored::Scored;
use itm_core::significance::interval;
use itm_core::{Relevance, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::measures::each_score;

/// Replicates of the bootstrap. Each replicate reads all words.
const REPLICATES: usize = 2_000;
/// Seed of the random images.
const SEED: u64 = 0;

/// Words that do not match an image beside words that match, by the kind of image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mismatch {
    /// In annotated pairs, where every word matches.
    pub(super) own: Detected,
    /// Each caption with the image of the highest score among the images that it is false of.
    pub(super) hardest: Detected,
    /// Each caption with a random image that it is false of.
    pub(super) random: Detected,
}

/// How well the row separates mismatched words from matched ones in one kind of pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Detected {
    /// By what a word takes from the score; `null` if words have no such effect or one kind of words is missing.
    pub(super) by_negative_effect: Option<Auc>,
    /// Only by the cosine of a word's best region.
    pub(super) by_best_region: Option<Auc>,
    /// Share of mismatched words that take something from the score, over all seeds.
    pub(super) mismatched_losing: Option<f64>,
    /// Share of matched words that take something from the score by mistake.
    pub(super) matched_losing: Option<f64>,
    /// Mismatched words behind these numbers, summed over seeds.
    pub(super) mismatched: u64,
    /// Matched words: objects and backgrounds. Function words are neither matched nor mismatched.
    pub(super) matched: u64,
}

/// Area under the ROC curve: 0.5 is chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Auc {
    /// Mean over seeds.
    pub(super) value: f64,
    /// 95 % interval `[lo, hi]`: bootstrap over test images and seeds.
    pub(super) ci95: [f64; 2],
}

/// A word that says something about an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OneWord {
    /// Number of the image.
    pub(super) image: u32,
    pub(super) mismatched: bool,
    /// What it takes from the score, if words have such an effect.
    pub(super) negative: Option<f32>,
    /// The cosine of its best region.
    pub(super) best: f32,
}

/// The words by ascending value; `None` if a word has no value.
fn ranked(words: &[OneWord], value: fn(&OneWord) -> Option<f32>) -> Option<Vec<WordValue>> {
    let with = |word: &OneWord| Some((value(word)?, word.image, word.mismatched));
    let mut all = words.iter().map(with).collect::<Option<Vec<WordValue>>>()?;
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    Some(all)
}

/// A value with its image, and whether it is of a mismatched word.
type WordValue = (f32, u32, bool);

/// Each text with the highest-scoring image that it is false of; with the first of equal images.
pub(super) fn hardest(scored: &dyn Scored, truth: &Relevance) -> Result<Vec<(usize, usize)>> {
    let mut best: Vec<Option<(f32, usize)>> = vec![None; scored.texts()];
    each_score(scored, |image, text, score| {
        let harder = best[text].is_none_or(|(before, _)| score > before);
        if harder && !truth.contains(image, text) {
            best[text] = Some((score, image));
        }
    })?;
    Ok(best.iter().enumerate().filter_map(|(text, best)| Some((best.as_ref()?.1, text))).collect())
}

/// Each text with a random image that it is false of: the same image for every model.
pub(super) fn random(truth: &Relevance) -> Vec<(usize, usize)> {
    let n = truth.images();
    let wrong = |text: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        rng.set_stream(text as u64);
        let draw = || rng.random_range(0..n);
        let is_wrong = |&image: &usize| !truth.contains(image, text);
        let any = truth.images_of(text).len() < n;
        any.then(|| std::iter::repeat_with(draw).find(is_wrong).map(|image| (image, text)))?
    };
    (0..truth.texts()).filter_map(wrong).collect()
}

/// How well a row separates the words of one kind of pairs, over its seeds.
pub(super) fn detected(runs: &[&[OneWord]], images: usize) -> Detected {
    let by = |value: fn(&OneWord) -> Option<f32>| {
        let ranked: Option<Vec<Vec<WordValue>>> =
            runs.iter().map(|run| ranked(run, value)).collect();
        over_seeds(&ranked?, images)
    };
    let words = || runs.iter().copied().flatten();
    // How many words of a kind take from the score, and how many words of the kind there are.
    let of = |mismatched: bool| {
        let words = || words().filter(|word| word.mismatched == mismatched);
        let losing = words().filter(|word| word.negative.is_some_and(|x| x < 0.0));
        (losing.count() as u64, words().count() as u64)
    };
    let told = words().all(|word| word.negative.is_some());
    let share = |(losing, all): (u64, u64)| (told && all > 0).then(|| losing as f64 / all as f64);
    Detected {
        by_negative_effect: by(|word| word.negative),
        by_best_region: by(|word| Some(word.best)),
        mismatched_losing: share(of(true)),
        matched_losing: share(of(false)),
        mismatched: of(true).1,
        matched: of(false).1,
    }
}

/// The mean AUC over seeds, and its interval.
fn over_seeds(runs: &[Vec<WordValue>], images: usize) -> Option<Auc> {
    let mean = |times: &[u32], drawn: &[u32]| {
        let (mut sum, mut seeds) = (0.0, 0.0);
        for (run, &times) in runs.iter().zip(times).filter(|(_, times)| **times > 0) {
            if let Some(auc) = auc(run, drawn) {
                sum += f64::from(times) * auc;
                seeds += f64::from(times);
            }
        }
        (seeds > 0.0).then(|| sum / seeds)
    };
    let value = mean(&vec![1; runs.len()], &vec![1; images])?;
    Some(Auc { value, ci95: interval(REPLICATES, [runs.len(), images], mean) })
}

/// The AUC with each image counted as often as it was drawn; `None` if one kind of words is missing.
fn auc(ranked: &[WordValue], drawn: &[u32]) -> Option<f64> {
    let (mut mismatched, mut matched, mut twice) = (0, 0, 0);
    for equal in ranked.chunk_by(|a, b| a.0 == b.0) {
        let (mut bad, mut good) = (0, 0);
        for &(_, image, is_mismatched) in equal {
            let weight = u64::from(drawn[image as usize]);
            *(if is_mismatched { &mut bad } else { &mut good }) += weight;
        }
        twice += good * (2 * mismatched + bad);
        mismatched += bad;
        matched += good;
    }
    (mismatched > 0 && matched > 0).then(|| twice as f64 / (2 * mismatched * matched) as f64)
}

#[cfg(test)]
mod tests {
    use itm_core::ScoreMatrix;

    use super::*;

    fn words(all: &[(u32, bool, f32, f32)]) -> Vec<OneWord> {
        let word = |&(image, mismatched, negative, best): &(u32, bool, f32, f32)| OneWord {
            image,
            mismatched,
            negative: Some(negative),
            best,
        };
        all.iter().map(word).collect()
    }

    /// By hand: there are 2 × 3 pairs of a mismatched and a matched word. By the negative effect 5 pairs are right
    /// (−.4 is below three, −.1 below two) and one is equal: 5½ of 6. By the best region 3 + 2 of 6 are right. Without
    /// image 1 only −.4 against 0 and −.1 is left: 2 of 2.
    #[test]
    fn golden_areas() {
        let all = [
            (0, true, -0.4, 0.1),
            (1, true, -0.1, 0.4),
            (0, false, 0.0, 0.5),
            (1, false, 0.0, 0.3),
            (0, false, -0.1, 0.45),
        ];
        let words = words(&all);
        type Of = fn(&OneWord) -> Option<f32>;
        let by = |value: Of, drawn: &[u32]| auc(&ranked(&words, value).unwrap(), drawn).unwrap();
        assert!((by(|w| w.negative, &[1, 1]) - 5.5 / 6.0).abs() < 1e-12);
        assert!((by(|w| Some(w.best), &[1, 1]) - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(by(|w| w.negative, &[3, 0]), 1.0);
        let made = detected(&[&words], 2);
        assert_eq!((made.mismatched, made.matched), (2, 3));
        assert_eq!((made.mismatched_losing, made.matched_losing), (Some(1.0), Some(1.0 / 3.0)));
        let Some(Auc { value, ci95: [lo, hi] }) = made.by_negative_effect else {
            panic!("{made:?}")
        };
        assert!(lo == value && hi == 1.0, "{lo} {value} {hi}");
        // Both seeds have equal weight. All values of the second seed are equal: its AUC is ½.
        let flat: Vec<_> = words.iter().map(|w| OneWord { best: 0.2, ..*w }).collect();
        let both = detected(&[&words, &flat], 2).by_best_region.unwrap();
        assert!((both.value - (5.0 / 6.0 + 0.5) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_kind_that_is_missing_has_no_area() {
        let matched = words(&[(0, false, -0.2, 0.1), (0, false, 0.0, 0.6)]);
        let made = detected(&[&matched], 1);
        assert_eq!((made.by_negative_effect, made.by_best_region), (None, None));
        assert_eq!((made.matched_losing, made.mismatched_losing), (Some(0.5), None));
        let word = |mismatched, best| OneWord { image: 0, mismatched, negative: None, best };
        let scan = [word(true, 0.1), word(false, 0.2)];
        let made = detected(&[&scan], 1);
        assert_eq!((made.by_negative_effect, made.matched_losing), (None, None));
        assert_eq!(made.by_best_region.unwrap().value, 1.0);
    }

    /// By hand: text 0 is true of images 0 and 2, text 1 of all.
    #[test]
    fn wrong_images_are_wrong() {
        let truth = Relevance::new(2, vec![vec![0, 1], vec![1], vec![0, 1], vec![1]]);
        let scores = ScoreMatrix::from_rows([[0.9, 0.1], [0.3, 0.2], [0.8, 0.3], [0.5, 0.4]]);
        assert_eq!(hardest(&scores, &truth).unwrap(), [(3, 0)]);
        let drawn = random(&truth);
        assert!(matches!(drawn[..], [(1 | 3, 0)]), "{drawn:?}");
    }
}
