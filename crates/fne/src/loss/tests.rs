use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;
use itm_core::{NegativeSampler, host};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::golden::{close, floats, golden, integers, numbers};
use crate::weights::{CandidatePool, same_image, weights};
use crate::{Preset, SamplerConfig, Snapshot, draw};

fn device() -> Device {
    Device::flex().autodiff()
}

fn matrix(values: &[f32], width: usize) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len() / width, width]), &device())
}

fn case(value: &Value, key: &str) -> Tensor<2> {
    matrix(&floats(&value[key]), value["d"].as_u64().unwrap() as usize)
}

fn columns(value: &Value) -> Vec<usize> {
    integers(value).into_iter().map(|j| j as usize).collect()
}

/// The warm-up loss as the released code reduces it.
fn reduced(
    v: Tensor<2>,
    w: Tensor<2>,
    margin: f64,
    kind: WarmupLoss,
    ids: Option<&[i64]>,
) -> Tensor<1> {
    let b = v.dims()[0] as f64;
    let [h, g] = in_batch_hinges(v, w, margin, kind, ids);
    (h.sum() + g.sum()) / b
}

/// By hand, γ = 0.5, S = [0.8 0.0; 0.6 1.0]: H_10 = 0.1, G_01 = 0.5 − 0.8 + 0.6 = 0.3. Nothing is summed or divided.
#[test]
fn hinges_in_the_batch_are_not_reduced() {
    let (v, w) = (matrix(&[1.0, 0.0, 0.0, 1.0], 2), matrix(&[0.8, 0.6, 0.0, 1.0], 2));
    for kind in [WarmupLoss::Hardest, WarmupLoss::Sum] {
        let hinges = in_batch_hinges(v.clone(), w.clone(), 0.5, kind, None);
        let [h, g] = hinges.map(|side| (side.dims(), host(side)));
        assert_eq!((h.0, g.0), ([2, 2], [2, 2]));
        close("images as anchors", &h.1, &[0.0, 0.0, 0.1, 0.0], 1e-6);
        close("texts as anchors", &g.1, &[0.0, 0.3, 0.0, 0.0], 1e-6);
    }
}

/// The message of a panic.
fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    *panic.downcast::<String>().expect("a formatted message")
}

/// Each panic message names both shapes, and no panic comes from burn.
#[test]
fn shapes_that_do_not_fit_are_named() {
    let of = |b: usize, d: usize| matrix(&vec![0.5; b * d], d);
    let drawn = |positive: Tensor<2>, negatives: Tensor<2>, masked: &[bool]| {
        let anchors = of(3, 2);
        panic_of(|| _ = drawn_hinges(anchors, positive, negatives, masked, 0.2))
    };
    let line = drawn(of(3, 1), of(3, 2), &[false; 2]);
    assert!(line.contains("a mask of 2 values for 3 anchors"), "{line}");
    let line = drawn(of(2, 1), of(3, 2), &[false; 3]);
    assert!(line.contains("positives of shape [2, 1] for 3 anchors"), "{line}");
    let line = drawn(of(3, 1), of(2, 2), &[false; 3]);
    assert!(line.contains("rows of shape [3, 2] and [2, 2]"), "{line}");
    let batch = |v: Tensor<2>, w: Tensor<2>, ids: Option<&[i64]>| {
        panic_of(|| _ = in_batch_hinges(v, w, 0.2, WarmupLoss::Sum, ids))
    };
    let line = batch(of(2, 3), of(2, 4), None);
    assert!(line.contains("texts of shape [2, 4] for images of [2, 3]"), "{line}");
    let line = batch(of(2, 3), of(1, 3), None);
    assert!(line.contains("texts of shape [1, 3] for images of [2, 3]"), "{line}");
    let line = batch(of(2, 3), of(2, 3), Some(&[1]));
    assert!(line.contains("1 image ids of 2 pairs"), "{line}");
}

/// `tests/reference/fne.py`, `warmup`: value and both gradients.
#[test]
fn golden_warmup() {
    for c in golden()["warmup"].as_array().unwrap() {
        let total = c["total"].as_bool().unwrap();
        let kind = if total { WarmupLoss::Sum } else { WarmupLoss::Hardest };
        let ids = integers(&c["ids"]);
        let ids = c["masked"].as_bool().unwrap().then_some(ids.as_slice());
        let (v, w) = (case(c, "images").require_grad(), case(c, "texts").require_grad());
        let loss = reduced(v.clone(), w.clone(), 0.2, kind, ids);
        close("warm-up", &host(loss.clone()), &numbers(&c["loss"]), 1e-6);
        let grads = loss.backward();
        close("∂v", &host(v.grad(&grads).unwrap()), &numbers(&c["images_grad"]), 1e-6);
        close("∂w", &host(w.grad(&grads).unwrap()), &numbers(&c["texts_grad"]), 1e-6);
    }
}

