//! Laws that hold for every correction.

use hubness::*;
use itm_core::tiles::Tiles;

use crate::common::*;

fn world() -> World {
    [rows(40, DIM, 1), rows(600, DIM, 2), rows(70, DIM, 3), rows(70, DIM, 4)]
}

#[test]
fn streaming_equals_dense_bit_for_bit_in_every_tile_size_and_number_of_threads() {
    let world = world();
    for direction in Direction::BOTH {
        let tiles = tiled(&world, direction);
        let dense = tiles.map(Tiles::scores);
        let values = |all: Vec<(&'static str, AnyCorrection)>| -> Vec<_> {
            let of = |c: AnyCorrection| {
                assert_eq!(c.direction(), direction);
                let u = corrected(c.map(), direction, &dense.test).concat();
                u.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            };
            all.into_iter().map(|(name, c)| (name, of(c))).collect()
        };
        let want = values(all(&dense));
        assert_eq!(want.len(), 16);
        for (threads, (rows, columns)) in [(1, (64, 64)), (3, (128, 512)), (2, (192, 256))] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let got = pool.install(|| values(all(&tiles.map(|t| t.with_tile(rows, columns)))));
            for ((name, got), (_, want)) in got.into_iter().zip(&want) {
                assert!(got == *want, "{name}, {direction}, tiles of {rows} × {columns}");
            }
        }
    }
}

#[test]
fn a_held_out_correction_does_not_depend_on_which_queries_come_together() {
    for direction in Direction::BOTH {
        let x = Inputs::random(direction, 0.01, 0.6, 7);
        let some = [3, 0, 17, 11];
        let few = x.some(&some);
        let mut held_out = 0;
        for ((name, whole), (_, part)) in all(&x).into_iter().zip(all(&few)) {
            let whole_u = corrected(whole.map(), direction, &x.test);
            let part_u = corrected(part.map(), direction, &few.test);
            let same = some.iter().zip(&part_u).all(|(&q, row)| whole_u[q] == *row);
            match whole.setting() {
                Setting::HeldOut => assert!(same, "{name}, {direction}"),
                Setting::Transductive => assert!(!same, "{name}, {direction}: says too much"),
                Setting::Plain => panic!("{name}"),
            }
            held_out += usize::from(whole.setting() == Setting::HeldOut);
        }
        assert_eq!(held_out, 9);
    }
}

#[test]
fn one_direction_is_the_other_of_the_transposed_scores() {
    let x = Inputs::random(Direction::I2t, 0.01, 0.6, 8);
    let mut turned = x.map(ScoreMatrix::transpose);
    turned.direction = Direction::T2i;
    for ((name, i2t), (_, t2i)) in all(&x).into_iter().zip(all(&turned)) {
        let a = corrected(i2t.map(), Direction::I2t, &x.test).concat();
        let b = corrected(t2i.map(), Direction::T2i, &turned.test).concat();
        // Sums of rows and sums of columns have different orders.
        let same = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-11 * a.abs().max(1.0));
        assert!(same, "{name}");
    }
}

#[test]
fn a_hub_loses_rank_under_every_correction() {
    let hub = 5;
    for direction in Direction::BOTH {
        let mut x = Inputs::random(direction, 0.05, 0.4, 9);
        let raised = |s: &ScoreMatrix| {
            changed(s, |i, j, s| if direction.items(i, j) == hub { s + 0.25 } else { s })
        };
        x = Inputs {
            test: raised(&x.test),
            bank: raised(&x.bank),
            item_bank: raised(&x.item_bank),
            ..x
        };
        let place = |orders: Vec<Vec<usize>>| -> usize {
            orders.iter().map(|order| order.iter().position(|&j| j == hub).unwrap()).sum()
        };
        let none = Correction::none(&x.test, direction);
        let before = place(ranking(none.map(), direction, &x.test));
        for (name, fit) in all(&x) {
            let after = place(ranking(fit.map(), direction, &x.test));
            assert!(after > before + x.test.images(), "{name}, {direction}: {before}, {after}");
        }
    }
}

#[test]
fn constant_scores_give_no_nan_and_rank_by_index() {
    for direction in Direction::BOTH {
        for value in [0.5, 0.0, 1.0, -0.25] {
            let x = Inputs::random(direction, 0.1, 0.6, 10).map(|s| changed(s, |_, _, _| value));
            for (name, fit) in all(&x) {
                let u = corrected(fit.map(), direction, &x.test);
                assert!(u.iter().flatten().all(|u| !u.is_nan()), "{name}, {value}");
                for order in orders(&u) {
                    assert!(order.is_sorted(), "{name}, {value}: {order:?}");
                }
            }
        }
    }
}

#[test]
fn a_constant_column_gives_no_nan() {
    for direction in Direction::BOTH {
        let at = |i, j| direction.items(i, j) == 3;
        let x = Inputs::random(direction, 0.1, 0.6, 11)
            .map(|s| changed(s, |i, j, s| if at(i, j) { 0.5 } else { s }));
        for (name, fit) in all(&x) {
            let u = corrected(fit.map(), direction, &x.test);
            assert!(u.iter().flatten().all(|u| u.is_finite()), "{name}, {direction}");
        }
    }
}

