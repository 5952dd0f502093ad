use itm_kernels::Noise;

use super::super::golden::{Golden, SEED, SHARE};
use super::*;
use crate::host;

const CAPTIONS: [&[u32]; 4] = [&[0, 2, 5], &[], &[3], &[1, 2, 4, 6]];
const DROPPED: InputDropout = InputDropout { share: SHARE, noise: Noise::Seeded(SEED) };

fn given(weight: &[f32], bias: &[f32], idf: &[f32], device: &Device) -> Result<BagOfWords> {
    let map = LinearMap { weight: weight.to_vec(), bias: bias.to_vec() };
    let d = bias.len().max(1);
    let bag = BagOfWords::new((weight.len() / d).max(1), d, 1, device);
    bag.with_map(&map)?.with_idf(idf)
}

fn model(g: &Golden, pooling: BagPooling, device: &Device) -> BagOfWords {
    let [weight, bias, idf] = ["bag.weight", "bag.bias", "bag.idf"].map(|name| g.values(name));
    BagOfWords { pooling, ..given(weight, bias, idf, device).unwrap() }
}

/// Embeddings and the gradients of weight and bias match `tests/reference/start_encoders.py`.
#[test]
fn golden_values_and_gradients() {
    let (g, device) = (Golden::read(), Device::flex().autodiff());
    for (pooling, name) in [(BagPooling::TfIdf, "tf_idf"), (BagPooling::Mean, "mean")] {
        for (dropout, state) in [(InputDropout::OFF, "still"), (DROPPED, "dropped")] {
            let (model, case) = (model(&g, pooling, &device), format!("bag.{name}.{state}"));
            let rows = model.encode(&CAPTIONS, dropout);
            g.check(&format!("{case}.rows"), &host(rows.clone()));
            let grads = (rows * g.rows("bag.weights", 4, &device)).sum().backward();
            let [weight, bias] = [
                model.weight.val().grad(&grads).map(host),
                model.bias.val().grad(&grads).map(host),
            ];
            g.check(&format!("{case}.d_weight"), &weight.unwrap());
            g.check(&format!("{case}.d_bias"), &bias.unwrap());
        }
    }
}

/// Pooling, dropout, its share and seed, and idf each change the result.
#[test]
fn every_option_acts() {
    let (g, device) = (Golden::read(), Device::flex());
    let of = |pooling, dropout| host(model(&g, pooling, &device).encode(&CAPTIONS, dropout));
    let plain = of(BagPooling::TfIdf, InputDropout::OFF);
    assert_ne!(of(BagPooling::Mean, InputDropout::OFF), plain);
    assert_ne!(of(BagPooling::TfIdf, DROPPED), plain);
    assert_ne!(
        of(BagPooling::TfIdf, DROPPED),
        of(BagPooling::TfIdf, InputDropout { share: SHARE, noise: Noise::Seeded(SEED + 1) })
    );
    let share = |share| of(BagPooling::TfIdf, InputDropout { share, noise: Noise::Seeded(SEED) });
    assert_eq!(share(0.0), plain);
    assert_ne!(share(0.6), share(SHARE));
    let plain_idf = model(&g, BagPooling::TfIdf, &device).with_idf(&[1.0; 7]).unwrap();
    assert_ne!(host(plain_idf.encode(&CAPTIONS, InputDropout::OFF)), plain);
}

/// Without dropout, the embedding of a caption has the same bits alone, in a batch, and in a batch in another order.
#[test]
fn a_batch_changes_no_embedding() {
    let (g, device) = (Golden::read(), Device::flex());
    let model = model(&g, BagPooling::TfIdf, &device);
    let together = host(model.encode(&CAPTIONS, InputDropout::OFF));
    let alone = CAPTIONS.map(|c| host(model.encode(&[c], InputDropout::OFF)));
    assert_eq!(alone.concat(), together);
    let turned: Vec<&[u32]> = CAPTIONS.into_iter().rev().collect();
    let turned = host(model.encode(&turned, InputDropout::OFF));
    let back: Vec<f32> = turned.chunks(4).rev().flatten().copied().collect();
    assert_eq!(back, together);
}

