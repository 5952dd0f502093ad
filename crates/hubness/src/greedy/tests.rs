//! Greedy matching against the sort of the whole matrix.

mod golden;
mod traps;

use itm_core::tiles::{Embeddings, Tiles};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::Direction::{I2t, T2i};
use crate::{
    Affine, AnyCorrection, Correction, Direction, Pairs, Plain, Rescore, ScoreMatrix, Setting,
    TopLists,
};

/// The corrected matrix of a direction, queries × items.
#[derive(Debug)]
struct Dense {
    direction: Direction,
    items: usize,
    values: Vec<f64>,
}

impl Dense {
    fn new(scores: &ScoreMatrix, correction: &AnyCorrection) -> Self {
        let (direction, map) = (correction.direction(), correction.map());
        let turned = direction.queries(scores.clone(), scores.transpose());
        let items = turned.texts();
        let value = |(at, &s): (usize, &f32)| map.rescore(at / items, at % items, s);
        Self { direction, items, values: turned.values().iter().enumerate().map(value).collect() }
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
        TopLists::new(self.direction, c, items, scores)
    }
}

/// The stack from a matrix, with lists of `c` candidates, under a capacity that is reached directly.
fn stack(
    scores: &ScoreMatrix,
    correction: &AnyCorrection,
    [c, k, capacity]: [usize; 3],
    stop: Stop,
) -> Vec<(u32, u32)> {
    let candidates = Candidates::listed(scores, correction, c).unwrap();
    let mut sweep = GreedySweep::new(&candidates, k).unwrap();
    sweep.lower(capacity).unwrap();
    sweep.matching(stop).stack().to_vec()
}

/// A map as a correction.
fn any(direction: Direction, map: impl Rescore + 'static) -> AnyCorrection {
    AnyCorrection::new(direction, Setting::Plain, Box::new(map))
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
    Affine { queries: some(queries), ..Affine::of_items(2.0, some(items)) }
}

/// 1,000 cases equal the sort of the whole matrix, including the stack order, with any number of candidates.
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
            let map = match case % 2 {
                0 => any(direction, Affine::of_items(1.0, vec![0.0; items])),
                _ => any(direction, biased(queries, items, &mut rng)),
            };
            let dense = Dense::new(&scores, &map);
            let k = [1, 2, 5, 10, 20][rng.random_range(0..5)];
            let length = rng.random_range(1..=items);
            refilled += usize::from(length < k.min(items));
            let candidates = Candidates::listed(&scores, &map, length).unwrap();
            let mut sweep = GreedySweep::new(&candidates, k).unwrap();
            for capacity in (0..=queries + 1).rev() {
                sweep.lower(capacity).unwrap();
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

/// Lists, counts and stack agree.
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

/// Lists run out again and again: a refill must be below the edges already seen and above the floors of the items.
#[test]
fn long_chains_and_several_refills() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (n, m, values) in [(40, 400, 9), (400, 40, 9), (150, 150, 9), (150, 150, 2), (90, 210, 0)] {
        let scores = random(n, m, values, &mut rng);
        for direction in Direction::BOTH {
            let (queries, items) = (direction.queries(n, m), direction.items(n, m));
            let map = biased(queries, items, &mut rng);
            let map = any(direction, map);
            let dense = Dense::new(&scores, &map);
            for (k, c) in [(1, 1), (5, 1), (10, 32), (60, 7)] {
                for capacity in
                    [1, capacity(1.0, k, queries, items, CapacityScale::Balanced).unwrap()]
                {
                    let got = stack(&scores, &map, [c, k, capacity], Stop::Exhaustive);
                    assert!(
                        got == dense.naive(k, capacity, Stop::Exhaustive),
                        "{n} × {m}, {k}, {c}"
                    );
                }
            }
        }
    }
}

/// Tiles give the same as the matrix, with any number of threads.
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
            let map = any(direction, biased(queries, items, &mut ChaCha8Rng::seed_from_u64(4)));
            let dense = Dense::new(&scores, &map);
            let options = GreedyOptions::new(10, 1.0);
            let capacity = capacity(1.0, 10, queries, items, options.scale).unwrap();
            let want = dense.naive(10, capacity, options.stop);
            let candidates = Candidates::listed(&scores, &map, 3).unwrap();
            assert_eq!(greedy_matching(&candidates, &options).unwrap().stack(), want);
            for threads in [1, 2, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let got = pool.install(|| {
                    let candidates = Candidates::listed(&tiles, &map, 3).unwrap();
                    greedy_matching(&candidates, &options).unwrap()
                });
                assert_eq!(got.stack(), want, "{threads} threads");
            }
        }
    }
}

#[test]
fn nothing_to_match() {
    for (n, m) in [(0, 3), (3, 0), (0, 0)] {
        let scores = ScoreMatrix::new(n, m, Vec::new()).unwrap();
        let none = none(&scores, I2t);
        let candidates = Candidates::new(&scores, &none, 5).unwrap();
        let matching = greedy_matching(&candidates, &GreedyOptions::new(5, 1.0)).unwrap();
        assert_eq!((matching.queries(), matching.stack().len()), (n, 0));
        assert_eq!(matching.counts(), vec![0; m]);
    }
    let scores = ScoreMatrix::from_rows([[1.0, 2.0]]);
    let none = none(&scores, I2t);
    assert_eq!(stack(&scores, &none, [1, 0, 9], Stop::Exhaustive), []);
}

#[test]
fn a_correction_of_other_items_is_refused() {
    let scores = ScoreMatrix::from_rows([[0.0], [0.0], [0.0]]);
    let other = Correction::none(&ScoreMatrix::from_rows([[0.0, 0.0]]), I2t);
    let error = Candidates::new(&scores, &other, 1).err().unwrap().to_string();
    assert_eq!(
        error,
        "items of direction i2t: expected the 2 that the correction was fitted for, got 1"
    );
}

#[test]
#[should_panic(expected = "capacities go down, not from 2 to 3")]
fn capacities_only_go_down() {
    let scores = ScoreMatrix::from_rows([[0.5]]);
    let none = none(&scores, I2t);
    let candidates = Candidates::new(&scores, &none, 1).unwrap();
    let mut sweep = GreedySweep::new(&candidates, 1).unwrap();
    sweep.lower(2).unwrap();
    sweep.lower(3).unwrap();
}

proptest! {
    /// A sweep gives places without lists; under any stop they equal the places in the lists.
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
            let candidates = Candidates::listed(&scores, &none, 2).unwrap();
            let mut sweep = GreedySweep::new(&candidates, k).unwrap();
            for capacity in (0..5).rev() {
                sweep.lower(capacity).unwrap();
                for stop in [Stop::Exhaustive, Stop::Literal] {
                    prop_assert_eq!(sweep.places(stop, &pairs), sweep.matching(stop).places(&pairs));
                }
            }
        }
    }
}
