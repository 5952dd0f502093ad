//! Which images are evaluated together, and what a protocol requires.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Error, Pairs, Result};

/// How a test set is evaluated.
///
/// | protocol        | images           | captions per image | metrics                    |
/// |-----------------|------------------|--------------------|----------------------------|
/// | `full`          | at least 1       | at least 1         | of the whole set           |
/// | `flickr_1k`     | 1,000            | 5                  | of the whole set           |
/// | `coco_1k_folds` | 5,000            | 5                  | mean over 5 folds of 1,000 |
/// | `coco_first_1k` | 5,000            | 5                  | of the first 1,000         |
/// | `coco_5k`       | 5,000            | 5                  | of the whole set           |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Protocol {
    /// All images against all texts, any number of captions per image.
    #[default]
    #[serde(rename = "full")]
    Full,
    /// The 1,000 test images of Flickr30K or Flickr8k.
    #[serde(rename = "flickr_1k")]
    Flickr1k,
    /// Five folds of 1,000 consecutive COCO images with their captions; each fold is ranked separately.
    #[serde(rename = "coco_1k_folds")]
    Coco1kFolds,
    /// The first 1,000 COCO test images: fold 0 of the five.
    #[serde(rename = "coco_first_1k")]
    CocoFirst1k,
    /// All 5,000 COCO test images.
    #[serde(rename = "coco_5k")]
    Coco5k,
}

impl Protocol {
    /// The number of images that the protocol requires.
    pub fn images(self) -> Option<usize> {
        match self {
            Self::Full => None,
            Self::Flickr1k => Some(1000),
            Self::Coco1kFolds | Self::CocoFirst1k | Self::Coco5k => Some(5000),
        }
    }

    /// The folds that this protocol ranks one by one; a single fold if it ranks the whole set.
    ///
    /// # Errors
    /// If the number of images, or the number of captions of an image, does not fit the protocol, or the pairs are judged and the
    /// protocol is not `full`.
    pub fn folds(self, pairs: &Pairs) -> Result<Vec<Fold>> {
        let (images, place) = (self.images(), format!("protocol {self}"));
        let expected = "one image for each text; judged pairs have protocol full";
        let fits = !pairs.is_judged() || images.is_none();
        Error::unless(fits, &place, expected, "judged pairs")?;
        let wanted = |number: Option<usize>, what: &str| match number {
            Some(number) => format!("{number} {what}s (protocol full takes any number)"),
            None => format!("at least 1 {what}"),
        };
        let got = pairs.images();
        let fits = images.map_or(got > 0, |number| got == number);
        Error::unless(fits, &place, wanted(images, "image"), got)?;
        let captions = images.map(|_| 5);
        for image in 0..got {
            let got = pairs.texts_of(image).len();
            let fits = captions.map_or(got > 0 || pairs.is_judged(), |number| got == number);
            if !fits {
                let place = format!("{place}: image {image}");
                return Err(Error::invalid(place, wanted(captions, "caption"), got));
            }
        }
        match self {
            Self::Coco1kFolds => folds(pairs, 5, 1000),
            Self::CocoFirst1k => folds(pairs, 1, 1000),
            _ => folds(pairs, 1, pairs.images()),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f) // the name in configs and reports
    }
}

