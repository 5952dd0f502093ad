//! The one call gives the same numbers as its parts, called by hand.

use itm_core::Relevance;
use itm_core::eval::{Ranks, TiePolicy};
use itm_core::scored::{EmbeddingRows, Similarity};
use itm_core::significance::{Hits, bootstrap, bootstrap_difference, holm, paired_randomisation};

use super::*;
use crate::choose::{FoldSplit, Goal, HitTable, cross_fit, joined_hits};
use crate::hubs::{Counts, HubMeasures};
use crate::report::{ChoiceOrigin, Param, ReportRow};
use crate::rows::Length;
use crate::{
    AnyCorrection, Candidates, CapacityScale, Correction, Direction, Direction::I2t,
    Direction::T2i, Embeddings, GreedyOptions, HeldOutBank, Pairs, ScoreMatrix, Setting, Stop,
    TestQueries, Tiles, Transductive, csls, greedy_matching, inverted_softmax, pass,
};

const IMAGES: usize = 30;

fn pairs() -> Pairs {
    Pairs::uniform(IMAGES, 3)
}

/// Noise, a lift for true pairs, and image 3 as a hub.
fn scores(seed: usize) -> ScoreMatrix {
    let noise = |at: usize| ((at * 7919 + seed * 104_729) % 1009) as f32 / 1009.0;
    let lift = |image: usize, text: usize| f32::from(u8::from(text / 3 == image)) * 0.4;
    let hub = |image: usize| if image == 3 { 0.3 } else { 0.0 };
    let value = |at: usize| noise(at) + lift(at / 90, at % 90) + hub(at / 90);
    ScoreMatrix::new(IMAGES, 90, (0..IMAGES * 90).map(value).collect()).unwrap()
}

/// A study without resampling.
fn study(methods: &[&str]) -> Study {
    let methods = methods.iter().map(|name| name.parse().unwrap()).collect();
    Study { methods, resamples: 0, ..Study::default() }
}

fn ranks(scores: &ScoreMatrix, fit: &dyn Fn(Direction) -> AnyCorrection) -> Ranks {
    let [i2t, t2i] = [fit(I2t), fit(T2i)];
    pass::ranks(scores, &pairs(), &i2t, &t2i).unwrap()
}

fn plain(scores: &ScoreMatrix) -> Ranks {
    ranks(scores, &|direction| Correction::none(scores, direction).into_any())
}

fn by_csls(scores: &ScoreMatrix, k: usize) -> Ranks {
    ranks(scores, &|direction| csls(&TestQueries(scores), direction, k).unwrap().into_any())
}

fn by_is(scores: &ScoreMatrix, beta: f64) -> Ranks {
    let bank = TestQueries(scores);
    ranks(scores, &|direction| inverted_softmax(&bank, direction, beta).unwrap().into_any())
}

fn hits(ranks: Ranks) -> Hits {
    Hits::new(&[ranks], TiePolicy::Index).unwrap()
}

/// Recalls of both directions, as a row has them.
fn recalls(row: &ReportRow) -> [[f64; 3]; 2] {
    [row.recalls.i2t.unwrap().values(), row.recalls.t2i.unwrap().values()]
}

fn of_hits(hits: &Hits) -> [[f64; 3]; 2] {
    let all = hits.recalls();
    [all.i2t, all.t2i]
}

fn close(a: [[f64; 3]; 2], b: [[f64; 3]; 2]) {
    for (a, b) in a.as_flattened().iter().zip(b.as_flattened()) {
        assert!((a - b).abs() < 1e-9, "{a} against {b}");
    }
}

/// In each direction, k is the first one with the largest sum of recalls on validation. Recalls are measured on the test set.
#[test]
fn settings_are_chosen_on_validation() {
    let (test, validation, pairs) = (scores(0), scores(5), pairs());
    let settings = Settings { csls_k: vec![Choice::Auto], ..Settings::default() };
    let study = Study { settings, ..study(&["csls"]) };
    let report = study
        .run(&Test::new(&test, &pairs), Some(&Validation { scores: &validation, pairs: &pairs }))
        .unwrap();
    let row = &report.rows[1];
    assert_eq!((row.chosen, row.setting), (ChoiceOrigin::Validation, Setting::Transductive));
    let ks = [100, 50, 30, 20, 10, 5, 3, 2, 1];
    let on_validation = ks.map(|k| of_hits(&hits(by_csls(&validation, k))));
    let mut want = [[0.0; 3]; 2];
    for (side, direction) in Direction::BOTH.into_iter().enumerate() {
        let sum = |at: usize| on_validation[at][side].iter().sum::<f64>();
        let best = (1..9).fold(0, |best, at| if sum(at) > sum(best) + 1e-9 { at } else { best });
        let params = row.params.get(direction).unwrap();
        assert_eq!(params["k"], Param::from(ks[best] as f64), "{direction}");
        want[side] = of_hits(&hits(by_csls(&test, ks[best])))[side];
    }
    close(recalls(row), want);
    close(recalls(&report.rows[0]), of_hits(&hits(plain(&test))));
    assert_eq!(
        (report.rows[0].chosen, report.rows[0].setting),
        (ChoiceOrigin::Default, Setting::Plain)
    );
}

