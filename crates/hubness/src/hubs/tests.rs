use itm_core::scored::visit;
use itm_core::{Pairs, Relevance, ScoreMatrix};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::pass::{RankScan, ScanResult};
use crate::{Correction, Direction, TopLists};

/// Counts of `n` queries with these values. The answers are dealt round-robin, so that no query has an item twice.
fn counts(values: &[u32], k: usize, n: usize) -> Counts {
    let mut lists = vec![Vec::new(); n];
    let answers = (0u32..).zip(values).flat_map(|(item, &count)| vec![item; count as usize]);
    answers.enumerate().for_each(|(at, item)| lists[at % n].push(item));
    let lists = lists.iter().map(Vec::as_slice);
    let counts = Counts::new(values.len(), k, lists);
    assert_eq!((&counts.values[..], counts.queries), (values, n));
    counts
}

fn near(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-12, "got {got}, want {want}");
}

/// Trap: skewness with n − 1. Deviations from the mean 1 are −1, −1, −1, 3: third moment 24/4 = 6, second 12/4 = 3,
/// 6 / 3√3 = 2/√3.
#[test]
fn skewness_has_population_moments() {
    near(counts(&[0, 0, 0, 4], 1, 4).skewness(), 2.0 / 3f64.sqrt());
}

/// The spec's example: three quarters of the answers must move; (√4 / 4)² = 1/4 of the mean.
#[test]
fn golden_one_item_has_all() {
    let c = counts(&[0, 0, 0, 4], 1, 4);
    let measures = [c.robin_hood(), c.gini(), c.atkinson(0.5), c.anti_hubs(), c.maximum()];
    assert_eq!(measures, [0.75, 0.75, 0.75, 0.75, 1.0]);
    assert_eq!((c.atkinson(1.0), c.atkinson(2.0)), (1.0, 1.0)); // a zero is worst for e ≥ 1
    assert_eq!((c.hub_occurrence(), c.hubs()), (1.0, 1));
}

/// Worked by hand. Mean 2, deviations −1, −1, 2, 0: moments 6/4 and 6/4. Ascending 1, 1, 2, 4: Σ r N = 25.
#[test]
fn golden_all_measures() {
    let c = counts(&[1, 1, 4, 2], 1, 8);
    near(c.skewness(), 1.0 / 1.5f64.sqrt());
    near(c.robin_hood(), 4.0 / 16.0);
    near(c.gini(), 50.0 / 32.0 - 5.0 / 4.0);
    near(c.atkinson(0.0), 0.0);
    near(c.atkinson(0.5), 1.0 - ((4.0 + 2f64.sqrt()) / 4.0).powi(2) / 2.0);
    near(c.atkinson(1.0), 1.0 - 2f64.powf(0.75) / 2.0); // exp((ln 4 + ln 2) / 4) = 2^(3/4)
    near(c.atkinson(2.0), 1.0 - 4.0 / 2.75 / 2.0); // harmonic mean 4 / (1 + 1 + 1/4 + 1/2)
    for e in [1.0 - 1e-15, 1.0 + 1e-15] {
        near(c.atkinson(e), c.atkinson(1.0));
    }
    // (2 / 4 · 1^(1 − e) and less)^(1 / (1 − e)) / 2 = 2^(1 / (e − 1)) / 2
    for e in [701.0, 1e6] {
        near(c.atkinson(e), 1.0 - 2f64.powf(1.0 / (e - 1.0)) / 2.0);
    }
    near(c.anti_hubs(), 0.0);
    near(c.maximum(), 0.5);
    assert_eq!((c.threshold(), c.hub_occurrence(), c.hubs()), (4.0, 0.5, 1));
    let all = HubMeasures::new(&c);
    assert_eq!((all.skewness, all.hubs, all.atkinson), (c.skewness(), 1, c.atkinson(0.5)));
}

#[test]
fn equal_counts_are_zero() {
    for c in [counts(&[4, 4, 4], 2, 6), counts(&[7], 1, 7)] {
        let measures = HubMeasures::new(&c);
        let HubMeasures { skewness, robin_hood, gini, atkinson, anti_hub_share, .. } = measures;
        assert_eq!([skewness, robin_hood, gini, atkinson, anti_hub_share], [0.0; 5]);
        assert_eq!((c.hub_occurrence(), c.hubs(), c.atkinson(1.0)), (0.0, 0, 0.0));
        assert!(c.hub_occurrence().is_sign_positive(), "JSON had -0.0");
    }
}

