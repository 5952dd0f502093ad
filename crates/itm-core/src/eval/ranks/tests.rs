use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::eval::Evaluation;
use crate::scored::Scored;
use crate::significance::Hits;
use crate::{Relevance, ScoreMatrix};

const POLICIES: [TiePolicy; 4] =
    [TiePolicy::Index, TiePolicy::Optimistic, TiePolicy::Pessimistic, TiePolicy::Expected];

/// Few distinct scores (including infinities), any number of captions per image, in any order.
fn problem() -> impl Strategy<Value = (ScoreMatrix, Pairs)> {
    let score = prop_oneof![
        8 => (-2i8..3).prop_map(f32::from),
        1 => Just(f32::INFINITY),
        1 => Just(f32::NEG_INFINITY),
        1 => Just(-0.0),
    ];
    (1usize..9, 0usize..15).prop_flat_map(move |(n, more)| {
        let first: Vec<usize> = (0..n).collect();
        let texts = vec(0..n, more).prop_map(move |rest| [first.clone(), rest].concat());
        (vec(score.clone(), n * (n + more)), texts.prop_shuffle()).prop_map(
            move |(values, image_of_text)| {
                let scores = ScoreMatrix::new(n, n + more, values).unwrap();
                (scores, Pairs::new(n, image_of_text).unwrap())
            },
        )
    })
}

/// The best position of a true item after a full sort, ties broken by a key.
fn sorted<K: Ord>(scores: &[f32], own: &[usize], key: impl Fn(usize) -> K) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| {
        scores[b].partial_cmp(&scores[a]).unwrap().then_with(|| key(a).cmp(&key(b)))
    });
    order.iter().position(|item| own.contains(item)).unwrap() as f64
}

