use proptest::prelude::*;

use super::*;
use crate::Purpose;

const MASK: u32 = 103;

fn masker(by: MaskBy) -> Masker {
    Masker::new(by, 0.15, MASK, 200..300).unwrap()
}

/// `[CLS]` 10 11 12 … `[SEP]`
fn tokens(words: u32) -> Vec<u32> {
    [vec![101], (10..10 + words).collect(), vec![102]].concat()
}

fn draw(by: MaskBy, words: u32, phrases: &[Vec<usize>], count: usize) -> Vec<Masking> {
    let mut rng = Purpose::Masks.stream(5, 0);
    masker(by).maskings(&tokens(words), phrases, count, &mut rng).unwrap()
}

/// A share of `n` draws lies within five standard deviations of its probability.
fn assert_near(what: &str, hits: usize, n: usize, p: f64) {
    let (share, bound) = (hits as f64 / n as f64, 5.0 * (p * (1.0 - p) / n as f64).sqrt());
    assert!((share - p).abs() <= bound, "{what}: {share} of {n}, probability {p}");
}

/// §3.2 by counting every outcome: each subset of phrases, and for the empty subset each phrase that can come first.
fn enumerated(phrases: &[Vec<usize>], words: usize, rate: f64) -> Vec<f64> {
    let freq = |at: usize| phrases.iter().filter(|s| s.contains(&at)).count() as f64;
    let chance = |s: &Vec<usize>| s.iter().map(|&at| rate / freq(at)).sum::<f64>() / s.len() as f64;
    let mut labelled = vec![0.0; words];
    for subset in 0..1usize << phrases.len() {
        let mut weight = 1.0;
        for (number, phrase) in phrases.iter().enumerate() {
            let p = chance(phrase);
            weight *= if subset >> number & 1 == 1 { p } else { 1.0 - p };
        }
        let outcomes: Vec<usize> =
            if subset == 0 { (0..phrases.len()).map(|s| 1 << s).collect() } else { vec![subset] };
        for &outcome in &outcomes {
            for (at, total) in labelled.iter_mut().enumerate() {
                let holds = |number: usize| outcome >> number & 1 == 1;
                if (0..phrases.len()).any(|number| holds(number) && phrases[number].contains(&at)) {
                    *total += weight / outcomes.len() as f64;
                }
            }
        }
    }
    labelled
}

const OVERLAPPING: [&[usize]; 5] = [&[0], &[1, 2], &[2, 3], &[3], &[0, 3, 4]];

fn overlapping() -> Vec<Vec<usize>> {
    OVERLAPPING.map(<[usize]>::to_vec).to_vec()
}

#[test]
fn label_probability_is_the_sum_over_all_outcomes() {
    for phrases in [overlapping(), vec![vec![0]], vec![vec![2], vec![2], vec![0, 1]]] {
        let (closed, counted) =
            (label_probabilities(&phrases, 6, 0.15).unwrap(), enumerated(&phrases, 6, 0.15));
        for (a, b) in closed.iter().zip(&counted) {
            assert!((a - b).abs() < 1e-12, "{phrases:?}: {closed:?}, {counted:?}");
        }
    }
}

/// 200,000 draws; without rule 4 position 0 would have 0.15.
#[test]
fn draws_label_each_token_with_its_probability() {
    let n = 200_000;
    let rows = draw(MaskBy::Phrases, 6, &overlapping(), n);
    let wanted = enumerated(&overlapping(), 6, 0.15);
    for (at, &p) in wanted.iter().enumerate() {
        let hits = rows.iter().filter(|row| row.labels[at + 1].is_some()).count();
        assert_near(&format!("position {at}"), hits, n, p);
    }
    assert_eq!(wanted[5], 0.0, "position 5 is in no phrase");
}

#[test]
fn eight_in_ten_targets_are_mask_one_random_one_kept() {
    let rows = draw(MaskBy::Phrases, 1, &[vec![0]], 100_000);
    let ids: Vec<u32> = rows.iter().map(|row| row.ids[1]).collect();
    let count = |what: &dyn Fn(u32) -> bool| ids.iter().filter(|&&id| what(id)).count();
    assert_near("mask", count(&|id| id == MASK), ids.len(), 0.8);
    assert_near("random", count(&|id| (200..300).contains(&id)), ids.len(), 0.1);
    assert_near("kept", count(&|id| id == 10), ids.len(), 0.1);
    assert_near("first of the range", count(&|id| id == 200), ids.len(), 0.001);
    assert_near("last of the range", count(&|id| id == 299), ids.len(), 0.001);
}

// Trap 6
#[test]
fn mask_of_position_zero_hits_the_first_word_and_not_cls() {
    for row in draw(MaskBy::Phrases, 3, &[vec![0]], 50) {
        assert_eq!(row.labels, [None, Some(10), None, None, None]);
        assert_eq!(row.ids[0], 101);
    }
}

// Trap 11
#[test]
fn kept_and_randomised_positions_are_targets_too() {
    let rows = draw(MaskBy::Phrases, 1, &[vec![0]], 1000);
    let kept = rows.iter().find(|row| row.ids[1] == 10).expect("one in ten is kept");
    let random = rows.iter().find(|row| row.ids[1] >= 200).expect("one in ten is random");
    for row in [kept, random] {
        assert_eq!(row.targets().collect::<Vec<_>>(), [1]);
        assert_eq!(row.labels[1], Some(10), "the label is the original token");
    }
}

