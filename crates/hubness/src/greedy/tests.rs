//! Greedy matching against the sort of the whole matrix, and the traps of the specification.

use itm_core::significance::{Hits, ImageHits};
use itm_core::tiles::{Embeddings, Tiles};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::Direction::{I2t, T2i};
use crate::{Affine, Correction, Direction, Pairs, Plain, Rescore, ScoreMatrix, TopLists};

/// The corrected matrix of a direction, queries × items.
#[derive(Debug)]
struct Dense {
    items: usize,
    values: Vec<f64>,
}

impl Dense {
    fn new(scores: &ScoreMatrix, direction: Direction, map: &dyn Rescore) -> Self {
        let turned = direction.queries(scores.clone(), scores.transpose());
        let items = turned.texts();
        let value = |(at, &s): (usize, &f32)| map.rescore(at / items, at % items, s);
        Self { items, values: turned.values().iter().enumerate().map(value).collect() }
    }

    fn queries(&self) -> usize {
        self.values.len().checked_div(self.items).unwrap_or(0)
    }

    /// Algorithm 1 as printed: all entries sorted, then pushed one by one. A stable sort of row-major entries has smaller
    /// indices first among equal scores.
    fn naive(&self, k: usize, capacity: usize, stop: Stop) -> Vec<(u32, u32)> {
        let mut order: Vec<_> = (0..self.values.len()).collect();
        order.sort_by(|&a, &b| self.values[b].partial_cmp(&self.values[a]).unwrap());
        let (mut held, mut used) = (vec![0; self.queries()], vec![0; self.items]);
        let mut stack = Vec::new();
        for at in order {
            let (q, j) = (at / self.items, at % self.items);
            if stop == Stop::Literal && stack.len() == self.queries().min(self.items) * k {
                break;
            }
            if held[q] < k && used[j] < capacity {
                (held[q], used[j]) = (held[q] + 1, used[j] + 1);
                stack.push((q as u32, j as u32));
            }
        }
        stack
    }

    /// The `c` best items of every query, by sorting.
    fn lists(&self, c: usize) -> TopLists {
        let c = c.min(self.items);
        let (mut items, mut scores) = (Vec::new(), Vec::new());
        for row in self.values.chunks(self.items.max(1)) {
            let mut order: Vec<_> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap());
            items.extend(order[..c].iter().map(|&j| j as u32));
            scores.extend(order[..c].iter().map(|&j| row[j]));
        }
        TopLists::new(c, items, scores)
    }
}

/// The stack from a matrix, with lists of `c` candidates, under a capacity that is reached directly.
fn stack(
    scores: &ScoreMatrix,
    direction: Direction,
    map: &dyn Rescore,
    [c, k, capacity]: [usize; 3],
    stop: Stop,
) -> Vec<(u32, u32)> {
    let lists = Dense::new(scores, direction, map).lists(c);
    let candidates = Candidates::new(scores, direction, map, &lists);
    let mut sweep = GreedySweep::new(&candidates, k);
    sweep.lower(capacity);
    sweep.matching(stop).stack().to_vec()
}

fn none(scores: &ScoreMatrix, direction: Direction) -> Correction<Plain> {
    Correction::none(scores, direction)
}

/// Scores of `n × m`: continuous, or of few values (0: all equal; zeros of both signs), with a hub among the items.
fn random(n: usize, m: usize, values: u32, rng: &mut ChaCha8Rng) -> ScoreMatrix {
    let hub = rng.random_range(0..n.max(m));
    let mut value = |at: usize| {
        let lift = f32::from(u8::from(at % m == hub) + u8::from(at / m == hub));
        match values {
            0 => -0.0 * f32::from(rng.random_range(0..2u8)),
            1..4 => rng.random_range(0..=values) as f32 - 1.0,
            _ => rng.random_range(-1.0f32..1.0) + lift,
        }
    };
    ScoreMatrix::new(n, m, (0..n * m).map(&mut value).collect()).unwrap()
}

