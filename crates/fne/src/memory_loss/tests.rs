use burn::tensor::{Device, TensorData};
use itm_kernels::random;

use super::*;
use crate::{BankRows, Moments, Preset, Reset, SamplerConfig, Snapshot, Variance};

const D: usize = 4;

fn rows(n: usize, seed: u64) -> Vec<f32> {
    let mut values: Vec<f32> = (0..n * D).map(|k| random::unit(seed, k as u64) - 0.5).collect();
    for row in values.chunks_mut(D) {
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
    }
    values
}

fn matrix(values: &[f32], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len() / D, D]), device)
}

fn bank(ids: &[i64], seed: u64, device: &Device) -> Bank {
    let mut bank = Bank::new(ids.len(), D, 1, device);
    let [images, texts] =
        [seed, seed + 1].map(|seed| matrix(&rows(ids.len(), seed), &Device::flex()));
    bank.push(BankRows { images, texts, ids, captions: ids }).unwrap();
    bank
}

/// Statistics that hold these numbers.
fn statistics(seen: Snapshot) -> Statistics {
    let mut statistics = Statistics::new(Variance::Official, Reset::Epoch);
    statistics.restore(seen);
    statistics
}

/// There is one candidate of another image, so both directions draw it, and plain loops give L and its gradient.
#[test]
fn golden_of_a_bank_with_one_candidate() {
    let device = Device::flex().autodiff();
    let (v, w, ids) = (rows(2, 3), rows(2, 4), [1, 2]);
    let bank = bank(&[9], 5, &device);
    let state = bank.state();
    let (rule, nothing) = (SamplerConfig::preset(Preset::Default), statistics(Snapshot::default()));
    let images = matrix(&v, &device).require_grad();
    let texts = matrix(&w, &device).require_grad();
    let draws = Draws { rule: &rule, statistics: &nothing, seed: 1 };
    let online = Online { images: images.clone(), texts: texts.clone(), ids: &ids };
    let loss = memory_loss(online, &bank, &draws).unwrap();
    let grads = loss.backward();
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let (mut want, mut slope) = (0.0, vec![0.0; 2 * D]);
    for i in 0..2 {
        let (v, w) = (&v[i * D..][..D], &w[i * D..][..D]);
        for (anchor, other, of_image) in [(v, &state.texts, true), (w, &state.images, false)] {
            let h = rule.margin - dot(v, w) + dot(anchor, other);
            if h > 0.0 {
                want += h / 2.0;
                for k in 0..D {
                    let negative = if of_image { other[k] } else { 0.0 };
                    slope[i * D + k] += f64::from(negative - w[k]) / 2.0;
                }
            }
        }
    }
    assert!(want > 0.0 && (f64::from(host(loss.inner())[0]) - want).abs() < 1e-6);
    let got = host(images.grad(&grads).unwrap());
    assert!(got.iter().zip(&slope).all(|(g, s)| (f64::from(*g) - s).abs() < 1e-6), "{got:?}");
    assert!(texts.grad(&grads).is_some());
}

/// A bank that holds only the pair's own image gives a loss of 0, not NaN. Without autodiff the value is the same.
#[test]
fn own_images_are_never_drawn() {
    let plain = Device::flex();
    let value = |bank_ids: &[i64], device: &Device| {
        let bank = bank(bank_ids, 5, device);
        let rule = SamplerConfig::preset(Preset::Default);
        let nothing = statistics(Snapshot::default());
        let draws = Draws { rule: &rule, statistics: &nothing, seed: 1 };
        let of = |seed| matrix(&rows(2, seed), device);
        let online = Online { images: of(3), texts: of(4), ids: &[1, 1] };
        host(memory_loss(online, &bank, &draws).unwrap())[0]
    };
    assert_eq!(value(&[1, 1, 1], &plain), 0.0);
    assert!(value(&[1, 2, 1], &plain) > 0.0);
    let learns = plain.clone().autodiff();
    for device in [learns.clone(), learns.gradient_checkpointing()] {
        assert_eq!(value(&[2, 3], &plain), value(&[2, 3], &device));
    }
}

/// Both sides of the bank are equal, and both sides of the batch, so only the seeds of the two directions differ. An image and
/// its text have the same gradient only if both draw the same row.
#[test]
fn the_two_directions_draw_by_seeds_of_their_own() {
    let device = Device::flex().autodiff();
    let (b, k) = (16, 64);
    let ids: Vec<i64> = (0..k as i64).collect();
    let mut bank = Bank::new(k, D, 1, &device);
    let same = matrix(&rows(k, 5), &Device::flex());
    let entries = BankRows { images: same.clone(), texts: same, ids: &ids, captions: &ids };
    bank.push(entries).unwrap();
    let rule = SamplerConfig { margin: 2.0, ..SamplerConfig::preset(Preset::Default) }; // every hinge is above 0
    let nothing = statistics(Snapshot::default());
    let gradients = |seed| {
        let [images, texts] = [3, 3].map(|of| matrix(&rows(b, of), &device).require_grad());
        let others: Vec<i64> = (100..100 + b as i64).collect();
        let online = Online { images: images.clone(), texts: texts.clone(), ids: &others };
        let draws = Draws { rule: &rule, statistics: &nothing, seed };
        let grads = memory_loss(online, &bank, &draws).unwrap().backward();
        [images, texts].map(|side| host(side.grad(&grads).unwrap()))
    };
    for seed in 0..4 {
        let [images, texts] = gradients(seed);
        let pairs = images.chunks(D).zip(texts.chunks(D));
        let same = pairs.filter(|(v, w)| v == w).count();
        assert!(same < b / 2, "seed {seed}: {same} of {b} pairs drew one row twice");
        assert_eq!(gradients(seed), [images, texts], "the same seed, the same draws");
    }
    assert_ne!(gradients(0), gradients(1));
}

