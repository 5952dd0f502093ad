//! Steps with synthetic sentences: options, phases, files.

use std::collections::BTreeSet;

use itm_core::start::{LinearMap, StartOptions};

use super::*;
use crate::train::evidence::StartEvidence;
use crate::train::objective::word_logits;
use crate::{CaptionWords, Choice, EvidenceBounds, Filter, Negative, Verdict};

/// All five losses, with masking by phrases.
fn all() -> TagsDcConfig {
    let mut config = config();
    config.model.initializer_range = 0.5; // large enough for noise to have an effect
    config.masking.by = MaskBy::Phrases;
    config.loss = LossConfig { istm: 0.5, wod: 0.4, woc: 0.3, ..config.loss };
    config.synthetic = SyntheticConfig { refills: 4, kept: 3, ..config.synthetic };
    config
}

/// Each two neighbouring words of a text are a phrase. The last word is a phrase by itself, twice.
fn phrases(split: &Split) -> Vec<Vec<Vec<usize>>> {
    let of = |text: &Vec<u32>| -> Vec<Vec<usize>> {
        let last = text.len() - 1;
        let pairs = (0..last).map(|k| vec![k, k + 1]);
        pairs.chain([vec![last], vec![last]]).collect()
    };
    split.texts.iter().map(of).collect()
}

fn made(config: &TagsDcConfig, split: &Split) -> TagsDc {
    model(config).with_phrases(phrases(split))
}

fn after_two_steps(config: &TagsDcConfig) -> (Vec<f64>, Vec<u8>) {
    let split = Split::new();
    let mut model = made(config, &split);
    let losses = [0, 1].map(|seed| step(&mut model, &split, &[3, 4, 7], seed).unwrap().loss);
    (losses.to_vec(), weights(&model))
}

/// The file of the weights.
fn weights(model: &TagsDc) -> Vec<u8> {
    let mut file = vec![];
    let write = &mut |name: &str, contents: &[u8]| {
        if name == "model.safetensors" {
            file = contents.to_vec();
        }
        Ok(())
    };
    model.save(write).unwrap();
    file
}

/// Each option gives another model after two steps. Departures 1 to 4, 6, 7, 13, 14, 18.
#[test]
fn options_of_synthetic_sentences_change_the_step() {
    let default = after_two_steps(&all());
    assert!(after_two_steps(&all()) == default);
    type Change = fn(&mut TagsDcConfig);
    let changes: [(&str, Change); 20] = [
        ("by", |c| c.masking.by = MaskBy::Words),
        ("duplicates", |c| c.masking.duplicates = Duplicates::Kept),
        ("generator", |c| c.synthetic.generator = GeneratorKind::Static),
        ("sampling", |c| c.synthetic.sampling = Sampling::Evaluation),
        ("refills", |c| c.synthetic.refills = 3),
        ("temperature", |c| c.synthetic.temperature = 0.01),
        ("forbid_special", |c| c.synthetic.forbid_special = true),
        ("positive_only", |c| c.synthetic.filter = FilterKind::PositiveOnly),
        ("penalty", |c| {
            c.synthetic.filter = FilterKind::Penalty;
            c.synthetic.kept = 8;
        }),
        ("repeat", |c| {
            // The last of equal sentences may have other targets than the first.
            (c.synthetic.repeat, c.synthetic.refills, c.masking.maskings) = (Repeat::Last, 30, 8);
        }),
        ("kept", |c| c.synthetic.kept = 1),
        ("random", |c| c.synthetic.choice = Choice::Random),
        ("below", |c| c.synthetic.choice = Choice::Below),
        ("share_forward", |c| c.synthetic.share_forward = false),
        ("released_positive", |c| c.synthetic.released_positive = true),
        ("istm", |c| c.loss.istm = 0.0),
        ("wod", |c| c.loss.wod = 0.0),
        ("wod_weights", |c| c.loss.wod_weights = [1.0, 1.0]),
        ("woc", |c| c.loss.woc = 0.0),
        ("woc_targets", |c| c.loss.woc_targets = CorrectionTargets::All),
    ];
    for (name, change) in changes {
        let mut config = all();
        change(&mut config);
        let mut same = config.clone();
        match name {
            "penalty" => same.synthetic.filter = FilterKind::PositiveOnly,
            "repeat" => same.synthetic.repeat = Repeat::First,
            _ => same = all(),
        }
        assert!(after_two_steps(&config) != after_two_steps(&same), "{name}"); // bytes, not to be printed
    }
}

