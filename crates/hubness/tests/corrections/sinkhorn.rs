//! Traps of Sinkhorn normalisation.

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

fn sinkhorn(epsilon: f64, iterations: usize) -> Sinkhorn {
    Sinkhorn { epsilon, iterations, tolerance: 0.0 }
}

/// f and g from the equations: one step of g, then some iterations.
fn naive(x: &ScoreMatrix, of: Sinkhorn) -> (Vec<f64>, Vec<f64>) {
    let (p, m, eps) = (x.images(), x.texts(), of.epsilon);
    let s = |i: usize, j: usize| f64::from(x.row(i)[j]);
    let mut f = vec![0.0; p];
    let columns = |f: &[f64]| -> Vec<f64> {
        let sum = |j: usize| lse((0..p).map(|i| (s(i, j) + f[i]) / eps));
        (0..m).map(|j| eps * ((1.0 / m as f64).ln() - sum(j))).collect()
    };
    let mut g = columns(&f);
    for _ in 0..of.iterations {
        let sum = |i: usize| lse((0..m).map(|j| (s(i, j) + g[j]) / eps));
        f = (0..p).map(|i| eps * ((1.0 / p as f64).ln() - sum(i))).collect();
        g = columns(&f);
    }
    (f, g)
}

/// The plan P from the potentials, and the sums of its rows and columns.
fn plan(x: &ScoreMatrix, f: &[f64], g: &[f64], eps: f64) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let p: Vec<_> = (0..x.images() * x.texts())
        .map(|at| (at / x.texts(), at % x.texts()))
        .map(|(i, j)| ((f64::from(x.row(i)[j]) + f[i] + g[j]) / eps).exp())
        .collect();
    let rows = p.chunks(x.texts()).map(|row| row.iter().sum()).collect();
    let columns = (0..x.texts()).map(|j| p.iter().skip(j).step_by(x.texts()).sum()).collect();
    (p, rows, columns)
}

#[test]
fn potentials_are_those_of_the_equations() {
    let x = random(19, 33, -0.4, 0.6, 31);
    for iterations in [0, 1, 2, 7] {
        let of = sinkhorn(0.05, iterations);
        let fit = of.fit(&TestQueries(&x), D).unwrap();
        let (f, g) = naive(&x, of);
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&fit.queries, &f) && close(&fit.items, &g), "{iterations}");
        assert_eq!(fit.iterations, iterations);
        let (_, rows, _) = plan(&x, &f, &g, 0.05);
        let error = rows.iter().map(|sum| (sum * 19.0 - 1.0).abs()).max_by(f64::total_cmp).unwrap();
        assert!((fit.row_error - error).abs() < 1e-10 * error.max(1.0), "{error}");
        let u = corrected(fit.correction.map(), D, &x).concat();
        let scaled: Vec<_> = u.iter().map(|u| 0.05 * u).collect();
        let want: Vec<_> = (0..u.len()).map(|at| f64::from(x.values()[at]) + g[at % 33]).collect();
        assert!(same_but_for_a_constant(&scaled, &want, 1e-12));
    }
}

#[test]
fn columns_are_exact_after_every_item_step_and_rows_at_convergence() {
    let x = random(12, 30, -0.4, 0.6, 33);
    let sums = |iterations| {
        let fit = sinkhorn(0.05, iterations).fit(&TestQueries(&x), D).unwrap();
        plan(&x, &fit.queries, &fit.items, 0.05)
    };
    for iterations in [0, 1, 300] {
        assert!(sums(iterations).2.iter().all(|sum| (sum * 30.0 - 1.0).abs() < 1e-11));
    }
    assert!(sums(0).1.iter().any(|sum| (sum * 12.0 - 1.0).abs() > 0.1));
    assert!(sums(300).1.iter().all(|sum| (sum * 12.0 - 1.0).abs() < 1e-9));
}

#[test]
fn it_stops_at_the_tolerance_and_reports_the_final_error() {
    let x = random(12, 30, -0.4, 0.6, 34);
    let of = Sinkhorn { tolerance: 1e-3, ..sinkhorn(0.05, 500) };
    let fit = of.fit(&TestQueries(&x), D).unwrap();
    assert!(fit.row_error <= 1e-3 && (1..500).contains(&fit.iterations), "{}", fit.iterations);
    let one_less = sinkhorn(0.05, fit.iterations - 1).fit(&TestQueries(&x), D).unwrap();
    assert!(one_less.row_error > 1e-3);
    let sharp = sinkhorn(0.002, 3).fit(&TestQueries(&x), D).unwrap();
    assert!(sharp.row_error > 0.1, "small ε, few iterations: {}", sharp.row_error);
}

