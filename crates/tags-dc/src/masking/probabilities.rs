//! Closed forms of the probabilities of phrases and of labels.

use itm_core::{Error, Result};

use super::{check_rate, checked};

/// The most words of a sentence whose probabilities are asked for.
const MOST_WORDS: usize = 1 << 24;

/// The probability of each phrase from [`checked`]: the mean over its positions of `rate / freq(p)`.
pub(super) fn phrase_probabilities(phrases: &[Vec<usize>], rate: f64) -> Vec<f64> {
    let end = phrases.iter().flatten().max().map_or(0, |&last| last + 1);
    let mut freq = vec![0.0f64; end];
    phrases.iter().flatten().for_each(|&at| freq[at] += 1.0);
    let mean = |phrase: &Vec<usize>| {
        phrase.iter().map(|&at| rate / freq[at]).sum::<f64>() / phrase.len() as f64
    };
    phrases.iter().map(mean).collect()
}

/// The exact probability that each of `words` positions is labelled under masking by phrases.
///
/// ```text
/// P(p labelled) = 1 − Π_{s ∋ p} (1 − P_s) + Z · #{s ∋ p} / #phrases        Z = Π_s (1 − P_s)
/// ```
///
/// The last term is the fallback: if no phrase was chosen, one phrase is drawn uniformly. Phrases are read as
/// [`Masker::maskings`](crate::Masker::maskings) reads them: empty phrases are left out, and without phrases each word is one.
///
/// # Errors
/// If the rate is outside (0, 1], a position is not a word, or there are more than 2²⁴ words.
///
/// ```
/// let p = tags_dc::label_probabilities(&[vec![0], vec![1]], 3, 0.15)?;
/// assert!((p[0] - (0.15 + 0.85 * 0.85 / 2.0)).abs() < 1e-12); // 51 %, not 15 %
/// assert_eq!(p[2], 0.0);
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn label_probabilities(phrases: &[Vec<usize>], words: usize, rate: f64) -> Result<Vec<f64>> {
    check_rate(rate)?;
    Error::unless(words <= MOST_WORDS, "words", format_args!("at most {MOST_WORDS}"), words)?;
    let phrases = checked(phrases, words)?;
    let chances = phrase_probabilities(&phrases, rate);
    let none: f64 = chances.iter().map(|p| 1.0 - p).product();
    let (mut missed, mut with) = (vec![1.0; words], vec![0.0; words]);
    for (phrase, chance) in phrases.iter().zip(chances) {
        for &at in phrase {
            missed[at] *= 1.0 - chance;
            with[at] += 1.0;
        }
    }
    let of = |(missed, with)| 1.0 - missed + none * with / phrases.len() as f64;
    Ok(missed.into_iter().zip(with).map(of).collect())
}