/// Without noise a step in parts equals the whole step, to rounding, also with unequal parts, because each caption has its own draws.
#[test]
fn parts_of_a_batch_add_up() {
    let split = Split::new();
    let after = |micro_batch: usize| {
        let mut config = all();
        config.train.micro_batch = micro_batch;
        config.model.hidden_dropout = 0.0;
        let mut model = made(&config, &split);
        let done = step(&mut model, &split, &[3, 4, 7], 1).unwrap();
        (done, host(model.model().bert.words.val().inner()))
    };
    let (whole, words) = after(3);
    for micro_batch in [1, 2] {
        let (parts, of_parts) = after(micro_batch);
        assert!((parts.loss - whole.loss).abs() < 1e-5, "{} {}", parts.loss, whole.loss);
        assert!((parts.grad_norm - whole.grad_norm).abs() < 1e-4 * whole.grad_norm);
        assert!((parts.active - whole.active).abs() < 1e-9);
        let far =
            words.iter().zip(&of_parts).map(|(a, b)| (a - b).abs()).max_by(f32::total_cmp).unwrap();
        assert!(far < 1e-4, "{far}");
    }
}

/// The pools that a step makes for these captions, from the logits of the loss.
fn pools(config: &TagsDcConfig, split: &Split, captions: &[usize], seed: u64) -> Vec<Pool> {
    pools_of(&made(config, split), split, captions, seed).unwrap()
}

fn pools_of(
    model: &TagsDc,
    split: &Split,
    captions: &[usize],
    seed: u64,
) -> itm_core::Result<Vec<Pool>> {
    let (config, items) = (model.config(), split.items());
    let masked = model.maskings(&items, captions, (0, config.masking.maskings), seed)?;
    let logits = word_logits(model.model(), &masked, Some(&split.regions), Noise::Off)?;
    let logits = host(logits.inner());
    let data = (&items, &split.regions, model.caption_words_of(&items)?);
    Ok(model.pools(&masked, &logits, model.model(), data, seed)?.0)
}

/// The sentences of a pool are false by the captions of the image, distinct, and the best of all that were made. Their scores equal the
/// scores of single pairs. Traps 14 and 15.
#[test]
fn a_pool_is_of_the_best_sentences_that_pass() {
    let mut config = all();
    config.masking.maskings = 8;
    let split = Split::new();
    let score = |model: &TagsDc, image: usize, tokens: &[u32]| {
        let regions = RegionBatch::of(&split.regions, &[image]).unwrap();
        let regions = model.model().embed_regions(&regions);
        let joint = model.model().join(&TokenBatch::new(&[tokens]), &regions, &[0], Noise::Off);
        host(model.model().match_logits(&joint).inner())[0]
    };
    let (model, captions) = (made(&config, &split), [3, 4, 7]);
    let [few, many] = [3, 1000].map(|kept| {
        config.synthetic.kept = kept;
        pools(&config, &split, &captions, 5)
    });
    for ((few, many), caption) in few.iter().zip(&many).zip(captions) {
        let image = split.pairs.image_of(caption);
        assert_eq!(
            (few.image, &few.positive),
            (image, &model.marks().around(&split.texts[caption]))
        );
        assert_eq!(few.negatives[..], many.negatives[..3], "the best three");
        let scores: Vec<f32> =
            many.negatives.iter().map(|n| score(&model, image, &n.tokens)).collect();
        assert!(scores.windows(2).all(|two| two[0] >= two[1] - 1e-5), "{scores:?}");
        let told = split.pairs.texts_of(image).iter().map(|&t| &split.texts[t][..]);
        let rows: Vec<Vec<u32>> = many.negatives.iter().map(|n| n.tokens.clone()).collect();
        let verdicts =
            Filter::Paper.verdicts(&few.positive, &rows, &CaptionWords::of(told), Repeat::First);
        assert!(verdicts.iter().all(|&verdict| verdict == Verdict::Kept));
        for negative in &many.negatives {
            let outside = negative.masked.iter().enumerate().filter(|(_, masked)| !**masked);
            assert!(outside.into_iter().all(|(at, _)| negative.tokens[at] == few.positive[at]));
        }
    }
}

