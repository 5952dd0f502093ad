//! Region features: several rows per image, in memory or read from a file.

use std::ops::Range;
use std::sync::Arc;

use super::region_transform::CentredTransform;
use super::{Bounds, Npy};
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
    /// Row at which each image begins, and the end.
    starts: Vec<usize>,
    parts: Vec<SourceImages>,
    transform: Option<Arc<CentredTransform>>,
}

/// Consecutive images of one source.
#[derive(Debug, Clone)]
struct SourceImages {
    first: usize,
    values: Values,
    boxes: Option<Boxes>,
}

#[derive(Debug, Clone)]
enum Values {
    Held(Vec<f32>),
    /// The row of the file that holds the regions of each image.
    Mapped {
        file: Arc<Npy>,
        rows: Arc<Vec<usize>>,
    },
}

#[derive(Debug, Clone)]
enum Boxes {
    /// The same boxes for every image.
    Shared(Arc<Vec<Bounds>>),
    /// One box per region, and the index of the first box of this source.
    Own(Arc<Vec<Bounds>>, usize),
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
        if let Some(image) = counts.iter().position(|&count| count == 0) {
            return Err(Error::invalid(format!("image {image}"), "at least 1 region", 0));
        }
        let rows = counts.iter().try_fold(0usize, |rows, &count| rows.checked_add(count));
        let fits = dim > 0 && rows.and_then(|rows| rows.checked_mul(dim)) == Some(values.len());
        let rows = rows.map_or_else(|| "too many".into(), |rows| rows.to_string());
        let expected = format_args!("{rows} × {dim} values, at least 1 wide");
        Error::unless(fits, "regions", expected, values.len())?;
        let bad = values.iter().position(|x| !x.is_finite()).map(|at| (at / dim, values[at]));
        let new = Self::of(dim, counts, Values::Held(values));
        let Some((row, value)) = bad else { return Ok(new) };
        let image = new.starts.partition_point(|&start| start <= row) - 1;
        let place = format!("image {image}, region {}", row - new.starts[image]);
        Err(Error::invalid(place, "finite values", value))
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
        Self::of(dim, counts, Values::Mapped { file, rows: Arc::new(rows) })
    }

    fn of(dim: usize, counts: Vec<usize>, values: Values) -> Self {
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        let parts = vec![SourceImages { first: 0, values, boxes: None }];
        Self { dim, counts, starts, parts, transform: None }
    }

    /// Adds one box per region, or one box per region of an image if all images have the same boxes.
    ///
    /// # Errors
    /// If the number of boxes is neither the number of all regions nor the number of regions of every image.
    pub fn with_boxes(mut self, boxes: Vec<Bounds>) -> Result<Self> {
        let all = self.starts[self.len()];
        let own = boxes.len() == all;
        let fits = own || self.counts.iter().all(|&count| count == boxes.len());
        let expected = format_args!("{all}, one per region");
        Error::unless(fits, "boxes of regions", expected, boxes.len())?;
        let boxes = Arc::new(boxes);
        for part in &mut self.parts {
            let boxes = Arc::clone(&boxes);
            let first = self.starts[part.first];
            part.boxes = Some(if own { Boxes::Own(boxes, first) } else { Boxes::Shared(boxes) });
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
        let (images, rows) = (self.len(), self.starts[self.len()]);
        self.parts
            .extend(other.parts.into_iter().map(|p| SourceImages { first: images + p.first, ..p }));
        self.starts.extend(other.starts[1..].iter().map(|start| rows + start));
        self.counts.extend(other.counts);
        Ok(self)
    }

    /// The regions of the first `images` images.
    pub(crate) fn first(mut self, images: usize) -> Self {
        self.counts.truncate(images);
        self.starts.truncate(images + 1);
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
        let part = self.part(image);
        match part.boxes.as_ref()? {
            Boxes::Shared(boxes) => Some(boxes),
            Boxes::Own(boxes, first) => Some(&boxes[*first..][self.range(part, image)]),
        }
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
        let part = self.part(image);
        let (file, row) = match &part.values {
            Values::Held(values) => {
                let Range { start, end } = self.range(part, image);
                return Ok(values[start * self.dim..end * self.dim].to_vec());
            }
            Values::Mapped { file, rows } => (file, rows[image - part.first]),
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
        let boxes = self.parts.iter().all(|part| part.boxes.is_some());
        let boxes = if boxes { "with boxes" } else { "without boxes" };
        format!("{each} regions per image, {} wide, {boxes}", self.dim)
    }

    /// Bytes of the files whose regions are read on demand.
    pub fn mapped_bytes(&self) -> u64 {
        let part = |part: &SourceImages| match &part.values {
            Values::Held(_) => 0,
            Values::Mapped { file, .. } => file.file_bytes().len() as u64,
        };
        self.parts.iter().map(part).sum()
    }

    fn part(&self, image: usize) -> &SourceImages {
        assert!(image < self.len(), "image {image} of {}", self.len());
        &self.parts[self.parts.partition_point(|part| part.first <= image) - 1]
    }

    /// The regions of an image, numbered within its part.
    fn range(&self, part: &SourceImages, image: usize) -> Range<usize> {
        let first = self.starts[part.first];
        self.starts[image] - first..self.starts[image + 1] - first
    }
}

#[cfg(test)]
mod tests;
