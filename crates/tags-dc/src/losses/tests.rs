use burn::tensor::Device;

use super::*;

fn rows<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

fn value(loss: Tensor<1>) -> f64 {
    f64::from(host(loss.inner())[0])
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-6, "{got}, by hand {want}");
}

/// By hand, margin 0.2: 0.2 − 0.9 + 0.8 = 0.1; 0.2 − 0.9 + 0.3 is below 0; 0.2 − 0.4 + 0.6 = 0.4. The third anchor is empty.
#[test]
fn golden_hinges_and_their_gradient() {
    let scores = rows(&[0.9, 0.8, 0.3, 0.4, 0.6], [5]).require_grad();
    let triplets = [[0, 1], [0, 2], [3, 4]];
    let (loss, pulls) = hinges(scores.clone(), &triplets, &[2, 1, 0], 0.2).unwrap();
    let gradients = scores.grad(&loss.backward()).unwrap();
    close(value(loss), (0.1 / 2.0 + 0.4) / 3.0);
    assert_eq!(pulls, 2.0 / 3.0);
    let want = [-1.0 / 6.0, 1.0 / 6.0, 0.0, -1.0 / 3.0, 1.0 / 3.0];
    for (got, want) in host(gradients).into_iter().zip(want) {
        close(f64::from(got), want);
    }
}

/// By hand: 1 / (1 + 3 + 4) for the first anchor, 1 / (1 + 1) for the third; the second is empty and counts in the mean. The gradient of a
/// logit is its probability, minus 1 for the true pair. Logits far apart do not overflow.
#[test]
fn golden_cross_entropy_among_candidates_and_its_gradient() {
    let ln = |x: f32| x.ln();
    let logits = rows(&[0.0, ln(3.0), ln(4.0), 9.0, 9.0], [5]).require_grad();
    let triplets = [[0, 1], [0, 2], [3, 4]];
    let (loss, above) = cross_entropy(logits.clone(), &triplets, &[2, 0, 1]).unwrap();
    let gradients = logits.grad(&loss.backward()).unwrap();
    close(value(loss), (8f64.ln() + 2f64.ln()) / 3.0);
    assert_eq!(above, 2.0 / 3.0);
    let want = [1.0 / 8.0 - 1.0, 3.0 / 8.0, 4.0 / 8.0, 0.5 - 1.0, 0.5];
    for (got, want) in host(gradients).into_iter().zip(want) {
        close(f64::from(got), want / 3.0);
    }
    let far = cross_entropy(rows(&[-500.0, 500.0, -500.0], [3]), &[[0, 1], [0, 2]], &[2]).unwrap();
    assert_eq!((value(far.0), far.1), (1000.0, 0.5));
}

/// Trap 16: without negatives the loss is 0, and its gradient is 0.
#[test]
fn no_negative_is_no_loss() {
    let scores = rows(&[0.9], [1]).require_grad();
    let (loss, pulls) = hinges(scores.clone(), &[], &[0, 0], 0.2).unwrap();
    assert_eq!((value(loss.clone()), pulls), (0.0, 0.0));
    assert_eq!(host(scores.grad(&loss.backward()).unwrap()), [0.0]);
    let (loss, above) = cross_entropy(scores.clone(), &[], &[0, 0]).unwrap();
    assert_eq!((value(loss.clone()), above), (0.0, 0.0));
    assert_eq!(host(scores.grad(&loss.backward()).unwrap()), [0.0]);
}

#[test]
fn no_target_is_no_loss() {
    let logits = rows(&[], [0, 2]).require_grad();
    let none = correction(logits.clone(), &[], &[0]).unwrap();
    assert_eq!(value(none.clone()), 0.0);
    none.backward();
    assert_eq!(value(discrimination(logits, &[], &[], [1.0, 0.11]).unwrap()), 0.0);
}

/// By hand: of the logits 0 and ln 3, the second has probability 3/4. Anchors of one and of two rows have equal weight.
#[test]
fn golden_means_are_within_an_anchor_first() {
    let three = 3f32.ln();
    let logits = rows(&[0.0, three, 0.0, three, 0.0, three], [3, 2]);
    let [rare, often] = [4f64.ln(), (4.0f64 / 3.0).ln()];
    let loss = masked_words(logits.clone(), &[0, 1, 0], &[1, 2]).unwrap();
    close(value(loss), (rare + (often + rare) / 2.0) / 2.0);
    // Eq. 8: each class has a weight, and the mean is not divided by the weights. Trap 21.
    let loss = discrimination(logits.clone(), &[0, 1, 1], &[3], [1.0, 0.11]).unwrap();
    close(value(loss), (rare + 0.11 * 2.0 * often) / 3.0);
    let loss = correction(logits, &[0, 1, 0], &[3]).unwrap();
    close(value(loss), (2.0 * rare + often) / 3.0);
}