/// Consecutive images with their texts, ranked (and re-scored) as a separate test set.
///
/// ```
/// use itm_core::eval::folds;
/// use itm_core::scored::Scored;
/// use itm_core::{Pairs, ScoreMatrix};
///
/// let pairs = Pairs::new(2, vec![1, 0, 1])?;
/// let second = &folds(&pairs, 2, 1)?[1];
/// assert_eq!((second.images.clone(), &second.texts[..]), (1..2, &[0, 2][..]));
/// let scores = ScoreMatrix::from_rows([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]);
/// assert_eq!(<dyn Scored>::fold(&scores, second)?, ScoreMatrix::from_rows([[0.4, 0.6]]));
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
    /// The images of a range with all their texts; for all images, all texts.
    ///
    /// # Panics
    /// If the range goes beyond the images.
    pub fn new(pairs: &Pairs, images: Range<usize>) -> Self {
        assert!(images.end <= pairs.images(), "images {images:?} of {}", pairs.images());
        if images.len() == pairs.images() {
            let texts = (0..pairs.texts()).collect();
            return Self { images, texts, pairs: pairs.clone() };
        }
        let inside = |text: usize| {
            let found = pairs.images_of(text).iter().filter(|&image| images.contains(image));
            found.map(|image| image - images.start).collect::<Vec<_>>()
        };
        let texts: Vec<usize> = (0..pairs.texts()).filter(|&t| !inside(t).is_empty()).collect();
        let of_texts = texts.iter().map(|&text| inside(text));
        let pairs = match pairs.is_judged() {
            true => Pairs::judged(images.len(), of_texts.collect()),
            false => Pairs::new(images.len(), of_texts.flatten().collect()),
        };
        Self { images, texts, pairs: pairs.expect("texts of images of the fold") }
    }
}

