//! A made-up run for the tests: every field filled, every number invented.

use itm_core::cca::BestPoint;
use itm_core::encoders::PatchGrid;
use itm_core::learn::Effect;

use super::super::json::Numbers;
use super::super::*;
use crate::config::Claim;

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
            ci95: [d - 3.0, d + 3.0],
            p_value: if d.abs() > 3.0 { p } else { 0.4 },
            test: "paired randomisation over images, 10,000 draws".into(),
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
        paper_reference: crate::tests::paper("fne").reference(
            3,
            None,
            &["Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"].map(|row| (row, row)),
        ),
        figure: None,
        notes: vec!["The bank holds 1,024 captions: a quarter of the training set.".into()],
        seconds: 431.2,
        peak_memory_bytes: 1_360_000_000,
        config_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        data_sha256: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752".into(),
        more: Numbers::new(),
    }
}

/// Sections with pictures, whose captions try to be markup.
pub(crate) fn sections() -> Vec<Section> {
    let section = |title: &str, pictures| Section { pictures, ..Section::new(title) };
    let examples: Vec<_> = (0..12).map(example).collect();
    let found = [example(0), example(2)];
    vec![
        section(
            "Most probable false negatives",
            shown_examples(&found, AnswerNumbers::Probabilities),
        ),
        section("Words and patches", word_pictures(&pairs())),
        section("Words and regions", word_pictures(&[effects()])),
        section("Retrieved examples", shown_examples(&examples, AnswerNumbers::Scores)),
    ]
}

/// Two pairs with maps by two rows.
pub(crate) fn pairs() -> Vec<PairMaps> {
    vec![pair(PairKind::Annotated), pair(PairKind::FalseNegative)]
}

const CHOSEN: BestPoint = BestPoint { ridge_image: 0.3, ridge_text: 2.0, power: 1.25, dims: 256 };

fn row(name: &str, rsum: f64, seeds: &[u64]) -> Row {
    let kind = if [CHANCE, CCA].contains(&name) { RowKind::Baseline } else { RowKind::Trained };
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
    let trained = kind == RowKind::Trained;
    Row {
        name: name.into(),
        kind,
        protocol: "1,000 images, 5 captions each".into(),
        precision: None,
        chosen: (name == CCA).then_some(CHOSEN),
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
        truth: None,
        more: Numbers::new(),
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
    let marks = [
        PairKind::FalseNegative,
        PairKind::Annotated,
        PairKind::Asked,
        PairKind::Annotated,
        PairKind::Asked,
    ];
    let of_image = k % 3 != 2;
    let answers = (0..5).map(|i: usize| {
        let caption = Item::Caption(captions[(i + k as usize) % 5].into());
        RankedItem {
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
        name: format!("{row}, seed 0"),
        score: None,
        maps: vec![map("ball", peak), map("<cup>", 3)],
    };
    let Item::Image(picture) = picture(5) else { unreachable!("a picture") };
    PairMaps {
        picture,
        crop: None,
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
        rows: vec![RowMaps { name: "Full, seed 0".into(), score, maps }],
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
    Item::Image(Thumbnail {
        name: format!("image {k}"),
        mime: "image/svg+xml",
        bytes: svg.into_bytes(),
    })
}
