//! How much evidence an image shows for a word, and how little of it makes the word absent.

use std::collections::HashSet;

use itm_core::{Error, Result};

/// The least evidence with which an image shows each word, learnt from the images whose captions have the word.
///
/// ```text
/// b_w = the ⌊q n⌋-th smallest, from 0, of e(i, w) over the n training images i whose captions have w
/// w is absent from i   ⇔   e(i, w) < b_w
/// ```
///
/// | symbol | here |
/// |---|---|
/// | e(i, w) | the evidence of an image for a word, such as the largest score of the word with a region by any model |
/// | q | `quantile` |
///
/// A word of no training caption is never absent. Learn the bounds from training captions only.
///
/// ```
/// use tags_dc::EvidenceBounds;
///
/// let evidence = [[0.9, 0.1], [0.7, 0.8], [0.8, 0.2]]; // three images × two words
/// let told = [vec![0], vec![0, 1], vec![0]]; // the words of the captions of each image
/// let of = |image: usize, words: &[u32]| Ok(words.iter().map(|&w| evidence[image][w as usize]).collect());
/// let bounds = EvidenceBounds::fit(2, &told, 0.1, of)?;
/// let absent = bounds.absent(&[0.75, 0.79]); // of another image
/// assert!(!absent.contains(&0)); // 0.75 ≥ 0.7, the lowest of three
/// assert!(absent.contains(&1)); // 0.79 < 0.8
/// # Ok::<(), tags_dc::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct EvidenceBounds(Vec<f32>);

impl EvidenceBounds {
    /// Learns the bounds of words below `words`. `told` has the distinct words of each image's captions; `evidence` gives the evidence of an
    /// image for some words.
    ///
    /// # Errors
    /// If `quantile` is not a share below 1, a word is not below `words`, or there is not one number per asked word; also the errors of
    /// `evidence`.
    pub fn fit(
        words: usize,
        told: &[Vec<u32>],
        quantile: f64,
        mut evidence: impl FnMut(usize, &[u32]) -> Result<Vec<f32>>,
    ) -> Result<Self> {
        below_one("quantile", quantile)?;
        let mut of_word: Vec<Vec<f32>> = vec![vec![]; words];
        for (image, told) in told.iter().enumerate() {
            if let Some(word) = told.iter().find(|&&word| word as usize >= words) {
                let expected = format!("words below {words}");
                return Err(Error::invalid(format!("words of image {image}"), expected, word));
            }
            let values = evidence(image, told)?;
            if values.len() != told.len() || values.iter().any(|x| x.is_nan()) {
                let expected = format!("{} numbers", told.len());
                let got = format!("{values:?}");
                return Err(Error::invalid(format!("evidence of image {image}"), expected, got));
            }
            told.iter().zip(values).for_each(|(&word, x)| of_word[word as usize].push(x));
        }
        let bound = |mut values: Vec<f32>| {
            values.sort_unstable_by(f32::total_cmp);
            let at = (quantile * values.len() as f64) as usize;
            values.get(at).copied().unwrap_or(f32::NEG_INFINITY)
        };
        Ok(Self(of_word.into_iter().map(bound).collect()))
    }

    /// The words that are absent from an image with this evidence, one number per word. A word without a number or a bound is not absent.
    pub fn absent(&self, evidence: &[f32]) -> HashSet<u32> {
        let words = (0..).zip(self.0.iter().zip(evidence));
        words.filter(|(_, (bound, x))| x < bound).map(|(word, _)| word).collect()
    }
}

/// # Errors
/// If the value is not a share below 1.
pub(crate) fn below_one(key: &str, share: f64) -> Result<()> {
    Error::unless((0.0..1.0).contains(&share), key, "a share below 1", share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(quantile: f64, told: &[Vec<u32>]) -> Result<EvidenceBounds> {
        // Image i has evidence (i + 1) / 10 for word 0, and 0 for word 1.
        EvidenceBounds::fit(3, told, quantile, |image, words| {
            let of = |&word: &u32| if word == 0 { (image + 1) as f32 / 10.0 } else { 0.0 };
            Ok(words.iter().map(of).collect())
        })
    }

    /// By hand: of ten images whose captions have word 0, a quantile of 0.2 is the third lowest.
    #[test]
    fn golden_bounds() {
        let told = vec![vec![0, 1]; 10];
        for (quantile, lowest) in [(0.0, 0.1), (0.19, 0.2), (0.2, 0.3), (0.99, 1.0)] {
            let bounds = bounds(quantile, &told).unwrap();
            let at = |x: f32| bounds.absent(&[x, 0.0, -9.0]);
            assert!(at(lowest - 1e-4).contains(&0) && !at(lowest).contains(&0), "{quantile}");
            assert!(!at(0.0).contains(&1), "evidence that is 0 everywhere");
            assert!(!at(0.0).contains(&2), "no caption has word 2");
            assert!(!at(0.0).contains(&7), "a mark behind the words");
        }
        assert!(!bounds(0.2, &told).unwrap().absent(&[]).contains(&0), "no evidence is known");
    }

    #[test]
    fn bad_evidence_is_refused() {
        let line = |bounds: Result<EvidenceBounds>| bounds.unwrap_err().to_string();
        assert_eq!(line(bounds(1.0, &[])), "quantile: expected a share below 1, got 1");
        assert!(bounds(f64::NAN, &[]).is_err());
        let word = line(bounds(0.1, &[vec![0], vec![3]]));
        assert_eq!(word, "words of image 1: expected words below 3, got 3");
        let fit =
            |values: Vec<f32>| EvidenceBounds::fit(3, &[vec![0]], 0.1, |_, _| Ok(values.clone()));
        assert_eq!(line(fit(vec![])), "evidence of image 0: expected 1 numbers, got []");
        assert!(fit(vec![f32::NAN]).is_err());
    }
}
