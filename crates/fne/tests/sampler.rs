//! The example's table, computed again from the equations as printed: densities, Bayes, two kinds of weights.

#[path = "../examples/sampler.rs"]
mod example;

use example::SCORES;

/// Eq. 5.
fn density(s: f64, mean: f64, variance: f64) -> f64 {
    (-(s - mean).powi(2) / (2.0 * variance)).exp() / (2.0 * std::f64::consts::PI * variance).sqrt()
}

#[test]
fn the_table_is_that_of_the_equations() {
    example::main().unwrap();
    let statistics = example::seen().unwrap();
    let (plus, minus) = (statistics.snapshot().positive, statistics.snapshot().negative);
    assert!(plus.count > 200 && minus.count == 2 * plus.count, "{plus:?} {minus:?}");
    let (p, lambda, tau, alpha, margin) = (1e-4, 1e-3, 0.5, 0.5, 0.2);
    let rows = example::rows(&statistics).unwrap();
    let posterior = |s: f64| {
        let match_ = p * density(s, plus.mean, plus.variance());
        match_ / (match_ + (1.0 - p) * density(s, minus.mean, minus.variance()))
    };
    let own = f64::from(SCORES[0]);
    let want = |j: usize| {
        let s = f64::from(SCORES[j]);
        match posterior(s) {
            _ if j == 0 || s <= plus.mean - margin => 0.0,
            probability if probability > lambda => (-tau * probability).exp(),
            _ => (-alpha * (s - own).powi(2)).exp(),
        }
    };
    let total: f64 = (0..6).map(want).sum();
    for (j, row) in rows.iter().enumerate() {
        assert!((row.posterior - posterior(SCORES[j].into())).abs() < 1e-9, "{j}: {row:?}");
        assert!((f64::from(row.weight) - want(j)).abs() < 1e-5, "{j}: {row:?}");
        // Five deviations of a count of 10,000 draws.
        let share = want(j) / total;
        let (expected, slack) = (1e4 * share, 5.0 * (1e4 * share * (1.0 - share)).sqrt());
        assert!((row.drawn as f64 - expected).abs() <= slack, "{j}: {row:?}, not {expected}");
    }
    assert_eq!((rows[0].drawn, rows[5].drawn), (0, 0), "the own text, and the one below the cut");
    assert!(rows[1].posterior > 0.9 && rows[1].weight < rows[4].weight);
    assert!(rows[4].posterior < lambda, "the table has both kinds of candidates");
}
