//! ViT and BERT end to end: the traps that need them, parts and memory, and refused batches.

use super::pictures::*;
use super::*;
use crate::{Memory, PiecePool};
use itm_core::towers::TrainTruncate;
use itm_core::towers::{ImageEncoder, TextEncoder};
use itm_kernels::Precision;

/// Trap 16 with BERT's own dropout. Without dropout and with θᵐ = θ both encoders give the same embeddings. With dropout each
/// encoder has its own mask.
#[test]
fn trap_16_momentum_drops_what_bert_says() {
    let positives = |dropout| {
        let mut config = small(Preset::Default, dropout);
        config.sampler.momentum = 1.0;
        let seen = picture_step(&mut new(&config), &PAIRS, 1).unwrap();
        seen.negatives.unwrap().map(|o| o.positive).into()
    };
    let (i2t, t2i) = positives(0.0);
    assert!(far(&i2t, &t2i) < 1e-6);
    let (i2t, t2i) = positives(0.4);
    assert!(far(&i2t, &t2i) > 1e-3, "the texts' masks differ, v·wᵐ is not vᵐ·w");
}

/// Trap 2 and trap 9 with ViT and BERT, every parameter.
#[test]
fn trap_02_and_09_with_vit_and_bert() {
    let mut fne = new(&small(Preset::Default, 0.1));
    let start = values(fne.online());
    picture_step(&mut fne, &PAIRS, 1).unwrap();
    let first = values(fne.online());
    assert!(far(&first, &start) > 1e-3 && far(&values(fne.momentum()), &start) < 1e-6);
    let bank = fne.bank().state();
    begin(&mut fne, 1);
    assert_eq!((fne.bank().state(), fne.statistics()), (bank, Snapshot::default()));
    picture_step(&mut fne, &PAIRS, 2).unwrap();
    let want: Vec<f32> = start.iter().zip(&first).map(|(s, f)| 0.995 * s + 0.005 * f).collect();
    assert!(far(&values(fne.momentum()), &want) < 1e-6 && far(&want, &start) > 1e-5);
}

/// Trap 22: two steps, a checkpoint and two more steps equal four steps, with dropout, `all` and projections.
#[test]
fn trap_22_vit_and_bert_are_resumed_bit_for_bit() {
    for preset in [Preset::Official, Preset::Paper] {
        let config = small(preset, 0.2);
        let run = |fne: &mut Fne, steps: std::ops::Range<u64>| -> Vec<u64> {
            steps.map(|s| picture_step(fne, &PAIRS, s).unwrap().loss.to_bits()).collect()
        };
        let mut whole = new(&config);
        let losses = run(&mut whole, 0..4);
        let folder = tempfile::tempdir().unwrap();
        let mut first = new(&config);
        let mut again = run(&mut first, 0..2);
        save(&first, folder.path());
        let mut second = new(&seeded(&config, 8));
        second.load(folder.path()).unwrap();
        again.extend(run(&mut second, 2..4));
        assert_eq!(again, losses, "{preset:?}");
        let bits = |fne: &Fne| -> Vec<u32> {
            [values(fne.online()), values(fne.momentum())]
                .concat()
                .iter()
                .map(|x| x.to_bits())
                .collect()
        };
        assert!(bits(&whole) == bits(&second), "{preset:?}");
    }
}

/// A batch in parts equals the whole batch, including padding: with `all` every part is as wide as the batch.
#[test]
fn pictures_in_parts_are_the_large_batch() {
    for pool in [PiecePool::Masked, PiecePool::All] {
        let run = |micro_batch| {
            let mut config = small(Preset::Default, 0.0);
            (config.train.micro_batch, bert(&mut config).pool) = (micro_batch, pool);
            let mut fne = new(&config);
            let reports = (0..3).map(|s| picture_step(&mut fne, &PAIRS, s).unwrap());
            reports.flat_map(|r| [r.loss, r.grad_norm]).collect::<Vec<_>>()
        };
        let want = run(4);
        for size in [3, 1] {
            for (got, want) in run(size).iter().zip(&want) {
                assert!(
                    (got - want).abs() < 1e-5 * want.max(1.0),
                    "{pool:?}, {size}: {got}, {want}"
                );
            }
        }
    }
}

/// Recomputed activations change no bit of the losses or the embeddings, even with dropout.
#[test]
fn recomputed_activations_change_nothing() {
    let run = |memory| {
        let mut config = small(Preset::Default, 0.3);
        let recomputes = memory == Memory::Recompute;
        vit(&mut config).gradient_checkpointing = recomputes;
        bert(&mut config).gradient_checkpointing = recomputes;
        let fne = new(&config);
        match (&fne.online().image, &fne.online().text) {
            (ImageEncoder::Vit(image), TextEncoder::Bert(text)) => {
                assert!(image.vit.blocks.iter().all(|block| block.memory == memory));
                assert!(text.bert.blocks.iter().all(|block| block.memory == memory));
            }
            other => panic!("{other:?}"),
        }
        output(&config)
    };
    assert!(run(Memory::Keep) == run(Memory::Recompute));
}

/// In bf16, losses and embeddings are near the f32 values, and do not depend on the number of threads. If the processor has bf16,
/// they differ from the f32 values.
#[test]
fn bf16_is_near_f32_and_the_same_with_any_threads() {
    let run = |precision| {
        let mut config = small(Preset::Default, 0.3);
        config.train.precision = precision;
        output(&config)
    };
    let (plain, rounded) = (run(Precision::F32), run(Precision::Bf16));
    let loss = (plain.0[0] - rounded.0[0]).abs(); // before the first update
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let (a, b) = (&plain.1, &rounded.1); // after the third
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    assert!(loss < 0.01 && cosine > 0.99, "{loss}, {cosine}");
    assert_eq!(plain != rounded, Precision::Bf16.here() == Precision::Bf16);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert!(one.install(|| run(Precision::Bf16)) == rounded, "one thread");
}

