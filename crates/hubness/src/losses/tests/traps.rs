//! The traps of the specification that concern losses, each by its name.

use super::*;

const PAIR: HubOptions = HubOptions {
    neighbours: 1,
    reweight: ReweightScope::All,
    exclude: Exclusion::Pair,
    detach: false,
};

/// By hand, k = 1:
/// ```text
/// S = .5 .4 .1     entry (0, 1), pair:      nearest other text of image 0: .5 (text 0), nearest other image of text 1: .3
///     .2 .3 .0               positive: image 0 without text 0: .4; text 1 without image 1: .4
///     .0 .1 .6     entry (1, 1), pair:      .2 and .4;   positive: .2 and .4
/// ```
#[test]
fn trap_exclusion_by_entry_vs_by_positive_in_hal() {
    let s = square(&[0.5, 0.4, 0.1, 0.2, 0.3, 0.0, 0.0, 0.1, 0.6]);
    let pair = host(hub_factors(s.clone(), &PAIR));
    let positive = host(hub_factors(s, &HubOptions { exclude: Exclusion::Positive, ..PAIR }));
    let exp = |x: f64| x.exp();
    close("pair", &[pair[1], pair[4]], &[exp(0.8), exp(0.6)], 1e-6);
    close("positive", &[positive[1], positive[4]], &[exp(0.8), exp(0.6)], 1e-6);
    // (0, 2): .5 and .6 by pair (text 2's own image 2 is another image); .4 and .1 by positive.
    close("(0, 2)", &[pair[2], positive[2]], &[exp(0.5 + 0.6), exp(0.4 + 0.1)], 1e-6);
    for i in 0..3 {
        for t in (0..3).filter(|&t| t != i && (i, t) != (0, 1)) {
            let n = i * 3 + t;
            assert!((pair[n] - positive[n]).abs() > 1e-3, "entry ({i}, {t})");
        }
        let n = i * 4;
        assert!((pair[n] - positive[n]).abs() < 1e-6, "the diagonal leaves out the same");
    }
}

/// b = 3, k = 10: the mean over the other two, by hand for the entry (0, 0): (.4 + .1)/2 + (.2 + .0)/2.
#[test]
fn trap_dividing_by_k_rather_than_by_the_neighbours_there_are() {
    let s = [0.5, 0.4, 0.1, 0.2, 0.3, 0.0, 0.0, 0.1, 0.6];
    for exclude in [Exclusion::Pair, Exclusion::Positive] {
        let of =
            |neighbours| host(hub_factors(square(&s), &HubOptions { neighbours, exclude, ..PAIR }));
        close("k = 10", &of(10)[..1], &[0.35f64.exp()], 1e-6);
        assert_eq!(of(10), of(2));
    }
}

/// Text 0 is near every image. It weighs more than a text with the same score that is far from the other images.
#[test]
fn trap_top_k_selecting_distances_instead_of_similarities() {
    #[rustfmt::skip]
    let s = [
        0.7, 0.1, 0.0, 0.3,
        0.6, 0.5, 0.0, 0.1,
        0.6, 0.0, 0.5, 0.1,
        0.3, 0.1, 0.1, 0.8,
    ];
    for exclude in [Exclusion::Pair, Exclusion::Positive] {
        let w = host(hub_factors(square(&s), &HubOptions { neighbours: 2, exclude, ..PAIR }));
        let mut less = s;
        (less[8], less[12]) = (-0.6, -0.3); // text 0 is no hub now
        let lower =
            host(hub_factors(square(&less), &HubOptions { neighbours: 2, exclude, ..PAIR }));
        assert!(w[4] > lower[4] + 0.1, "{} falls to {}", w[4], lower[4]);
    }
}

