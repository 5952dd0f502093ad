//! The lists on which hubs of a model are counted, fold by fold, and the interval of a difference between two models.

use itm_core::eval::{CUTS, Fold};
use itm_core::scored::{Scored, visit};
use itm_core::significance::{Interval, MOST_REPLICATES, resample};
use itm_core::tiles::{Side, Top, TopK};
use itm_core::{Error, Pairs, Result, interrupt};

use super::Counts;
use crate::Direction;

/// The ten nearest items of every query of a test set, both directions, within each of its folds.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    folds: Vec<NearestInFold>,
}

#[derive(Debug, Clone, PartialEq)]
struct NearestInFold {
    pairs: Pairs,
    texts: TopK,  // of every image
    images: TopK, // of every text
}

impl Nearest {
    /// Number of items kept per query: the largest `k` that has counts.
    pub const KEPT: usize = 10;

    /// Finds the nearest items by the scores of a test set. Each fold is searched within itself.
    ///
    /// # Errors
    /// As [`Scored::visit`], and if there is no fold.
    ///
    /// # Panics
    /// If a fold has other images or texts than the scores.
    pub fn new(scored: &dyn Scored, folds: &[Fold]) -> Result<Self> {
        let of_fold = |fold: &Fold| {
            let consumers = (Top::new(Side::Images, Self::KEPT), Top::new(Side::Texts, Self::KEPT));
            let whole = (fold.images.len(), fold.texts.len()) == (scored.images(), scored.texts());
            let (texts, images) = match whole {
                true => visit(scored, &consumers)?,
                false => visit(&scored.fold(fold)?, &consumers)?,
            };
            Ok(NearestInFold { pairs: fold.pairs.clone(), texts, images })
        };
        Error::unless(!folds.is_empty(), "folds", "at least 1 fold", 0)?;
        Ok(Self { folds: folds.iter().map(of_fold).collect::<Result<_>>()? })
    }

    /// `N_k` of every item, one for each fold.
    ///
    /// # Panics
    /// If `k` is larger than [`KEPT`](Self::KEPT).
    pub fn counts(&self, direction: Direction, k: usize) -> Vec<Counts> {
        self.folds.iter().map(|fold| fold.counts(direction, k, |_| 1)).collect()
    }

    /// The paper's sum of skewnesses over `k` = 1, 5, 10 and both directions, averaged over the folds.
    pub fn hs_sum(&self) -> f64 {
        let all = Self::of_hs_sum().map(|(direction, k)| self.counts(direction, k));
        let of_fold = |fold: usize| all.iter().map(|counts| counts[fold].skewness()).sum::<f64>();
        (0..self.folds.len()).map(of_fold).sum::<f64>() / self.folds.len() as f64
    }

    /// The directions and `k` that [`hs_sum`](Self::hs_sum) sums over. Pass them to [`bootstrap_difference`] together with
    /// [`skewnesses`](Self::skewnesses).
    pub fn of_hs_sum() -> [(Direction, usize); 6] {
        std::array::from_fn(|at| (Direction::BOTH[at / 3], CUTS[at % 3] as usize))
    }

    /// Sum of the skewnesses of some counts.
    pub fn skewnesses(counts: &[Counts]) -> f64 {
        counts.iter().map(Counts::skewness).sum()
    }

    /// Mean over the folds of a measure of counts. Every image counts, with its queries, as often as the `times` of its fold
    /// say. A text that is true of no image counts once.
    fn drawn(
        &self,
        of: &[(Direction, usize)],
        times: &[Vec<u32>],
        measure: &impl Fn(&[Counts]) -> f64,
    ) -> f64 {
        let of_fold = |(fold, times): (&NearestInFold, &Vec<u32>)| {
            let count = |&(direction, k): &(Direction, usize)| {
                let unit = |query| direction.unit(&fold.pairs, query);
                fold.counts(direction, k, |query| unit(query).map_or(1, |image| times[image]))
            };
            measure(&of.iter().map(count).collect::<Vec<_>>())
        };
        self.folds.iter().zip(times).map(of_fold).sum::<f64>() / self.folds.len() as f64
    }
}

