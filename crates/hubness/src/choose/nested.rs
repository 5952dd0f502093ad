//! An interval that covers the choice of a setting.

use itm_core::significance::{Interval, resample};
use itm_core::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cross_fit::{best_beside, fits, fold_sums};
use super::{Goal, HitTable, Split};

/// 95 % percentile intervals of a cross-fitted recall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nested {
    /// The intervals of R@1, R@5, R@10.
    pub recalls: [Interval; 3],
    /// The interval of the goal.
    pub score: Interval,
    /// How often each setting was chosen, over all replicates and folds that were drawn.
    pub chosen: Vec<usize>,
}

/// Bootstrap over images with a new choice inside every replicate, so that the interval includes the choice. An interval over
/// the pooled hits of [`cross_fit`](super::cross_fit) takes the choice as given.
///
/// ```text
/// replicate:  N images drawn with replacement, each in the fold it has; choice and pooling as in cross_fit, images counted
///             as often as they were drawn
/// ```
///
/// Folds without a drawn image count for nothing. If no image outside a fold is drawn, all settings are equal and the
/// smallest correction is taken. Costs `replicates · settings · images`. With this seed,
/// [`bootstrap`](itm_core::significance::bootstrap) draws the same images for one run over one fold. The number of threads
/// does not matter.
///
/// # Errors
/// As [`cross_fit`](super::cross_fit), and if there is no replicate.
pub fn nested(
    table: &HitTable,
    split: &Split,
    goal: Goal,
    replicates: usize,
    seed: u64,
) -> Result<Nested> {
    fits(table, split)?;
    if replicates == 0 {
        return Err(Error::invalid("nested bootstrap", "at least 1 replicate", 0));
    }
    let draw = |r: u64| {
        let times = resample(&[1, table.images()], seed, r).remove(1);
        replicate(table, split, goal, &times)
    };
    let drawn: Vec<_> = (0..replicates as u64).into_par_iter().map(draw).collect();
    let mut chosen = vec![0; table.candidates().len()];
    drawn.iter().flat_map(|(_, settings)| settings).for_each(|&setting| chosen[setting] += 1);
    let interval = |of: &dyn Fn([f64; 3]) -> f64| {
        Interval::percentile(drawn.iter().map(|(recalls, _)| of(*recalls)).collect())
    };
    let recalls = [0, 1, 2].map(|k| interval(&|at| at[k]));
    Ok(Nested { recalls, score: interval(&|at| goal.of(at)), chosen })
}

/// Pooled recalls in percent, and the settings of the folds that were drawn.
pub(super) fn replicate(
    table: &HitTable,
    split: &Split,
    goal: Goal,
    times: &[u32],
) -> ([f64; 3], Vec<usize>) {
    let sums = fold_sums(table, split, goal, |image| times[image]);
    let best: Vec<usize> = (0..split.folds()).map(|fold| best_beside(table, &sums, fold)).collect();
    let (mut hits, mut queries) = ([0u64; 3], 0);
    let mut drawn = vec![false; split.folds()];
    for (image, (&times, &fold)) in times.iter().zip(split.of_image()).enumerate() {
        let at = table.candidates()[best[fold]].hits[image];
        (0..3).for_each(|k| hits[k] += u64::from(times) * u64::from(at[k]));
        queries += u64::from(times) * u64::from(table.queries()[image]);
        drawn[fold] |= times > 0;
    }
    let chosen =
        best.into_iter().zip(drawn).filter_map(|(setting, drawn)| drawn.then_some(setting));
    (hits.map(|hit| 100.0 * hit as f64 / queries as f64), chosen.collect())
}
