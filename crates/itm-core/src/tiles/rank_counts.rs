//! The ranks of the true items of every query, counted in one pass for both directions.

use std::ops::Range;

use super::{BothSides, Consumer, Tile, Tiles, widest};
use crate::eval::{Ranks, Standing, check_pairs};
use crate::{Error, Pairs, Result, ScoreMatrix};

/// Counts the scores above, and equal to, the score of the true pair: over the images for each text, and over the texts
/// for each image.
///
/// The scores of the true pairs must be known before the pass, with the same bits as in a tile: a pair that is rounded
/// differently would rank above or below itself. [`RankCounts::new`] takes these scores from the same kernel, through
/// [`Tiles::pair_scores`]. The pass checks that it met an equal score for every true pair.
///
/// A query is ranked by its best true item: the one with the largest score, the smaller index on ties.
#[derive(Debug, Clone)]
pub struct RankCounts {
    pub(super) images: Targets,
    pub(super) texts: Targets,
}

/// The best true item of each query.
#[derive(Debug, Clone, Default)]
pub struct Targets<T = f32> {
    /// Its score; infinite for a query without a true item.
    pub score: Vec<T>,
    best: Vec<u32>,
    /// How many true items have this score.
    pub own: Vec<u32>,
}

impl<T: Copy + Default + PartialOrd + From<f32>> Targets<T> {
    /// The best texts of the images and the best images of the texts, from the scores of the true pairs in the order of
    /// [`Pairs::list`].
    ///
    /// # Panics
    /// If there is not one score for each pair.
    pub fn of_pairs(pairs: &Pairs, scores: &[T]) -> [Self; 2] {
        let listed: usize = (0..pairs.texts()).map(|text| pairs.images_of(text).len()).sum();
        assert_eq!(scores.len(), listed, "one score for each true pair");
        let (mut images, mut texts) = (Self::default(), Self::default());
        let mut of_image = vec![vec![]; pairs.images()];
        let mut left = scores;
        for text in 0..pairs.texts() {
            let items = pairs.images_of(text);
            let own;
            (own, left) = left.split_at(items.len());
            texts.push(items.iter().copied().zip(own.iter().copied()));
            items.iter().zip(own).for_each(|(&image, &score)| of_image[image].push((text, score)));
        }
        of_image.into_iter().for_each(|items| images.push(items.into_iter()));
        [images, texts]
    }

    /// Adds a query with its true items, ascending, and their scores.
    fn push(&mut self, items: impl Iterator<Item = (usize, T)>) {
        // The target of a query without a true item is infinite, so no score counts.
        let mut best = (T::from(f32::INFINITY), u32::MAX, 0);
        for (item, score) in items {
            if best.2 == 0 || score > best.0 {
                best = (score, item as u32, 1);
            } else {
                best.2 += u32::from(score == best.0);
            }
        }
        self.score.push(best.0);
        self.best.push(best.1);
        self.own.push(best.2);
    }
}

impl RankCounts {
    /// Computes the scores of the true pairs.
    ///
    /// # Errors
    /// If the numbers of images and texts differ from `pairs`.
    pub fn new(tiles: &Tiles<'_>, pairs: &Pairs) -> Result<Self> {
        let (got, want) = ((tiles.images(), tiles.texts()), (pairs.images(), pairs.texts()));
        let expected = format!("{} images and {} texts, as the pairs", want.0, want.1);
        let found = format!("{} and {}", got.0, got.1);
        Error::unless(got == want, "embeddings", expected, found)?;
        let (images, texts) = pairs.list();
        Ok(Self::with_scores(pairs, &tiles.pair_scores(images, &texts)))
    }

    /// Takes the scores of the true pairs, in the order of [`Pairs::list`]: for consumers that change scores tile by tile.
    ///
    /// # Panics
    /// If there is not one score for each pair, or a score is NaN.
    pub fn with_scores(pairs: &Pairs, scores: &[f32]) -> Self {
        let [images, texts] = Targets::of_pairs(pairs, scores);
        assert!(!scores.iter().any(|score| score.is_nan()), "scores of true pairs, got NaN");
        Self { images, texts }
    }
}