#[test]
fn no_answer_is_zero_everywhere() {
    for (values, n) in [(&[0, 0, 0][..], 5), (&[], 0)] {
        let c = counts(values, 3, n);
        let m = HubMeasures::new(&c);
        let shares = [m.robin_hood, m.gini, m.atkinson, m.anti_hub_share, m.hub_occurrence];
        assert_eq!(shares, [0.0; 5]);
        assert_eq!((m.skewness, m.hubs, m.max), (0.0, 0, 0.0));
        assert_eq!(c.atkinson(1.0), 0.0);
    }
}

/// All measures depend only on shares.
#[test]
fn scaling_the_counts_changes_nothing() {
    let (one, three) = (counts(&[1, 1, 4, 2, 0], 1, 8), counts(&[3, 3, 12, 6, 0], 1, 24));
    let [a, b] = [&one, &three].map(HubMeasures::new);
    near(b.skewness, a.skewness);
    near(b.robin_hood, a.robin_hood);
    near(b.gini, a.gini);
    near(b.atkinson, a.atkinson);
    assert_eq!(
        (b.anti_hub_share, b.hub_occurrence, b.hubs),
        (a.anti_hub_share, a.hub_occurrence, a.hubs)
    );
}

/// Two images, five captions each, k = 1. Every image is found by five captions: no hub. Two captions are found by one image
/// each: two hubs.
#[test]
fn the_size_of_a_hub_is_relative_to_the_mean() {
    let images = counts(&[5, 5], 1, 10);
    let captions = counts(&[0, 1, 0, 0, 0, 0, 1, 0, 0, 0], 1, 2);
    assert_eq!((images.hubs(), captions.hubs()), (0, 2));
}

#[test]
#[should_panic(expected = "an aversion of 0 or more, got -1")]
fn no_aversion() {
    counts(&[1, 2], 1, 3).atkinson(-1.0);
}

proptest! {
    #[test]
    fn gini_is_the_double_sum_and_shares_are_shares(values in vec(0u32..30, 1..20), k in 1usize..4) {
        let c = counts(&values, 30 * 20, 40);
        let total = c.total().max(1) as f64;
        let differences: u32 = values.iter().flat_map(|&a| values.iter().map(move |&b| a.abs_diff(b))).sum();
        prop_assert!((c.gini() - f64::from(differences) / (2.0 * values.len() as f64 * total)).abs() < 1e-12);
        let most = 1.0 - 1.0 / values.len() as f64 + 1e-12;
        prop_assert!((0.0..=most).contains(&c.robin_hood()) && c.robin_hood() <= c.gini() + 1e-12);
        for e in [0.5, 1.0, k as f64] {
            prop_assert!((0.0..=1.0).contains(&c.atkinson(e)), "{e}: {}", c.atkinson(e));
        }
        prop_assert!((0.0..=1.0).contains(&c.hub_occurrence()));
    }
}

/// Trap: items without a hit are dropped. Lists may have any length; only their first k items count.
#[test]
fn every_item_is_counted_and_only_the_first_k() {
    let lists: [&[u32]; 4] = [&[2, 0, 1], &[2], &[], &[0, 2]];
    let counted = |k| Counts::new(5, k, lists);
    assert_eq!(counted(1).values, [1, 0, 2, 0, 0]);
    assert_eq!(counted(2).values, [2, 0, 3, 0, 0]);
    let all = counted(3);
    assert_eq!((&all.values[..], all.total(), all.mean()), (&[2, 1, 3, 0, 0][..], 6, 1.2));
    assert_eq!((all.queries, all.k), (4, 3));
    assert_eq!(all.anti_hubs(), 0.4);
    assert_eq!(all.largest(9), [2, 0, 1]);
    assert_eq!(counts(&[3, 4, 4, 0, 3], 2, 7).largest(3), [1, 2, 0]);
}

