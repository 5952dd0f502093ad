use serde_json::{Value, json};

use super::super::markdown;
use super::*;

/// A made-up report of `hubness`: two directions, and a hub with 4 wrong places, 3 of them deserved.
fn made_up(rows: &[(&str, f64, f64)]) -> Report {
    let plain = rows[0].1;
    let recalls = json!({"r1": 10.0, "r5": 20.0, "r10": 30.0, "median_rank": null, "mean_rank": null, "queries": 2});
    let measures = |skewness: f64| {
        json!([{"k": 10, "skewness": skewness, "robin_hood": 0.1, "gini": 0.2, "atkinson": 0.1,
                "anti_hub_share": 0.1, "hub_occurrence": 0.3, "hubs": 2, "max": 0.4}])
    };
    let row = |&(method, rsum, p): &(&str, f64, f64)| {
        let difference = json!({"rsum": rsum - plain, "ci95": null, "p_holm": p});
        let params = |lambda: f64| json!({"lambda": [lambda, 2, "inf"]});
        json!({
            "method": method, "rsum": rsum, "chosen": "validation", "ci95": null, "p_value": p,
            "params": {"i2t": if method.contains("rgm") { params(1.5) } else { json!({}) }, "t2i": {}},
            "transductive": true, "setting": "transductive", "i2t": recalls, "t2i": recalls,
            "ci95_recalls": {"i2t": null, "t2i": null},
            "difference": if method == "nns" { Value::Null } else { difference },
            "hubs_after": {"i2t": measures(2.0), "t2i": measures(rsum / 100.0)},
        })
    };
    let hub = json!({"item": 7, "name": "a|b", "count": 9, "first": 1, "wrong": 4, "deserved": 0.75,
                     "after": {"csls": 3}, "victims": []});
    let top = rows[0].1 as u64 / 10; // one of ten images has this count; nine have 4
    let histogram = json!({"method": "nns", "k": 10, "counts": [[4, 9], [top, 1]]});
    let side = |worst: Value| json!({"measures": [], "worst": worst, "histograms": [histogram]});
    let curve = json!({"label": "rgm", "direction": "i2t", "x": [1.0, 2.0, 10.0],
                       "y": [plain / 10.0, 31.0, 30.0], "unconstrained": 30.5});
    let report = json!({
        "version": "0", "seconds": 1.0, "peak_memory_bytes": null, "curves": [curve],
        "data": {"images": 2, "texts": 2, "dim": 1, "pairs_note": "", "files": [], "notes": [], "warnings": []},
        "settings": {"seed": 0, "resamples": 10, "unit": "", "tie_policy": "", "hub_rule": "", "command": null},
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "hubs": {"i2t": side(json!([hub])), "t2i": side(json!([])), "hs_sum": 1.0},
    });
    serde_json::from_value(report).unwrap()
}

/// Two seeds. CSLS is significantly above NNS with the first seed, GM significantly below with both.
fn two_seeds() -> RowSummary {
    row_of_folds(1)
}

/// The two reports as those of so many folds.
fn row_of_folds(folds: usize) -> RowSummary {
    let reports = vec![
        made_up(&[
            ("nns", 300.0, 1.0),
            ("gm", 290.0, 0.01),
            ("rgm", 301.0, 0.4),
            ("csls", 305.0, 0.01),
        ]),
        made_up(&[
            ("nns", 302.0, 1.0),
            ("gm", 296.0, 0.04),
            ("rgm", 305.0, 0.2),
            ("csls", 307.0, 0.05),
        ]),
    ];
    let origin = Origin { rsum: Some(301.0), cca: Some(310.0) };
    let printed = crate::tests::paper("hal").inferences(3, None, String::new).unwrap();
    RowSummary::new("Full", printed, (&reports, folds), origin)
}

#[test]
fn means_differences_and_significance_over_the_seeds() {
    let row = two_seeds();
    let seen: Vec<_> = row
        .methods
        .iter()
        .map(|m| {
            (&m.method[..], m.rsum, m.difference, m.above, m.below, m.paper_difference.is_some())
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("nns", 301.0, None, 0, 0, false),
            ("gm", 293.0, Some(-8.0), 0, 2, true),
            ("rgm", 303.0, Some(2.0), 0, 0, true),
            ("csls", 306.0, Some(5.0), 1, 0, true),
        ]
    );
    assert_eq!(row.methods[3].hs_sum, Some(2.0 + 3.06));
    assert_eq!(row.methods[2].lambda.as_deref(), Some("i2t 1.50/2/inf"));
    assert_eq!(row.methods[3].lambda, None);
    assert!((row.methods[3].paper_difference.unwrap() - 4.1).abs() < 1e-9, "307.3 − 303.2");
}

#[test]
fn curves_and_deserved_hubs_are_over_the_seeds() {
    let row = two_seeds();
    assert_eq!(row.curves.len(), 1);
    assert_eq!(row.curves[0].r10, [30.1, 31.0, 30.0]);
    assert_eq!(row.counts[0].shares, [(4, 0.9), (30, 0.1)]);
    assert_eq!((row.counts[3].largest, &row.counts[3].shares[..]), (None, &[][..]));
    let side = &row.hubs[0];
    assert_eq!((&side.direction[..], side.wrong, side.deserved), ("i2t", 8, Some(0.75)));
    assert_eq!((row.hubs[1].wrong, row.hubs[1].deserved), (0, None));
}

#[test]
fn the_page_begins_with_the_verdict_and_says_when_models_are_weak() {
    let page = page(two_seeds());
    let want = "Full: 3 of 3 orderings of the paper's Table 3 hold. Best: CSLS, rSum 306.0, +5.0 against NNS \
                (significant with 1 of 2 seeds).\n";
    assert!(page.starts_with(want), "{page}");
    for part in [
        "The models reach rSum 301.0 on test: below the closed-form CCA, 310.0.",
        "| CSLS      | 306.0 |   +5.0 | 1 of 2 | 0 of 2 |",
        "| NNS < RGM  |   yes |       +2.0 | 2 of 2 |  +3.9 |",
        "| RGM       |       i2t | 30.1 |    – |   – | 31.0 | – | – | 30.0 | 30.5 | 2 (31.0) |",
        "| a\\|b |   9 |     4 |   75.0 % |    3 |",
        "75.0 % are true beyond the annotation",
        "| NNS       |     3.01 |    30.0 |     10.0 % |",
        "| CSLS      |     3.06 |       – |     10.0 % |",
        "Paper: Flickr30K, its model line 1.3.",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    assert_eq!(page.lines().filter(|line| line.starts_with("|-")).count(), 6, "{page}");
}

/// One seed of two folds was "2 seeds".
#[test]
fn folds_are_no_seeds() {
    let row = row_of_folds(2);
    assert_eq!((row.seeds, row.folds), (1, 2));
    let page = page(row);
    for part in [
        "(significant with 1 of 2 folds).",
        "Mean over one seed and 2 folds. Above, below: folds with a significant difference",
        "| CSLS      | 306.0 |   +5.0 | 1 of 2 | 0 of 2 |",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    assert!(!page.contains("2 seeds"), "{page}");
}

/// `summary.md` of one row.
fn page(row: RowSummary) -> String {
    markdown::render(&Summary {
        target: "toy".into(),
        paper: "P".into(),
        table: 3,
        dataset: "Toy".into(),
        substitution: None,
        rows: vec![row],
        resamples: 10,
        config_sha256: "c".repeat(64),
        data_sha256: "d".repeat(64),
        command: "cargo xtask reproduce toy".into(),
        seconds: 1.0,
    })
}