/// Two copies of a batch side by side have twice the loss, plus the cross terms.
#[test]
fn trap_dividing_sum_by_b() {
    let s = [0.5, 0.45, 0.2, 0.4, 0.3, 0.35, 0.2, 0.25, 0.1];
    let twice = |cross: f32| -> Vec<f32> {
        let at = |i: usize, t: usize| if i / 3 == t / 3 { s[i % 3 * 3 + t % 3] } else { cross };
        (0..36).map(|n| at(n / 6, n % 6)).collect()
    };
    let of = |s: &[f32]| value_and_gradient(s, |s| total(sum(s, MARGIN, Siblings::Negatives))).0;
    let one = f64::from(of(&s));
    close("far apart", &[of(&twice(-2.0))], &[2.0 * one], 1e-6);
    // Cross terms of 0.2: each anchor meets three, [0.2 − p + 0.2]₊ with p = 0.5, 0.3, 0.1.
    let cross = 2.0 * 2.0 * 3.0 * (0.0 + 0.1 + 0.3);
    close("cross terms", &[of(&twice(0.2))], &[2.0 * one + cross], 1e-6);
}

/// Two negatives share the largest hinge: only the first gets the gradient.
#[test]
fn trap_max_spreading_gradient_over_ties() {
    #[rustfmt::skip]
    let s = [
        0.5, 0.25, 0.5, 0.5,
        0.0, 9.0, 0.0, 0.0,
        0.0, 0.0, 9.0, 0.0,
        0.0, 0.0, 0.0, 9.0,
    ];
    let loss = |s| {
        let [i2t, _] = max(s, MARGIN, Siblings::Negatives);
        i2t.sum()
    };
    let (value, grad) = value_and_gradient(&s, loss);
    close("MAX", &[value], &[0.2], 1e-6);
    assert_eq!(grad[..4], [-1.0, 0.0, 1.0, 0.0]);
    // Through Eq. 4 too: reweighted scores that tie.
    let constants = HubOptions { detach: true, neighbours: 3, ..PAIR };
    let (_, grad) = value_and_gradient(&[0.25; 9], |s| {
        let [i2t, _] = max_hal(s, MARGIN, Siblings::Negatives, &constants);
        i2t.sum()
    });
    let support: Vec<bool> = grad.iter().map(|&g| g > 0.0).collect();
    assert_eq!(support, [false, true, false, true, false, false, true, false, false]);
}

/// A dominated pair in the batch: value and gradient 0, all gradients finite.
#[test]
fn trap_order_similarity_nan_gradient() {
    let images = matrix(&[0.9, 0.8, 0.1, 0.2], 2);
    let texts = matrix(&[0.5, 0.8, 0.4, 0.1], 2);
    let scores = || order_similarity(images.clone(), texts.clone());
    let values = host(scores());
    assert_eq!((values[0].to_bits(), values[1].to_bits()), (0, 0), "{values:?}");
    let own = host(images.grad(&scores().narrow(0, 0, 1).sum().backward()).unwrap());
    assert_eq!(own, [0.0; 4], "image 0 dominates both texts");
    for loss in [total(sum(scores(), MARGIN, Siblings::Negatives)), scores().sum()] {
        let grads = loss.backward();
        for x in [&images, &texts] {
            let grad = host(x.grad(&grads).unwrap());
            assert!(grad.iter().all(|g| g.is_finite()), "{grad:?}");
        }
    }
}

#[test]
fn one_pair_alone_has_no_loss() {
    for loss in [
        total(sum(square(&[0.3]), MARGIN, Siblings::Negatives)),
        total(max(square(&[0.3]), MARGIN, Siblings::Negatives)),
        total(hal(square(&[0.3]), MARGIN, Siblings::Negatives, &HubOptions::default())),
        total(max_hal(square(&[0.3]), MARGIN, Siblings::Negatives, &HubOptions::default())),
    ] {
        assert_eq!(host(loss), [0.0]);
    }
    assert_eq!(host(hub_factors(square(&[0.3]), &HubOptions::default())), [1.0]);
}