/// `tests/reference/fne.py`, `bank`: values and gradients of Eq. 15 for the three ways to build
/// pool and positive; momentum embeddings and bank rows get no gradient.
#[test]
fn golden_bank_loss() {
    for c in golden()["bank"].as_array().unwrap() {
        let name = c["name"].as_str().unwrap();
        let (v, w) = (case(c, "images").require_grad(), case(c, "texts").require_grad());
        let (vm, wm) = (case(c, "images_momentum"), case(c, "texts_momentum"));
        let (bank_v, bank_w) = (case(c, "bank_images"), case(c, "bank_texts"));
        let online = |a: &Tensor<2>| a.clone();
        let (pool_v, pool_w, own_v, own_w) = match name {
            "official" => (
                Tensor::cat(vec![vm.clone(), bank_v], 0),
                Tensor::cat(vec![wm.clone(), bank_w], 0),
                vm.clone(),
                wm.clone(),
            ),
            "paper" => (bank_v, bank_w, online(&v), online(&w)),
            _ => (online(&v), online(&w), online(&v), online(&w)),
        };
        let b = c["b"].as_u64().unwrap() as usize;
        let side = |a: &Tensor<2>, own: Tensor<2>, pool: Tensor<2>, drawn: &str| {
            let negatives = gather(pool, &columns(&c[drawn]));
            drawn_hinges(a.clone(), row_dots(a.clone(), own), negatives, &vec![false; b], 0.2)
        };
        let i2t = side(&v, own_w, pool_w, "drawn_i2t");
        let t2i = side(&w, own_v, pool_v, "drawn_t2i");
        let loss = (i2t.sum() + t2i.sum()) / b as f64;
        close(name, &host(loss.clone()), &numbers(&c["loss"]), 1e-6);
        let grads = loss.backward();
        close(name, &host(v.grad(&grads).unwrap()), &numbers(&c["images_grad"]), 1e-6);
        close(name, &host(w.grad(&grads).unwrap()), &numbers(&c["texts_grad"]), 1e-6);
        assert!(vm.grad(&grads).is_none() && wm.grad(&grads).is_none(), "momentum has no gradient");
    }
}

/// Both directions of the bank loss look along rows; columns of an asymmetric matrix differ.
#[test]
fn trap_07_both_directions_are_row_wise() {
    for c in golden()["bank"].as_array().unwrap() {
        for side in ["i2t", "t2i"] {
            let ids = integers(&c["ids"]);
            let candidates = match c["name"].as_str().unwrap() {
                "official" => [ids.clone(), integers(&c["bank_ids"])].concat(),
                "paper" => integers(&c["bank_ids"]),
                _ => ids.clone(),
            };
            let pool = CandidatePool {
                scores: &floats(&c[format!("scores_{side}")]),
                positive: &floats(&c[format!("positive_{side}")]),
                excluded: &same_image(&ids, &candidates).unwrap(),
            };
            assert_eq!(
                pool.hardest(0.2).unwrap(),
                columns(&c[format!("hardest_{side}")]),
                "{side}"
            );
        }
    }
    // The warm-up takes rows for images and columns for texts: by hand, γ = 0.2,
    // rows 0.2 − 0.5 + 0.6 = 0.3 and 0.2 − 0.9 + 0.1 < 0; columns 0 and 0.2 − 0.9 + 0.6 < 0.
    let (v, w) = (matrix(&[1.0, 0.0, 0.0, 1.0], 2), matrix(&[0.5, 0.1, 0.6, 0.9], 2));
    let loss = reduced(v, w, 0.2, WarmupLoss::Hardest, None);
    assert!((host(loss)[0] - 0.15).abs() < 1e-6);
}

#[test]
fn trap_13_inactive_hinge_has_no_gradient_and_the_sum_is_divided_by_b() {
    // Hinges of row 0: 0.25 − 0.5 + 0.25 = 0 exactly; of row 1: 0.25 − 0.5 + 0.5 = 0.25.
    let a = matrix(&[0.5, 0.0, 0.5, 0.0], 2).require_grad();
    let (own, negatives) = (matrix(&[1.0, 0.0, 1.0, 0.0], 2), matrix(&[0.5, 0.0, 1.0, 0.5], 2));
    let h = drawn_hinges(a.clone(), row_dots(a.clone(), own), negatives, &[false; 2], 0.25);
    assert_eq!(host(h.clone()), [0.0, 0.25]);
    let grads = (h.sum() / 2.0).backward();
    assert_eq!(host(a.grad(&grads).unwrap()), [0.0, 0.0, 0.0, 0.25]);
    // One violation of 0.25 + 0.2 on one side of two pairs: divided by 2, not by 4.
    let (v, w) = (matrix(&[1.0, 0.0, 0.0, 1.0], 2), matrix(&[0.5, 0.0, 0.75, 1.0], 2));
    let loss = reduced(v, w, 0.2, WarmupLoss::Sum, None);
    assert!((host(loss)[0] - 0.225).abs() < 1e-6);
}