fn check(scores: &[f32], own: &[usize], got: Standing) -> Result<(), TestCaseError> {
    let by_index = sorted(scores, own, |i| i);
    let kindest = sorted(scores, own, |i| !own.contains(&i));
    let unkindest = sorted(scores, own, |i| own.contains(&i));
    prop_assert_eq!(got.rank(TiePolicy::Index), by_index);
    prop_assert_eq!(got.rank(TiePolicy::Optimistic), kindest);
    prop_assert_eq!(got.rank(TiePolicy::Pessimistic), unkindest);
    for k in [1, 2, 5, 10] {
        prop_assert_eq!(got.decided_at(k), (kindest < k.into()) != (unkindest < k.into()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn counting_is_a_full_sort((scores, pairs) in problem()) {
        let ranks = Ranks::new(&scores, &pairs).unwrap();
        for (image, &got) in ranks.i2t().iter().enumerate() {
            check(scores.row(image), pairs.texts_of(image), got)?;
        }
        let columns = scores.transpose();
        for (text, &got) in ranks.t2i().iter().enumerate() {
            check(columns.row(text), &[pairs.image_of(text)], got)?;
        }
    }

    /// Two ways that share nothing: counting, and sorting for mAP@R.
    #[test]
    fn judged_pairs_are_counted_as_they_are_sorted((scores, pairs) in problem(), more in vec(any::<[u8; 2]>(), 0..30)) {
        let mut images_of: Vec<_> = (0..pairs.texts()).map(|t| pairs.images_of(t).to_vec()).collect();
        for [image, text] in more {
            let of_text = &mut images_of[usize::from(text) % pairs.texts()];
            // A text loses its images, or gains one.
            if image % 3 == 0 { of_text.clear() } else { of_text.push(usize::from(image) % pairs.images()) }
        }
        let judged = Pairs::judged(pairs.images(), images_of).unwrap();
        let texts_of: Vec<Vec<u32>> = (0..judged.images())
            .map(|image| judged.texts_of(image).iter().map(|&t| t as u32).collect())
            .collect();
        let relevance = Relevance::new(judged.texts(), texts_of);
        if relevance.is_empty() {
            prop_assert!(Ranks::new(&scores, &judged).is_err());
            return Ok(());
        }
        let ranks = Ranks::new(&scores, &judged).unwrap();
        let columns = scores.transpose();
        for (image, &got) in ranks.i2t().iter().enumerate().filter(|(_, got)| got.is_query()) {
            check(scores.row(image), judged.texts_of(image), got)?;
        }
        for (text, &got) in ranks.t2i().iter().enumerate().filter(|(_, got)| got.is_query()) {
            check(columns.row(text), judged.images_of(text), got)?;
        }
        let got = Evaluation::new(std::slice::from_ref(&ranks), TiePolicy::Index);
        let want = <dyn Scored>::evaluate_multi(&scores, &relevance).unwrap();
        for (got, queries, want) in [(got.i2t, got.images, want.i2t), (got.t2i, got.texts, want.t2i)] {
            prop_assert_eq!(queries, want.queries);
            for (got, want) in got.recalls().iter().zip([want.r1, want.r5, want.r10]) {
                prop_assert!((got - want).abs() < 1e-9, "{} against {}", got, want);
            }
        }
        // The units of a bootstrap hold every query once.
        let hits = Hits::new(&[ranks], TiePolicy::Index).unwrap().recalls();
        for (got, want) in hits.i2t.iter().zip(got.i2t.recalls()).chain(hits.t2i.iter().zip(got.t2i.recalls())) {
            prop_assert!((got - want).abs() < 1e-9);
        }
    }

    #[test]
    fn policies_keep_their_order((scores, pairs) in problem()) {
        let ranks = Ranks::new(&scores, &pairs).unwrap();
        for q in ranks.i2t().iter().chain(ranks.t2i()) {
            let [index, best, worst, expected] = POLICIES.map(|p| q.rank(p));
            prop_assert!(best <= index && index <= worst);
            prop_assert!(best <= expected && expected <= worst);
            for k in [1, 5, 10] {
                let [index, best, worst, expected] = POLICIES.map(|p| q.hit(k, p));
                prop_assert!(worst <= index && index <= best);
                prop_assert!(worst <= expected && expected <= best);
            }
        }
    }

    /// Σ_K P(rank ≥ K) over K ≥ 1 is the mean rank, so the two formulas of `Expected` must agree.
    #[test]
    fn expected_hits_sum_to_the_expected_rank(
        greater in 0u32..9, equal in 0u32..20, own in 1u32..6,
    ) {
        let q = Standing { greater, before: 0, equal, own };
        let misses: f64 = (1..40).map(|k| 1.0 - q.hit(k, TiePolicy::Expected)).sum();
        prop_assert!((misses - q.rank(TiePolicy::Expected)).abs() < 1e-9);
    }

    /// Counts that do not depend on the order of items follow a permutation of images and texts.
    #[test]
    fn permutations_move_standings(
        (scores, pairs) in problem(), keys in vec(any::<u32>(), 40),
    ) {
        let by_key = |n: usize, keys: &[u32]| {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&i| keys[i]);
            order
        };
        let images = by_key(pairs.images(), &keys[..9]);
        let texts = by_key(pairs.texts(), &keys[9..]);
        let place = |i| images.iter().position(|&j| j == i).unwrap();
        let values = images.iter().flat_map(|&i| texts.iter().map(move |&t| (i, t)));
        let values = values.map(|(i, t)| scores.row(i)[t]).collect();
        let moved = ScoreMatrix::new(images.len(), texts.len(), values).unwrap();
        let image_of = texts.iter().map(|&t| place(pairs.image_of(t))).collect();
        let moved = Ranks::new(&moved, &Pairs::new(images.len(), image_of).unwrap()).unwrap();
        let ranks = Ranks::new(&scores, &pairs).unwrap();
        let counts = |s: Standing| (s.greater, s.equal, s.own);
        for (k, &i) in images.iter().enumerate() {
            prop_assert_eq!(counts(moved.i2t()[k]), counts(ranks.i2t()[i]));
        }
        for (k, &t) in texts.iter().enumerate() {
            prop_assert_eq!(counts(moved.t2i()[k]), counts(ranks.t2i()[t]));
        }
    }

    /// Ranks depend only on the order of scores: one monotone map changes nothing, and one map per row keeps `i2t`.
    #[test]
    fn monotone_maps_change_nothing((scores, pairs) in problem(), shift in vec(-3i8..3, 9)) {
        let ranks = Ranks::new(&scores, &pairs).unwrap();
        let map = |f: &dyn Fn(usize, f32) -> f32| {
            let m = scores.texts();
            let values = scores.values().iter().enumerate().map(|(at, &s)| f(at / m, s));
            let mapped = ScoreMatrix::new(scores.images(), m, values.collect()).unwrap();
            Ranks::new(&mapped, &pairs).unwrap()
        };
        prop_assert_eq!(&map(&|_, s| 3.0 * s - 7.0), &ranks);
        prop_assert_eq!(&map(&|i, s| 2.0 * s + f32::from(shift[i])).i2t, &ranks.i2t);
    }
}

/// A matrix wider than a block of columns, with ties: the number of threads does not matter.
#[test]
fn threads_change_nothing() {
    let (n, m) = (260, 1300);
    let values = (0..n * m).map(|at| ((at * 2_654_435_761) % 97) as f32).collect();
    let (scores, pairs) = (ScoreMatrix::new(n, m, values).unwrap(), Pairs::uniform(n, 5));
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Ranks::new(&scores, &pairs).unwrap())
    };
    let ranks = with(1);
    assert_eq!(with(3), ranks);
    let columns = scores.transpose();
    for text in [0, 511, 512, 1299] {
        let by_sorting = sorted(columns.row(text), &[text / 5], |i| i);
        assert_eq!(ranks.t2i()[text].rank(TiePolicy::Index), by_sorting);
    }
}

