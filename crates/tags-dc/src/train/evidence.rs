//! How much evidence an image shows for a word, by closed-form CCA.

use itm_core::data::Regions;
use itm_core::start::{LinearMap, Start};
use itm_core::{Error, Result};

use crate::model::unit;

/// Evidence without training: the largest cosine between a word and a region of the image, both mapped by closed-form CCA.
///
/// ```text
/// e(i, w) = max_r cos( W′xᵀ r + b′x,  W′y[w] + b′y )     over the columns of CCA only
/// ```
///
/// A word without a known stem has a row of zeros in W′y. Its evidence is 0 for every image, so that it is never absent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StartEvidence {
    /// W′x and b′x.
    image: LinearMap,
    /// Words at unit length, `[words, k]`.
    words: Vec<f32>,
    /// Number of columns that come from CCA.
    k: usize,
}

impl StartEvidence {
    /// The evidence of a start whose text map has one row per word ([`Start::of_words`]).
    pub(super) fn new(start: &Start) -> Self {
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
    pub(super) fn words(&self) -> usize {
        self.words.len() / self.k.max(1)
    }

    /// The evidence of an image for these words.
    ///
    /// # Errors
    /// If the regions have another width than the start's images, or a region cannot be read.
    ///
    /// # Panics
    /// If the image or a word does not exist.
    pub(super) fn of(&self, regions: &Regions, image: usize, words: &[u32]) -> Result<Vec<f32>> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
