use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use itm_core::ScoreMatrix;
use itm_core::eval::{Ranks, TiePolicy};
use itm_core::tiles::{Embeddings, Tiles};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::{Affine, Correction, Direction, Rescore, Setting};

/// Images, texts, width: unaligned, tall, wide, lanes along both axes.
const SHAPES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (3, 7, 2), (1, 600, 3), (257, 1031, 8), (1100, 130, 1), (193, 65, 5)];

/// A correction without an affine form.
#[derive(Debug)]
struct Cubed(Vec<f64>);

impl Rescore for Cubed {
    fn rescore(&self, _: usize, item: usize, score: f32) -> f64 {
        f64::from(score).powi(3) - self.0[item]
    }

    fn items(&self) -> usize {
        self.0.len()
    }

    fn queries(&self) -> Option<usize> {
        None
    }
}

/// The item's bias differs in the twelfth digit: an f32 would call them equal.
fn maps(direction: Direction, n: usize, m: usize) -> Vec<AnyCorrection> {
    let (queries, items) = (direction.queries(n, m), direction.items(n, m));
    let tiny = |j: usize| 0.5 + (j * 7 % 11) as f64 * 1e-12;
    let large = |j: usize| (j * 5 % 13) as f64 * 0.1 - 0.4;
    let by = |f: &dyn Fn(usize) -> f64, n: usize| (0..n).map(f).collect::<Vec<_>>();
    let affine = Affine::of_items(2.0, by(&large, items));
    let both = Affine { queries: by(&large, queries), ..Affine::of_items(30.0, by(&tiny, items)) };
    let groups = (0..queries).map(|q| (q % 3) as u8).collect::<Vec<_>>();
    let grouped = vec![by(&large, items), vec![0.0; items], by(&tiny, items)];
    let maps: Vec<Box<dyn Rescore>> = vec![
        Box::new(Affine::of_items(1.0, vec![0.0; items])),
        Box::new(Affine::of_items(1.0, by(&tiny, items))),
        Box::new(affine),
        Box::new(both.clone()),
        Box::new(Affine { groups: groups.clone(), items: grouped.clone(), ..both }),
        Box::new(Affine {
            scale: 0.5,
            items: grouped,
            fine: by(&tiny, items),
            groups,
            ..Affine::default()
        }),
        Box::new(Cubed(by(&large, items))),
    ];
    maps.into_iter().map(|map| AnyCorrection::new(direction, Setting::Plain, map)).collect()
}

/// Every query's items, best first, from all corrected scores: sorted stably, so the smaller index stays ahead.
fn sorted(scores: &ScoreMatrix, correction: &AnyCorrection) -> Vec<Vec<(usize, f64)>> {
    let (direction, map) = (correction.direction(), correction.map());
    let (n, m) = (scores.images(), scores.texts());
    let value = |query: usize, item: usize| {
        let (image, text) = if direction == Direction::I2t { (query, item) } else { (item, query) };
        (item, map.rescore(query, item, scores.row(image)[text]))
    };
    let row = |query| {
        let mut row: Vec<_> = (0..direction.items(n, m)).map(|item| value(query, item)).collect();
        row.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap());
        row
    };
    (0..direction.queries(n, m)).map(row).collect()
}

fn values(rows: usize, dim: usize, most: i32, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let value = |_| match most {
        0 => rng.random_range(-1.0..1.0f32),
        most => rng.random_range(-most..=most) as f32 * 0.25, // exact products, many ties
    };
    (0..rows * dim).map(value).collect()
}

fn everywhere(tiles: &Tiles<'_>, check: impl Fn(&Tiles<'_>) + Sync) {
    for (threads, (rows, columns)) in [(1, (64, 64)), (3, (1, 512)), (2, (192, 256))] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check(&tiles.with_tile(rows, columns)));
    }
}

