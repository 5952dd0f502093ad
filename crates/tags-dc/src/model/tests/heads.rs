//! How heads begin, and what they share.

use itm_core::checkpoint::{CheckpointReader, CheckpointWriter};

use super::*;

/// New heads give the outputs of the reference.
#[test]
fn heads_begin_as_parts_of_the_pretrained_ones() {
    let g = golden();
    let model = open("new.pt", &Device::flex()).with_word_heads();
    let batch = joint(&model, Noise::Off);
    for (name, got) in [
        ("made.logits", host(model.match_logits(&batch))),
        ("made.words", host(model.word_logits(&batch, &at(&WORDS)))),
        ("made.discrimination", host(model.discrimination_logits(&batch, &batch.every_token()))),
        ("made.correction", host(model.correction_logits(&batch, &at(&CORRECTIONS)))),
    ] {
        assert!(off(&got, &g[name]) < 1e-5, "{name}");
    }
}

// Trap 2: row 1 of `itm_output` is the match.
#[test]
fn the_rank_head_begins_as_row_1() {
    let model = open("new.pt", &Device::flex());
    let [pair, rank] = [&model.pair, &model.rank].map(|head| host(head.weight.val()));
    let row = |k: usize| pair.iter().skip(k).step_by(2).copied().collect::<Vec<_>>();
    assert!(rank == row(1) && rank != row(0));
    assert_eq!(host(model.rank.bias.val()), host(model.pair.bias.val())[1..]);
    let seeded = Uniter::seeded(&shape(), 3, &Device::flex());
    let [pair, rank] = [&seeded.pair, &seeded.rank].map(|head| host(head.weight.val()));
    assert_eq!(rank, pair.iter().skip(1).step_by(2).copied().collect::<Vec<_>>());
}

/// Class 1 of the two-way head scores as the rank head that begins as this class, class 0 does not.
#[test]
fn golden_class_1_of_the_two_way_head() {
    let (g, model) = (golden(), open("new.pt", &Device::flex()));
    let both = host(model.itm_logits(&joint(&model, Noise::Off)));
    let class = |k: usize| both.iter().skip(k).step_by(2).copied().collect::<Vec<_>>();
    assert!(off(&class(1), &g["made.logits"]) < 1e-5, "{both:?}");
    assert!(off(&class(0), &g["made.logits"]) > 1e-3, "{both:?}");
}

// Trap 1: a head that the file has is never made again, in either phase.
#[test]
fn a_saved_model_scores_the_same() {
    let (folder, device) = (TempDir::new().unwrap(), Device::flex());
    let path = folder.path().join("model.safetensors");
    let g = golden();
    // The file's rank head differs from row 1 of its `itm_output`.
    let full = open("full.safetensors", &device);
    assert!(off(&logits(&full), &g["logits"]) < 1e-5);
    assert!(off(&logits(&full), &g["made.logits"]) > 0.1);
    let outputs = |model: &Uniter| {
        let batch = joint(model, Noise::Off);
        let correction = host(model.correction_logits(&batch, &at(&CORRECTIONS)));
        [logits(model), host(model.discrimination_logits(&batch, &batch.every_token())), correction]
    };
    full.save(&path).unwrap();
    let (again, report) = Uniter::open(&path, &shape(), &device).unwrap();
    assert!(report.absent.is_empty(), "{report}");
    assert_eq!(outputs(&again.clone().with_word_heads()), outputs(&full));
    assert_eq!(host(again.pair.weight.val()), host(full.pair.weight.val()));

    // After phase 1 the file has a trained rank head, still has `itm_output`, and has no heads of phase 2.
    let mut first = open("new.pt", &device);
    first.rank.bias = first.rank.bias.map(|b| b + 0.25);
    first.cls.bias = first.cls.bias.map(|b| b + 0.5);
    first.save(&path).unwrap();
    let files = WeightFiles::open(&path).unwrap();
    assert!(
        files.shape("itm_output.weight").is_some() && files.shape("disc_output.bias").is_none()
    );
    let (second, _) = Uniter::open(&path, &shape(), &device).unwrap();
    assert_eq!(logits(&second), logits(&first));
    let second = second.with_word_heads();
    let correction = second.correction.as_ref().unwrap();
    assert_eq!(host(correction.bias.val()), host(first.cls.bias.val())); // the trained bias
}

