//! The inputs of a method: a batch of pairs in training, the items of a split in evaluation.

use super::at_least_one;
use crate::data::{Features, RegionRows, Regions, item_of};
#[cfg(feature = "images")]
use crate::vision::PictureBatch;
use crate::{Error, Pairs, Result};

/// The pairs of one step: row i of each field belongs to pair i.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// Features or pixels.
    pub images: Images<'a>,
    /// The word numbers of each caption.
    pub texts: &'a [&'a [u32]],
    /// Image ids, `[b]`.
    pub image_ids: &'a [i64],
    /// Caption ids, `[b]`. A memory uses them to leave out the own captions, an audit to identify captions.
    pub caption_ids: &'a [i64],
    /// The training split of the batch, with items numbered as in the ids, for a method that searches it for negatives.
    /// `None` if the caller has only the batch.
    pub train: Option<Items<'a>>,
}

impl Batch<'_> {
    /// The number b of pairs.
    ///
    /// # Errors
    /// If there is no pair, the texts, numbers or region counts differ in their number of rows, or a value of an image is NaN or infinite;
    /// names the row. Rows of features and pictures are up to the encoder, which knows their size.
    pub fn pairs(&self) -> Result<usize> {
        let b = self.image_ids.len();
        at_least_one("pairs of the batch", b)?;
        let expected = format_args!("{b}, one per pair");
        let counted = |what: &str, got: usize| {
            Error::unless(got == b, format_args!("{what} of the batch"), expected, got)
        };
        counted("texts", self.texts.len())?;
        counted("caption numbers", self.caption_ids.len())?;
        if let Images::Regions { width, counts, values } = self.images {
            counted("region counts", counts.len())?;
            // A sum that does not fit is no length of a slice.
            let rows = counts.iter().fold(0usize, |rows, &count| rows.saturating_add(count));
            let all = rows.saturating_mul(width);
            let expected = format_args!("{all} values, as the counts say");
            Error::unless(values.len() == all, "regions of the batch", expected, values.len())?;
        }
        let values = self.images.values();
        Error::unless_finite(values, |at| self.place(at), "finite values")?;
        Ok(b)
    }

    /// The place of a value, for error messages.
    fn place(&self, at: usize) -> String {
        let Images::Regions { width, counts, .. } = self.images else {
            let of_one = self.images.values().len() / self.image_ids.len();
            return format!("image {} of the batch", at / of_one.max(1));
        };
        let (image, region) = item_of(counts, at / width);
        format!("image {image} of the batch, region {region}")
    }
}

/// Refuses texts without a word and texts with more than `most` words.
///
/// # Errors
/// Names the place of the text in the batch.
pub fn check_texts<C: AsRef<[u32]>>(texts: &[C], most: Option<usize>) -> Result<()> {
    let fits = 1..=most.unwrap_or(usize::MAX);
    let bad = texts.iter().position(|text| !fits.contains(&text.as_ref().len()));
    let Some(row) = bad else { return Ok(()) };
    let (place, got) = (format!("caption {row} of the batch"), texts[row].as_ref().len());
    let expected = match got {
        0 => "at least one word; [CLS] and [SEP] or <unk> for a text without any".to_owned(),
        _ => format!("at most {} word pieces", fits.end()),
    };
    Err(Error::invalid(place, expected, got))
}

/// Images of a batch, one row each.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Images<'a> {
    /// Global features, `[b, width]` row-major, as in the data.
    Features(&'a [f32]),
    /// Region features, as in the data.
    Regions {
        /// Width of a region.
        width: usize,
        /// Number of regions of each image, `[b]`.
        counts: &'a [usize],
        /// `[Σ counts, width]`
        values: &'a [f32],
    },
    /// Normalised pixels.
    Pixels {
        /// Height and width.
        size: usize,
        /// `[b, 3, size, size]`
        values: &'a [f32],
    },
}

impl<'a> Images<'a> {
    /// All values.
    pub fn values(self) -> &'a [f32] {
        match self {
            Self::Features(values) | Self::Regions { values, .. } | Self::Pixels { values, .. } => {
                values
            }
        }
    }

    /// Kind of the images: `features`, `regions` or `pictures`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Features(_) => "features",
            Self::Regions { .. } => "regions",
            Self::Pixels { .. } => "pictures",
        }
    }

    /// The error of images that must be features.
    pub(crate) fn refused(self, width: usize) -> Error {
        match self {
            Self::Pixels { size, .. } => not_features(width, format!("pictures of {size} px")),
            other => not_features(width, other.kind()),
        }
    }
}

fn not_features(width: usize, got: impl std::fmt::Display) -> Error {
    Error::invalid("images", format!("features of width {width}"), got)
}

impl<'a> From<&'a RegionRows> for Images<'a> {
    fn from(rows: &'a RegionRows) -> Self {
        Self::Regions { width: rows.dim, counts: &rows.counts, values: &rows.values }
    }
}

#[cfg(feature = "images")]
impl<'a> From<&'a PictureBatch> for Images<'a> {
    fn from(pictures: &'a PictureBatch) -> Self {
        Self::Pixels { size: pictures.size, values: &pictures.values }
    }
}

/// The items of a split: the input of a method in evaluation.
#[derive(Clone, Copy)]
pub struct Items<'a> {
    /// The images.
    pub images: ImageItems<'a>,
    /// The word numbers of each text.
    pub texts: &'a [Vec<u32>],
    /// Which texts belong to which image.
    pub pairs: &'a Pairs,
}