/// f32 exponentials would leave their range below ε = 0.012.
#[test]
fn a_small_epsilon_is_finite_and_ranks_as_in_f64() {
    let x = random(12, 30, -1.0, 1.0, 35);
    for iterations in [0, 5] {
        let of = sinkhorn(1e-3, iterations);
        let fit = of.fit(&TestQueries(&x), D).unwrap();
        let u = corrected(fit.correction.map(), D, &x);
        assert!(u.iter().flatten().all(|u| u.is_finite()) && fit.row_error.is_finite());
        let (_, g) = naive(&x, of);
        let close = fit.items.iter().zip(&g).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close, "{iterations}");
    }
}

#[test]
fn a_constant_on_a_column_leaves_the_plan_and_one_on_a_row_only_at_convergence() {
    let x = random(12, 30, -0.4, 0.6, 36);
    let on_column = changed(&x, |_, j, s| if j == 4 { s + 0.25 } else { s });
    let on_row = changed(&x, |i, _, s| if i == 4 { s + 0.25 } else { s });
    let p = |x: &ScoreMatrix, iterations| {
        let fit = sinkhorn(0.05, iterations).fit(&TestQueries(x), D).unwrap();
        plan(x, &fit.queries, &fit.items, 0.05).0
    };
    let apart = |a: Vec<f64>, b: Vec<f64>| {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).max_by(f64::total_cmp).unwrap()
    };
    for iterations in [0, 1, 3] {
        assert!(apart(p(&x, iterations), p(&on_column, iterations)) < 1e-12);
    }
    assert!(apart(p(&x, 0), p(&on_row, 0)) > 1e-3);
    assert!(apart(p(&x, 300), p(&on_row, 300)) < 1e-9);
}

#[test]
fn constant_scores_give_constant_potentials() {
    for (n, m) in [(3, 7), (7, 3), (100, 200)] {
        let x = constant(n, m, 0.3);
        let fit = Sinkhorn::default().fit(&TestQueries(&x), D).unwrap();
        assert!(fit.items.iter().all(|g| *g == fit.items[0]), "{n} × {m}");
        assert!(ranking(fit.correction.map(), D, &x).iter().all(|order| order.is_sorted()));
    }
}

#[test]
fn a_masked_column_is_an_error() {
    let (scores, value) = (&random(9, 6, 0.0, 1.0, 37), f32::NEG_INFINITY);
    let x = Masked { scores, value, at: |_, j| j == 2 };
    let error = Sinkhorn::default().fit(&TestQueries(&x), D).unwrap_err().to_string();
    let want = "bank, item 2: expected a finite log Σ exp(β·s) over the queries, got -inf";
    assert_eq!(error, want);
    // Single entries may be masked.
    let x = Masked { scores, value, at: |i, j| i == j };
    let fit = Sinkhorn::default().fit(&TestQueries(&x), D).unwrap();
    assert!(fit.items.iter().all(|g| g.is_finite()));
}

#[test]
fn a_single_query_ties_all_items_and_ranks_by_index() {
    let x = random(1, 50, -1.0, 1.0, 38);
    for epsilon in [0.03, 0.05, 1e-3] {
        let fit = sinkhorn(epsilon, 7).fit(&TestQueries(&x), D).unwrap();
        assert!(ranking(fit.correction.map(), D, &x)[0].is_sorted(), "{epsilon}");
        assert!(fit.row_error < 1e-12);
    }
    // As a bank, a single query does not tie all items.
    let test = random(4, 50, -1.0, 1.0, 39);
    let fit = Sinkhorn::default().fit(&HeldOutBank(&x), D).unwrap();
    assert!(!ranking(fit.correction.map(), D, &test)[0].is_sorted());
}

/// Before the first iteration potentials and row error were of a plan whose column does not sum to 1.
#[test]
fn a_single_item_has_the_row_error_of_its_plan() {
    let x = random(5, 1, -0.5, 0.5, 40);
    for iterations in [0, 1] {
        let fit = sinkhorn(0.05, iterations).fit(&TestQueries(&x), D).unwrap();
        let (_, rows, columns) = plan(&x, &fit.queries, &fit.items, 0.05);
        assert!((columns[0] - 1.0).abs() < 1e-11, "{iterations}: {columns:?}");
        let error = rows.iter().map(|sum| (sum * 5.0 - 1.0).abs()).fold(0.0, f64::max);
        assert!((fit.row_error - error).abs() < 1e-10, "{iterations}: {error}");
        assert_eq!(fit.iterations, iterations);
    }
}

#[test]
fn what_is_no_number_is_refused() {
    let s = random(5, 4, -0.5, 0.5, 4);
    let error = |of: Sinkhorn| of.fit(&TestQueries(&s), D).unwrap_err().to_string();
    let want = "ε of Sinkhorn: expected a number above 0 and below 1e200, got";
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(error(sinkhorn(epsilon, 1)), format!("{want} {epsilon}"));
    }
    let of = Sinkhorn { tolerance: f64::NAN, ..sinkhorn(0.1, 1) };
    assert_eq!(error(of), "tolerance of Sinkhorn: expected a number, 0 or more, got NaN");
}
