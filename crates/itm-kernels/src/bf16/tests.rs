//! Operand operands and their product: against f64, against the same arithmetic step by step, and without writes out
//! of bounds.

use super::pack::Operand;
use super::pack::{both, one};
use super::product::{PASS, compute, places};
use super::tile::Base;
use super::*;
use crate::matrix::Matrix;
use crate::product::{Into, Threads};
use crate::random::unit;
use crate::tests::{on_every_instruction_set, on_every_thread_count, random};

/// `[m, k, n]`: zero, one and odd sizes, and sizes around a tile, a cell, a part and a pass.
const SHAPES: [[usize; 3]; 20] = [
    [0, 3, 5],
    [3, 0, 5],
    [3, 5, 0],
    [1, 1, 1],
    [1, 2, 1],
    [2, 1, 3],
    [7, 5, 47],
    [8, 16, 48],
    [9, 33, 49],
    [16, 31, 16],
    [17, 32, 95],
    [1, 300, 200],
    [300, 7, 1],
    [193, 191, 97],
    [41, 193, 385],
    [530, 20, 30],
    [5, 20, 1700],
    [13, 1023, 50],
    [10, 1025, 51],
    [11, 2 * 1024 + 3, 20],
];

fn plain(data: &[f32], rows: usize, cols: usize) -> Matrix<'_> {
    Matrix::new(data, rows, cols)
}

/// The product on all threads, by this engine.
pub(super) fn product_by(
    engine: Engine,
    to: &mut [f32],
    base: Base,
    a: &LeftOperand,
    b: &RightOperand,
) {
    compute(engine, Threads::All, places(to), base, a, b);
}

/// All pairs of an operand, without the zeros before them.
fn pairs<const WIDTH: usize>(of: &Operand<WIDTH>) -> Vec<u32> {
    let panels = of.lanes().div_ceil(WIDTH);
    (0..panels).flat_map(|p| of.panel(p).as_flattened().to_vec()).collect()
}

/// `(1 + 2⁻⁸)² (1 + γ) − 1` and `γ`, as the module's documentation states them.
fn bounds(k: usize) -> [f64; 2] {
    let passes = k.div_ceil(2 * PASS);
    let terms = (2 * k.div_ceil(2).div_ceil(passes.max(1)) + passes) as f64 / (1 << 24) as f64;
    let gamma = terms / (1.0 - terms);
    [(1.0 + 1.0 / 256f64).powi(2) * (1.0 + gamma) - 1.0, gamma]
}

/// Against sums in f64 of the operands before rounding: once with a start, once added to present values.
#[test]
fn errors_are_inside_the_bound() {
    for [m, k, n] in SHAPES {
        let (a, b) = (random(m * k, 1), random(k * n, 2));
        let (row, held) = (random(n, 3), random(m * n, 4));
        let (rows, cols) =
            (LeftOperand::pack(plain(&a, m, k)), RightOperand::pack(plain(&b, k, n)));
        let fresh = product_new(Some(&row), &rows, &cols);
        let mut added = held.clone();
        product_by(Engine::best(), &mut added, Base::Held, &rows, &cols);
        let [relative, gamma] = bounds(k);
        for at in 0..m * n {
            let (i, j) = (at / n, at % n);
            let terms = (0..k).map(|t| f64::from(a[i * k + t]) * f64::from(b[t * n + j]));
            let (sum, size) = terms.fold((0.0, 0.0), |(s, z), t| (s + t, z + t.abs()));
            for (got, start) in [(fresh[at], row[j]), (added[at], held[at])] {
                let start = f64::from(start);
                let error = (f64::from(got) - start - sum).abs();
                let bound = relative * size + gamma * start.abs();
                assert!(error <= bound, "{m} × {k} × {n}, ({i}, {j}): {error:e} > {bound:e}");
            }
        }
    }
}

