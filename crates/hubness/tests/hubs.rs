//! Counts, measures of hubs and cross-fitting against `tests/reference/hubness.py`: exact fractions and plain loops.

use hubness::choose::{FoldSplit, Goal, HitTable, cross_fit};
use hubness::hubs::Counts;
use hubness::{Direction, ScoreMatrix};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    measures: Vec<Measures>,
    crossfit: Vec<Fit>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    images: usize,
    texts: usize,
    scores: Vec<f32>,
    counts: Vec<Counted>,
}

#[derive(Deserialize)]
struct Counted {
    direction: Direction,
    k: usize,
    counts: Vec<u32>,
    skew: f64,
}

#[derive(Deserialize)]
struct Measures {
    counts: Vec<u32>,
    k: usize,
    queries: usize,
    robin_hood: f64,
    gini: f64,
    atkinson_half: f64,
    atkinson_one: f64,
    anti_hub_share: f64,
    hub_occurrence: f64,
    hubs: usize,
    maximum: f64,
    skew: f64,
}

#[derive(Deserialize)]
struct Fit {
    hits: Vec<Vec<u16>>,
    queries: Vec<u16>,
    folds: Vec<usize>,
    strength: Vec<f64>,
    chosen: Vec<usize>,
    recall: f64,
}

fn golden() -> Golden {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/hubness.json");
    let text = std::fs::read_to_string(path).expect("written by the reference");
    serde_json::from_str(&text).expect("as the reference writes it")
}

#[track_caller]
fn near(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() < 1e-12, "{what}: got {got}, want {want}");
}

#[test]
fn golden_counts_and_skewness() {
    for case in golden().cases {
        let scores = ScoreMatrix::new(case.images, case.texts, case.scores).unwrap();
        for want in case.counts {
            let rows = want.direction.queries(scores.clone(), scores.transpose());
            let rankings: Vec<Vec<u32>> = (0..rows.images())
                .map(|query| rows.ranking(query).into_iter().map(|item| item as u32).collect())
                .collect();
            let lists = rankings.iter().map(Vec::as_slice);
            let counts = Counts::new(rows.texts(), want.k, lists);
            assert_eq!(counts.values, want.counts, "{}, {} {}", case.name, want.direction, want.k);
            near(&case.name, counts.skewness(), want.skew);
        }
    }
}

/// Lists with these counts: the answers are dealt to the queries in turn.
fn counts(want: &Measures) -> Counts {
    let mut lists = vec![Vec::new(); want.queries];
    let answers = (0u32..).zip(&want.counts).flat_map(|(item, &n)| vec![item; n as usize]);
    answers.enumerate().for_each(|(at, item)| lists[at % want.queries].push(item));
    assert!(lists.iter().all(|list| list.len() <= want.k), "{:?}", want.counts);
    let lists = lists.iter().map(Vec::as_slice);
    Counts::new(want.counts.len(), want.k, lists)
}

#[test]
fn golden_measures() {
    for want in golden().measures {
        let got = counts(&want);
        assert_eq!(got.values, want.counts);
        near("skewness", got.skewness(), want.skew);
        near("Robin Hood", got.robin_hood(), want.robin_hood);
        near("Gini", got.gini(), want.gini);
        near("Atkinson 1/2", got.atkinson(0.5), want.atkinson_half);
        near("Atkinson 1", got.atkinson(1.0), want.atkinson_one);
        near("anti-hubs", got.anti_hubs(), want.anti_hub_share);
        near("hub occurrence", got.hub_occurrence(), want.hub_occurrence);
        assert_eq!(got.hubs(), want.hubs);
        near("maximum", got.maximum(), want.maximum);
    }
}

/// The reference has only the sum of hits at 1, 5 and 10; any split of the sum into three will do.
#[test]
fn golden_cross_fits() {
    for want in golden().crossfit {
        let mut table = HitTable::default();
        for (row, &strength) in want.hits.iter().zip(&want.strength) {
            let parts = |(&sum, &most): (&u16, &u16)| {
                [0, 1, 2].map(|k: u16| sum.saturating_sub(k * most).min(most))
            };
            let hits = row.iter().zip(&want.queries).map(parts).collect();
            table.push(strength, strength, hits).unwrap();
        }
        let folds = want.folds.iter().max().unwrap() + 1;
        let fit =
            cross_fit(&table, &FoldSplit::new(folds, want.folds).unwrap(), Goal::Sum).unwrap();
        assert_eq!(fit.chosen, want.chosen.into_iter().map(Some).collect::<Vec<_>>());
        let sum = |all: &[u16]| all.iter().map(|&n| f64::from(n)).sum::<f64>();
        near("recall", 100.0 * sum(fit.hits.as_flattened()) / sum(&want.queries), want.recall);
    }
}
