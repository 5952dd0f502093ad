use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::split::fnv_1a;
use super::*;

/// A table of hits that are the same at 1, 5 and 10; setting p has correction p.
fn table(hits: &[&[u16]]) -> HitTable {
    let mut table = HitTable::default();
    for (p, row) in hits.iter().enumerate() {
        let row = row.iter().map(|&hit| [hit; 3]).collect();
        table.push(format!("setting {p}"), p as f64, row).unwrap();
    }
    table
}

/// All hits at 1.
fn total(hits: &[[u16; 3]]) -> f64 {
    hits.iter().map(|at| f64::from(at[0])).sum()
}

fn split(of_image: &[usize]) -> FoldSplit {
    FoldSplit::new(of_image.iter().max().unwrap() + 1, of_image.to_vec()).unwrap()
}

/// Number of images in each fold.
fn sizes(split: &FoldSplit) -> Vec<usize> {
    let size = |fold: usize| split.of_image().iter().filter(|&&of| of == fold).count();
    (0..split.folds).map(size).collect()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| i.to_string()).collect()
}

/// Worked by hand, captions 2, 1, 3, 1. Fold 0 holds images 0 and 1: on images 2 and 3 the settings hit 1, 4, 2, so it gets
/// setting 1 and hits 0 + 1. Fold 1: on images 0 and 1 they hit 3, 1, 2, so it gets setting 0 and hits 1 + 0. Pooled 2 of 7.
/// The best on all images would have been setting 1 with 5 of 7.
#[test]
fn golden_two_folds() {
    let hits: [&[u16]; 3] = [&[2, 1, 1, 0], &[0, 1, 3, 1], &[2, 0, 1, 1]];
    let table = table(&hits);
    let fit = cross_fit(&table, &split(&[0, 0, 1, 1]), Goal::At5).unwrap();
    assert_eq!(fit.chosen, [Some(1), Some(0)]);
    assert_eq!(fit.hits, [[0; 3], [1; 3], [1; 3], [0; 3]]);
    // Each image alone. Without it the settings hit 2 5 2, 3 4 4, 3 2 3, 4 4 3; the first wins.
    let fit = cross_fit(&table, &split(&[0, 1, 2, 3]), Goal::At5).unwrap();
    assert_eq!(fit.chosen, [Some(1), Some(1), Some(0), Some(0)]);
    assert_eq!(choose_on_validation(&table, Goal::Sum).unwrap(), 1);
}

/// Setting 0 is best at 1, setting 1 at 5, setting 2 at 10, setting 3 in sum.
#[test]
fn every_goal_chooses_its_own() {
    let mut table = HitTable::default();
    for at in [[4, 4, 4], [1, 6, 6], [1, 1, 9], [3, 5, 8]] {
        table.push(format!("{at:?}"), 1.0, vec![at; 4]).unwrap();
    }
    let split = split(&[0, 1, 0, 1]);
    for (goal, want) in [Goal::At1, Goal::At5, Goal::At10, Goal::Sum].into_iter().zip(0..) {
        assert_eq!(choose_on_validation(&table, goal).unwrap(), want);
        assert_eq!(cross_fit(&table, &split, goal).unwrap().chosen, [Some(want); 2]);
    }
    assert_eq!(Goal::EACH, [Goal::At1, Goal::At5, Goal::At10]);
}

/// Pure noise: every setting hits every image with probability 1/2. The best setting on all images beats setting 0 ("off") by
/// luck; cross-fitting gains nothing on average.
#[test]
fn noise_gains_nothing_under_cross_fitting() {
    let (draws, images, settings) = (400, 60, 12);
    let ids = names(images);
    let (mut fitted, mut best) = (Vec::new(), Vec::new());
    for draw in 0..draws {
        let mut rng = ChaCha8Rng::seed_from_u64(draw);
        let rows: Vec<Vec<u16>> =
            (0..settings).map(|_| (0..images).map(|_| rng.random_range(0..2)).collect()).collect();
        let rows: Vec<&[u16]> = rows.iter().map(Vec::as_slice).collect();
        let table = table(&rows);
        let gain = |hits: &[[u16; 3]]| {
            100.0 * (total(hits) - total(&table.candidates[0].hits)) / images as f64
        };
        let split = FoldSplit::hashed(&ids, 2, draw).unwrap();
        fitted.push(gain(&cross_fit(&table, &split, Goal::At1).unwrap().hits));
        let chosen = &table.candidates[choose_on_validation(&table, Goal::At1).unwrap()];
        best.push(gain(&chosen.hits));
    }
    let mean = |gains: &[f64]| gains.iter().sum::<f64>() / gains.len() as f64;
    let error = |gains: &[f64]| {
        let m = mean(gains);
        (gains.iter().map(|g| (g - m).powi(2)).sum::<f64>()).sqrt() / gains.len() as f64
    };
    let (luck, gain) = (mean(&best), mean(&fitted));
    assert!(luck > 8.0, "best on test: {luck}");
    assert!(gain.abs() < 3.0 * error(&fitted), "cross-fitted: {gain} ± {}", error(&fitted));
    assert!(error(&fitted) < 1.0);
}