/// 1 + 2⁻⁸ is a tie and becomes 1: the error is more than 0.99 of the bound.
#[test]
fn the_bound_is_not_loose() {
    let tie = 1.0 + 1.0 / 256.0;
    let (a, b) = (LeftOperand::pack(plain(&[tie], 1, 1)), RightOperand::pack(plain(&[tie], 1, 1)));
    let error = f64::from(tie).powi(2) - f64::from(product_new(None, &a, &b)[0]);
    let bound = bounds(1)[0] * f64::from(tie).powi(2);
    assert!(0.99 * bound < error && error <= bound, "{error} of {bound}");
}

/// Small whole numbers are bf16 numbers, and their sums are exact: any mistake in an index shows.
#[test]
fn whole_numbers_are_exact() {
    let whole = |n, seed| -> Vec<f32> {
        (0..n as u64).map(|k| (unit(seed, k) * 255.0).floor() - 127.0).collect()
    };
    for [m, k, n] in SHAPES {
        let (a, b) = (whole(m * k, 5), whole(k * n, 6));
        let (rows, cols) =
            (LeftOperand::pack(plain(&a, m, k)), RightOperand::pack(plain(&b, k, n)));
        let got = product_new(None, &rows, &cols);
        for (at, got) in got.into_iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let want: i64 = (0..k).map(|t| (a[i * k + t] * b[t * n + j]) as i64).sum();
            // A sum below 2²⁴ is exact at each step; these depths stay below it.
            assert_eq!(got, want as f32, "{m} × {k} × {n}, ({i}, {j})");
        }
    }
}

/// Any bits: numbers of all sizes, subnormal numbers, infinities and NaN.
fn bits(n: usize, seed: u64) -> Vec<f32> {
    let half = |k| (unit(seed, k) * 65536.0) as u32;
    (0..n as u64).map(|k| f32::from_bits(half(2 * k) << 16 | half(2 * k + 1))).collect()
}

/// Numbers near 2⁻⁶², whose products are around the smallest normal number.
fn small(n: usize, seed: u64) -> Vec<f32> {
    random(n, seed).into_iter().map(|x| x * 2f32.powi(-60)).collect()
}

fn same(got: &[f32], want: &[f32]) -> bool {
    let same = |(g, w): (&f32, &f32)| g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan());
    got.len() == want.len() && got.iter().zip(want).all(same)
}

/// The processor and its emulation give the same packed operands and products, bit for bit. Without such a processor,
/// both sides are the emulation.
#[test]
fn the_processor_does_what_the_emulation_does() {
    for make in [random, bits, small] {
        for [m, k, n] in [[1, 1, 1], [9, 33, 49], [20, 200, 100], [3, 1030, 5], [200, 6, 200]] {
            let (a, b, row, held) = (make(m * k, 1), make(k * n, 2), make(n, 3), make(m * n, 4));
            let results = [Engine::best(), Engine::Emulated].map(|engine| {
                let rows: Operand<ROWS> = one(engine, Threads::All, plain(&a, m, k), Vec::new());
                let cols: Operand<COLUMNS> =
                    one(engine, Threads::All, plain(&b, k, n).t(), Vec::new());
                let [mut fresh, mut biased, mut added] =
                    [vec![7.0; m * n], held.clone(), held.clone()];
                product_by(engine, &mut fresh, Base::Zero, &rows, &cols);
                product_by(engine, &mut biased, Base::Row(&row), &rows, &cols);
                product_by(engine, &mut added, Base::Held, &rows, &cols);
                (pairs(&rows), pairs(&cols), [fresh, biased, added].concat())
            });
            let [got, want] = &results;
            assert!((&got.0, &got.1) == (&want.0, &want.1), "operands of {m} × {k} × {n}");
            assert!(same(&got.2, &want.2), "product of {m} × {k} × {n}");
        }
    }
}

