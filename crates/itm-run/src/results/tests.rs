use itm_core::eval::{Evaluation, Protocol, TiePolicy};
use itm_core::significance::Hits;
use itm_core::{Pairs, ScoreMatrix};

use super::*;
use crate::report::CCA;

const IMAGES: usize = 40;

/// One caption per image. One of every `every` images is ranked second in both directions.
fn run(seed: u64, every: usize) -> SeedRun {
    let pairs = Pairs::uniform(IMAGES, 1);
    let wrong = |i: usize| i.is_multiple_of(every);
    let score = |i: usize, t: usize| match (i + 1) % IMAGES == t {
        _ if i == t => 1.0,
        true if wrong(i) => 2.0,
        _ => 0.0,
    };
    let values = (0..IMAGES * IMAGES).map(|k| score(k / IMAGES, k % IMAGES)).collect();
    let scores = ScoreMatrix::new(IMAGES, IMAGES, values).unwrap();
    let ranks = <dyn Scored>::ranks_by(&scores, Protocol::Full, &pairs).unwrap();
    SeedRun {
        seed,
        evaluation: Evaluation::new(&ranks, TiePolicy::Index),
        hits: Hits::new(&ranks, TiePolicy::Index).unwrap(),
        best: None,
        seconds: 0.0,
    }
}

fn row(name: &str, kind: RowKind, runs: Vec<SeedRun>) -> RowResult {
    let mut row = RowResult::trained(name);
    (row.kind, row.runs) = (kind, runs);
    row
}

/// 10, 8 and 5 of 40 images are wrong: R@1 is 75, 80 and 87.5 in both directions; the baseline's R@1 is 50.
#[test]
fn three_seeds_stand_against_the_one_run_of_a_baseline() {
    let full = row("Full", RowKind::Trained, vec![run(0, 4), run(1, 5), run(2, 8)]);
    let cca = row(CCA, RowKind::Baseline, vec![run(0, 2)]);
    let c = comparison(&full, &cca).unwrap();
    let want = 2.0 * ((75.0 + 80.0 + 87.5) / 3.0 - 50.0);
    assert!((c.rsum - want).abs() < 1e-9, "{} {want}", c.rsum);
    let [low, high] = c.ci95;
    assert!(0.0 < low && low < c.rsum && c.rsum < high, "{low} {high}");
    assert!(c.p_value < 0.01, "{}", c.p_value);
    assert_eq!((c.row.as_str(), c.minus.as_str()), ("Full", CCA));
    let same = comparison(&cca, &cca).unwrap();
    assert_eq!((same.rsum, same.ci95, same.p_value), (0.0, [0.0, 0.0], 1.0));
}

#[test]
fn the_claims_row_or_the_first_meets_every_other_and_every_row_the_baseline() {
    let mut results = vec![row(CCA, RowKind::Baseline, vec![run(0, 2)])];
    let compared = |results: &[RowResult], claimed| comparisons(results, claimed).unwrap();
    assert!(compared(&results, "Full").is_empty());
    for (name, every) in [("Full", 8), ("A", 4), ("B", 5)] {
        results.push(row(name, RowKind::Trained, vec![run(0, every), run(1, every + 1)]));
    }
    let names = |of: &[Comparison]| -> Vec<_> {
        of.iter().map(|c| (c.row.clone(), c.minus.clone())).collect()
    };
    let want = |of: [(&str, &str); 5]| of.map(|(row, minus)| (row.to_owned(), minus.to_owned()));
    let first = compared(&results, "a row that was not run");
    let of_first = [("Full", "A"), ("Full", "B"), ("Full", CCA), ("A", CCA), ("B", CCA)];
    assert_eq!(names(&first), want(of_first));
    assert!(first[0].rsum > 0.0 && first[3].rsum > 0.0);
    let claimed = compared(&results, "B");
    let of_claimed = [("B", "Full"), ("B", "A"), ("B", CCA), ("Full", CCA), ("A", CCA)];
    assert_eq!(names(&claimed), want(of_claimed));
    assert!(claimed[0].rsum < 0.0 && claimed[1].rsum > 0.0);
}
