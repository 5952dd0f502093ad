//! Scores of images and texts, block by block: every model ends here, and every evaluation begins here.
//!
//! A dual encoder gives [`EmbeddingRows`]: its scores cost one matrix product. A model that must see an image and a text
//! together (cross-attention, single stream) implements [`Scored`] itself. Ranks compute every score once, and the scores
//! of the true pairs a second time.

mod among;
mod bands;
mod rows;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::eval::{Evaluation, Fold, Protocol, Ranks, TiePolicy};
use crate::{Pairs, Result, ScoreMatrix};

pub use among::ranks_among;
pub use rows::EmbeddingRows;

/// How two embeddings are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Similarity {
    /// `v · w` of unit vectors.
    Cosine,
    /// `−‖max(0, w − v)‖` of unit vectors without negative entries: order embeddings.
    Order,
}

/// Scores of a set of images against a set of texts; larger is more similar.
///
/// A score has one value, bit for bit, in every block that computes it: ranks compare the scores of different blocks.
pub trait Scored {
    /// Number of images.
    fn images(&self) -> usize;

    /// Number of texts.
    fn texts(&self) -> usize;

    /// The scores of a range of images (rows) against a range of texts (columns).
    ///
    /// # Errors
    /// If a score is NaN, or an input cannot be read.
    ///
    /// # Panics
    /// If a range goes beyond the images or texts.
    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix>;

    /// The scores of single pairs: image `images[p]` with text `texts[p]`.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    ///
    /// # Panics
    /// If `images` and `texts` differ in length, or an index is too large.
    fn pairs(&self, images: &[usize], texts: &[usize]) -> Result<Vec<f32>> {
        one_by_one(images, texts, |images, texts| self.block(images, texts))
    }

    /// The embeddings behind the scores; `None` if a model scores without embeddings.
    fn rows(&self) -> Option<&EmbeddingRows> {
        None
    }

    /// Whether each score costs its own pass through a model. If so, keep a score that you need twice.
    fn costly(&self) -> bool {
        false
    }

    /// Ranks of both directions, equal to [`Ranks::new`] of all scores. Scores are computed in bands of images, so the
    /// whole matrix is never in memory.
    ///
    /// # Errors
    /// As [`block`](Self::block), if scores and pairs differ in shape, and if an image has no text.
    fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        bands::ranks(self, pairs)
    }

    /// All scores.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    fn matrix(&self) -> Result<ScoreMatrix> {
        self.block(0..self.images(), 0..self.texts())
    }
}

impl dyn Scored + '_ {
    /// The scores of a fold, computed by its runs of consecutive texts.
    ///
    /// # Errors
    /// As [`Scored::block`].
    pub fn fold(&self, fold: &Fold) -> Result<ScoreMatrix> {
        let (n, m) = (fold.images.len(), fold.texts.len());
        let mut values = vec![0.0; n * m];
        let mut at = 0;
        for run in fold.texts.chunk_by(|a, b| a + 1 == *b) {
            let block = self.block(fold.images.clone(), run[0]..run[0] + run.len())?;
            for (row, out) in values.chunks_exact_mut(m).enumerate() {
                out[at..at + run.len()].copy_from_slice(block.row(row));
            }
            at += run.len();
        }
        ScoreMatrix::new(n, m, values)
    }

    /// Ranks under a protocol; each fold is scored separately.
    ///
    /// # Errors
    /// As [`Protocol::folds`] and [`Scored::ranks`].
    pub fn ranks_by(&self, protocol: Protocol, pairs: &Pairs) -> Result<Vec<Ranks>> {
        let folds = protocol.folds(pairs)?;
        if let [whole] = &folds[..]
            && whole.images.len() == pairs.images()
        {
            return Ok(vec![self.ranks(pairs)?]);
        }
        folds.iter().map(|fold| Ranks::new(&self.fold(fold)?, &fold.pairs)).collect()
    }

    /// Everything a table shows.
    ///
    /// # Errors
    /// As `ranks_by`.
    pub fn evaluate(
        &self,
        protocol: Protocol,
        pairs: &Pairs,
        policy: TiePolicy,
    ) -> Result<Evaluation> {
        Ok(Evaluation::new(&self.ranks_by(protocol, pairs)?, policy))
    }
}

impl Scored for ScoreMatrix {
    fn images(&self) -> usize {
        self.images()
    }

    fn texts(&self) -> usize {
        self.texts()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        let values = images.clone().flat_map(|i| &self.row(i)[texts.clone()]).copied().collect();
        Self::new(images.len(), texts.len(), values)
    }

    fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        Ranks::new(self, pairs)
    }
}

/// The scores of single pairs, each from a block of one pair.
fn one_by_one(
    images: &[usize],
    texts: &[usize],
    block: impl Fn(Range<usize>, Range<usize>) -> Result<ScoreMatrix>,
) -> Result<Vec<f32>> {
    assert_eq!(images.len(), texts.len(), "one image for each text");
    let one = |(&i, &t): (&usize, &usize)| Ok(block(i..i + 1, t..t + 1)?.values()[0]);
    images.iter().zip(texts).map(one).collect()
}

#[cfg(test)]
mod tests;