/// Biases for queries and items, some of them equal.
fn biased(queries: usize, items: usize, rng: &mut ChaCha8Rng) -> Affine {
    let mut some = |n: usize| (0..n).map(|_| f64::from(rng.random_range(0..4u8)) * 0.3).collect();
    Affine { scale: 2.0, items: vec![some(items)], queries: some(queries), groups: Vec::new() }
}

/// 1,000 cases: as by sorting the whole matrix, stack order included, whatever the number of candidates.
#[test]
fn as_by_sorting_the_matrix() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let lambdas = [0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 10.0, f64::INFINITY];
    let mut refilled = 0;
    for case in 0..1000 {
        let (n, m) = (rng.random_range(1..14), rng.random_range(1..14));
        let scores = random(n, m, case % 6, &mut rng);
        for direction in Direction::BOTH {
            let (queries, items) = (direction.queries(n, m), direction.items(n, m));
            let map: Box<dyn Rescore> = match case % 2 {
                0 => Box::new(Affine::of_items(1.0, vec![0.0; items])),
                _ => Box::new(biased(queries, items, &mut rng)),
            };
            let dense = Dense::new(&scores, direction, &*map);
            let k = [1, 2, 5, 10, 20][rng.random_range(0..5)];
            let lists = dense.lists(rng.random_range(1..=items));
            refilled += usize::from(lists.k() < k.min(items));
            let candidates = Candidates::new(&scores, direction, &*map, &lists);
            let mut sweep = GreedySweep::new(&candidates, k);
            for capacity in (0..=queries + 1).rev() {
                sweep.lower(capacity);
                for stop in [Stop::Exhaustive, Stop::Literal] {
                    let (got, want) = (sweep.matching(stop), dense.naive(k, capacity, stop));
                    let what =
                        format!("case {case}, {n} × {m}, {direction}, {k}, {capacity}, {stop:?}");
                    assert_eq!(got.stack(), want, "{what}");
                    assert_lists(&got, &what);
                }
            }
            for stop in [Stop::Exhaustive, Stop::Literal] {
                let lambda = lambdas[rng.random_range(0..lambdas.len())];
                for scale in [CapacityScale::Literal, CapacityScale::Balanced] {
                    let got =
                        greedy_matching(&candidates, &GreedyOptions { k, lambda, scale, stop });
                    let capacity = capacity(lambda, k, queries, items, scale).unwrap();
                    assert_eq!(
                        got.unwrap().stack(),
                        dense.naive(k, capacity, stop),
                        "λ = {lambda}"
                    );
                }
            }
        }
    }
    assert!(refilled > 300, "lists shorter than k: {refilled}");
}

/// Lists, counts and stack tell the same.
fn assert_lists(matching: &Matching, what: &str) {
    let mut counts = vec![0; matching.counts().len()];
    for query in 0..matching.queries() {
        let of_query = matching.stack().iter().filter(|&&(q, _)| q as usize == query);
        let want: Vec<_> = of_query.map(|&(_, item)| item).collect();
        assert_eq!(matching.items(query), want, "{what}");
        want.iter().for_each(|&item| counts[item as usize] += 1);
    }
    assert_eq!(matching.counts(), counts, "{what}");
}

/// Lists of 32 run dry over and over: refills must go below what was seen, above what items still take.
#[test]
fn long_chains_and_several_refills() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (n, m, values) in [(40, 400, 9), (400, 40, 9), (150, 150, 9), (150, 150, 2), (90, 210, 0)] {
        let scores = random(n, m, values, &mut rng);
        for direction in Direction::BOTH {
            let (queries, items) = (direction.queries(n, m), direction.items(n, m));
            let map = biased(queries, items, &mut rng);
            let dense = Dense::new(&scores, direction, &map);
            for (k, c) in [(1, 1), (5, 1), (10, 32), (60, 7)] {
                for capacity in
                    [1, capacity(1.0, k, queries, items, CapacityScale::Balanced).unwrap()]
                {
                    let got = stack(&scores, direction, &map, [c, k, capacity], Stop::Exhaustive);
                    assert!(
                        got == dense.naive(k, capacity, Stop::Exhaustive),
                        "{n} × {m}, {k}, {c}"
                    );
                }
            }
        }
    }
}

