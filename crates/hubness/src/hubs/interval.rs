//! Confidence interval of a hub measure.

use itm_core::significance::{Interval, resample};
use itm_core::{Error, Pairs, Result, interrupt};

use super::{Counts, Lists};

/// 95 % percentile interval of a measure of hubs. Images are drawn with replacement, each with all its queries; lists and
/// items stay.
///
/// ```text
/// replicate:  t_i times image i, Σ_i t_i = N        N_k(j) = Σ_q t_image(q) · [ j ∈ list(q) ]
/// ```
///
/// If texts are the queries, all texts of an image are drawn together. With this seed,
/// [`bootstrap`](itm_core::significance::bootstrap) draws the same images for one run over one fold. The number of threads
/// does not matter.
///
/// # Errors
/// If there is no image or no replicate.
///
/// # Panics
/// If the number of lists is not the number of queries of the pairs.
fn bootstrap_measure(
    lists: &Lists<'_>,
    pairs: &Pairs,
    measure: impl Fn(&Counts) -> f64 + Sync,
    replicates: usize,
    seed: u64,
) -> Result<Interval> {
    let direction = lists.direction();
    let queries = direction.queries(pairs.images(), pairs.texts());
    assert_eq!(lists.queries().len(), queries, "lists of the {direction} queries of the pairs");
    for (what, count) in [("image", pairs.images()), ("replicate", replicates)] {
        if count == 0 {
            return Err(Error::invalid("bootstrap of hubs", format!("at least 1 {what}"), 0));
        }
    }
    let replicate = |r: u64| {
        let times = resample(&[1, pairs.images()], seed, r).remove(1);
        // A text that is true of no image is in every draw.
        let weight = |query| direction.unit(pairs, query).map_or(1, |image| times[image]);
        measure(&Counts::weighted(lists, weight))
    };
    Ok(Interval::percentile(interrupt::each(replicates as u64, replicate)))
}
