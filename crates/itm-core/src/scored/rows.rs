//! Scores of embeddings.

use std::ops::Range;

use super::{Scored, Similarity, inside};
use crate::eval::Ranks;
use crate::tiles::{AnyConsumer, AnyState, Embeddings, Side, Tiles, TopK};
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

    /// What computes the scores: the tile engine, or block by block if the similarity is not a product.
    fn source(&self) -> Result<Box<dyn Scored + '_>> {
        let [v, w] = self.sides(0..Scored::images(self), 0..Scored::texts(self))?;
        Ok(match self.similarity {
            Similarity::Cosine => Box::new(Tiles::new(v, w)?),
            Similarity::Order => Box::new(BlockRows(self)),
        })
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
        self.source()?.pairs(images, texts)
    }

    fn visit(&self, consumer: &AnyConsumer) -> Result<AnyState> {
        self.source()?.visit(consumer)
    }

    fn top(&self, queries: Side, k: usize) -> Result<TopK> {
        self.source()?.top(queries, k)
    }

    fn scores_of(&self, queries: Side, some: &[usize]) -> Result<ScoreMatrix> {
        self.source()?.scores_of(queries, some)
    }

    fn rows(&self) -> Option<&EmbeddingRows> {
        Some(self)
    }

    fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        self.source()?.ranks(pairs)
    }
}

/// Rows that only give blocks of scores: all else is what [`Scored`] makes of blocks.
struct BlockRows<'a>(&'a EmbeddingRows);

impl Scored for BlockRows<'_> {
    fn images(&self) -> usize {
        Scored::images(self.0)
    }

    fn texts(&self) -> usize {
        Scored::texts(self.0)
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        self.0.block(images, texts)
    }
}