/// Trap 15: words of captions that the split lacks, such as captions of more than 60 pieces, make no sentence false either.
#[test]
fn words_of_captions_outside_the_split_are_protected() {
    let (config, split) = (all(), Split::new());
    let (captions, seed) = ([3, 4, 7], 5);
    let without = pools(&config, &split, &captions, seed);
    let new = |pool: &Pool| -> BTreeSet<u32> {
        let changed = |negative: &Negative| {
            let pairs = negative.tokens.iter().zip(&pool.positive);
            pairs.filter(|(new, own)| new != own).map(|(new, _)| *new).collect::<Vec<_>>()
        };
        pool.negatives.iter().flat_map(changed).collect()
    };
    let long: Vec<u32> = new(&without[0]).into_iter().collect();
    assert!(!long.is_empty());
    let words = |image: usize| {
        let own = split.pairs.texts_of(image).iter().map(|&text| &split.texts[text][..]);
        let more = (image == split.pairs.image_of(captions[0])).then_some(&long[..]);
        CaptionWords::of(own.chain(more))
    };
    let all: Vec<CaptionWords> = (0..split.pairs.images()).map(words).collect();
    let model = made(&config, &split).with_caption_words(all.clone());
    let with = pools_of(&model, &split, &captions, seed).unwrap();
    let protected = |pool: &Pool, negative: &Negative| {
        let pairs = negative.tokens.iter().zip(&pool.positive);
        pairs.filter(|(new, own)| new != own).all(|(new, _)| long.contains(new))
    };
    assert!(without[0].negatives.iter().all(|negative| protected(&without[0], negative)));
    assert!(!with[0].negatives.iter().any(|negative| protected(&with[0], negative)));
    let others = |pools: &[Pool]| {
        pools[1..].iter().filter(|pool| pool.image != pools[0].image).cloned().collect::<Vec<_>>()
    };
    assert!(!others(&with).is_empty() && others(&with) == others(&without), "other images");
    let mut short = made(&config, &split).with_caption_words(all[..4].to_vec());
    let line = step(&mut short, &split, &captions, 0).unwrap_err().to_string();
    assert_eq!(line, "caption words: expected one set for each of 5 training images, got 4");
}

