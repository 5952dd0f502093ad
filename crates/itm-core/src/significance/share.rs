//! Shares of things that are counted image by image, with intervals.

use serde::{Deserialize, Serialize};

use super::{Interval, MOST_REPLICATES, resample};

/// Bootstrap replicates.
const REPLICATES: usize = 10_000;
/// Seed of the bootstrap draws.
const SEED: u64 = 0;

/// A share over all images and seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Things that count / all things, in `[0, 1]`.
    pub value: f64,
    /// 95 % interval `[lo, hi]`: bootstrap over test images and seeds.
    pub ci95: [f64; 2],
    /// Number of all things, summed over seeds.
    pub of: u64,
}

impl Share {
    /// Ratio of the sums over runs and images; `None` if there is nothing to count. Each run has one entry per image: the number of
    /// things that count, and the number of all things. The interval resamples images and seeds, as the intervals of recalls do.
    ///
    /// ```
    /// use itm_core::significance::Share;
    ///
    /// let run = vec![[3, 4], [0, 2]]; // three of four things in the first image, none of two in the second
    /// assert_eq!(Share::over(&[run]).map(|share| share.value), Some(0.5));
    /// assert_eq!(Share::over(&[]), None);
    /// ```
    ///
    /// # Panics
    /// If the runs have different numbers of images, a count is 2³² or more, or more things count than there are.
    pub fn over(runs: &[Vec<[u64; 2]>]) -> Option<Self> {
        let images = runs.first()?.len();
        assert!(runs.iter().all(|run| run.len() == images), "runs of the same images");
        let most = runs.iter().flatten().flatten().max();
        assert!(most <= Some(&u64::from(u32::MAX)), "counts below 2³², got {most:?}");
        let are_shares = runs.iter().flatten().all(|[some, all]| some <= all);
        assert!(are_shares, "more things that count than things");
        let once = |group: usize| vec![1; group];
        let value = share(runs, &once(runs.len()), &once(images))?;
        let of = |times: &[u32], drawn: &[u32]| share(runs, times, drawn);
        let ci95 = interval(REPLICATES, [runs.len(), images], of);
        let all = runs.iter().flatten().map(|counts| counts[1]).sum();
        Some(Self { value, ci95, of: all })
    }
}

/// What [`Share::over`] takes of a run: for each of the images, the number of things that count, and the number of all things. `things`
/// has the image of each thing, and whether it counts.
///
/// # Panics
/// If an image does not exist.
pub fn per_image(images: usize, things: impl IntoIterator<Item = (usize, bool)>) -> Vec<[u64; 2]> {
    let mut counts = vec![[0; 2]; images];
    for (image, does_count) in things {
        counts[image][0] += u64::from(does_count);
        counts[image][1] += 1;
    }
    counts
}

/// 95 % interval of `of` over resampled seeds and images; replicates without a value are left out.
///
/// # Panics
/// If there are more than [`MOST_REPLICATES`], none has a value, or a value is not finite.
pub fn interval(
    replicates: usize,
    groups: [usize; 2],
    of: impl Fn(&[u32], &[u32]) -> Option<f64> + Sync,
) -> [f64; 2] {
    assert!(replicates <= MOST_REPLICATES, "{replicates} replicates, not 1 to {MOST_REPLICATES}");
    let replicate = |r: u64| {
        let drawn = resample(&groups, SEED, r);
        of(&drawn[0], &drawn[1]) // `None` if the drawn images have nothing to count
    };
    let values = crate::interrupt::each(replicates as u64, replicate);
    let Interval { lo, hi } = Interval::percentile(values.into_iter().flatten().collect());
    [lo, hi]
}

/// The share where each run and image counts as often as it was drawn.
fn share(runs: &[Vec<[u64; 2]>], times: &[u32], drawn: &[u32]) -> Option<f64> {
    let (mut counted, mut all) = (0, 0);
    for (run, &times) in runs.iter().zip(times) {
        for (counts, &drawn) in run.iter().zip(drawn) {
            let weight = u64::from(times) * u64::from(drawn);
            counted += weight * counts[0];
            all += weight * counts[1];
        }
    }
    (all > 0).then(|| counted as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_shares_of_runs_and_images_drawn_so_often() {
        let things = [(0, true), (1, false), (0, false), (0, true), (1, false), (0, true)];
        let run = per_image(2, things);
        assert_eq!(run, [[3, 4], [0, 2]]);
        let runs = [run, vec![[1, 1], [1, 1]]];
        assert_eq!(share(&runs[..1], &[1], &[1, 0]), Some(0.75));
        assert_eq!(share(&runs[..1], &[1], &[0, 0]), None);
        assert_eq!(share(&runs, &[1, 2], &[1, 1]), Some(0.7));
    }

    /// A hundred images with one thing each; ninety of the things count: about 0.90 ± 1.96 · √(0.9 · 0.1 / 100).
    #[test]
    fn an_interval_has_the_width_of_its_images() {
        let images: Vec<[u64; 2]> = (0..100).map(|i| [u64::from(i < 90), 1]).collect();
        let Share { value, ci95: [lo, hi], of } = Share::over(&[images]).unwrap();
        assert_eq!((value, of), (0.9, 100));
        assert!((lo - 0.84).abs() < 0.02 && (hi - 0.96).abs() < 0.02, "{lo} {hi}");
        assert_eq!(Share::over(&[vec![[0, 0]]]), None);
    }

    #[test]
    #[should_panic(expected = "more things that count than things")]
    fn a_share_is_at_most_one() {
        Share::over(&[vec![[5, 2]]]);
    }
}
