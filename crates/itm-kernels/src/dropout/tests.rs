use super::*;
use crate::blocks::BLOCK;
use crate::tests::{golden, on_every_instruction_set, on_every_thread_count, random};

fn bits_at(seed: u64, position: u64) -> u32 {
    let block = BLOCK as u64;
    bits(random::derive(seed, position / block), (position % block) as u32)
}

/// Against the same hash on Python's integers, from `tests/reference/kernels.py`.
#[test]
fn golden_bits() {
    let g = golden("kernels");
    let mut want = g["dropout_bits"].iter();
    for seed in [0, 1, u64::MAX] {
        for &position in &g["dropout_positions"] {
            let got = bits_at(seed, position as u64);
            assert_eq!(Some(&f64::from(got)), want.next(), "seed {seed}, position {position}");
        }
    }
    assert!(want.next().is_none());
}

/// Every function keeps a value exactly if its bits say so, on every instruction set, with and without a tail.
#[test]
fn factors_follow_the_bits() {
    for rate in [0.0, 0.1, 0.5, 0.9] {
        for n in [1, 16, 17, BLOCK - 1, 5 * BLOCK + 19] {
            let scale = (1.0 / (1.0 - rate)) as f32;
            let want = |k: usize| {
                let share = f64::from(bits_at(7, k as u64)) / 4_294_967_296.0;
                if share < rate { 0.0 } else { scale }
            };
            let want: Vec<f32> = (0..n).map(want).collect();
            let (x, r) = (random(n, 1), random(n, 2));
            on_every_instruction_set(|| {
                let mask = Mask::new(rate, 7);
                assert_eq!(mask.factors(n), want);
                let product: Vec<f32> = x.iter().zip(&want).map(|(x, f)| x * f).collect();
                assert_eq!(mask.applied(&x), product);
                let mut in_place = x.clone();
                mask.apply(&mut in_place);
                assert_eq!(in_place, product);
                let mut sum = x.clone();
                mask.apply_and_add(&mut sum, &r);
                let want: Vec<f32> = product.iter().zip(&r).map(|(p, r)| p + r).collect();
                assert_eq!(sum, want);
            });
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let x = random(50_000, 1);
    on_every_thread_count(|| Mask::new(0.1, 3).applied(&x));
}

/// The bits are uniform: χ² of each of the four bytes, 255 degrees of freedom. Chance exceeds 380 once in two million.
#[test]
fn bits_are_uniform() {
    let n = 1 << 18;
    for seed in 0..16 {
        for shift in [0, 8, 16, 24] {
            let mut bins = [0u32; 256];
            (0..n).for_each(|k| bins[(bits_at(seed, k) >> shift) as usize % 256] += 1);
            let expected = n as f64 / 256.0;
            let chi2: f64 =
                bins.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
            assert!(chi2 < 380.0, "seed {seed}, bits from {shift}: χ² {chi2}");
        }
    }
}

/// At rate 0.1, one drop says nothing about another: at a neighbour, a row or a block further, with the next seed, or
/// in another layer. The joint frequency of two drops is within five standard errors of 0.01.
#[test]
fn drops_are_independent() {
    let (n, rate) = (1u64 << 19, 0.1);
    let dropped = |seed, k| f64::from(bits_at(seed, k)) < rate * 4_294_967_296.0;
    let bound = 5.0 * (rate * rate * (1.0 - rate * rate) / n as f64).sqrt();
    for seed in [0, 1, 12_345] {
        let share = (0..n).filter(|&k| dropped(seed, k)).count() as f64 / n as f64;
        assert!((share - rate).abs() < 5.0 * (rate * (1.0 - rate) / n as f64).sqrt(), "{share}");
        let others: [(&str, u64, u64); 11] = [
            ("neighbour", seed, 1),
            ("two further", seed, 2),
            ("register", seed, 16),
            ("power of two", seed, 256),
            ("row of 768", seed, 768),
            ("block", seed, BLOCK as u64),
            ("row of 3072", seed, 3072),
            ("next seed", seed + 1, 0),
            ("next seed's neighbour", seed + 1, 1),
            ("layer", random::derive(seed, 1), 0),
            ("next layer", random::derive(random::derive(seed, 1), 2), 0),
        ];
        for (name, other, shift) in others {
            let both = (0..n).filter(|&k| dropped(seed, k) && dropped(other, k + shift)).count();
            let share = both as f64 / n as f64;
            assert!((share - rate * rate).abs() < bound, "seed {seed}, {name}: {share}");
        }
    }
}

/// At rate 1/2, all patterns of eight consecutive drops are equally frequent. This finds linear structure that pairs
/// do not show.
#[test]
fn drops_in_a_row_are_as_rare_as_by_chance() {
    let n = 1u64 << 20;
    let half = |k| bits_at(9, k) < 1 << 31;
    let mut patterns = [0u32; 256];
    for k in (0..n).step_by(8) {
        patterns[(0..8).fold(0, |p, j| 2 * p + usize::from(half(k + j)))] += 1;
    }
    let expected = (n / 8) as f64 / 256.0;
    let chi2: f64 = patterns.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
    assert!((140.0..380.0).contains(&chi2), "χ² {chi2} of 255 degrees of freedom");
}

#[test]
#[should_panic(expected = "dropout 1, not in 0 to 1")]
fn nothing_left_is_refused() {
    Mask::new(1.0, 0);
}
