//! Grid features: the last feature map, pooled over 6 × 6 windows and projected.

use std::path::Path;

use safetensors::SafeTensors;

use super::mobilenet::{FeatureMap, floats, product};
use crate::data::FileBytes;
use crate::{Error, Result};

/// Windows along each side.
pub const GRID: usize = 6;

/// File name inside a folder of weights.
const FILE: &str = "grid_pca128.safetensors";

/// A principal component analysis that was fitted on grid features.
#[derive(Debug)]
pub struct GridPca {
    mean: Vec<f32>,
    /// `[channels, components]`.
    components: Vec<f32>,
    width: usize,
}

impl GridPca {
    /// Reads `grid_pca128.safetensors` (`mean` `[channels]`, `components` `[components, channels]`) of a folder.
    ///
    /// # Departures
    /// The published file states the shape `[128, 1280]`, but its numbers are in the order of `[1280, 128]`: a
    /// transposed view was saved without a copy. The reader takes the order in which the components have length 1. If
    /// neither or both orders do, the reader takes the stated order.
    ///
    /// # Errors
    /// If the file is missing or malformed, or is for another number of channels.
    pub fn open(folder: impl AsRef<Path>, channels: usize) -> Result<Self> {
        let path = folder.as_ref().join(FILE);
        Self::new(&path.display().to_string(), &FileBytes::open(&path)?, channels)
    }

    /// Reads the bytes of such a file.
    ///
    /// # Errors
    /// As [`GridPca::open`].
    pub fn new(place: &str, bytes: &[u8], channels: usize) -> Result<Self> {
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| Error::invalid(place, "a safetensors file", e))?;
        let mean = floats(place, &tensors, "mean", &[channels])?;
        let shape = tensors.tensor("components").map(|t| t.shape().to_vec()).unwrap_or_default();
        let width = shape.first().copied().unwrap_or(0);
        if width == 0 {
            let place = format!("{place} components");
            return Err(Error::invalid(place, format!("shape [n, {channels}]"), "none"));
        }
        let rows = floats(place, &tensors, "components", &[width, channels])?;
        let transposed = (0..width * channels).map(|at| rows[at % width * channels + at / width]);
        let transposed: Vec<_> = transposed.collect();
        // Components have length 1 in only one of the two orders.
        let components =
            if is_unit(&rows, width) && !is_unit(&transposed, width) { rows } else { transposed };
        Ok(Self { mean, components, width })
    }

    /// Number of values per window.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The grid feature of a map, `[36, width]`; the windows are row by row.
    ///
    /// ```text
    /// grid[g] = (mean of the map over window g − μ) · Cᵀ
    /// ```
    ///
    /// Windows may overlap: in a map of `h` rows, window `g` begins at row ⌊g·h/6⌋ and ends at ⌈(g + 1)·h/6⌉. Columns
    /// are cut in the same way.
    ///
    /// # Panics
    /// If the map has another number of channels.
    pub fn project(&self, map: &FeatureMap) -> Vec<f32> {
        let channels = self.mean.len();
        assert_eq!(map.channels, channels, "channels of a map");
        let mut windows = vec![0.0; GRID * GRID * channels];
        for (g, window) in windows.chunks_exact_mut(channels).enumerate() {
            let (rows, cols) = (span(g / GRID, map.height), span(g % GRID, map.width));
            let places = (rows.len() * cols.len()) as f32;
            for y in rows {
                for x in cols.clone() {
                    let place = &map.values[(y * map.width + x) * channels..][..channels];
                    window.iter_mut().zip(place).for_each(|(sum, v)| *sum += v);
                }
            }
            window.iter_mut().zip(&self.mean).for_each(|(sum, mean)| *sum = *sum / places - mean);
        }
        let mut out = vec![0.0; GRID * GRID * self.width];
        product(&windows, &self.components, self.width, &mut out);
        out
    }
}

/// Whether the columns of `[channels, width]` have length 1.
fn is_unit(columns: &[f32], width: usize) -> bool {
    let mut squares = vec![0.0f32; width];
    for row in columns.chunks_exact(width) {
        squares.iter_mut().zip(row).for_each(|(sum, v)| *sum += v * v);
    }
    squares.iter().all(|sum| (sum - 1.0).abs() < 0.01)
}

fn span(g: usize, side: usize) -> std::ops::Range<usize> {
    g * side / GRID..((g + 1) * side).div_ceil(GRID)
}

/// The windows of a map of `side × side` positions, row by row, as x1, y1, x2, y2 from 0 to 1.
pub fn grid_boxes(side: usize) -> Vec<[f32; 4]> {
    let edges = |g: usize| {
        let span = span(g, side);
        [span.start, span.end].map(|at| at as f32 / side as f32)
    };
    let one = |g: usize| {
        let ([x1, x2], [y1, y2]) = (edges(g % GRID), edges(g / GRID));
        [x1, y1, x2, y2]
    };
    (0..GRID * GRID).map(one).collect()
}

/// Divides each dimension by its scale, rounds, and clamps to −127..127. A scale of 0 gives 0.
///
/// # Panics
/// If the length of `values` is no multiple of the length of `scale`.
pub fn quantise(values: &[f32], scale: &[f32]) -> Vec<i8> {
    assert!(values.len().is_multiple_of(scale.len()), "{} values by {}", values.len(), scale.len());
    let one =
        |(v, &s): (&f32, &f32)| if s > 0.0 { (v / s).round().clamp(-127.0, 127.0) } else { 0.0 };
    values.iter().zip(scale.iter().cycle()).map(|pair| one(pair) as i8).collect()
}