#[test]
fn streaming_equals_sorting_to_the_last_rank() {
    for (n, m, d) in SHAPES {
        for most in [0, 1] {
            let (v, w) = (values(n, d, most, 1), values(m, d, most, 2));
            let images = Embeddings::new("images", n, d, &v).unwrap();
            let texts = Embeddings::new("texts", m, d, &w).unwrap();
            let tiles = Tiles::new(images, texts).unwrap();
            let scores = tiles.scores();
            let pairs = Pairs::new(n, (0..m).map(|t| t * 7 % n).collect()).unwrap();
            for (i2t, t2i) in maps(Direction::I2t, n, m).iter().zip(&maps(Direction::T2i, n, m)) {
                let by_image = sorted(&scores, i2t);
                let by_text = sorted(&scores, t2i);
                let check_top = |top: &TopLists, want: &[Vec<(usize, f64)>]| {
                    for (query, want) in want.iter().enumerate() {
                        let got = top.items(query).iter().zip(top.scores(query));
                        let got: Vec<_> =
                            got.map(|(&item, &score)| (item as usize, score)).collect();
                        assert_eq!(got, want[..top.k()], "{n} × {m} × {d}, query {query}");
                    }
                };
                let check_ranks = |ranks: &Ranks| {
                    for (image, standing) in ranks.i2t().iter().enumerate() {
                        let own = |&(text, _): &(usize, f64)| pairs.image_of(text) == image;
                        let want = by_image[image].iter().position(own).unwrap();
                        assert_eq!(standing.rank(TiePolicy::Index), want as f64);
                        let best = by_image[image][want].1;
                        let equal = by_image[image].iter().copied().filter(|(_, u)| *u == best);
                        let (own, others): (Vec<_>, Vec<_>) = equal.partition(own);
                        assert_eq!(
                            (standing.own, standing.equal),
                            (own.len() as u32, others.len() as u32)
                        );
                    }
                    for (text, standing) in ranks.t2i().iter().enumerate() {
                        let own = |&(image, _): &(usize, f64)| image == pairs.image_of(text);
                        let want = by_text[text].iter().position(own).unwrap();
                        assert_eq!(standing.rank(TiePolicy::Index), want as f64);
                    }
                };
                let k = 7;
                let dense = [i2t, t2i];
                for (direction, want) in [(Direction::I2t, &by_image), (Direction::T2i, &by_text)] {
                    let map = direction.queries(dense[0], dense[1]);
                    check_top(&top(&scores, map, k).unwrap(), want);
                    everywhere(&tiles, |tiles| check_top(&top(tiles, map, k).unwrap(), want));
                }
                if m >= n {
                    let [all] = &rescore(&tiles, &pairs, &[dense], k).unwrap()[..] else {
                        panic!("one answer")
                    };
                    check_ranks(&all.ranks);
                    check_top(&all.texts, &by_image);
                    check_top(&all.images, &by_text);
                    check_ranks(&ranks(&scores, &pairs, i2t, t2i).unwrap());
                    everywhere(&tiles, |tiles| {
                        check_ranks(&ranks(tiles, &pairs, i2t, t2i).unwrap());
                    });
                }
            }
        }
    }
}

/// Scores that rise along both axes: every item enters every list, and lists are cut back over and over.
#[test]
fn the_best_come_last() {
    let v: Vec<_> = (0..700).map(|i| (i / 2) as f32).collect();
    let side = |name| Embeddings::new(name, 700, 1, &v).unwrap();
    let tiles = Tiles::new(side("images"), side("texts")).unwrap();
    for direction in Direction::BOTH {
        let top = top(&tiles, &Correction::none(&tiles, direction), 5).unwrap();
        assert_eq!(top.items(3), [698, 699, 696, 697, 694]);
        assert_eq!(top.items(0), [0, 1, 2, 3, 4]); // all zero
    }
}

#[test]
fn other_pairs_are_refused() {
    let scores = ScoreMatrix::from_rows([[1.0, 0.0]]);
    let plain = Correction::none(&scores, Direction::I2t);
    let error = ranks(&scores, &Pairs::uniform(1, 1), &plain, &plain).unwrap_err().to_string();
    assert_eq!(error, "scores: expected 1 images and 1 texts, as the pairs, got 1 and 2");
}

/// Without the check, exchanged directions, other items and other queries give silent wrong numbers or a panic.
#[test]
fn corrections_of_other_scores_are_refused() {
    let square = ScoreMatrix::from_rows([[0.9, 0.3], [0.7, 0.6]]);
    let [i2t, t2i] = Direction::BOTH.map(|d| Correction::none(&square, d));
    let pairs = Pairs::uniform(2, 1);
    let line = |error: Error| error.to_string();
    let exchanged = "correction: expected one of direction i2t, got one of t2i";
    assert_eq!(line(ranks(&square, &pairs, &t2i, &i2t).unwrap_err()), exchanged);
    assert_eq!(line(rescore(&square, &pairs, &[[&*t2i, &*i2t]], 1).unwrap_err()), exchanged);
    let wide = ScoreMatrix::from_rows([[0.9, 0.3, 0.1], [0.7, 0.6, 0.5]]);
    let items = "items of direction i2t: expected the 2 that the correction was fitted for, got 3";
    assert_eq!(line(top(&wide, &i2t, 1).unwrap_err()), items);
    assert_eq!(line(i2t.apply(&wide).unwrap_err()), items);
    let own = Affine { queries: vec![0.0; 2], ..Affine::of_items(1.0, vec![0.0; 2]) };
    let own = AnyCorrection::new(Direction::I2t, Setting::Transductive, Box::new(own));
    let long = ScoreMatrix::from_rows([[0.9, 0.3], [0.7, 0.6], [0.5, 0.5]]);
    let queries =
        "queries of direction i2t: expected the 2 whose values the correction holds, got 3";
    assert_eq!(line(top(&long, &own, 1).unwrap_err()), queries);
    assert_eq!(line(own.apply(&long).unwrap_err()), queries);
    assert!(i2t.apply(&long).is_ok(), "no value of a query: any number of them");
}

