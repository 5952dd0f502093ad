//! The ranks of the true items of every query, counted in one pass for both directions.

use std::ops::Range;

use super::kernel::widest;
use super::{Consumer, Tile, Tiles};
use crate::eval::Standing;
use crate::{Error, Pairs, Result};

/// Counts the scores above, and equal to, the score of the true pair: over the images for each text, and over the texts
/// for each image.
///
/// The scores of the true pairs must be known before the pass, with the same bits as in a tile: a pair that is rounded
/// differently would rank above or below itself. [`RankCounts::new`] takes these scores from the same kernel, through
/// [`Tiles::pair_scores`]. The pass checks that it met an equal score for every true pair.
///
/// An image is ranked by its best text: the one with the largest score among its texts, the smaller index on ties.
#[derive(Debug, Clone)]
pub struct RankCounts {
    /// Score and image of each text's true pair.
    text_score: Vec<f32>,
    image_of_text: Vec<u32>,
    /// Score and index of each image's best text, and how many of its texts score the same.
    image_score: Vec<f32>,
    best_text: Vec<usize>,
    own: Vec<u32>,
}

/// What [`RankCounts`] gives; [`ranks`](super::ranks) and [`Ranks::from_counts`](crate::eval::Ranks::from_counts) read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standings {
    /// Standing of each image's best text among all texts.
    pub i2t: Vec<Standing>,
    /// Standing of each text's image among all images.
    pub t2i: Vec<Standing>,
}

impl RankCounts {
    /// Computes the scores of the true pairs.
    ///
    /// # Errors
    /// If the numbers of images and texts differ from `pairs`.
    pub fn new(tiles: &Tiles<'_>, pairs: &Pairs) -> Result<Self> {
        let (got, want) = ((tiles.images(), tiles.texts()), (pairs.images(), pairs.texts()));
        if got != want {
            let expected = format!("{} images and {} texts, as the pairs", want.0, want.1);
            let got = format!("{} and {}", got.0, got.1);
            return Err(Error::invalid("embeddings", expected, got));
        }
        let texts: Vec<_> = (0..pairs.texts()).collect();
        Ok(Self::with_scores(pairs, tiles.pair_scores(pairs.image_of_text(), &texts)))
    }

    /// Takes the scores of the true pairs, one for each text: for consumers that change scores tile by tile.
    ///
    /// # Panics
    /// If there is not one score for each text.
    pub fn with_scores(pairs: &Pairs, text_score: Vec<f32>) -> Self {
        assert_eq!(text_score.len(), pairs.texts(), "one score for each text");
        let best = |image: usize| {
            let mut own = pairs.texts_of(image).iter().map(|&t| (text_score[t], t, 1));
            // The target of an image without a text is infinite, so no score counts.
            let first = own.next().unwrap_or((f32::INFINITY, usize::MAX, 0));
            own.fold(first, |best, other| {
                if other.0 > best.0 {
                    other
                } else {
                    (best.0, best.1, best.2 + u32::from(other.0 == best.0))
                }
            })
        };
        let images = (0..pairs.images()).map(best);
        let mut new = Self {
            image_of_text: pairs.image_of_text().iter().map(|&i| i as u32).collect(),
            text_score: text_score.clone(),
            image_score: Vec::new(),
            best_text: Vec::new(),
            own: Vec::new(),
        };
        for (score, text, own) in images {
            new.image_score.push(score);
            new.best_text.push(text);
            new.own.push(own);
        }
        new
    }
}

impl RankCounts {
    /// The score of each text's true pair.
    pub(super) fn text_scores(&self) -> &[f32] {
        &self.text_score
    }

    /// The score of each image's best true pair; infinite for an image without a text.
    pub(super) fn image_scores(&self) -> &[f32] {
        &self.image_score
    }

    /// Counts one score for its text only.
    pub(super) fn count_for_text(&self, of: &mut RankTally, image: usize, text: usize, score: f32) {
        let (at, target) = (text - of.first, self.text_score[text]);
        let tie = u32::from(score == target);
        of.greater[at] += u32::from(score > target);
        of.before[at] += tie & u32::from((image as u32) < self.image_of_text[text]);
        of.equal[at] += tie;
    }

    /// Counts one score for its image only.
    pub(super) fn count_for_image(
        &self,
        of: &mut RankTally,
        image: usize,
        text: usize,
        score: f32,
    ) {
        let (at, target) = (image - of.first, self.image_score[image]);
        let tie = u32::from(score == target);
        of.greater[at] += u32::from(score > target);
        of.before[at] += tie & u32::from(text < self.best_text[image]);
        of.equal[at] += tie;
    }
}

/// Counts of some neighbouring queries. `equal` includes the true items themselves.
#[derive(Debug, Clone)]
pub struct RankTally {
    first: usize,
    greater: Vec<u32>,
    before: Vec<u32>,
    equal: Vec<u32>,
}

