use std::collections::BTreeMap;

use super::*;
use crate::testing::{on_every_instruction_set, on_every_thread_count, random};

type Golden = BTreeMap<String, Vec<f32>>;

const D: usize = 6;

/// From `tests/reference/attention.py`: double precision, gradients by central differences.
fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/golden/attention.json")).unwrap()
}

fn heads(dropout: Option<(f32, u64)>) -> Heads {
    Heads { heads: 2, keys: vec![5, 3], dropout }
}

fn close(name: &str, got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "{name}");
    let error = got.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, f32::max);
    assert!(error < 3e-6, "{name} is off by {error:e}");
}

fn agrees_with_the_golden() {
    let g = golden();
    for (name, heads) in [("plain", heads(None)), ("dropout", heads(Some((0.4, 77))))] {
        close(name, &forward(&g["qkv"], D, &heads), &g[name]);
        let d = backward(&g["qkv"], D, &g["grad"], &heads);
        close("d_qkv", &d, &g[&format!("{name}.d_qkv")]);
    }
}

#[test]
fn golden_forward_and_backward() {
    agrees_with_the_golden();
    on_every_instruction_set(agrees_with_the_golden);
}

/// Three blocks of queries, the last one short, against the plain sums.
#[test]
fn several_blocks_of_queries_are_one_sum() {
    let (l, d, n) = (2 * QUERIES + 9, 4, QUERIES + 50);
    let qkv = random(l * 3 * d, 1);
    let heads = Heads { heads: 1, keys: vec![n], dropout: None };
    let at = |i: usize, which: usize, c: usize| f64::from(qkv[i * 3 * d + which * d + c]);
    let mut want = vec![0.0f32; l * d];
    for i in 0..l {
        let score = |j| (0..d).map(|c| at(i, 0, c) * at(j, 1, c)).sum::<f64>() / (d as f64).sqrt();
        let e: Vec<f64> = (0..n).map(|j| score(j).exp()).collect();
        for c in 0..d {
            let mixed: f64 = e.iter().enumerate().map(|(j, e)| e * at(j, 2, c)).sum();
            want[i * d + c] = (mixed / e.iter().sum::<f64>()) as f32;
        }
    }
    close("y", &forward(&qkv, d, &heads), &want);
    // The gradient of a sum over all queries: finite differences at a key, a value and a query of each block.
    let grad = random(l * d, 2);
    let got = backward(&qkv, d, &grad, &heads);
    let loss = |qkv: &[f32]| {
        let y = forward(qkv, d, &heads);
        y.iter().zip(&grad).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum::<f64>()
    };
    for at in [d + 1, (n - 1) * 3 * d + 2 * d, (l - 1) * 3 * d, QUERIES * 3 * d + 2, 3 * d + 2 * d]
    {
        let [mut high, mut low] = [qkv.clone(), qkv.clone()];
        high[at] += 0.01;
        low[at] -= 0.01;
        let want = (loss(&high) - loss(&low)) / 0.02;
        assert!((f64::from(got[at]) - want).abs() < 2e-4, "value {at}: {} and {want}", got[at]);
    }
    let past = &got[n * 3 * d..];
    let unused = past.chunks_exact(3 * d).all(|p| p[d..].iter().all(|&x| x == 0.0));
    assert!(unused, "positions that are no keys have no gradient of key and value");
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let qkv = random(3 * 150 * 3 * 32, 3);
    let grad = random(3 * 150 * 32, 4);
    let heads = Heads { heads: 4, keys: vec![150, 20, 131], dropout: Some((0.1, 5)) };
    on_every_thread_count(|| {
        [forward(&qkv, 32, &heads), backward(&qkv, 32, &grad, &heads)].concat()
    });
}

/// The values at positions that are no keys do not change the other positions.
#[test]
fn padding_changes_nothing() {
    let mut qkv = golden()["qkv"].clone();
    let before = forward(&qkv, D, &heads(None));
    qkv[8 * 3 * D..].fill(f32::NAN); // the second row's positions 3 and 4
    let after = forward(&qkv, D, &heads(None));
    assert_eq!(after[..8 * D], before[..8 * D]);
}

/// Scores far apart and beyond the range of exp.
#[test]
fn large_scores_are_finite() {
    let heads = Heads { heads: 1, keys: vec![2], dropout: None };
    let y = forward(&[200., 200., 1., 200., -200., 2.], 1, &heads);
    assert_eq!(y, [1.0, 1.0]);
}

#[test]
#[should_panic(expected = "row 1: 0 keys, not 1 to 5")]
fn a_row_without_keys_is_refused() {
    forward(&golden()["qkv"], D, &Heads { keys: vec![5, 0], ..heads(None) });
}