/// Each half of the images gets the β that is best on the other half.
#[test]
fn without_validation_settings_are_cross_fitted() {
    let (test, pairs) = (scores(1), pairs());
    let settings = Settings { is_beta: vec![Choice::Auto], ..Settings::default() };
    let report =
        Study { settings, seed: 3, ..study(&["is"]) }.run(&Test::new(&test, &pairs), None).unwrap();
    let betas = [2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0];
    let ids: Vec<_> = (0..IMAGES).map(|image| image.to_string()).collect();
    let split = FoldSplit::hashed(&ids, 2, 3).unwrap();
    let pooled = Direction::BOTH.map(|direction| {
        let mut table = HitTable::default();
        for beta in betas {
            let fit = inverted_softmax(&TestQueries(&test), direction, beta).unwrap();
            let items = &fit.map().affine().unwrap().items[0];
            let mean = items.iter().sum::<f64>() / items.len() as f64;
            let spread = items.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / items.len() as f64;
            let of_images = hits(by_is(&test, beta)).folds()[0].clone();
            let of_images = of_images.iter().map(|image| direction.queries(image.i2t, image.t2i));
            table.push("", spread.sqrt() / beta, of_images.collect()).unwrap();
        }
        let fit = cross_fit(&table, &split, Goal::Sum).unwrap();
        let chosen: Vec<_> = fit.chosen.iter().map(|&at| Param::from(betas[at.unwrap()])).collect();
        let got = &report.rows[1].params.get(direction).unwrap()["beta"];
        let same = chosen[0] == chosen[1];
        assert_eq!(*got, if same { chosen[0].clone() } else { Param::Each(chosen) });
        fit.hits
    });
    assert_eq!(report.rows[1].chosen, ChoiceOrigin::CrossFitted);
    let want = joined_hits(&pooled[0], &pooled[1], &[3; IMAGES]).unwrap();
    close(recalls(&report.rows[1]), of_hits(&want));
}

#[test]
fn intervals_and_tests_are_those_of_the_hits() {
    let (test, pairs) = (scores(2), pairs());
    let study = Study { resamples: 200, seed: 7, ..study(&["csls", "is"]) };
    let report = study.run(&Test::new(&test, &pairs), None).unwrap();
    let systems = [plain(&test), by_csls(&test, 10), by_is(&test, 30.0)].map(|r| [hits(r)]);
    let mut p_values = Vec::new();
    for (row, system) in report.rows.iter().zip(&systems) {
        let want = bootstrap(system, 200, 7).unwrap();
        assert_eq!(row.ci95, Some([want.rsum.lo, want.rsum.hi]), "{}", row.method);
        let got = row.ci95_recalls.t2i.unwrap().values();
        assert_eq!(got, want.t2i.map(|interval| [interval.lo, interval.hi]));
        let Some(difference) = row.difference else { continue };
        assert_eq!(difference.rsum, row.rsum - report.rows[0].rsum);
        let want = bootstrap_difference(system, &systems[0], 200, 7).unwrap().rsum;
        assert_eq!(difference.ci95, Some([want.lo, want.hi]));
        let p = paired_randomisation(system, &systems[0], 200, 7).unwrap().p;
        assert_eq!(row.p_value, Some(p));
        p_values.push(p);
    }
    let adjusted: Vec<_> =
        report.rows[1..].iter().map(|row| row.difference.unwrap().p_holm).collect();
    assert_eq!(adjusted, holm(&p_values).into_iter().map(Some).collect::<Vec<_>>());
    assert_eq!((report.settings.resamples, report.settings.seed), (200, 7));
}