/// A score that is not finite ends every fit with an error of one line.
#[test]
fn infinite_scores_are_refused() {
    for value in [f32::NEG_INFINITY, f32::INFINITY] {
        let want = format!("scores of image 1 and text 2: expected a finite number, got {value}");
        for direction in Direction::BOTH {
            let x = Inputs::random(direction, 0.1, 0.6, 12)
                .map(|s| changed(s, |i, j, s| if (i, j) == (1, 2) { value } else { s }));
            let (queries, s) = (TestQueries(&x.test), &x.test);
            let mut all = fits(&x);
            assert_eq!(all.len(), 16);
            all.extend([
                ("CSLS", csls(&queries, direction, 5).map(Correction::into_any)),
                ("CSLS, both means", {
                    csls_form(s, direction, 5, CslsForm::Lample).map(Correction::into_any)
                }),
                ("IS", inverted_softmax(&queries, direction, 30.0).map(Correction::into_any)),
                ("IS, exclusive", {
                    let form = InvertedSoftmaxForm::Exclusive;
                    inverted_softmax_form(s, direction, 30.0, form).map(Correction::into_any)
                }),
            ]);
            for (name, fit) in all {
                assert_eq!(fit.map(|_| ()).unwrap_err().to_string(), want, "{name}, {direction}");
            }
        }
    }
}

/// A β whose products with scores could overflow is refused. A β just below the limit gives finite numbers.
#[test]
fn a_huge_beta_is_refused() {
    let x = Inputs::random(Direction::I2t, 0.1, 0.6, 13);
    let of = |beta| inverted_softmax(&TestQueries(&x.test), Direction::I2t, beta);
    let want = "β: expected a number above 0 and below 1e200, got 1e300";
    let got = of(1e300).map(|_| ()).unwrap_err().to_string();
    assert_eq!(got.replace(&format!("{}", 1e300), "1e300"), want);
    for beta in [1e30, 1e199] {
        let fit = of(beta).unwrap();
        let u = corrected(fit.map(), Direction::I2t, &x.test);
        assert!(u.iter().flatten().all(|u| u.is_finite()), "{beta}");
        assert_eq!(ranking(fit.map(), Direction::I2t, &x.test), orders(&u), "{beta}");
    }
}

#[test]
fn empty_banks_and_other_items_are_refused() {
    let (test, none, other) = (constant(2, 3, 0.5), constant(0, 3, 0.5), constant(4, 2, 0.5));
    let d = Direction::I2t;
    let message = |e: Error| e.to_string();
    let error = Nnn::default().fit(&HeldOutBank(&none), d).map(|_| ()).map_err(message);
    assert_eq!(error.unwrap_err(), "bank: expected at least one query, got none");
    let bank = HeldOutBank(&other);
    let want = Err("bank: expected the 3 test items, got 2".to_string());
    assert_eq!(QueryBank::default().fit(&bank, &test, d).map(|_| ()).map_err(message), want);
    assert_eq!(GaussianProximity.fit(&bank, &test, d).map(|_| ()).map_err(message), want);
    let local = LocalScaling::default().fit(&bank, &test, d);
    assert_eq!(local.map(|_| ()).map_err(message), want);
    let empirical = EmpiricalProximity::default().fit(&bank, &test, d);
    assert_eq!(empirical.map(|_| ()).map_err(message), want);
}

/// Trap "folds: computing CSLS/IS/RGM over 5K then slicing": the sums contain other queries, so ranks within a fold differ.
#[test]
fn trap_folds_are_corrected_within_themselves() {
    let (n, m) = (40, 80);
    let value = |at: usize| ((at * 7919 + at / 13 * 104_729) % 1009) as f32 / 1009.0;
    let whole = ScoreMatrix::new(n, m, (0..n * m).map(value).collect()).unwrap();
    let pairs = Pairs::uniform(n, 2);
    let fold = &itm_core::eval::folds(&pairs, 2, n / 2).unwrap()[1];
    let own = <dyn Scored>::fold(&whole, fold).unwrap();
    let ranks = |of: &dyn Fn(Direction) -> ScoreMatrix| {
        let plain = Direction::BOTH.map(|d| Correction::none(&own, d));
        Direction::BOTH.map(|d| {
            let ranks = pass::ranks(&of(d), &fold.pairs, &plain[0], &plain[1]).unwrap();
            d.queries(ranks.i2t().to_vec(), ranks.t2i().to_vec())
        })
    };
    for k in [3, 10] {
        let within = ranks(&|d| csls(&TestQueries(&own), d, k).unwrap().apply(&own).unwrap());
        let sliced = ranks(&|d| {
            let corrected = csls(&TestQueries(&whole), d, k).unwrap().apply(&whole).unwrap();
            <dyn Scored>::fold(&corrected, fold).unwrap()
        });
        assert_ne!(within, sliced, "k = {k}");
    }
}