/// Single steps of a sum at the ends of the range: the depth is 2, and the first product brings the sum there.
#[test]
fn single_steps_agree_at_the_ends_of_the_range() {
    let near = |n: usize, seed, exponent: i32| -> Vec<f32> {
        let scale = |k| 2f32.powi(exponent + (unit(seed + 1, k) * 26.0) as i32);
        (0..n as u64).map(|k| (unit(seed, k) - 0.5) * scale(k)).collect()
    };
    for exponent in [-88, -76, -63, 50, 63] {
        let (a, b) = (near(64 * 2, 1, exponent), near(2 * 4096, 3, exponent.max(-76)));
        let both = [Engine::best(), Engine::Emulated].map(|engine| {
            let rows: Operand<ROWS> = one(engine, Threads::All, plain(&a, 64, 2), Vec::new());
            let cols: Operand<COLUMNS> =
                one(engine, Threads::All, plain(&b, 2, 4096).t(), Vec::new());
            let mut to = vec![0.0; 64 * 4096];
            product_by(engine, &mut to, Base::Zero, &rows, &cols);
            to
        });
        assert!(same(&both[0], &both[1]), "around 2^{exponent}");
    }
}

/// The processor rounds as [`round`] does, for every upper half and on both sides of ties.
#[test]
fn every_number_is_rounded_alike() {
    let lower = [0u32, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF];
    let values: Vec<f32> = (0..1u32 << 16)
        .flat_map(|upper| lower.map(|lower| f32::from_bits(upper << 16 | lower)))
        .collect();
    let cols = 6 * 256;
    let lie = plain(&values, 256, cols);
    for view in [lie, lie.t()] {
        let rows = LeftOperand::pack(view);
        let (lanes, depth) = (view.rows, view.cols);
        for i in 0..lanes {
            for t in 0..depth / 2 {
                let want = value::pair(view.get(i, 2 * t), view.get(i, 2 * t + 1));
                assert_eq!(rows.panel(i / ROWS)[t][i % ROWS], want, "({i}, {t})");
            }
        }
    }
}

/// Infinities and NaN reach only the sums that contain them. The padding of panels and pairs does not spread them.
#[test]
fn what_is_no_number_stays_so() {
    let (m, k, n) = (9, 5, 50);
    let (mut a, mut b) = (vec![1.0; m * k], vec![1.0; k * n]);
    a[3 * k + 4] = f32::NAN;
    a[5 * k] = f32::INFINITY;
    b[2 * n + 7] = f32::NEG_INFINITY;
    b[11] = 0.0; // ∞ · 0
    let (rows, cols) = (LeftOperand::pack(plain(&a, m, k)), RightOperand::pack(plain(&b, k, n)));
    let got = product_new(None, &rows, &cols);
    for (at, got) in got.into_iter().enumerate() {
        match (at / n, at % n) {
            (3, _) | (5, 7 | 11) => assert!(got.is_nan(), "{at}: {got}"),
            (5, _) => assert_eq!(got, f32::INFINITY, "{at}"),
            (_, 7) => assert_eq!(got, f32::NEG_INFINITY, "{at}"),
            (_, 11) => assert_eq!(got, 4.0, "{at}"),
            _ => assert_eq!(got, 5.0, "{at}"),
        }
    }
}

/// A matrix with any two strides is packed like its copy without gaps.
#[test]
fn views_are_packed_as_their_copies() {
    for [rows, cols] in [[1, 1], [5, 3], [16, 32], [50, 70], [200, 33], [33, 200], [196, 400]] {
        for [row, col] in
            [[cols, 1], [cols + 3, 1], [1, rows], [1, rows + 5], [2 * cols, 2], [3, 3 * rows]]
        {
            let data = random((rows - 1) * row + (cols - 1) * col + 1, 9);
            let view = Matrix::strided(&data, [rows, cols], [row, col]);
            let copy: Vec<f32> =
                (0..rows * cols).map(|at| view.get(at / cols, at % cols)).collect();
            let copy = plain(&copy, rows, cols);
            let what = format!("{rows} × {cols}, strides {row} and {col}");
            let want: Operand<ROWS> = one(Engine::Emulated, Threads::All, copy, Vec::new());
            assert_eq!(pairs(&LeftOperand::pack(view)), pairs(&want), "rows of {what}");
            let want: Operand<COLUMNS> = one(Engine::Emulated, Threads::All, copy.t(), Vec::new());
            assert_eq!(pairs(&RightOperand::pack(view)), pairs(&want), "columns of {what}");
        }
    }
}