#[test]
fn hubs_are_named_measured_and_told_from_deserved_ones() {
    let (test, pairs) = (scores(3), pairs());
    let names = ItemNames {
        images: Some((0..IMAGES).map(|image| format!("{image}.jpg")).collect()),
        texts: None,
    };
    let truth = Relevance::new(90, vec![(0..90).collect(); IMAGES]);
    let asked = Test { names: &names, truth: Some(&truth), ..Test::new(&test, &pairs) };
    let report = study(&["csls"]).run(&asked, None).unwrap();
    let none = Correction::none(&test, T2i);
    let top = pass::top(&test, &none, 10).unwrap();
    let counts = [1, 5, 10].map(|k| Counts::top(IMAGES, k, &top));
    let side = report.hubs.sides.t2i.as_ref().unwrap();
    let want: Vec<_> = counts.iter().map(HubMeasures::new).collect();
    assert_eq!(side.measures, want);
    for (got, want) in side.worst.iter().zip(counts[2].largest(10)) {
        let [first, _, count] = counts.each_ref().map(|c| u64::from(c.values[want]));
        assert_eq!((got.item, got.count, got.first), (want as u64, count, first));
        assert_eq!(got.name, Some(format!("{want}.jpg")));
        assert_eq!(got.deserved, Some(1.0), "every text is true of every image");
        assert!(got.after["csls"] <= got.count || got.item != 3);
    }
    assert_eq!((side.worst.len(), side.worst[0].item, side.worst[0].victims.len()), (10, 3, 5));
    assert!(side.worst[0].victims.iter().all(|victim| victim.name.is_none()));
    let skewness = |d| report.hubs.sides.get(d).unwrap().measures.iter().map(|m| m.skewness);
    let sum: f64 = Direction::BOTH.into_iter().map(|d| skewness(d).sum::<f64>()).sum();
    assert_eq!(report.hubs.hs_sum, Some(sum));
}

#[test]
fn matchings_are_those_of_their_numbers() {
    let (test, pairs) = (scores(4), pairs());
    for (runs, stop) in [(Runs::PerK, Stop::Exhaustive), (Runs::Single, Stop::Literal)] {
        let settings = Settings {
            rgm_lambda: vec![Choice::Number(1.5)],
            rgm_capacity: CapacityScale::Literal,
            rgm_stop: stop,
            rgm_runs: runs,
            ..Settings::default()
        };
        let study = Study { settings, curves: true, ..study(&["csls+rgm"]) };
        let report = study.run(&Test::new(&test, &pairs), None).unwrap();
        let mut want = [[0.0; 3]; 2];
        for (side, direction) in Direction::BOTH.into_iter().enumerate() {
            let fit = csls(&TestQueries(&test), direction, 10).unwrap();
            let candidates = Candidates::new(&test, &fit, 10).unwrap();
            let scale = CapacityScale::Literal;
            want[side] = [1, 5, 10].map(|k| {
                let of = if runs == Runs::Single { 10 } else { k };
                let options = GreedyOptions { scale, stop, ..GreedyOptions::new(of, 1.5) };
                let places = greedy_matching(&candidates, &options).unwrap().places(&pairs);
                let hits = places.iter().filter(|place| place.is_some_and(|place| place < k));
                100.0 * hits.count() as f64 / places.len() as f64
            });
        }
        close(recalls(&report.rows[1]), want);
        assert_eq!((report.rows[1].chosen, report.curves.len()), (ChoiceOrigin::Given, 2));
    }
}