/// With k beyond the number of items, every query has every item.
#[test]
fn k_is_clipped_to_the_items() {
    let top = TopLists::new(Direction::I2t, 2, vec![1, 0, 0, 1], vec![0.5, 0.4, 0.3, 0.2]);
    let [n1, n5, n10] = [1, 5, 10].map(|k| Counts::top(2, k, &top));
    assert_eq!([n1.values, n5.values, n10.values], [[1, 1], [2, 2], [2, 2]]);
    assert_eq!([n1.k, n5.k, n10.k], [1, 5, 10]);
}

#[test]
#[should_panic(expected = "the first 3 of 9 items, got lists of 2")]
fn short_lists_are_a_bug() {
    let top = TopLists::new(Direction::I2t, 2, vec![1, 0], vec![0.5, 0.4]);
    let _ = Counts::top(9, 3, &top);
}

#[test]
#[should_panic(expected = "list of query 1: item 4 of 4")]
fn unknown_items_are_a_bug() {
    let _ = Counts::new(4, 2, [&[0, 3][..], &[1, 4]]);
}

/// Ten items: four with none, three with 1, two with 10, one with 100.
#[test]
fn the_histogram_has_zeros_apart() {
    let c = counts(&[0, 100, 1, 0, 10, 1, 10, 0, 1, 0], 2, 100);
    let histogram = Histogram::of_all([&c]);
    let bar = |(count, items)| Bar { count, items };
    assert_eq!(histogram.bars, [(1, 3), (10, 2), (100, 1)].map(bar));
    assert_eq!((histogram.items, histogram.never), (10, 4));
    let want = [(0.0, 0.3f64.log10()), (1.0, 0.2f64.log10()), (2.0, -1.0)];
    for (got, want) in histogram.points().into_iter().zip(want) {
        near(got.0, want.0);
        near(got.1, want.1);
    }
    let none = Histogram::of_all([&counts(&[0, 0], 1, 1)]);
    assert_eq!((none.never, none.points()), (2, vec![]));
    let both = Histogram::of_all([&c, &counts(&[0, 10, 7], 1, 20)]);
    assert_eq!(both.bars, [(1, 3), (7, 1), (10, 3), (100, 1)].map(bar));
    assert_eq!((both.items, both.never), (13, 5));
}

/// Three images, texts 0 and 1 of image 0, text 2 of image 1, text 3 of image 2; text 1 is near all images.
fn scores() -> (ScoreMatrix, Pairs) {
    let scores = ScoreMatrix::from_rows([
        [0.2, 0.9, 0.1, 0.0], // lists of two: 1, 0
        [0.1, 0.8, 0.5, 0.3], //               1, 2
        [0.4, 0.7, 0.6, 0.3], //               1, 2: its own text 3 is last
    ]);
    (scores, Pairs::new(3, vec![0, 0, 1, 2]).unwrap())
}

/// Lists of ten and standings of nearest neighbours, and the hubs found by them.
fn hubs(
    scores: &ScoreMatrix,
    pairs: &Pairs,
    truth: Option<&Relevance>,
    direction: Direction,
) -> Vec<Hub> {
    let none = Correction::none(scores, direction);
    let scan = RankScan::new(&none, 10).with_ranks(scores, pairs).unwrap();
    let ScanResult { standings, top } = visit(scores, &scan).unwrap();
    worst_hubs((&top, &standings), pairs, truth, scores, &none).unwrap()
}

fn victims(hub: &Hub) -> Vec<(u64, f32, f32, u64)> {
    let victim = |v: &Victim| (v.query, v.hub_score as f32, v.true_score as f32, v.true_rank);
    hub.victims.iter().map(victim).collect()
}

#[test]
fn hubs_of_what_does_not_fit_are_refused() {
    let (scores, pairs) = scores();
    let [own, other] = Direction::BOTH.map(|direction| Correction::none(&scores, direction));
    let scan = RankScan::new(&own, 10).with_ranks(&scores, &pairs).unwrap();
    let ScanResult { standings, top } = visit(&scores, &scan).unwrap();
    let lists = (&top, &standings[..]);
    let refused = worst_hubs(lists, &pairs, None, &scores, &other).unwrap_err();
    let want = "correction: expected one of direction i2t, got one of t2i";
    assert_eq!(refused.to_string(), want);
    let truth = Relevance::new(4, vec![vec![0]; 2]);
    let refused = worst_hubs(lists, &pairs, Some(&truth), &scores, &own).unwrap_err();
    let want = "truth: expected 3 images and 4 texts, as the pairs, got 2 and 4";
    assert_eq!(refused.to_string(), want);
}