/// Tiles, and any number of threads, give what the matrix gives.
#[test]
fn from_embeddings_as_from_the_matrix() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (n, m, d) = (150, 330, 3);
    for grid in [false, true] {
        let mut value = || match grid {
            true => f32::from(rng.random_range(-1..=1i8)),
            false => rng.random_range(-1.0..1.0),
        };
        let v: Vec<_> = (0..n * d).map(|_| value()).collect();
        let w: Vec<_> = (0..m * d).map(|_| value()).collect();
        let images = Embeddings::new("images", n, d, &v).unwrap();
        let tiles = Tiles::new(images, Embeddings::new("texts", m, d, &w).unwrap()).unwrap();
        let scores = tiles.scores();
        for direction in Direction::BOTH {
            let (queries, items) = (direction.queries(n, m), direction.items(n, m));
            let map = biased(queries, items, &mut ChaCha8Rng::seed_from_u64(4));
            let dense = Dense::new(&scores, direction, &map);
            let lists = dense.lists(3);
            let options = GreedyOptions::new(10, 1.0);
            let capacity = capacity(1.0, 10, queries, items, options.scale).unwrap();
            let want = dense.naive(10, capacity, options.stop);
            let plain =
                greedy_matching(&Candidates::new(&scores, direction, &map, &lists), &options);
            assert_eq!(plain.unwrap().stack(), want);
            for threads in [1, 2, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let candidates = Candidates::new(&tiles, direction, &map, &lists);
                let got = pool.install(|| greedy_matching(&candidates, &options).unwrap());
                assert_eq!(got.stack(), want, "{threads} threads");
            }
        }
    }
}

/// Trap "unstable sort in RGM". Constant 3 × 4, k = 2, capacity 2, by hand: query 0 takes items 0 and 1, query 1 the same,
/// which are full then; query 2 takes 2 and 3.
#[test]
fn constant_matrix_fills_row_by_row_up_to_capacity() {
    for value in [0.5, 0.0, -0.0] {
        let scores = ScoreMatrix::new(3, 4, vec![value; 12]).unwrap();
        let none = none(&scores, I2t);
        for c in 1..=4 {
            let got = stack(&scores, I2t, none.map(), [c, 2, 2], Stop::Exhaustive);
            assert_eq!(got, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3)], "{c} candidates");
            let got = stack(&scores, I2t, none.map(), [c, 2, 3], Stop::Exhaustive);
            assert_eq!(got, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)], "{c} candidates");
        }
    }
}

/// Trap "RGM t2i with capacity 1". Five captions for each of 20 images, every caption nearest its own image. With `x = 1` one
/// caption of each image is answered, R@1 = 100/5; balanced, all are.
#[test]
fn rgm_t2i_with_capacity_1() {
    let (n, c) = (20, 5);
    let pairs = Pairs::uniform(n, c);
    let value =
        |at: usize| if at % (n * c) / c == at / (n * c) { 1.0 } else { (at % 7) as f32 * 0.1 };
    let scores = ScoreMatrix::new(n, n * c, (0..n * n * c).map(value).collect()).unwrap();
    let none = none(&scores, T2i);
    let lists = Dense::new(&scores, T2i, none.map()).lists(3);
    let candidates = Candidates::new(&scores, T2i, none.map(), &lists);
    let [literal, balanced] = [CapacityScale::Literal, CapacityScale::Balanced].map(|scale| {
        let options = GreedyOptions { scale, ..GreedyOptions::new(1, 1.0) };
        let places = greedy_matching(&candidates, &options).unwrap().places(&pairs);
        places.iter().filter(|place| **place == Some(0)).count()
    });
    assert_eq!((literal, balanced), (n, n * c));
}

