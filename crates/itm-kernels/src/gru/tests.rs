use super::*;
use crate::tests::{counts, f32s, golden, on_every_instruction_set, on_every_thread_count, random};

/// Largest error.
fn worst(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).map(|(&g, &w)| (f64::from(g) - w).abs()).max_by(f64::total_cmp).unwrap()
}

/// States and gradients of a forward and backward pass on random input.
fn both(lengths: &[usize], l: usize, i: usize, h: usize) -> (Vec<f32>, [Vec<f32>; 5]) {
    let (x, w_ih) = (random(lengths.len() * l * i, 1), random(i * 3 * h, 2));
    let (w_hh, b_ih, b_hh) = (random(h * 3 * h, 3), random(3 * h, 4), random(3 * h, 5));
    let weights = GruWeights { w_ih: &w_ih, w_hh: &w_hh, b_ih: &b_ih, b_hh: &b_hh };
    let packing = Packing::new(lengths, l);
    let (states, gates) = forward_saving(&x, &[weights], &packing);
    let grad = random(states.len(), 6);
    let d = gradients(&x, weights, &packing, &states, &gates, &grad);
    (states, d)
}

/// Gradients of the input and of the weights of one unit.
fn gradients(
    x: &[f32],
    weights: GruWeights,
    packing: &Packing,
    states: &[f32],
    gates: &[Vec<f32>],
    grad: &[f32],
) -> [Vec<f32>; 5] {
    let (x, mut units) = backward(x, &[weights], packing, states, &[&gates[0]], grad);
    let Gradients { w_ih, w_hh, b_ih, b_hh } = units.remove(0);
    assert!(units.is_empty());
    [x, w_ih, w_hh, b_ih, b_hh]
}

/// States and all five gradients, from `tests/reference/gru.py`: double precision, gradients by complex steps.
fn check_golden() {
    let g = golden("gru");
    let inputs = ["x", "w_ih", "w_hh", "b_ih", "b_hh", "c"].map(|k| f32s(&g[k]));
    let [x, w_ih, w_hh, b_ih, b_hh, c] = &inputs;
    let lengths = counts(&g["lengths"]);
    let packing = Packing::new(&lengths, g["sizes"][1] as usize);
    let weights = GruWeights { w_ih, w_hh, b_ih, b_hh };
    let (states, gates) = forward_saving(x, &[weights], &packing);
    assert!(worst(&states, &g["states"]) < 1e-6);
    assert_eq!(states, forward(x, &[weights], &packing), "with and without saved gates");
    let d = gradients(x, weights, &packing, &states, &gates, c);
    for (name, got) in ["x", "w_ih", "w_hh", "b_ih", "b_hh"].into_iter().zip(d) {
        let error = worst(&got, &g[&format!("d_{name}")]);
        assert!(error < 5e-6, "gradient of {name} is off by {error:e}");
    }
}

/// Runs on all threads, and with each copy of the kernels that the CPU supports. A copy compiled for features that
/// the CPU lacks would end the process here.
#[test]
fn golden_states_and_gradients() {
    check_golden();
    on_every_instruction_set(check_golden);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let lengths: Vec<usize> = (0..150).map(|b| 1 + b % 9).collect();
    on_every_thread_count(|| {
        let (states, d) = both(&lengths, 9, 70, 100);
        [states, d.concat()].concat()
    });
}

/// A sequence gives the same states alone and beside longer sequences; the padding is never read.
#[test]
fn padding_changes_nothing() {
    let (i, h, l) = (5, 33, 7);
    let (w_ih, w_hh) = (random(i * 3 * h, 1), random(h * 3 * h, 2));
    let (b_ih, b_hh) = (random(3 * h, 3), random(3 * h, 4));
    let weights = GruWeights { w_ih: &w_ih, w_hh: &w_hh, b_ih: &b_ih, b_hh: &b_hh };
    let mut x = random(2 * l * i, 5);
    x[3 * i..l * i].fill(f32::NAN); // sequence 0 has three steps
    let packing = Packing::new(&[3, 7], l);
    let (states, gates) = forward_saving(&x, &[weights], &packing);

    let alone = forward(&x[..3 * i], &[weights], &Packing::new(&[3], 3));
    let error =
        alone.iter().zip(&states).map(|(a, b)| (a - b).abs()).max_by(f32::total_cmp).unwrap();
    assert!(error < 1e-6, "{error:e}");
    for t in 3..l {
        assert_eq!(states[t * h..(t + 1) * h], states[2 * h..3 * h], "step {t} repeats step 2");
    }

    let d = gradients(&x, weights, &packing, &states, &gates, &random(2 * l * h, 6));
    assert!(d[0][3 * i..l * i].iter().all(|&g| g == 0.0));
    assert!(d.iter().flatten().all(|g| g.is_finite()));
}

/// Swapped sequences give swapped states, for every width up to 34: no step, row or column is lost at an edge.
#[test]
fn the_order_of_a_batch_does_not_matter() {
    for h in 1..35 {
        let (states, _) = both(&[2, 3], 3, 2, h);
        let packing = Packing::new(&[3, 2], 3);
        let (w_ih, w_hh) = (random(6 * h, 2), random(h * 3 * h, 3));
        let (b_ih, b_hh) = (random(3 * h, 4), random(3 * h, 5));
        let weights = GruWeights { w_ih: &w_ih, w_hh: &w_hh, b_ih: &b_ih, b_hh: &b_hh };
        let x = random(12, 1);
        let swapped = forward(&[&x[6..], &x[..6]].concat(), &[weights], &packing);
        assert_eq!([&swapped[3 * h..], &swapped[..3 * h]].concat(), states);
    }
}