#[test]
fn banks_are_fitted_on_beside_the_test_queries() {
    let side = |rows: usize, off: f32| -> Vec<f32> {
        (0..rows).flat_map(|row| [(row as f32 + off).sin(), (row as f32 * 1.7).cos()]).collect()
    };
    let (image_rows, text_rows) = (side(12, 0.0), side(12, 0.3));
    let [images, texts, more] = [image_rows.clone(), text_rows.clone(), side(20, 0.9)];
    let of = |name: &str, values: &'static [f32]| {
        Embeddings::new(name, values.len() / 2, 2, values).unwrap()
    };
    let leak = |values: Vec<f32>| of("", values.leak());
    let [images, texts, more] = [images, texts, more].map(leak);
    let (pairs, banks) = (Pairs::uniform(12, 1), Banks { images: Some(more), texts: Some(more) });
    let rows = EmbeddingRows {
        dim: 2,
        images: image_rows,
        texts: text_rows,
        similarity: Similarity::Cosine,
    };
    let asked = Test { banks, length: Length::Raw, ..Test::new(&rows, &pairs) };
    let report = study(&["csls"]).run(&asked, None).unwrap();
    let rows: Vec<_> = report.rows.iter().map(|row| (&row.method[..], row.setting)).collect();
    let want =
        [("nns", Setting::Plain), ("csls", Setting::Transductive), ("csls@bank", Setting::HeldOut)];
    assert_eq!(rows, want);
    let tiles = Tiles::new(images, texts).unwrap();
    let i2t = csls(&HeldOutBank(&Tiles::new(more, texts).unwrap()), I2t, 10).unwrap();
    let t2i = csls(&HeldOutBank(&Tiles::new(images, more).unwrap()), T2i, 10).unwrap();
    let ranks = pass::ranks(&tiles, &pairs, &i2t, &t2i).unwrap();
    close(recalls(&report.rows[2]), of_hits(&hits(ranks)));
    assert_eq!(report.data.dim, Some(2));

    let one = Test { banks: Banks { texts: None, ..banks }, ..asked };
    let line = study(&[]).run(&one, None).unwrap_err().to_string();
    let want = "bank_texts: expected banks of both sides: every row has both directions, got none";
    assert_eq!(line, want);
}

/// A run that holds every pair gives the same numbers as the matrix. A run of one direction gives the numbers of that direction.
#[test]
fn runs_are_measured_by_direction() {
    let (test, pairs) = (scores(6), pairs());
    let [whole, one] =
        [Some(test.clone()), None].map(|i2t| report::PerDirection { i2t, t2i: Some(test.clone()) });
    let runs = |of| Test { scores: TestScores::Runs(of), ..Test::new(&test, &pairs) };
    let of = |asked: Test<'_>| study(&["csls", "auto"]).run(&asked, None).unwrap().rows;
    let (both, half, matrix) = (of(runs(&whole)), of(runs(&one)), of(Test::new(&test, &pairs)));
    for ((both, half), matrix) in both.iter().zip(&half).zip(&matrix) {
        assert_eq!((recalls(both), &both.params), (recalls(matrix), &matrix.params));
        assert_eq!((half.recalls.i2t, half.recalls.t2i), (None, matrix.recalls.t2i));
    }
}

/// The run does not hold the pair of text 0: a miss, whatever the other entries are.
#[test]
fn what_a_run_does_not_hold_is_a_miss() {
    let (whole, pairs) = (scores(6), pairs());
    let mut values = whole.values().to_vec();
    values[0] = f32::NEG_INFINITY;
    let held = ScoreMatrix::new(IMAGES, 90, values).unwrap();
    let runs = report::PerDirection { i2t: None, t2i: Some(held) };
    let asked = Test { scores: TestScores::Runs(&runs), ..Test::new(&whole, &pairs) };
    let report = study(&["nns"]).run(&asked, None).unwrap();
    let recalls = report.rows[0].recalls.t2i.unwrap();
    let ranks = plain(&whole);
    let others: f64 = ranks.t2i()[1..].iter().map(|text| text.hit(10, TiePolicy::Index)).sum();
    assert_eq!(recalls.r10, 100.0 * others / 90.0);
    assert_eq!((recalls.median_rank, recalls.mean_rank), (None, None));
}

