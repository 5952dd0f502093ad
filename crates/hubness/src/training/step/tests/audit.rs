//! What a step reports about its negatives.

use itm_core::Relevance;
use itm_core::audit::{Draws, NegativeSet};

use super::*;
use crate::losses::hub_factors;

fn observed(config: &HalConfig, which: &[usize]) -> (Step, [NegativeSet; 2]) {
    let step = with_batch(which, |b| hal(config).step(b, 1, Observe::Negatives)).unwrap();
    let negatives = step.negatives.clone().unwrap();
    (step, negatives)
}

/// The loss is the sum of the hinges of the negatives that have a weight. For MAX, only the hardest negatives have one.
#[test]
fn weights_and_hardest_are_those_of_the_loss() {
    for objective in [Objective::Sum, Objective::Max, Objective::Hal, Objective::MaxHal] {
        let config = tiny(objective);
        let (report, sides) = observed(&config, &ALL);
        let factors = |n: &NegativeSet| -> Vec<f32> {
            let scores = n.scores.iter().copied();
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
            let s = |n: usize| f64::from(side.scores[n] * w[n]);
            for (n, &weight) in side.weights.iter().enumerate() {
                if weight > 0.0 && !side.excluded[n] {
                    assert!((weight - w[n]).abs() < 1e-6, "{objective:?}");
                    loss += 0.2 - s(n / 6 * 7) + s(n);
                    active += 1;
                    let i = n / 6;
                    let hardest = (0..6).all(|k| k == i || s(i * 6 + k) <= s(n) + 1e-9);
                    assert!(hardest || matches!(objective, Objective::Sum | Objective::Hal));
                }
            }
        }
        assert!((loss - report.loss).abs() < 1e-4, "{objective:?}: {loss} of {}", report.loss);
        let terms = if matches!(objective, Objective::Sum | Objective::Hal) { 60.0 } else { 12.0 };
        assert!((active as f64 / terms - report.active).abs() < 1e-9, "{objective:?}");
    }
}

/// Each caption is true of its own image alone.
fn truth() -> Relevance {
    let mut texts = vec![vec![]; 6];
    let captions = data().image_ids.into_iter().zip(0..);
    captions.for_each(|(image, caption)| texts[image as usize].push(caption));
    Relevance::new(8, texts)
}

/// Pairs 0 and 1 belong to one image. Unless masked, they are negatives of each other, and false negatives.
#[test]
fn siblings_are_false_negatives_unless_they_are_masked() {
    let truth = truth();
    for objective in [Objective::Sum, Objective::Hal, Objective::HalAaaiLocal] {
        let mut config = tiny(objective);
        let (_, sides) = observed(&config, &[0, 1, 2]);
        for side in &sides {
            // Anchors 0 and 1: one of two negatives is true; anchor 2: none.
            let uniform = side.draws(&truth).uniform; // summed over three anchors
            assert!((uniform - 1.0).abs() < 1e-12);
            // By weight: the sibling's share of the pull, over the anchors that have any pull.
            let weighted = side.draws(&truth).drawn;
            assert!((0.0..=3.0).contains(&weighted));
        }
        config.loss.mask_same_image = true;
        let (_, sides) = observed(&config, &[0, 1, 2]);
        let masked = objective != Objective::HalAaaiLocal;
        for side in &sides {
            let uniform = side.draws(&truth).uniform;
            assert_eq!(uniform == 0.0, masked, "{objective:?}");
        }
        let (_, [i2t, _]) = observed(&config, &[0, 1]);
        assert_eq!(i2t.excluded == [true; 4], masked, "no negatives");
    }
}

/// A step reports its negatives only if it is observed. The false ones among them are counted by their weights.
#[test]
fn a_step_tells_its_negatives_if_asked() {
    let (truth, config) = (truth(), tiny(Objective::Hal));
    let step = |observe| with_batch(&[0, 1, 2], |b| hal(&config).step(b, 0, observe)).unwrap();
    let told = step(Observe::Negatives);
    let sides = told.negatives.clone().unwrap();
    let draws = Draws::of(&sides, &truth);
    assert_eq!((draws.anchors, draws.uniform), (6.0, 2.0));
    // Anchors 0 and 1 of each direction have one false negative: its factor over the factors of all active hinges.
    let mut want = 0.0;
    for side in &sides {
        let w = |i: usize, j: usize| f64::from(side.weights[i * 3 + j]);
        let rows = [(w(0, 1), w(0, 2)), (w(1, 0), w(1, 2)), (0.0, w(2, 0) + w(2, 1))];
        let shares = rows.into_iter().filter(|(t, f)| t + f > 0.0).map(|(t, f)| t / (t + f));
        let shares: Vec<f64> = shares.collect();
        want += 3.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    }
    assert!(want > 0.0 && (draws.drawn - want).abs() < 1e-9, "{draws:?}, not {want}");
    assert_eq!(step(Observe::Off), Step { negatives: None, ..told });
}
