//! The traps of the specification that concern greedy matching, and hits worked by hand.

use super::*;

/// Trap "unstable sort in RGM". Constant 3 × 4, k = 2, capacity 2, by hand: queries 0 and 1 take items 0 and 1, which are
/// then full; query 2 takes items 2 and 3.
#[test]
fn constant_matrix_fills_row_by_row_up_to_capacity() {
    for value in [0.5, 0.0, -0.0] {
        let scores = ScoreMatrix::new(3, 4, vec![value; 12]).unwrap();
        let none = none(&scores, I2t);
        for c in 1..=4 {
            let got = stack(&scores, &none, [c, 2, 2], Stop::Exhaustive);
            assert_eq!(got, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3)], "{c} candidates");
            let got = stack(&scores, &none, [c, 2, 3], Stop::Exhaustive);
            assert_eq!(got, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)], "{c} candidates");
        }
    }
}

/// Trap "RGM t2i with capacity 1". Five captions for each of 20 images, every caption nearest its own image. With `x = 1`,
/// one caption of each image gets an answer, R@1 = 100/5. With the balanced capacity, all captions get one.
#[test]
fn rgm_t2i_with_capacity_1() {
    let (n, c) = (20, 5);
    let pairs = Pairs::uniform(n, c);
    let value =
        |at: usize| if at % (n * c) / c == at / (n * c) { 1.0 } else { (at % 7) as f32 * 0.1 };
    let scores = ScoreMatrix::new(n, n * c, (0..n * n * c).map(value).collect()).unwrap();
    let none = none(&scores, T2i);
    let candidates = Candidates::listed(&scores, &none, 3).unwrap();
    let [literal, balanced] = [CapacityScale::Literal, CapacityScale::Balanced].map(|scale| {
        let options = GreedyOptions { scale, ..GreedyOptions::new(1, 1.0) };
        let places = greedy_matching(&candidates, &options).unwrap().places(&pairs);
        places.iter().filter(|place| **place == Some(0)).count()
    });
    assert_eq!((literal, balanced), (n, n * c));
    let default = greedy_matching(&candidates, &GreedyOptions::new(1, 1.0)).unwrap();
    assert_eq!(default.stack().len(), n * c);
}

/// Trap "image rows duplicated 5× used as 5N distinct items": images are stored once, and only the capacity counts copies.
/// With real copies, one list could hold the same image up to five times.
#[test]
fn image_rows_duplicated_only_through_capacity() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (n, c) = (12, 5);
    let scores = random(n, n * c, 9, &mut rng);
    let none = none(&scores, T2i);
    let candidates = Candidates::listed(&scores, &none, 4).unwrap();
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
    let identity = any(T2i, Affine::of_items(1.0, vec![0.0; n * c]));
    let twice = stack(&copies, &identity, [9, 5, 5], Stop::Exhaustive);
    let text = twice[0].0;
    assert!(
        twice.iter().filter(|e| e.0 == text).all(|e| e.1 as usize / c == twice[0].1 as usize / c)
    );
}

/// Trap "lambda = inf overflow in `round(lambda*k)`": the result is the nearest neighbours.
#[test]
fn lambda_inf_overflow_gives_nearest_neighbours() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let scores = random(30, 70, 9, &mut rng);
    for direction in Direction::BOTH {
        let none = none(&scores, direction);
        let lists = Dense::new(&scores, &none).lists(10);
        let candidates = Candidates::listed(&scores, &none, 10).unwrap();
        for lambda in [f64::INFINITY, f64::MAX, 1e18] {
            let matching = greedy_matching(&candidates, &GreedyOptions::new(10, lambda)).unwrap();
            for query in 0..matching.queries() {
                assert_eq!(matching.items(query), lists.items(query), "λ = {lambda}");
            }
        }
        let sweep = GreedySweep::new(&candidates, 10).unwrap();
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
        (T2i, n * c, [n * c * k, n * k]), // no bound: 90 pairs; the listing pushes 18 of them
        (T2i, 1, [n, n]),                 // capacity ends it first
        (T2i, 0, [0, 0]),
        (I2t, 2, [n * k, n * k]),
    ] {
        let none = none(&scores, direction);
        let [all, literal] = [Stop::Exhaustive, Stop::Literal]
            .map(|stop| stack(&scores, &none, [4, k, capacity], stop));
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
    let [item, lample] = [item, lample].map(|map| any(I2t, map));
    let lists = [&item, &lample].map(|map| Dense::new(&scores, map).lists(3));
    for query in 0..2 {
        assert_eq!(lists[0].items(query), lists[1].items(query), "equal ranks");
    }
    let [item, lample] =
        [&item, &lample].map(|map| stack(&scores, map, [1, 1, 1], Stop::Exhaustive));
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
    let places = Direction::BOTH.map(|direction| {
        let none = none(&scores, direction);
        let candidates = Candidates::listed(&scores, &none, 1).unwrap();
        let matching = greedy_matching(&candidates, &GreedyOptions::new(2, f64::INFINITY)).unwrap();
        let want = direction.queries(vec![Some(1), None], vec![Some(1), Some(0), Some(1)]);
        assert_eq!(matching.places(&pairs), want);

        let [balanced, inf] = [(CapacityScale::Balanced), CapacityScale::Literal].map(|scale| {
            let options = GreedyOptions { scale, ..GreedyOptions::new(10, f64::INFINITY) };
            greedy_matching(&candidates, &options).unwrap()
        });
        assert_eq!(balanced, inf);
        inf.places(&pairs)
    });
    // With k = 10 image 1 holds all three texts and finds its own in place 2.
    assert_eq!(places, [vec![Some(1), Some(2)], vec![Some(1), Some(0), Some(1)]]);
}

/// One matching for each k differs from one matching for all. One text is nearest to all 20 images; the second nearest text of each image is its
/// own. λ = 1: with k = 1 the hub serves one image, and 19 find their own text; with k = 10 it serves 10, and only the
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
    let candidates = Candidates::listed(&scores, &none, 12).unwrap();
    let at_1 = |k: usize, lambda: f64| -> crate::Result<usize> {
        let scale = CapacityScale::Literal;
        let options = GreedyOptions { scale, ..GreedyOptions::new(k, lambda) };
        let places = greedy_matching(&candidates, &options)?.places(&pairs);
        Ok(places.iter().filter(|place| **place == Some(0)).count())
    };
    assert_eq!(at_1(1, 1.0).unwrap(), 20); // image 0's own text is the hub
    assert_eq!(at_1(10, 1.0).unwrap(), 11);
    assert_eq!(at_1(1, f64::INFINITY).unwrap(), 1);
    assert!(at_1(10, -1.0).is_err());
}

#[test]
#[should_panic(expected = "queries and items of the pairs, and of the scores")]
fn pairs_of_other_scores_are_refused() {
    let scores = ScoreMatrix::from_rows([[0.5, 0.1]]);
    let none = none(&scores, T2i);
    let candidates = Candidates::new(&scores, &none, 1).unwrap();
    let _ =
        GreedySweep::new(&candidates, 1).unwrap().places(Stop::Exhaustive, &Pairs::uniform(2, 1));
}
