//! What pre-training adds: updates on captions alone.

use super::*;
use crate::config::{CaptionsConfig, GeneratorKind};
use crate::model::Uniter;
use crate::{Generator, Masking, Scores};

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
    let mut model = TagsDc::new(&with_captions(2), WIDTH, marks(), 22, &Device::flex()).unwrap();
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
    let mut model = TagsDc::new(&with_captions(2), WIDTH, marks(), 22, &Device::flex()).unwrap();
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

pub(super) fn with_own_generator() -> TagsDcConfig {
    let mut config = with_captions(3);
    config.synthetic.generator = GeneratorKind::Own;
    config.loss.istm = 0.5;
    config
}

/// Matcher and generator.
fn both(model: &TagsDc) -> [Vec<f32>; 2] {
    let words = |model: &Uniter| host(model.bert.words.val().inner());
    [words(model.model()), words(model.generator().unwrap())]
}

pub(super) fn save(model: &TagsDc, folder: &std::path::Path) {
    let write = &mut |name: &str, contents: &[u8]| {
        std::fs::write(folder.join(name), contents).unwrap();
        Ok(())
    };
    model.save(write).unwrap();
}

/// A generator of its own learns in the first updates, and the matcher in the others. A training that was saved in its first updates goes on
/// with the same bits.
#[test]
fn a_generator_of_its_own_learns_first() {
    let (split, folder) = (Split::new(), tempfile::tempdir().unwrap());
    let config = with_own_generator();
    let new = || TagsDc::new(&config, WIDTH, marks(), 20, &Device::flex()).unwrap();
    let mut model = new();
    let mut before = both(&model);
    assert_eq!(before[0], before[1], "one start");
    for seed in 0..6 {
        if seed == 2 {
            save(&model, folder.path());
            model = new();
            model.load(folder.path()).unwrap();
        }
        step(&mut model, &split, &[3, 4], seed).unwrap();
        let after = both(&model);
        let learnt = [after[0] != before[0], after[1] != before[1]];
        assert_eq!(learnt, [seed >= 3, seed < 3], "matcher, generator in update {seed}");
        before = after;
    }
    let mut whole = new();
    (0..6).for_each(|seed| drop(step(&mut whole, &split, &[3, 4], seed).unwrap()));
    assert_eq!(both(&whole), before, "the same bits");
    assert_eq!(both(&whole.at_rest()), before);
    // A row that begins with this row has its matcher, and a new generator.
    save(&model, folder.path());
    let mut next = new();
    let own = both(&next);
    next.start_from(folder.path()).unwrap();
    assert_eq!(both(&next), [before[0].clone(), own[1].clone()]);
    let config = TagsDcConfig { captions: None, ..config };
    let line = config.check().unwrap_err().to_string();
    let want = "synthetic.generator = \"own\": expected a section [captions]";
    assert!(line.starts_with(want), "{line}");
}

/// The generator makes the sentences, and sees no image. Learning changes its sentences; what the matcher learns and another image change only
/// their order. A matcher that fills masks itself sees the image.
#[test]
fn a_generator_of_its_own_makes_the_sentences() {
    let [split, other] = [0.0, 0.5].map(Split::with_first_box);
    let sentences = |model: &TagsDc, split: &Split| {
        let (_, made) = model.negatives(&split.items(), 1, &[vec![0], vec![1]], 5).unwrap();
        let mut all: Vec<_> = made.into_iter().map(|one| one.tokens).collect();
        all.sort();
        assert!(!all.is_empty());
        all
    };
    let mut config = with_own_generator();
    config.synthetic.kept = 100; // all
    config.model.initializer_range = 1.0; // so that the image matters
    config.captions.as_mut().unwrap().learning_rate = 0.5;
    let new = |config: &_| TagsDc::new(config, WIDTH, marks(), 200, &Device::flex()).unwrap();
    let mut model = new(&config);
    let before = sentences(&model, &split);
    assert_eq!(sentences(&model, &other), before, "another image");
    (0..3).for_each(|seed| drop(step(&mut model, &split, &[3, 4], seed).unwrap()));
    let learnt = sentences(&model, &split);
    assert_ne!(learnt, before, "the generator learnt");
    (3..9).for_each(|seed| drop(step(&mut model, &split, &[3, 4], seed).unwrap()));
    assert_eq!(sentences(&model, &split), learnt, "only the matcher learnt");
    config.synthetic.generator = GeneratorKind::Dynamic;
    let sees = new(&config);
    assert_ne!(sentences(&sees, &split), sentences(&sees, &other));
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
    let mut model = TagsDc::new(&config, WIDTH, marks(), 200, &Device::flex()).unwrap();
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
    let rate = line(CaptionsConfig { learning_rate: 0.0, ..captions.clone() });
    assert!(rate.starts_with("captions.learning_rate: "), "{rate}");
    let train = TrainConfig { updates: Some(4), ..config().train };
    let of = |first_updates| {
        let captions = Some(CaptionsConfig { first_updates, ..captions.clone() });
        TagsDcConfig { captions, train: train.clone(), ..config() }.check()
    };
    let want = "captions.first_updates: expected below 4, train.updates, got 4";
    assert_eq!(of(4).unwrap_err().to_string(), want);
    of(3).unwrap();
}