/// Trap: folds by position. Only setting 0 hits the first 60 of 100 images, and only setting 1 hits the others. By position,
/// the first half gets setting 1 and hits nothing, and the second half gets setting 0 and hits 10. Hashed folds both get
/// setting 0.
#[test]
fn sorted_data_does_no_harm() {
    let rows =
        [0, 1].map(|p| (0..100).map(|i| u16::from((i >= 60) == (p == 1))).collect::<Vec<_>>());
    let table = table(&[&rows[0], &rows[1]]);
    let halves: Vec<usize> = (0..100).map(|i| i / 50).collect();
    let by_place = cross_fit(&table, &split(&halves), Goal::At1).unwrap();
    assert_eq!((&by_place.chosen[..], total(&by_place.hits)), (&[Some(1), Some(0)][..], 10.0));
    let hashed = FoldSplit::hashed(&names(100), 2, 0).unwrap();
    let fit = cross_fit(&table, &hashed, Goal::At1).unwrap();
    assert_eq!((&fit.chosen[..], total(&fit.hits)), (&[Some(0), Some(0)][..], 60.0));
}

/// Trap: captions of one image in different folds. Entries of one name share a fold, at any position.
#[test]
fn one_name_has_one_fold() {
    let ids: Vec<String> = (0..300).map(|caption| format!("{:03}.jpg", caption * 7 % 60)).collect();
    for (folds, seed) in [(2, 0), (2, 9), (5, 1)] {
        let split = FoldSplit::hashed(&ids, folds, seed).unwrap();
        let mut fold_of = HashMap::new();
        for (id, &fold) in ids.iter().zip(split.of_image()) {
            assert_eq!(*fold_of.entry(id).or_insert(fold), fold, "{id}");
        }
        assert_eq!(fold_of.len(), 60);
        assert_eq!(sizes(&split).iter().sum::<usize>(), 300);
    }
}