/// With four texts, every list of ten holds all: only the first places tell hubs apart.
#[test]
fn golden_worst_hubs_and_their_victims() {
    let (scores, pairs) = scores();
    let hubs = hubs(&scores, &pairs, None, Direction::I2t);
    let counts: Vec<_> = hubs.iter().map(|h| (h.item, h.count, h.first, h.wrong)).collect();
    assert_eq!(counts, [(0, 3, 0, 2), (1, 3, 3, 2), (2, 3, 0, 2), (3, 3, 0, 2)]);
    // Text 1 is image 0's own. Image 1's text is second, image 2's is last.
    assert_eq!(victims(&hubs[1]), [(1, 0.8, 0.5, 2), (2, 0.7, 0.3, 4)]);
    assert!(hubs.iter().all(|h| h.item == 1 || h.victims.is_empty()));
    assert!(hubs.iter().all(|h| h.deserved.is_none()));
}

/// Texts as queries: text 3 finds images 1 and 2 equally near. The smaller index wins and is not its own image.
#[test]
fn texts_have_victims_too() {
    let (scores, pairs) = scores();
    let hubs = hubs(&scores, &pairs, None, Direction::T2i);
    let [image_0, image_1, image_2] = [0, 1, 2].map(|at: usize| &hubs[at]);
    assert_eq!((image_0.first, image_0.wrong), (1, 2));
    assert_eq!(victims(image_1), [(3, 0.3, 0.3, 2)]);
    assert_eq!(victims(image_2), [(0, 0.4, 0.2, 2), (2, 0.6, 0.5, 2)]);
}

/// The best of image 0's three texts is the truth. Twelve images have text 0 first: ten hubs, five victims each at most.
#[test]
fn the_best_of_several_own_items_is_the_truth() {
    let pairs = Pairs::new(2, vec![1, 0, 0, 0]).unwrap();
    let scores = ScoreMatrix::from_rows([[0.9, 0.1, 0.4, 0.2], [0.9, 0.0, 0.0, 0.0]]);
    let found = hubs(&scores, &pairs, None, Direction::I2t);
    assert_eq!(victims(&found[0]), [(0, 0.9, 0.4, 2)]);
    let value = |at: usize| if at.is_multiple_of(12) { 1.0 } else { (at % 7) as f32 * 0.1 };
    let many = ScoreMatrix::new(12, 12, (0..144).map(value).collect()).unwrap();
    let found = hubs(&many, &Pairs::uniform(12, 1), None, Direction::I2t);
    assert_eq!((found.len(), found[0].item, found[0].first), (10, 0, 12));
    assert_eq!(found[0].victims.iter().map(|v| v.query).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

/// They were shown as -0.000.
#[test]
fn scores_of_minus_zero_are_zero() {
    let scores = ScoreMatrix::from_rows([[0.5, 0.0], [-0.0, -0.0]]);
    let found = hubs(&scores, &Pairs::uniform(2, 1), None, Direction::I2t);
    assert_eq!(victims(&found[0]), [(1, 0.0, 0.0, 2)]);
    let Victim { hub_score, true_score, .. } = found[0].victims[0];
    assert!(hub_score.is_sign_positive() && true_score.is_sign_positive());
}

/// Text 1 is wrong in the lists of images 1 and 2, and it is true of image 1. Texts 0 and 2 are true of none.
#[test]
fn golden_deserved_hubs() {
    let (scores, pairs) = scores();
    let truth = Relevance::new(4, vec![vec![0, 1], vec![1, 2], vec![3]]);
    let deserved = |direction| -> Vec<_> {
        hubs(&scores, &pairs, Some(&truth), direction).iter().map(|hub| hub.deserved).collect()
    };
    assert_eq!(deserved(Direction::I2t), [Some(0.0), Some(0.5), Some(0.0), Some(0.0)]);
    // Image 1 is wrong for texts 0, 1 and 3, and text 1 is true of it.
    assert_eq!(deserved(Direction::T2i), [Some(0.0), Some(1.0 / 3.0), Some(0.0)]);
}
