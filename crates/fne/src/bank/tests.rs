use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::golden::{floats, golden, integers};

fn new(capacity: usize, width: usize, seed: u64) -> Bank {
    Bank::new(capacity, width, seed, &Device::flex())
}

fn push(bank: &mut Bank, ids: &[i64]) {
    let values: Vec<f32> = ids.iter().map(|&id| id as f32).collect();
    let texts: Vec<f32> = values.iter().map(|x| -x).collect();
    let captions: Vec<i64> = ids.iter().map(|id| 10 * id).collect();
    let [images, texts] = [values, texts].map(|rows| table(rows, 1, &Device::flex()));
    bank.push(BankRows { images, texts, ids, captions: &captions }).unwrap();
}

/// `tests/reference/fne.py`, `ring`: B = 5 does not divide K = 12; four steps.
#[test]
fn trap_11_ring_wraps_around() {
    let golden = &golden()["ring"];
    let mut bank = new(12, 1, 0);
    for step in golden.as_array().unwrap() {
        push(&mut bank, &integers(&step["push"]));
        assert_eq!(bank.cursor as u64, step["cursor"].as_u64().unwrap());
        assert_eq!(bank.ids(), integers(&step["ids"]));
        let BankState { images, texts, .. } = bank.state();
        for (j, want) in floats(&step["ids"]).into_iter().enumerate() {
            if bank.ids()[j] != NEVER {
                assert_eq!((images[j], texts[j]), (want, -want));
                assert_eq!(bank.captions()[j], 10 * bank.ids()[j]);
            }
        }
    }
}

/// Your own loop may push tensors of an autodiff device. The bank keeps their values without the graph, on the plain device.
#[test]
fn rows_come_without_their_graph() {
    let device = Device::flex().autodiff();
    let mut bank = Bank::new(4, 1, 0, &device);
    let rows = Tensor::<2>::from_floats([[1.0], [2.0]], &device).require_grad();
    let entries =
        BankRows { images: rows.clone() * 3.0, texts: rows * 5.0, ids: &[7, 8], captions: &[0, 1] };
    bank.push(entries).unwrap();
    assert!(!bank.images().device().is_autodiff() && !bank.texts().device().is_autodiff());
    let BankState { images, texts, .. } = bank.state();
    assert_eq!((&images[..2], &texts[..2]), (&[3.0, 6.0][..], &[5.0, 10.0][..]));
}

#[test]
fn a_saved_bank_goes_on_and_a_damaged_one_is_refused() {
    let mut bank = new(5, 1, 3);
    push(&mut bank, &[1, 2, 3]);
    let text = serde_json::to_string(&bank.state()).unwrap();
    let of = |state: BankState| Bank::of_state(state, 1, &Device::flex());
    let mut again = of(serde_json::from_str(&text).unwrap()).unwrap();
    for bank in [&mut bank, &mut again] {
        push(bank, &[4, 5, 6]);
    }
    assert_eq!(again.state(), bank.state());
    let refused = |change: &dyn Fn(&mut BankState)| {
        let mut state = bank.state();
        change(&mut state);
        of(state).unwrap_err().to_string()
    };
    let short = |values: &mut Vec<f32>| _ = values.pop();
    assert_eq!(
        refused(&|s| short(&mut s.images)),
        "images of the bank: expected 5 rows of 1 values, got 4"
    );
    assert_eq!(
        refused(&|s| short(&mut s.texts)),
        "texts of the bank: expected 5 rows of 1 values, got 4"
    );
    let few = |s: &mut BankState| _ = s.captions.pop();
    assert_eq!(refused(&few), "captions of the bank: expected 5, one per row, got 4");
    assert_eq!(refused(&|s| s.cursor = 5), "cursor of the bank: expected a row below 5, got 5");
    assert_eq!(
        refused(&|s| s.texts[3] = f32::NAN),
        "texts of the bank, row 3: expected finite numbers, got NaN"
    );
}