/// The cut at μ⁺ − γ follows the statistics from call to call. With μ⁺ = 0 the far row is a candidate too, with μ⁺ = 1 only the
/// near row is. By hand, γ = 0.5: hinge 0.5 − 1 + 0.6 = 0.1 for the near row in each direction, 0 for the far row.
#[test]
fn every_call_reads_the_statistics_as_they_are() {
    let device = Device::flex();
    let of = |rows: [[f32; D]; 2]| Tensor::<2>::from_floats(rows, &device);
    let table = || of([[0.6, 0.8, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);
    let mut bank = Bank::new(2, D, 1, &device);
    let entries = BankRows { images: table(), texts: table(), ids: &[8, 9], captions: &[8, 9] };
    bank.push(entries).unwrap();
    let rule = SamplerConfig { margin: 0.5, ..SamplerConfig::preset(Preset::Default) };
    let mut statistics = statistics(Snapshot::default());
    let losses = |statistics: &Statistics| -> Vec<f32> {
        let pair = || of([[1.0, 0.0, 0.0, 0.0]; 2]);
        let loss = |seed| {
            let online = Online { images: pair(), texts: pair(), ids: &[1, 2] };
            let draws = Draws { rule: &rule, statistics, seed };
            host(memory_loss(online, &bank, &draws).unwrap())[0]
        };
        (0..20).map(loss).collect()
    };
    let early = losses(&statistics);
    assert!(early.iter().any(|&l| l < 0.15), "the far row is drawn too: {early:?}");
    statistics.update(&[1.0], 1).unwrap();
    assert!(losses(&statistics).iter().all(|l| (l - 0.2).abs() < 1e-6));
}

#[test]
fn what_cannot_be_learnt_from_is_refused() {
    let device = Device::flex();
    let rule = SamplerConfig::preset(Preset::Default);
    let nothing = statistics(Snapshot::default());
    let refused = |online: Online, bank: &Bank, rule: &SamplerConfig, statistics: &Statistics| {
        let draws = Draws { rule, statistics, seed: 1 };
        memory_loss(online, bank, &draws).unwrap_err().to_string()
    };
    let of = |n, seed| matrix(&rows(n, seed), &device);
    let pair = |ids| Online { images: of(2, 3), texts: of(2, 4), ids };
    let line = |online, bank: &Bank| refused(online, bank, &rule, &nothing);

    let (full, ids) = (bank(&[9], 5, &device), &[1, 2][..]);
    let empty = Bank::new(0, D, 1, &device);
    assert_eq!(line(pair(ids), &empty), "bank: expected at least 1 row, got 0");
    let unwritten = Bank::new(8, D, 1, &device);
    let expected = "bank: expected at least 1 pair that was pushed into it";
    let got = "only random rows; push a batch first";
    assert_eq!(line(pair(ids), &unwritten), format!("{expected}, got {got}"));
    let narrow = Bank::new(8, 3, 1, &device);
    assert_eq!(line(pair(ids), &narrow), "images: expected 2 rows of width 3, got 2 of 4");
    let fewer = Online { texts: of(1, 4), ..pair(ids) };
    assert_eq!(line(fewer, &full), "texts: expected 2 rows of width 4, got 1 of 4");
    assert_eq!(line(pair(&[1]), &full), "images: expected 1 rows of width 4, got 2 of 4");
    let nobody = Online { images: of(2, 3), texts: of(2, 4), ids: &[] };
    assert_eq!(line(nobody, &full), "image ids: expected at least 1 pair, got 0");
    assert!(line(pair(&[1, -100]), &full).starts_with("batch row 1: expected an image id"));

    let mut bad = rows(2, 3);
    bad[D] = f32::NAN;
    let poisoned = Online { images: matrix(&bad, &device), ..pair(ids) };
    let want = "positive score of anchor 1: expected a finite number, got NaN";
    assert_eq!(line(poisoned, &full), want);
    let rule = SamplerConfig { prior: 2.0, ..rule };
    let want = "rule.prior: expected a number above 0 and below 1, got 2";
    assert_eq!(refused(pair(ids), &full, &rule, &nothing), want);
    let moments = Moments { count: 300, sum: f64::NAN, mean: f64::NAN, squares: 1.0 };
    let damaged = statistics(Snapshot { positive: moments, negative: moments });
    let rule = SamplerConfig::preset(Preset::Default);
    let line = refused(pair(ids), &full, &rule, &damaged);
    assert!(line.starts_with("statistics.positive.sum: expected a finite number"), "{line}");
}
