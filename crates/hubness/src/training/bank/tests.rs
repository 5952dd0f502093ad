use burn::tensor::{Device, TensorData};

use super::*;

fn rows(values: &[f32]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len() / 2, 2]), &Device::flex())
}

/// By hand: two of the three entries belong to captions outside the batch.
#[test]
fn own_captions_are_left_out() {
    let mut bank = MemoryBank::default();
    bank.push(rows(&[1.0, 0.0]), rows(&[0.0, 1.0]), &[5]);
    bank.push(rows(&[0.0, 1.0, 0.6, 0.8]), rows(&[1.0, 0.0, 0.8, 0.6]), &[7, 2]);
    assert_eq!((bank.captions.len(), &bank.captions[..]), (3, &[5, 7, 2][..]));
    let scores = bank.scores(rows(&[1.0, 0.0, 0.0, 1.0]), rows(&[0.0, 1.0, 1.0, 0.0]), &[9, 7]);
    let want = BankScores {
        entries: 2,
        to_texts: vec![0.0, 0.8, 1.0, 0.6], // images (1, 0), (0, 1) by texts (0, 1), (0.8, 0.6)
        to_images: vec![0.0, 0.8, 1.0, 0.6], // texts (0, 1), (1, 0) by images (1, 0), (0.6, 0.8)
    };
    assert_eq!(scores, want);
    let none = bank.scores(rows(&[1.0, 0.0]), rows(&[1.0, 0.0]), &[2, 5, 7]);
    assert!(none.entries == 0 && none.to_texts.is_empty());
}

#[test]
fn batches_are_kept_whole_by_their_rate_and_seed() {
    let of = |rate, seed| chosen_batches(1003, 4, rate, seed);
    let all = of(1.0, 1);
    assert_eq!((all.len(), all.last().unwrap().len()), (251, 3), "the partial batch is one too");
    let mut captions = all.concat();
    assert_ne!(captions[..8], [0, 1, 2, 3, 4, 5, 6, 7], "shuffled");
    captions.sort_unstable();
    assert!(captions.into_iter().eq(0..1003));
    let some = of(0.2, 1);
    // 251 · 0.2 = 50, deviation 6.3.
    assert!((25..=75).contains(&some.len()), "{}", some.len());
    assert!(some.iter().all(|batch| all.contains(batch)), "whole batches");
    assert_eq!(some, of(0.2, 1));
    assert_ne!(some, of(0.2, 2));
    assert!(of(0.0, 1).is_empty());
}