#[test]
#[should_panic(expected = "sequence 1: length 0, not 1 to 3")]
fn an_empty_sequence_is_refused() {
    Packing::new(&[3, 0], 3);
}

#[test]
#[should_panic(expected = "sequence 0: length 4, not 1 to 3")]
fn a_sequence_longer_than_the_padding_is_refused() {
    Packing::new(&[4], 3);
}

#[test]
#[should_panic(expected = "x has 11 values, not 2 × 3 × 2")]
fn a_short_input_is_refused() {
    let weights =
        GruWeights { w_ih: &[0.0; 12], w_hh: &[0.0; 12], b_ih: &[0.0; 6], b_hh: &[0.0; 6] };
    forward(&[0.0; 11], &[weights], &Packing::new(&[3, 1], 3));
}

/// Refused before memory for its states is taken, 256 GiB.
#[test]
#[should_panic(expected = "x has 1 values")]
fn a_short_input_of_many_steps_is_refused() {
    let [gates, state] = [4096 * 3, 4096 * 4096 * 3].map(|n| vec![0.0; n]);
    let weights = GruWeights { w_ih: &gates, w_hh: &state, b_ih: &gates, b_hh: &gates };
    forward(&[0.0], &[weights], &Packing::new(&[1], 1 << 24));
}

/// Nineteen sequences in three blocks of rows, with more units than a panel. Each sequence has the states and the input
/// gradient that it has alone, and the weight gradients are the sums over the sequences alone.
#[test]
fn a_batch_is_its_sequences_side_by_side() {
    let (l, i, h) = (4, 3, 50);
    let lengths: Vec<usize> = (0..19).map(|b| 1 + b * 7 % 4).collect();
    let parts: Vec<_> = (0..2)
        .map(|d| [i * 3 * h, h * 3 * h, 3 * h, 3 * h].map(|n| random(n, 10 * d + n as u64)))
        .collect();
    let units = [&parts[0], &parts[1]].map(|[w_ih, w_hh, b_ih, b_hh]| GruWeights {
        w_ih,
        w_hh,
        b_ih,
        b_hh,
    });
    let run = |x: &[f32], grad: &[f32], lengths: &[usize]| {
        let packing = Packing::new(lengths, l);
        let (states, gates) = forward_saving(x, &units, &packing);
        let (d_x, d) = backward(x, &units, &packing, &states, &[&gates[0], &gates[1]], grad);
        (states, d_x, d)
    };
    let (x, grad) = (random(19 * l * i, 7), random(19 * l * 2 * h, 8));
    let (states, d_x, weights) = run(&x, &grad, &lengths);

    let f64s = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let mut sums = [&weights[0], &weights[1]]
        .map(|g| [&g.w_ih, &g.w_hh, &g.b_ih, &g.b_hh].map(|v| vec![0.0f64; v.len()]));
    for (b, &n) in lengths.iter().enumerate() {
        let rows = |v: &[f32], w: usize| v[b * l * w..(b + 1) * l * w].to_vec();
        let (alone, alone_d_x, d) = run(&rows(&x, i), &rows(&grad, 2 * h), &[n]);
        assert!(worst(&rows(&states, 2 * h), &f64s(&alone)) < 1e-6, "sequence {b}");
        assert!(worst(&rows(&d_x, i), &f64s(&alone_d_x)) < 1e-5, "sequence {b}");
        for (sums, d) in sums.iter_mut().zip(&d) {
            for (sum, d) in sums.iter_mut().zip([&d.w_ih, &d.w_hh, &d.b_ih, &d.b_hh]) {
                sum.iter_mut().zip(d).for_each(|(s, &d)| *s += f64::from(d));
            }
        }
    }
    for (got, want) in weights.iter().zip(&sums) {
        for (got, want) in [&got.w_ih, &got.w_hh, &got.b_ih, &got.b_hh].into_iter().zip(want) {
            assert!(worst(got, want) < 1e-4);
        }
    }
}

const NARROW: GruWeights =
    GruWeights { w_ih: &[0.1; 3], w_hh: &[0.1; 3], b_ih: &[0.1; 3], b_hh: &[0.1; 3] };
const WIDE: GruWeights =
    GruWeights { w_ih: &[0.1; 6], w_hh: &[0.1; 12], b_ih: &[0.1; 6], b_hh: &[0.1; 6] };

#[test]
#[should_panic(expected = "widths of the two units")]
fn units_of_two_widths_are_refused() {
    forward(&[1.0], &[WIDE, NARROW], &Packing::new(&[1], 1));
}

/// Each of these units fits its gates, and both fit the output.
#[test]
#[should_panic(expected = "widths of the two units")]
fn gradients_of_units_of_two_widths_are_refused() {
    let (gates, packing) = ([1.0; 8], Packing::new(&[1], 1));
    backward(&[1.0], &[WIDE, NARROW], &packing, &[1.0; 4], &[&gates, &gates[..4]], &[1.0; 4]);
}

/// 2⁶⁴ values would count as none.
#[test]
#[should_panic(expected = "x has 0 values, not 1048576 × 1048576 × 16777216")]
fn more_values_than_can_be_counted_are_refused() {
    let (n, w_ih) = (1 << 20, vec![0.0; 3 << 24]);
    forward(&[], &[GruWeights { w_ih: &w_ih, ..NARROW }], &Packing::new(&vec![1; n], n));
}