/// One pass over a matrix gives the same operands as two passes, also in memory that was used before.
#[test]
fn both_at_once_are_each_alone() {
    let dirty = || vec![u32::MAX; 100_000];
    for [k, n] in [[0, 3], [3, 0], [1, 1], [47, 49], [200, 390], [385, 192]] {
        let values = random(k * n, 3);
        let w = plain(&values, k, n);
        let alone = [pairs(&RightOperand::pack(w)), pairs(&RightOperand::pack(w.t()))];
        let (forward, back): (RightOperand, RightOperand) = pack_both(w.t());
        assert!([pairs(&forward), pairs(&back)] == alone, "{k} × {n}");
        assert_eq!([forward.depth(), forward.lanes(), back.depth(), back.lanes()], [k, n, n, k]);
        for engine in [Engine::best(), Engine::Emulated] {
            let (forward, back) =
                both::<COLUMNS, COLUMNS>(engine, Threads::All, w.t(), [dirty(), dirty()]);
            assert!([pairs(&forward), pairs(&back)] == alone, "{k} × {n} in used memory");
        }
        let (rows, cols): (LeftOperand, RightOperand) = pack_both(w);
        assert!((pairs(&rows), pairs(&cols)) == (pairs(&LeftOperand::pack(w)), alone[0].clone()));
        let (rows, turned): (LeftOperand, LeftOperand) = pack_both(w);
        assert!(
            (pairs(&rows), pairs(&turned))
                == (pairs(&LeftOperand::pack(w)), pairs(&LeftOperand::pack(w.t())))
        );
    }
}

/// One thread alone packs and multiplies to the same bits as all threads.
#[test]
fn one_thread_alone_gives_the_same_bits() {
    for [m, k, n] in SHAPES {
        let (a, b, held) = (random(m * k, 1), random(k * n, 2), random(m * n, 4));
        let (a, b) = (plain(&a, m, k), plain(&b, k, n));
        let (mut rows, mut cols) =
            (LeftOperand::default(), RightOperand::pack(plain(&[f32::NAN; 9], 3, 3)));
        rows.here(a);
        cols.here(b.t()); // in used memory
        let want = (LeftOperand::pack(a), RightOperand::pack(b));
        assert!((pairs(&rows), pairs(&cols)) == (pairs(&want.0), pairs(&want.1)), "operands");
        let mut both: (LeftOperand, RightOperand) = Default::default();
        both_here(&mut both, b);
        let (turned, weight) = both;
        assert!(
            pairs(&turned) == pairs(&LeftOperand::pack(b)) && pairs(&weight) == pairs(&cols),
            "both"
        );
        let mut to = vec![f32::NAN; m * n]; // must not be read
        product_here(&mut to, Into::Replace, &rows, &cols);
        assert!(same(&to, &product_new(None, &rows, &cols)), "{m} × {k} × {n}");
        let [mut to, mut want] = [held.clone(), held];
        product_here(&mut to, Into::Add, &rows, &cols);
        product_by(Engine::best(), &mut want, Base::Held, &rows, &cols);
        assert!(same(&to, &want), "{m} × {k} × {n}, added");
    }
}