#[test]
fn the_hash_is_the_published_one() {
    // Test vectors of the authors: FNV-1a, 64 bits; SplitMix64 from state 0.
    assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(itm_core::mix(0), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn folds_are_even_and_hang_on_the_seed() {
    let ids = names(10_000);
    for folds in [2, 5] {
        let split = FoldSplit::hashed(&ids, folds, 3).unwrap();
        let even = 10_000 / folds;
        for size in sizes(&split) {
            assert!(size.abs_diff(even) < 250, "{size} of {even}");
        }
        // Neighbours share a fold as often as by chance.
        let together = split.of_image().windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(together.abs_diff(even) < 250, "{together} of {even}");
        let other = FoldSplit::hashed(&ids, folds, 4).unwrap();
        let same = split.of_image().iter().zip(other.of_image()).filter(|(a, b)| a == b).count();
        assert!(same.abs_diff(even) < 250, "{same} of {even}");
        assert_eq!(split, FoldSplit::hashed(&ids, folds, 3).unwrap());
    }
}

/// The fold of an image depends on its name, not on the other images.
#[test]
fn a_subset_keeps_its_folds() {
    let all = FoldSplit::hashed(&names(50), 2, 1).unwrap();
    assert_eq!(FoldSplit::hashed(&names(30), 2, 1).unwrap().of_image(), &all.of_image()[..30]);
}

#[test]
fn equal_recalls_go_to_the_smallest_correction_then_to_the_first() {
    let fit = |corrections: &[f64]| {
        let mut table = HitTable::default();
        for (p, &correction) in corrections.iter().enumerate() {
            table.push(p, correction, vec![[1, 1, 1]; 4]).unwrap();
        }
        assert_eq!(choose_on_validation(&table, Goal::Sum).unwrap(), 0); // the first listed there
        cross_fit(&table, &split(&[0, 1, 1, 0]), Goal::Sum).unwrap().chosen
    };
    assert_eq!(fit(&[3.0, 2.0, 0.0, 1.0]), [Some(2); 2]);
    assert_eq!(fit(&[3.0, 2.0, 2.0]), [Some(1); 2]);
}

/// A fold without images counts nothing, and the other folds choose as usual. If all images are in one fold, there are none
/// to choose on.
#[test]
fn empty_folds() {
    let table = table(&[&[1, 0, 0], &[0, 1, 1]]);
    let split = FoldSplit::new(4, vec![0, 2, 2]).unwrap();
    assert_eq!(sizes(&split), [1, 0, 2, 0]);
    let fit = cross_fit(&table, &split, Goal::Sum).unwrap();
    assert_eq!(fit.chosen, [Some(1), None, Some(0), None]);
    assert_eq!(fit.hits, [[0; 3]; 3]);
    let message = |result: crate::Result<FoldSplit>| result.unwrap_err().to_string();
    assert_eq!(
        message(FoldSplit::new(2, vec![1, 1, 1])),
        "split: expected images in at least 2 folds, got all 3 images in one of 2"
    );
    assert_eq!(
        message(FoldSplit::new(2, vec![0, 2])),
        "split, image 1: expected a fold below 2, got 2"
    );
    assert!(FoldSplit::new(2, vec![]).is_err());
    assert_eq!(
        message(FoldSplit::hashed(&["a"], 2, 0)),
        "cross-fitting: expected at least 2 different image names, got 1 of 1 entries"
    );
    assert!(FoldSplit::hashed(&["a", "a"], 2, 0).is_err());
    assert_eq!(
        message(FoldSplit::hashed(&["a", "b"], 1, 0)),
        "cross-fitting: expected 2 to 65536 folds, got 1"
    );
}

/// With two images, half of all keys put both into one fold. Then another key is tried, so every seed has an answer.
#[test]
fn two_images_are_always_apart() {
    for seed in 0..200 {
        let split = FoldSplit::hashed(&["a", "b"], 2, seed).unwrap();
        assert_eq!(sizes(&split), [1, 1], "{seed}");
    }
    assert_eq!(FoldSplit::hashed(&["a", "b", "c"], 5, 0).unwrap().folds, 5);
}

/// The chosen hits join into one system. By hand: for i2t settings 1 and 0 hit 2 of 4, for t2i settings 1 and 0 hit 3 of 7.
#[test]
fn fits_of_both_directions_join() {
    let captions = [2, 1, 3, 1];
    let t2i = table(&[&[2, 1, 1, 0], &[0, 1, 3, 1]]);
    let i2t = table(&[&[1, 0, 1, 0], &[0, 1, 1, 1]]);
    let split = split(&[0, 1, 1, 0]);
    let [i2t, t2i] = [i2t, t2i].map(|table| cross_fit(&table, &split, Goal::Sum).unwrap());
    let hits = joined_hits(&i2t.hits, &t2i.hits, &captions).unwrap();
    let recalls = hits.recalls();
    assert_eq!(recalls.i2t, [50.0; 3]);
    assert!(recalls.t2i.iter().all(|recall| (recall - 300.0 / 7.0).abs() < 1e-12));
    let error = joined_hits(&i2t.hits[1..], &t2i.hits, &captions).unwrap_err().to_string();
    assert_eq!(error, "hits of i2t: expected 4 images, got 3");
    assert!(joined_hits(&i2t.hits, &[[4; 3]; 4], &captions).is_err());
}

#[test]
fn impossible_tables_are_refused() {
    let message = |result: crate::Result<()>| result.unwrap_err().to_string();
    let mut table = HitTable::default();
    for correction in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(table.push("is", correction, vec![[0; 3]; 2]).is_err());
    }
    let nothing = "hit table: expected at least 1 setting, got 0";
    let split = split(&[0, 1]);
    assert_eq!(message(choose_on_validation(&table, Goal::Sum).map(|_| ())), nothing);
    assert_eq!(message(cross_fit(&table, &split, Goal::Sum).map(|_| ())), nothing);
    table.push("off", 0.0, vec![[0; 3]; 2]).unwrap();
    assert_eq!(
        message(table.push("is", 1.0, vec![[0; 3]])),
        "hits of is: expected 2 images, got 1"
    );
    let three = FoldSplit::new(2, vec![0, 1, 1]).unwrap();
    assert_eq!(
        message(cross_fit(&table, &three, Goal::Sum).map(|_| ())),
        "cross-fitting: expected a split of 2 images, got 3"
    );
}
