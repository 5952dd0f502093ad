use burn::tensor::{Device, Tensor, TensorData};
use itm_core::host;
use itm_kernels::CrossProducts;
use proptest::prelude::*;

use super::*;
use crate::{CrossScores, NaafConfig, Preset};

const REGIONS: [usize; 3] = [5, 5, 4];
const WORDS: [usize; 3] = [3, 1, 6];

fn naaf(change: impl Fn(&mut NegativeAware)) -> Attention {
    let mut naaf = NegativeAware::preset(Preset::Default);
    change(&mut naaf);
    Attention::Naaf(naaf)
}

fn unit_rows(n: usize, width: usize, seed: u64) -> Vec<f32> {
    let unit = |k| itm_kernels::random::unit(seed, k as u64);
    let mut values: Vec<f32> = (0..n * width).map(|k| unit(k) - 0.42).collect();
    for row in values.chunks_mut(width) {
        row[0] += 0.5; // words are alike: propagation has something to share
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
    }
    values
}

/// Scores as in training: padded tensors, one boundary per text.
fn scores(attention: &Attention, phase: Phase, thresholds: &[f32]) -> Vec<f32> {
    let device = Device::flex();
    let tensor = |n: usize, l: usize, seed| {
        Tensor::<3>::from_data(TensorData::new(unit_rows(n * l, 7, seed), [n, l, 7]), &device)
    };
    let made = CrossProducts::new(tensor(3, 5, 1), &REGIONS, tensor(3, 6, 2), &WORDS);
    host(made.scores(&attention.rule(phase), thresholds))
}

const T: [f32; 3] = [0.7; 3];

/// Only the relevance, by the equation in double precision, for 6 words and 5 regions. The norm is over the words; a norm over the
/// regions gives another number.
#[test]
fn trap_08_the_norm_of_relevance_is_over_the_words() {
    let (n, m, d) = (5, 6, 7);
    let (regions, words) = (unit_rows(n, d, 1), unit_rows(m, d, 2));
    let s = |i: usize, j: usize| -> f64 {
        (0..d).map(|k| f64::from(words[i * d + k]) * f64::from(regions[j * d + k])).sum()
    };
    let a = |i: usize, j: usize| if s(i, j) > 0.0 { s(i, j) } else { 0.1 * s(i, j) };
    let by_hand = |over_words: bool| -> f64 {
        let norm = |i: usize, j: usize| -> f64 {
            let squares: f64 = match over_words {
                true => (0..m).map(|i| a(i, j).powi(2)).sum(),
                false => (0..n).map(|j| a(i, j).powi(2)).sum(),
            };
            squares.sqrt() + 1e-8
        };
        let of_word = |i: usize| {
            let e = |j: usize| (20.0 * a(i, j) / norm(i, j)).exp();
            (0..n).map(|j| e(j) * s(i, j)).sum::<f64>() / (0..n).map(e).sum::<f64>()
        };
        (0..m).map(of_word).sum::<f64>() / m as f64
    };
    let mut rule = NaafConfig::preset(Preset::Default).attention.rule(Phase::Training);
    (rule.negative, rule.cosine) = (None, None);
    let [v, u] = [(regions.clone(), n), (words.clone(), m)]
        .map(|(rows, count)| itm_kernels::cross_attention::ItemRows::new(rows, d, &[count]));
    let got = itm_kernels::cross_attention::scores(&v, &u, [0..1, 0..1], 0.0, &rule)[0];
    assert!((f64::from(got) - by_hand(true)).abs() < 1e-5, "{got} for {}", by_hand(true));
    assert!((by_hand(false) - by_hand(true)).abs() > 1e-3, "the other axis gives the same number");
}

