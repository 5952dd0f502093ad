use super::*;
use crate::random::unit;

/// Numbers in −1 … 1, a function of the seed.
fn random(n: usize, seed: u64) -> Vec<f32> {
    (0..n as u64).map(|k| 2.0 * unit(seed, k) - 1.0).collect()
}

fn packed(v: &[f32], w: &[f32], dim: usize, scale: f32) -> (PackedRows, PackedColumns) {
    let (mut rows, mut columns) = (PackedRows::default(), PackedColumns::default());
    rows.fill(v, dim, scale);
    columns.fill(w, dim, scale);
    (rows, columns)
}

/// Sums in 64 bits, by the definition.
fn want(v: &[f32], w: &[f32], dim: usize, scale: f32, i: usize, j: usize) -> i64 {
    let q = |x: f32| i64::from((x * scale).round_ties_even() as i32);
    (0..dim).map(|k| q(v[i * dim + k]) * q(w[j * dim + k])).sum()
}

/// Odd depths, several passes, incomplete panels, a single row: every engine gives the exact sum and writes nothing else.
#[test]
fn every_engine_gives_the_exact_sums() {
    for (m, n, dim) in
        [(1, 1, 1), (3, 17, 5), (12, 16, 64), (13, 33, 511), (25, 40, 1025), (7, 3, 1537)]
    {
        let (v, w) = (random(m * dim, 1), random(n * dim, 2));
        let scale = 900.0; // 900² · 1,537 < 2³¹
        let (rows, columns) = packed(&v, &w, dim, scale);
        for engine in Engine::here() {
            let width = columns.width();
            let used = m.next_multiple_of(ROWS) * width;
            let mut got = vec![i32::MIN; used + 50];
            product_by(engine, &rows, 0..m, &columns, &mut got);
            for i in 0..m {
                for j in 0..width {
                    let want = if j < n { want(&v, &w, dim, scale, i, j) } else { 0 };
                    let got = i64::from(got[i * width + j]);
                    assert_eq!(got, want, "{engine:?}: {m} × {n} × {dim} at {i}, {j}");
                }
            }
            assert!(got[used..].iter().all(|&v| v == i32::MIN), "{engine:?}");
            let mut last = Vec::new();
            product_by(engine, &rows, m - 1..m, &columns, &mut last);
            assert_eq!(last[..width], got[(m - 1) * width..m * width], "{engine:?}: the last row");
        }
    }
}

/// The largest values that the documents allow: 32,000 long rows of a single value, and of 512 equal ones.
#[test]
fn the_longest_rows_do_not_overflow() {
    for dim in [1, 2, 512] {
        let value = 1.0 / (dim as f32).sqrt();
        for sign in [1.0, -1.0] {
            let (v, w) = (vec![value; dim], vec![sign * value; dim]);
            let (rows, columns) = packed(&v, &w, dim, 32_000.0);
            for engine in Engine::here() {
                let mut got = Vec::new();
                product_by(engine, &rows, 0..1, &columns, &mut got);
                assert_eq!(i64::from(got[0]), want(&v, &w, dim, 32_000.0, 0, 0), "{engine:?}");
            }
        }
    }
}

/// The bound of the module's documents, in f64, holds for each pair, and is not idle: some pair uses a twentieth of it.
#[test]
fn the_error_is_below_its_bound() {
    let (m, n, dim, scale) = (20, 30, 100, 3_000.0f32);
    let (v, w) = (random(m * dim, 3), random(n * dim, 4));
    let (rows, columns) = packed(&v, &w, dim, scale);
    let mut c = Vec::new();
    product(&rows, 0..m, &columns, &mut c);
    let exact = |x: f32| f64::from(x) * f64::from(scale);
    let length =
        |row: &[f32], f: &dyn Fn(f32) -> f64| row.iter().map(|&x| f(x).powi(2)).sum::<f64>().sqrt();
    let mut most = 0.0f64;
    for (i, v) in v.chunks(dim).enumerate() {
        for (j, w) in w.chunks(dim).enumerate() {
            let sum: f64 = v.iter().zip(w).map(|(&v, &w)| exact(v) * exact(w)).sum();
            let error = |x: f32| exact(x) - f64::from(round(x, scale));
            let bound = length(v, &|x| f64::from(round(x, scale))) * length(w, &error)
                + length(v, &error) * length(w, &exact);
            let share = (sum - f64::from(c[i * columns.width() + j])).abs() / bound;
            assert!(share <= 1.0, "{share} of the bound");
            most = most.max(share);
        }
    }
    assert!(most > 0.05, "{most}");
}

#[test]
fn rounding_is_to_the_nearest_ties_to_even() {
    for (value, want) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (31_999.6, 32_000)] {
        assert_eq!(round(value, 1.0), want, "{value}");
    }
}

#[test]
fn nothing_and_reuse() {
    let (mut rows, mut columns) = packed(&random(600, 5), &random(600, 6), 20, 500.0);
    rows.fill(&[1.0, 1.0, 1.0], 3, 2.0);
    columns.fill(&[1.0, 2.0, 3.0], 3, 1.0);
    let mut c = Vec::new();
    product(&rows, 0..1, &columns, &mut c);
    assert_eq!(
        (c[0], c[1], c[columns.width()]),
        (12, 0, 0),
        "no value of earlier operands is left"
    );
    rows.fill(&[], 4, 1.0);
    columns.fill(&[], 4, 1.0);
    assert_eq!(columns.width(), 0);
    product(&rows, 0..0, &columns, &mut c);
}

#[test]
#[should_panic(expected = "pairs of values in a row and in a column")]
fn other_depths_are_refused() {
    let (rows, columns) = (packed(&[1.0; 4], &[], 4, 1.0).0, packed(&[], &[1.0; 8], 8, 1.0).1);
    product(&rows, 0..1, &columns, &mut Vec::new());
}

#[test]
#[should_panic(expected = "rows 1..3 of 2")]
fn rows_beyond_the_last_are_refused() {
    let (rows, columns) = packed(&[1.0; 8], &[1.0; 8], 4, 1.0);
    product(&rows, 1..3, &columns, &mut Vec::new());
}

#[test]
#[should_panic(expected = "whole rows of 4 values")]
fn incomplete_rows_are_refused() {
    packed(&[1.0; 6], &[], 4, 1.0);
}