#[test]
fn heads_that_are_there_are_not_made_again() {
    let mut model = open("new.pt", &Device::flex()).with_word_heads();
    let head = model.discrimination.as_mut().unwrap();
    head.bias = head.bias.clone().map(|b| b + 1.0);
    let before = host(head.bias.val());
    let after = model.with_word_heads().discrimination.unwrap();
    assert_eq!(host(after.bias.val()), before);
}

// Trap 17: one table embeds words and decodes for both word heads; each head has its own transform.
#[test]
fn decoders_are_the_word_table_and_transforms_are_apart() {
    let device = Device::flex().autodiff();
    let model = open("new.pt", &device).with_word_heads();
    let asked = at(&WORDS);
    let words = |m: &Uniter| values(m.word_logits(&joint(m, Noise::Off), &asked));
    let correction = |m: &Uniter| values(m.correction_logits(&joint(m, Noise::Off), &asked));
    assert_eq!(words(&model), correction(&model));

    // A word that is in no text: its row gets a gradient from the decoder only.
    let unread = 40 * 16..41 * 16;
    let gradient = |logits: Tensor<2>| {
        let grads = (logits.clone() * logits).sum().backward();
        let of = |p: &Linear| p.weight.val().grad(&grads).is_some();
        let (cls, other) = (of(&model.cls.dense), of(&model.correction.as_ref().unwrap().dense));
        (host(model.bert.words.val().grad(&grads).unwrap())[unread.clone()].to_vec(), [cls, other])
    };
    // A graph allows one backward pass, so each head has its own graph.
    let batch = || joint(&model, Noise::Off);
    let (first, learns) = gradient(model.word_logits(&batch(), &asked));
    assert!(first.iter().any(|d| *d != 0.0) && learns == [true, false]);
    let (second, learns) = gradient(model.correction_logits(&batch(), &asked));
    assert!(first == second && learns == [false, true]);

    // Another table changes both heads; another transform changes only its own head.
    let mut other = model.clone();
    let doubled = |w: Tensor<2>| Tensor::from_inner(w.inner() * 2.0).require_grad();
    other.bert.words = other.bert.words.map(doubled);
    assert!(words(&other) != words(&model) && words(&other) == correction(&other));
    let mut other = model.clone();
    let head = other.correction.as_mut().unwrap();
    head.dense.bias = head.dense.bias.clone().map(|b| (b + 1.0).detach().require_grad());
    assert!(words(&other) == words(&model) && correction(&other) != correction(&model));
    let ids = [&model.cls.bias, &model.correction.as_ref().unwrap().bias].map(|p| p.id);
    assert_ne!(ids[0], ids[1], "one parameter to an optimiser");
}

#[test]
#[should_panic(expected = "a model with the heads of phase 2")]
fn a_head_that_was_not_made_is_not_asked() {
    let model = open("new.pt", &Device::flex());
    let joint = joint(&model, Noise::Off);
    model.discrimination_logits(&joint, &joint.every_token());
}

#[test]
fn the_checkpoint_of_a_training_holds_it() {
    let (folder, device) = (TempDir::new().unwrap(), Device::flex());
    let path = folder.path().join("state.safetensors");
    let full = open("full.safetensors", &device);
    let mut writer = CheckpointWriter::default();
    writer.module("model", &full);
    fs::write(&path, writer.contents("uniter 1").unwrap()).unwrap();
    let reader = CheckpointReader::open(&path, "uniter 1").unwrap();
    let other = Uniter::seeded(&shape(), 9, &device).with_word_heads();
    assert_ne!(logits(&other), logits(&full));
    let again = reader.module("model", other).unwrap();
    reader.nothing_else().unwrap();
    assert_eq!(logits(&again), logits(&full));
}

#[test]
fn random_weights_are_a_function_of_the_seed() {
    let device = Device::flex();
    let [one, same, two] = [1, 1, 2].map(|seed| Uniter::seeded(&shape(), seed, &device));
    assert_eq!(logits(&one), logits(&same));
    assert_ne!(logits(&one), logits(&two));
    let spread = |values: Vec<f32>| {
        let n = values.len() as f32;
        (values.iter().map(|x| x * x).sum::<f32>() / n).sqrt()
    };
    assert!((spread(host(one.bert.words.val())) - 0.02).abs() < 0.002);
    assert!((spread(host(one.bert.blocks[0].up.weight.val())) - 0.02).abs() < 0.003);
    assert_eq!(spread(host(one.bert.blocks[0].up.bias.val())), 0.0);
    assert_eq!(spread(host(one.regions.norm.gamma.val())), 1.0);
    assert_ne!(host(one.pooler.weight.val())[..4], host(one.cls.dense.weight.val())[..4]);
}