#[test]
fn trap_09_relevance_does_not_see_the_boundary() {
    let relevance_alone = |t: f32| {
        let mut rule = NaafConfig::preset(Preset::Default).attention.rule(Phase::Training);
        (rule.negative, rule.cosine) = (None, None);
        let d = 7;
        let words = unit_rows(6, d, 2);
        let [v, u] = [(unit_rows(5, d, 1), 5), (words, 6)]
            .map(|(rows, n)| itm_kernels::cross_attention::ItemRows::new(rows, d, &[n]));
        itm_kernels::cross_attention::scores(&v, &u, [0..1, 0..1], t, &rule)
    };
    assert_eq!(relevance_alone(0.0), relevance_alone(0.9));
    // The negative branch holds −t. If t is above all products, the branch falls as much as t rises.
    let at = |t: f32| scores(&naaf(|_| ()), Phase::Training, &[t; 3]);
    let (low, high) = (at(1.0), at(1.25));
    for (low, high) in low.iter().zip(&high) {
        assert!((low - high - 0.25).abs() < 1e-5, "{low} and {high}");
    }
    assert_ne!(at(0.3), at(0.4), "features and negatives see it");
}

#[test]
fn trap_10_training_has_no_intra_propagation() {
    let with = naaf(|_| ());
    let without = naaf(|naaf| naaf.intra = Intra::Off);
    assert_eq!(scores(&with, Phase::Training, &T), scores(&without, Phase::Inference, &T));
    assert_ne!(scores(&with, Phase::Inference, &T), scores(&with, Phase::Training, &T));
    // The phases differ only in the negative branch.
    let [a, b] = [Phase::Training, Phase::Inference]
        .map(|phase| Some(with.rule(phase)).map(|r| (r.cosine, r.relevance, r.pool)));
    assert_eq!(a, b);
    // A caption of one word has nothing to share.
    let column =
        |phase| scores(&with, phase, &T)[1..].iter().step_by(3).copied().collect::<Vec<_>>();
    assert_eq!(column(Phase::Training), column(Phase::Inference));
}

/// The mask comes from the propagated mean, the value from the word itself. So a word above the boundary may pass the mask.
#[test]
fn trap_11_the_mask_alone_may_leave_positive_effects() {
    // The cosine of u0 and the region is .9; for u1 (cosine .98 with u0) and u2 it is far less. The mean is below t = .85, u0 above.
    let d = 3;
    let unit = |v: [f32; 3]| {
        let n = v.iter().map(|x| x * x).sum::<f32>().sqrt();
        v.map(|x| x / n)
    };
    let words = [unit([0.9, 0.44, 0.0]), unit([0.75, 0.66, 0.0]), unit([0.7, 0.7, 0.1])].concat();
    let score = |attention: &Attention| {
        let rows =
            |values: Vec<f32>, n| itm_kernels::cross_attention::ItemRows::new(values, d, &[n]);
        let mut rule = attention.rule(Phase::Inference);
        (rule.cosine, rule.relevance) = (None, None);
        let (v, u) = (rows(vec![1.0, 0.0, 0.0], 1), rows(words.clone(), 3));
        itm_kernels::cross_attention::scores(&v, &u, [0..1, 0..1], 0.85, &rule)[0]
    };
    let off = score(&naaf(|naaf| naaf.intra = Intra::Off));
    let mask = score(&naaf(|_| ()));
    let both = score(&naaf(|naaf| naaf.intra = Intra::ValueAndMask));
    assert!(mask > off + 0.01, "x > 0 of the first word counts: {mask} and {off}");
    assert!(both < 0.0 && both != mask && both != off);
}

#[test]
fn trap_04_a_boundary_above_all_leaves_nothing_but_relevance() {
    let none = naaf(|naaf| naaf.negative = false);
    let mut rule = none.rule(Phase::Training);
    rule.relevance = None;
    let rows =
        |n, seed| itm_kernels::cross_attention::ItemRows::new(unit_rows(n, 7, seed), 7, &[n]);
    let score =
        itm_kernels::cross_attention::scores(&rows(5, 1), &rows(6, 2), [0..1, 0..1], 1.0, &rule);
    assert_eq!(score, [0.0]);
}

