//! Traps of NNN.

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

/// Worked by hand, α = 1/2, k = 2: r = (0.75 + 0.25)/2 and (0.5 + 0.25)/2, over bank queries, not items.
#[test]
fn golden_of_two_items() {
    let bank = ScoreMatrix::from_rows([[0.75, 0.0], [0.25, 0.25], [0.0, 0.5]]);
    let fit = Nnn { alpha: 0.5, k: 2 }.fit(&HeldOutBank(&bank), D).unwrap();
    let u = |j| fit.map().rescore(0, j, 0.5);
    assert_eq!((u(0), u(1)), (0.5 - 0.25, 0.5 - 0.1875));
    let turned = bank.transpose();
    let fit = Nnn { alpha: 0.5, k: 2 }.fit(&HeldOutBank(&turned), Direction::T2i).unwrap();
    assert_eq!(fit.map().rescore(0, 1, 0.5), 0.5 - 0.1875);
}

#[test]
fn k_above_the_bank_is_clipped_to_it() {
    let s = random(9, 14, -0.5, 0.5, 1);
    let bias = |k| Nnn { k, ..Nnn::default() }.fit(&HeldOutBank(&s), D).unwrap();
    let affine = |k| bias(k).map().affine().cloned().unwrap();
    assert_eq!(affine(128), affine(9));
    assert_ne!(affine(8), affine(9));
    let of_128 = Nnn::default().fit(&HeldOutBank(&s), D).unwrap();
    assert_eq!(of_128.map().affine(), Some(&affine(9)));
}

/// Item 0 has norm 1 or 2 in the same direction: with norm 2, its scores and its mean are doubled. With
/// a small α it then comes first.
#[test]
fn embeddings_are_used_as_given() {
    let items = |norm: f32| ScoreMatrix::from_rows([[0.5 * norm, 0.4, 0.3]]);
    let bank = |norm: f32| ScoreMatrix::from_rows([[0.6 * norm, 0.1, 0.2], [0.6 * norm, 0.3, 0.0]]);
    let rank = |norm: f32| {
        let fit = Nnn { alpha: 1.0, k: 2 }.fit(&HeldOutBank(&bank(norm)), D).unwrap();
        ranking(fit.map(), D, &items(norm))[0].iter().position(|&j| j == 0)
    };
    assert_eq!((rank(1.0), rank(2.0)), (Some(2), Some(2)));
    let bias = |norm| {
        let fit = Nnn { alpha: 1.0, k: 2 }.fit(&HeldOutBank(&bank(norm)), D).unwrap();
        fit.map().affine().unwrap().items[0][0]
    };
    assert_eq!(bias(2.0), 2.0 * bias(1.0));
    // With a small α the longer item comes first, although its direction is the same.
    let small = |norm: f32| {
        let fit = Nnn { alpha: 0.5, k: 2 }.fit(&HeldOutBank(&bank(norm)), D).unwrap();
        ranking(fit.map(), D, &items(norm))[0][0]
    };
    assert_eq!((small(1.0), small(2.0)), (1, 0));
}

#[test]
fn alpha_and_k_change_what_comes_out() {
    let s = random(30, 14, -0.5, 0.5, 3);
    let with =
        |alpha, k| corrected(Nnn { alpha, k }.fit(&TestQueries(&s), D).unwrap().map(), D, &s);
    assert_ne!(with(0.75, 4), with(0.5, 4));
    assert_ne!(with(0.75, 4), with(0.75, 5));
    assert_eq!(orders(&with(0.0, 4)), ranking(Correction::none(&s, D).map(), D, &s));
}

#[test]
fn what_is_no_number_is_refused() {
    let s = random(5, 4, -0.5, 0.5, 4);
    for (nnn, want) in [
        (Nnn { alpha: f64::NAN, k: 1 }, "α of NNN: expected a finite number, 0 or more, got NaN"),
        (Nnn { alpha: -0.5, k: 1 }, "α of NNN: expected a finite number, 0 or more, got -0.5"),
        (Nnn { alpha: 0.5, k: 0 }, "k of NNN: expected at least 1 neighbour, got 0"),
    ] {
        assert_eq!(nnn.fit(&TestQueries(&s), D).unwrap_err().to_string(), want);
    }
    let infinite = Masked { scores: &s, value: f32::INFINITY, at: |i, j| (i, j) == (2, 3) };
    let error = Nnn::default().fit(&TestQueries(&infinite), D).unwrap_err().to_string();
    assert_eq!(error, "bank, item 3: expected a finite mean of its nearest scores, got inf");
}
