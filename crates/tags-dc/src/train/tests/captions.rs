//! What pre-training adds: updates on captions alone.

use super::*;
use crate::config::CaptionsConfig;

fn with_captions(updates: usize) -> TagsDcConfig {
    let mut config = config();
    config.captions =
        Some(CaptionsConfig { first_updates: updates, batch: 6, learning_rate: 3e-3 });
    config
}

/// The phase of the pairs, without the updates before it: the first of 20 updates of pairs, at the rate of the first.
#[test]
fn the_phase_of_captions_can_be_left_out() {
    let split = Split::new();
    let mut model = TagsDc::new(&with_captions(2), WIDTH, WORDS, 22, &Device::flex()).unwrap();
    assert!(model.next_phase() && !model.next_phase());
    let done = step(&mut model, &split, &[0, 4], 1).unwrap();
    let number = |name| done.numbers.means().find(|(key, _)| *key == name).map(|(_, x)| x);
    assert_eq!((number("itm").is_some(), number("learning_rate")), (true, Some(5e-3)));
    assert!(!super::model(&config()).next_phase(), "a training of one phase");
}

/// What has no gradient without an image stays as it was: regions, pooler, match head. The next update moves them, at the rate of the pairs,
/// whose warm-up begins then.
#[test]
fn the_first_updates_see_no_image() {
    let split = Split::new();
    let mut model = TagsDc::new(&with_captions(2), WIDTH, WORDS, 22, &Device::flex()).unwrap();
    let of_pairs = |model: &TagsDc| {
        let model = model.model();
        [&model.regions.features.weight, &model.pooler.weight, &model.rank.weight]
            .map(|weight| host(weight.val().inner()))
    };
    let (pairs, words) = (of_pairs(&model), host(model.model().bert.words.val().inner()));
    let rates = [0, 1, 2].map(|seed| {
        let before = of_pairs(&model);
        let done = step(&mut model, &split, &[0, 4], seed).unwrap();
        assert_eq!(of_pairs(&model) == before, seed < 2, "update {seed}");
        let number = |name| done.numbers.means().find(|(key, _)| *key == name).map(|(_, x)| x);
        assert_eq!(number("itm").is_some(), seed == 2);
        number("learning_rate").unwrap()
    });
    assert_ne!(host(model.model().bert.words.val().inner()), words);
    assert_ne!(of_pairs(&model), pairs);
    // By hand: the first of two updates at the largest rate, because a tenth of two is less than one; then half of the first of
    // twenty updates with two of warm-up.
    let want = [1.5e-3 / 0.9, 1e-8, 5e-3];
    assert!(rates.iter().zip(want).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-9), "{rates:?}");
}

/// There are two captions, 3 4 and 7 8: each word tells the other one. With both masked, or another word in its place, half of the guesses
/// are right; random weights guess one of 15 tokens, a loss of 2.7.
#[test]
fn words_are_learnt_from_the_words_beside_them() {
    let mut split = Split::new();
    split.texts = (0..10).map(|k| if k % 2 == 0 { vec![3, 4] } else { vec![7, 8] }).collect();
    let mut config = with_captions(150);
    config.captions = Some(CaptionsConfig { first_updates: 150, batch: 10, learning_rate: 1e-2 });
    config.masking.rate = 0.5;
    let mut model = TagsDc::new(&config, WIDTH, WORDS, 200, &Device::flex()).unwrap();
    let losses: Vec<f64> =
        (0..150).map(|seed| step(&mut model, &split, &[0, 1], seed).unwrap().loss).collect();
    let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
    let (first, last) = (mean(&losses[..5]), mean(&losses[140..]));
    assert!(first > 2.4 && last < 1.0, "{first}, then {last}");
}

#[test]
fn courses_of_nothing_are_refused() {
    let line = |captions: CaptionsConfig| {
        let config = TagsDcConfig { captions: Some(captions), ..config() };
        config.check().unwrap_err().to_string()
    };
    let captions = CaptionsConfig { first_updates: 1, batch: 1, learning_rate: 1e-3 };
    let of = |key| format!("captions.{key}: expected at least 1, got 0");
    assert_eq!(line(CaptionsConfig { first_updates: 0, ..captions.clone() }), of("first_updates"));
    assert_eq!(line(CaptionsConfig { batch: 0, ..captions.clone() }), of("batch"));
    let rate = line(CaptionsConfig { learning_rate: 0.0, ..captions });
    assert!(rate.starts_with("captions.learning_rate: "), "{rate}");
}