impl NearestInFold {
    fn counts(&self, direction: Direction, k: usize, times: impl Fn(usize) -> u32) -> Counts {
        assert!(k <= Nearest::KEPT, "{} nearest are kept, got {k}", Nearest::KEPT);
        let (images, texts) = (self.pairs.images(), self.pairs.texts());
        let top = direction.queries(&self.texts, &self.images);
        let queries = 0..direction.queries(images, texts);
        let lists = queries.map(|query| top.items(query));
        Counts::weighted(direction.items(images, texts), k, lists, times)
    }
}

/// 95 % percentile interval of the difference `a − b` in a measure of hubs between the runs of two systems.
///
/// ```text
/// replicate:  t_r times run r, Σ_r t_r = R;  in each fold t_i times image i, Σ_i t_i = N
/// N_k(j)   =  Σ_q t_image(q) · [ j ∈ list(q) ]
/// value    =  Σ_r t_r · (mean over folds of m(a_r) − m(b_r)) / R
/// ```
///
/// `m` is a function of the counts of each direction and `k` in `of`, in that order. Lists and items stay. Both
/// systems have the same draws; with this seed, [`itm_core::significance::bootstrap_difference`] makes the same draws too.
/// The number of threads does not matter.
///
/// # Errors
/// If there is no run or replicate, there are more than [`MOST_REPLICATES`], the numbers of runs differ, or runs are not over the same images and texts.
///
/// # Panics
/// If a `k` is larger than [`Nearest::KEPT`], or the measure gives a number that is not finite.
pub fn bootstrap_difference(
    a: &[Nearest],
    b: &[Nearest],
    of: &[(Direction, usize)],
    measure: impl Fn(&[Counts]) -> f64 + Sync,
    replicates: usize,
    seed: u64,
) -> Result<Interval> {
    let place = "bootstrap of hubs";
    Error::unless(!a.is_empty(), place, "at least 1 run", 0)?;
    let expected = format_args!("{} runs of each system", a.len());
    Error::unless(a.len() == b.len(), place, expected, b.len())?;
    let expected = format_args!("1 to {MOST_REPLICATES} replicates");
    Error::unless((1..=MOST_REPLICATES).contains(&replicates), place, expected, replicates)?;
    let pairs = |n: &Nearest| n.folds.iter().map(|fold| fold.pairs.clone()).collect::<Vec<_>>();
    let wanted = pairs(&a[0]);
    if let Some(run) = a.iter().chain(b).position(|n| pairs(n) != wanted) {
        let expected = "runs over the images and texts of the first";
        return Err(Error::invalid(place, expected, format!("others in run {run}")));
    }
    let groups: Vec<_> = [a.len()].into_iter().chain(wanted.iter().map(Pairs::images)).collect();
    let replicate = |r: u64| {
        let mut images = resample(&groups, seed, r);
        let runs = images.remove(0);
        let value = |(run, times): (usize, &u32)| {
            let a = a[run].drawn(of, &images, &measure);
            let b = b[run].drawn(of, &images, &measure);
            f64::from(*times) * (a - b)
        };
        let drawn = runs.iter().enumerate().filter(|(_, times)| **times > 0);
        drawn.map(value).sum::<f64>() / runs.len() as f64
    };
    Ok(Interval::percentile(interrupt::each(replicates as u64, replicate)))
}

#[cfg(test)]
mod tests {
    use itm_core::eval::folds;

    use itm_core::ScoreMatrix;

    use super::*;
    use crate::{Survey, TopLists};

    const SIDES: [Direction; 2] = Direction::BOTH;