#[test]
fn trap_14_masked_fallback_adds_nothing() {
    let a = matrix(&[1.0, 0.0], 2).require_grad();
    let own = matrix(&[0.1, 0.0], 2);
    let h = drawn_hinges(a.clone(), row_dots(a.clone(), own.clone()), own, &[true], 0.2);
    assert_eq!(host(h.clone()), [0.0]);
    assert!(host(a.grad(&h.sum().backward()).unwrap()).iter().all(|&g| g == 0.0));
}

/// Central differences of the whole loss in every coordinate of both sides.
#[test]
fn finite_differences() {
    let c = &golden()["bank"][2];
    let (v, w) = (floats(&c["images"]), floats(&c["texts"]));
    let (d, b) = (5, 4);
    let (ji, jt) = (columns(&c["drawn_i2t"]), columns(&c["drawn_t2i"]));
    let bank = |v: Tensor<2>, w: Tensor<2>| {
        let positive = row_dots(v.clone(), w.clone());
        let (to_w, to_v) = (gather(w.clone(), &ji), gather(v.clone(), &jt));
        let i2t = drawn_hinges(v, positive.clone(), to_w, &[false; 4], 0.2);
        let t2i = drawn_hinges(w, positive, to_v, &[false; 4], 0.2);
        (i2t.sum() + t2i.sum()) / b as f64
    };
    let warmup = |v, w| reduced(v, w, 0.2, WarmupLoss::Hardest, None);
    let sum = |v, w| reduced(v, w, 0.2, WarmupLoss::Sum, None);
    type Loss<'a> = &'a dyn Fn(Tensor<2>, Tensor<2>) -> Tensor<1>;
    for (name, loss) in [("bank", &bank as Loss), ("warm-up", &warmup), ("sum", &sum)] {
        let (tv, tw) = (matrix(&v, d).require_grad(), matrix(&w, d).require_grad());
        let grads = loss(tv.clone(), tw.clone()).backward();
        let got = [host(tv.grad(&grads).unwrap()), host(tw.grad(&grads).unwrap())].concat();
        let value = |x: &[f32]| {
            let (v, w) = x.split_at(b * d);
            f64::from(host(loss(matrix(v, d), matrix(w, d)))[0])
        };
        let both = [v.clone(), w.clone()].concat();
        for k in 0..both.len() {
            let (mut up, mut down) = (both.clone(), both.clone());
            up[k] += 5e-3;
            down[k] -= 5e-3;
            let want = (value(&up) - value(&down)) / 1e-2;
            assert!((f64::from(got[k]) - want).abs() < 2e-3, "{name} {k}: {} vs {want}", got[k]);
        }
    }
}

/// One column per anchor, unless it is excluded.
struct Drawn(Vec<usize>);

impl NegativeSampler for Drawn {
    fn select(&mut self, block: &Block) -> Tensor<2, Bool> {
        let [b, n] = block.scores.dims();
        let selected: Vec<bool> = (0..b * n).map(|k| self.0[k / n] == k % n).collect();
        let selected = Tensor::<2, Bool>::from_data(TensorData::new(selected, [b, n]), &device());
        selected.bool_and(block.excluded.clone().bool_not())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Drawing first and computing only the drawn columns gives the loss and the gradient of the
    /// dense path through `triplet`.
    #[test]
    fn both_paths_agree(s in vec(-1.0f32..1.0, 4 * 5 + 7 * 5), own in vec(-1.0f32..1.0, 20), seed: u64) {
        let (a, pool) = s.split_at(20);
        let ids = [1i64, 2, 3, 1];
        let candidates = [1i64, 2, 3, 1, -100, 3, 8];
        let mask: Vec<bool> = ids.iter().flat_map(|a| candidates.map(|c| *a == c)).collect();
        let rule = SamplerConfig::preset(Preset::Official);
        let (own, pool) = (matrix(&own, 5), matrix(pool, 5));
        let (x, y) = (matrix(a, 5).require_grad(), matrix(a, 5).require_grad());

        let positive = row_dots(x.clone(), own.clone());
        let scores = x.clone().matmul(pool.clone().transpose());
        let view = CandidatePool {
            scores: &host(scores.clone()),
            positive: &host(positive.clone()),
            excluded: &mask,
        };
        let rho = weights(&view, &rule, &Snapshot::default()).unwrap();
        let drawn = draw(&rho, 7, seed).unwrap();
        let masked: Vec<bool> = drawn.iter().enumerate().map(|(i, &j)| view.excluded(i, j)).collect();

        let excluded = Tensor::from_data(TensorData::new(mask.clone(), [4, 7]), &device());
        let block = Block::new(positive, scores, excluded);
        let dense = triplet(&block, &mut Drawn(drawn.clone()), 0.2).sum();
        let positive = row_dots(y.clone(), own);
        let sparse = drawn_hinges(y.clone(), positive, gather(pool, &drawn), &masked, 0.2).sum();

        prop_assert!((host(dense.clone())[0] - host(sparse.clone())[0]).abs() < 1e-5);
        let (g, h) = (host(x.grad(&dense.backward()).unwrap()), host(y.grad(&sparse.backward()).unwrap()));
        for (x, y) in g.iter().zip(&h) { prop_assert!((x - y).abs() < 1e-5); }
    }
}