/// Each negative has a changed word that is absent from its image, by the start's evidence and the training captions. A model that makes no
/// step learns this from the same split.
#[test]
fn the_absent_filter_looks_at_the_image() {
    let mut config = all();
    config.model.start = StartFrom::Cca;
    config.model.cca =
        Some(StartOptions { ridge_image: 1.0, ridge_text: 1.0, power: 1.0, dims: 8, fill: 0.0 });
    config.synthetic.filter = FilterKind::Absent(0.6);
    (config.synthetic.kept, config.synthetic.refills) = (1000, 30);
    let (split, d) = (Split::new(), config.model.embed_dim);
    let map = |rows: usize, shift: f32| LinearMap {
        weight: (0..rows * d).map(|k| (k as f32 * 1.7 + shift).sin()).collect(),
        bias: vec![0.1; d],
    };
    let start = Start { image: map(WIDTH, 0.0), text: map(WORDS, 0.5) };
    let mut ready = made(&config, &split).with_start(&start).unwrap();
    let evidence = StartEvidence::new(&start);
    let all: Vec<u32> = (0..WORDS as u32).collect();
    let told = |image| split.pairs.texts_of(image).iter().flat_map(|&t| split.texts[t].clone());
    let told: Vec<BTreeSet<u32>> = (0..5).map(|image| told(image).collect()).collect();
    let told: Vec<Vec<u32>> = told.into_iter().map(|words| words.into_iter().collect()).collect();
    let line = made(&config, &split).learn_filter(&split.items()).unwrap_err().to_string();
    assert!(line.starts_with("synthetic.filter.absent: expected the maps of a start"), "{line}");
    let of = |image, words: &[u32]| evidence.of(&split.regions, image, words);
    let bounds = EvidenceBounds::fit(WORDS, &told, 0.6, of).unwrap();
    let made = |model: &TagsDc, text| model.negatives(&split.items(), text, &[], 5).unwrap().1;
    ready.learn_filter(&split.items()).unwrap();
    let mut paper = ready.clone();
    paper.config.synthetic.filter = FilterKind::Paper;
    let (mut kept, mut dropped) = (0, 0);
    for text in 0..10 {
        let image = split.pairs.image_of(text);
        let absent = bounds.absent(&of(image, &all).unwrap());
        let own = ready.marks().around(&split.texts[text]);
        let fits = |tokens: &[u32]| {
            let new =
                |(x, w): (&u32, &u32)| x != w && !told[image].contains(x) && absent.contains(x);
            tokens.iter().zip(&own).any(new)
        };
        let negatives = made(&ready, text);
        assert!(negatives.iter().all(|negative| fits(&negative.tokens)));
        let others = made(&paper, text);
        assert_eq!(negatives.len(), others.iter().filter(|n| fits(&n.tokens)).count());
        kept += negatives.len();
        dropped += others.len() - negatives.len();
    }
    assert!(kept > 0 && dropped > 0, "{kept} kept, {dropped} dropped");
    config.model.start = StartFrom::Random;
    let line = config.check().unwrap_err().to_string();
    assert!(line.starts_with("synthetic.filter.absent: expected model.start = \"cca\""), "{line}");
}

/// A filter that finds nothing in the split has learnt, too: the next step does not look again. It learns for sentences that are made after a
/// training without them, too.
#[test]
fn a_filter_learns_once() {
    let (split, mut config) = (Split::new(), all());
    config.synthetic.filter = FilterKind::Siblings;
    config.loss = LossConfig { istm: 0.0, wod: 0.0, woc: 0.0, ..config.loss };
    let mut model = made(&config, &split);
    model.learn_filter(&split.items()).unwrap();
    let learnt = model.learnt.clone();
    assert!(learnt.done);
    model.learn_filter(&split.items()).unwrap();
    assert!(Arc::ptr_eq(&model.learnt, &learnt));
}

/// Of all sentences, `positive_only` keeps those that equal neither the caption nor each other: the distinct ones.
#[test]
fn copies_of_the_caption_are_not_distinct() {
    let (split, mut config) = (Split::new(), all());
    config.synthetic.filter = FilterKind::PositiveOnly;
    (config.synthetic.refills, config.masking.maskings) = (30, 8);
    let done = step(&mut made(&config, &split), &split, &[3, 4, 7], 1).unwrap();
    let number = |name| done.numbers.means().find(|(key, _)| *key == name).unwrap().1;
    let [distinct, kept] = ["synthetic_distinct", "synthetic_kept"].map(number);
    assert!((distinct - kept).abs() < 1e-12 && kept < 1.0, "{distinct} {kept}");
}