#[test]
fn every_option_changes_the_scores() {
    let base = scores(&naaf(|_| ()), Phase::Inference, &T);
    let changes: [(&str, Attention); 6] = [
        ("negative", naaf(|naaf| naaf.negative = false)),
        ("masks", naaf(|naaf| naaf.masks = false)),
        ("scale", naaf(|naaf| naaf.scale = 9.0)),
        ("relevance_leak", naaf(|naaf| naaf.relevance_leak = 0.0)),
        ("intra", naaf(|naaf| naaf.intra = Intra::ValueAndMask)),
        ("intra_scale", naaf(|naaf| naaf.intra_scale = 1.0)),
    ];
    for (name, attention) in &changes {
        assert_ne!(scores(attention, Phase::Inference, &T), base, "{name}");
    }
    let scan = |change: &dyn Fn(&mut Scan)| {
        let mut scan = Scan::text_to_image(Pooling::LogSumExp);
        change(&mut scan);
        scores(&Attention::Scan(scan), Phase::Training, &T)
    };
    let base = scan(&|_| ());
    let changes: [&dyn Fn(&mut Scan); 9] = [
        &|scan| scan.asks = Asks::Regions,
        &|scan| scan.raw_norm = RawNorm::L2,
        &|scan| scan.raw_norm = RawNorm::Clipped,
        &|scan| scan.raw_norm = RawNorm::Off,
        &|scan| scan.lambda_softmax = 4.0,
        &|scan| scan.lambda_lse = 20.0,
        &|scan| scan.pooling = Pooling::Max,
        &|scan| scan.pooling = Pooling::Sum,
        &|scan| scan.pooling = Pooling::Mean,
    ];
    for (k, change) in changes.iter().enumerate() {
        assert_ne!(scan(change), base, "change {k}");
    }
    // SCAN has no boundary.
    let scan = Attention::Scan(Scan::text_to_image(Pooling::Mean));
    assert_eq!(
        scores(&scan, Phase::Training, &[0.9; 3]),
        scores(&scan, Phase::Training, &[0.0; 3])
    );
}

#[test]
fn values_out_of_range_are_named() {
    let line = naaf(|naaf| naaf.scale = 0.0).check().unwrap_err().to_string();
    assert_eq!(line, "attention.scale: expected from 1e-30 to 1e30, got 0");
    assert!(naaf(|naaf| naaf.relevance_leak = 2.0).check().is_err());
    let scan = Scan { lambda_lse: f64::INFINITY, ..Scan::image_to_text(Pooling::Mean) };
    let line = Attention::Scan(scan).check().unwrap_err().to_string();
    assert_eq!(line, "attention.lambda_lse: expected from 1e-30 to 1e30, got inf");
}

#[test]
fn names_are_those_of_the_program() {
    let scan = Attention::Scan(Scan::image_to_text(Pooling::LogSumExp));
    let text = serde_json::to_string(&scan).unwrap();
    let want = r#"{"kind":"scan","asks":"regions","raw_norm":"clipped_l2norm","lambda_softmax":4.0,"pooling":"log_sum_exp","lambda_lse":5.0}"#;
    assert_eq!(text, want);
    assert_eq!(serde_json::from_str::<Attention>(&text).unwrap(), scan);
}

proptest! {
    /// A repeated caption has the same mean over its words, and twice the sum. Also `Max ≤ LSE ≤ Max + ln(w) / λ₂`.
    #[test]
    fn pooling_keeps_its_bounds(seed in 0u64..500, words in 1usize..9) {
        let (v, w) = (unit_rows(5, 7, seed), unit_rows(words, 7, seed + 1));
        let score = |pooling, words: Vec<f32>| {
            // Without a norm over the words, which the repetition would change.
            let scan = Scan { raw_norm: RawNorm::Clipped, ..Scan::text_to_image(pooling) };
            let count = words.len() / 7;
            let scores = CrossScores::new((v.clone(), &[5]), (words, &[count]), 7, 0.0, &Attention::Scan(scan)).unwrap();
            f64::from(itm_core::scored::Scored::matrix(&scores).unwrap().values()[0])
        };
        let twice = [w.clone(), w.clone()].concat();
        let once = |pooling| score(pooling, w.clone());
        let (max, lse) = (once(Pooling::Max), once(Pooling::LogSumExp));
        prop_assert!(max - 1e-5 <= lse && lse <= max + (words as f64).ln() / 6.0 + 1e-5);
        prop_assert!((score(Pooling::Mean, twice.clone()) - once(Pooling::Mean)).abs() < 1e-5);
        prop_assert!((score(Pooling::LogSumExp, twice) - lse - 2f64.ln() / 6.0).abs() < 1e-5);
    }
}
