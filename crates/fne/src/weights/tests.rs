use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::golden::{close, floats, golden, integers, numbers};
use crate::statistics::Moments;
use crate::{Preset, SamplerConfig};

/// The weights of a valid pool.
fn weights(pool: &CandidatePool, rule: &SamplerConfig, seen: &Snapshot) -> Vec<f32> {
    super::weights(pool, rule, seen).unwrap()
}

fn rule(preset: Preset) -> SamplerConfig {
    SamplerConfig::preset(preset)
}

fn moments(count: u64, mean: f64, deviation: f64) -> Moments {
    let squares = deviation * deviation * (count.max(2) - 1) as f64;
    Moments { count, sum: mean * count as f64, mean, squares }
}

fn same(anchors: &[i64], candidates: &[i64]) -> Vec<bool> {
    same_image(anchors, candidates).unwrap()
}

fn seen(count: u64) -> Snapshot {
    Snapshot { positive: moments(count, 0.5, 0.1), negative: moments(2 * count, 0.2, 0.1) }
}

/// `tests/reference/fne.py`, `weights`: official and paper, n⁺ ≤ 200 and above, cut, fallback.
#[test]
fn golden_weights() {
    for case in golden()["weights"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let ids = [integers(&case["anchors"]), integers(&case["candidates"])];
        let pool = CandidatePool {
            scores: &floats(&case["scores"]),
            positive: &floats(&case["positive"]),
            excluded: &same(&ids[0], &ids[1]),
        };
        let class = |k: &str| {
            let v = numbers(&case[k]); // count, mean, deviation
            moments(v[0] as u64, v[1], v[2])
        };
        let seen = Snapshot { positive: class("seen_positive"), negative: class("seen_negative") };
        let preset = match case["preset"].as_str().unwrap() {
            "official" => Preset::Default, // the same numbers, in log-odds
            "paper" => Preset::Paper,
            other => panic!("{other}"),
        };
        let got = weights(&pool, &rule(preset), &seen);
        close(name, &got, &numbers(&case["weights"]), 2e-6);
        let hardest: Vec<i64> = pool.hardest(0.2).unwrap().iter().map(|&j| j as i64).collect();
        assert_eq!(hardest, integers(&case["hardest"]), "{name}: hardest");
    }
}

#[test]
fn trap_03_posterior_only_above_200() {
    let pool =
        CandidatePool { scores: &[0.6, 0.4], positive: &[0.7], excluded: &same(&[1], &[2, 3]) };
    let official = rule(Preset::Official);
    let (at, above) =
        (weights(&pool, &official, &seen(200)), weights(&pool, &official, &seen(201)));
    // By hand: easy exp(−0.5 · 0.1²); non-easy P(0.6) = sigmoid(−ln 9999 + 7.5).
    assert!((at[0] - 0.995_012_5).abs() < 1e-6, "{at:?}");
    let p = 1.0 / (1.0 + (9999f64.ln() - 7.5).exp());
    assert!((f64::from(above[0]) - (-0.5 * p).exp()).abs() < 1e-6, "{above:?}");
    assert!(at[0] != above[0]);
}

/// P20, by hand: statistics 0.5 ± 0.01 and 0.2 ± 0.01. At 0.9 both f32 densities are 0, P is 0/0, and the easy weight
/// exp(−0.5 · 0.2²) stays; in log-odds P is 1 and the weight is exp(−0.5). At 0.42 both give P ≈ 1.
#[test]
fn densities_in_f32_leave_far_candidates_easy() {
    let seen = Snapshot { positive: moments(300, 0.5, 0.01), negative: moments(600, 0.2, 0.01) };
    let pool =
        CandidatePool { scores: &[0.9, 0.42], positive: &[0.7], excluded: &same(&[1], &[2, 3]) };
    let (f32s, odds) = (rule(Preset::Official), rule(Preset::Default));
    assert_eq!((f32s.density, odds.density), (Density::F32, Density::LogOdds));
    let (quotient, logistic) = (weights(&pool, &f32s, &seen), weights(&pool, &odds, &seen));
    assert!((quotient[0] - (-0.02f32).exp()).abs() < 1e-6, "{quotient:?}");
    for other in [quotient[1], logistic[0], logistic[1]] {
        assert!((other - (-0.5f32).exp()).abs() < 1e-6, "{quotient:?} {logistic:?}");
    }
}