/// Rows that do not fit, or that hold a NaN or an infinity, are refused. The error names them, and no row of the bank changes.
#[test]
fn a_push_that_is_refused_leaves_the_bank_as_it_was() {
    let device = Device::flex();
    let mut bank = new(4, 2, 0);
    let before = bank.state();
    let rows = |n: usize, width: usize| table(vec![0.5; n * width], width, &device);
    let mut refused = |images: Tensor<2>, texts: Tensor<2>, captions: &[i64]| {
        let line = bank.push(BankRows { images, texts, ids: &[1, 2], captions }).unwrap_err();
        assert_eq!(bank.state(), before);
        line.to_string()
    };
    let place = "of the batch: expected 2 rows of width 2, got";
    assert_eq!(refused(rows(3, 2), rows(2, 2), &[1, 2]), format!("images {place} 3 of 2"));
    assert_eq!(refused(rows(2, 2), rows(2, 1), &[1, 2]), format!("texts {place} 2 of 1"));
    let line = refused(rows(2, 2), rows(2, 2), &[1]);
    assert_eq!(line, "caption numbers: expected 2 values, one per pair, got 1");
    for bad in [f32::NAN, f32::INFINITY] {
        let poisoned = || table(vec![0.5, 0.5, bad, 0.5], 2, &device);
        let of =
            |side: &str| format!("{side} of the batch, row 1: expected finite numbers, got {bad}");
        assert_eq!(refused(poisoned(), rows(2, 2), &[1, 2]), of("images"));
        assert_eq!(refused(rows(2, 2), poisoned(), &[1, 2]), of("texts"));
    }
}

#[test]
fn trap_06_the_unwritten_id_is_refused() {
    let mut bank = new(4, 1, 0);
    let before = bank.state();
    let rows = table(vec![1.0, 2.0], 1, &Device::flex());
    let entries =
        BankRows { images: rows.clone(), texts: rows, ids: &[3, -100], captions: &[0, 1] };
    let message = bank.push(entries).unwrap_err().to_string();
    assert!(message.contains("row 1") && message.contains("-100"), "{message}");
    assert_eq!(bank.state(), before);
}

/// A push is undone at any position of the ring, for any number of rows.
#[test]
fn what_was_pushed_is_undone() {
    for (k, b) in [(12, 5), (3, 5), (5, 5), (1, 2)] {
        let mut bank = new(k, 1, 0);
        for ids in [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]] {
            let before = bank.state();
            let rows = bank.oldest(b);
            assert_eq!(rows.ids.len(), b.min(k));
            push(&mut bank, &vec![77; b]);
            assert_ne!(bank.state(), before, "{k} rows");
            bank.restore(rows);
            assert_eq!(bank.state(), before, "{k} rows");
            push(&mut bank, &ids);
        }
    }
}

#[test]
fn a_batch_larger_than_the_bank_leaves_its_last_rows() {
    let mut bank = new(3, 1, 0);
    push(&mut bank, &[1, 2, 3, 4, 5]);
    assert_eq!((bank.ids(), bank.cursor), (&[4, 5, 3][..], 2));
    let mut none = new(0, 1, 0);
    push(&mut none, &[1, 2]);
    assert_eq!(none.capacity(), 0);
}

/// A push does not copy the bank: the tables keep their addresses. A table that is held elsewhere keeps its values.
#[test]
fn rows_are_overwritten_in_place() {
    use burn::backend::Flex;
    let address = |x: Tensor<2>| x.try_into_primitive::<Flex>().unwrap().bytes().as_ptr();
    let mut bank = new(12, 1, 0);
    let at = address(bank.images());
    for _ in 0..4 {
        push(&mut bank, &[1, 2, 3, 4, 5]);
        assert_eq!(address(bank.images()), at);
    }
    let held = bank.images();
    let before = host(held.clone());
    push(&mut bank, &[6, 7, 8, 9, 10]);
    assert_eq!(host(held), before);
    assert_ne!(bank.state().images, before);
}

#[test]
fn start_rows_are_random_unit_vectors_of_the_seed() {
    let bank = new(400, 16, 7).state();
    assert_eq!(bank, new(400, 16, 7).state());
    assert_ne!(bank, new(400, 16, 8).state());
    assert_ne!(bank.images, bank.texts);
    assert!(bank.ids.iter().chain(&bank.captions).all(|&id| id == NEVER));
    let mut mean = [0.0f64; 16];
    for row in bank.images.chunks(16) {
        let norm: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
        assert!((norm - 1.0).abs() < 1e-5);
        mean.iter_mut().zip(row).for_each(|(m, &x)| *m += f64::from(x) / 400.0);
    }
    // Each coordinate has deviation 1/4, its mean over 400 rows 1/80: five deviations.
    assert!(mean.iter().all(|m| m.abs() < 5.0 / 80.0), "{mean:?}");
}

proptest! {
    /// The bank is the queue of the last k pairs.
    #[test]
    fn is_a_queue(k in 1usize..9, batches in vec(vec(0i64..1000, 0..12), 0..6)) {
        let mut bank = new(k, 1, 0);
        let mut queue = VecDeque::from(vec![NEVER; k]);
        for ids in batches {
            push(&mut bank, &ids);
            for id in ids { queue.push_back(id); queue.pop_front(); }
        }
        let mut ids = bank.ids().to_vec();
        ids.rotate_left(bank.cursor);
        prop_assert_eq!(ids, Vec::from(queue));
    }
}
