//! What a step reports about its negatives.

use super::*;
use crate::losses::hub_factors;
use crate::training::objective::Negatives;

fn observed(config: &HalConfig, which: &[usize]) -> (Step, [Negatives; 2]) {
    let nothing = Relevance::new(0, vec![]);
    let observe = Observe::Against(&nothing);
    let (step, negatives) = with_batch(which, |b| hal(config).step_by(b, 1, observe)).unwrap();
    (step, negatives.unwrap())
}

/// The loss is the sum of the hinges of the negatives that have a weight. For MAX, only the hardest negatives have one.
#[test]
fn weights_and_hardest_are_those_of_the_loss() {
    for objective in [Objective::Sum, Objective::Max, Objective::Hal, Objective::MaxHal] {
        let config = tiny(objective);
        let (report, sides) = observed(&config, &ALL);
        let factors = |n: &Negatives| -> Vec<f32> {
            let scores = n.observed.scores.iter().copied();
            let b = 6;
            let data = burn::tensor::TensorData::new(scores.collect::<Vec<_>>(), [b, b]);
            let s = burn::tensor::Tensor::<2>::from_data(data, &Device::flex());
            match objective {
                Objective::Hal | Objective::MaxHal => host(hub_factors(s, &config.hubs)),
                _ => vec![1.0; b * b],
            }
        };
        let (mut loss, mut active) = (0.0, 0usize);
        for side in &sides {
            let w = factors(side);
            let s = |n: usize| f64::from(side.observed.scores[n] * w[n]);
            for (n, &weight) in side.weights.iter().enumerate() {
                if weight > 0.0 {
                    assert!((weight - w[n]).abs() < 1e-6, "{objective:?}");
                    loss += 0.2 - s(n / 6 * 7) + s(n);
                    active += 1;
                    let hardest = side.observed.chosen[n / 6] == n % 6;
                    assert!(hardest || matches!(objective, Objective::Sum | Objective::Hal));
                }
            }
            for i in 0..6 {
                let hardest = side.observed.chosen[i];
                assert!((0..6).all(|j| j == i || s(i * 6 + j) <= s(i * 6 + hardest) + 1e-9));
            }
        }
        assert!((loss - report.loss).abs() < 1e-4, "{objective:?}: {loss} of {}", report.loss);
        let terms = if matches!(objective, Objective::Sum | Objective::Hal) { 60.0 } else { 12.0 };
        assert!((active as f64 / terms - report.active).abs() < 1e-9, "{objective:?}");
    }
}

/// Pairs 0 and 1 belong to one image. Unless masked, they are negatives of each other, and false negatives.
#[test]
fn siblings_are_false_negatives_unless_they_are_masked() {
    let data = data();
    let truth = |image: i64, caption: i64| data.image_ids[caption as usize] == image;
    for objective in [Objective::Sum, Objective::Hal, Objective::HalAaaiLocal] {
        let mut config = tiny(objective);
        let (_, sides) = observed(&config, &[0, 1, 2]);
        for side in &sides {
            // Anchors 0 and 1: one of two negatives is true; anchor 2: none.
            let uniform = side.observed.uniform_true_share(&truth);
            assert!((uniform - 1.0 / 3.0).abs() < 1e-12);
            // By weight: the sibling's share of the pull, over the anchors that have any pull.
            let weighted = side.observed.expected_true_share(&side.weights, &truth);
            assert!((0.0..=1.0).contains(&weighted));
        }
        config.loss.mask_same_image = true;
        let (_, sides) = observed(&config, &[0, 1, 2]);
        let masked = objective != Objective::HalAaaiLocal;
        for side in &sides {
            let uniform = side.observed.uniform_true_share(&truth);
            assert_eq!(uniform == 0.0, masked, "{objective:?}");
        }
        let (_, [i2t, _]) = observed(&config, &[0, 1]);
        assert_eq!(i2t.observed.chosen == [0, 1], masked, "their own columns: no negatives");
        assert!(!masked || i2t.weights == [0.0; 4]);
    }
}

/// A step reports the shares of its negatives only with `Observe::Against`.
#[test]
fn a_step_tells_its_draws_if_asked() {
    let (data, config) = (data(), tiny(Objective::Hal));
    let mut texts = vec![vec![]; 6];
    data.image_ids.iter().enumerate().for_each(|(c, &i)| texts[i as usize].push(c as u32));
    let truth = Relevance::new(8, texts);
    let (_, sides) = observed(&config, &[0, 1, 2]);
    let step = |observe| with_batch(&[0, 1, 2], |b| hal(&config).step(b, 0, observe)).unwrap();
    let told = step(Observe::Against(&truth));
    let mut want = itm_core::audit::Draws::default();
    for side in &sides {
        let mut draws = side.observed.draws(0.2, &truth.by_id());
        draws.drawn = 3.0 * side.observed.expected_true_share(&side.weights, &truth.by_id());
        want.add(&draws);
    }
    assert!(want.uniform > 0.0 && told.candidates.is_none());
    assert_eq!(told.draws, Some(want));
    assert_eq!(step(Observe::Off), Step { draws: None, ..told });
}