/// The first `count · size` images in `count` folds of `size` consecutive images, each with its texts.
///
/// # Errors
/// If `count` or `size` is 0, or there are fewer than `count · size` images.
pub fn folds(pairs: &Pairs, count: usize, size: usize) -> Result<Vec<Fold>> {
    let got = format!("{count} folds of {size} images");
    Error::unless(count > 0 && size > 0, "folds", "at least 1 fold of 1 image", got)?;
    let fits = count.checked_mul(size).is_some_and(|images| images <= pairs.images());
    let expected = format!("images for {count} folds of {size}");
    Error::unless(fits, "folds", expected, format_args!("{} images", pairs.images()))?;
    Ok((0..count).map(|f| Fold::new(pairs, f * size..(f + 1) * size)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScoreMatrix;
    use crate::eval::{Evaluation, Ranks, TiePolicy};
    use crate::scored::Scored;

    fn error(protocol: Protocol, pairs: &Pairs) -> String {
        protocol.folds(pairs).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_image() {
        let mut owner: Vec<usize> = (0..5000).map(|t| t / 5).collect();
        owner.drain(87..89); // image 17 loses two captions
        let error_of = |p| error(p, &Pairs::new(1000, owner.clone()).unwrap());
        assert_eq!(
            error_of(Protocol::Flickr1k),
            "protocol flickr_1k: image 17: expected 5 captions (protocol full takes any number), got 3"
        );
        assert_eq!(
            error_of(Protocol::Coco5k),
            "protocol coco_5k: expected 5000 images (protocol full takes any number), got 1000"
        );
        assert!(Protocol::Full.folds(&Pairs::new(1000, owner.clone()).unwrap()).is_ok());
        assert_eq!(
            error(Protocol::Full, &Pairs::new(3, vec![0, 2, 2]).unwrap()),
            "protocol full: image 1: expected at least 1 caption, got 0"
        );
        assert_eq!(
            error(Protocol::Full, &Pairs::uniform(0, 5)),
            "protocol full: expected at least 1 image, got 0"
        );
    }

    /// A sixth caption does not shift the captions of other images, and protocols that need five refuse it.
    #[test]
    fn six_captions_keep_indices_aligned() {
        let mut owner: Vec<usize> = (0..5000).map(|t| t / 5).collect();
        owner.insert(5, 0);
        let pairs = Pairs::new(1000, owner).unwrap();
        assert_eq!(
            error(Protocol::Flickr1k, &pairs),
            "protocol flickr_1k: image 0: expected 5 captions (protocol full takes any number), got 6"
        );
        assert_eq!(pairs.texts_of(1), [6, 7, 8, 9, 10]);
        let mut values = vec![0.0; 1000 * 5001];
        (0..5001).for_each(|t| values[pairs.image_of(t) * 5001 + t] = 1.0);
        let scores = ScoreMatrix::new(1000, 5001, values).unwrap();
        let evaluation =
            <dyn Scored>::evaluate(&scores, Protocol::Full, &pairs, TiePolicy::Pessimistic)
                .unwrap();
        assert_eq!(evaluation.rsum, 600.0);
    }

    #[test]
    fn coco_is_five_folds_of_its_images() {
        let pairs = Pairs::uniform(5000, 5);
        let folds = Protocol::Coco1kFolds.folds(&pairs).unwrap();
        assert_eq!(folds.len(), 5);
        for (f, fold) in folds.iter().enumerate() {
            assert_eq!(fold.images, f * 1000..(f + 1) * 1000);
            assert_eq!((fold.texts[0], fold.texts.len()), (f * 5000, 5000));
            assert_eq!(fold.pairs, Pairs::uniform(1000, 5));
        }
        let first = Protocol::CocoFirst1k.folds(&pairs).unwrap();
        assert_eq!(first, folds[..1]);
        let whole = Protocol::Coco5k.folds(&pairs).unwrap();
        assert_eq!((whole.len(), &whole[0].pairs), (1, &pairs));
    }

    /// One fold of a larger set is ranked alone: in the whole set, the third image's text beats every other.
    #[test]
    fn one_fold_is_not_the_whole() {
        let pairs = Pairs::uniform(3, 1);
        let scores = ScoreMatrix::from_rows([[2.0, 1.0, 9.0], [1.0, 2.0, 9.0], [9.0, 9.0, 0.0]]);
        let first = &folds(&pairs, 1, 2).unwrap()[0];
        let own = <dyn Scored>::fold(&scores, first).unwrap();
        let first = Ranks::new(&own, &first.pairs).unwrap();
        assert_eq!(Evaluation::new(&[first], TiePolicy::Pessimistic).rsum, 600.0);
        let whole = <dyn Scored>::ranks_by(&scores, Protocol::Full, &pairs).unwrap();
        assert_eq!(whole, [Ranks::new(&scores, &pairs).unwrap()]);
    }

    /// A score of another fold cannot change a rank.
    #[test]
    fn folds_rank_within_themselves() {
        let pairs = Pairs::new(4, vec![3, 0, 1, 2]).unwrap();
        let scores = ScoreMatrix::from_rows([
            [9.0, 1.0, 0.0, 9.0],
            [9.0, 0.0, 1.0, 9.0],
            [0.0, 9.0, 9.0, 1.0],
            [1.0, 9.0, 9.0, 0.0],
        ]);
        let folds = folds(&pairs, 2, 2).unwrap();
        assert_eq!(folds[1].texts, [0, 3]);
        assert_eq!(folds[1].pairs.image_of_text(), [1, 0]);
        let ranks =
            |f: &Fold| Ranks::new(&<dyn Scored>::fold(&scores, f).unwrap(), &f.pairs).unwrap();
        let ranks: Vec<_> = folds.iter().map(ranks).collect();
        assert_eq!(Evaluation::new(&ranks, TiePolicy::Pessimistic).rsum, 600.0);
        let whole =
            <dyn Scored>::evaluate(&scores, Protocol::Full, &pairs, TiePolicy::Index).unwrap();
        assert_eq!(whole.i2t.r1, 0.0);
    }

    #[test]
    fn a_fold_may_start_anywhere() {
        let fold = Fold::new(&Pairs::new(4, vec![2, 0, 3, 1]).unwrap(), 1..3);
        assert_eq!(fold.texts, [0, 3]);
        assert_eq!(fold.pairs.image_of_text(), [1, 0]);
    }

    #[test]
    fn folds_need_images() {
        let error =
            |count, size| folds(&Pairs::uniform(9, 1), count, size).unwrap_err().to_string();
        assert_eq!(error(2, 5), "folds: expected images for 2 folds of 5, got 9 images");
        assert_eq!(
            error(0, 5),
            "folds: expected at least 1 fold of 1 image, got 0 folds of 5 images"
        );
        assert!(folds(&Pairs::uniform(9, 1), usize::MAX, 2).is_err());
    }

    #[test]
    fn names_are_those_of_configs() {
        use Protocol::{Coco1kFolds, Coco5k, CocoFirst1k, Flickr1k, Full};
        for p in [Full, Flickr1k, Coco1kFolds, CocoFirst1k, Coco5k] {
            assert_eq!(serde_json::to_value(p).unwrap(), p.to_string());
        }
    }
}