#[test]
fn trap_04_margin_cut_before_the_gate() {
    let scores = [0.3, 0.299, 0.301];
    let pool =
        CandidatePool { scores: &scores, positive: &[0.4], excluded: &same(&[1], &[2, 3, 4]) };
    let mut now = seen(1);
    now.positive.mean = f64::from(0.5f32 - 0.2f32) + 0.2; // the threshold is scores[0]
    let rho = weights(&pool, &rule(Preset::Official), &now);
    assert_eq!(rho[..2], [0.0, 0.0], "s ≤ μ⁺ − γ");
    assert!(rho[2] > 0.0);
    assert!(weights(&pool, &rule(Preset::Paper), &now).iter().all(|&w| w > 0.0));

    // Before any pair was taken μ⁺ = 0: the threshold is −γ.
    let pool = CandidatePool { scores: &[-0.3, -0.1], excluded: &same(&[1], &[2, 3]), ..pool };
    let rho = weights(&pool, &rule(Preset::Official), &Snapshot::default());
    assert!(rho[0] == 0.0 && rho[1] > 0.0);
}

#[test]
fn trap_06_same_image_is_masked_and_unwritten_rows_are_not() {
    // The anchors are two captions of image 5. The bank holds image 5 once, and an unwritten row.
    let pool = CandidatePool {
        scores: &[0.5; 8],
        positive: &[0.5, 0.5],
        excluded: &same(&[5, 5], &[5, 5, 5, -100]),
    };
    for preset in [Preset::Official, Preset::Paper, Preset::Default] {
        let rho = weights(&pool, &rule(preset), &Snapshot::default());
        for row in rho.chunks(4) {
            assert_eq!(row[..3], [0.0; 3]);
            assert!(row[3] > 0.0);
        }
    }
    assert_eq!(pool.uniform().unwrap(), [0.0, 0.0, 0.0, 1.0].repeat(2));
}

/// Equal densities leave P = p; with λ = p the candidate sits exactly on the boundary.
#[test]
fn tie_goes_where_the_preset_says() {
    let class = moments(300, 0.4, 0.1);
    let seen = Snapshot { positive: class, negative: class };
    let pool = CandidatePool { scores: &[0.7], positive: &[0.9], excluded: &same(&[1], &[2]) };
    let easy = (-0.5f64 * 0.04).exp();
    for (preset, want) in
        [(Preset::Official, easy), (Preset::Default, easy), (Preset::Paper, (-1e-4f64).exp())]
    {
        let rule = SamplerConfig { lambda: 1e-4, ..rule(preset) };
        let got = f64::from(weights(&pool, &rule, &seen)[0]);
        assert!((got - want).abs() < 1e-6, "{preset:?}: got {got}, want {want}");
    }
}

#[test]
fn trap_14_row_without_weight_falls_back() {
    let pool = CandidatePool {
        scores: &[0.1, 0.2, 0.15, /* row 1 */ -0.9, -0.9, -0.8],
        positive: &[0.3, 0.9],
        excluded: &same(&[1, 2], &[2, 1, 3]),
    };
    let mut now = Snapshot::default();
    now.positive.mean = 0.9;
    let rho = weights(&pool, &rule(Preset::Official), &now);
    assert_eq!(rho[..3], [0.0, 0.0, 1.0], "largest hinge outside the mask");
    assert_eq!(rho[3..], [1.0, 0.0, 0.0], "no active hinge: column 0, even if masked");
}

/// Every function of a pool refuses it with this line.
fn refused(pool: &CandidatePool) -> String {
    let line = super::weights(pool, &rule(Preset::Official), &Snapshot::default());
    let line = line.unwrap_err().to_string();
    assert_eq!(pool.hardest(0.2).unwrap_err().to_string(), line);
    assert_eq!(pool.uniform().unwrap_err().to_string(), line);
    line
}

#[test]
fn a_pool_that_holds_nothing_is_refused() {
    let expected = "scores: expected rows of equal length, at least one score in each";
    let empty = CandidatePool { scores: &[], positive: &[0.5], excluded: &same(&[1], &[]) };
    assert_eq!(refused(&empty), format!("{expected}, for 1 anchors, got 0 scores"));
    let nobody = CandidatePool { scores: &[], positive: &[], excluded: &[] };
    assert_eq!(refused(&nobody), format!("{expected}, for 0 anchors, got 0 scores"));
}

/// The scores and the positives give two anchors and three candidates. The error names the slice that does not fit.
#[test]
fn the_slice_that_does_not_fit_is_named() {
    let pool = CandidatePool { scores: &[0.1; 6], positive: &[0.5; 2], excluded: &[] };
    let of = |excluded| refused(&CandidatePool { excluded, ..pool });
    for excluded in [&[false; 5][..], &[false; 4]] {
        let got = excluded.len();
        assert_eq!(of(excluded), format!("mask: expected 6 values, one per score, got {got}"));
    }
    let ragged = CandidatePool { scores: &[0.1; 5], excluded: &same(&[1, 2], &[1, 2, 3]), ..pool };
    assert!(refused(&ragged).ends_with("for 2 anchors, got 5 scores"), "{}", refused(&ragged));
}