/// Trap "image rows duplicated 5× used as 5N distinct items": images are stored once, and only the capacity counts copies.
/// The copies themselves would give one list up to five times the same image.
#[test]
fn image_rows_duplicated_only_through_capacity() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (n, c) = (12, 5);
    let scores = random(n, n * c, 9, &mut rng);
    let none = none(&scores, T2i);
    let lists = Dense::new(&scores, T2i, none.map()).lists(4);
    let candidates = Candidates::new(&scores, T2i, none.map(), &lists);
    let once = greedy_matching(&candidates, &GreedyOptions::new(5, 1.0)).unwrap();
    assert_eq!(once.counts().len(), n);
    assert!(once.counts().iter().all(|&count| count as usize <= 5 * c));
    for query in 0..n * c {
        let mut items = once.items(query).to_vec();
        items.sort_unstable();
        items.dedup();
        assert_eq!(items.len(), once.items(query).len(), "no image twice");
    }
    // Every image five times, each copy with the literal capacity: the first text holds copies of one image.
    let copies = (0..n * c).flat_map(|copy| scores.row(copy / c)).copied().collect();
    let copies = ScoreMatrix::new(n * c, n * c, copies).unwrap();
    let identity = Affine::of_items(1.0, vec![0.0; n * c]);
    let twice = stack(&copies, T2i, &identity, [9, 5, 5], Stop::Exhaustive);
    let text = twice[0].0;
    assert!(
        twice.iter().filter(|e| e.0 == text).all(|e| e.1 as usize / c == twice[0].1 as usize / c)
    );
}

/// Trap "lambda = inf overflow in `round(lambda*k)`": nearest neighbours as they are.
#[test]
fn lambda_inf_overflow_gives_nearest_neighbours() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let scores = random(30, 70, 9, &mut rng);
    for direction in Direction::BOTH {
        let none = none(&scores, direction);
        let lists = Dense::new(&scores, direction, none.map()).lists(10);
        let candidates = Candidates::new(&scores, direction, none.map(), &lists);
        for lambda in [f64::INFINITY, f64::MAX, 1e18] {
            let matching = greedy_matching(&candidates, &GreedyOptions::new(10, lambda)).unwrap();
            for query in 0..matching.queries() {
                assert_eq!(matching.items(query), lists.items(query), "λ = {lambda}");
            }
        }
        let sweep = GreedySweep::new(&candidates, 10);
        assert_eq!(
            Some(sweep.largest() as u32),
            sweep.matching(Stop::Exhaustive).counts().into_iter().max()
        );
    }
}

/// Trap "literal stop on t2i": `min(pushed, min(n, m)·k)` pairs, a prefix of the exhaustive stack, and the whole of it for i2t.
#[test]
fn literal_stop_is_a_prefix() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (n, c, k) = (9, 5, 2);
    let scores = random(n, n * c, 9, &mut rng);
    for (direction, capacity, lengths) in [
        (T2i, n * c, [n * c * k, n * k]), // no bound: 90 pairs, 18 of which the listing pushes
        (T2i, 1, [n, n]),              // capacity ends it first
        (T2i, 0, [0, 0]),
        (I2t, 2, [n * k, n * k]),
    ] {
        let none = none(&scores, direction);
        let [all, literal] = [Stop::Exhaustive, Stop::Literal]
            .map(|stop| stack(&scores, direction, none.map(), [4, k, capacity], stop));
        assert_eq!([all.len(), literal.len()], lengths, "{direction}, {capacity}");
        assert_eq!(all[..literal.len()], literal);
    }
}