/// Rule 4, at a rate so small that no phrase is chosen otherwise.
#[test]
fn one_phrase_is_taken_where_none_was_chosen() {
    let rare = Masker::new(MaskBy::Phrases, 1e-12, MASK, 200..300).unwrap();
    let mut rng = Purpose::Masks.stream(5, 0);
    let phrases = [vec![0], vec![1, 2], vec![4]];
    let rows = rare.maskings(&tokens(5), &phrases, 30_000, &mut rng).unwrap();
    for phrase in &phrases {
        let wanted: Vec<usize> = phrase.iter().map(|at| at + 1).collect();
        let hits = rows.iter().filter(|row| row.targets().eq(wanted.iter().copied())).count();
        assert_near("a phrase by itself", hits, rows.len(), 1.0 / 3.0);
    }
}

/// "w/ WM": 15 % per token. If no token is drawn, the first token becomes `[MASK]`.
#[test]
fn word_masking_falls_back_on_the_first_token() {
    let n = 100_000;
    let rows = draw(MaskBy::Words, 4, &[vec![3]], n);
    let none = 0.85f64.powi(4);
    for at in 1..=4 {
        let p = if at == 1 { 0.15 + none } else { 0.15 };
        let hits = rows.iter().filter(|row| row.labels[at].is_some()).count();
        assert_near(&format!("token {at}"), hits, n, p);
    }
    // a drawn first token is kept with 10 %; the fallback never keeps it
    let kept = rows.iter().filter(|row| row.labels[1].is_some() && row.ids[1] == 10).count();
    assert_near("first token kept", kept, n, 0.015);
    assert!(rows.iter().all(|row| row.labels[0].is_none() && row.labels[5].is_none()));
}

#[test]
fn a_sentence_without_a_phrase_has_one_for_each_token() {
    let rows = draw(MaskBy::Phrases, 3, &[vec![], vec![]], 60_000);
    let each = draw(MaskBy::Phrases, 3, &[vec![0], vec![1], vec![2]], 60_000);
    assert_eq!(rows, each);
}

/// Departure 18: a list that occurs twice changes the draw.
#[test]
fn a_phrase_listed_twice_is_another_distribution() {
    let (once, twice) = ([vec![0], vec![1]], [vec![0], vec![0], vec![1]]);
    let p = |phrases: &[Vec<usize>]| label_probabilities(phrases, 2, 0.15).unwrap()[0];
    assert!((p(&once) - p(&twice)).abs() > 0.05, "{} {}", p(&once), p(&twice));
}

/// The closed form reads lists as the draw does: empty lists are dropped, a position counts once in a list, and without lists each word is a
/// list.
#[test]
fn the_closed_form_is_of_the_lists_that_are_drawn() {
    let of = |phrases: &[Vec<usize>]| label_probabilities(phrases, 2, 0.15).unwrap();
    assert_eq!(of(&[]), of(&[vec![0], vec![1]]));
    assert_eq!(of(&[vec![], vec![0]]), of(&[vec![0]]));
    assert_eq!(of(&[vec![0, 0, 1], vec![0]]), of(&[vec![0, 1], vec![0]]));
    let line = |phrases: &[Vec<usize>], rate| {
        label_probabilities(phrases, 2, rate).unwrap_err().to_string()
    };
    assert_eq!(line(&[vec![2]], 0.15), "phrase 0: expected positions below 2, got 2");
    assert_eq!(line(&[vec![0]], f64::NAN), "masking.rate: expected a share in (0, 1], got NaN");
}

#[test]
fn bad_input_is_named_in_one_line() {
    let mut rng = Purpose::Masks.stream(5, 0);
    let by = masker(MaskBy::Phrases);
    let error = by.maskings(&tokens(3), &[vec![0], vec![3]], 1, &mut rng).unwrap_err();
    assert_eq!(error.to_string(), "phrase 1: expected positions below 3, got 3");
    assert!(by.maskings(&[101, 102], &[], 1, &mut rng).is_err());
    assert!(Masker::new(MaskBy::Words, 0.0, MASK, 1..2).is_err());
    assert!(Masker::new(MaskBy::Words, f64::NAN, MASK, 1..2).is_err());
    assert!(Masker::new(MaskBy::Words, 0.15, MASK, 2..2).is_err());
}

proptest! {
    /// A label is the original token, a token without a label stays, and at least one token is a target.
    #[test]
    fn what_is_no_target_stays(seed in 0u64..1000, lists in prop::collection::vec(prop::collection::vec(0usize..8, 0..4), 0..6)) {
        let mut rng = Purpose::Masks.stream(seed, 0);
        let original = tokens(8);
        for row in masker(MaskBy::Phrases).maskings(&original, &lists, 5, &mut rng).unwrap() {
            prop_assert!(row.targets().count() > 0);
            for ((&token, label), &id) in original.iter().zip(&row.labels).zip(&row.ids) {
                prop_assert_eq!(label.unwrap_or(id), token);
            }
        }
    }
}