/// NaN is not a valid score, and neither is −∞, with which other programs mark excluded candidates. Here the score of an
/// excluded candidate is never read. The id −100 marks an unwritten row, so an anchor with this id is a mistake.
#[test]
fn scores_that_are_not_finite_are_refused_unless_they_are_excluded() {
    let ids = [1, 2, 3];
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let scores = [0.5, 0.4, 0.3, 0.2, 0.6, bad];
        let pool = CandidatePool {
            scores: &scores,
            positive: &[0.5, 0.6],
            excluded: &same(&ids[..2], &ids),
        };
        let want =
            format!("score of anchor 1 and candidate 2: expected a finite number, got {bad}");
        assert_eq!(refused(&pool), want);
        let excluded = CandidatePool { excluded: &same(&[1, 3], &ids), ..pool };
        let rho = weights(&excluded, &rule(Preset::Paper), &seen(300));
        assert!(rho[5] == 0.0 && rho[3] > 0.0 && rho.iter().all(|w| w.is_finite()), "{rho:?}");
        assert_eq!(excluded.hardest(0.2).unwrap()[1], 1);
        let pool = CandidatePool { scores: &[0.5; 6], positive: &[0.5, bad], ..pool };
        let want = format!("positive score of anchor 1: expected a finite number, got {bad}");
        assert_eq!(refused(&pool), want);
    }
    let line = same_image(&[1, -100], &[1, 2, -100]).unwrap_err().to_string();
    let expected = "image id of anchor 1: expected an image id, got -100";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn numbers_out_of_their_range_are_refused() {
    let pool = CandidatePool { scores: &[0.5], positive: &[0.5], excluded: &same(&[1], &[2]) };
    let line = |rule: &SamplerConfig, seen: &Snapshot| {
        super::weights(&pool, rule, seen).unwrap_err().to_string()
    };
    let of = |change: &dyn Fn(&mut SamplerConfig)| {
        let mut rule = rule(Preset::Official);
        change(&mut rule);
        line(&rule, &Snapshot::default())
    };
    let share = "expected a number above 0 and below 1";
    assert_eq!(of(&|r| r.prior = 0.0), format!("rule.prior: {share}, got 0"));
    assert_eq!(of(&|r| r.prior = 1.0), format!("rule.prior: {share}, got 1"));
    assert_eq!(of(&|r| r.lambda = 1.5), "rule.lambda: expected a number from 0 to 1, got 1.5");
    assert_eq!(of(&|r| r.tau = -1.0), "rule.tau: expected from 0 to 1e30, got -1");
    assert_eq!(of(&|r| r.alpha = f64::NAN), "rule.alpha: expected from 0 to 1e30, got NaN");
    assert_eq!(of(&|r| r.margin = -0.2), "rule.margin: expected at least 0, got -0.2");
    let mut now = seen(300);
    now.negative.mean = f64::NAN;
    let expected = "statistics.negative.mean: expected a finite number, got NaN";
    assert_eq!(line(&rule(Preset::Official), &now), expected);
    let negative = pool.hardest(-0.1).unwrap_err().to_string();
    assert_eq!(negative, "margin: expected at least 0, got -0.1");
}

proptest! {
    /// ρ is 0 or lies in [exp(min(−τ, −4α)), 1], and every row has a positive weight.
    #[test]
    fn bounds(s in vec(-1.0f32..1.0, 24), pos in vec(-1.0f32..1.0, 4), n in 0u64..400) {
        let pool = CandidatePool { scores: &s, positive: &pos, excluded: &same(&[1, 2, 3, 3], &[1, 2, 3, 3, -100, 9]), };
        for preset in [Preset::Official, Preset::Paper] {
            let rule = rule(preset);
            let rho = weights(&pool, &rule, &seen(n));
            for (i, row) in rho.chunks(6).enumerate() {
                prop_assert!(row.iter().sum::<f32>() > 0.0);
                let fallback = row.iter().filter(|&&w| w > 0.0).count() == 1;
                for (j, &w) in row.iter().enumerate() {
                    prop_assert!(fallback || w == 0.0 || !pool.excluded(i, j));
                    let floor = (-rule.tau).min(-4.0 * rule.alpha).exp() as f32;
                    prop_assert!(w == 0.0 || (w >= floor * 0.999 && w <= 1.0));
                }
            }
        }
    }

    /// A permutation of the candidates permutes the weights.
    #[test]
    fn equivariant(s in vec(-0.5f32..1.0, 5), turn in 0usize..5, n in 0u64..400) {
        let ids = [4i64, 7, 1, 9, -100];
        let turned = |v: &[f32]| { let mut v = v.to_vec(); v.rotate_left(turn); v };
        let mut other = ids;
        other.rotate_left(turn);
        let pool = CandidatePool { scores: &s, positive: &[0.6], excluded: &same(&[1], &ids), };
        let rho = weights(&pool, &rule(Preset::Paper), &seen(n));
        let scores = turned(&s);
        let pool = CandidatePool { scores: &scores, excluded: &same(&[1], &other), ..pool };
        prop_assert_eq!(weights(&pool, &rule(Preset::Paper), &seen(n)), turned(&rho));
    }
}
