//! How certain a number is: bootstrap intervals, paired randomisation, several comparisons.
//!
//! The unit is the **image**: its i2t query and the t2i queries of its texts are one block. The captions of an image are
//! correlated, and resampling them one by one would make intervals too short. The gallery stays fixed: ranks are computed
//! once on the full matrix, and only hits are resampled. Resampling items too would duplicate them and change R@K.
//!
//! ```
//! use itm_core::eval::{Protocol, TiePolicy};
//! use itm_core::scored::Scored;
//! use itm_core::significance::{Hits, bootstrap, paired_randomisation};
//! use itm_core::{Pairs, ScoreMatrix};
//!
//! let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
//! let ranks = <dyn Scored>::ranks_by(&scores, Protocol::Full, &Pairs::uniform(3, 1))?;
//! let hits = [Hits::new(&ranks, TiePolicy::Index)?];
//! let rsum = bootstrap(&hits, 1000, 0)?.rsum;
//! assert!(rsum.lo < hits[0].recalls().rsum && rsum.hi <= 600.0);
//! assert_eq!(paired_randomisation(&hits, &hits, 1000, 0)?.p, 1.0);
//! # Ok::<(), itm_core::Error>(())
//! ```

mod bootstrap;
mod expected;
mod hits;
mod randomisation;
mod share;

use serde::{Deserialize, Serialize};

pub use bootstrap::{bootstrap, bootstrap_difference, resample};
pub use expected::{ceilings, chance};
pub use hits::{Hits, ImageHits};
pub use randomisation::{Randomisation, holm, paired_randomisation};
pub use share::{Share, interval, per_image};

/// The most replicates of a bootstrap or a randomisation: a hundred times as many as a report uses.
pub const MOST_REPLICATES: usize = 1_000_000;

/// An interval that covers 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// One value for each of the six recalls (at 1, 5, 10) and for their sum.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Measures<T> {
    /// R@1, R@5, R@10 of images as queries.
    pub i2t: [T; 3],
    /// R@1, R@5, R@10 of texts as queries.
    pub t2i: [T; 3],
    /// The sum of the six.
    pub rsum: T,
}

