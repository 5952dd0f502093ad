//! Percentile intervals from resampled images (and runs).

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::hits::BlockSums;
use super::{Hits, Interval, MOST_REPLICATES, Measures};
use crate::{Error, Result, interrupt};

/// 95 % percentile intervals of the recalls of one run, or of the mean over several runs of one system.
///
/// ```text
/// replicate:  draw |runs| runs with replacement; within each fold draw as many images as it has, with replacement
/// R@K i2t  =  100 · mean over folds of  Σ h_i / n        over the drawn images i
/// R@K t2i  =  100 · mean over folds of  Σ h_i / Σ c_i    a ratio of sums, for any number c_i of captions
/// interval =  2.5 % and 97.5 % quantile over the replicates, linearly interpolated
/// ```
///
/// With several runs, every drawn run uses the same drawn images, because all runs were evaluated on the same images. The
/// interval then covers the choice of seeds and of images. With one run it covers only the choice of images.
///
/// Replicate `r` draws from stream `r` of `seed`, so the result does not depend on threads.
///
/// # Errors
/// If there is no run or replicate, there are more than [`MOST_REPLICATES`], or the runs differ in images or captions.
pub fn bootstrap(runs: &[Hits], replicates: usize, seed: u64) -> Result<Measures<Interval>> {
    same_images(runs.iter())?;
    intervals(replicates, |r| Resample::new(runs, seed, r).recalls(runs))
}

/// 95 % percentile intervals of the differences `a − b`, with the same draw for both systems.
///
/// Draws as [`bootstrap`] does. Run `r` of `a` is paired with run `r` of `b` (the same seed, or the same model before and
/// after re-scoring). If the two runs have nothing in common, the pairing does no harm.
///
/// # Errors
/// As [`bootstrap`], and if the numbers of runs differ.
pub fn bootstrap_difference(
    a: &[Hits],
    b: &[Hits],
    replicates: usize,
    seed: u64,
) -> Result<Measures<Interval>> {
    same_runs(a, b)?;
    intervals(replicates, |r| {
        let draw = Resample::new(a, seed, r);
        let (a, b) = (draw.recalls(a), draw.recalls(b));
        let minus = |x: [f64; 3], y: [f64; 3]| [x[0] - y[0], x[1] - y[1], x[2] - y[2]];
        let (i2t, t2i) = (minus(a.i2t, b.i2t), minus(a.t2i, b.t2i));
        Measures { i2t, t2i, rsum: a.rsum - b.rsum }
    })
}

/// Every run must have the folds, images and captions of the first.
pub(super) fn same_images<'a>(mut runs: impl Iterator<Item = &'a Hits>) -> Result<()> {
    let first = runs.next().ok_or_else(|| Error::invalid("runs", "at least 1", 0))?;
    let captions = |h: &Hits| {
        h.folds().iter().map(|f| f.iter().map(|b| b.captions).collect()).collect::<Vec<Vec<_>>>()
    };
    let images = |h: &Hits| h.folds().iter().map(Vec::len).sum::<usize>();
    let describe = |h: &Hits| {
        let texts: usize = captions(h).concat().into_iter().map(usize::from).sum();
        format!("{} folds, {} images, {texts} captions", h.folds().len(), images(h))
    };
    let wanted = captions(first);
    let differs = |(_, run): &(usize, &Hits)| captions(run) != wanted;
    let Some((k, run)) = runs.enumerate().find(differs) else { return Ok(()) };
    let expected = format!("the images and captions of run 0 ({})", describe(first));
    Err(Error::invalid(format!("runs, run {}", k + 1), expected, describe(run)))
}

/// Both systems must have the same number of runs, all over the same images.
pub(super) fn same_runs(a: &[Hits], b: &[Hits]) -> Result<()> {
    let expected = format!("{} runs each", a.len());
    Error::unless(a.len() == b.len(), "two systems", expected, b.len())?;
    same_images(a.iter().chain(b))
}

/// How often each run and each image of each fold was drawn.
struct Resample {
    runs: Vec<u32>,
    images: Vec<Vec<u32>>,
}

impl Resample {
    fn new(runs: &[Hits], seed: u64, replicate: u64) -> Self {
        let folds = runs[0].folds().iter().map(Vec::len);
        let groups: Vec<usize> = std::iter::once(runs.len()).chain(folds).collect();
        let mut images = resample(&groups, seed, replicate);
        Self { runs: images.remove(0), images }
    }