/// Phase 2 begins with the weights of phase 1 and makes its heads from them; a head that exists stays (trap 1). A static generator keeps
/// the weights with which its row began.
#[test]
fn a_second_phase_begins_with_the_first() {
    let (split, folder) = (Split::new(), tempfile::tempdir().unwrap());
    let mut phase_1 = all();
    (phase_1.loss.wod, phase_1.loss.woc) = (0.0, 0.0);
    let mut first = made(&phase_1, &split);
    step(&mut first, &split, &[3, 4], 1).unwrap();
    let save = |model: &TagsDc| {
        model.save(&mut |name, contents| {
            std::fs::write(folder.path().join(name), contents).unwrap();
            Ok(())
        })
    };
    save(&first).unwrap();
    let scores = |model: &TagsDc| model.scored(split.items()).unwrap().matrix().unwrap();
    let mut second = made(&all(), &split);
    assert_ne!(scores(&second), scores(&first));
    second.start_from(folder.path()).unwrap();
    assert_eq!(scores(&second), scores(&first));
    let bias = |model: &TagsDc| host(model.model().cls.bias.val().inner());
    let head = second.model().correction.as_ref().unwrap();
    assert_eq!(host(head.bias.val().inner()), bias(&first), "a copy of the trained head");
    // A third model begins with the second: the trained heads stay.
    for seed in 0..3 {
        step(&mut second, &split, &[3, 4], seed).unwrap();
    }
    save(&second).unwrap();
    let mut third = made(&all(), &split);
    third.start_from(folder.path()).unwrap();
    let trained = |model: &TagsDc| {
        let head = model.model().discrimination.as_ref().unwrap();
        host(head.weight.val().inner())
    };
    assert_eq!(trained(&third), trained(&second));
    // A static generator has the weights with which its row began, and is saved beside the trained model.
    let mut config = phase_1.clone();
    config.synthetic.generator = GeneratorKind::Static;
    let mut fixed = made(&config, &split);
    fixed.start_from(folder.path()).unwrap();
    step(&mut fixed, &split, &[3, 4], 1).unwrap();
    let words = |model: &Uniter| host(model.bert.words.val().inner());
    let generator = fixed.generator().unwrap();
    assert_eq!(words(generator), words(second.model()));
    assert_ne!(words(generator), words(fixed.model()));
    save(&fixed).unwrap();
    let mut again = made(&config, &split);
    again.load(folder.path()).unwrap();
    assert_eq!(words(again.generator().unwrap()), words(generator));
}

/// Probabilities and corrections come from the heads, sentence by sentence. One seed always gives the same negatives.
#[test]
fn sentences_and_words_are_judged_by_the_heads() {
    let (split, config) = (Split::new(), all());
    let (model, items) = (made(&config, &split), split.items());
    let pool = model.negatives(&items, 3, &phrases(&split)[3], 5).unwrap();
    assert_eq!(pool, model.negatives(&items, 3, &phrases(&split)[3], 5).unwrap());
    assert_ne!(pool, model.negatives(&items, 3, &phrases(&split)[3], 6).unwrap());
    let (caption, negatives) = pool;
    let twice = [&[0][..], &[1], &[1], &[1]].map(<[usize]>::to_vec);
    let once = |k: usize| model.negatives(&items, 3, &twice[..k], 5).unwrap();
    assert_eq!(once(4), once(2), "masking.duplicates = \"once\"");
    assert_eq!(caption.tokens, model.marks().around(&split.texts[3]));
    assert_eq!(negatives.len(), 3);
    assert!(negatives.is_sorted_by(|a, b| a.score >= b.score - 1e-6));
    let regions = RegionBatch::of(&split.regions, &[1]).unwrap();
    for judged in negatives.iter().chain([&caption]) {
        let regions = model.model().embed_regions(&regions);
        let text = TokenBatch::new(&[&judged.tokens[..]]);
        let joint = model.model().join(&text, &regions, &[0], Noise::Off);
        let score = host(model.model().match_scores(&joint).inner())[0];
        assert!((judged.score - score).abs() < 1e-6);
        let asked = joint.every_token();
        let two = host(model.model().discrimination_logits(&joint, &asked).inner());
        let all = host(model.model().correction_logits(&joint, &asked).inner());
        let words = judged.words.as_ref().unwrap();
        for ((word, two), all) in words.iter().zip(two.chunks(2)).zip(all.chunks(15)) {
            let share = two[1].exp() / (two[0].exp() + two[1].exp());
            assert!((word.matches - share).abs() < 1e-6);
            assert!(all.iter().all(|&other| other <= all[word.correction as usize] + 1e-6));
        }
    }
    let mut phase_1 = config;
    (phase_1.loss.wod, phase_1.loss.woc) = (0.0, 0.0);
    let judged = made(&phase_1, &split).assess(&items, 1, &[&caption.tokens]).unwrap();
    assert!(judged[0].words.is_none() && judged[0].tokens == caption.tokens);
}

