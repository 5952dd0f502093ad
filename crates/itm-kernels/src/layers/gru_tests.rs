use burn::tensor::{Distribution, Gradients, TensorData};

use super::*;
use crate::composed::gru;
use crate::gru::Direction;
use crate::tests::{close, counts, f32s, golden, values};

const LENGTHS: [usize; 4] = [3, 5, 1, 4];

/// The unit in burn's operations, on the dispatch backend: burn differentiates it.
fn composed_gru(gru: &Gru, x: Tensor<3>, lengths: &[usize], direction: Direction) -> Tensor<3> {
    let (x, weights) = (x.into_dispatch(), gru.weights());
    Tensor::from_dispatch(gru::unit::<Dispatch>(x, weights, lengths, direction).0)
}

/// Output and all gradients: the kernel, and the composed backward pass, against burn's own differentiation.
#[test]
fn gru_agrees_with_composed_and_autodiff() {
    let device = Device::flex().autodiff();
    let gru = Gru::seeded(3, 18, 5, &device);
    let x = uniform([4, 5, 3], 1.0, 6, &device).require_grad();
    let weights = uniform([4, 5, 18], 1.0, 7, &device);
    let fused = gru.forward(x.clone(), &LENGTHS);
    let composed = composed_gru(&gru, x.clone(), &LENGTHS, Direction::Forward);
    close("states", fused.clone(), composed.clone());
    let got = (fused * weights.clone()).sum().backward();
    let want = (composed * weights.clone()).sum().backward();
    close("x", x.grad(&got).unwrap(), x.grad(&want).unwrap());
    close("w_ih", gru.w_ih.val().grad(&got).unwrap(), gru.w_ih.val().grad(&want).unwrap());
    close("w_hh", gru.w_hh.val().grad(&got).unwrap(), gru.w_hh.val().grad(&want).unwrap());
    close("b_ih", gru.b_ih.val().grad(&got).unwrap(), gru.b_ih.val().grad(&want).unwrap());
    close("b_hh", gru.b_hh.val().grad(&got).unwrap(), gru.b_hh.val().grad(&want).unwrap());
}

/// The gradient of a tensor does not depend on which other tensors require one, or on gradient checkpointing.
#[test]
fn a_gradient_does_not_depend_on_who_else_asks() {
    let device = Device::flex().autodiff();
    let checkpointing = Device::flex().autodiff().gradient_checkpointing();
    let gradients = |gru: &Gru, x: &Tensor<3>| {
        let states = gru.forward(x.clone(), &LENGTHS);
        let grads = (states.clone() * states).sum().backward();
        (gru.w_hh.val().grad(&grads).map(values), x.grad(&grads).map(values))
    };
    let gru = Gru::seeded(3, 4, 1, &device);
    let x = uniform([4, 5, 3], 1.0, 2, &device);
    let (w_hh, dx) = gradients(&gru, &x.clone().require_grad());
    assert!(w_hh.is_some() && dx.is_some());
    assert_eq!(gradients(&gru, &x), (w_hh.clone(), None));
    let frozen = gru.clone().no_grad();
    assert_eq!(gradients(&frozen, &x.require_grad()), (None, dx.clone()));
    let x = uniform([4, 5, 3], 1.0, 2, &checkpointing).require_grad();
    assert_eq!(gradients(&Gru::seeded(3, 4, 1, &checkpointing), &x), (w_hh, dx));
}

/// An input that is a view (transposed, with an offset) gives the same states as its copy.
#[test]
fn views_are_read_as_what_they_show() {
    let device = Device::flex();
    let gru = Gru::seeded(3, 4, 1, &device);
    let wide = uniform([3, 6, 4], 1.0, 2, &device); // as [i, l + 1, b]
    let view = wide.permute([2, 1, 0]).narrow(1, 1, 5); // [b, l, i]
    let copy = Tensor::<3>::from_data(view.to_data(), &device);
    let (got, want) = (gru.forward(view, &LENGTHS), gru.forward(copy, &LENGTHS));
    assert_eq!(values(got), values(want));
}

/// Without gradients nothing is saved, and the states are the same.
#[test]
fn inference_equals_training() {
    let device = Device::flex().autodiff();
    let gru = Gru::seeded(3, 8, 1, &device);
    let x = uniform([4, 5, 3], 1.0, 2, &device);
    let train = values(gru.forward(x.clone(), &LENGTHS));
    assert_eq!(values(gru.valid().forward(x.inner(), &LENGTHS)), train);
}

#[test]
fn initial_weights_depend_on_the_seed_alone() {
    let device = Device::flex();
    let all = |g: Gru| {
        [values(g.w_ih.val()), values(g.w_hh.val()), values(g.b_ih.val()), values(g.b_hh.val())]
    };
    let first = all(Gru::seeded(30, 40, 1, &device));
    Tensor::<1>::random([9], Distribution::Default, &device); // another draw in between
    assert_eq!(all(Gru::seeded(30, 40, 1, &device)), first);
    assert_ne!(all(Gru::seeded(30, 40, 2, &device)), first);
    let bound = 1.0 / 40f32.sqrt();
    for part in &first {
        let (mean, largest) = part.iter().fold((0.0, 0.0f32), |(m, l), v| (m + v, l.max(v.abs())));
        assert!(largest <= bound && largest > 0.9 * bound);
        assert!((mean / part.len() as f32).abs() < bound * 2.0 / (part.len() as f32).sqrt());
    }
}

