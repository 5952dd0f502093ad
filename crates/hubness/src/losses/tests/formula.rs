//! The derivative of Eq. 4, written out.
//!
//! ```text
//! G = dL/dS′,  E = G ∘ S ∘ W,  R_i = Σ_t E_it
//! dL/dS_it = G_it W_it
//! u among the k largest of row i     + (R_i − E_iu) / k
//! u the (k + 1)-th of row i          + Σ_{t among the k largest} E_it / k
//! leaving out positives: u in the row's set  + R_i / |K|
//! columns likewise
//! ```

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn sorted(s: &[f64], line: impl Fn(usize) -> usize, candidates: &[usize]) -> Vec<usize> {
    let mut order = candidates.to_vec();
    order.sort_by(|&a, &b| s[line(b)].total_cmp(&s[line(a)]).then(a.cmp(&b)));
    order
}

/// dL/dS of `L = Σ G ∘ S′` in double precision.
fn by_formula(s: &[f64], g: &[f64], options: &HubOptions) -> Vec<f64> {
    let b = s.len().isqrt();
    let k = options.neighbours.min(b - 1);
    let (pair, at) = (options.exclude == Exclusion::Pair, |i: usize, t: usize| i * b + t);
    let spot =
        |side: usize, line: usize, j: usize| if side == 0 { at(line, j) } else { at(j, line) };
    let order: Vec<Vec<Vec<usize>>> = (0..2)
        .map(|side| {
            let candidates =
                |line: usize| (0..b).filter(|&j| pair || j != line).collect::<Vec<_>>();
            (0..b).map(|l| sorted(s, |j| spot(side, l, j), &candidates(l))).collect()
        })
        .collect();
    let near = |side: usize, line: usize, own: usize| {
        let kept = order[side][line].iter().filter(|&&j| !pair || j != own).take(k);
        kept.map(|&j| s[spot(side, line, j)]).sum::<f64>() / k as f64
    };
    let weight = |i: usize, t: usize| match options.reweight {
        ReweightScope::Negatives if i == t => 1.0,
        _ => (near(0, i, t) + near(1, t, i)).exp(),
    };
    let weights: Vec<f64> = (0..b * b).map(|n| weight(n / b, n % b)).collect();
    let mut grad: Vec<f64> = g.iter().zip(&weights).map(|(g, w)| g * w).collect();
    let held = |i, t| options.detach || (options.reweight == ReweightScope::Negatives && i == t);
    let e: Vec<f64> = (0..b * b)
        .map(|n| if held(n / b, n % b) { 0.0 } else { g[n] * s[n] * weights[n] })
        .collect();
    for side in 0..2 {
        for line in 0..b {
            let of = |j: usize| e[spot(side, line, j)];
            let sum: f64 = (0..b).map(of).sum();
            let order = &order[side][line];
            for (rank, &u) in order.iter().enumerate().take(k + usize::from(pair)) {
                grad[spot(side, line, u)] += match (pair, rank < k) {
                    (false, _) => sum / k as f64,
                    (true, true) => (sum - of(u)) / k as f64,
                    (true, false) => order[..k].iter().map(|&t| of(t)).sum::<f64>() / k as f64,
                };
            }
        }
    }
    grad
}

fn options() -> impl Strategy<Value = HubOptions> {
    (1usize..7, any::<[bool; 3]>()).prop_map(|(neighbours, [all, pair, detach])| HubOptions {
        neighbours,
        reweight: if all { ReweightScope::All } else { ReweightScope::Negatives },
        exclude: if pair { Exclusion::Pair } else { Exclusion::Positive },
        detach,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// For any G and any option, with k below, at and above b − 1.
    #[test]
    fn the_gradient_is_the_formula(
        b in 2usize..6,
        s in vec(-1.0f32..1.0, 25),
        g in vec(-1.0f32..1.0, 25),
        options in options(),
    ) {
        let (s, g) = (&s[..b * b], &g[..b * b]);
        let upstream = square(g).detach();
        let loss = |s| (reweighted(s, &options) * upstream).sum();
        let (_, got) = value_and_gradient(s, loss);
        let double = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        close("dL/dS", &got, &by_formula(&double(s), &double(g), &options), 2e-5);
    }

    /// With many equal scores, both sides choose the smaller index.
    #[test]
    fn ties_go_to_the_smaller_index(s in vec(0u8..3, 16), options in options()) {
        let s: Vec<f32> = s.into_iter().map(|x| f32::from(x) / 4.0).collect();
        let g: Vec<f32> = (0..16).map(|k| (k as f32 - 7.0) / 8.0).collect();
        let upstream = square(&g).detach();
        let (_, got) = value_and_gradient(&s, |s| (reweighted(s, &options) * upstream).sum());
        let double = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        close("dL/dS", &got, &by_formula(&double(&s), &double(&g), &options), 2e-5);
    }
}