#[test]
fn a_constant_matrix_is_chance_when_expected() {
    let scores = ScoreMatrix::new(20, 20, vec![0.25; 400]).unwrap();
    let ranks = Ranks::new(&scores, &Pairs::uniform(20, 1)).unwrap();
    for q in ranks.i2t().iter().chain(ranks.t2i()) {
        for k in [1, 5, 10] {
            assert!((q.hit(k, TiePolicy::Expected) - f64::from(k) / 20.0).abs() < 1e-12);
            assert!(q.decided_at(k));
        }
    }
}

/// By hand: g = 1, e = 2, a = 2. The first true item is at place 0, 1, 2 of the 4 tied in 3, 2, 1 of 6 orders.
#[test]
fn several_true_items_in_one_tie() {
    let scores = ScoreMatrix::from_rows([[0.5, 0.5, 0.5, 0.9, 0.5], [0.0; 5]]);
    let pairs = Pairs::new(2, vec![1, 0, 0, 1, 1]).unwrap();
    let q = Ranks::new(&scores, &pairs).unwrap().i2t()[0];
    assert_eq!(q, Standing { greater: 1, before: 1, equal: 2, own: 2 });
    assert_eq!(POLICIES.map(|p| q.rank(p)), [2.0, 1.0, 3.0, 1.0 + 4.0 / 6.0]);
    let hits = [1, 2, 3, 4].map(|k| 6.0 * q.hit(k, TiePolicy::Expected));
    [0.0, 3.0, 5.0, 6.0]
        .iter()
        .zip(hits)
        .for_each(|(want, got)| assert!((got - want).abs() < 1e-12));
}

#[test]
fn counts_made_elsewhere_are_the_same_ranks() {
    let scores = ScoreMatrix::from_rows([[0.5, 0.5, 0.1], [0.5, 0.2, 0.9]]);
    let pairs = Pairs::new(2, vec![0, 1, 1]).unwrap();
    let ranks = Ranks::new(&scores, &pairs).unwrap();
    let again = Ranks::from_counts(pairs, ranks.i2t().to_vec(), ranks.t2i().to_vec());
    assert_eq!(again.unwrap(), ranks);
}

#[test]
#[should_panic(expected = "text 0 of 1 images: Standing { greater: 2")]
fn more_items_than_there_are() {
    let one = Standing { greater: 0, before: 0, equal: 0, own: 1 };
    let too_many = Standing { greater: 2, ..one };
    let _ = Ranks::from_counts(Pairs::uniform(2, 1), vec![one, one], vec![too_many, one]);
}

#[test]
fn other_shapes_and_lonely_images_are_refused() {
    let scores = ScoreMatrix::from_rows([[0.5, 0.1]]);
    let error = Ranks::new(&scores, &Pairs::uniform(2, 1)).unwrap_err().to_string();
    assert_eq!(error, "ranks: expected 2 × 2 scores, as the pairs, got 1 × 2");
    let error = Ranks::new(&scores.transpose(), &Pairs::new(2, vec![0]).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "ranks, image 1: expected at least 1 text, got 0");
}
