//! Scores of embeddings.

use std::ops::Range;

use super::{Scored, Similarity, bands, columns, inside, lines, one_by_one, visit};
use crate::eval::Ranks;
use crate::tiles::{AnyConsumer, AnyState, Embeddings, Tiles, TopImages, TopK, TopTexts};
use crate::{Pairs, Result, ScoreMatrix};

/// Embeddings of a set of images and a set of texts, compared by a similarity. The tile engine computes cosines.
///
/// ```
/// use itm_core::scored::{EmbeddingRows, Scored, Similarity};
///
/// let (images, texts) = (vec![0.6, 0.8, 0.0, 1.0], vec![0.6, 0.0]);
/// let rows = EmbeddingRows { dim: 2, images, texts, similarity: Similarity::Order };
/// assert_eq!(rows.matrix()?.values(), [0.0, -0.6]);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingRows {
    /// Width d.
    pub dim: usize,
    /// `[images, d]`, row-major.
    pub images: Vec<f32>,
    /// `[texts, d]`, row-major.
    pub texts: Vec<f32>,
    /// How an image and a text are compared.
    pub similarity: Similarity,
}

impl EmbeddingRows {
    /// The values of some rows of both sides.
    fn values(&self, images: Range<usize>, texts: Range<usize>) -> [&[f32]; 2] {
        let d = self.dim;
        inside("images", &images, Scored::images(self));
        inside("texts", &texts, Scored::texts(self));
        [
            &self.images[images.start * d..images.end * d],
            &self.texts[texts.start * d..texts.end * d],
        ]
    }

    /// Some rows of both sides, checked to be finite.
    fn sides(&self, images: Range<usize>, texts: Range<usize>) -> Result<[Embeddings<'_>; 2]> {
        let [v, w] = self.values(images, texts);
        let images = self.side("image embeddings", v, &self.images)?;
        Ok([images, self.side("text embeddings", w, &self.texts)?])
    }

    /// The products of all rows; `None` if the similarity is not a product.
    fn tiles(&self) -> Result<Option<Tiles<'_>>> {
        let [v, w] = self.sides(0..Scored::images(self), 0..Scored::texts(self))?;
        match self.similarity {
            Similarity::Cosine => Tiles::new(v, w).map(Some),
            Similarity::Order => Ok(None),
        }
    }

    /// Some rows of one side; an error names a row by its index among all rows.
    fn side<'a>(&self, name: &str, some: &'a [f32], all: &'a [f32]) -> Result<Embeddings<'a>> {
        let d = self.dim;
        let rows = |values: &'a [f32]| {
            Embeddings::new(name, values.len().checked_div(d).unwrap_or(0), d, values)
        };
        if all.len().is_multiple_of(d) { rows(some).or_else(|_| rows(all)) } else { rows(all) }
    }
}

impl Scored for EmbeddingRows {
    fn images(&self) -> usize {
        self.images.len().checked_div(self.dim).unwrap_or(0)
    }

    fn texts(&self) -> usize {
        self.texts.len().checked_div(self.dim).unwrap_or(0)
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        let [v, w] = self.sides(images.clone(), texts.clone())?;
        if self.similarity == Similarity::Cosine {
            return Ok(Tiles::new(v, w)?.scores());
        }
        let (n, m) = (images.len(), texts.len());
        let [v, w] = self.values(images, texts);
        ScoreMatrix::new(n, m, itm_kernels::order::forward(v, w, self.dim))
    }

    fn pairs(&self, images: &[usize], texts: &[usize]) -> Result<Vec<f32>> {
        match self.tiles()? {
            Some(tiles) => Ok(tiles.pair_scores(images, texts)),
            None => one_by_one(images, texts, |i, t| self.block(i, t)),
        }
    }

    fn visit(&self, consumer: &dyn AnyConsumer) -> Result<AnyState> {
        match self.tiles()? {
            Some(tiles) => Ok(tiles.run(consumer)),
            None => bands::visit_any(self, consumer),
        }
    }

    fn top_texts(&self, k: usize) -> Result<TopK> {
        match self.tiles()? {
            Some(tiles) => Ok(tiles.top_texts(k)),
            None => visit(self, &TopTexts::new(k)),
        }
    }

    fn top_images(&self, k: usize) -> Result<TopK> {
        match self.tiles()? {
            Some(tiles) => Ok(tiles.top_images(k)),
            None => visit(self, &TopImages::new(k)),
        }
    }

    fn scores_of_images(&self, images: &[usize]) -> Result<ScoreMatrix> {
        match self.tiles()? {
            Some(tiles) => Ok(tiles.scores_of_images(images)),
            None => lines(self, images),
        }
    }

    fn scores_of_texts(&self, texts: &[usize]) -> Result<ScoreMatrix> {
        match self.tiles()? {
            Some(tiles) => Ok(tiles.scores_of_texts(texts)),
            None => columns(self, 0..Scored::images(self), texts),
        }
    }

    fn rows(&self) -> Option<&EmbeddingRows> {
        Some(self)
    }

    fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        match self.tiles()? {
            Some(tiles) => tiles.ranks(pairs),
            None => bands::ranks(self, pairs),
        }
    }
}