    /// Scores that look random; `hub` lifts image 0 and text 0, so that they become hubs.
    fn scores(images: usize, texts: usize, hub: f32) -> ScoreMatrix {
        let score = |at: usize| {
            let noise = ((at * 7919 + 13) % 1009) as f32 / 1009.0;
            if at < texts || at.is_multiple_of(texts) { noise + hub } else { noise }
        };
        ScoreMatrix::new(images, texts, (0..images * texts).map(score).collect()).unwrap()
    }

    fn top(scores: &ScoreMatrix, pairs: &Pairs, direction: Direction) -> TopLists {
        let survey = Survey::fit(scores, 10, &[]).unwrap();
        let nearest = survey.nearest(direction);
        let queries = 0..direction.queries(pairs.images(), pairs.texts());
        let items: Vec<u32> = queries.flat_map(|q| nearest.items(q)).copied().collect();
        let zeros = vec![0.0; items.len()];
        TopLists::new(direction, 10, items, zeros)
    }

    /// Two folds are two separate test sets: counts are within each fold, measures are averaged.
    #[test]
    fn folds_are_searched_within_themselves() {
        let (pairs, all) = (Pairs::uniform(40, 2), scores(40, 80, 0.4));
        let parts = folds(&pairs, 2, 20).unwrap();
        let nearest = Nearest::new(&all, &parts).unwrap();
        let mut sums = vec![];
        for (f, part) in parts.iter().enumerate() {
            let scores = <dyn Scored>::fold(&all, part).unwrap();
            let want = SIDES.map(|side| {
                let items = side.items(20, 40);
                let top = top(&scores, &part.pairs, side);
                [1, 5, 10].map(|k| Counts::top(items, k, &top))
            });
            for (side, want) in SIDES.into_iter().zip(&want) {
                let got = [1, 5, 10].map(|k| nearest.counts(side, k)[f].clone());
                assert_eq!(got, *want, "{side}, fold {f}");
            }
            sums.push(want.iter().flatten().map(Counts::skewness).sum::<f64>());
        }
        assert!((nearest.hs_sum() - (sums[0] + sums[1]) / 2.0).abs() < 1e-12);
        assert_ne!(sums[0], sums[1], "each fold has sums of its own");
        let whole = Nearest::new(&all, &folds(&pairs, 1, 40).unwrap()).unwrap();
        assert_eq!(whole.counts(Direction::T2i, 1)[0].queries, 80);
    }

    /// With fewer items than are kept, every query has all items, and none is a hub.
    #[test]
    fn a_small_set_has_no_more_items_than_it_has() {
        let part = folds(&Pairs::uniform(4, 1), 1, 4).unwrap();
        let nearest = Nearest::new(&scores(4, 4, 0.0), &part).unwrap();
        let counts = &nearest.counts(Direction::I2t, 10)[0];
        assert_eq!((&counts.values[..], counts.skewness()), (&[4; 4][..], 0.0));
    }

    #[test]
    fn without_a_fold_nothing_can_be_averaged() {
        let line = Nearest::new(&scores(4, 4, 0.0), &[]).unwrap_err().to_string();
        assert_eq!(line, "folds: expected at least 1 fold, got 0");
    }

    #[test]
    fn infinite_scores_are_refused() {
        let mut values = vec![0.25; 16];
        values[6] = f32::INFINITY;
        let infinite = ScoreMatrix::new(4, 4, values).unwrap();
        for count in [1, 2] {
            let parts = folds(&Pairs::uniform(4, 1), count, 4 / count).unwrap();
            let line = Nearest::new(&infinite, &parts).map(|_| ()).map_err(|e| e.to_string());
            let want = "scores of image 1 and text 2: expected a finite number, got inf";
            // The second fold has other pairs: text 2 is beyond the first two images.
            assert_eq!(line, if count == 1 { Err(want.into()) } else { Ok(()) });
        }
    }

    #[test]
    #[should_panic(expected = "10 nearest are kept, got 11")]
    fn more_than_are_kept() {
        let part = folds(&Pairs::uniform(4, 1), 1, 4).unwrap();
        let nearest = Nearest::new(&scores(4, 4, 0.0), &part).unwrap();
        _ = nearest.counts(Direction::I2t, 11);
    }