#[test]
fn phrases_that_are_asked_for_must_be_there() {
    let split = Split::new();
    let line = |mut model: TagsDc| step(&mut model, &split, &[3], 1).unwrap_err().to_string();
    let place = "masking.by = \"phrases\": expected phrases of 10 training captions";
    assert_eq!(line(model(&all())), format!("{place}, got none"));
    let few = model(&all()).with_phrases(vec![vec![vec![0]]; 3]);
    assert_eq!(line(few), format!("{place}, got 3"));
    let outside = model(&all()).with_phrases(vec![vec![vec![9]]; 10]);
    assert_eq!(line(outside), "caption 3, phrase 0: expected positions below 4, got 9");
}

/// The captions of an image have every word, so that no sentence passes. If there is no other loss, the step is an error and makes no update.
#[test]
fn without_a_survivor_nothing_learns() {
    let mut split = Split::new();
    split.texts[0] = vec![2, 3];
    split.texts[1] = (4..12).collect();
    let mut config = all();
    config.synthetic.forbid_special = true;
    config.loss = LossConfig { itm: 0.0, mlm: 0.0, ..config.loss };
    let mut model = made(&config, &split);
    let line = step(&mut model, &split, &[0], 1).unwrap_err().to_string();
    assert_eq!(
        line,
        "epoch 0, step 0: expected a synthetic sentence that passes the filter, got 0"
    );
    assert_eq!(model.learner.steps(), 0);
    config.loss.mlm = 0.1;
    let with_words = step(&mut made(&config, &split), &split, &[0], 1).unwrap();
    assert!(with_words.loss.is_finite());
}

/// Word pieces already have their marks, and training begins with the weights of a file. A vocabulary of another size is refused.
#[test]
fn published_weights_are_what_training_begins_with() {
    let (split, folder) = (Split::new(), tempfile::tempdir().unwrap());
    let mut config = all();
    config.loss.wod = 0.0;
    config.loss.woc = 0.0;
    let weights = folder.path().join("uniter.safetensors");
    let shape = config.shape(WIDTH, 20);
    let published = Uniter::seeded(&shape, 99, &Device::flex());
    published.save(&weights).unwrap();
    config.model.published = Some(Published { weights, vocabulary: "unread".into() });
    let of = |tokens: usize| {
        let marks = Marks::of_pieces([0, 1, 12, 13, 14], 2..12, tokens);
        TagsDc::new(&config, WIDTH, marks, 10, &Device::flex())
    };
    let mut pieces = split.texts.clone();
    pieces.iter_mut().for_each(|text| *text = [&[12], &text[..], &[13]].concat());
    let split = Split { texts: pieces, ..split };
    let mut model = of(20).unwrap().with_phrases(vec![vec![]; 10]);
    let regions = RegionBatch::of(&split.regions, &[0]).unwrap();
    let regions = published.embed_regions(&regions);
    let texts = TokenBatch::new(&[&split.texts[1][..]]);
    let own = published.match_logits(&published.join(&texts, &regions, &[0], Noise::Off));
    let scores = model.scored(split.items()).unwrap().matrix().unwrap();
    assert!((scores.row(0)[1] - host(own)[0]).abs() < 1e-6);
    assert!(step(&mut model, &split, &[3, 4], 1).unwrap().loss.is_finite());
    let line = of(21).unwrap_err().to_string();
    assert!(line.contains("word_embeddings") && !line.contains('\n'), "{line}");
}