/// All pairs of a batch from one image: no negatives, no loss, no NaN.
#[test]
fn a_batch_of_one_image_has_no_negatives_where_siblings_are_masked() {
    let s = [0.5, 0.6, 0.7, 0.4];
    for loss in [sum, max] {
        let (value, grad) =
            value_and_gradient(&s, |s| total(loss(s, MARGIN, Siblings::Masked(&[5, 5]))));
        assert_eq!((value, grad), (0.0, vec![0.0; 4]));
    }
}

/// A negative score among positive neighbours gets more negative, as Eq. 4 says.
#[test]
fn a_negative_score_in_a_crowd_falls() {
    let s = [0.5, -0.2, 0.4, 0.6];
    let of = host(reweighted(square(&s), &PAIR));
    assert!(of[1] < -0.2 * 1.5, "{of:?}");
}

#[test]
fn a_nan_reaches_the_loss() {
    let s = [0.5, f32::NAN, 0.1, 0.3, 0.4, 0.2, 0.0, 0.1, 0.6];
    let (value, _) = value_and_gradient(&s, |s| {
        total(hal(s, MARGIN, Siblings::Negatives, &HubOptions::default()))
    });
    assert!(value.is_nan());
    let value = host(aaai_local(square(&s), &AaaiOptions::COCO).mean())[0];
    assert!(value.is_nan());
}

#[test]
fn a_bank_without_entries_is_the_local_form() {
    let s = [0.5, 0.45, 0.1, 0.3];
    let of_bank = host(aaai_bank(
        square(&s),
        &BankScores::default(),
        &AaaiOptions::COCO,
        &BankOptions::default(),
    ));
    assert_eq!(of_bank, host(aaai_local(square(&s), &AaaiOptions::COCO)));
}

#[test]
#[should_panic(expected = "to_texts: 3 scores of 2 pairs and 2 entries")]
fn scores_of_another_bank_are_refused() {
    let bank = BankScores { entries: 2, to_texts: vec![0.0; 3], to_images: vec![0.0; 4] };
    BankWeights::new(&[0.5, 0.1, 0.1, 0.5], &bank, &BankOptions::default());
}

#[test]
#[should_panic(expected = "in-batch scores of shape [2, 3] are not square")]
fn scores_that_are_not_square_are_refused() {
    reweighted(matrix(&[0.0; 6], 3), &PAIR);
}

#[test]
#[should_panic(expected = "neighbours: expected at least 1, got 0")]
fn no_neighbour_is_refused() {
    reweighted(square(&[0.5; 4]), &HubOptions { neighbours: 0, ..PAIR });
}

#[test]
#[should_panic(expected = "local_alpha: expected a finite number above 0, got 0")]
fn no_slope_is_refused() {
    aaai_local(square(&[0.5; 4]), &AaaiOptions { local_alpha: 0.0, local_ep: 0.3 });
}

#[test]
#[should_panic(expected = "local_alpha: expected a finite number above 0, got 0.000")]
fn a_slope_below_f32_is_refused() {
    aaai_local(square(&[0.5; 4]), &AaaiOptions { local_alpha: 1e-40, local_ep: 0.3 });
}

#[test]
#[should_panic(expected = "local_ep: expected a finite number, got 1000")]
fn an_offset_beyond_f32_is_refused() {
    aaai_local(square(&[0.5; 4]), &AaaiOptions { local_alpha: 30.0, local_ep: 1e39 });
}

#[test]
#[should_panic(expected = "mb_k: expected at least 1, got 0")]
fn no_nearest_of_a_bank_is_refused() {
    let bank = BankScores { entries: 2, to_texts: vec![0.0; 4], to_images: vec![0.0; 4] };
    let options = BankOptions { mb_k: 0, ..BankOptions::default() };
    BankWeights::new(&[0.5, 0.1, 0.1, 0.5], &bank, &options);
}

#[test]
#[should_panic(expected = "3 image ids of 2 pairs")]
fn ids_of_another_batch_are_refused() {
    sum(square(&[0.0; 4]), MARGIN, Siblings::Masked(&[1, 2, 3]));
}