    /// If the measure of one system is 0 in every draw, the interval of the difference is the interval of the other system.
    /// With one run there is one draw of runs; then images are drawn, each with all its texts. Images have 1 to 9 texts, out
    /// of order.
    #[test]
    fn a_difference_to_nothing_is_the_interval_itself() {
        let of_text: Vec<usize> = (0..90).map(|t| if t < 30 { t } else { t * t % 30 }).collect();
        let pairs = Pairs::new(30, of_text).unwrap();
        let part = [Fold::new(&pairs, 0..30)];
        let all = scores(30, 90, 0.3);
        let (hubs, none) = (
            [Nearest::new(&all, &part).unwrap()],
            [Nearest::new(&scores(30, 90, -9.0), &part).unwrap()],
        );
        for (direction, k) in [(Direction::I2t, 1), (Direction::T2i, 1), (Direction::T2i, 5)] {
            // 0 where item 0 is nobody's neighbour: always in `none`, never in `hubs`.
            let measure = |c: &[Counts]| match c[0].values[0] {
                0 => 0.0,
                _ => c[0].robin_hood(),
            };
            let interval = |a: &[Nearest], b: &[Nearest]| {
                bootstrap_difference(a, b, &[(direction, k)], measure, 200, 3).unwrap()
            };
            let lists = top(&all, &pairs, direction);
            let replicate = |r: u64| {
                let times = resample(&[1, 30], 3, r).remove(1);
                let image = |query: usize| direction.queries(query, pairs.image_of_text()[query]);
                let queries = (0..lists.queries()).map(|query| lists.items(query));
                let times = |query| times[image(query)];
                Counts::weighted(direction.items(30, 90), k, queries, times).robin_hood()
            };
            let own = Interval::percentile((0..200).map(replicate).collect());
            assert!(own.hi > own.lo);
            assert_eq!(interval(&hubs, &none), own, "{direction}, N_{k}");
            let back = interval(&none, &hubs);
            assert!((back.lo + own.hi).abs() + (back.hi + own.lo).abs() < 1e-12);
            assert_eq!(interval(&hubs, &hubs), Interval { lo: 0.0, hi: 0.0 }, "one draw for both");
        }
    }

    /// Two runs: one differs by 1, the other by 0. A replicate draws each run 0, 1 or 2 times.
    #[test]
    fn runs_are_drawn_in_pairs() {
        let part = folds(&Pairs::uniform(12, 1), 1, 12).unwrap();
        let [hub, flat] =
            [9.0, -9.0].map(|lift| Nearest::new(&scores(12, 12, lift), &part).unwrap());
        let hubs = |c: &[Counts]| f64::from(u8::from(c[0].values[0] > 0)); // of text 0
        let of = [(Direction::I2t, 1)];
        let (a, b) = ([hub.clone(), flat.clone()], [flat.clone(), flat.clone()]);
        let got = bootstrap_difference(&a, &b, &of, hubs, 400, 1).unwrap();
        assert_eq!(got, Interval { lo: 0.0, hi: 1.0 });
        let same = bootstrap_difference(&a, &a, &of, hubs, 400, 1).unwrap();
        assert_eq!(same, Interval { lo: 0.0, hi: 0.0 });
        let line = |a: &[Nearest], b: &[Nearest], replicates| {
            bootstrap_difference(a, b, &of, hubs, replicates, 1).unwrap_err().to_string()
        };
        assert!(line(&[], &[], 9).contains("at least 1 run"));
        assert!(line(&a, &b[..1], 9).contains("2 runs of each system, got 1"));
        assert!(line(&a, &b, 0).contains("1 to 1000000 replicates"));
        let short =
            Nearest::new(&scores(12, 12, 0.0), &[Fold::new(&Pairs::uniform(12, 1), 0..6)]).unwrap();
        assert!(line(&a, &[flat, short], 9).contains("others in run 3"));
    }
}
