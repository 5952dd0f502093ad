//! Region features: several rows per image, in memory or read from a file.

use std::sync::Arc;

use super::centred::CentredTransform;
use super::{Bounds, Npy, check_counts, item_of};
use crate::{Error, Result};

/// Region features of the images of a split: one row per region.
///
/// A file gives every image the same number of regions, and no region is padding: a row of zeros is an ordinary region in
/// which nothing was seen. Splits may have different numbers of regions.
///
/// ```
/// use itm_data::data::Regions;
///
/// let regions = Regions::new(2, vec![1, 2], vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6])?;
/// let rows = regions.rows(&[1, 0])?;
/// assert_eq!(rows.counts, [2, 1]);
/// assert_eq!(rows.values, [0.3, 0.4, 0.5, 0.6, 0.1, 0.2]);
/// # Ok::<(), itm_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Regions {
    dim: usize,
    counts: Vec<usize>,
    places: Vec<RegionPlace>,
    sources: Vec<RegionStore>,
    transform: Option<Arc<CentredTransform>>,
}

/// Where the regions of an image are.
#[derive(Debug, Clone, Copy)]
struct RegionPlace {
    source: usize,
    /// The image's row in a file, or its first row in memory.
    row: usize,
    first_box: usize,
}

#[derive(Debug, Clone)]
struct RegionStore {
    values: Values,
    boxes: Option<Arc<Vec<Bounds>>>,
}

#[derive(Debug, Clone)]
enum Values {
    Held(Vec<f32>),
    Mapped(Arc<Npy>),
}

/// Rows of some images, one after another without padding.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionRows {
    /// Width of a row.
    pub dim: usize,
    /// Rows of each image.
    pub counts: Vec<usize>,
    /// `[Σ counts, dim]`
    pub values: Vec<f32>,
}

impl Regions {
    /// Regions that are held in memory: `[Σ counts, dim]` values, image after image.
    ///
    /// # Errors
    /// If values and counts do not fit, an image has no region, or a value is not finite.
    pub fn new(dim: usize, counts: Vec<usize>, values: Vec<f32>) -> Result<Self> {
        check_counts(&counts, ["image", "region", "regions"], dim, values.len())?;
        let place = |at| {
            let (image, region) = item_of(&counts, at / dim);
            format!("image {image}, region {region}")
        };
        Error::unless_finite(&values, place, "finite values")?;
        let starts = starts(&counts).collect();
        Ok(Self::of(dim, counts, Values::Held(values), starts))
    }

    /// Regions that stay in their file, `[rows, r, dim]`: each image takes `every` equal rows.
    ///
    /// # Panics
    /// If the file is not of rank 3.
    pub(super) fn mapped(file: Npy, every: usize) -> Self {
        let rows = (0..file.rows() / every).map(|image| image * every).collect();
        Self::picked(Arc::new(file), rows)
    }

    /// Regions that stay in their file, `[rows, r, dim]`: the row of each image.
    ///
    /// # Panics
    /// If the file is not of rank 3.
    pub(super) fn picked(file: Arc<Npy>, rows: Vec<usize>) -> Self {
        let [_, count, dim]: [usize; 3] = file.shape().try_into().expect("a file of rank 3");
        let counts = vec![count; rows.len()];
        Self::of(dim, counts, Values::Mapped(file), rows)
    }

    fn of(dim: usize, counts: Vec<usize>, values: Values, rows: Vec<usize>) -> Self {
        let place = |row| RegionPlace { source: 0, row, first_box: 0 };
        let places = rows.into_iter().map(place).collect();
        let sources = vec![RegionStore { values, boxes: None }];
        Self { dim, counts, places, sources, transform: None }
    }

    /// Adds one box per region, or one box per region of an image if all images have the same boxes.
    ///
    /// # Errors
    /// If the number of boxes is neither the number of all regions nor the number of regions of every image.
    pub fn with_boxes(mut self, boxes: Vec<Bounds>) -> Result<Self> {
        let all: usize = self.counts.iter().sum();
        let own = boxes.len() == all;
        let fits = own || self.counts.iter().all(|&count| count == boxes.len());
        let expected = format_args!("{all}, one per region");
        Error::unless(fits, "boxes of regions", expected, boxes.len())?;
        let boxes = Arc::new(boxes);
        self.sources.iter_mut().for_each(|source| source.boxes = Some(boxes.clone()));
        for (place, start) in self.places.iter_mut().zip(starts(&self.counts)) {
            place.first_box = if own { start } else { 0 };
        }
        Ok(self)
    }