#[test]
fn what_does_not_fit_together_is_one_line() {
    let (test, pairs, other) = (scores(0), pairs(), Pairs::uniform(IMAGES, 2));
    let line = |study: &Study, asked: &Test<'_>, validation: Option<&Validation<'_>>| {
        study.run(asked, validation).unwrap_err().to_string()
    };
    let plain = Test::new(&test, &pairs);
    let all = study(&[]);
    let want = "expected 30 images and 60 texts, as the pairs, got 30 and 90";
    assert_eq!(line(&all, &Test::new(&test, &other), None), format!("scores: {want}"));
    let validation = Validation { scores: &test, pairs: &other };
    assert_eq!(line(&all, &plain, Some(&validation)), format!("validation: {want}"));
    let none = Test { scores: TestScores::Runs(&report::PerDirection::default()), ..plain };
    let want = "scores: expected a run of at least one direction, got none";
    assert_eq!(line(&all, &none, None), want);
    let names = ItemNames { images: None, texts: Some(vec!["one".into()]) };
    let want = "names of texts: expected 90, got 1";
    assert_eq!(line(&all, &Test { names: &names, ..plain }, None), want);
    let truth = Relevance::new(90, vec![vec![0]; 2]);
    let want = "truth: expected 30 images and 90 texts, as the pairs, got 2 and 90";
    assert_eq!(line(&all, &Test { truth: Some(&truth), ..plain }, None), want);
    let mut values = test.values().to_vec();
    values[91] = f32::NEG_INFINITY;
    let holes = ScoreMatrix::new(IMAGES, 90, values).unwrap();
    let want = "scores of image 1 and text 1: expected a finite number, got -inf";
    assert_eq!(line(&all, &Test::new(&holes, &pairs), None), want);
    let many = Pairs::new(1, vec![0; 65_536]).unwrap();
    let wide = ScoreMatrix::new(1, 65_536, vec![0.0; 65_536]).unwrap();
    let want = "scores, image 0: expected at most 65535 texts per image, got 65536";
    assert_eq!(line(&all, &Test::new(&wide, &many), None), want);
    let alone = Pairs::new(IMAGES, (0..90).map(|text| text % 29).collect()).unwrap();
    let want = "scores, image 29: expected a text for every query image, got none";
    assert_eq!(line(&all, &Test::new(&test, &alone), None), want);
    let want = "method dual-is: expected banks of images and of texts, got at most one of them";
    assert_eq!(line(&study(&["dual-is"]), &plain, None), want);
    let settings = Settings { is_beta: vec![Choice::Number(0.0)], ..Settings::default() };
    let want = "is_beta: expected a number above 0 and below 1e200, got 0";
    assert_eq!(line(&Study { settings, ..study(&[]) }, &plain, None), want);
}

#[test]
fn all_that_the_scores_allow_is_measured_where_nothing_is_named() {
    let (test, pairs) = (scores(0), pairs());
    let report = study(&[]).run(&Test::new(&test, &pairs), None).unwrap();
    let names = report.rows.iter().map(|row| &row.method[..]);
    let want = "nns csls is nnn sinkhorn qbnorm mp mp-empirical gm rgm is+rgm csls+rgm auto";
    assert!(names.eq(want.split(' ')), "{:?}", report.rows);
    for (resamples, methods, least) in
        [(10, &["csls"][..], "0.09"), (1, &["csls", "is", "nnn"], "1.00")]
    {
        let few = Study { resamples, ..study(methods) };
        let notes = few.run(&Test::new(&test, &pairs), None).unwrap().data.notes;
        let want = format!("with so few resamples no p over all rows can be below {least}, unless");
        assert!(notes.len() == 1 && notes[0].starts_with(&want), "{notes:?}");
    }
}

/// Their number and one overflowed before it was refused.
#[test]
fn more_resamples_than_any_test_can_draw_are_an_error() {
    let (test, pairs) = (scores(0), pairs());
    let most = Study { resamples: usize::MAX, ..study(&["csls"]) };
    let line = most.run(&Test::new(&test, &pairs), None).unwrap_err().to_string();
    assert!(line.contains("18446744073709551615"), "{line}");
}

/// There are 30 images and 90 texts: an item cannot have 1,000 neighbours, and k = 1,000 gives the numbers of k = 30 or 90.
#[test]
fn neighbours_are_shown_as_used() {
    let (scores, pairs) = (scores(1), pairs());
    let names = ItemNames::default();
    let test = Test {
        scores: TestScores::All(&scores),
        pairs: &pairs,
        length: Length::Raw,
        names: &names,
        banks: Banks::default(),
        truth: None,
    };
    let report = |k: f64| {
        let csls_k = vec![Choice::Number(k)];
        let settings = Settings { csls_k, nnn_k: k as usize, ..Settings::default() };
        Study { settings, ..study(&["csls", "nnn"]) }.run(&test, None).unwrap()
    };
    let many = report(1000.0);
    for row in &many.rows[1..] {
        let k = |direction| row.params.get(direction).unwrap()["k"].clone();
        assert_eq!((k(I2t), k(T2i)), (Param::Count(30), Param::Count(90)), "{}", row.method);
    }
    let few = report(10.0);
    assert_eq!(few.rows[1].params.get(I2t).unwrap()["k"], Param::Count(10));
}