/// The images of a split.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum ImageItems<'a> {
    /// Global features.
    Features(&'a Features),
    /// Region features.
    Regions(&'a Regions),
    /// Pictures, decoded on demand.
    #[cfg(feature = "images")]
    Pictures(&'a dyn PictureItems),
}

impl<'a> ImageItems<'a> {
    /// Kind of the images: `features`, `regions` or `pictures`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Features(_) => "features",
            Self::Regions(_) => "regions",
            #[cfg(feature = "images")]
            Self::Pictures(_) => "pictures",
        }
    }

    /// The features.
    ///
    /// # Errors
    /// If the images are no features, or features of another width.
    pub fn features(self, width: usize) -> Result<&'a Features> {
        match self {
            Self::Features(features) if features.dim == width => Ok(features),
            Self::Features(features) => Err(not_features(width, features.dim)),
            other => Err(not_features(width, other.kind())),
        }
    }

    /// The regions.
    ///
    /// # Errors
    /// If the images are no regions, or regions of another width.
    pub fn regions(self, width: usize) -> Result<&'a Regions> {
        let expected = || format!("regions of width {width}");
        match self {
            Self::Regions(regions) if regions.dim() == width => Ok(regions),
            Self::Regions(regions) => Err(Error::invalid("images", expected(), regions.dim())),
            other => Err(Error::invalid("images", expected(), other.kind())),
        }
    }
}

/// Pictures of a split, decoded and normalised batch after batch.
#[cfg(feature = "images")]
pub trait PictureItems {
    /// Number of pictures.
    fn len(&self) -> usize;

    /// Whether there are no pictures.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of pictures per batch; the last batch may have fewer.
    fn batch(&self) -> usize;

    /// The given pictures in the given order, batch after batch.
    fn some(&self, images: &[usize]) -> Box<dyn Iterator<Item = Result<PictureBatch>> + '_>;
}

/// The pairs of some captions of a split, with their own copy of the feature rows.
///
/// ```
/// use itm_core::Pairs;
/// use itm_core::data::Features;
/// use itm_core::learn::{ImageItems, Images, Items, Rows};
///
/// let features = Features { dim: 2, values: vec![0.1, 0.2, 0.3, 0.4] };
/// let (texts, pairs) = ([vec![2], vec![3, 4], vec![5]], Pairs::new(2, vec![0, 1, 1])?);
/// let items = Items { images: ImageItems::Features(&features), texts: &texts, pairs: &pairs };
/// let rows = Rows::of(&items, &[2, 0]);
/// let batch = rows.batch();
/// assert_eq!((batch.texts, batch.image_ids), (&[&[5][..], &[2]][..], &[1, 0][..]));
/// assert_eq!(batch.images, Images::Features(&[0.3, 0.4, 0.1, 0.2]));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Rows<'a> {
    items: Items<'a>,
    features: Vec<f32>,
    texts: Vec<&'a [u32]>,
    image_ids: Vec<i64>,
    caption_ids: Vec<i64>,
}

impl<'a> Rows<'a> {
    /// The pairs of the given captions; without features if the images are pictures or regions.
    ///
    /// # Panics
    /// If the split has no such caption.
    pub fn of(items: &Items<'a>, captions: &[usize]) -> Self {
        let images: Vec<usize> = captions.iter().map(|&c| items.pairs.image_of(c)).collect();
        let features = match items.images {
            ImageItems::Features(all) => {
                images.iter().map(|&i| all.row(i)).collect::<Vec<_>>().concat()
            }
            ImageItems::Regions(_) => vec![],
            #[cfg(feature = "images")]
            ImageItems::Pictures(_) => vec![],
        };
        Self {
            items: *items,
            features,
            texts: captions.iter().map(|&c| items.texts[c].as_slice()).collect(),
            image_ids: images.iter().map(|&i| i as i64).collect(),
            caption_ids: captions.iter().map(|&c| c as i64).collect(),
        }
    }

    /// The batch for a step, with the features as images.
    pub fn batch(&self) -> Batch<'_> {
        self.with_images(Images::Features(&self.features))
    }

    /// The batch for a step, with other images: pictures or regions that the caller has prepared.
    pub fn with_images<'b>(&'b self, images: Images<'b>) -> Batch<'b> {
        let Self { items, texts, image_ids, caption_ids, .. } = self;
        Batch { images, texts, image_ids, caption_ids, train: Some(*items) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(images: Images) -> String {
        let texts: [&[u32]; 3] = [&[2], &[3], &[4]];
        let ids = [7, 8, 9];
        let batch =
            Batch { images, texts: &texts, image_ids: &ids, caption_ids: &ids, train: None };
        batch.pairs().unwrap_err().to_string()
    }

    fn regions(values: &[f32]) -> Images<'_> {
        Images::Regions { width: 2, counts: &[1, 2, 1], values }
    }

    /// Three images: with one row each, then with 1, 2 and 1 regions of two values.
    #[test]
    fn a_value_that_is_not_finite_is_found_where_it_stands() {
        let mut values = [0.5; 8];
        values[4] = f32::NAN;
        let line = refused(Images::Features(&values[..6]));
        assert_eq!(line, "image 2 of the batch: expected finite values, got NaN");
        let line = refused(regions(&values));
        assert_eq!(line, "image 1 of the batch, region 1: expected finite values, got NaN");
        for (at, place) in [(0, "0 of the batch, region 0"), (7, "2 of the batch, region 0")] {
            let mut values = [0.5; 8];
            values[at] = f32::INFINITY;
            let line = refused(regions(&values));
            assert_eq!(line, format!("image {place}: expected finite values, got inf"));
        }
    }
}
