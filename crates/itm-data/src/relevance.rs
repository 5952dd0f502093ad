//! All true pairs, not only the annotated ones.

use std::ops::Range;

/// A sparse boolean matrix of images × texts: which texts are true of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relevance {
    texts_of_image: Vec<Vec<u32>>,
    images_of_text: Vec<Vec<u32>>,
    /// One bit per pair, image by image, where bits take no more memory than the lists: audits look up millions of pairs.
    bits: Option<Vec<u64>>,
}

impl Relevance {
    /// Takes the true texts of each image, in any order.
    ///
    /// # Panics
    /// If a text is not below `texts`, or there are 2³² texts or more.
    pub fn new(texts: usize, mut texts_of_image: Vec<Vec<u32>>) -> Self {
        assert!(u32::try_from(texts).is_ok(), "{texts} texts, not fewer than 2³²");
        let mut images_of_text = vec![Vec::new(); texts];
        for (image, row) in texts_of_image.iter_mut().enumerate() {
            row.sort_unstable();
            row.dedup();
            if let Some(text) = row.last().filter(|&&text| text as usize >= texts) {
                panic!("image {image}: text {text} of {texts}");
            }
            row.iter().for_each(|&t| images_of_text[t as usize].push(image as u32));
        }
        let bits = bits(texts, &texts_of_image);
        Self { texts_of_image, images_of_text, bits }
    }

    /// The true pairs of a part: consecutive images, and texts in ascending order. Both are numbered from 0 in the result.
    ///
    /// ```
    /// use itm_data::Relevance;
    ///
    /// let all = Relevance::new(3, vec![vec![0], vec![1, 2], vec![2]]);
    /// assert_eq!(all.within(1..3, &[0, 2]), Relevance::new(2, vec![vec![1], vec![1]]));
    /// ```
    ///
    /// # Panics
    /// If the range goes beyond the images, or the texts do not ascend.
    pub fn within(&self, images: Range<usize>, texts: &[usize]) -> Self {
        assert!(texts.is_sorted_by(|a, b| a < b), "texts of a part: not in ascending order");
        let place = |text: &u32| texts.binary_search(&(*text as usize)).ok().map(|t| t as u32);
        let of = |image: usize| self.texts_of(image).iter().filter_map(place).collect();
        Self::new(texts.len(), images.map(of).collect())
    }

    /// The texts that are true of an image, ascending.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn texts_of(&self, image: usize) -> &[u32] {
        assert!(image < self.images(), "image {image} of {}", self.images());
        &self.texts_of_image[image]
    }

    /// The images that a text is true of, ascending.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn images_of(&self, text: usize) -> &[u32] {
        assert!(text < self.texts(), "text {text} of {}", self.texts());
        &self.images_of_text[text]
    }

    /// Whether the text is true of the image.
    ///
    /// # Panics
    /// If there is no such image or text.
    pub fn contains(&self, image: usize, text: usize) -> bool {
        assert!(image < self.images() && text < self.texts(), "no image {image} or no text {text}");
        match &self.bits {
            Some(bits) => {
                let (word, bit) = bit_of(self.texts(), image, text);
                bits[word] >> bit & 1 == 1
            }
            None => self.texts_of_image[image].binary_search(&(text as u32)).is_ok(),
        }
    }

    /// Number of images.
    pub fn images(&self) -> usize {
        self.texts_of_image.len()
    }

    /// Number of texts.
    pub fn texts(&self) -> usize {
        self.images_of_text.len()
    }

    /// Number of true pairs.
    pub fn len(&self) -> usize {
        self.texts_of_image.iter().map(Vec::len).sum()
    }

    /// Whether no pair is true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The place of a pair's bit: word and bit within it. Each image begins with a new word.
fn bit_of(texts: usize, image: usize, text: usize) -> (usize, usize) {
    (image * texts.div_ceil(64) + text / 64, text % 64)
}

/// The bits of all pairs, unless they take more memory than the lists (8 bytes per true pair).
fn bits(texts: usize, texts_of_image: &[Vec<u32>]) -> Option<Vec<u64>> {
    let words = texts.div_ceil(64).checked_mul(texts_of_image.len())?;
    if words > texts_of_image.iter().map(Vec::len).sum() {
        return None;
    }
    let mut bits = vec![0; words];
    for (image, row) in texts_of_image.iter().enumerate() {
        for &text in row {
            let (word, bit) = bit_of(texts, image, text as usize);
            bits[word] |= 1 << bit;
        }
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 70 texts take two words per image: three images fit into 6 true pairs, not into 5.
    #[test]
    fn bits_answer_as_lists_do() {
        for last in [vec![69], vec![]] {
            let rows = vec![vec![0, 63, 64, 69], vec![5], last];
            let r = Relevance::new(70, rows.clone());
            assert_eq!(r.bits.is_some(), r.len() == 6);
            for (image, row) in rows.iter().enumerate() {
                (0..70).for_each(|t| assert_eq!(r.contains(image, t), row.contains(&(t as u32))));
            }
        }
    }

    #[test]
    fn both_sides_agree() {
        let r = Relevance::new(3, vec![vec![2, 0], vec![2, 2]]);
        assert_eq!(r.texts_of(0), [0, 2]);
        assert_eq!(r.images_of(2), [0, 1]);
        assert!(r.contains(1, 2) && !r.contains(1, 0));
        assert_eq!(r.len(), 3);
    }
}