#[test]
#[should_panic(expected = "sequence 2: length 0, not 1 to 5")]
fn an_empty_sequence_is_refused() {
    let device = Device::flex();
    Gru::seeded(3, 4, 1, &device).forward(Tensor::zeros([3, 5, 3], &device), &[1, 5, 0]);
}

#[test]
#[should_panic(expected = "input of shape [1, 5, 2] for a unit of width 3")]
fn another_width_is_refused() {
    let device = Device::flex();
    Gru::seeded(3, 4, 1, &device).forward(Tensor::zeros([1, 5, 2], &device), &[5]);
}

/// Both directions in burn's operations; burn differentiates them.
fn composed_bigru(gru: &BiGru, x: Tensor<3>) -> Tensor<3> {
    let ahead = composed_gru(&gru.ahead, x.clone(), &LENGTHS, Direction::Forward);
    let reverse = composed_gru(&gru.reverse, x, &LENGTHS, Direction::Reverse);
    Tensor::cat(vec![ahead, reverse], 2)
}

fn check_gradients(name: &str, gru: &Gru, got: &Gradients, want: &Gradients) {
    let both = |p: &Param<Tensor<2>>| (p.val().grad(got).unwrap(), p.val().grad(want).unwrap());
    for (part, p) in [("w_ih", &gru.w_ih), ("w_hh", &gru.w_hh)] {
        let (got, want) = both(p);
        close(&format!("{name} {part}"), got, want);
    }
    for (part, p) in [("b_ih", &gru.b_ih), ("b_hh", &gru.b_hh)] {
        close(&format!("{name} {part}"), p.val().grad(got).unwrap(), p.val().grad(want).unwrap());
    }
}

/// Output and all gradients of both directions, with a gradient on padded steps too: the kernel against burn's own
/// differentiation of the composed form. The width fills no register; one sequence has one step.
#[test]
fn bigru_agrees_with_composed_and_autodiff() {
    let device = Device::flex().autodiff();
    let gru = BiGru::seeded(3, 18, 5, &device);
    let x = uniform([4, 5, 3], 1.0, 6, &device).require_grad();
    let weights = uniform([4, 5, 36], 1.0, 7, &device);
    let (fused, composed) = (gru.forward(x.clone(), &LENGTHS), composed_bigru(&gru, x.clone()));
    close("states", fused.clone(), composed.clone());
    let got = (fused * weights.clone()).sum().backward();
    let want = (composed * weights).sum().backward();
    close("x", x.grad(&got).unwrap(), x.grad(&want).unwrap());
    check_gradients("ahead", &gru.ahead, &got, &want);
    check_gradients("reverse", &gru.reverse, &got, &want);
}

/// The backward pass of the fallback, for one unit and for two, against burn's differentiation of the forward pass.
#[test]
fn the_fallback_agrees_with_autodiff() {
    let device = Device::flex().autodiff();
    let gru = BiGru::seeded(3, 6, 5, &device);
    let x = uniform([4, 5, 3], 1.0, 6, &device).require_grad();
    for directions in [1, 2] {
        let c = uniform([4, 5, 6 * directions], 1.0, 7, &device);
        let composed = match directions {
            1 => composed_gru(&gru.ahead, x.clone(), &LENGTHS, Direction::Forward),
            _ => composed_bigru(&gru, x.clone()),
        };
        let want = (composed * c.clone()).sum().backward();
        let units = [&gru.ahead, &gru.reverse];
        let plain = |p: &Param<Tensor<2>>| p.val().inner().into_dispatch();
        let plain_1 = |p: &Param<Tensor<1>>| p.val().inner().into_dispatch();
        let weights =
            |g: &Gru| [plain(&g.w_ih), plain(&g.w_hh), plain_1(&g.b_ih), plain_1(&g.b_hh)];
        let weights = units[..directions].iter().flat_map(|g| weights(g)).collect::<Vec<_>>();
        let inner = x.clone().inner().into_dispatch();
        let lengths = LENGTHS.to_vec();
        let (states, gates) = gru::saving::<Dispatch>(inner.clone(), &weights, &lengths);
        let grad = c.inner().into_dispatch();
        let d = gru::backward::<Dispatch>(inner, &weights, states, gates, grad, &lengths);
        let mut d = d.into_iter();
        close("x", Tensor::<3>::from_dispatch(d.next().unwrap()), x.grad(&want).unwrap());
        for g in &units[..directions] {
            for p in [&g.w_ih, &g.w_hh] {
                let got = Tensor::<2>::from_dispatch(d.next().unwrap());
                close("matrix", got, p.val().grad(&want).unwrap());
            }
            for p in [&g.b_ih, &g.b_hh] {
                let got = Tensor::<1>::from_dispatch(d.next().unwrap());
                close("bias", got, p.val().grad(&want).unwrap());
            }
        }
        assert!(d.next().is_none());
    }
}