impl RankTally {
    fn new(queries: Range<usize>) -> Self {
        let zeros = || vec![0; queries.len()];
        Self { first: queries.start, greater: zeros(), before: zeros(), equal: zeros() }
    }

    /// Adds scores that are known to be greater, for the queries from `first` on.
    pub(super) fn add_greater(&mut self, first: usize, above: &[u32]) {
        let at = first - self.first;
        self.greater[at..at + above.len()].iter_mut().zip(above).for_each(|(a, b)| *a += b);
    }

    fn add(&mut self, part: &Self) {
        for (total, part_counts) in [
            (&mut self.greater, &part.greater),
            (&mut self.before, &part.before),
            (&mut self.equal, &part.equal),
        ] {
            total[part.first - self.first..].iter_mut().zip(part_counts).for_each(|(a, b)| *a += b);
        }
    }

    /// The standings: `own[q]` of the equal scores of query `q` are true, and `equal` must not count them.
    fn standings(self, what: &str, own: impl Iterator<Item = u32>) -> Vec<Standing> {
        let counts = self.greater.into_iter().zip(self.before).zip(self.equal).zip(own);
        let standing = |(query, (((greater, before), equal), own))| {
            let others = u32::checked_sub(equal, own);
            let equal = others.unwrap_or_else(|| {
                panic!("{what} {query}: its true score differs from the score in the tiles")
            });
            Standing { greater, before, equal, own }
        };
        counts.enumerate().map(standing).collect()
    }
}

impl Consumer for RankCounts {
    type State = (RankTally, RankTally); // of images, of texts
    type Output = Standings;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        (RankTally::new(images), RankTally::new(texts))
    }

    fn tile(&self, (images, texts): &mut Self::State, tile: &Tile<'_>) {
        let columns = tile.texts();
        let kept = columns.start - texts.first..columns.end - texts.first;
        let greater = &mut texts.greater[kept.clone()];
        let before = &mut texts.before[kept.clone()];
        let equal = &mut texts.equal[kept];
        let target = &self.text_score[columns.clone()];
        let own = &self.image_of_text[columns.clone()];
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    count_columns(row, target, image as u32, own, (greater, before, equal));
                    let best = self.best_text[image].clamp(columns.start, columns.end);
                    let (left, right) = row.split_at(best - columns.start);
                    let left = count_row(left, self.image_score[image]);
                    let right = count_row(right, self.image_score[image]);
                    let at = image - images.first;
                    images.greater[at] += left.0 + right.0;
                    images.before[at] += left.1;
                    images.equal[at] += left.1 + right.1;
                }
            },
        );
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        total.0.add(&lane.0);
        total.1.add(&lane.1);
    }

    fn finish(&self, (images, texts): Self::State) -> Standings {
        Standings {
            i2t: images.standings("image", self.own.iter().copied()),
            t2i: texts.standings("text", std::iter::repeat(1)),
        }
    }
}

/// One row against the target of each column; `own[j]` is the row of column `j`'s true pair.
#[inline(always)]
fn count_columns(
    row: &[f32],
    target: &[f32],
    image: u32,
    own: &[u32],
    (greater, before, equal): (&mut [u32], &mut [u32], &mut [u32]),
) {
    let n = row.len(); // one length for all, so the loop has no bounds checks and is vectorised
    let (target, own) = (&target[..n], &own[..n]);
    let (greater, before, equal) = (&mut greater[..n], &mut before[..n], &mut equal[..n]);
    for j in 0..n {
        let tie = u32::from(row[j] == target[j]);
        greater[j] += u32::from(row[j] > target[j]);
        before[j] += tie & u32::from(image < own[j]);
        equal[j] += tie;
    }
}

