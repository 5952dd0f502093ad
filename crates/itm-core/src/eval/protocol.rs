//! Which images are evaluated together, and what a protocol insists on.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::ranks::check_shape;
use super::{Evaluation, Ranks, TiePolicy};
use crate::{Error, Pairs, Result, ScoreMatrix};

/// How a test set is evaluated.
///
/// | protocol        | images           | captions an image | metrics                    |
/// |-----------------|------------------|-------------------|----------------------------|
/// | `full`          | any number       | at least 1        | of the whole set           |
/// | `flickr_1k`     | 1,000            | 5                 | of the whole set           |
/// | `coco_1k_folds` | 5,000            | 5                 | mean over 5 folds of 1,000 |
/// | `coco_5k`       | 5,000            | 5                 | of the whole set           |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Protocol {
    /// All images against all texts, any number of captions.
    #[default]
    #[serde(rename = "full")]
    Full,
    /// The 1,000 test images of Flickr30K or Flickr8k.
    #[serde(rename = "flickr_1k")]
    Flickr1k,
    /// Five folds of 1,000 consecutive COCO images with their captions, each ranked within itself.
    #[serde(rename = "coco_1k_folds")]
    Coco1kFolds,
    /// All 5,000 COCO test images.
    #[serde(rename = "coco_5k")]
    Coco5k,
}

impl Protocol {
    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Flickr1k => "flickr_1k",
            Self::Coco1kFolds => "coco_1k_folds",
            Self::Coco5k => "coco_5k",
        }
    }

    /// The folds this protocol ranks one by one; a single fold if it takes the set whole.
    ///
    /// # Errors
    /// If the number of images or the captions of one are not the protocol's.
    pub fn folds(self, pairs: &Pairs) -> Result<Vec<Fold>> {
        let images = match self {
            Self::Full => None,
            Self::Flickr1k => Some(1000),
            Self::Coco1kFolds | Self::Coco5k => Some(5000),
        };
        self.check_images(pairs, images)?;
        self.check_captions(pairs, images.map(|_| 5))?;
        match self {
            Self::Coco1kFolds => folds(pairs, 5, 1000),
            _ => folds(pairs, 1, pairs.images()),
        }
    }

    /// Ranks within each fold.
    ///
    /// # Errors
    /// As [`Protocol::folds`], and if matrix and pairs differ in shape.
    pub fn ranks(self, scores: &ScoreMatrix, pairs: &Pairs) -> Result<Vec<Ranks>> {
        let folds = self.folds(pairs)?;
        if folds.len() == 1 {
            return Ok(vec![Ranks::new(scores, pairs)?]); // without a copy of the matrix
        }
        check_shape(scores, pairs)?;
        folds.iter().map(|fold| Ranks::new(&fold.scores(scores), &fold.pairs)).collect()
    }

    fn check_images(self, pairs: &Pairs, expected: Option<usize>) -> Result<()> {
        let got = pairs.images();
        let wanted = match expected {
            Some(n) if n != got => format!("{n} images"),
            None if got == 0 => "at least 1 image".into(),
            _ => return Ok(()),
        };
        Err(Error::invalid(format!("protocol {self}"), wanted, got))
    }

    fn check_captions(self, pairs: &Pairs, expected: Option<usize>) -> Result<()> {
        let wrong = |&image: &usize| match (expected, pairs.texts_of(image).len()) {
            (Some(n), got) => got != n,
            (None, got) => got == 0,
        };
        let Some(image) = (0..pairs.images()).find(wrong) else { return Ok(()) };
        let wanted = match expected {
            Some(n) => format!("{n} captions"),
            None => "at least 1 caption".into(),
        };
        let place = format!("protocol {self}: image {image}");
        Err(Error::invalid(place, wanted, pairs.texts_of(image).len()))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Consecutive images with their texts: a test set of its own, whose scores are ranked (and re-scored) within itself.
///
/// ```
/// use itm_core::eval::folds;
/// use itm_core::{Pairs, ScoreMatrix};
///
/// let pairs = Pairs::new(2, vec![1, 0, 1])?;
/// let second = &folds(&pairs, 2, 1)?[1];
/// assert_eq!((second.images.clone(), &second.texts[..]), (1..2, &[0, 2][..]));
/// let scores = ScoreMatrix::from_rows([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]);
/// assert_eq!(second.scores(&scores), ScoreMatrix::from_rows([[0.4, 0.6]]));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The images, as indices of the whole set.
    pub images: Range<usize>,
    /// Their texts, ascending, as indices of the whole set.
    pub texts: Vec<usize>,
    /// The pairs within the fold, counted from 0.
    pub pairs: Pairs,
}

impl Fold {
    /// The images of a range with all their texts.
    ///
    /// # Panics
    /// If the range goes beyond the images.
    pub fn new(pairs: &Pairs, images: Range<usize>) -> Self {
        assert!(images.end <= pairs.images(), "images {images:?} of {}", pairs.images());
        let texts: Vec<usize> =
            (0..pairs.texts()).filter(|&t| images.contains(&pairs.image_of(t))).collect();
        let image_of_text = texts.iter().map(|&t| pairs.image_of(t) - images.start).collect();
        let pairs = Pairs::new(images.len(), image_of_text).expect("texts of images of the fold");
        Self { images, texts, pairs }
    }

    /// The scores of the fold's images and texts, copied from those of the whole set.
    ///
    /// # Panics
    /// If the matrix is smaller than the set.
    pub fn scores(&self, scores: &ScoreMatrix) -> ScoreMatrix {
        let mut values = Vec::with_capacity(self.images.len() * self.texts.len());
        for image in self.images.clone() {
            let row = scores.row(image);
            values.extend(self.texts.iter().map(|&t| row[t]));
        }
        ScoreMatrix::new(self.images.len(), self.texts.len(), values).expect("a part of a matrix")
    }
}

/// The first `count · size` images in `count` folds of `size` consecutive images, each with its texts.
///
/// # Errors
/// If a number is 0, or there are fewer images.
pub fn folds(pairs: &Pairs, count: usize, size: usize) -> Result<Vec<Fold>> {
    if count == 0 || size == 0 {
        let got = format!("{count} folds of {size} images");
        return Err(Error::invalid("folds", "at least 1 fold of 1 image", got));
    }
    if count.checked_mul(size).is_none_or(|images| images > pairs.images()) {
        let expected = format!("images for {count} folds of {size}");
        return Err(Error::invalid("folds", expected, format!("{} images", pairs.images())));
    }
    Ok((0..count).map(|f| Fold::new(pairs, f * size..(f + 1) * size)).collect())
}

/// Everything a table shows, from a score matrix.
///
/// # Errors
/// As [`Protocol::ranks`].
pub fn evaluate(
    scores: &ScoreMatrix,
    pairs: &Pairs,
    protocol: Protocol,
    policy: TiePolicy,
) -> Result<Evaluation> {
    Ok(Evaluation::new(&protocol.ranks(scores, pairs)?, policy))
}