fn worst(name: &str, got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{name}");
    let error = got
        .iter()
        .zip(want)
        .map(|(&g, &w)| (f64::from(g) - w).abs())
        .max_by(f64::total_cmp)
        .unwrap();
    assert!(error < 1e-5, "{name} is off by {error:e}");
}

/// PyTorch's packed sequences in double precision, from `tests/reference/bigru.py`: states of real steps and all
/// gradients. PyTorch's matrices are transposed.
#[test]
fn bigru_golden() {
    let g = golden("bigru");
    let f32s = |k: &str| f32s(&g[k]);
    let names = |suffix: &str| {
        ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(|n| format!("{n}_l0{suffix}"))
    };
    let [b, l, i, h] = [0, 1, 2, 3].map(|k| g["sizes"][k] as usize);
    let lengths = counts(&g["lengths"]);
    let device = Device::flex().autodiff();
    let unit = |suffix| {
        let [w_ih, w_hh, b_ih, b_hh] = names(suffix).map(|n| f32s(&n));
        let matrix = |values: Vec<f32>, inputs| {
            let shape = [3 * h, inputs];
            let weight = Tensor::<2>::from_data(TensorData::new(values, shape), &device);
            Param::from_tensor(weight.transpose())
        };
        let vector = |values: Vec<f32>| {
            Param::from_tensor(Tensor::from_data(TensorData::new(values, [3 * h]), &device))
        };
        Gru { w_ih: matrix(w_ih, i), w_hh: matrix(w_hh, h), b_ih: vector(b_ih), b_hh: vector(b_hh) }
    };
    let gru = BiGru { ahead: unit(""), reverse: unit("_reverse") };
    let tensor = |k: &str, w| Tensor::<3>::from_data(TensorData::new(f32s(k), [b, l, w]), &device);
    let x = tensor("x", i).require_grad();
    let out = gru.forward(x.clone(), &lengths);
    let states = values(out.clone());
    for (row, &n) in lengths.iter().enumerate() {
        let of = |t: usize| (row * l + t) * 2 * h..(row * l + t + 1) * 2 * h;
        for t in 0..n {
            worst("states", &states[of(t)], &g["out"][of(t)]);
        }
        for t in n..l {
            let (last, padded) = (&states[of(n - 1)], &states[of(t)]);
            assert_eq!(padded[..h], last[..h], "the forward half repeats its last state");
            assert!(padded[h..].iter().all(|&s| s == 0.0), "the reverse half has not begun");
        }
    }
    let grads = (out * tensor("c", 2 * h)).sum().backward();
    worst("d_x", &values(x.grad(&grads).unwrap()), &g["d_x"]);
    for (suffix, unit) in [("", &gru.ahead), ("_reverse", &gru.reverse)] {
        let got = [
            values(unit.w_ih.val().grad(&grads).unwrap().transpose()),
            values(unit.w_hh.val().grad(&grads).unwrap().transpose()),
            values(unit.b_ih.val().grad(&grads).unwrap()),
            values(unit.b_hh.val().grad(&grads).unwrap()),
        ];
        for (name, got) in names(suffix).into_iter().zip(got) {
            worst(&name, &got, &g[&format!("d_{name}")]);
        }
    }
}

/// A sequence gives the same states alone and beside longer sequences, in both halves.
#[test]
fn bigru_does_not_see_the_padding() {
    let device = Device::flex();
    let gru = BiGru::seeded(3, 10, 1, &device);
    let x = uniform([2, 6, 3], 1.0, 2, &device);
    let both = values(gru.forward(x.clone(), &[2, 6]));
    let alone = values(gru.forward(x.narrow(0, 0, 1).narrow(1, 0, 2), &[2]));
    for (a, b) in alone.iter().zip(&both[..2 * 20]) {
        assert!((a - b).abs() < 1e-6, "{a} alone, {b} beside another");
    }
}

#[test]
fn bigru_seeds_and_inference() {
    let device = Device::flex().autodiff();
    let gru = BiGru::seeded(3, 8, 1, &device);
    let x = uniform([4, 5, 3], 1.0, 2, &device);
    let train = values(gru.forward(x.clone(), &LENGTHS));
    assert_eq!(values(gru.valid().forward(x.clone().inner(), &LENGTHS)), train);
    assert_eq!(values(BiGru::seeded(3, 8, 1, &device).forward(x.clone(), &LENGTHS)), train);
    assert_ne!(values(BiGru::seeded(3, 8, 2, &device).forward(x, &LENGTHS)), train);
    assert_ne!(values(gru.ahead.w_ih.val()), values(gru.reverse.w_ih.val()));
}
