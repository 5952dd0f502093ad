//! Scores of images and texts, block by block: every model ends here, and every evaluation begins here.
//!
//! A dual encoder gives [`EmbeddingRows`]: its scores cost one matrix product. A model that must see an image and a text
//! together (cross-attention, single stream) implements [`Scored`] itself. Ranks compute every score once, and the scores
//! of the true pairs a second time.

mod among;
mod bands;
mod matrix;
mod rows;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::eval::{Evaluation, Fold, MultiEvaluation, Protocol, Ranks, TiePolicy, check_pairs};
use crate::tiles::{AnyConsumer, AnyState, Boxed, Consumer, Side, Top, TopK};
use crate::{Pairs, Relevance, Result, ScoreMatrix};

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
        assert_eq!(images.len(), texts.len(), "one image for each text");
        let only = |k: usize| k..k.saturating_add(1);
        let one = |(&i, &t): (&usize, &usize)| Ok(self.block(only(i), only(t))?.values()[0]);
        images.iter().zip(texts).map(one).collect()
    }

    /// Shows every score to a consumer, once, and gives its state back. By default scores come in bands of images, so the whole
    /// matrix is never in memory. Call [`visit`], which gives the consumer's output.
    ///
    /// # Errors
    /// As [`block`](Self::block), and if a score is infinite.
    fn visit(&self, consumer: &AnyConsumer) -> Result<AnyState> {
        bands::visit_any(self, consumer)
    }

    /// The `k` best items of every query, the smaller index first on ties: texts of every image, or images of every text.
    ///
    /// # Errors
    /// As [`visit`](Self::visit).
    fn top(&self, queries: Side, k: usize) -> Result<TopK> {
        visit(self, &Top::new(queries, k))
    }

    /// All scores of some queries, in their order: one row per image, or one column per text.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    ///
    /// # Panics
    /// If an index is too large.
    fn scores_of(&self, queries: Side, some: &[usize]) -> Result<ScoreMatrix> {
        if queries == Side::Texts {
            return columns(self, 0..self.images(), some);
        }
        // By runs of consecutive images.
        let mut values = Vec::with_capacity(some.len() * self.texts());
        for run in some.chunk_by(|a, b| a + 1 == *b) {
            let block = self.block(run[0]..run[0] + run.len(), 0..self.texts())?;
            values.extend_from_slice(block.values());
        }
        ScoreMatrix::new(some.len(), self.texts(), values)
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
    ///
    /// # Panics
    /// If a true pair has another score in another block.
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
        columns(self, fold.images.clone(), &fold.texts)
    }

    /// Ranks under a protocol; each fold is scored separately.
    ///
    /// # Errors
    /// As [`Protocol::folds`] and [`Scored::ranks`].
    ///
    /// # Panics
    /// As [`Scored::ranks`].
    pub fn ranks_by(&self, protocol: Protocol, pairs: &Pairs) -> Result<Vec<Ranks>> {
        let folds = protocol.folds(pairs)?;
        if let [whole] = &folds[..]
            && whole.images.len() == pairs.images()
        {
            return Ok(vec![self.ranks(pairs)?]);
        }
        check_pairs((self.images(), self.texts()), pairs)?;
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

    /// mAP@R, R-precision and recalls of both directions, with all true pairs. Scores are computed in bands, twice each.
    ///
    /// ```
    /// use itm_core::scored::Scored;
    /// use itm_core::{Relevance, ScoreMatrix};
    ///
    /// let scores = ScoreMatrix::from_rows([[0.9, 0.5, 0.7, 0.1]]);
    /// let relevance = Relevance::new(4, vec![vec![0, 1]]); // found at positions 1 and 3 of R = 2
    /// let i2t = <dyn Scored>::evaluate_multi(&scores, &relevance)?.i2t;
    /// assert_eq!((i2t.map_at_r, i2t.r_precision, i2t.r1), (50.0, 50.0, 100.0));
    /// # Ok::<(), itm_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Scored::block`], if scores and `relevance` differ in shape, or no pair is true.
    pub fn evaluate_multi(&self, relevance: &Relevance) -> Result<MultiEvaluation> {
        bands::evaluate_multi(self, relevance)
    }
}

/// Shows every score to a consumer, once.
///
/// ```
/// use itm_core::ScoreMatrix;
/// use itm_core::scored::visit;
/// use itm_core::tiles::Maxima;
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.1], [0.3, 0.8]]);
/// assert_eq!(visit(&scores, &Maxima)?.images, [0.9, 0.8]);
/// # Ok::<(), itm_core::Error>(())
/// ```
///
/// # Errors
/// As [`Scored::visit`].
pub fn visit<S, C>(scored: &S, consumer: &C) -> Result<C::Output>
where
    S: Scored + ?Sized,
    C: Consumer<State: 'static> + ?Sized,
{
    let state = scored.visit(&Boxed(consumer))?;
    Ok(consumer.finish(*state.downcast().expect("the state that the consumer started")))
}

/// A range of images against some texts, computed by runs of consecutive texts.
fn columns<S: Scored + ?Sized>(
    scored: &S,
    images: Range<usize>,
    texts: &[usize],
) -> Result<ScoreMatrix> {
    let (n, m) = (images.len(), texts.len());
    let mut values = vec![0.0; n * m];
    let mut at = 0;
    for run in texts.chunk_by(|a, b| a + 1 == *b) {
        let block = scored.block(images.clone(), run[0]..run[0] + run.len())?;
        for (row, out) in values.chunks_exact_mut(m).enumerate() {
            out[at..at + run.len()].copy_from_slice(block.row(row));
        }
        at += run.len();
    }
    ScoreMatrix::new(n, m, values)
}

/// # Panics
/// If a range goes beyond `count` images or texts.
fn inside(what: &str, range: &Range<usize>, count: usize) {
    assert!(range.start <= range.end && range.end <= count, "{what} {range:?} of {count}");
}

#[cfg(test)]
mod tests;
