//! The source of scores: a matrix, or products of embeddings that are never held as a whole.

use itm_core::ScoreMatrix;
use itm_core::tiles::{Consumer, Tiles, TopImages, TopK, TopTexts};

use crate::{Direction, Error, Result};

/// All scores of images (rows) against texts (columns): a [`ScoreMatrix`], or the [`Tiles`] of embeddings. The matrix
/// of [`Tiles::scores`] holds the same scores bit for bit, so both give the same results bit for bit.
///
/// "Images" and "texts" are the two sides, whatever they hold: a bank of captions is the texts of a matrix whose images
/// are the test images; users and products work too.
pub trait Scores: Sync {
    /// Number of images.
    fn images(&self) -> usize;

    /// Number of texts.
    fn texts(&self) -> usize;

    /// Shows every score to a consumer exactly once.
    fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output;

    /// Scores of single pairs, image `images[p]` with text `texts[p]`.
    fn pair_scores(&self, images: &[usize], texts: &[usize]) -> Vec<f32>;

    /// All scores of some queries: `[queries, items]`, row by row in the order of `queries`.
    fn rows(&self, direction: Direction, queries: &[usize]) -> Vec<f32>;

    /// The `k` best items of every query, the smaller index first on ties.
    fn nearest(&self, direction: Direction, k: usize) -> TopK {
        match direction {
            Direction::I2t => self.run(&TopTexts::new(k)),
            Direction::T2i => self.run(&TopImages::new(k)),
        }
    }

    /// Refuses scores that are infinite or NaN, because no correction can be fitted on them. Products of embeddings are
    /// finite.
    ///
    /// # Errors
    /// Names the first such score.
    fn check_finite(&self) -> Result<()> {
        Ok(())
    }
}

impl Scores for Tiles<'_> {
    fn images(&self) -> usize {
        Tiles::images(self)
    }

    fn texts(&self) -> usize {
        Tiles::texts(self)
    }

    fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output {
        Tiles::run(self, consumer)
    }

    fn nearest(&self, direction: Direction, k: usize) -> TopK {
        match direction {
            Direction::I2t => self.top_texts(k),
            Direction::T2i => self.top_images(k),
        }
    }

    fn pair_scores(&self, images: &[usize], texts: &[usize]) -> Vec<f32> {
        Tiles::pair_scores(self, images, texts)
    }

    fn rows(&self, direction: Direction, queries: &[usize]) -> Vec<f32> {
        match direction {
            Direction::I2t => self.scores_of_images(queries).into_values(),
            Direction::T2i => self.scores_of_texts(queries).transpose().into_values(),
        }
    }
}

impl Scores for ScoreMatrix {
    fn images(&self) -> usize {
        ScoreMatrix::images(self)
    }

    fn texts(&self) -> usize {
        ScoreMatrix::texts(self)
    }

    fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output {
        ScoreMatrix::run(self, consumer)
    }

    fn pair_scores(&self, images: &[usize], texts: &[usize]) -> Vec<f32> {
        assert_eq!(images.len(), texts.len(), "one image for each text");
        images.iter().zip(texts).map(|(&image, &text)| self.row(image)[text]).collect()
    }

    fn rows(&self, direction: Direction, queries: &[usize]) -> Vec<f32> {
        match direction {
            Direction::I2t => queries.iter().flat_map(|&image| self.row(image)).copied().collect(),
            Direction::T2i => {
                let column = |&text| (0..self.images()).map(move |image| self.row(image)[text]);
                queries.iter().flat_map(column).collect()
            }
        }
    }

    fn check_finite(&self) -> Result<()> {
        let Some(at) = self.values().iter().position(|score| !score.is_finite()) else {
            return Ok(());
        };
        let place = format!("scores of image {} and text {}", at / self.texts(), at % self.texts());
        Err(Error::invalid(place, "a finite number", self.values()[at]))
    }
}