/// Beside an image the generator fills the masks and does not see it, and the matcher scores. A matcher that fills masks itself sees the image.
#[test]
fn beside_an_image_the_generator_fills_the_masks() {
    let splits = [0.0, 0.5].map(Split::with_first_box);
    let both_images = |model: &TagsDc| {
        splits.each_ref().map(|split| {
            let items = split.items();
            let regions = items.images.regions(model.model().shape.features).unwrap();
            let mut beside = model.beside(regions, 0).unwrap();
            let mut ids = model.marks.around(&[1, 2]);
            ids[1] = model.marks.mask();
            let labels = vec![None, Some(1), None, None];
            let scores = beside.scores(&[&ids]).unwrap();
            (beside.logits(&[Masking { ids, labels }]).unwrap(), scores)
        })
    };
    let mut config = with_own_generator();
    config.model.initializer_range = 1.0; // so that the image matters
    config.captions.as_mut().unwrap().learning_rate = 0.5;
    let new = |config: &_| TagsDc::new(config, WIDTH, marks(), 20, &Device::flex()).unwrap();
    let mut model = new(&config);
    let before = both_images(&model);
    assert!(before[0].0 == before[1].0 && before[0].1 != before[1].1);
    (0..3).for_each(|seed| drop(step(&mut model, &splits[0], &[3, 4], seed).unwrap()));
    let learnt = both_images(&model);
    assert!(learnt[0].0 != before[0].0 && learnt[0].1 == before[0].1, "the generator learnt");
    config.synthetic.generator = GeneratorKind::Dynamic;
    let [one, other] = both_images(&new(&config));
    assert!(one.0 != other.0 && one.1 != other.1);
}

/// Beside an image a static generator fills the masks, and sees the image as it embeds it, like in [`TagsDc::negatives`].
#[test]
fn beside_an_image_a_static_generator_fills_the_masks() {
    let (split, mut config) = (Split::new(), config());
    config.synthetic.generator = GeneratorKind::Static;
    (config.model.initializer_range, config.loss.istm) = (1.0, 0.5);
    let mut model = model(&config);
    step(&mut model, &split, &[3, 4], 1).unwrap();
    let masked = model.maskings(&split.items(), &[3], (0, 2), 9).unwrap();
    let mut beside = model.beside(&split.regions, masked[0].image).unwrap();
    let got = beside.logits(&masked[0].rows).unwrap();
    let filled =
        |by: &Uniter| model.filled(&by.valid(), &masked, &split.regions, Noise::Off).unwrap();
    let off = |want: Vec<f32>| {
        got.iter().zip(want).map(|(a, b)| (a - b).abs()).max_by(f32::total_cmp).unwrap()
    };
    let [own, matcher] = [model.generator().unwrap(), model.model()].map(|by| off(filled(by)));
    assert!(own < 1e-4 && matcher > 1e-3, "{own} {matcher}");
}

/// What is asked beside an image must be a text of the model, and the image must be there.
#[test]
fn what_no_model_can_read_is_refused_beside_an_image() {
    let (split, model) = (Split::new(), model(&config()));
    let mut beside = model.beside(&split.regions, 0).unwrap();
    for (ids, want) in [
        (vec![12, 15, 13], "expected tokens below 15, got 15"),
        (vec![2; 11], "expected 1 to 10 tokens, [CLS] and [SEP] included, got 11"),
        (vec![], "expected 1 to 10 tokens, [CLS] and [SEP] included, got 0"),
    ] {
        let line = beside.scores(&[&[12, 2, 13], &ids]).unwrap_err().to_string();
        assert_eq!(line, format!("sentence 1: {want}"));
        let line = beside.logits(&[Masking { labels: vec![None; ids.len()], ids }]);
        assert_eq!(line.unwrap_err().to_string(), format!("row 0: {want}"));
    }
    let want = "image: expected a number below 5, got 5";
    assert_eq!(model.beside(&split.regions, 5).unwrap_err().to_string(), want);
    assert_eq!(model.filter(&split.items(), 5).unwrap_err().to_string(), want);
}