/// How many scores are greater than, and how many equal to, a target.
#[inline(always)]
fn count_row(row: &[f32], target: f32) -> (u32, u32) {
    row.iter().fold((0, 0), |(greater, equal), &s| {
        (greater + u32::from(s > target), equal + u32::from(s == target))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPES, everywhere, grid, tiles, unit};
    use super::*;
    use crate::eval::Ranks;
    use crate::tiles::{Embeddings, ranks};

    /// Every image has a text; the other texts are spread.
    fn scattered(n: usize, m: usize) -> Pairs {
        Pairs::new(n, (0..m).map(|t| if t < n { n - 1 - t } else { t * 37 % n }).collect()).unwrap()
    }

    #[test]
    fn ranks_are_those_of_the_matrix() {
        for (n, m, d) in SHAPES.into_iter().filter(|&(n, m, _)| 0 < n && n <= m) {
            // 0: random scores without ties. 1: all scores are equal. 2: few values, so nearly all scores tie.
            for most in [0, 1, 2] {
                let values = |rows, seed| match most {
                    0 => unit(rows, d, seed),
                    most => grid(rows * d, most - 1, seed),
                };
                let (v, w) = (values(n, 1), values(m, 2));
                for pairs in
                    [scattered(n, m), Pairs::new(n, (0..m).map(|t| t * n / m).collect()).unwrap()]
                {
                    let tiles = tiles(&v, &w, d);
                    let want = Ranks::new(&tiles.scores(), &pairs).unwrap();
                    everywhere(&tiles, |tiles| {
                        let got = tiles.run(&RankCounts::new(tiles, &pairs).unwrap());
                        assert_eq!(got.i2t, want.i2t(), "{n} × {m} × {d}");
                        assert_eq!(got.t2i, want.t2i(), "{n} × {m} × {d}");
                    });
                }
            }
        }
    }

    #[test]
    fn more_images_than_texts() {
        let (n, m, d) = (1100, 130, 3);
        let (v, w) = (grid(n * d, 1, 1), grid(m * d, 1, 2));
        let pairs = Pairs::new(n, (0..m).map(|t| t * 8).collect()).unwrap();
        let tiles = tiles(&v, &w, d);
        let scores = tiles.scores().transpose();
        everywhere(&tiles, |tiles| {
            let got = tiles.run(&RankCounts::new(tiles, &pairs).unwrap());
            for t in 0..m {
                let (column, own) = (scores.row(t), t * 8);
                let count = |f: &dyn Fn(usize) -> bool| (0..n).filter(|&i| f(i)).count() as u32;
                let want = Standing {
                    greater: count(&|i| column[i] > column[own]),
                    before: count(&|i| column[i] == column[own] && i < own),
                    equal: count(&|i| column[i] == column[own] && i != own),
                    own: 1,
                };
                assert_eq!(got.t2i[t], want);
            }
            let lonely = Standing { greater: 0, before: 0, equal: 0, own: 0 };
            assert_eq!(got.i2t[1], lonely);
            assert_eq!(got.i2t[8].own, 1);
        });
    }

    /// Worked by hand: image 0 scores 2, 3, 3, 3, 3, 1 and owns texts 0, 2, 3; text 2 is its best.
    #[test]
    fn golden_of_a_tied_image() {
        let (v, w) = ([1.0, 0.0], [2.0, 3.0, 3.0, 3.0, 3.0, 1.0]);
        let pairs = Pairs::new(2, vec![0, 1, 0, 0, 1, 1]).unwrap();
        let tiles = tiles(&v, &w, 1);
        let got = tiles.run(&RankCounts::new(&tiles, &pairs).unwrap());
        assert_eq!(got.i2t[0], Standing { greater: 0, before: 1, equal: 2, own: 2 });
        assert_eq!(got.i2t[1], Standing { greater: 0, before: 1, equal: 3, own: 3 });
        // Text 1 belongs to image 1, which scores 0 where image 0 scores 3.
        assert_eq!(got.t2i[1], Standing { greater: 1, before: 0, equal: 0, own: 1 });
        assert_eq!(got.t2i[2], Standing { greater: 0, before: 0, equal: 0, own: 1 });
    }

    #[test]
    fn a_perfect_match_stands_first_in_every_tile_size() {
        let (n, d) = (300, 77);
        let v = unit(n, d, 9);
        let tiles = tiles(&v, &v, d);
        let pairs = Pairs::uniform(n, 1);
        everywhere(&tiles, |tiles| {
            let got = tiles.run(&RankCounts::new(tiles, &pairs).unwrap());
            let met: Vec<_> = got.i2t.iter().chain(&got.t2i).map(|s| (s.equal, s.own)).collect();
            assert_eq!(met, vec![(0, 1); 2 * n]);
        });
    }

    #[test]
    #[should_panic(expected = "its true score differs from the score in the tiles")]
    fn scores_from_elsewhere_are_noticed() {
        let v = unit(5, 8, 1);
        let tiles = tiles(&v, &v, 8);
        let pairs = Pairs::uniform(5, 1);
        let score = |i: usize| tiles.scores().row(i)[i].next_up();
        tiles.run(&RankCounts::with_scores(&pairs, (0..5).map(score).collect()));
    }

    #[test]
    fn what_does_not_fit_the_pairs_is_refused() {
        let (v, w) = ([0.0; 4], [0.0; 6]);
        let images = Embeddings::new("images", 2, 2, &v).unwrap();
        let texts = Embeddings::new("texts", 3, 2, &w).unwrap();
        let error = |pairs| ranks(images, texts, &pairs).unwrap_err().to_string();
        let want = "embeddings: expected 2 images and 4 texts, as the pairs, got 2 and 3";
        assert_eq!(error(Pairs::uniform(2, 2)), want);
        let lonely = Pairs::new(2, vec![0, 0, 0]).unwrap();
        assert_eq!(error(lonely), "ranks, image 1: expected at least 1 text, got 0");
    }
}
