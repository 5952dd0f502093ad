//! Identities that tie the corrections together (`u` up to a constant or a positive factor, ranks equal).

use hubness::*;

use crate::common::*;

const D: Direction = Direction::I2t;

fn test() -> ScoreMatrix {
    random(23, 41, -0.4, 0.6, 1)
}

fn nnn(alpha: f64, k: usize, s: &ScoreMatrix) -> Vec<Vec<f64>> {
    corrected(Nnn { alpha, k }.fit(&TestQueries(s), D).unwrap().map(), D, s)
}

/// `β·s − log Σ exp(β·s)`, with the sum over the column.
fn inverted_softmax(beta: f64, s: &ScoreMatrix) -> Vec<Vec<f64>> {
    let z = |i: usize, j: usize| beta * f64::from(s.row(i)[j]);
    let sums: Vec<_> = (0..s.texts()).map(|j| lse((0..s.images()).map(|i| z(i, j)))).collect();
    (0..s.images()).map(|i| (0..s.texts()).map(|j| z(i, j) - sums[j]).collect()).collect()
}

fn near(a: &[Vec<f64>], b: &[Vec<f64>], within: f64) {
    assert_eq!(orders(a), orders(b));
    assert!(same_but_for_a_constant(&a.concat(), &b.concat(), within));
}

#[test]
fn csls_item_is_nnn_with_one_half() {
    let s = test();
    for k in [1, 3, 10, 100] {
        let column = |j: usize| {
            let mut column: Vec<_> = (0..s.images()).map(|i| f64::from(s.row(i)[j])).collect();
            column.sort_by(|a, b| b.total_cmp(a));
            column.truncate(k);
            column.iter().sum::<f64>() / column.len() as f64
        };
        let r: Vec<_> = (0..s.texts()).map(column).collect();
        let csls = |i: usize| (0..s.texts()).map(|j| 2.0 * f64::from(s.row(i)[j]) - r[j]).collect();
        let csls: Vec<Vec<f64>> = (0..s.images()).map(csls).collect();
        let twice: Vec<Vec<f64>> =
            nnn(0.5, k, &s).iter().map(|row| row.iter().map(|u| 2.0 * u).collect()).collect();
        near(&twice, &csls, 1e-12);
    }
}

/// `(q − l·mean q)·(g − l·mean g)` for embeddings q of queries and g of items.
#[test]
fn distribution_normalisation_ranks_as_nnn_over_the_whole_bank() {
    let (d, n, m, b) = (5, 23, 41, 30);
    let signed = |count: usize, seed| -> Vec<f64> {
        random(count, d, -1.0, 1.0, seed).into_values().into_iter().map(f64::from).collect()
    };
    let (queries, items, bank) = (signed(n, 1), signed(m, 2), signed(b, 3));
    let product = |a: &[f64], b: &[f64]| -> ScoreMatrix {
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() as f32;
        let values = a.chunks(d).flat_map(|x| b.chunks(d).map(move |y| dot(x, y))).collect();
        ScoreMatrix::new(a.len() / d, b.len() / d, values).unwrap()
    };
    let mean = |rows: &[f64]| -> Vec<f64> {
        let of = |k: usize| rows.iter().skip(k).step_by(d).sum::<f64>() / (rows.len() / d) as f64;
        (0..d).map(of).collect()
    };
    let centred = |rows: &[f64], mean: &[f64], l: f64| -> Vec<f64> {
        rows.iter().enumerate().map(|(at, x)| x - l * mean[at % d]).collect()
    };
    for l in [0.5, 1.0] {
        let q = centred(&queries, &mean(&bank), l);
        let g = centred(&items, &mean(&items), l);
        let fit = Nnn { alpha: l, k: b }.fit(&HeldOutBank(&product(&bank, &items)), D).unwrap();
        let u = ranking(fit.map(), D, &product(&queries, &items));
        let dn: Vec<_> = product(&q, &g).values().iter().map(|&u| f64::from(u)).collect();
        assert_eq!(u, orders(&dn.chunks(m).map(<[f64]>::to_vec).collect::<Vec<_>>()), "l = {l}");
    }
}

#[test]
fn inverted_softmax_is_query_bank_normalisation_with_all_rows_active() {
    let s = test();
    let qb = QueryBank { beta: 30.0, dynamic: false, ..QueryBank::default() };
    let fit = qb.fit(&TestQueries(&s), &s, D).unwrap();
    assert_eq!(fit.setting(), Setting::Transductive);
    near(&corrected(fit.map(), D, &s), &inverted_softmax(30.0, &s), 1e-11);
}

#[test]
fn limits_of_the_inverted_softmax_are_nnn() {
    let s = changed(&test(), |i, j, s| s + (i * 41 + j) as f32 * 1e-6); // no column has two maxima
    let b = s.images() as f64;
    let bias = |beta: f64| {
        let qb = QueryBank { beta, dynamic: false, ..QueryBank::default() };
        let u = corrected(qb.fit(&TestQueries(&s), &s, D).unwrap().map(), D, &s);
        u.iter().map(|row| row.iter().map(|u| u / beta).collect()).collect::<Vec<Vec<f64>>>()
    };
    near(&bias(1e7), &nnn(1.0, 1, &s), 1e-6);
    let small = bias(1e-6);
    let small: Vec<Vec<f64>> =
        small.iter().map(|row| row.iter().map(|u| u + b.ln() / 1e-6).collect()).collect();
    near(&small, &nnn(1.0, s.images(), &s), 1e-6);
}

#[test]
fn sinkhorn_after_its_first_item_update_is_inverted_softmax() {
    let s = test();
    let first = Sinkhorn { epsilon: 1.0 / 30.0, iterations: 0, ..Sinkhorn::default() };
    let fit = first.fit(&TestQueries(&s), D).unwrap();
    assert_eq!(fit.iterations, 0);
    near(&corrected(fit.correction.map(), D, &s), &inverted_softmax(30.0, &s), 1e-10);
}

#[test]
fn dual_is_without_an_item_bank_is_inverted_softmax() {
    let x = Inputs::random(D, -0.4, 0.6, 2);
    let bank = HeldOutBank(&x.bank);
    let dual = DualBank { query_beta: 20.0, item_beta: 0.0, ..DualBank::default() };
    let dual = dual.fit(&bank, &x.item_bank, &x.test, D).unwrap();
    let qb = QueryBank { dynamic: false, ..QueryBank::default() }.fit(&bank, &x.test, D).unwrap();
    near(&corrected(dual.map(), D, &x.test), &corrected(qb.map(), D, &x.test), 1e-11);
}