    fn recalls(&self, runs: &[Hits]) -> Measures<f64> {
        let fold_sums = |(f, images): (usize, &Vec<u32>)| {
            let mut sums = BlockSums::default();
            for (run, &run_times) in runs.iter().zip(&self.runs).filter(|(_, times)| **times > 0) {
                let blocks = run.folds()[f].iter().zip(images);
                blocks.for_each(|(block, &times)| sums.add(block, run_times * times));
            }
            sums
        };
        BlockSums::recalls(self.images.iter().enumerate().map(fold_sums))
    }
}

/// One replicate of a bootstrap: how often each member of each group is drawn. A group of `n` members gets `n` draws.
///
/// Replicate `r` draws from stream `r` of `seed`. So results do not depend on threads, and all callers that resample the
/// same groups with one seed see the same draws.
///
/// ```
/// let drawn = itm_core::significance::resample(&[3, 100], 0, 7);
/// assert_eq!([drawn[0].iter().sum::<u32>(), drawn[1].iter().sum()], [3, 100]);
/// ```
///
/// # Panics
/// If a group has more than 2³² − 1 members.
pub fn resample(groups: &[usize], seed: u64, replicate: u64) -> Vec<Vec<u32>> {
    let mut rng = stream(seed, replicate);
    let mut times = |&n: &usize| {
        let end = u32::try_from(n);
        let end = end.unwrap_or_else(|_| panic!("a group of {n} members, not fewer than 2³²"));
        let mut times = vec![0; n];
        (0..n).for_each(|_| times[rng.random_range(0..end) as usize] += 1);
        times
    };
    groups.iter().map(&mut times).collect()
}

/// The random numbers of one replicate.
pub(super) fn stream(seed: u64, replicate: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(replicate);
    rng
}

/// Refuses a number of replicates that is 0, or that memory and time cannot hold.
pub(super) fn check_replicates(place: &str, replicates: usize) -> Result<()> {
    let fits = (1..=MOST_REPLICATES).contains(&replicates);
    Error::unless(fits, place, format_args!("1 to {MOST_REPLICATES} replicates"), replicates)
}

fn intervals(
    replicates: usize,
    replicate: impl Fn(u64) -> Measures<f64> + Send + Sync,
) -> Result<Measures<Interval>> {
    check_replicates("bootstrap", replicates)?;
    let drawn = interrupt::each(replicates as u64, replicate);
    let of = |measure: &dyn Fn(&Measures<f64>) -> f64| {
        Interval::percentile(drawn.iter().map(measure).collect())
    };
    Ok(Measures {
        i2t: [0, 1, 2].map(|k| of(&|m| m.i2t[k])),
        t2i: [0, 1, 2].map(|k| of(&|m| m.t2i[k])),
        rsum: of(&|m| m.rsum),
    })
}

impl Interval {
    /// The 2.5 % and 97.5 % quantiles of the values of all replicates, linearly interpolated.
    ///
    /// # Panics
    /// If there is no value, or one is not finite.
    pub fn percentile(mut values: Vec<f64>) -> Self {
        interrupt::check(); // a report has many intervals, and sorts a million values for each
        assert!(!values.is_empty(), "an interval of at least 1 value");
        if let Some(bad) = values.iter().find(|value| !value.is_finite()) {
            panic!("an interval of finite numbers, got {bad}");
        }
        values.sort_unstable_by(f64::total_cmp);
        Self { lo: quantile(&values, 0.025), hi: quantile(&values, 0.975) }
    }
}

/// Linear interpolation between the two nearest of the sorted values.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (at - at.floor()) * (above - below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::significance::ImageHits;

    /// A run that was drawn twice counts twice, as does an image: (2·(2·1 + 0) + 1·(2·0 + 1)) / 9.
    #[test]
    fn draws_are_multiplicities() {
        let run = |hits: [u16; 2]| {
            let block = |hit| ImageHits { i2t: [hit; 3], t2i: [hit; 3], captions: 1 };
            Hits::from_folds(vec![hits.map(block).to_vec()]).unwrap()
        };
        let draw = Resample { runs: vec![2, 1, 0], images: vec![vec![2, 1]] };
        let recalls = draw.recalls(&[run([1, 0]), run([0, 1]), run([1, 1])]);
        assert!((recalls.i2t[0] - 500.0 / 9.0).abs() < 1e-12);
        assert!((recalls.rsum - 6.0 * 500.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_interpolated() {
        let values: Vec<f64> = (0..=10).map(f64::from).collect();
        assert!((quantile(&values, 0.025) - 0.25).abs() < 1e-12);
        assert_eq!((quantile(&values, 1.0), quantile(&[7.0], 0.975)), (10.0, 7.0));
    }
}