/// Captions without a known term become the bias. If no caption has a known term, the gradient of the table is 0.
#[test]
fn no_known_term_is_the_bias() {
    let device = Device::flex().autodiff();
    let model = given(&[1.0; 4], &[3.0, 4.0], &[1.0; 2], &device).unwrap();
    for dropout in [InputDropout::OFF, DROPPED] {
        let rows = model.encode(&[&[] as &[u32], &[]], dropout);
        assert_eq!(host(rows.clone()), [0.6, 0.8, 0.6, 0.8]);
        let grads = (rows * Tensor::<2>::from_floats([[1.0, 0.0]], &device)).sum().backward();
        assert_eq!(host(model.weight.val().grad(&grads).unwrap()), [0.0; 4]);
        // Two rows give 2 · (1 − 0.6²) / 5 and 2 · −0.6 · 0.8 / 5.
        let bias = host(model.bias.val().grad(&grads).unwrap());
        assert!((bias[0] - 0.256).abs() < 1e-6 && (bias[1] + 0.192).abs() < 1e-6, "{bias:?}");
    }
}

/// By hand: two terms of equal idf, then a row of width 2 whose inputs have ten times the weight.
#[test]
fn a_given_row_stands_beside_the_terms() {
    let device = Device::flex();
    let weight = [1.0, 0.0, 0.0, 1.0, 10.0, 0.0, 0.0, 10.0];
    let rows = Features { dim: 2, values: vec![0.6, 0.8, -1.0, 0.0] };
    let bag = given(&weight, &[0.0, 1.0], &[1.0; 4], &device).unwrap();
    let bag = bag.with_rows(rows.into()).unwrap().with_idf(&[2.0, 2.0]).unwrap();
    let of = |bag: &BagOfWords, numbers: &[u32]| host(bag.encode(&[numbers], InputDropout::OFF));
    let unit = |x: f32, y: f32| [x / x.hypot(y), y / x.hypot(y)];
    let close = |got: Vec<f32>, want: [f32; 2]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}, {want:?}");
    };
    close(of(&bag, &[0, 4]), unit(7.0, 9.0));
    let half = 0.5f32.sqrt();
    close(of(&bag, &[0, 1, 5]), unit(half - 10.0, half + 1.0));
    close(of(&bag, &[5]), unit(-10.0, 1.0));
    close(of(&bag, &[1]), [0.0, 1.0]);
    let alone = BagOfWords { pooling: BagPooling::Off, ..bag.clone() };
    close(of(&alone, &[0, 1, 4]), unit(6.0, 9.0));
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6].map(|n| bag.has(n)),
        [true, true, false, false, true, true, false]
    );
    let wide = Features { dim: 5, values: vec![0.0; 5] };
    let line = bag.clone().with_rows(wide.into()).unwrap_err().to_string();
    assert_eq!(line, "given rows of a bag of words: expected a width of at most 4, got 5");
    let nan = Features { dim: 1, values: vec![f32::NAN] };
    assert!(bag.with_rows(nan.into()).is_err());
}

/// Weights are a function of the seed, and only weight and bias are parameters.
#[test]
fn random_weights_depend_on_the_seed_alone() {
    let new = |seed| BagOfWords::new(100, 8, seed, &Device::flex());
    let weight = |seed| host(new(seed).weight.val());
    assert!(weight(1) == weight(1) && weight(1) != weight(2));
    assert!(weight(1).iter().all(|w| w.abs() <= 0.1) && weight(1).iter().any(|w| w.abs() > 0.09));
    assert_eq!(new(1).num_params(), 100 * 8 + 8);
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let device = Device::flex();
    let of = |weight: &[f32], bias: &[f32], idf: &[f32]| {
        given(weight, bias, idf, &device).unwrap_err().to_string()
    };
    let place = "map of a bag of words: expected";
    assert_eq!(
        of(&[0.0; 5], &[0.0; 2], &[1.0; 2]),
        format!("{place} rows of weights as wide as the bias of 2, got 5 weights")
    );
    assert_eq!(
        of(&[f32::NAN; 4], &[0.0; 2], &[1.0; 2]),
        format!("{place} finite weights, got NaN")
    );
    assert!(of(&[], &[], &[]).starts_with(place));
    let place = "idf of a bag of words: expected";
    assert_eq!(of(&[0.0; 4], &[0.0; 2], &[1.0; 3]), format!("{place} idf of 2 terms, got 3"));
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let got = of(&[0.0; 4], &[0.0; 2], &[1.0, bad]);
        assert_eq!(got, format!("{place} numbers above 0, got {bad}"));
    }
}

#[test]
#[should_panic(expected = "caption 1, term 2: 6 of 6 terms")]
fn a_term_outside_the_vocabulary_is_named() {
    let model = BagOfWords::new(6, 2, 3, &Device::flex());
    model.encode(&[&[5][..], &[0, 1, 6]], InputDropout::OFF);
}