proptest! {
    /// Comparisons that f32 decides are right in f64, for all magnitudes.
    #[test]
    fn what_is_clear_is_right(
        scale in 0.01f64..1e4, bias in -1e4f64..1e4, s in -2f32..2.0, t in -2f32..2.0, near in any::<bool>(),
    ) {
        let t = if near { s + t * 1e-7 } else { t };
        let items = vec![bias, bias * 1.000_000_1];
        let map = Affine::of_items(scale, items);
        let map = AnyCorrection::new(Direction::I2t, Setting::Plain, Box::new(map));
        let scores = ScoreMatrix::from_rows([[s, t]]);
        let top = top(&scores, &map, 2).unwrap();
        let (a, b) = (map.map().rescore(0, 0, s), map.map().rescore(0, 1, t));
        prop_assert_eq!(top.items(0)[0], u32::from(b > a));
        prop_assert_eq!(top.scores(0)[0], a.max(b));
    }
}

/// Scores without finite numbers are an error, in memory and in bands of images.
#[test]
fn infinite_scores_are_refused() {
    let pairs = Pairs::uniform(301, 1);
    let infinite = [(2, f32::NEG_INFINITY), (2, f32::INFINITY), (300, f32::NEG_INFINITY)];
    for (text, value) in infinite {
        let mut values = vec![0.25; 301 * 301];
        values[300 * 301 + text] = value;
        let matrix = ScoreMatrix::new(301, 301, values).unwrap();
        let want =
            format!("scores of image 300 and text {text}: expected a finite number, got {value}");
        for scores in [&matrix as &dyn Scored, &Banded(&matrix)] {
            let plain = Direction::BOTH.map(|d| Correction::none(scores, d).into_any());
            let [i2t, t2i] = &plain;
            for correction in &plain {
                assert_eq!(top(scores, correction, 2).unwrap_err().to_string(), want);
            }
            let error = ranks(scores, &pairs, i2t, t2i).unwrap_err();
            assert_eq!(error.to_string(), want);
            let error = rescore(scores, &pairs, &[[i2t, t2i]], 2).unwrap_err();
            assert_eq!(error.to_string(), want);
        }
    }
}

/// Scores that are read in blocks only.
struct Banded<'a>(&'a ScoreMatrix);

impl Scored for Banded<'_> {
    fn images(&self) -> usize {
        self.0.images()
    }

    fn texts(&self) -> usize {
        self.0.texts()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        self.0.block(images, texts)
    }
}

/// An affine correction that counts how many scores it is asked for.
#[derive(Debug)]
struct CallCounter(Affine, Arc<AtomicUsize>);

impl Rescore for CallCounter {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.rescore(query, item, score)
    }

    fn items(&self) -> usize {
        self.0.items()
    }

    fn queries(&self) -> Option<usize> {
        None
    }

    fn affine(&self) -> Option<&Affine> {
        Some(&self.0)
    }
}

/// Without lists, f32 decides nearly every score; f64 decided all of them.
#[test]
fn ranks_alone_need_few_scores_in_f64() {
    let (n, asked) = (200, Arc::new(AtomicUsize::new(0)));
    let values = values(n, n, 1 << 20, 5);
    let scores = ScoreMatrix::new(n, n, values).unwrap();
    let [i2t, t2i] = Direction::BOTH.map(|direction| {
        let biases = (0..n).map(|item| (item % 7) as f64).collect();
        let map = CallCounter(Affine::of_items(1.0, biases), asked.clone());
        AnyCorrection::new(direction, Setting::HeldOut, Box::new(map))
    });
    ranks(&scores, &Pairs::uniform(n, 1), &i2t, &t2i).unwrap();
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked >= n && asked < n * n / 10, "{asked} of {}", n * n);
}

/// The bound of a score's rounding was 0 there, and a true item was above itself. A scale that f32 holds with few digits changed
/// scores by 2 %.
#[test]
fn the_smallest_numbers_of_f32_have_ranks() {
    let of = |direction, scale, bias| {
        let map = Affine::of_items(scale, vec![bias, 0.0]);
        AnyCorrection::new(direction, Setting::Plain, Box::new(map))
    };
    let small = [[3, 0], [5, 0]].map(|row| row.map(f32::from_bits));
    for (rows, scale, bias, want) in [
        (small, 1.0, 2.5 * f64::from(f32::from_bits(1)), [0.0, 1.0]),
        ([[0.0, 1e35]; 2], 1e-44, -0.99e-9, [1.0, 0.0]), // corrected scores 0.99e-9 and 1e-9
    ] {
        let scores = ScoreMatrix::from_rows(rows);
        let (i2t, t2i) = (of(Direction::I2t, scale, bias), of(Direction::T2i, scale, 0.0));
        let ranks = ranks(&scores, &Pairs::uniform(2, 1), &i2t, &t2i).unwrap();
        let found: Vec<_> = ranks.i2t().iter().map(|one| one.rank(TiePolicy::Index)).collect();
        assert_eq!(found, want, "{scale}");
    }
}
