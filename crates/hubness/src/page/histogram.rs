//! Numbers of items by how often they turn up, in doubling bins or in ten bins per decade.

use crate::report::Histogram;

/// A bin: the counts `lo..=hi` and the number of items with such a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bin {
    pub(super) lo: u64,
    pub(super) hi: u64,
    pub(super) items: u64,
}

/// The bins 0, 1, 2–3, 4–7, 8–15, …, up to `max`.
pub(super) fn doubling(histogram: &Histogram, max: u64) -> Vec<Bin> {
    let last = (u64::BITS - max.leading_zeros()) as usize; // bin of `max`: 0 → 0, 1 → 1, 2 and 3 → 2
    let edges = |bin: usize| match bin {
        0 => (0, 0),
        b => (1 << (b - 1), (1 << (b - 1)) - 1 + (1 << (b - 1))),
    };
    bins(histogram, (0..=last).map(edges))
}

/// Ten bins per decade from 1 up to `max`, for logarithmic axes. A bin without a whole number is left
/// out.
pub(super) fn decades(histogram: &Histogram, max: u64) -> Vec<Bin> {
    let edge = |step: i32| 10f64.powf(f64::from(step) / 10.0).round() as u64;
    let mut edges: Vec<u64> =
        (0..).map(edge).take_while(|&lo| lo <= max && lo < u64::MAX).collect();
    edges.dedup();
    let next = edges.iter().skip(1).map(|&lo| lo - 1).chain([u64::MAX]).collect::<Vec<_>>();
    let mut out = bins(histogram, edges.into_iter().zip(next));
    if let Some(bin) = out.last_mut() {
        // Its regular width: with an open end, its density would be near 0.
        bin.hi = ((bin.lo as f64 * 10f64.powf(0.1)).round() as u64 - 1).max(bin.lo);
    }
    out
}

fn bins(histogram: &Histogram, edges: impl Iterator<Item = (u64, u64)>) -> Vec<Bin> {
    let items = |lo, hi| {
        let inside = histogram.counts.iter().filter(|c| (lo..=hi).contains(&c.0));
        inside.map(|c| c.1).sum()
    };
    edges.map(|(lo, hi)| Bin { lo, hi, items: items(lo, hi) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(u64, u64)]) -> Histogram {
        Histogram { method: "nns".into(), k: 10, counts: counts.into() }
    }

    #[test]
    fn doubling_bins_hold_every_item_once() {
        let h = histogram(&[(0, 5), (1, 4), (2, 3), (3, 2), (4, 1), (7, 6), (8, 9)]);
        let bins: Vec<_> = doubling(&h, h.max()).iter().map(|b| (b.lo, b.hi, b.items)).collect();
        assert_eq!(bins, [(0, 0, 5), (1, 1, 4), (2, 3, 5), (4, 7, 7), (8, 15, 9)]);
        assert_eq!(doubling(&histogram(&[(0, 3)]), 0).len(), 1);
    }

    #[test]
    fn decade_bins_hold_every_item_that_turns_up() {
        let counts: Vec<_> = (0..2500).map(|n| (n, 1)).collect();
        let h = histogram(&counts);
        let bins = decades(&h, h.max());
        assert_eq!(bins.iter().map(|b| b.items).sum::<u64>(), 2499);
        assert!(bins.windows(2).all(|w| w[0].hi + 1 == w[1].lo));
        assert_eq!((bins[0].lo, bins[0].hi), (1, 1));
        // The last bin starts below the maximum and ends a tenth of a decade later.
        assert_eq!(bins.last().map(|b| (b.lo, b.hi)), Some((1995, 2511)));
        assert!(decades(&histogram(&[(0, 3)]), 0).is_empty());
        let last = decades(&histogram(&[(u64::MAX, 3)]), u64::MAX).pop().unwrap();
        assert_eq!((last.hi, last.items), (u64::MAX - 1, 3));
    }
}
