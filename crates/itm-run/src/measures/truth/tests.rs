use itm_core::scored::Scored;

use super::*;
use crate::report::tests::sample;
use crate::tests::{self, texts};

fn seed(draws: Draws) -> Seed {
    let source = tests::small_scenes([8, 4, 12]).1;
    let truth = &source.truth.as_ref().unwrap().test;
    Seed {
        relevance: <dyn Scored>::evaluate_multi(&tests::by_truth(&source), truth).unwrap(),
        draws,
        candidates: Candidates::default(),
        epochs: vec![],
        prior: None,
    }
}

#[test]
fn draws_add_up_over_seeds() {
    let with_draws = |anchors: f64, drawn| {
        seed(Draws { anchors, drawn, uniform: 1.0, hardest: anchors, ..Draws::default() })
    };
    let truth = Truth::new(&[&with_draws(10.0, 2.0), &with_draws(30.0, 3.0)]);
    assert_eq!(truth.drawn_true_share, Some(5.0 / 40.0));
    assert_eq!(truth.uniform_true_share, Some(2.0 / 40.0));
    assert_eq!((truth.hardest_true_share, truth.draws), (Some(1.0), Some(40)));
    assert_eq!((truth.posterior_auc, truth.candidates), (None, None), "nothing was seen");
}

/// Row 2 of the sample has everything, the others only what scores give.
fn sample_truths(report: &Report) -> Vec<Option<Truth>> {
    let of = |k: usize| match k {
        2 => Truth {
            posterior_auc: Some(0.873),
            brier_skill: Some(-0.021),
            prior: Some(1e-4),
            brier_skill_at_base_rate: Some(0.184),
            base_rate: Some(0.0213),
            candidates: Some(1_234_567),
            drawn_true_share: Some(0.031),
            uniform_true_share: Some(0.024),
            hardest_true_share: Some(0.27),
            draws: Some(48_000),
            ..Truth::default()
        },
        _ => Truth { map_at_r: Some(0.4), r_precision: Some(0.5), ..Truth::default() },
    };
    (0..report.rows.len()).map(|k| Some(of(k))).collect()
}

#[test]
fn cells_stand_under_their_heads() {
    let report = sample::report(24.3, -5.5, &[1, 2, 3]);
    let all = sample_truths(&report);
    let table = tables::relevance(&report, &all);
    let want = ["0.873", "−0.021", "0.184", "2.1 %", "1,234,567"];
    assert_eq!(texts(&table, "Full")[2..], want);
    assert_eq!(table.columns[3].label, "Brier skill, p = 1e-4");
    let draws = tables::draws(&report, &all);
    assert_eq!(texts(&draws, "Full"), ["3.1 %", "2.4 %", "27.0 %", "48,000"]);
    assert_eq!(texts(&draws, crate::report::CCA), ["–"; 4]);
    let names: Vec<_> = table.lines.iter().map(|line| &line.0).collect();
    assert_eq!(names, report.rows.iter().map(|row| &row.name).collect::<Vec<_>>());
    let none = tables::relevance(&report, &vec![None; report.rows.len()]).filled();
    assert!(none.lines.is_empty() && none.columns.is_empty());
}

/// The measure itself: a row without a training has only what its scores give, and a row that was not looked at has no truth.
#[test]
fn rows_that_were_looked_at_have_numbers() {
    let source = tests::small_scenes([8, 4, 12]).1;
    let (mut report, audit) = (sample::report(24.3, -5.5, &[1]), Audit::default());
    let scores = tests::by_truth(&source);
    audit.look(&tests::trial(&source, &scores)).unwrap();
    let section = audit.section(&mut report).unwrap().filled();
    let known = report.rows.iter().filter_map(|row| Some((&row.name[..], row.truth.as_ref()?)));
    let [("Full", numbers)] = known.collect::<Vec<_>>()[..] else { panic!("{:?}", report.rows) };
    assert_eq!(numbers["map_at_r"], 1.0, "true pairs are first");
    assert!(numbers["posterior_auc"].is_null() && !numbers.contains_key("epochs"));
    assert_eq!(section.tables.len(), 1, "nothing was drawn");
}