impl Ranks {
    /// Counts over a whole matrix, in parallel.
    ///
    /// # Errors
    /// If matrix and pairs differ in shape, an image has no text, or nothing in [judged](Pairs::judged) pairs is true.
    pub fn new(scores: &ScoreMatrix, pairs: &Pairs) -> Result<Self> {
        check_pairs((scores.images(), scores.texts()), pairs)?;
        let (images, texts) = pairs.list();
        let own: Vec<f32> = images.iter().zip(texts).map(|(&i, t)| scores.row(i)[t]).collect();
        // Infinite scores have ranks, too.
        let BothSides { images, texts, .. } = scores.read(&RankCounts::with_scores(pairs, &own));
        Self::from_counts(pairs.clone(), images, texts)
    }
}

#[cfg(feature = "parts")]
impl RankCounts {
    /// The targets of a rectangle, counted from its first image and text. No item counts as true: `equal` holds the true ones too.
    pub(super) fn within(&self, images: &Range<usize>, texts: &Range<usize>) -> Self {
        let part = |all: &Targets, queries: &Range<usize>, items: &Range<usize>| {
            let place = |&best: &u32| (best as usize).clamp(items.start, items.end) - items.start;
            Targets {
                score: all.score[queries.clone()].to_vec(),
                best: all.best[queries.clone()].iter().map(|best| place(best) as u32).collect(),
                own: vec![0; queries.len()],
            }
        };
        Self { images: part(&self.images, images, texts), texts: part(&self.texts, texts, images) }
    }
}

/// Counts of some neighbouring queries. `equal` includes the true items themselves.
#[derive(Debug, Clone)]
pub struct RankTally {
    /// The first of these queries.
    pub first: usize,
    /// How many scores are greater than the target of each query.
    pub greater: Vec<u32>,
    before: Vec<u32>,
    equal: Vec<u32>,
}

impl RankTally {
    /// Nothing counted yet of a range of queries.
    pub fn new(queries: Range<usize>) -> Self {
        let zeros = || vec![0; queries.len()];
        Self { first: queries.start, greater: zeros(), before: zeros(), equal: zeros() }
    }

    /// Counts one score of a query.
    #[inline]
    pub fn count<T: Copy + PartialOrd>(
        &mut self,
        targets: &Targets<T>,
        query: usize,
        item: usize,
        score: T,
    ) {
        let (at, target) = (query - self.first, targets.score[query]);
        let tie = u32::from(score == target);
        self.greater[at] += u32::from(score > target);
        self.before[at] += tie & u32::from((item as u32) < targets.best[query]);
        self.equal[at] += tie;
    }

    /// Adds scores that are known to be greater, for the queries from `first` on.
    pub(super) fn add_greater(&mut self, first: usize, above: &[u32]) {
        let at = first - self.first;
        self.greater[at..at + above.len()].iter_mut().zip(above).for_each(|(a, b)| *a += b);
    }

    /// Adds the counts of a part of these queries.
    pub fn add(&mut self, part: &Self) {
        for (total, part_counts) in [
            (&mut self.greater, &part.greater),
            (&mut self.before, &part.before),
            (&mut self.equal, &part.equal),
        ] {
            total[part.first - self.first..].iter_mut().zip(part_counts).for_each(|(a, b)| *a += b);
        }
    }