/// Trap "`item` vs `lample` under RGM": CSLS with k = 1, matching with k = 1 and capacity 1, i2t. By hand:
///
/// ```text
/// S    0.75   0      0        r_T = 0.75, 1  (largest of each row)      r_I = 0.75, 1, 0  (of each column)
///      0.625  1      0
///
/// item   2S − r_I:   0.75  −1   0         lample   2S − r_I − r_T:    0    −1.75  −0.75
///                    0.5    1   0                                    −0.5   0     −1
/// ```
///
/// Both rank each row alike. `item` pushes (1, 1) with 1, then (0, 0) with 0.75; `lample` has 0 for both, a tie that the smaller
/// query wins.
#[test]
fn item_and_lample_csls_rank_alike_and_match_differently() {
    let scores = ScoreMatrix::from_rows([[0.75, 0.0, 0.0], [0.625, 1.0, 0.0]]);
    let item = Affine::of_items(2.0, vec![0.75, 1.0, 0.0]);
    let lample = Affine { queries: vec![0.75, 1.0], ..item.clone() };
    let lists = [&item, &lample].map(|map| Dense::new(&scores, I2t, map).lists(3));
    for query in 0..2 {
        assert_eq!(lists[0].items(query), lists[1].items(query), "equal ranks");
    }
    let [item, lample] =
        [&item, &lample].map(|map| stack(&scores, I2t, map, [1, 1, 1], Stop::Exhaustive));
    assert_eq!(item, [(1, 1), (0, 0)]);
    assert_eq!(lample, [(0, 0), (1, 1)]);
}

/// Two images, texts 0 and 1 of image 0, text 2 of image 1. By hand, k = 2 and no bound: image 0 holds texts 2, 1 and finds its
/// own in place 1; image 1 holds 0, 1 and finds none. Text 0 holds images 1, 0 (place 1), text 1 images 0, 1 (place 0), text 2
/// images 0, 1 (place 1).
#[test]
fn hits_by_hand() {
    let scores = ScoreMatrix::from_rows([[0.1, 0.5, 0.9], [0.8, 0.4, 0.2]]);
    let pairs = Pairs::new(2, vec![0, 0, 1]).unwrap();
    let hits = Direction::BOTH.map(|direction| {
        let none = none(&scores, direction);
        let lists = Dense::new(&scores, direction, none.map()).lists(1);
        let candidates = Candidates::new(&scores, direction, none.map(), &lists);
        let matching = greedy_matching(&candidates, &GreedyOptions::new(2, f64::INFINITY)).unwrap();
        let want = direction.queries(vec![Some(1), None], vec![Some(1), Some(0), Some(1)]);
        assert_eq!(matching.places(&pairs), want);
        assert_eq!(matching.direction(), direction);

        let [balanced, inf] = [(CapacityScale::Balanced), CapacityScale::Literal].map(|scale| {
            GreedyRuns::single(&candidates, f64::INFINITY, scale, Stop::Exhaustive).unwrap()
        });
        assert_eq!(balanced, inf);
        inf.hits(&pairs)
    });
    // With k = 10 image 1 holds all three texts and finds its own in place 2: a hit at 5 and 10.
    let [i2t, t2i] = &hits;
    assert_eq!(i2t, &[vec![false, false], vec![true, true], vec![true, true]]);
    assert_eq!(t2i, &[vec![false, true, false], vec![true; 3], vec![true; 3]]);
    let blocks = image_hits(i2t, t2i, &pairs).unwrap();
    let first = ImageHits { i2t: [0, 1, 1], t2i: [1, 2, 2], captions: 2 };
    assert_eq!(blocks, [first, ImageHits { i2t: [0, 1, 1], t2i: [0, 1, 1], captions: 1 }]);
    let recalls = Hits::from_folds(vec![blocks]).unwrap().recalls();
    assert_eq!(recalls.i2t, [0.0, 100.0, 100.0]);
}