/// A probability below 1e-10 gives no gradient, a probability above it does.
#[test]
fn a_hopeless_word_has_a_bounded_loss_without_a_gradient() {
    for (logit, want) in [(900.0f32, 1e10f64.ln()), (20.0, 20.0)] {
        let logits = rows(&[0.0, logit], [1, 2]).require_grad();
        let loss = correction(logits.clone(), &[0], &[1]).unwrap();
        let gradient = host(logits.grad(&loss.backward()).unwrap());
        assert!((value(loss) - want).abs() < 1e-4);
        assert_eq!(gradient == [0.0, 0.0], logit > 100.0, "{gradient:?}");
    }
    let none = rows(&[f32::NEG_INFINITY, 0.0], [1, 2]);
    assert!((value(correction(none, &[0], &[1]).unwrap()) - 1e10f64.ln()).abs() < 1e-4);
}

#[test]
fn scores_and_logits_that_are_no_numbers_are_refused() {
    let line = |error: Error| error.to_string();
    for (bad, said) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let scores = rows(&[0.5, bad], [2]);
        let want = format!("score 1: expected a finite number, got {said}");
        assert_eq!(line(hinges(scores, &[[0, 1]], &[1], 0.2).unwrap_err()), want);
        // The bound of Eq. 8 and 9 would turn such values into a finite loss.
        let logits = || rows(&[0.0, 1.0, 0.0, bad], [2, 2]);
        let want = "logits of target 1: expected numbers whose softmax gives the target a finite log-probability, got NaN";
        let all = [
            masked_words(logits(), &[0, 0], &[2]),
            discrimination(logits(), &[0, 0], &[2], [1.0, 1.0]),
            correction(logits(), &[0, 0], &[2]),
        ];
        all.into_iter().for_each(|loss| assert_eq!(line(loss.unwrap_err()), want));
    }
    let never = rows(&[f32::NEG_INFINITY, 0.0], [1, 2]);
    assert!(line(masked_words(never, &[0], &[1]).unwrap_err()).ends_with("got -inf"));
}

#[test]
fn rows_targets_and_weights_must_fit() {
    let line = |loss: Result<Tensor<1>>| loss.unwrap_err().to_string();
    let (scores, logits) = (|| rows(&[0.5, 0.5], [2]), || rows(&[0.0; 6], [2, 3]));
    let hinge = |triplets: &[[usize; 2]], counts: &[usize], margin: f64| {
        line(hinges(scores(), triplets, counts, margin).map(|(loss, _)| loss))
    };
    let outside = "triplet 1: expected rows below 2, the number of scores, got 2";
    assert_eq!(hinge(&[[0, 1], [0, 2]], &[2], 0.2), outside);
    assert_eq!(hinge(&[[0, 1]], &[2], 0.2), "sum of per_anchor: expected 1, the rows, got 2");
    assert!(hinge(&[[0, 1]], &[usize::MAX, 2], 0.2).ends_with("more than can be counted"));
    for margin in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(
            hinge(&[[0, 1]], &[1], margin).starts_with("margin: expected a number of at least 0")
        );
    }
    let few = "targets: expected 2, one per row of logits, got 1";
    assert_eq!(line(correction(logits(), &[0], &[1])), few);
    assert_eq!(line(masked_words(logits(), &[0, 3], &[2])), "target 1: expected below 3, got 3");
    let wide = discrimination(logits(), &[0, 1], &[2], [1.0, 1.0]);
    assert_eq!(line(wide), "logits of a token: expected 2 of them, got 3");
    let two = || rows(&[0.0; 4], [2, 2]);
    let class = discrimination(two(), &[0, 2], &[2], [1.0, 1.0]);
    assert_eq!(line(class), "target 1: expected below 2, got 2");
    let weight = discrimination(two(), &[0, 1], &[2], [1.0, f64::NAN]);
    assert_eq!(line(weight), "weight of class 1: expected a number of at least 0, got NaN");
}
