//! Which texts belong to which image.

use crate::{Error, Result};

/// The annotated pairs of a split: every text belongs to one image, and an image has any number of texts.
///
/// ```
/// use itm_core::Pairs;
///
/// let pairs = Pairs::new(2, vec![0, 0, 1])?; // texts 0 and 1 describe image 0, text 2 image 1
/// assert_eq!(pairs.texts_of(0), [0, 1]);
/// assert_eq!(pairs.image_of(2), 1);
/// assert_eq!(pairs.captions_per_image(), None);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    image_of_text: Vec<usize>,
    first: Vec<usize>, // texts[first[i]..first[i + 1]] belong to image i
    texts: Vec<usize>, // grouped by image, ascending within an image
}

impl Pairs {
    /// Pairs from the image of each text.
    ///
    /// # Errors
    /// If a text names an image that does not exist. Images without a text are allowed here, but protocols refuse them.
    pub fn new(images: usize, image_of_text: Vec<usize>) -> Result<Self> {
        if let Some(text) = image_of_text.iter().position(|&i| i >= images) {
            let (place, bound) =
                (format!("pairs, text {text}"), format!("an image below {images}"));
            return Err(Error::invalid(place, bound, image_of_text[text]));
        }
        let mut first = vec![0; images + 1];
        for &image in &image_of_text {
            first[image + 1] += 1;
        }
        for i in 0..images {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut texts = vec![0; image_of_text.len()];
        for (text, &image) in image_of_text.iter().enumerate() {
            texts[next[image]] = text;
            next[image] += 1;
        }
        Ok(Self { image_of_text, first, texts })
    }

    /// Texts `c·i … c·i + c − 1` belong to image `i`: the usual layout, `c = 5`.
    pub fn uniform(images: usize, captions_per_image: usize) -> Self {
        let image_of_text = (0..images * captions_per_image).map(|t| t / captions_per_image);
        Self {
            image_of_text: image_of_text.collect(),
            first: (0..=images).map(|i| i * captions_per_image).collect(),
            texts: (0..images * captions_per_image).collect(),
        }
    }

    /// Number of images.
    pub fn images(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of texts.
    pub fn texts(&self) -> usize {
        self.image_of_text.len()
    }

    /// The texts of an image, ascending.
    pub fn texts_of(&self, image: usize) -> &[usize] {
        &self.texts[self.first[image]..self.first[image + 1]]
    }

    /// The image of a text.
    pub fn image_of(&self, text: usize) -> usize {
        self.image_of_text[text]
    }

    /// The image of every text.
    pub fn image_of_text(&self) -> &[usize] {
        &self.image_of_text
    }

    /// `c` if every image has exactly `c` texts.
    pub fn captions_per_image(&self) -> Option<usize> {
        let count = self.texts_of_len(0)?;
        (1..self.images()).all(|i| self.texts_of_len(i) == Some(count)).then_some(count)
    }

    fn texts_of_len(&self, image: usize) -> Option<usize> {
        (image < self.images()).then(|| self.first[image + 1] - self.first[image])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_is_the_general_form() {
        let image_of_text = (0..15).map(|t| t / 5).collect();
        assert_eq!(Pairs::uniform(3, 5), Pairs::new(3, image_of_text).unwrap());
        assert_eq!(Pairs::uniform(3, 5).captions_per_image(), Some(5));
    }

    #[test]
    fn interleaved_texts_are_grouped_by_image() {
        let pairs = Pairs::new(3, vec![2, 0, 2, 0, 0]).unwrap();
        assert_eq!(pairs.texts_of(0), [1, 3, 4]);
        assert_eq!(pairs.texts_of(1), [] as [usize; 0]);
        assert_eq!(pairs.texts_of(2), [0, 2]);
        assert_eq!(pairs.captions_per_image(), None);
    }

    #[test]
    fn an_unknown_image_is_refused() {
        let error = Pairs::new(2, vec![0, 2]).unwrap_err().to_string();
        assert_eq!(error, "pairs, text 1: expected an image below 2, got 2");
    }
}