/// Every value of the product is written, and nothing before or behind it.
#[test]
fn nothing_beyond_the_product_is_written() {
    for [m, k, n] in SHAPES {
        let (rows, cols) = (
            LeftOperand::pack(plain(&random(m * k, 1), m, k)),
            RightOperand::pack(plain(&random(k * n, 2), k, n)),
        );
        let want = product_new(None, &rows, &cols);
        let inside = 3..3 + m * n;
        for engine in [Engine::best(), Engine::Emulated] {
            let mut all = vec![-77.0; inside.end + 2 * n + 3];
            all[inside.clone()].fill(f32::NAN); // must not be read
            product_by(engine, &mut all[inside.clone()], Base::Zero, &rows, &cols);
            assert_eq!(all[inside.clone()], want, "{m} × {k} × {n}");
            let others = [&all[..inside.start], &all[inside.end..]].concat();
            assert!(others.iter().all(|&x| x == -77.0), "{m} × {k} × {n}");
        }
    }
}

/// A product has the same bits on any number of threads, and each value has the same bits when it is computed alone.
#[test]
fn threads_and_neighbours_change_no_bit() {
    let (m, k, n) = (300, 1500, 800);
    let (a, b) = (random(m * k, 1), random(k * n, 2));
    on_every_thread_count(|| {
        let (rows, _): (_, LeftOperand) = pack_both(plain(&a, m, k));
        product_new(None, &rows, &RightOperand::pack(plain(&b, k, n)))
    });
    let all = product_new(
        None,
        &LeftOperand::pack(plain(&a, m, k)),
        &RightOperand::pack(plain(&b, k, n)),
    );
    let row = LeftOperand::pack(plain(&a[257 * k..][..k], 1, k));
    let column = RightOperand::pack(Matrix::strided(&b[700..], [k, 1], [n, 1]));
    assert_eq!(product_new(None, &row, &column), [all[257 * n + 700]]);
}

/// The emulation does not depend on the instructions that it is compiled to.
#[test]
fn the_emulation_is_one() {
    let (m, k, n) = (9, 40, 50);
    let (a, b) = (small(m * k, 1), small(k * n, 2));
    let emulated = || {
        let rows: Operand<ROWS> = one(Engine::Emulated, Threads::All, plain(&a, m, k), Vec::new());
        let cols: Operand<COLUMNS> =
            one(Engine::Emulated, Threads::All, plain(&b, k, n).t(), Vec::new());
        let mut to = vec![0.0; m * n];
        product_by(Engine::Emulated, &mut to, Base::Zero, &rows, &cols);
        to
    };
    let want = emulated();
    assert!(want.iter().any(|v| *v != 0.0));
    on_every_instruction_set(|| assert!(same(&emulated(), &want)));
}

#[test]
#[should_panic(expected = "product of 2 × 3 and 2 × 2")]
fn operands_that_do_not_fit_are_refused() {
    let (a, b) =
        (LeftOperand::pack(plain(&[0.0; 6], 2, 3)), RightOperand::pack(plain(&[0.0; 4], 2, 2)));
    product_new(None, &a, &b);
}

#[test]
#[should_panic(expected = "values of a product")]
fn a_short_destination_is_refused() {
    let (a, b) =
        (LeftOperand::pack(plain(&[0.0; 4], 2, 2)), RightOperand::pack(plain(&[0.0; 4], 2, 2)));
    product_here(&mut [0.0; 3], Into::Add, &a, &b);
}

#[test]
#[should_panic(expected = "3 values for rows of 2")]
fn a_long_start_is_refused() {
    let (a, b) =
        (LeftOperand::pack(plain(&[0.0; 4], 2, 2)), RightOperand::pack(plain(&[0.0; 4], 2, 2)));
    product_new(Some(&[0.0; 3]), &a, &b);
}

#[test]
#[should_panic(expected = "the last of 3 × 2 is value 9 of 9")]
fn a_short_view_is_refused() {
    Matrix::strided(&[0.0; 9], [3, 2], [4, 1]);
}