    /// The images of `self`, then the images of `other`.
    ///
    /// # Errors
    /// If the widths differ.
    pub(super) fn joined(mut self, other: Self) -> Result<Self> {
        let (dim, got) = (self.dim, other.dim);
        Error::unless(got == dim, "regions", format_args!("the width {dim}"), got)?;
        let sources = self.sources.len();
        let moved = |place: RegionPlace| RegionPlace { source: sources + place.source, ..place };
        self.places.extend(other.places.into_iter().map(moved));
        self.sources.extend(other.sources);
        self.counts.extend(other.counts);
        Ok(self)
    }

    /// The regions of the first `images` images.
    pub(crate) fn first(mut self, images: usize) -> Self {
        self.counts.truncate(images);
        self.places.truncate(images);
        self
    }

    pub(super) fn transformed(self, transform: Arc<CentredTransform>) -> Self {
        Self { transform: Some(transform), ..self }
    }

    /// Width of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Regions of each image.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The boxes of the regions of an image, if the data have boxes.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn boxes(&self, image: usize) -> Option<&[Bounds]> {
        let RegionPlace { source, first_box, .. } = self.place(image);
        let boxes = self.sources[source].boxes.as_ref()?;
        Some(&boxes[first_box..][..self.counts[image]])
    }

    /// The rows of these images, in this order.
    ///
    /// # Errors
    /// If a row holds a value that is not finite, or its file cannot be read or was shortened.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn rows(&self, images: &[usize]) -> Result<RegionRows> {
        let count = |&image: &usize| {
            assert!(image < self.len(), "image {image} of {}", self.len());
            self.counts[image]
        };
        let counts: Vec<usize> = images.iter().map(count).collect();
        let mut values = Vec::with_capacity(counts.iter().sum::<usize>() * self.dim);
        for &image in images {
            let stored = self.stored(image)?;
            match &self.transform {
                None => values.extend(stored),
                Some(fitted) => {
                    let rows = stored.chunks_exact(self.dim);
                    values.extend(rows.flat_map(|row| fitted.apply(row)));
                }
            }
        }
        Ok(RegionRows { dim: self.dim, counts, values })
    }

    /// The rows of an image before any transform.
    pub(super) fn stored(&self, image: usize) -> Result<Vec<f32>> {
        let RegionPlace { source, row, .. } = self.place(image);
        let file = match &self.sources[source].values {
            Values::Held(values) => {
                return Ok(values[row * self.dim..][..self.counts[image] * self.dim].to_vec());
            }
            Values::Mapped(file) => file,
        };
        let mut out = vec![0.0; file.row_len()];
        file.read_row_into(row, &mut out).map_err(|error| {
            let place = |at: usize| format!("{} row {row}, region {}", file.place(), at / self.dim);
            Error::unless_finite(&out, place, "finite values").err().unwrap_or(error)
        })?;
        Ok(out)
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// If a value is not finite; the error names its place in the file.
    pub(super) fn check(&self) -> Result<()> {
        (0..self.len()).try_for_each(|image| self.stored(image).map(|_| ()))
    }

    /// Number of regions, their width, and whether boxes are known, in a few words.
    pub fn describe(&self) -> String {
        let (least, most) = (self.counts.iter().min(), self.counts.iter().max());
        let each = match (least, most) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
            (_, most) => most.copied().unwrap_or(0).to_string(),
        };
        let boxes = self.sources.iter().all(|source| source.boxes.is_some());
        let boxes = if boxes { "with boxes" } else { "without boxes" };
        format!("{each} regions per image, {} wide, {boxes}", self.dim)
    }

    /// Bytes of the files whose regions are read on demand.
    pub fn mapped_bytes(&self) -> u64 {
        let size = |source: &RegionStore| match &source.values {
            Values::Held(_) => 0,
            Values::Mapped(file) => file.file_bytes().len() as u64,
        };
        self.sources.iter().map(size).sum()
    }

    fn place(&self, image: usize) -> RegionPlace {
        assert!(image < self.len(), "image {image} of {}", self.len());
        self.places[image]
    }
}

/// The number of the first region of each image.
fn starts(counts: &[usize]) -> impl Iterator<Item = usize> {
    counts.iter().scan(0, |end, count| {
        *end += count;
        Some(*end - count)
    })
}

#[cfg(test)]
mod tests;