    /// The standings: `own[q]` of the equal scores of query `q` are true, and `equal` must not count them. `what` names a query.
    ///
    /// # Panics
    /// If fewer scores of a query than `own` says are equal to its target.
    pub fn standings(self, what: &str, own: &[u32]) -> Vec<Standing> {
        let counts = self.greater.into_iter().zip(self.before).zip(self.equal).zip(own);
        let standing = |(query, (((greater, before), equal), &own))| {
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
    type Output = BothSides<Standing>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        (RankTally::new(images), RankTally::new(texts))
    }

    fn tile(&self, (images, texts): &mut Self::State, tile: &Tile<'_>) {
        let columns = tile.texts();
        let kept = columns.start - texts.first..columns.end - texts.first;
        let greater = &mut texts.greater[kept.clone()];
        let before = &mut texts.before[kept.clone()];
        let equal = &mut texts.equal[kept];
        let target = &self.texts.score[columns.clone()];
        let own = &self.texts.best[columns.clone()];
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    count_columns(row, target, image as u32, own, (greater, before, equal));
                    let best = self.images.best[image] as usize;
                    let best = best.clamp(columns.start, columns.end);
                    let (left, right) = row.split_at(best - columns.start);
                    let left = count(left, self.images.score[image]);
                    let right = count(right, self.images.score[image]);
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

    fn finish(&self, (images, texts): Self::State) -> BothSides<Standing> {
        BothSides {
            first: [images.first, texts.first],
            images: images.standings("image", &self.images.own),
            texts: texts.standings("text", &self.texts.own),
        }
    }
}

/// How many scores are greater than, and how many equal to, a target.
#[inline(always)]
fn count(scores: &[f32], target: f32) -> (u32, u32) {
    scores.iter().fold((0, 0), |(greater, equal), &s| {
        (greater + u32::from(s > target), equal + u32::from(s == target))
    })
}

/// One row against the target of each column; `own[j]` is the row of column `j`'s best true pair.
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

#[cfg(test)]
mod tests {
    use super::super::tests::{SHAPES, everywhere, grid, tiles, unit};
    use super::*;
    use crate::eval::Ranks;
    use crate::tiles::{Embeddings, ranks};

    /// Every image has a text; the other texts are spread.
    fn scattered(n: usize, m: usize) -> Pairs {
        Pairs::new(n, (0..m).map(|t| if t < n { n - 1 - t } else { t * 37 % n }).collect()).unwrap()
    }

    /// Every third text is true of no image, and the others of one to three; some images have no text.
    fn judged(n: usize, m: usize) -> Pairs {
        let of_text = |t: usize| (0..[1, 3, 0][t % 3]).map(|k| (t * 5 + k * 11) % n).collect();
        Pairs::judged(n, (0..m).map(of_text).collect()).unwrap()
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
                let in_order = Pairs::new(n, (0..m).map(|t| t * n / m).collect()).unwrap();
                for pairs in [scattered(n, m), in_order, judged(n, m)] {
                    let tiles = tiles(&v, &w, d);
                    let want = Ranks::new(&tiles.scores(), &pairs).unwrap();
                    everywhere(&tiles, |tiles| {
                        let got = tiles.run(&RankCounts::new(tiles, &pairs).unwrap());
                        assert_eq!(got.images, want.i2t(), "{n} × {m} × {d}");
                        assert_eq!(got.texts, want.t2i(), "{n} × {m} × {d}");
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
                assert_eq!(got.texts[t], want);
            }
            let lonely = Standing { greater: 0, before: 0, equal: 0, own: 0 };
            assert_eq!(got.images[1], lonely);
            assert_eq!(got.images[8].own, 1);
        });
    }

    /// Worked by hand: image 0 scores 2, 3, 3, 3, 3, 1 and owns texts 0, 2, 3; text 2 is its best.
    #[test]
    fn golden_of_a_tied_image() {
        let (v, w) = ([1.0, 0.0], [2.0, 3.0, 3.0, 3.0, 3.0, 1.0]);
        let pairs = Pairs::new(2, vec![0, 1, 0, 0, 1, 1]).unwrap();
        let tiles = tiles(&v, &w, 1);
        let got = tiles.run(&RankCounts::new(&tiles, &pairs).unwrap());
        assert_eq!(got.images[0], Standing { greater: 0, before: 1, equal: 2, own: 2 });
        assert_eq!(got.images[1], Standing { greater: 0, before: 1, equal: 3, own: 3 });
        // Text 1 belongs to image 1, which scores 0 where image 0 scores 3.
        assert_eq!(got.texts[1], Standing { greater: 1, before: 0, equal: 0, own: 1 });
        assert_eq!(got.texts[2], Standing { greater: 0, before: 0, equal: 0, own: 1 });
    }

    #[test]
    fn a_perfect_match_stands_first_in_every_tile_size() {
        let (n, d) = (300, 77);
        let v = unit(n, d, 9);
        let tiles = tiles(&v, &v, d);
        let pairs = Pairs::uniform(n, 1);
        everywhere(&tiles, |tiles| {
            let got = tiles.run(&RankCounts::new(tiles, &pairs).unwrap());
            let met: Vec<_> =
                got.images.iter().chain(&got.texts).map(|s| (s.equal, s.own)).collect();
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
        tiles.run(&RankCounts::with_scores(&pairs, &(0..5).map(score).collect::<Vec<_>>()));
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