/// Training and evaluation both refuse images of the wrong kind.
#[test]
fn features_are_no_pictures_and_pictures_no_features() {
    let refused = |fne: &mut Fne, images: Images| {
        let batch =
            Batch { images, texts: &[&[2, 3]], image_ids: &[0], caption_ids: &[0], train: None };
        fne.step(&batch, 1, Observe::Off).unwrap_err().to_string()
    };
    let unseen = |fne: &Fne, dim| {
        let (features, pairs) = (Features { dim, values: vec![0.5; dim] }, Pairs::uniform(1, 1));
        let items =
            Items { images: ImageItems::Features(&features), texts: &[vec![2, 3]], pairs: &pairs };
        fne.scored(items).map(|_| ()).unwrap_err().to_string()
    };
    let mut sees_pictures = new(&small(Preset::Default, 0.0));
    let line = "images: expected pictures, got features";
    assert_eq!(refused(&mut sees_pictures, Images::Features(&[1.0, 2.0, 3.0])), line);
    assert_eq!(unseen(&sees_pictures, 3), line);
    let mut sees_features = fne(&tiny(Preset::Default));
    let line = refused(&mut sees_features, Images::from(&pictures(&[0], 16)));
    assert_eq!(line, "images: expected features of width 5, got pictures of 16 px");
    assert_eq!(unseen(&sees_features, 4), "images: expected features of width 5, got 4");
    let regions = Images::Regions { width: 5, counts: &[1], values: &[0.5; 5] };
    let line = refused(&mut sees_pictures, regions);
    assert_eq!(line, "images: expected pictures, got regions");
    let line = refused(&mut sees_features, regions);
    assert_eq!(line, "images: expected features of width 5, got regions");
}

/// A caption without a word (cleaning left nothing), and a caption with more pieces than BERT has positions.
#[test]
fn captions_that_no_encoder_can_read_are_refused() {
    let mut config = small(Preset::Default, 0.0);
    bert(&mut config).train_truncate = TrainTruncate::Off;
    let mut fne = new(&config);
    let pictures = pictures(&[0, 2], 16);
    let mut refused = |second: &[u32]| {
        let batch = Batch {
            images: Images::from(&pictures),
            texts: &[&[2, 3], second],
            image_ids: &[0, 1],
            caption_ids: &[0, 1],
            train: None,
        };
        fne.step(&batch, 1, Observe::Off).unwrap_err().to_string()
    };
    let want = "caption 1 of the batch: expected at least one word; [CLS] and [SEP] or <unk> for a text without any, got 0";
    assert_eq!(refused(&[]), want);
    assert_eq!(
        refused(&[5; 11]),
        "caption 1 of the batch: expected at most 10 word pieces, got 11"
    );
    // A caption that is cut in training too (P3) may have any length.
    bert(&mut config).train_truncate = TrainTruncate::On;
    let mut fne = new(&config);
    let batch = Batch {
        images: Images::from(&pictures),
        texts: &[&[2, 3], &[5; 11]],
        image_ids: &[0, 1],
        caption_ids: &[0, 1],
        train: None,
    };
    assert!(fne.step(&batch, 1, Observe::Off).unwrap().loss.is_finite());
}

/// A step copies neither the banks nor a weight: all keep their addresses. (The momentum encoders start as copies of the online
/// encoders; the first step separates the two.)
#[test]
fn a_step_works_in_place() {
    use burn::backend::Flex;
    use burn::module::{ModuleVisitor, Param};
    fn address<const D: usize>(x: Tensor<D>) -> usize {
        let x = if x.device().is_autodiff() { x.inner() } else { x };
        x.try_into_primitive::<Flex>().unwrap().bytes().as_ptr() as usize
    }
    struct Places(Vec<usize>);
    impl ModuleVisitor for Places {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(address(param.val()));
        }
    }
    let places = |fne: &Fne| {
        let mut places = Places(vec![]);
        fne.online().visit(&mut places);
        fne.momentum().visit(&mut places);
        for table in [fne.bank().images(), fne.bank().texts()] {
            places.0.push(address(table));
        }
        places.0
    };
    for preset in [Preset::Default, Preset::Paper] {
        let mut fne = new(&small(preset, 0.1));
        for s in 0..2 {
            picture_step(&mut fne, &PAIRS, s).unwrap();
        }
        let before = places(&fne);
        for s in 2..4 {
            picture_step(&mut fne, &PAIRS, s).unwrap();
        }
        assert_eq!(places(&fne), before, "{preset:?}");
    }
}

/// Each part has its own masks: dropout differs for two equal pairs in two parts.
#[test]
fn parts_have_noise_of_their_own() {
    let config = small(Preset::Default, 0.5).model;
    let (fne, pictures) = (new(&small(Preset::Default, 0.5)), pictures(&[0, 0], 16));
    let images = config.image.prepared(Images::from(&pictures), 2);
    let texts = [CAPTIONS[6], CAPTIONS[6]];
    let parts = StepInputs::new(&images, &texts, 1, (&fne.online().text, &config.text));
    let rows = |dropout| host(parts.joined(&fne.online().valid(), &encoder(dropout))[1].clone());
    let (on, off) = (
        rows(TowerDropout { share: 0.0, words: 0.0, noise: Noise::Seeded(3) }),
        rows(TowerDropout::OFF),
    );
    assert!(far(&on[..8], &on[8..]) > 1e-2 && far(&off[..8], &off[8..]) < 1e-6);
}