/// Text 0 scores both images alike, so the smaller index decides; text 1 and the images are decided by their scores.
#[test]
fn ties_that_decide_are_counted() {
    let row = |image: usize| (0..30).map(move |t| f32::from(u8::from(t == image || t == 0)));
    let scores = ScoreMatrix::new(30, 30, (0..30).flat_map(row).collect()).unwrap();
    let names = ItemNames::default();
    let test = Test {
        scores: TestScores::All(&scores),
        pairs: &Pairs::uniform(30, 1),
        length: Length::Raw,
        names: &names,
        banks: Banks::default(),
        truth: None,
    };
    let report = study(&["nns"]).run(&test, None).unwrap();
    let decided = |direction| report.rows[0].recalls.get(direction).unwrap().decided_by_ties;
    // By hand: image 0 prefers its own text; each of the 29 others ties its own text with text 0. All images tie for text 0.
    assert_eq!((decided(I2t), decided(T2i)), (Some(29), Some(1)));
}

/// Any true item counts, in every row: against a sort of the corrected scores.
#[test]
fn judged_pairs_count_any_true_item() {
    let scores = scores(5);
    // Every fourth text is true of nothing; image 29 is only a distractor.
    let of_text = |t: usize| match t % 4 {
        0 => vec![],
        extra => (0..extra).map(|k| (t / 3 + 7 * k) % (IMAGES - 1)).collect::<Vec<_>>(),
    };
    let judged = Pairs::judged(IMAGES, (0..90).map(of_text).collect()).unwrap();
    let test = Test::new(&scores, &judged);
    let settings = Settings {
        csls_k: vec![Choice::Number(5.0)],
        is_beta: vec![Choice::Number(20.0)],
        rgm_lambda: vec![Choice::Number(2.0)],
        ..Settings::default()
    };
    let study = Study { resamples: 50, settings, ..study(&["csls", "is", "rgm"]) };
    let report = study.run(&test, None).unwrap();
    let fits: [&dyn Fn(Direction) -> Correction<Transductive>; 2] =
        [&|direction| csls(&TestQueries(&scores), direction, 5).unwrap(), &|direction| {
            inverted_softmax(&TestQueries(&scores), direction, 20.0).unwrap()
        }];
    for (row, fit) in report.rows[1..3].iter().zip(fits) {
        for direction in Direction::BOTH {
            let (correction, items) = (fit(direction).into_any(), direction.items(IMAGES, 90));
            let (mut hits, mut sums, mut queries) = ([0.0; 3], [0.0; 2], 0.0);
            for query in 0..direction.queries(IMAGES, 90) {
                let truths = direction.truths(&judged, query);
                if truths.is_empty() {
                    continue;
                }
                queries += 1.0;
                let corrected = |item: usize| {
                    let (image, text) =
                        (direction.queries(query, item), direction.items(query, item));
                    correction.map().rescore(query, item, scores.row(image)[text])
                };
                let mut ranking: Vec<_> = (0..items).collect();
                ranking.sort_by(|&a, &b| corrected(b).total_cmp(&corrected(a)));
                let is_true = |place: usize| truths.contains(&ranking[place]);
                let first = (0..ranking.len()).find(|&place| is_true(place)).unwrap();
                [1, 5, 10]
                    .iter()
                    .zip(&mut hits)
                    .for_each(|(&k, hits)| *hits += f64::from(u8::from(first < k)));
                let found = |k: usize| (0..k).filter(|&place| is_true(place)).count() as f64;
                let r = truths.len();
                let precisions = (0..r)
                    .filter(|&place| is_true(place))
                    .map(|place| found(place + 1) / (place + 1) as f64);
                sums[0] += precisions.sum::<f64>() / r as f64;
                sums[1] += found(r) / r as f64;
            }
            let got = row.recalls.get(direction).unwrap();
            let all =
                got.values().into_iter().chain([got.map_at_r.unwrap(), got.r_precision.unwrap()]);
            for (got, want) in all.zip(hits.into_iter().chain(sums)) {
                let want = 100.0 * want / queries;
                assert!(
                    (got - want).abs() < 1e-9,
                    "{}, {direction}: {got} against {want}",
                    row.method
                );
            }
        }
    }
    assert!(
        report.rows[3].recalls.i2t.unwrap().map_at_r.is_none(),
        "a matching ranks only some items"
    );
    let nothing = Pairs::judged(IMAGES, vec![vec![]; 90]).unwrap();
    let line = study.run(&Test::new(&scores, &nothing), None).unwrap_err().to_string();
    assert_eq!(line, "scores: expected at least one true pair, got none");
}
