use std::collections::BTreeMap;

use burn::optim::GradientsParams;
use burn::tensor::TensorData;
use itm_kernels::AdamOptions;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::learn::Trainer;

type Golden = BTreeMap<String, Vec<f32>>;

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/golden/contrastive.json")).unwrap()
}

fn square(s: &[f32], device: &Device) -> Tensor<2> {
    let b = s.len().isqrt();
    Tensor::from_data(TensorData::new(s.to_vec(), [b, b]), device)
}

fn row(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

fn close(name: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{name}");
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        let error = (g - w).abs() / w.abs().max(1.0);
        assert!(error < tolerance, "{name}[{k}]: got {g}, want {w}");
    }
}

/// The terms of one loss for a batch, in one row.
fn terms(
    loss: &str,
    scores: Tensor<2>,
    temperature: &Temperature,
    bias: Tensor<1>,
    siblings: Siblings,
) -> Tensor<1> {
    let b = scores.dims()[0];
    match loss {
        "info_nce" => Tensor::cat(info_nce(scores, temperature, siblings).to_vec(), 0),
        _ => sigmoid_pairs(scores, temperature, bias, siblings).reshape([b * b]),
    }
}

/// Terms and the gradients of scores, log(1/τ) and β match `tests/reference/contrastive.py`: for a warm and a cold τ
/// and one past its bound, where only an update sets it back, with siblings as negatives and masked.
#[test]
fn golden_values_and_gradients() {
    let (g, device) = (golden(), Device::flex().autodiff());
    let ids: Vec<i64> = g["ids"].iter().map(|&x| x as i64).collect();
    for (loss, weights) in [("info_nce", "anchors"), ("sigmoid", "pairs")] {
        for (name, siblings) in [("all", Siblings::Negatives), ("masked", Siblings::Masked(&ids))] {
            for warmth in ["warm", "cold", "past"] {
                let case = format!("{loss}.{name}.{warmth}");
                // Past the bound, rounding θ to f32 moves logits of up to 128 by 3e-5.
                let bound = if warmth == "past" { 3e-4 } else { 1e-5 };
                let scores = square(&g["scores"], &device).require_grad();
                let bias = row(&g["bias"], &device).require_grad();
                let log = Param::from_tensor(row(&g[&format!("{warmth}.log_scale")], &device));
                let learned = Temperature::Learned(log.clone());
                let got = terms(loss, scores.clone(), &learned, bias.clone(), siblings);
                let want = &g[&format!("{case}.terms")];
                close(&case, &host(got.clone()), want, bound);

                let grads = (got * row(&g[weights], &device)).sum().backward();
                let check = |part: &str, got: Option<Vec<f32>>| {
                    let part = format!("{case}.d_{part}");
                    close(&part, &got.expect(&part), &g[&part], bound);
                };
                check("scores", scores.grad(&grads).map(host));
                check("log_scale", log.val().grad(&grads).map(host));
                if loss == "sigmoid" {
                    check("bias", bias.grad(&grads).map(host));
                }
                // A fixed τ of the same value gives the same loss.
                let fixed = Temperature::Fixed(learned.value());
                let fixed = terms(loss, scores.clone(), &fixed, bias.clone(), siblings);
                close(&format!("{case}, fixed"), &host(fixed), want, bound);
            }
        }
    }
}

/// Every option changes the goldens, so no option is dead.
#[test]
fn every_option_acts() {
    let g = golden();
    for loss in ["info_nce", "sigmoid"] {
        let of = |name: &str| &g[&format!("{loss}.{name}.terms")];
        assert_ne!(of("all.warm"), of("masked.warm"));
        assert_ne!(of("all.warm"), of("all.cold"));
        assert_ne!(of("all.cold"), of("all.past"));
    }
    let device = Device::flex();
    let bias = |bias| {
        host(terms(
            "sigmoid",
            square(&g["scores"], &device),
            &Temperature::Fixed(0.5),
            row(&[bias], &device),
            Siblings::Negatives,
        ))
    };
    assert_ne!(bias(0.0), bias(1.0));
}

/// τ starts at the given value, never below 1/100, and is the only parameter.
#[test]
fn a_learned_temperature_has_a_bound() {
    let device = Device::flex();
    let learned = |tau| Temperature::learned(tau, &device);
    assert!((learned(0.07).value() - 0.07).abs() < 1e-7);
    assert!((learned(0.004).value() - 0.01).abs() < 1e-7);
    assert_eq!((learned(0.1).num_params(), Temperature::Fixed(0.1).num_params()), (1, 0));
    assert_eq!(Temperature::Fixed(0.1).value(), 0.1);
}

/// θ after each of eight steps of Adam, four up to the bound and four down with the same moments, from
/// `tests/reference/contrastive.py`.
#[test]
fn golden_course_of_a_bounded_temperature() {
    let (g, device) = (golden(), Device::flex().autodiff());
    let options = ContrastiveOptions { temperature: 1.0 / 95.0, bias: 0.0, learn: Learnt::Learned };
    let mut learner = Trainer::new(Contrast::new(&options, &device), AdamOptions::default());
    let matched = (square(&g["scores"], &device) + Tensor::eye(5, &device) * 2.0) / 100.0;
    let mut course = vec![];
    for t in 1..=8 {
        let scores = if t <= 4 { matched.clone() } else { matched.clone().neg() };
        let loss = learner.module().info_nce(scores, Siblings::Negatives);
        learner
            .update(0.05, loss, |m, loss| GradientsParams::from_grads(loss.backward(), m))
            .unwrap();
        learner.adjust(Contrast::bounded);
        course.push(-learner.module().temperature.value().ln() as f32);
    }
    close("log(1/τ)", &course, &g["bounded.log_scale"], 2e-6);
}

