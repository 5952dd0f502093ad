//! The captions of an image: their ids, and how many are kept.

use crate::{Error, Result};

/// Which captions of an image a protocol keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptionRule {
    /// The first `n`; fewer are an error. The published protocols take 5; some COCO images have six or seven.
    First(usize),
    /// All captions; an image must have at least one.
    All,
}

/// What a [`CaptionRule`] left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Captions that were dropped.
    pub captions: usize,
    /// Images that lost captions.
    pub images: usize,
}

impl CaptionRule {
    /// How many of `count` captions stay.
    ///
    /// # Errors
    /// If there are too few.
    pub(crate) fn keep(self, place: &str, count: usize, dropped: &mut Dropped) -> Result<usize> {
        match self {
            Self::First(0) => Err(Error::invalid(place, "a rule of at least 1 caption", 0)),
            Self::First(n) if count < n => {
                Err(Error::invalid(place, format!("{n} captions"), count))
            }
            Self::First(n) => {
                dropped.captions += count - n;
                dropped.images += usize::from(count > n);
                Ok(n)
            }
            Self::All if count == 0 => Err(Error::invalid(place, "a caption", "none")),
            Self::All => Ok(count),
        }
    }
}

/// The image that a caption's id names, and the caption's number among the captions of the image: `1.jpg#0` to `1.jpg#4` in
/// the files of Flickr8k and Flickr30K. `None` if the id does not end in `#` and a number, or names no image.
///
/// ```
/// use itm_data::data::numbered;
///
/// assert_eq!(numbered("a#b.jpg#12"), Some(("a#b.jpg", 12)));
/// assert_eq!((numbered("a.jpg"), numbered("a#b.jpg"), numbered("#0")), (None, None, None));
/// ```
pub fn numbered(id: &str) -> Option<(&str, usize)> {
    let (image, number) = id.rsplit_once('#')?;
    let digits = !image.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| Some((image, number.parse().ok()?))).flatten()
}
