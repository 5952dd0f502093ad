use itm_core::significance::Interval;
use itm_core::{Pairs, Relevance, ScoreMatrix};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{Affine, AnyCorrection, Correction, Direction, Setting, TopLists};

const TWICE: HubSize = HubSize::TimesMean(2.0);

/// Counts of `n` queries with these values. The answers are dealt round-robin, so that no query has an item twice.
fn counts(values: &[u32], k: usize, n: usize) -> Counts {
    counts_of(Direction::I2t, values, k, n)
}

fn counts_of(direction: Direction, values: &[u32], k: usize, n: usize) -> Counts {
    let mut lists = vec![Vec::new(); n];
    let answers = (0u32..).zip(values).flat_map(|(item, &count)| vec![item; count as usize]);
    answers.enumerate().for_each(|(at, item)| lists[at % n].push(item));
    let lists = lists.iter().map(Vec::as_slice);
    let counts = Counts::new(&Lists::new(direction, values.len(), k, lists));
    assert_eq!((counts.values(), counts.queries()), (values, n));
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
    assert_eq!((c.hub_occurrence(TWICE), c.hubs(TWICE)), (1.0, 1));
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
    near(c.anti_hubs(), 0.0);
    near(c.maximum(), 0.5);
    assert_eq!((c.threshold(TWICE), c.hub_occurrence(TWICE), c.hubs(TWICE)), (4.0, 0.5, 1));
    // sd² = 6/3, a = −√2, φ(a) = e⁻¹/√2π = 0.1467627, 1 − Φ(a) = 0.9213504; their ratio is multiplied by a² + 2 = 4.
    assert!((c.truncated_normal_third_moment() - 0.637_163).abs() < 1e-6);
    let all = HubMeasures::new(&c, HubSize::default());
    assert_eq!((all.skewness, all.hubs, all.atkinson), (c.skewness(), 1, c.atkinson(0.5)));
}

#[test]
fn equal_counts_are_zero() {
    for c in [counts(&[4, 4, 4], 2, 6), counts(&[7], 1, 7)] {
        let measures = HubMeasures::new(&c, TWICE);
        let HubMeasures { skewness, robin_hood, gini, atkinson, anti_hub_share, .. } = measures;
        assert_eq!([skewness, robin_hood, gini, atkinson, anti_hub_share], [0.0; 5]);
        assert_eq!((c.hub_occurrence(TWICE), c.hubs(TWICE), c.atkinson(1.0)), (0.0, 0, 0.0));
        assert_eq!(c.truncated_normal_third_moment(), 0.0);
    }
}

#[test]
fn no_answer_is_zero_everywhere() {
    for (values, n) in [(&[0, 0, 0][..], 5), (&[], 0)] {
        let c = counts(values, 3, n);
        for size in [TWICE, HubSize::Program] {
            let m = HubMeasures::new(&c, size);
            let shares = [m.robin_hood, m.gini, m.atkinson, m.anti_hub_share, m.hub_occurrence];
            assert_eq!(shares, [0.0; 5]);
            let rest = (m.skewness, m.hubs, m.max, c.truncated_normal_third_moment());
            assert_eq!(rest, (0.0, 0, 0.0, 0.0));
        }
        assert_eq!(c.atkinson(1.0), 0.0);
    }
}

/// All measures depend only on shares, except the program's hub occurrence: its t = 2k stays while the counts grow.
#[test]
fn scaling_the_counts_changes_only_the_program() {
    let (one, three) = (counts(&[1, 1, 4, 2, 0], 1, 8), counts(&[3, 3, 12, 6, 0], 1, 24));
    let [a, b] = [&one, &three].map(|c| HubMeasures::new(c, TWICE));
    near(b.skewness, a.skewness);
    near(b.robin_hood, a.robin_hood);
    near(b.gini, a.gini);
    near(b.atkinson, a.atkinson);
    let [third, same] = [&one, &three].map(|c| c.truncated_normal_third_moment());
    near(same, third);
    assert_eq!(
        (b.anti_hub_share, b.hub_occurrence, b.hubs),
        (a.anti_hub_share, a.hub_occurrence, a.hubs)
    );
    assert_eq!([&one, &three].map(|c| c.hub_occurrence(HubSize::Program)), [0.75, 1.0]);
}

