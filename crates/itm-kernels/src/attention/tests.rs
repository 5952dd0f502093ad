use std::collections::BTreeMap;

use super::plain::QUERIES;
use super::*;
use crate::bf16;
use crate::tests::{on_every_instruction_set, on_every_thread_count, random};

type Golden = BTreeMap<String, Vec<f32>>;

const D: usize = 6;

/// From `tests/reference/attention.py`: double precision, gradients by central differences.
fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/golden/attention.json")).unwrap()
}

fn heads(dropout: Option<(f32, u64)>) -> Heads {
    Heads { heads: 2, keys: vec![5, 3], causal: false, dropout, precision: Precision::F32 }
}

fn close(name: &str, got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "{name}");
    let error = got.iter().zip(want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap();
    assert!(error < 3e-6, "{name} is off by {error:e}");
}

fn agrees_with_the_golden() {
    let g = golden();
    for (name, heads) in [
        ("plain", heads(None)),
        ("dropout", heads(Some((0.4, 77)))),
        ("causal", Heads { causal: true, ..heads(Some((0.4, 77))) }),
    ] {
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
    let heads = Heads { heads: 1, keys: vec![n], ..heads(None) };
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
    let heads = Heads { heads: 4, keys: vec![150, 20, 131], ..heads(Some((0.1, 5))) };
    for precision in [Precision::F32, Precision::Bf16] {
        for causal in [false, true] {
            let heads = Heads { causal, ..heads.clone() };
            on_every_thread_count(|| {
                let y = forward_in(precision, &qkv, 32, &heads);
                [y, backward_in(precision, &qkv, 32, &grad, &heads)].concat()
            });
        }
    }
}

/// Attention and its gradient in f64, with the operands of the products rounded where bf16 rounds them. A value near a
/// tie may be rounded to its other neighbour, because the kernel's softmax is f32.
fn rounded_reference(qkv: &[f32], d: usize, grad: &[f32], heads: &Heads) -> [Vec<f64>; 2] {
    let (l, w) = (qkv.len() / (3 * d * heads.keys.len()), d / heads.heads);
    let bf = |x: f64| f64::from(bf16::widen(bf16::round(x as f32)));
    let (mut y, mut dqkv) = (vec![0.0; qkv.len() / 3], vec![0.0; qkv.len()]);
    for pair in 0..heads.keys.len() * heads.heads {
        let (row, head, n) =
            (pair / heads.heads, pair % heads.heads, heads.keys[pair / heads.heads]);
        let at = |i: usize, which: usize, c: usize| ((row * l + i) * 3 + which) * d + head * w + c;
        let of_y = |i: usize, c: usize| (row * l + i) * d + head * w + c;
        let [q, k, v] =
            [0, 1, 2].map(|which| move |i: usize, c: usize| bf(f64::from(qkv[at(i, which, c)])));
        let g = |i: usize, c: usize| bf(f64::from(grad[of_y(i, c)]));
        let scale = 1.0 / (w as f64).sqrt();
        for i in 0..l {
            let n = if heads.causal { n.min(i + 1) } else { n };
            let e = |j| ((0..w).map(|c| q(i, c) * k(j, c)).sum::<f64>() * scale).exp();
            let e: Vec<f64> = (0..n).map(e).collect();
            let sum: f64 = e.iter().sum();
            let mask = |j: usize| {
                heads.dropout.map_or(1.0, |(rate, seed)| {
                    f64::from(random::keep(seed, ((pair * l + i) * l + j) as u64, rate))
                })
            };
            let da = |j: usize| mask(j) * (0..w).map(|c| g(i, c) * v(j, c)).sum::<f64>();
            let along: f64 = (0..n).map(|j| e[j] / sum * da(j)).sum();
            for j in 0..n {
                let a = e[j] / sum;
                let dropped = bf(a * mask(j));
                let ds = bf(a * (da(j) - along) * scale);
                for c in 0..w {
                    y[of_y(i, c)] += dropped * v(j, c);
                    dqkv[at(i, 0, c)] += ds * k(j, c);
                    dqkv[at(j, 1, c)] += ds * q(i, c);
                    dqkv[at(j, 2, c)] += dropped * g(i, c);
                }
            }
        }
    }
    [y, dqkv]
}

/// In bf16, with one block of queries and with several blocks, odd widths, padding and dropout.
#[test]
fn bf16_rounds_the_operands_of_the_products_and_nothing_else() {
    for (l, keys, d, n_heads, dropout, causal) in [
        (5, vec![5, 3], 6, 2, None, false),
        (5, vec![5, 3], 6, 2, Some((0.4, 77)), false),
        (37, vec![37, 18], 64, 2, Some((0.1, 5)), false),
        (300, vec![290], 17, 1, None, false),
        (300, vec![290], 17, 1, None, true),
    ] {
        let heads = Heads { heads: n_heads, keys, causal, dropout, precision: Precision::Bf16 };
        let b = heads.keys.len();
        let (qkv, grad) = (random(b * l * 3 * d, 1), random(b * l * d, 2));
        let qkv: Vec<f32> = qkv.iter().map(|x| 4.0 * x).collect();
        let want = rounded_reference(&qkv, d, &grad, &heads);
        let got = [
            forward_in(Precision::Bf16, &qkv, d, &heads),
            backward_in(Precision::Bf16, &qkv, d, &grad, &heads),
        ];
        for (name, got, want) in [("y", &got[0], &want[0]), ("d_qkv", &got[1], &want[1])] {
            assert_eq!(got.len(), want.len());
            let size = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
            let off = size(&mut got.iter().zip(want).map(|(g, w)| f64::from(*g) - w));
            let relative = off / size(&mut want.iter().copied());
            // One rounding of all operands would be off by 2e-3.
            assert!(relative < 2e-4, "{l} positions, {name}: {relative:e}");
        }
    }
    assert!(rounded::queries(300, 290) < 300, "the last case has several blocks");
}

#[test]
fn bf16_of_small_whole_numbers_is_f32() {
    // All scores are 0, and each of four keys has the weight 1/4: every operand is a bf16 number.
    let qkv: Vec<f32> = (0..4).flat_map(|i| [0.0, 1.0, i as f32]).collect();
    let heads = Heads { heads: 1, keys: vec![4], precision: Precision::Bf16, ..heads(None) };
    let grad = [1.0, 2.0, 3.0, 2.0];
    for precision in [Precision::F32, Precision::Bf16] {
        assert_eq!(forward_in(precision, &qkv, 1, &heads), [1.5; 4]);
        let d = backward_in(precision, &qkv, 1, &grad, &heads);
        // dV = Σ g / 4; dS_ij = a g_i (v_j − 1.5), so dK = 0 as q = 0, and dQ = Σ_j dS_ij = 0.
        assert_eq!(d, [0.0, 0.0, 2.0].repeat(4));
    }
}

/// The values at positions that are no keys do not change the other positions.
#[test]
fn padding_changes_nothing() {
    let mut qkv = golden()["qkv"].clone();
    let both = |qkv: &[f32]| {
        [Precision::F32, Precision::Bf16]
            .map(|precision| forward_in(precision, qkv, D, &heads(None)))
    };
    let before = both(&qkv);
    qkv[8 * 3 * D..].fill(f32::NAN); // the second row's positions 3 and 4
    for (after, before) in both(&qkv).iter().zip(&before) {
        assert_eq!(after[..8 * D], before[..8 * D]);
    }
}

/// What follows a position changes no bit of it, with a whole block of queries before it too.
#[test]
fn a_causal_row_depends_on_what_stands_before_it() {
    let (l, d, at) = (QUERIES + 30, 12, QUERIES + 4);
    let mut qkv = random(l * 3 * d, 6);
    let heads = Heads { keys: vec![l], causal: true, ..heads(None) };
    let both = |qkv: &[f32]| {
        [Precision::F32, Precision::Bf16].map(|precision| forward_in(precision, qkv, d, &heads))
    };
    let before = both(&qkv);
    assert_eq!(before[0][..d], qkv[2 * d..3 * d]); // the first sees only itself
    qkv[(at + 1) * 3 * d..].iter_mut().for_each(|x| *x = 7.0 - *x);
    for (after, before) in both(&qkv).iter().zip(&before) {
        assert_eq!(after[..(at + 1) * d], before[..(at + 1) * d]);
        assert_ne!(after[(at + 1) * d..], before[(at + 1) * d..]);
    }
}

/// Scores far apart and beyond the range of exp.
#[test]
fn large_scores_are_finite() {
    let heads = Heads { heads: 1, keys: vec![2], ..heads(None) };
    let y = forward(&[200., 200., 1., 200., -200., 2.], 1, &heads);
    assert_eq!(y, [1.0, 1.0]);
}

#[test]
#[should_panic(expected = "row 1: 0 keys, not 1 to 5")]
fn a_row_without_keys_is_refused() {
    forward(&golden()["qkv"], D, &Heads { keys: vec![5, 0], ..heads(None) });
}
