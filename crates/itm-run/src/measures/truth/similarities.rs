//! Similarities of matching and other pairs of the test split, with the posterior over them.

use itm_core::Result;
use itm_core::learn::MatchProbability;
use itm_report::plot::Point;

use crate::measures::{Trial, each_score};

/// Approximate number of other pairs in a histogram.
const OTHERS: usize = 20_000;

/// The label of a group of pairs, such as `matching pairs`, and the scores of the pairs. A few tens of
/// thousands of values per group are enough; the histogram is normalised per group. Scores that are not finite are not drawn.
pub(super) type Group = (&'static str, Vec<f32>);

/// Similarities of the test split, in two or three groups: matching, (true but not annotated,) other.
///
/// # Errors
/// If a score cannot be computed.
pub(super) fn groups(trial: &Trial) -> Result<Vec<Group>> {
    let Trial { source, scores, .. } = trial;
    let pairs = &source.dataset.test.pairs;
    let truth = source.truth.as_ref().map(|truth| &truth.test);
    let [mut matching, mut unnoticed, mut other] = [vec![], vec![], vec![]];
    let m = scores.texts();
    let stride = stride(scores.images() * m, m);
    each_score(*scores, |i, t, s| {
        if pairs.image_of(t) == i {
            matching.push(s);
        } else if truth.is_some_and(|truth| truth.contains(i, t)) {
            unnoticed.push(s);
        } else if (i * m + t).is_multiple_of(stride) {
            other.push(s);
        }
    })?;
    let mut groups = vec![("matching pairs", matching)];
    if truth.is_some() {
        groups.push(("true, not annotated", unnoticed));
    }
    groups.push(("other pairs", other));
    Ok(groups)
}

/// The stride that takes about [`OTHERS`] pairs; coprime to the texts of a row, because otherwise it would skip whole columns.
fn stride(pairs: usize, texts: usize) -> usize {
    let least = (pairs / OTHERS).max(1);
    (least..).find(|&n| gcd(n, texts.max(1)) == 1).unwrap_or(1)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A label such as `P(match | s), p = 1e-4`, and the curve `(s, P)` of a posterior, s ascending.
pub(super) fn curve(posterior: &MatchProbability) -> (String, Vec<Point>) {
    let points = (0..=200).map(|k| f64::from(k) / 100.0 - 1.0);
    let label = format!("P(match | s), p = {:e}", posterior.prior);
    (label, points.map(|s| (s, (posterior.of)(s))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{self, by_truth};

    #[test]
    fn similarities_are_grouped_by_the_truth() {
        let source = tests::small_scenes([8, 4, 12]).1;
        let scores = by_truth(&source);
        let groups = groups(&tests::trial(&source, &scores)).unwrap();
        assert_eq!(groups.len(), 3);
        for ((_, values), value) in groups.iter().zip([2.0, 3.0, 1.0]) {
            assert!(!values.is_empty() && values.iter().all(|&v| v == value));
        }
        assert_eq!(groups[0].1.len(), 60);
        assert_eq!(groups.iter().map(|(_, values)| values.len()).sum::<usize>(), 12 * 60);
    }

    #[test]
    fn a_stride_passes_over_no_column() {
        for (images, texts) in [(1000, 5000), (500, 2500), (60, 5000), (5000, 25_000), (3, 7)] {
            let stride = stride(images * texts, texts);
            let taken = images * texts / stride;
            assert!(taken.min(OTHERS) * 2 >= OTHERS.min(images * texts), "{taken}");
            let columns: std::collections::HashSet<_> =
                (0..5 * stride).step_by(stride).map(|k| k % 5).collect();
            assert!(columns.len() == 5 || stride == 1, "{images} × {texts}: {stride}");
        }
    }
}