/// Options `PerK` and `Single` differ. One text is the nearest of all 20 images, each of which has a text of its own as its
/// second. λ = 1: with k = 1 the hub serves one image, and 19 find their own text; with k = 10 it serves 10, and only the
/// other 10 have their own text first.
#[test]
fn three_runs_and_one_run_differ() {
    let n = 20;
    let value = |at: usize| match (at / n, at % n) {
        (_, 0) => 1.0,
        (i, j) if i == j => 0.5,
        (i, j) => ((i * 7 + j * 3) % 11) as f32 * 0.01,
    };
    let scores = ScoreMatrix::new(n, n, (0..n * n).map(value).collect()).unwrap();
    let pairs = Pairs::uniform(n, 1);
    let none = none(&scores, I2t);
    let lists = Dense::new(&scores, I2t, none.map()).lists(12);
    let candidates = Candidates::new(&scores, I2t, none.map(), &lists);
    let literal = (CapacityScale::Literal, Stop::Exhaustive);
    let per_k = GreedyRuns::per_k(&candidates, [1.0; 3], literal.0, literal.1).unwrap();
    let single = GreedyRuns::single(&candidates, 1.0, literal.0, literal.1).unwrap();
    let at_1 = |runs: &GreedyRuns| runs.hits(&pairs)[0].iter().filter(|&&hit| hit).count();
    assert_eq!(at_1(&per_k), 20); // image 0's own text is the hub
    assert_eq!(at_1(&single), 11);
    assert_eq!(per_k.at(2), single.at(2));
    let inf =
        GreedyRuns::per_k(&candidates, [f64::INFINITY, 1.0, 1.0], literal.0, literal.1).unwrap();
    assert_eq!(at_1(&inf), 1); // each run has its own λ
    assert!(GreedyRuns::per_k(&candidates, [1.0, 1.0, -1.0], literal.0, literal.1).is_err());
}

#[test]
fn nothing_to_match() {
    for (n, m) in [(0, 3), (3, 0), (0, 0)] {
        let scores = ScoreMatrix::new(n, m, Vec::new()).unwrap();
        let none = none(&scores, I2t);
        let lists = TopLists::new(m.min(2), Vec::new(), Vec::new());
        let matching = greedy_matching(
            &Candidates::new(&scores, I2t, none.map(), &lists),
            &GreedyOptions::new(5, 1.0),
        );
        let matching = matching.unwrap();
        assert_eq!((matching.queries(), matching.stack().len()), (n, 0));
        assert_eq!(matching.counts(), vec![0; m]);
    }
    let scores = ScoreMatrix::from_rows([[1.0, 2.0]]);
    let none = none(&scores, I2t);
    assert_eq!(stack(&scores, I2t, none.map(), [1, 0, 9], Stop::Exhaustive), []);
    assert_eq!(stack(&scores, I2t, none.map(), [0, 1, 9], Stop::Exhaustive), [(0, 1)]); // no list at all
}

#[test]
#[should_panic(expected = "candidates of 2 queries for scores of 3")]
fn lists_of_other_scores_are_refused() {
    let scores = ScoreMatrix::from_rows([[0.0], [0.0], [0.0]]);
    let none = none(&scores, I2t);
    Candidates::new(&scores, I2t, none.map(), &TopLists::new(1, vec![0, 0], vec![0.0, 0.0]));
}

#[test]
#[should_panic(expected = "capacities go down, not from 2 to 3")]
fn capacities_only_go_down() {
    let scores = ScoreMatrix::from_rows([[0.5]]);
    let none = none(&scores, I2t);
    let lists = TopLists::new(1, vec![0], vec![0.5]);
    let candidates = Candidates::new(&scores, I2t, none.map(), &lists);
    let mut sweep = GreedySweep::new(&candidates, 1);
    sweep.lower(2);
    sweep.lower(3);
}

proptest! {
    /// A sweep tells places without lists; under any stop they are those of the lists.
    #[test]
    fn places_without_lists(
        n in 1usize..9, captions in 1usize..4, k in 0usize..6, values in 0u32..6, seed in 0u64..1000,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let m = n * captions;
        let scores = random(n, m, values, &mut rng);
        let pairs = Pairs::new(n, (0..m).map(|t| t % n).collect()).unwrap();
        for direction in Direction::BOTH {
            let none = none(&scores, direction);
            let lists = Dense::new(&scores, direction, none.map()).lists(2);
            let candidates = Candidates::new(&scores, direction, none.map(), &lists);
            let mut sweep = GreedySweep::new(&candidates, k);
            for capacity in (0..5).rev() {
                sweep.lower(capacity);
                for stop in [Stop::Exhaustive, Stop::Literal] {
                    prop_assert_eq!(sweep.places(stop, &pairs), sweep.matching(stop).places(&pairs));
                }
            }
        }
    }
}