/// Two images, five captions each, k = 1. Every image is found by five captions: no hub by the mean, two for the program.
/// Two captions are found by one image each: two hubs by the mean, none for the program.
#[test]
fn the_programs_size_of_a_hub_is_for_equal_sets() {
    let images = counts_of(Direction::T2i, &[5, 5], 1, 10);
    assert_eq!((images.hubs(TWICE), images.hubs(HubSize::Program)), (0, 2));
    let captions = counts(&[0, 1, 0, 0, 0, 0, 1, 0, 0, 0], 1, 2);
    assert_eq!((captions.hubs(TWICE), captions.hubs(HubSize::Program)), (2, 0));
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
        prop_assert!(c.hub_occurrence(HubSize::TimesMean(0.0)) == f64::from(u8::from(c.total() > 0)));
    }
}

/// Trap: items without a hit are dropped. Lists may have any length; only their first k items count.
#[test]
fn every_item_is_counted_and_only_the_first_k() {
    let lists: [&[u32]; 4] = [&[2, 0, 1], &[2], &[], &[0, 2]];
    let counted = |k| Counts::new(&Lists::new(Direction::T2i, 5, k, lists));
    assert_eq!(counted(1).values(), [1, 0, 2, 0, 0]);
    assert_eq!(counted(2).values(), [2, 0, 3, 0, 0]);
    let all = counted(3);
    assert_eq!((all.values(), all.total(), all.mean()), (&[2, 1, 3, 0, 0][..], 6, 1.2));
    assert_eq!((all.queries(), all.k(), all.direction()), (4, 3, Direction::T2i));
    assert_eq!(all.anti_hubs(), 0.4);
    assert_eq!(all.largest(9), [2, 0, 1]);
    assert_eq!(counts(&[3, 4, 4, 0, 3], 2, 7).largest(3), [1, 2, 0]);
}

/// With k beyond the number of items, every query has every item.
#[test]
fn k_is_clipped_to_the_items() {
    let top = TopLists::new(Direction::I2t, 2, vec![1, 0, 0, 1], vec![0.5, 0.4, 0.3, 0.2]);
    let [n1, n5, n10] = Counts::at_cuts(2, &top);
    assert_eq!([n1.values(), n5.values(), n10.values()], [[1, 1], [2, 2], [2, 2]]);
    assert_eq!([n1.k(), n5.k(), n10.k()], [1, 5, 10]);
}

#[test]
#[should_panic(expected = "the first 3 of 9 items, got lists of 2")]
fn short_lists_are_a_bug() {
    let top = TopLists::new(Direction::I2t, 2, vec![1, 0], vec![0.5, 0.4]);
    let _ = Lists::top(9, 3, &top);
}

#[test]
#[should_panic(expected = "list of query 1: item 4 of 4")]
fn unknown_items_are_a_bug() {
    let _ = Lists::new(Direction::I2t, 4, 2, [&[0, 3][..], &[1, 4]]);
}

/// (0, 0, 0, 4) has 2/√3; (2, 2, 2, 0) has −3/4 over (3/4)^(3/2), which is −2/√3; equal counts have 0.
#[test]
fn the_sum_of_skewness_is_over_both_directions_and_three_k() {
    let skew = 2.0 / 3f64.sqrt();
    let of = |direction, values: [&[u32]; 3]| {
        [0, 1, 2].map(|i| counts_of(direction, values[i], [1, 5, 10][i], 4))
    };
    let (up, even, down) = (&[0, 0, 0, 4][..], &[1, 1, 1, 1][..], &[2, 2, 2, 0][..]);
    let i2t = of(Direction::I2t, [up, up, even]);
    let t2i = of(Direction::T2i, [up, down, up]);
    near(hs_sum(&i2t, &t2i), 3.0 * skew);
}

#[test]
#[should_panic(expected = "counts of i2t")]
fn the_sum_of_skewness_wants_its_order() {
    let three = [1, 5, 10].map(|k| counts_of(Direction::T2i, &[1], k, 1));
    hs_sum(&three, &three);
}

