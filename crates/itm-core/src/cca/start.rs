//! Initial weights of two linear encoders, so that a training begins with the scores of closed-form CCA.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::moments::PairMoments;
use super::projection::Projection;
use super::rows::{SparseRow, text_rows};
use super::solve::Problem;
use super::{check_pairs, check_rows, weights};
use crate::data::Features;
use crate::start::{LinearMap, Start, StartOptions, deviation};
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
        Error::unless(features.dim > 0, "model.cca", "images with features", "none")?;
        check_pairs("model.cca, train", features.dim, features, captions, pairs)?;
        check_rows("model.cca, train, rows of captions", rows.dim, rows, captions.len())?;
        let expected = "a term of the training captions that is frequent enough";
        Error::unless(!terms.is_empty() || rows.dim > 0, "model.cca", expected, "none")?;

        let texts = text_rows(terms, captions, rows);
        let row = |image: usize, out: &mut [f64]| as_given(features.row(image), out);
        let widths = [features.dim, terms.len() + rows.dim];
        let moments = PairMoments::new(widths, row, &texts, pairs);
        let ridges = [options.ridge_image, options.ridge_text];
        let (s, [image, text]) = Problem::new(&moments)?.solve(ridges, options.dims)?;
        let expected = "images that vary together with their captions";
        Error::unless(!s.is_empty(), "model.cca, train", expected, "no correlation")?;

        let weights = weights(&s, options.power);
        let images = (0..features.rows().min(SCALED_BY_IMAGES)).map(|i| image_row(features.row(i)));
        let texts = texts.into_iter().take(SCALED_BY_CAPTIONS);
        let image =
            Projection::new(image.as_ref(), &moments.mean_x, &weights).scaled(images, "images")?;
        let text =
            Projection::new(text.as_ref(), &moments.mean_y, &weights).scaled(texts, "captions")?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let [image, text] = [image, text].map(|map| map.filled(width, options.fill, &mut rng));
        let finite = |map: &LinearMap| map.weight.iter().chain(&map.bias).all(|w| w.is_finite());
        let (fits, expected) =
            (finite(&image) && finite(&text), "fill and power of finite weights");
        Error::unless(fits, "model.cca", expected, format_args!("{options:?}"))?;
        Ok(Self { image, text })
    }
}

impl Projection {
    /// Divides the map by the mean length of the mapped rows.
    fn scaled(mut self, rows: impl Iterator<Item = SparseRow>, what: &str) -> Result<Self> {
        let length = |row| self.map(&row).iter().map(|x| x * x).sum::<f64>().sqrt();
        let lengths: Vec<f64> = rows.map(length).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        if mean <= 0.0 {
            let expected = format!("first {} {what} that differ from the mean", lengths.len());
            return Err(Error::invalid("model.cca, train", expected, "none"));
        }
        self.weights.iter_mut().chain(&mut self.offset).for_each(|value| *value /= mean);
        Ok(self)
    }

    /// Converts to single precision and adds normally distributed columns up to the width of the model.
    fn filled(self, width: usize, fill: f64, rng: &mut ChaCha8Rng) -> LinearMap {
        let deviation = fill * deviation(self.weights.iter().copied());
        let mut weight = Vec::with_capacity(self.inputs() * width);
        for row in self.weights.chunks(self.width) {
            weight.extend(row.iter().map(|&w| w as f32));
            weight.extend((self.width..width).map(|_| (deviation * normal(rng)) as f32));
        }
        // b = −Wᵀ μ. Not −b: a bias of 0 must be +0.
        let mut bias: Vec<f32> = self.offset.iter().map(|&b| (0.0 - b) as f32).collect();
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

/// A standard normal number, by the Box–Muller transform.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests;