/// For a single pair, or pairs that are all of one image, InfoNCE and its gradient are 0; the sigmoid loss has only the
/// matches.
#[test]
fn nothing_to_compare_with_is_nothing_to_learn() {
    let device = Device::flex().autodiff();
    for (s, ids) in [(vec![0.3], vec![5]), (vec![0.3, f32::INFINITY, f32::NAN, -0.2], vec![5, 5])] {
        let b = ids.len();
        let temperature = Temperature::learned(0.05, &device);
        let Temperature::Learned(log) = &temperature else { unreachable!() };
        let scores = square(&s, &device).require_grad();
        let both = info_nce(scores.clone(), &temperature, Siblings::Masked(&ids));
        let loss = Tensor::cat(both.to_vec(), 0);
        assert_eq!(host(loss.clone()), vec![0.0; 2 * b]);
        let grads = loss.sum().backward();
        assert_eq!(host(scores.grad(&grads).unwrap()), vec![0.0; b * b]);
        assert_eq!(host(log.val().grad(&grads).unwrap()), [0.0]);

        let pairs = sigmoid_pairs(
            scores.clone(),
            &temperature,
            row(&[0.0], &device),
            Siblings::Masked(&ids),
        );
        let (terms, grads) = (host(pairs.clone()), pairs.sum().backward());
        let d = host(scores.grad(&grads).unwrap());
        for k in 0..b * b {
            let own = k % (b + 1) == 0;
            // −log σ(20 s), and its slope −20 σ(−20 s).
            let x = 20.0 * s[k];
            let want = if own { [(-x).exp().ln_1p(), -20.0 / (1.0 + x.exp())] } else { [0.0; 2] };
            assert!((terms[k] - want[0]).abs() < 1e-5 && (d[k] - want[1]).abs() < 1e-4, "{k}");
        }
        assert!(host(log.val().grad(&grads).unwrap())[0].is_finite());
    }
}

/// Logits of ±100, or a score far ahead, cause no overflow, and a loss above 0 keeps its gradient.
#[test]
fn cold_scores_stay_finite() {
    let device = Device::flex().autodiff();
    let cold = Temperature::Fixed(0.01);
    let scores = square(&[-1.0, 1.0, 0.9, 1.0], &device).require_grad();
    let [i2t, t2i] = info_nce(scores.clone(), &cold, Siblings::Negatives);
    // Rows: log(e^−100 + e^100) + 100 = 200; log(e^90 + e^100) − 100 = log(1 + e^−10). Columns: 190; log 2.
    close("i2t", &host(i2t.clone()), &[200.0, (-10f32).exp().ln_1p()], 1e-5);
    close("t2i", &host(t2i.clone()), &[190.0, 2f32.ln()], 1e-5);
    let grads = (i2t.sum() + t2i.sum()).backward();
    // −100 · (1 + 1); 100 · (1 + 1/2); 100 · (σ(−10) + 1); 100 · (σ(10) − 1 + 1/2 − 1)
    let tail = 1.0 / (1.0 + 10f32.exp());
    let want = [-200.0, 150.0, 100.0 * (1.0 + tail), -100.0 * (0.5 + tail)];
    close("gradient", &host(scores.grad(&grads).unwrap()), &want, 1e-4);
    let bias = row(&[0.0], &device);
    let pairs = sigmoid_pairs(scores.clone(), &cold, bias, Siblings::Negatives);
    close("pairs", &host(pairs.clone()), &[100.0, 100.0, 90.0, 0.0], 1e-5);
    let d = host(scores.grad(&pairs.sum().backward()).unwrap());
    close("gradient of pairs", &d, &[-100.0, 100.0, 100.0, 0.0], 1e-4);
}

/// What `validate` accepts, a loss can use.
#[test]
fn options_beyond_f32_are_refused() {
    for (temperature, bias) in [(1e-50, 0.0), (1e39, 0.0), (0.0, 0.0), (0.1, 1e39), (0.1, f64::NAN)]
    {
        let options = ContrastiveOptions { temperature, bias, learn: Learnt::Fixed };
        assert!(options.validate().is_err(), "{options:?}");
    }
}

#[test]
#[should_panic(expected = "3 image ids of 2 pairs")]
fn ids_of_another_batch_are_refused() {
    let scores = Tensor::zeros([2, 2], &Device::flex());
    info_nce(scores, &Temperature::Fixed(1.0), Siblings::Masked(&[1, 2, 3]));
}

#[test]
#[should_panic(expected = "in-batch scores of shape [2, 3] are not square")]
fn scores_that_are_not_square_are_refused() {
    let scores = Tensor::zeros([2, 3], &Device::flex());
    info_nce(scores, &Temperature::Fixed(1.0), Siblings::Negatives);
}

proptest! {
    /// The loss is at least the hinge of the hardest negative and at most log b more. It is never below 0. Fewer
    /// candidates give a smaller loss.
    #[test]
    fn info_nce_is_a_soft_hinge(s in vec(-1.0f32..1.0, 16), tau in 0.02..1.0) {
        let of = |siblings| {
            let scores = square(&s, &Device::flex());
            host(info_nce(scores, &Temperature::Fixed(tau), siblings)[0].clone())
        };
        let (all, fewer) = (of(Siblings::Negatives), of(Siblings::Masked(&[1, 2, 1, 1])));
        for a in 0..4 {
            let others = (0..4).filter(|&c| c != a).map(|c| s[4 * a + c]);
            let hinge = (others.fold(-1.0, f32::max) - s[5 * a]).max(0.0) / tau as f32;
            prop_assert!(hinge - 1e-4 <= all[a] && all[a] <= hinge + 4f32.ln() + 1e-4);
            prop_assert!(0.0 <= fewer[a] && fewer[a] <= all[a] + 1e-5);
        }
    }
}
