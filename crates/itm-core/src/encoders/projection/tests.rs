use burn::module::Param;
use burn::optim::GradientsParams;
use itm_kernels::{AdamOptions, AdamW, Noise};

use super::super::golden::{Golden, SEED, SHARE};
use super::*;
use crate::host;

const DROPPED: InputDropout = InputDropout { share: SHARE, noise: Noise::Seeded(SEED) };

fn shape(rate_factor: f64) -> ResidualShape {
    let (input_scale, input_dropout, hidden_dropout) = (0.3, 0.2, 0.5);
    ResidualShape { hidden: 6, input_scale, input_dropout, hidden_dropout, rate_factor }
}

fn given(weight: &[f32], bias: &[f32], device: &Device) -> Result<Projection> {
    let map = LinearMap { weight: weight.to_vec(), bias: bias.to_vec() };
    Projection::new(weight.len() / bias.len(), bias.len(), 1, device).with_map(&map)
}

/// A model with the weights of the golden file.
fn model(g: &Golden, rate_factor: f64, device: &Device) -> Projection {
    let map = given(g.values("map.weight"), g.values("map.bias"), device).unwrap();
    let mut model = map.with_residual(&shape(rate_factor), 0.7, 1).unwrap();
    let residual = model.residual.as_mut().unwrap();
    let vector = |name| Param::from_tensor(g.rows(name, 1, device).squeeze_dim(1));
    residual.first.weight = Param::from_tensor(g.rows("map.w1", 6, device));
    residual.second.weight = Param::from_tensor(g.rows("map.w2", 4, device));
    (residual.first.bias, residual.second.bias) = (vector("map.b1"), vector("map.b2"));
    model
}

/// Embeddings and the gradient of every parameter match `tests/reference/start_encoders.py`.
#[test]
fn golden_values_and_gradients() {
    let (g, device) = (Golden::read(), Device::flex().autodiff());
    for (factor, name) in [(1.0, "1"), (2.5, "2.5")] {
        for (dropout, state) in [(InputDropout::OFF, "still"), (DROPPED, "dropped")] {
            let (model, case) = (model(&g, factor, &device), format!("map.{name}.{state}"));
            let rows = model.embed(g.values("map.x"), dropout);
            g.check(&format!("{case}.rows"), &host(rows.clone()));
            let grads = (rows * g.rows("map.weights", 4, &device)).sum().backward();
            let Residual { first, second, .. } = model.residual.unwrap();
            for (part, got) in [
                ("weight", model.linear.weight.val().grad(&grads).map(host)),
                ("bias", model.linear.bias.val().grad(&grads).map(host)),
                ("w1", first.weight.val().grad(&grads).map(host)),
                ("b1", first.bias.val().grad(&grads).map(host)),
                ("w2", second.weight.val().grad(&grads).map(host)),
                ("b2", second.bias.val().grad(&grads).map(host)),
            ] {
                g.check(&format!("{case}.d_{part}"), &got.unwrap());
            }
        }
    }
}

/// A new perceptron changes no bit, with or without dropout.
#[test]
fn a_residual_starts_at_zero() {
    let (g, device) = (Golden::read(), Device::flex());
    let plain = given(g.values("map.weight"), g.values("map.bias"), &device).unwrap();
    let with = plain.clone().with_residual(&shape(2.5), 0.7, 1).unwrap();
    let x = g.values("map.x");
    for dropout in [InputDropout::OFF, DROPPED] {
        let embed = |m: &Projection| host(m.embed(x, dropout));
        assert_eq!(embed(&with), embed(&plain));
    }
    let trained = model(&g, 2.5, &device);
    assert_ne!(host(trained.embed(x, DROPPED)), host(plain.embed(x, DROPPED)));
}

/// Without a perceptron, the mask is drawn from the seed itself, as always in FNE.
#[test]
fn the_mask_is_that_of_the_seed() {
    let (g, device) = (Golden::read(), Device::flex());
    let model = Projection::new(3, 4, 7, &device);
    let mut rows = g.values("map.x").to_vec();
    itm_kernels::dropout::Mask::new(SHARE, SEED).apply(&mut rows);
    let masked = model.embed(&rows, InputDropout::OFF);
    assert_eq!(host(model.embed(g.values("map.x"), DROPPED)), host(masked));
}

