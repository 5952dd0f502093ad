//! How the matrix is shared out: lanes that depend on its shape alone, merged in one order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Images and texts of a lane.
pub(super) type Lane = (Range<usize>, Range<usize>);

/// A lane is this long at least, and a multiple of half of it.
const LENGTH: usize = 512;

/// No more lanes than this: each holds what its consumer keeps of the short axis.
const MOST: usize = 48;

/// Cuts the longer axis, so that what is kept of it (most of the memory) is kept once.
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

/// Works on `0..count` in parallel and hands the results over in ascending order, one at a time.
///
/// Work is begun in ascending order too, so few results wait for their turn.
pub(super) fn in_order<T: Send>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    hand_over: impl FnMut(T) + Send,
) {
    struct Turn<T, F> {
        next: usize,
        waiting: BTreeMap<usize, T>,
        hand_over: F,
    }
    let begun = AtomicUsize::new(0);
    let turn = Mutex::new(Turn { next: 0, waiting: BTreeMap::new(), hand_over });
    let threads = rayon::current_num_threads().min(count);
    (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
        loop {
            let item = begun.fetch_add(1, Ordering::Relaxed);
            if item >= count {
                return;
            }
            let result = work(item);
            let mut turn = turn.lock().expect("no thread panicked while it held the turn");
            let turn = &mut *turn;
            turn.waiting.insert(item, result);
            while let Some(result) = turn.waiting.remove(&turn.next) {
                turn.next += 1;
                (turn.hand_over)(result);
            }
        }
    });
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn results_arrive_in_order_whoever_is_slow() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for count in [0, 1, 3, 40] {
            let mut arrived = Vec::new();
            let work = |item: usize| {
                let spin = if item.is_multiple_of(3) { 20_000 } else { 1 };
                (0..spin).fold(item, |x, _| std::hint::black_box(x))
            };
            pool.install(|| in_order(count, work, |item| arrived.push(item)));
            assert_eq!(arrived, (0..count).collect::<Vec<_>>());
        }
    }
}
