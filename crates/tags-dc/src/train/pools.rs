//! Captions with their negatives as rows of a batch: what Eq. 7 to 9 compare, ask and expect.

use itm_core::Result;

use crate::model::At;
use crate::{CorrectionTargets, Negative, stayed};

/// A caption and its negatives, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// The number of its image.
    pub image: usize,
    /// Tokens of the caption, with `[CLS]` and `[SEP]`.
    pub positive: Vec<u32>,
    /// Sentences as long as the caption; there may be none.
    pub negatives: Vec<Negative>,
}

/// Positions of the wanted words, the right answers, and the number of answers per pool.
type Asked = (Vec<At>, Vec<u32>, Vec<usize>);

/// The rows of a batch: each caption that has negatives, followed by its negatives. A pool without negatives has no row, and counts 0 in
/// the numbers per pool, as [`losses`](crate::losses) wants.
///
/// | loss | asks | of the model |
/// |---|---|---|
/// | Eq. 7, [`hinges`](crate::losses::hinges) | [`triplets`](Self::triplets) | σ of the match logit of each row |
/// | Eq. 8, [`discrimination`](crate::losses::discrimination) | [`discriminated`](Self::discriminated) | two logits at each position |
/// | Eq. 9, [`correction`](crate::losses::correction) | [`corrected`](Self::corrected) | logits of words at each position |
///
/// ```
/// use tags_dc::Negative;
/// use tags_dc::train::{Pool, PoolRows};
///
/// let negative = Negative { tokens: vec![0, 9, 5, 1], masked: vec![false, true, false, false], score: 0.3 };
/// let pool = Pool { image: 6, positive: vec![0, 4, 5, 1], negatives: vec![negative] };
/// let rows = PoolRows::new(std::slice::from_ref(&pool));
/// assert_eq!(rows.texts, [[0, 4, 5, 1], [0, 9, 5, 1]]);
/// assert_eq!(rows.images, [6, 6]);
/// assert_eq!(rows.triplets(), (vec![[0, 1]], vec![1]));
/// let (asked, stayed, per_pool) = rows.discriminated()?;
/// assert_eq!((asked.len(), stayed, per_pool), (4, vec![1, 0, 1, 1], vec![4]));
/// # Ok::<(), tags_dc::Error>(())
/// ```
#[derive(Debug)]
pub struct PoolRows<'a> {
    /// The tokens of each row.
    pub texts: Vec<&'a [u32]>,
    /// The image of each row.
    pub images: Vec<usize>,
    /// The rows of the captions.
    pub positives: Vec<usize>,
    pools: &'a [Pool],
    /// The pool of each caption, and the row of its first negative.
    of: Vec<(usize, usize)>,
}

impl<'a> PoolRows<'a> {
    /// The rows of these pools.
    pub fn new(pools: &'a [Pool]) -> Self {
        let mut new = Self { texts: vec![], images: vec![], positives: vec![], pools, of: vec![] };
        let filled = pools.iter().enumerate().filter(|(_, pool)| !pool.negatives.is_empty());
        for (number, pool) in filled {
            new.positives.push(new.texts.len());
            new.texts.push(&pool.positive);
            new.of.push((number, new.texts.len()));
            new.texts.extend(pool.negatives.iter().map(|negative| &negative.tokens[..]));
            new.images.resize(new.texts.len(), pool.image);
        }
        new
    }

    /// The rows of caption and negative of each triplet, and the number of triplets per pool.
    pub fn triplets(&self) -> (Vec<[usize; 2]>, Vec<usize>) {
        let of = |(&positive, &(number, first)): (&usize, &(usize, usize))| {
            (0..self.pools[number].negatives.len()).map(move |k| [positive, first + k])
        };
        let triplets = self.positives.iter().zip(&self.of).flat_map(of).collect();
        (triplets, self.pools.iter().map(|pool| pool.negatives.len()).collect())
    }

    /// Every token of the negatives, its class (1: it stayed), and the number of tokens per pool.
    ///
    /// # Errors
    /// If a negative is not as long as its caption.
    pub fn discriminated(&self) -> Result<Asked> {
        let (mut asked, mut classes, mut per_pool) = (vec![], vec![], vec![0; self.pools.len()]);
        for &(number, first) in &self.of {
            let Pool { positive, negatives, .. } = &self.pools[number];
            for (row, negative) in (first..).zip(negatives) {
                classes.extend(stayed(positive, &negative.tokens)?);
                asked.extend((0..positive.len()).map(|position| At { row, position }));
            }
            per_pool[number] = negatives.len() * positive.len();
        }
        Ok((asked, classes, per_pool))
    }

    /// The corrected tokens of the negatives, the caption's tokens at their positions, and the number of tokens per pool.
    ///
    /// # Errors
    /// If a negative is not as long as its caption, or lacks a mark for a token.
    pub fn corrected(&self, which: CorrectionTargets) -> Result<Asked> {
        let (mut asked, mut words, mut per_pool) = (vec![], vec![], vec![0; self.pools.len()]);
        for &(number, first) in &self.of {
            let Pool { positive, negatives, .. } = &self.pools[number];
            for (row, Negative { tokens, masked, .. }) in (first..).zip(negatives) {
                let positions = which.positions(positive, tokens, masked)?;
                per_pool[number] += positions.len();
                words.extend(positions.iter().map(|&position| positive[position]));
                asked.extend(positions.into_iter().map(|position| At { row, position }));
            }
        }
        Ok((asked, words, per_pool))
    }
}
