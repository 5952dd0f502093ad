//! Cuts the matrix into lanes that depend only on its shape, and merges them in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;

/// Images and texts of a lane.
pub(super) type Lane = (Range<usize>, Range<usize>);

/// Every lane except the last has at least this length, and a multiple of half of it.
const LENGTH: usize = 512;

/// The most lanes: each lane has its own copy of what a consumer keeps of the short axis.
const MOST: usize = 48;

/// Cuts the longer axis, so that what a consumer keeps of it (most of the memory) is kept once.
pub(super) fn cut(images: usize, texts: usize) -> Vec<Lane> {
    let along = images.max(texts);
    let length = along.div_ceil(MOST).next_multiple_of(LENGTH / 2).max(LENGTH);
    let lanes = super::pieces(0..along, length);
    if texts >= images {
        lanes.map(|texts| (0..images, texts)).collect()
    } else {
        lanes.map(|images| (images, 0..texts)).collect()
    }
}

/// Works on `0..count` in parallel and merges the results in ascending order, one at a time.
///
/// Work begins in ascending order too, so few results wait for their turn. `begin` sees the results merged so far.
pub(super) fn in_order<T: Send>(
    count: usize,
    total: T,
    begin: impl Fn(usize, &T) -> T + Sync,
    work: impl Fn(usize, T) -> T + Sync,
    merge: impl Fn(&mut T, T) + Sync,
) -> T {
    struct LaneProgress<T> {
        begun: usize,
        merged: usize,
        waiting: BTreeMap<usize, T>,
        total: T,
    }
    let progress =
        Mutex::new(LaneProgress { begun: 0, merged: 0, waiting: BTreeMap::new(), total });
    let lock = || progress.lock().expect("no thread panicked while it held the lock");
    let next = || {
        let mut progress = lock();
        let item = progress.begun;
        progress.begun += 1;
        (item < count).then(|| (item, begin(item, &progress.total)))
    };
    let threads = rayon::current_num_threads().min(count);
    (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
        while let Some((item, state)) = next() {
            let result = work(item, state);
            let progress = &mut *lock();
            progress.waiting.insert(item, result);
            while let Some(result) = progress.waiting.remove(&progress.merged) {
                progress.merged += 1;
                merge(&mut progress.total, result);
            }
        }
    });
    progress.into_inner().expect("no thread panicked").total
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn lanes_cover_the_longer_axis_once() {
        for (n, m) in [(5, 3), (3, 5), (512, 512), (5_000, 25_000), (200_000, 25_000), (513, 1)] {
            let lanes = cut(n, m);
            assert!(lanes.len() <= MOST);
            let along: Vec<_> =
                lanes.iter().map(|(v, w)| if m >= n { w.clone() } else { v.clone() }).collect();
            let across = |(v, w): &Lane| if m >= n { *v == (0..n) } else { *w == (0..m) };
            assert!(lanes.iter().all(across));
            assert_eq!((along[0].start, along[along.len() - 1].end), (0, n.max(m)));
            assert!(along.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(along.iter().all(|lane| lane.start % super::super::ALIGN == 0));
        }
        assert_eq!(cut(0, 0), []);
    }

    /// Item 0 always ends after item 1; every item sees the results merged before it began.
    #[test]
    fn results_are_merged_in_order_whoever_is_slow() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for count in [0, 1, 2, 40] {
            let second_is_done = AtomicBool::new(count < 2);
            let begin = |item: usize, merged: &Vec<usize>| {
                assert!(merged.len() <= item && merged.iter().copied().eq(0..merged.len()));
                vec![item]
            };
            let work = |item: usize, state: Vec<usize>| {
                while item == 0 && !second_is_done.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                second_is_done.fetch_or(item == 1, Ordering::Release);
                state
            };
            let merge = |all: &mut Vec<usize>, one: Vec<usize>| all.extend(one);
            let all = pool.install(|| in_order(count, Vec::new(), begin, work, merge));
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