/// Ten items: four with none, three with 1, two with 10, one with 100.
#[test]
fn the_histogram_has_zeros_apart() {
    let c = counts(&[0, 100, 1, 0, 10, 1, 10, 0, 1, 0], 2, 100);
    let histogram = Histogram::new(&c);
    let bar = |(count, items)| Bar { count, items };
    assert_eq!(histogram.bars, [(1, 3), (10, 2), (100, 1)].map(bar));
    assert_eq!((histogram.items, histogram.never), (10, 4));
    let want = [(0.0, 0.3f64.log10()), (1.0, 0.2f64.log10()), (2.0, -1.0)];
    for (got, want) in histogram.points().into_iter().zip(want) {
        near(got.0, want.0);
        near(got.1, want.1);
    }
    let none = Histogram::new(&counts(&[0, 0], 1, 1));
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

fn image_lists() -> TopLists {
    TopLists::new(Direction::I2t, 2, vec![1, 0, 1, 2, 1, 2], vec![0.9, 0.2, 0.8, 0.5, 0.7, 0.6])
}

#[test]
fn golden_worst_hubs_and_their_victims() {
    let (_, pairs) = scores();
    let what = Worst { k: 2, within: 1, hubs: 2, victims: 5 };
    let hubs = worst_hubs(&image_lists(), &pairs, what);
    let truth = Some(TrueItem { item: 2, score: 0.5, rank: Some(1) });
    let victims = vec![
        Victim { query: 1, rank: 0, score: 0.8, truth },
        Victim { query: 2, rank: 0, score: 0.7, truth: None },
    ];
    assert_eq!(hubs[0], Hub { item: 1, count: 3, at_first: 3, wrong: 2, victims });
    // Text 2 has two lists but is never first.
    assert_eq!(hubs[1], Hub { item: 2, count: 2, at_first: 0, wrong: 0, victims: vec![] });
    assert_eq!(hubs.len(), 2);

    // Within the first two, text 2 wins image 2 at the second place; one of the two victims of text 1 is kept.
    let what = Worst { within: 2, victims: 1, hubs: 9, ..what };
    let hubs = worst_hubs(&image_lists(), &pairs, what);
    assert_eq!((hubs[0].wrong, hubs[0].victims.len()), (2, 1));
    assert_eq!(hubs[1].victims, [Victim { query: 2, rank: 1, score: 0.6, truth: None }]);
    assert_eq!(hubs.iter().map(|hub| hub.item).collect::<Vec<_>>(), [1, 2, 0]); // text 3: no list, no hub
}

/// Image 2's own text is outside the lists: its score is known from the scores, but its rank is not.
#[test]
fn truth_beyond_the_lists_is_scored() {
    let (scores, pairs) = scores();
    let what = Worst { k: 2, hubs: 1, ..Worst::default() };
    let mut hubs = worst_hubs(&image_lists(), &pairs, what);
    let map = Affine { queries: vec![0.0, 0.0, 1.0], ..Affine::of_items(2.0, vec![0.0; 4]) };
    let map = AnyCorrection::new(Direction::I2t, Setting::Plain, Box::new(map));
    complete_truth(&mut hubs, &pairs, &scores, &map).unwrap();
    let [one, two] = &hubs[0].victims[..] else { panic!("two victims") };
    assert!((two.score - 0.4).abs() < 1e-6); // 2 · 0.7 − 1
    let truth = two.truth.unwrap();
    assert_eq!((truth.item, truth.rank), (3, None));
    assert!((truth.score + 0.4).abs() < 1e-6); // 2 · 0.3 − 1
    let truth = one.truth.unwrap();
    assert_eq!((truth.item, truth.rank, truth.score), (2, Some(1), 1.0));
}

/// Texts as queries: text 3 finds images 1 and 2 equally near. The smaller index wins and is not its own image.
#[test]
fn texts_have_victims_too() {
    let (scores, pairs) = scores();
    let t2i = TopLists::new(Direction::T2i, 1, vec![2, 0, 2, 1], vec![0.4, 0.9, 0.6, 0.3]);
    let what = Worst { k: 1, hubs: 1, ..Worst::default() };
    let mut hubs = worst_hubs(&t2i, &pairs, what);
    assert_eq!((hubs[0].item, hubs[0].count, hubs[0].wrong), (2, 2, 2));
    assert_eq!(hubs[0].victims.iter().map(|v| v.query).collect::<Vec<_>>(), [0, 2]);
    let none = Correction::none(&scores, Direction::T2i);
    complete_truth(&mut hubs, &pairs, &scores, &none).unwrap();
    let truth = hubs[0].victims[0].truth.unwrap();
    assert_eq!((truth.item, truth.score as f32), (0, 0.2));
    assert_eq!(hubs[0].victims[1].truth.unwrap().item, 1);
}

/// The best of image 0's three texts is the truth; among equal texts it is the one with the smallest index.
#[test]
fn the_best_of_several_own_items_is_the_truth() {
    let pairs = Pairs::new(2, vec![1, 0, 0, 0]).unwrap();
    let lists = TopLists::new(Direction::I2t, 1, vec![0, 0], vec![0.9, 0.9]);
    for (row, want) in [([0.9, 0.1, 0.4, 0.2], 2), ([0.9, 0.3, 0.3, 0.3], 1)] {
        let scores = ScoreMatrix::from_rows([row, [0.9, 0.0, 0.0, 0.0]]);
        let what = Worst { k: 1, ..Worst::default() };
        let mut hubs = worst_hubs(&lists, &pairs, what);
        let none = Correction::none(&scores, Direction::I2t);
        complete_truth(&mut hubs, &pairs, &scores, &none).unwrap();
        assert_eq!(hubs[0].victims.len(), 1);
        assert_eq!(hubs[0].victims[0].truth.unwrap().item, want);
    }
}

/// Three images find text 1, and it is true of two of them. Two images find text 2, and it is true of one.
#[test]
fn golden_deserved_hubs() {
    let relevance = Relevance::new(4, vec![vec![0, 1], vec![1, 2], vec![3]]);
    let top = image_lists();
    let found = deserved(&Lists::top(4, 2, &top), &relevance, &[2, 1, 3]);
    let want = |item, count, relevant| Deserved { item, count, relevant };
    assert_eq!(found, [want(2, 2, 1), want(1, 3, 2), want(3, 0, 0)]);

    // Texts as queries: texts 0, 1 and 3 find image 0, and it is true of texts 0 and 1.
    let queries: [&[u32]; 4] = [&[0], &[0], &[1], &[0]];
    let found = deserved(&Lists::new(Direction::T2i, 3, 1, queries), &relevance, &[0, 1]);
    assert_eq!(found, [want(0, 3, 2), want(1, 1, 1)]);
}

/// Image 0 brings three texts, image 1 brings one: a replicate has 6, 4 or 2 queries. Texts drawn one by one would always
/// give 4 queries.
#[test]
fn texts_of_an_image_are_drawn_together() {
    let pairs = Pairs::new(2, vec![0, 1, 0, 0]).unwrap();
    let queries: [&[u32]; 4] = [&[0], &[1], &[0], &[1]];
    let lists = Lists::new(Direction::T2i, 2, 1, queries);
    let interval = |measure: fn(&Counts) -> f64| bootstrap_measure(&lists, &pairs, measure, 400, 1);
    let queries = interval(|c| c.queries() as f64).unwrap();
    assert_eq!(queries, Interval { lo: 2.0, hi: 6.0 });
    let odd = interval(|c| (c.queries() % 2) as f64).unwrap();
    assert_eq!(odd, Interval { lo: 0.0, hi: 0.0 });
    // Image 1 twice: its text finds only image 1, Gini 1/2. Image 0 twice: 4 and 2 answers, Gini 1/6. Each once: 2 and 2
    // answers, Gini 0.
    assert_eq!(interval(Counts::gini).unwrap(), Interval { lo: 0.0, hi: 0.5 });
}

/// Five copies of every text say no more than one: the counts are five times as large, the interval is the same.
#[test]
fn copies_of_texts_leave_the_interval() {
    let found: Vec<u32> = (0..40).map(|q| [0, 1, q % 40, 3][q as usize % 4]).collect();
    let interval = |copies: usize| {
        let of_text = (0..40 * copies).map(|t| t / copies);
        let pairs = Pairs::new(40, of_text.clone().collect()).unwrap();
        let lists = of_text.map(|image| &found[image..=image]);
        let lists = Lists::new(Direction::T2i, 40, 1, lists);
        bootstrap_measure(&lists, &pairs, Counts::robin_hood, 300, 5).unwrap()
    };
    let (one, five) = (interval(1), interval(5));
    near(one.lo, five.lo);
    near(one.hi, five.hi);
    assert!(one.hi > one.lo);
}

#[test]
fn intervals_hang_on_the_seed_and_not_on_threads() {
    let pairs = Pairs::uniform(30, 1);
    let found: Vec<u32> = (0..30).map(|q| q * q % 7).collect();
    let lists = Lists::new(Direction::I2t, 30, 1, found.chunks(1));
    let with = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bootstrap_measure(&lists, &pairs, Counts::skewness, 200, seed).unwrap())
    };
    assert_eq!(with(1, 3), with(4, 3));
    assert_ne!(with(1, 3), with(1, 4));
    let plain = Counts::new(&lists).skewness();
    assert!(with(1, 3).lo < plain && plain < with(1, 3).hi);
    assert!(bootstrap_measure(&lists, &pairs, Counts::gini, 0, 3).is_err());
}