/// An embedding does not depend on its batch and has unit length.
#[test]
fn a_batch_changes_no_embedding() {
    let g = Golden::read();
    let (model, x) = (model(&g, 1.0, &Device::flex()), g.values("map.x"));
    let together = host(model.embed(x, InputDropout::OFF));
    let alone: Vec<f32> =
        x.chunks(3).flat_map(|x| host(model.embed(x, InputDropout::OFF))).collect();
    for (a, b) in alone.iter().zip(&together) {
        assert!((a - b).abs() < 1e-6, "{a} and {b}");
    }
    for row in together.chunks(4) {
        assert!((row.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

/// Every option of the perceptron and of dropout changes the result.
#[test]
fn every_option_acts() {
    let (g, device) = (Golden::read(), Device::flex());
    let of = |change: fn(&mut Residual)| {
        let mut model = model(&g, 1.0, &device);
        change(model.residual.as_mut().unwrap());
        host(model.embed(g.values("map.x"), DROPPED))
    };
    let plain = of(|_| {});
    let changes: [fn(&mut Residual); 4] = [
        |r| r.std /= 2.0,
        |r| r.shape.input_dropout = 0.0,
        |r| r.shape.hidden_dropout = 0.0,
        |r| r.shape.rate_factor = 2.0,
    ];
    for (k, change) in changes.into_iter().enumerate() {
        assert_ne!(of(change), plain, "option {k}");
    }
    let model = model(&g, 1.0, &device);
    let still = InputDropout { share: 0.0, noise: Noise::Seeded(SEED) };
    let without = host(model.embed(g.values("map.x"), still));
    assert_ne!(without, plain, "the features' own share");
    assert_ne!(without, host(model.embed(g.values("map.x"), InputDropout::OFF)), "evaluation");
}

/// After steps of Adam, f = 4 at the rate η gives the same weights as f = 1 with the perceptron at 4η and the map at η.
/// For f = 1, two optimisers with these rates each update one part.
#[test]
fn the_factor_is_one_of_the_rate() {
    let (g, device) = (Golden::read(), Device::flex().autodiff());
    let x = g.values("map.x");
    let weights = |model: &Projection, f: f32| {
        let Residual { first, second, .. } = model.residual.clone().unwrap();
        let own = |w: Vec<f32>| w.into_iter().map(|w| w * f).collect::<Vec<_>>();
        [own(host(first.weight.val())), own(host(second.weight.val()))].concat()
    };
    let grads = |model: &Projection| {
        let loss = (model.embed(x, InputDropout::OFF) * g.rows("map.weights", 4, &device)).sum();
        GradientsParams::from_grads(loss.backward(), model)
    };
    // f = 4: the stored parameters are a quarter of the weights.
    let mut fast = model(&g, 4.0, &device);
    fast.residual = fast.residual.map(|mut r| {
        for linear in [&mut r.first, &mut r.second] {
            linear.weight = Param::from_tensor((linear.weight.val() / 4.0).detach());
            linear.bias = Param::from_tensor((linear.bias.val() / 4.0).detach());
        }
        r
    });
    let mut plain = model(&g, 1.0, &device);
    let start = weights(&plain, 1.0);
    let (mut one, mut map, mut perceptron) =
        [(); 3].map(|()| AdamW::new(AdamOptions::default())).into();
    for _ in 0..5 {
        let got = grads(&fast);
        fast = one.step(fast, got, 1e-3).0;
        // Two optimisers with different rates get the same gradients; each result keeps one part.
        let slow = map.step(plain.clone(), grads(&plain), 1e-3).0;
        let quick = perceptron.step(plain.clone(), grads(&plain), 4e-3).0;
        plain = Projection { linear: slow.linear, residual: quick.residual };
    }
    let (got, want) = (weights(&fast, 4.0), weights(&plain, 1.0));
    for ((got, want), start) in got.iter().zip(&want).zip(&start) {
        assert!((got - want).abs() < 2e-5, "got {got}, want {want}, from {start}");
    }
    let moved = want.iter().zip(&start).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(moved > 0.015, "five steps of 4e-3 moved no weight by more than {moved}");
    let linear = |m: &Projection| host(m.linear.weight.val());
    for (got, want) in linear(&fast).iter().zip(linear(&plain)) {
        assert!((got - want).abs() < 2e-5, "{got} and {want}");
    }
}

/// A map without a perceptron has the same names in a checkpoint as before perceptrons existed.
#[test]
fn names_in_a_checkpoint() {
    use crate::checkpoint::{CheckpointReader, CheckpointWriter};
    let device = Device::flex();
    let plain = Projection::new(3, 4, 1, &device);
    let with = plain.clone().with_residual(&shape(1.0), 1.0, 2).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, model, more) in [("plain", &plain, false), ("with", &with, true)] {
        let (path, mut writer) = (folder.path().join(name), CheckpointWriter::default());
        writer.module("image", model);
        std::fs::write(&path, writer.contents("test 1").unwrap()).unwrap();
        let reader = CheckpointReader::open(&path, "test 1").unwrap();
        reader.values::<f32>("image.linear.weight", &[3, 4]).unwrap();
        reader.values::<f32>("image.linear.bias", &[4]).unwrap();
        assert_eq!(reader.nothing_else().is_err(), more);
        if more {
            reader.values::<f32>("image.residual.first.weight", &[3, 6]).unwrap();
            reader.values::<f32>("image.residual.first.bias", &[6]).unwrap();
            reader.values::<f32>("image.residual.second.weight", &[6, 4]).unwrap();
            reader.values::<f32>("image.residual.second.bias", &[4]).unwrap();
            reader.nothing_else().unwrap();
        }
        let back = reader.module("image", model.clone()).unwrap();
        assert_eq!(host(back.linear.weight.val()), host(model.linear.weight.val()));
    }
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let device = Device::flex();
    let line = given(&[0.0; 5], &[0.0; 2], &device).unwrap_err().to_string();
    let want = "rows of weights as wide as the bias of 2, got 5 weights";
    assert_eq!(line, format!("map of image features: expected {want}"));
    let of = |shape: ResidualShape, std: f64| {
        let map = Projection::new(3, 4, 1, &device);
        map.with_residual(&shape, std, 1).unwrap_err().to_string()
    };
    for std in [0.0, f64::NAN, f64::INFINITY] {
        let want =
            format!("features of a residual: expected a standard deviation above 0, got {std}");
        assert_eq!(of(shape(1.0), std), want);
    }
    let good = shape(1.0);
    for (input_scale, std, got) in [(1e30, 1e-30, "inf"), (1e-30, 1e30, "0")] {
        let line = of(ResidualShape { input_scale, ..good.clone() }, std);
        let want = format!("features of a residual: expected input_scale / σ in f32, got {got}");
        assert_eq!(line, want);
    }
    for (bad, want) in [
        (ResidualShape { hidden: 0, ..good.clone() }, "hidden: expected 1 to 16777216, got 0"),
        (
            ResidualShape { input_scale: 0.0, ..good.clone() },
            "input_scale: expected above 0, got 0",
        ),
        (
            ResidualShape { input_dropout: 1.0, ..good.clone() },
            "input_dropout: expected in [0, 1), got 1",
        ),
        (
            ResidualShape { hidden_dropout: -0.5, ..good.clone() },
            "hidden_dropout: expected in [0, 1), got -0.5",
        ),
        (
            ResidualShape { rate_factor: 0.0, ..good.clone() },
            "rate_factor: expected from 1e-6 to 1e6, got 0",
        ),
        (
            ResidualShape { rate_factor: 1e-7, ..good.clone() },
            "rate_factor: expected from 1e-6 to 1e6, got 0.0000001",
        ),
    ] {
        assert_eq!(of(bad, 1.0), format!("residual.{want}"));
    }
}

#[test]
#[should_panic(expected = "features are rows of 3")]
fn a_part_of_a_row_is_refused() {
    Projection::new(3, 4, 1, &Device::flex()).embed(&[0.0; 7], InputDropout::OFF);
}