impl Measures<f64> {
    /// From six recalls.
    pub fn of_recalls(i2t: [f64; 3], t2i: [f64; 3]) -> Self {
        Self { rsum: i2t.iter().chain(&t2i).sum(), i2t, t2i }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rand::RngExt;
    use serde::Deserialize;

    use super::*;
    use crate::eval::{Evaluation, Fold, Ranks, TiePolicy, folds};
    use crate::scored::Scored;
    use crate::{Pairs, ScoreMatrix};

    #[derive(Deserialize)]
    struct Golden {
        randomisation: Vec<Exchange>,
        holm: Vec<Family>,
    }

    #[derive(Deserialize)]
    struct Exchange {
        images: usize,
        image_of_text: Vec<usize>,
        folds: (usize, usize),
        a: Vec<f32>,
        b: Vec<f32>,
        difference: f64,
        p: f64,
        differing: usize,
    }

    #[derive(Deserialize)]
    struct Family {
        p: Vec<f64>,
        adjusted: Vec<f64>,
    }

    /// From `tests/reference/evaluation.py`, which evaluates both systems again for every exchange, in exact fractions.
    fn golden() -> Golden {
        serde_json::from_str(include_str!("../../tests/golden/evaluation.json")).unwrap()
    }

    fn hits(values: &[f32], owner: &[usize], split: (usize, usize)) -> Hits {
        let images = split.0 * split.1;
        let scores = ScoreMatrix::new(images, owner.len(), values.to_vec()).unwrap();
        let folds = folds(&Pairs::new(images, owner.to_vec()).unwrap(), split.0, split.1).unwrap();
        let ranks =
            |f: &Fold| Ranks::new(&<dyn Scored>::fold(&scores, f).unwrap(), &f.pairs).unwrap();
        let ranks: Vec<_> = folds.iter().map(ranks).collect();
        let hits = Hits::new(&ranks, TiePolicy::Index).unwrap();
        let (ours, plain) = (hits.recalls(), Evaluation::new(&ranks, TiePolicy::Index));
        assert!((ours.rsum - plain.rsum).abs() < 1e-9, "hits and ranks give one rSum");
        hits
    }

    /// A run of random scores, the true pairs lifted, over `n` images with `captions` texts each.
    fn noisy(n: usize, captions: usize, seed: u64) -> Hits {
        let m = n * captions;
        let mut rng = bootstrap::stream(seed, 0);
        let lift = |at: usize| if at % m / captions == at / m { 0.8 } else { 0.0 };
        let values: Vec<f32> = (0..n * m).map(|at| rng.random::<f32>() + lift(at)).collect();
        hits(&values, &(0..m).map(|t| t / captions).collect::<Vec<_>>(), (1, n))
    }

    fn ends(m: Measures<Interval>) -> Vec<f64> {
        let all = m.i2t.iter().chain(&m.t2i).chain([&m.rsum]);
        all.flat_map(|i| [i.lo, i.hi]).collect()
    }

    #[test]
    fn golden_exchanges() {
        for case in golden().randomisation {
            let [a, b] = [&case.a, &case.b].map(|s| [hits(s, &case.image_of_text, case.folds)]);
            assert_eq!(case.images, case.folds.0 * case.folds.1);
            assert!((a[0].recalls().rsum - b[0].recalls().rsum - case.difference).abs() < 1e-9);
            let got = paired_randomisation(&a, &b, 10, 0).unwrap();
            assert_eq!(got, Randomisation { p: case.p, differing: case.differing, exact: true });
            assert_eq!(paired_randomisation(&b, &a, 10, 0).unwrap(), got, "two-sided");
        }
    }

    #[test]
    fn golden_holm() {
        for family in golden().holm {
            let got = holm(&family.p);
            let near = |(got, want): (&f64, &f64)| (got - want).abs() < 1e-12;
            assert!(got.iter().zip(&family.adjusted).all(near), "{got:?}, {:?}", family.adjusted);
        }
    }

    /// d = (2, 1, 1) · constant: |±2 ± 1 ± 1| ≥ 4 for 2 of 8 signs. d = (3, −1, −1): ≥ 1 for all 8.
    #[test]
    fn three_images_by_hand() {
        let system = |i2t: [[u16; 3]; 3]| {
            let block = |i2t| ImageHits { i2t, t2i: [1; 3], captions: 1 };
            [Hits::from_folds(vec![i2t.map(block).to_vec()]).unwrap()]
        };
        let none = system([[0; 3]; 3]);
        let better = system([[0, 1, 1], [0, 0, 1], [0, 0, 1]]);
        assert_eq!(paired_randomisation(&better, &none, 1, 0).unwrap().p, 0.25);
        let (mixed, other) =
            (system([[1, 1, 1], [0, 0, 0], [0, 0, 0]]), system([[0, 0, 0], [0, 0, 1], [0, 0, 1]]));
        assert_eq!(paired_randomisation(&mixed, &other, 1, 0).unwrap().p, 1.0);
    }

    #[test]
    fn identical_systems() {
        for a in [[noisy(60, 5, 1)], [noisy(12, 2, 1)]] {
            let zero = bootstrap_difference(&a, &a, 500, 0).unwrap();
            assert!(ends(zero).iter().all(|&end| end == 0.0));
            assert_eq!(paired_randomisation(&a, &a, 500, 0).unwrap().p, 1.0);
        }
    }

    /// 60 equal differences: a replicate with flipped signs is less extreme, so only the observed sum counts.
    #[test]
    fn better_on_every_image() {
        let every = |hit: u16| {
            let block = ImageHits { i2t: [hit; 3], t2i: [5 * hit; 3], captions: 5 };
            [Hits::from_folds(vec![vec![block; 60]]).unwrap()]
        };
        let (a, b) = (every(1), every(0));
        let test = paired_randomisation(&a, &b, 999, 7).unwrap();
        assert_eq!(test, Randomisation { p: 1.0 / 1000.0, differing: 60, exact: false });
        let gain = bootstrap_difference(&a, &b, 200, 7).unwrap().rsum;
        assert_eq!(gain, Interval { lo: 600.0, hi: 600.0 });
    }

    /// Better as often as worse: T = 0, and every |T*| is at least 0.
    #[test]
    fn equal_sums_are_no_difference() {
        let block = |hit: u16| ImageHits { i2t: [hit; 3], t2i: [0; 3], captions: 1 };
        let system = |first, last| {
            [Hits::from_folds(vec![[[block(first); 20], [block(last); 20]].concat()]).unwrap()]
        };
        let test = paired_randomisation(&system(0, 1), &system(1, 0), 99, 0).unwrap();
        assert_eq!(test, Randomisation { p: 1.0, differing: 40, exact: false });
    }

    /// The image is the unit: copies of its captions hit together and add no information.
    #[test]
    fn five_copies_of_each_caption_are_one() {
        let (mut one, mut other) = (noisy(80, 1, 3), noisy(80, 1, 4));
        let before = (
            bootstrap(&[one.clone()], 400, 1).unwrap(),
            bootstrap_difference(&[one.clone()], &[other.clone()], 400, 1).unwrap(),
            paired_randomisation(&[one.clone()], &[other.clone()], 400, 1).unwrap(),
        );
        for block in one.folds.iter_mut().chain(&mut other.folds).flatten() {
            block.t2i = block.t2i.map(|h| 5 * h);
            block.captions *= 5;
        }
        let after = (
            bootstrap(&[one.clone()], 400, 1).unwrap(),
            bootstrap_difference(&[one.clone()], &[other.clone()], 400, 1).unwrap(),
            paired_randomisation(&[one], &[other], 400, 1).unwrap(),
        );
        assert_eq!(before, after);
        assert!(before.0.rsum.hi - before.0.rsum.lo > 20.0 && before.2.differing > 20);
    }

    /// Hits of n images with rate q: the standard error is √(q (1 − q) / n) over images, for any number of captions.
    /// Resampling captions instead would make the interval of t2i too short by a factor of √5.
    #[test]
    fn intervals_have_the_width_of_the_images() {
        let block = |i: usize| {
            let hit = u16::from(i % 10 < 3);
            ImageHits { i2t: [hit; 3], t2i: [5 * hit; 3], captions: 5 }
        };
        let runs = [Hits::from_folds(vec![(0..500).map(block).collect()]).unwrap()];
        let m = bootstrap(&runs, 4000, 0).unwrap();
        let want = 1.96 * 100.0 * (0.3f64 * 0.7 / 500.0).sqrt();
        for interval in [m.i2t[0], m.t2i[2]] {
            let half = (interval.hi - interval.lo) / 2.0;
            assert!((half / want - 1.0).abs() < 0.06, "{half} for {want}");
            assert!(((interval.hi + interval.lo) / 2.0 - 30.0).abs() < 0.3);
        }
        assert!((m.rsum.hi - m.rsum.lo - 6.0 * 2.0 * want).abs() < 0.06 * 12.0 * want);
    }

    /// One image owns most captions: the recall is the ratio of sums, not the mean of ratios.
    #[test]
    fn unequal_captions_are_a_ratio_of_sums() {
        let blocks = [(9u16, 9u16), (1, 0), (1, 0)].map(|(captions, hit)| ImageHits {
            i2t: [1; 3],
            t2i: [hit; 3],
            captions,
        });
        let run = Hits::from_folds(vec![blocks.to_vec()]).unwrap();
        assert!((run.recalls().t2i[0] - 100.0 * 9.0 / 11.0).abs() < 1e-12);
        let m = bootstrap(&[run], 500, 0).unwrap();
        assert_eq!(m.t2i[0], Interval { lo: 0.0, hi: 100.0 });
        assert_eq!(m.i2t[0], Interval { lo: 100.0, hi: 100.0 });
    }

    /// All variance is between folds: resampling within folds gives an interval of width 0, pooling would not.
    #[test]
    fn folds_are_resampled_within() {
        let block = |hit: u16| ImageHits { i2t: [hit; 3], t2i: [hit; 3], captions: 1 };
        let folds = Hits::from_folds(vec![vec![block(1); 30], vec![block(0); 60]]).unwrap();
        let within = bootstrap(&[folds], 200, 0).unwrap();
        assert!(ends(within)[..12].iter().all(|&end| end == 50.0));
        let pooled =
            Hits::from_folds(vec![[vec![block(1); 30], vec![block(0); 60]].concat()]).unwrap();
        let pooled = bootstrap(&[pooled], 200, 0).unwrap().i2t[0];
        assert!(pooled.lo < 30.0 && pooled.hi > 37.0, "{pooled:?}");
    }

    /// Equal runs do not change the interval; different runs widen it, although their images are the same.
    #[test]
    fn the_choice_of_seeds_is_covered() {
        let constant = |hit: u16| {
            let block = ImageHits { i2t: [hit; 3], t2i: [hit; 3], captions: 1 };
            Hits::from_folds(vec![vec![block; 40]]).unwrap()
        };
        let spread = bootstrap(&[constant(1), constant(0)], 400, 0).unwrap();
        assert_eq!(spread.i2t[0], Interval { lo: 0.0, hi: 100.0 });
        let runs = vec![noisy(50, 2, 5); 3];
        let [one, three] = [1, 3].map(|n| bootstrap(&runs[..n], 4000, 0).unwrap().rsum);
        // The images are shared, so three equal runs are no more certain than one.
        assert!(((three.hi - three.lo) / (one.hi - one.lo) - 1.0).abs() < 0.1, "{one:?} {three:?}");
    }

    #[test]
    fn threads_change_nothing_and_seeds_do() {
        let (a, b) = ([noisy(70, 3, 8)], [noisy(70, 3, 9)]);
        let all = |seed| {
            (
                bootstrap(&a, 300, seed).unwrap(),
                bootstrap_difference(&a, &b, 300, seed).unwrap(),
                paired_randomisation(&a, &b, 300, seed).unwrap(),
            )
        };
        let with = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| all(seed))
        };
        assert_eq!(with(1, 5), with(4, 5));
        assert_ne!(with(1, 5).0, with(1, 6).0);
        assert!(!with(1, 5).2.exact);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let (a, b) = ([noisy(6, 2, 0)], [noisy(6, 3, 0)]);
        let error = bootstrap_difference(&a, &b, 10, 0).unwrap_err().to_string();
        assert_eq!(
            error,
            "runs, run 1: expected the images and captions of run 0 (1 folds, 6 images, 12 captions), \
             got 1 folds, 6 images, 18 captions"
        );
        let error = paired_randomisation(&a, &[], 10, 0).unwrap_err().to_string();
        assert_eq!(error, "two systems: expected 1 runs each, got 0");
        assert!(bootstrap(&[], 10, 0).is_err() && bootstrap(&a, 0, 0).is_err());
        assert!(paired_randomisation(&[], &[], 10, 0).is_err());
        assert!(paired_randomisation(&a, &a, 0, 0).is_err());
        let ranks = Ranks::new(&ScoreMatrix::from_rows([[1.0]]), &Pairs::uniform(1, 1)).unwrap();
        let error = Hits::new(&[ranks], TiePolicy::Expected).unwrap_err().to_string();
        assert_eq!(error, "hits: expected a tie policy with whole hits, got expected");
        assert!(Hits::new(&[], TiePolicy::Index).is_err());
    }

    proptest! {
        #[test]
        fn holm_lies_between_nothing_and_bonferroni(p in vec(0.0f64..=1.0, 1..9)) {
            let adjusted = holm(&p);
            for (i, (&raw, &adj)) in p.iter().zip(&adjusted).enumerate() {
                prop_assert!(raw <= adj && adj <= (raw * p.len() as f64).min(1.0));
                prop_assert!((0..p.len()).all(|j| p[j] < raw || adjusted[j] >= adj), "{i}");
            }
        }
    }
}
