//! Hits of each image block, as integers, so that no rounding decides a tie between systems.

use super::Measures;
use crate::eval::{CUTS, Ranks, Standing, TiePolicy};
use crate::{Error, Result};

/// Hits of one image and the texts that are counted with it ([`Pairs::unit`](crate::Pairs::unit)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageHits {
    /// Whether the image hits at 1, 5, 10: 0 or 1.
    pub i2t: [u16; 3],
    /// How many of the image's texts hit at 1, 5, 10.
    pub t2i: [u16; 3],
    /// How many texts are counted with the image.
    pub captions: u16,
}

/// Hits of one run over a test set, image by image, fold by fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    pub(super) folds: Vec<Vec<ImageHits>>,
}

impl Hits {
    /// Hits of ranked folds (a single fold if the whole set was ranked).
    ///
    /// # Errors
    /// If the policy is [`TiePolicy::Expected`], whose hits are not integers, an image has more than 65,535 texts,
    /// there is no fold, or a fold is empty.
    pub fn new(folds: &[Ranks], policy: TiePolicy) -> Result<Self> {
        let whole = policy != TiePolicy::Expected;
        Error::unless(whole, "hits", "a tie policy with whole hits", "expected")?;
        let folds: Vec<_> = folds.iter().map(|f| fold_hits(f, policy)).collect::<Result<_>>()?;
        Self::from_folds(folds)
    }

    /// Hits that were counted elsewhere: the images of each fold, in order.
    ///
    /// # Errors
    /// If there is no fold, a fold has no image or no text, or an image has more hits than possible.
    pub fn from_folds(folds: Vec<Vec<ImageHits>>) -> Result<Self> {
        let is_empty = |fold: &Vec<ImageHits>| fold.iter().all(|hits| hits.captions == 0);
        let expected = "at least 1 image with a text in each of 1 or more folds";
        let some = !folds.is_empty() && !folds.iter().any(is_empty);
        Error::unless(some, "hits", expected, "none")?;
        let wrong = |hits: &ImageHits| {
            let texts = hits.t2i.iter().any(|&hit| hit > hits.captions);
            texts || hits.i2t.iter().any(|&hit| hit > 1)
        };
        for (f, fold) in folds.iter().enumerate() {
            if let Some(i) = fold.iter().position(wrong) {
                let expected = "0 or 1 image hits, no more text hits than texts";
                let place = format!("hits of fold {f}, image {i}");
                return Err(Error::invalid(place, expected, format!("{:?}", fold[i])));
            }
        }
        Ok(Self { folds })
    }

    /// The blocks of each fold.
    pub fn folds(&self) -> &[Vec<ImageHits>] {
        &self.folds
    }

    /// Recalls in percent: ratios of sums within a fold, averaged over folds. They equal the recalls of
    /// [`Evaluation`](crate::eval::Evaluation).
    pub fn recalls(&self) -> Measures<f64> {
        let sums = self.folds.iter().map(|fold| {
            let mut sums = BlockSums::default();
            fold.iter().for_each(|block| sums.add(block, 1));
            sums
        });
        BlockSums::recalls(sums)
    }
}

fn fold_hits(ranks: &Ranks, policy: TiePolicy) -> Result<Vec<ImageHits>> {
    let hits = |q: &Standing| CUTS.map(|k| u16::from(q.hit(k, policy) > 0.5));
    let block = |image: usize| {
        let texts: Vec<_> = ranks.pairs().unit(image).collect();
        let captions = u16::try_from(texts.len()).map_err(|_| {
            Error::invalid(format!("hits, image {image}"), "at most 65535 captions", texts.len())
        })?;
        let mut t2i = [0; 3];
        for text in texts {
            let one = hits(&ranks.t2i()[text]);
            (0..3).for_each(|k| t2i[k] += one[k]);
        }
        Ok(ImageHits { i2t: hits(&ranks.i2t()[image]), t2i, captions })
    };
    let is_query = |&image: &usize| ranks.i2t()[image].is_query();
    (0..ranks.i2t().len()).filter(is_query).map(block).collect()
}

/// Sums of blocks of one fold.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlockSums {
    i2t: [u64; 3],
    t2i: [u64; 3],
    images: u64,
    captions: u64,
}

impl BlockSums {
    /// Adds a block as often as it was drawn.
    pub(super) fn add(&mut self, block: &ImageHits, times: u32) {
        let times = u64::from(times);
        for k in 0..3 {
            self.i2t[k] += times * u64::from(block.i2t[k]);
            self.t2i[k] += times * u64::from(block.t2i[k]);
        }
        self.images += times;
        self.captions += times * u64::from(block.captions);
    }

    /// Ratios of the sums of each fold, averaged over folds.
    pub(super) fn recalls(folds: impl Iterator<Item = Self>) -> Measures<f64> {
        let (mut i2t, mut t2i, mut count) = ([0.0; 3], [0.0; 3], 0.0);
        for sums in folds {
            for k in 0..3 {
                i2t[k] += sums.i2t[k] as f64 / sums.images as f64;
                // Images without a text of their own may be all that was drawn.
                t2i[k] += sums.t2i[k] as f64 / sums.captions.max(1) as f64;
            }
            count += 1.0;
        }
        let percent = |x: f64| 100.0 * x / count;
        Measures::of_recalls(i2t.map(percent), t2i.map(percent))
    }
}
