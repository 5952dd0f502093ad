//! How much evidence an image shows for a word, and how little of it makes the word absent.

use itm_core::data::Regions;
use itm_core::start::{LinearMap, Start};
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
/// | e(i, w) | the evidence of an image for a word: [`StartEvidence`], or the largest score of the word with a region by any model |
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
/// assert!(!absent.contains(0)); // 0.75 ≥ 0.7, the lowest of three
/// assert!(absent.contains(1)); // 0.79 < 0.8
/// # Ok::<(), tags_dc::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvidenceBounds(Vec<f32>);

/// The words that an image shows too little evidence for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbsentWords(Vec<bool>);

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
    pub fn absent(&self, evidence: &[f32]) -> AbsentWords {
        AbsentWords(self.0.iter().zip(evidence).map(|(bound, x)| x < bound).collect())
    }
}

impl AbsentWords {
    /// Whether the image shows too little evidence for the token.
    pub fn contains(&self, token: u32) -> bool {
        self.0.get(token as usize).is_some_and(|&absent| absent)
    }
}

/// # Errors
/// If the value is not a share below 1.
pub(crate) fn below_one(key: &str, share: f64) -> Result<()> {
    Error::unless((0.0..1.0).contains(&share), key, "a share below 1", share)
}

/// Evidence without training: the largest cosine between a word and a region of the image, both mapped by closed-form CCA.
///
/// ```text
/// e(i, w) = max_r cos( W′xᵀ r + b′x,  W′y[w] + b′y )     over the columns of CCA only
/// ```
///
/// A word without a known stem has a row of zeros in W′y. Its evidence is 0 for every image, so that it is never absent.
#[derive(Debug, Clone, PartialEq)]
pub struct StartEvidence {
    /// W′x and b′x.
    image: LinearMap,
    /// Words at unit length, `[words, k]`.
    words: Vec<f32>,
    /// Number of columns that come from CCA.
    k: usize,
}

impl StartEvidence {
    /// The evidence of a start whose text map has one row per word ([`Start::of_words`]).
    pub fn new(start: &Start) -> Self {
        let (k, d) = (start.dims(), start.text.bias.len());
        let LinearMap { weight, bias } = &start.text;
        let word = |row: &[f32]| match row.iter().all(|&x| x == 0.0) {
            true => vec![0.0; k],
            false => unit(&row.iter().zip(bias).take(k).map(|(x, b)| x + b).collect::<Vec<_>>()),
        };
        let words = weight.chunks(d.max(1)).flat_map(word).collect();
        Self { image: start.image.clone(), words, k }
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.words.len() / self.k.max(1)
    }

    /// The evidence of an image for these words.
    ///
    /// # Errors
    /// If the regions have another width than the start's images, or a region cannot be read.
    ///
    /// # Panics
    /// If the image or a word does not exist.
    pub fn of(&self, regions: &Regions, image: usize, words: &[u32]) -> Result<Vec<f32>> {
        let d = self.image.bias.len();
        let width = self.image.weight.len() / d.max(1);
        let expected = format_args!("{width} wide");
        Error::unless(regions.dim() == width, "regions", expected, regions.dim())?;
        let rows = regions.rows(&[image])?;
        let mapped: Vec<Vec<f32>> = rows.values.chunks(width).map(|row| self.mapped(row)).collect();
        let cosine = |&word: &u32| {
            let of_word = &self.words[word as usize * self.k..][..self.k];
            let dot = |row: &Vec<f32>| row.iter().zip(of_word).map(|(x, y)| x * y).sum::<f32>();
            mapped.iter().map(dot).fold(f32::NEG_INFINITY, f32::max)
        };
        Ok(words.iter().map(cosine).collect())
    }

    /// A region in CCA's columns, at unit length.
    fn mapped(&self, region: &[f32]) -> Vec<f32> {
        let LinearMap { weight, bias } = &self.image;
        let mut mapped = bias[..self.k].to_vec();
        for (x, row) in region.iter().zip(weight.chunks(bias.len())) {
            mapped.iter_mut().zip(row).for_each(|(sum, w)| *sum += x * w);
        }
        unit(&mapped)
    }
}

/// The vector at unit length; zeros stay.
pub(crate) fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter().map(|x| x / norm).collect()
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
            assert!(at(lowest - 1e-4).contains(0) && !at(lowest).contains(0), "{quantile}");
            assert!(!at(0.0).contains(1), "evidence that is 0 everywhere");
            assert!(!at(0.0).contains(2), "no caption has word 2");
            assert!(!at(0.0).contains(7), "a mark behind the words");
        }
        assert!(!bounds(0.2, &told).unwrap().absent(&[]).contains(0), "no evidence is known");
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

    /// By hand: k = 2 of 3 columns. Word 0 is (3, 4) / 5 with its bias, word 1 has no stem, word 2 is (0, −1). The regions map to
    /// (1, 0) and (0, 2).
    #[test]
    fn golden_evidence_of_a_start() {
        let image =
            LinearMap { weight: vec![1.0, 0.0, 9.0, 0.0, 1.0, 9.0], bias: vec![0.0, 1.0, 0.0] };
        let text = LinearMap {
            weight: vec![3.0, 3.0, 7.0, 0.0, 0.0, 0.0, 0.0, -2.0, 7.0],
            bias: vec![0.0, 1.0, 0.0],
        };
        let evidence = StartEvidence::new(&Start { image, text });
        assert_eq!(evidence.words(), 3);
        let regions = Regions::new(2, vec![1, 2], vec![5.0, 5.0, 1.0, -1.0, 0.0, 1.0]).unwrap();
        let got = evidence.of(&regions, 1, &[0, 1, 2]).unwrap();
        let want = [0.8, 0.0, 0.0]; // of 0.6 and 0.8; nothing; of 0 and −1
        assert!(got.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-6), "{got:?}");
        let wide = Regions::new(3, vec![1], vec![0.0; 3]).unwrap();
        let line = evidence.of(&wide, 0, &[0]).unwrap_err().to_string();
        assert_eq!(line, "regions: expected 2 wide, got 3");
    }
}
