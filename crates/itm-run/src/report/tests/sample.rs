//! A made-up run for the tests: every field filled, every number invented.

use std::collections::BTreeMap;

use itm_core::encoders::PatchGrid;
use itm_core::learn::Effect;

use super::super::*;

/// A report whose `Full` row is above `w/o FNE` by `over_without` and above CCA by `over_cca`,
/// each difference with an interval of ± 3.
pub(crate) fn report(over_without: f64, over_cca: f64, seeds: &[u64]) -> Report {
    let full = 312.0;
    let level = |name: &str| match name {
        CHANCE => 6.8,
        CCA => full - over_cca,
        "w/o FNE" => full - over_without,
        "w/o MMM" => full - 21.0,
        "w/o MMM+FNE" => full - 17.5,
        _ => full,
    };
    let rows: Vec<_> = [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"]
        .map(|name| row(name, level(name), seeds))
        .into();
    let compare = |minus: &str, p: f64| {
        let d = full - level(minus);
        Comparison {
            row: "Full".into(),
            minus: minus.into(),
            rsum: d,
            ci95: Some([d - 3.0, d + 3.0]),
            p_value: Some(if d.abs() > 3.0 { p } else { 0.4 }),
            test: Some("paired randomisation over images, 10,000 draws".into()),
        }
    };
    Report {
        schema_version: SCHEMA_VERSION,
        target: "fne-flickr".into(),
        dataset: "Scenes".into(),
        substituted: true,
        substitution: Some(
            "Flickr30K was not found: these rows ran on Scenes. `cargo xtask data` says how to get \
             it."
            .into(),
        ),
        commit: "0123abc".into(),
        backend: "flex (cpu)".into(),
        threads: 2,
        preset: "scenes-small".into(),
        seeds: seeds.into(),
        command: "cargo xtask reproduce fne-flickr --seeds 3".into(),
        ci95_unit: CI95_UNIT.into(),
        tie_policy: "smaller index first".into(),
        claim: Claim { row: "Full".into(), against: vec!["w/o FNE".into()] },
        rows,
        comparisons: [("w/o FNE", 0.0002), (CCA, 0.0312), ("w/o MMM", 0.004), ("w/o MMM+FNE", 0.02)]
            .map(|(minus, p)| compare(minus, p))
            .into(),
        paper_reference: crate::testing::paper("fne").reference(
            3,
            None,
            &["Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"].map(|row| (row, row)),
        ),
        figure: None,
        distribution: None,
        hubs: vec![],
        hub_differences: vec![],
        rescored: vec![],
        notes: vec!["The bank holds 1,024 captions: a quarter of the training set.".into()],
        seconds: 431.2,
        peak_memory_bytes: 1_360_000_000,
        config_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        data_sha256: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752".into(),
    }
}

/// [`report`] with figures; the captions try to be markup.
pub(crate) fn input(over_without: f64, over_cca: f64, seeds: &[u64]) -> ReportInput {
    let report = report(over_without, over_cca, seeds);
    let trained = ["Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"];
    let curves = (trained.iter().enumerate())
        .flat_map(|(i, row)| seeds.iter().map(move |&seed| curve(row, i, seed)))
        .collect();
    let examples = (0..12).map(example).collect();
    let false_negatives = vec![example(0), example(2)];
    let word_maps = vec![pair(PairKind::Annotated), pair(PairKind::FalseNegative)];
    let similarities = vec![similarities()];
    let figures = Figures { curves, similarities, examples, false_negatives, word_maps };
    ReportInput { report, figures }
}

fn row(name: &str, rsum: f64, seeds: &[u64]) -> Row {
    let kind = if [CHANCE, CCA].contains(&name) { Kind::Baseline } else { Kind::Trained };
    let recalls = |scale: f64| {
        let part = |share: f64| (share * scale * rsum).min(100.0);
        Recalls { r1: part(0.075), r5: part(0.19), r10: part(0.235) }
    };
    let (i2t, t2i) = (recalls(1.06), recalls(0.94));
    let around = |r: Recalls| r.values().map(|v| [(v - 2.2).max(0.0), v + 2.0]);
    let per_seed = seeds.iter().map(|&seed| SeedResult {
        seed,
        i2t,
        t2i,
        rsum: rsum + 2.5 * ((seed as f64 * 2.1).sin()),
        validation_rsum: Some(rsum + 14.0),
        best_epoch: Some(11 + seed as u32 % 4),
    });
    let trained = kind == Kind::Trained;
    Row {
        name: name.into(),
        kind,
        protocol: "1,000 images, 5 captions each".into(),
        precision: None,
        paper: None,
        measured: Measured {
            i2t,
            t2i,
            rsum,
            ci95: (name != CHANCE).then_some([rsum - 7.9, rsum + 8.3]),
            ci95_recalls: (name != CHANCE)
                .then(|| RecallIntervals { i2t: around(i2t), t2i: around(t2i) }),
            per_seed: if trained { per_seed.collect() } else { Vec::new() },
            validation_rsum: (name != CHANCE).then_some(rsum + 14.0),
            ties_decided: Some(if name == CHANCE { 0 } else { 3 }),
            seconds: trained.then_some(92.0),
        },
        truth: Some(truth(name, rsum)),
        edited: None,
    }
}

fn truth(name: &str, rsum: f64) -> Truth {
    let mut truth =
        Truth { map_at_r: Some(rsum / 900.0), r_precision: Some(rsum / 720.0), ..Truth::default() };
    if name == "Full" || name == "w/o MMM" {
        let bins = |gain: f64| {
            let bin = |k: i32| {
                let predicted = f64::from(k) / 10.0 + 0.04;
                let observed = (predicted * gain).clamp(0.0, 1.0);
                ReliabilityBin { predicted, observed, count: 80_000 >> k }
            };
            (0..10).map(bin).collect()
        };
        truth = Truth {
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
            pointing: Some(Pointing {
                annotated: pointed(0.412, 0.091),
                false_negatives: Some(pointed(0.387, 0.088)),
            }),
            reliability: vec![
                Reliability { name: "p = 1e-4".into(), prior: 1e-4, bins: bins(1.6) },
                Reliability {
                    name: "p = 0.021 (base rate)".into(),
                    prior: 0.0213,
                    bins: bins(0.9),
                },
            ],
            ..truth
        };
    }
    truth
}

fn pointed(share: f64, chance: f64) -> Pointed {
    Pointed { share, chance, ci95: [share - 0.02, share + 0.03], words: 17_345, idle: 0.0 }
}

fn curve(row: &str, i: usize, seed: u64) -> Curve {
    let wobble = |e: f64| ((e * 1.7 + seed as f64) * (1.3 + i as f64)).sin();
    let epochs = || (1..=16).map(f64::from);
    let height = 330.0 - 12.0 * i as f64;
    Curve {
        row: row.into(),
        seed,
        loss: epochs()
            .map(|e| (e, 0.4 * (-e / 5.0).exp() + 0.02 * i as f64 + 0.006 * wobble(e)))
            .collect(),
        validation_rsum: epochs()
            .map(|e| (e, height * (1.0 - (-e / 3.0).exp()) + 4.0 * wobble(e)))
            .collect(),
        numbers: BTreeMap::new(),
    }
}

fn similarities() -> Similarities {
    // The inverse of a logistic distribution at even steps: near enough to a Gaussian for the eye.
    let bell = |mu: f64, scale: f64, n: usize| {
        let at = move |k: usize| (k as f64 + 0.5) / n as f64;
        (0..n).map(|k| (mu + scale * (at(k) / (1.0 - at(k))).ln()) as f32).collect::<Vec<_>>()
    };
    let group = |label: &str, values| SimilarityGroup { label: label.into(), values };
    let posterior = |label: &str, shift: f64| PosteriorCurve {
        label: label.into(),
        points: (-40..=100)
            .map(|k| f64::from(k) / 100.0)
            .map(|s| (s, 1.0 / (1.0 + (-(s - shift) * 40.0).exp())))
            .collect(),
    };
    let mut other = bell(0.1, 0.06, 4000);
    other.push(f32::NAN);
    Similarities {
        row: "Full".into(),
        seed: 1,
        groups: vec![
            group("matching pairs", bell(0.62, 0.05, 2000)),
            group("true, not annotated", bell(0.5, 0.06, 600)),
            group("other pairs", other),
        ],
        posteriors: vec![
            posterior("P(match | s), p = 1e-4", 0.66),
            posterior("P(match | s), p = base rate", 0.47),
        ],
    }
}

fn example(k: u32) -> Example {
    let captions = [
        "A red ball lies left of the small house.",
        "<script>alert('caption')</script> a dog & a \"ball\" on grass",
        "Two trees and a blue car under a yellow sun, seen from the side of the road.",
        "The boat is on the water.",
        "A small green boat beside the pier at night.",
    ];
    let marks =
        [Mark::TrueNotAnnotated, Mark::Annotated, Mark::Other, Mark::Annotated, Mark::Other];
    let of_image = k % 3 != 2;
    let answers = (0..5).map(|i: usize| {
        let caption = Item::Caption(captions[(i + k as usize) % 5].into());
        Answer {
            item: if of_image { caption } else { picture(k + 7 * i as u32) },
            score: 0.81 - 0.06 * i as f64,
            mark: marks[(i + k as usize / 3) % 5],
        }
    });
    let caption = Item::Caption(captions[k as usize % 5].into());
    Example {
        row: "Full".into(),
        query: if of_image { picture(k) } else { caption },
        answers: answers.collect(),
        annotated_rank: Some(1 + k as usize % 3),
    }
}

/// Maps of a caption that tries to be markup, by two rows.
fn pair(kind: PairKind) -> PairMaps {
    let map = |word: &str, peak: usize| WordMap {
        word: word.into(),
        values: (0..4).map(|k| if k == peak { 0.5 } else { -0.1 }).collect(),
        effect: None,
    };
    let row = |row: &str, peak| RowMaps {
        row: row.into(),
        seed: 0,
        score: None,
        maps: vec![map("ball", peak), map("<cup>", 3)],
    };
    let Item::Image(picture) = picture(5) else { unreachable!("a picture") };
    PairMaps {
        picture,
        caption: "A <b>ball</b> & a cup".into(),
        kind,
        places: Places::Patches(PatchGrid::new(8, 4)),
        words: vec!["ball".into(), "<cup>".into()],
        boxes: vec![vec![Bounds::around(0.25, 0.75, 0.5, 0.4)], vec![]],
        rows: vec![row("Full", 2), row("w/o FNE", 1)],
    }
}

/// Effects of three words on the score of a pair: a mismatched one, and two that attend to the second region.
pub(crate) fn effects() -> PairMaps {
    let word = |word: &str, negative, positive, weights: [f32; 2]| WordMap {
        word: word.into(),
        values: vec![0.1, 0.6 + negative],
        effect: Some(Effect { negative: Some(negative), positive, weights: weights.into() }),
    };
    let maps = vec![
        word("<blue>", -0.4, 0.1, [0.0, 0.0]),
        word("ball", 0.0, 1.2, [0.25, 0.75]),
        word("left", 0.0, 0.6, [0.25, 0.75]),
    ];
    let score = Some(0.5);
    PairMaps {
        places: Places::Boxes(vec![
            Bounds::around(0.5, 0.5, 1.0, 1.0),
            Bounds::around(0.25, 0.75, 0.5, 0.4),
        ]),
        words: maps.iter().map(|map| map.word.clone()).collect(),
        boxes: vec![vec![]; 3],
        rows: vec![RowMaps { row: "Full".into(), seed: 0, score, maps }],
        ..pair(PairKind::Asked)
    }
}

fn picture(k: u32) -> Item {
    let (hue, x) = (k * 47 % 360, 20 + k * 13 % 60);
    let svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 100 100'><rect width='100' \
         height='100' fill='hsl({hue} 40% 80%)'/><circle cx='{x}' cy='60' r='18' \
         fill='hsl({} 70% 45%)'/></svg>",
        hue + 120
    );
    Item::Image(Picture {
        name: format!("image {k}"),
        mime: "image/svg+xml",
        bytes: svg.into_bytes(),
    })
}
