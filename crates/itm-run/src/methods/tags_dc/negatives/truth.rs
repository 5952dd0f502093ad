//! Whether negatives of Scenes are false, which its grammar can tell.

use std::collections::BTreeMap;

use itm_core::scenes::{Split, entails, parse};
use itm_core::significance::{Interval, resample};
use serde::Serialize;
use tags_dc::record::{Kind, Record};

const REPLICATES: u64 = 1000;

/// Negatives of a kind beside the truth.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Judged {
    /// Sentences with a meaning that the scene denies.
    pub(super) falsehoods: usize,
    /// Sentences with a meaning that the scene has.
    pub(super) truths: usize,
    /// No sentences of the world's grammar: nobody can say.
    pub(super) unparsed: usize,
    /// Share of the sentences with a meaning that are false.
    pub(super) truly_false: Option<f64>,
    /// Of that share, by drawing images anew.
    pub(super) ci95: Option<[f64; 2]>,
}

/// By kind. A record's caption is `image#number`.
pub(super) fn judge(split: &Split, records: &[Record]) -> BTreeMap<Kind, Judged> {
    let mut by_kind: BTreeMap<Kind, (Judged, Vec<[u32; 2]>)> = BTreeMap::new();
    for record in records {
        let image = record.caption.split('#').next().and_then(|id| id.parse::<usize>().ok());
        let image = image.expect("images of Scenes are numbers");
        let none = || (Judged::default(), vec![[0; 2]; split.len()]);
        let (judged, of_images) = by_kind.entry(record.kind).or_insert_with(none);
        match parse(&record.text) {
            None => judged.unparsed += 1,
            Some(said) if entails(&split.scenes[image], &said) => {
                judged.truths += 1;
                of_images[image][1] += 1;
            }
            Some(_) => {
                judged.falsehoods += 1;
                of_images[image][0] += 1;
            }
        }
    }
    let with_interval = |(kind, (mut judged, of_images)): (Kind, (Judged, Vec<[u32; 2]>))| {
        judged.truly_false = share(of_images.iter().map(|&counts| (counts, 1)));
        judged.ci95 = judged.truly_false.map(|_| interval(&of_images));
        (kind, judged)
    };
    by_kind.into_iter().map(with_interval).collect()
}

/// Share of falsehoods over images, each counted so often; `None` without a sentence.
fn share(images: impl Iterator<Item = ([u32; 2], u32)>) -> Option<f64> {
    let sums = images.fold([0u64; 2], |[f, t], ([a, b], times)| {
        [f + u64::from(a * times), t + u64::from(b * times)]
    });
    let all = sums[0] + sums[1];
    (all > 0).then(|| sums[0] as f64 / all as f64)
}

fn interval(of_images: &[[u32; 2]]) -> [f64; 2] {
    let replicate = |r: u64| {
        let times = resample(&[of_images.len()], 0, r).swap_remove(0);
        share(of_images.iter().copied().zip(times))
    };
    let Interval { lo, hi } = Interval::percentile((0..REPLICATES).filter_map(replicate).collect());
    [lo, hi]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_shares_and_their_interval() {
        assert_eq!(share([([3, 1], 1), ([0, 2], 0)].into_iter()), Some(0.75));
        assert_eq!(share([([3, 1], 0)].into_iter()), None);
        // A hundred images of one sentence each, ninety false: about 0.90 ± 1.96 · √(0.9 · 0.1 / 100).
        let images: Vec<[u32; 2]> =
            (0..100).map(|i| if i < 90 { [1, 0] } else { [0, 1] }).collect();
        let [lo, hi] = interval(&images);
        assert!((lo - 0.84).abs() < 0.02 && (hi - 0.96).abs() < 0.02, "{lo} {hi}");
    }
}
