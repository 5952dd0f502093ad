//! Region features: several rows an image.

use crate::{Error, Result};

/// Region features of the images of a split: as many rows of each as it has regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Regions {
    dim: usize,
    counts: Vec<usize>,
    /// Row at which each image begins, and the end.
    starts: Vec<usize>,
    values: Vec<f32>,
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
        let mut starts = vec![0];
        for (image, &count) in counts.iter().enumerate() {
            if count == 0 {
                return Err(Error::invalid(format!("image {image}"), "at least 1 region", 0));
            }
            starts.push(starts[image] + count);
        }
        let rows = starts[counts.len()];
        if dim == 0 || values.len() != rows * dim {
            let expected = format!("{rows} × {dim} values, at least 1 wide");
            return Err(Error::invalid("regions", expected, values.len()));
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            let row = at / dim;
            let image = starts.partition_point(|&start| start <= row) - 1;
            let place = format!("image {image}, region {}", row - starts[image]);
            return Err(Error::invalid(place, "finite values", values[at]));
        }
        Ok(Self { dim, counts, starts, values })
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

    /// The rows of these images, in this order.
    ///
    /// # Errors
    /// If a row holds a value that is not finite.
    ///
    /// # Panics
    /// If an image is not there.
    pub fn rows(&self, images: &[usize]) -> Result<RegionRows> {
        let counts = images.iter().map(|&i| self.counts[i]).collect();
        let of =
            |&i: &usize| &self.values[self.starts[i] * self.dim..self.starts[i + 1] * self.dim];
        Ok(RegionRows {
            dim: self.dim,
            counts,
            values: images.iter().flat_map(of).copied().collect(),
        })
    }
}
