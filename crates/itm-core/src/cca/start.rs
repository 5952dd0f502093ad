//! Initial weights of two linear encoders, so that a training begins with the scores of closed-form CCA.

use faer::Mat;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::moments::PairMoments;
use super::rows::{SparseRow, text_rows};
use super::solve::{Problem, Sides, Solution};
use super::{check_pairs, check_rows, weights};
use crate::data::Features;
use crate::start::{LinearMap, Start, StartOptions};
use crate::text::Terms;
use crate::{Error, Pairs, Result};

/// Number of training images whose mean length scales the image map.
const SCALED_BY_IMAGES: usize = 2000;

/// Number of training captions whose mean length scales the text map.
const SCALED_BY_CAPTIONS: usize = 5000;

/// The training split as the two encoders will read it.
#[derive(Debug, Clone, Copy)]
pub struct StartInputs<'a> {
    /// Image features after every transform that precedes the encoder.
    pub features: &'a Features,
    /// Captions.
    pub captions: &'a [String],
    /// Which caption belongs to which image.
    pub pairs: &'a Pairs,
    /// The terms of the captions: the first inputs of the text encoder.
    pub terms: &'a Terms,
    /// Rows of the captions, beside the terms; of width 0 if there are none.
    pub rows: &'a Features,
}

impl Start {
    /// Solves CCA on the training split for a model of the given width. `seed` draws the columns that CCA does not
    /// fill.
    ///
    /// If the training pairs have a smaller rank than the wanted dimensions, only as many columns come from CCA as the rank
    /// ([`Start::dims`]); the others are as those after the dimensions.
    ///
    /// It needs the memory of [`Cca::fit`](super::Cca::fit) without validation. The result does not depend on the
    /// number of threads.
    ///
    /// # Errors
    /// - If the options are out of range or do not fit the width.
    /// - If there is no feature or no term, or a feature is not finite.
    /// - If features or captions do not fit the pairs.
    /// - If images do not vary with their captions, or the first images or captions do not differ from the mean.
    pub fn solve(
        inputs: &StartInputs<'_>,
        width: usize,
        seed: u64,
        options: &StartOptions,
    ) -> Result<Self> {
        let StartInputs { features, captions, pairs, terms, rows } = *inputs;
        options.validate()?;
        options.fits(width)?;
        if features.dim == 0 {
            return Err(Error::invalid("model.cca", "images with features", "none"));
        }
        check_pairs("model.cca, train", features.dim, features, captions, pairs)?;
        check_rows("model.cca, train, rows of captions", rows.dim, rows, captions.len())?;
        if terms.is_empty() && rows.dim == 0 {
            let expected = "a term of the training captions that is frequent enough";
            return Err(Error::invalid("model.cca", expected, "none"));
        }

        let texts = text_rows(terms, captions, rows);
        let row = |image: usize, out: &mut [f64]| as_given(features.row(image), out);
        let widths = [features.dim, terms.len() + rows.dim];
        let moments = PairMoments::new(widths, row, &texts, pairs);
        let ridges = Sides { image: options.ridge_image, text: options.ridge_text };
        let Solution { s, maps } = Problem::new(&moments)?.solve(ridges, options.dims)?;
        if s.is_empty() {
            let expected = "images that vary together with their captions";
            return Err(Error::invalid("model.cca, train", expected, "no correlation"));
        }

        let weights = weights(&s, options.power);
        let images = (0..features.rows().min(SCALED_BY_IMAGES)).map(|i| image_row(features.row(i)));
        let texts = texts.into_iter().take(SCALED_BY_CAPTIONS);
        let image =
            MapColumns::of(&maps.image, &weights, &moments.mean_x).scaled(images, "images")?;
        let text =
            MapColumns::of(&maps.text, &weights, &moments.mean_y).scaled(texts, "captions")?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let [image, text] = [image, text].map(|map| map.filled(width, options.fill, &mut rng));
        Ok(Self { image, text })
    }
}

/// A map in double precision.
struct MapColumns {
    width: usize,
    weight: Vec<f64>, // [inputs, width] row-major
    bias: Vec<f64>,
}

impl MapColumns {
    /// `W`, with each column multiplied by its weight, and `b = −Wᵀ μ`.
    fn of(w: &Mat<f64>, column_weights: &[f64], mean: &[f64]) -> Self {
        let width = column_weights.len();
        let row = |i: usize| column_weights.iter().enumerate().map(move |(k, c)| w[(i, k)] * c);
        let weight: Vec<f64> = (0..w.nrows()).flat_map(row).collect();
        let mut bias = vec![0.0; width];
        for (row, mean) in weight.chunks(width).zip(mean) {
            bias.iter_mut().zip(row).for_each(|(b, w)| *b -= w * mean);
        }
        Self { width, weight, bias }
    }

    /// Divides the map by the mean length of the mapped rows.
    fn scaled(mut self, rows: impl Iterator<Item = SparseRow>, what: &str) -> Result<Self> {
        let lengths: Vec<f64> = rows.map(|row| self.length_of(&row)).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        if mean <= 0.0 {
            let expected = format!("first {} {what} that differ from the mean", lengths.len());
            return Err(Error::invalid("model.cca, train", expected, "none"));
        }
        self.weight.iter_mut().chain(&mut self.bias).for_each(|value| *value /= mean);
        Ok(self)
    }

    fn length_of(&self, row: &SparseRow) -> f64 {
        let mut mapped = self.bias.clone();
        for &(input, value) in row {
            let line = &self.weight[input * self.width..(input + 1) * self.width];
            mapped.iter_mut().zip(line).for_each(|(sum, w)| *sum += w * value);
        }
        mapped.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Converts to single precision and adds normally distributed columns up to the width of the model.
    fn filled(self, width: usize, fill: f64, rng: &mut ChaCha8Rng) -> LinearMap {
        let deviation = fill * deviation(&self.weight);
        let mut weight = Vec::with_capacity(self.weight.len() / self.width * width);
        for row in self.weight.chunks(self.width) {
            weight.extend(row.iter().map(|&w| w as f32));
            weight.extend((self.width..width).map(|_| (deviation * normal(rng)) as f32));
        }
        let mut bias: Vec<f32> = self.bias.iter().map(|&b| b as f32).collect();
        bias.resize(width, 0.0);
        LinearMap { weight, bias }
    }
}

fn as_given(row: &[f32], out: &mut [f64]) {
    out.iter_mut().zip(row).for_each(|(out, &x)| *out = f64::from(x));
}

fn image_row(row: &[f32]) -> SparseRow {
    row.iter().map(|&x| f64::from(x)).enumerate().collect()
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// A standard normal number, by the Box–Muller transform.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests;
