//! ViT and BERT end to end: what each of their options changes in the output.

use itm_core::vision::PictureBatch;

use super::*;
use crate::config::DropoutAfterValidation;
use crate::{BertShape, ImagePool, PiecePool, VitShape};
use itm_core::towers::{
    BertConfig, ImageConfig, JointLayer, TextConfig, TrainTruncate, VitConfig, Weights,
};
use itm_core::towers::{ImageEncoder, TextEncoder};

/// Captions of the eight pairs: `[CLS]` 2, `[SEP]` 3; the last is longer than `max_length`.
pub(super) const CAPTIONS: [&[u32]; 8] = [
    &[2, 7, 11, 3],
    &[2, 8, 3],
    &[2, 9, 12, 13, 3],
    &[2, 3],
    &[2, 14, 15, 3],
    &[2, 16, 3],
    &[2, 17, 18, 19, 3],
    &[2, 20, 21, 22, 23, 24, 25, 3],
];

pub(super) fn vit(config: &mut FneConfig) -> &mut VitConfig {
    match &mut config.model.image {
        ImageConfig::Vit(vit) => vit,
        other => panic!("{other:?}"),
    }
}

pub(super) fn bert(config: &mut FneConfig) -> &mut BertConfig {
    match &mut config.model.text {
        TextConfig::Bert(bert) => bert,
        other => panic!("{other:?}"),
    }
}

/// A preset with encoders of one block and width 8 for pictures of 16 px.
pub(super) fn small(preset: Preset, dropout: f64) -> FneConfig {
    let mut config = FneConfig { model: FneConfig::preset(preset).model, ..tiny(preset) };
    config.model.embed_dim = if preset == Preset::Paper { 6 } else { 8 };
    config.sampler.warmup_epochs = 0;
    config.train.dropout_after_validation = DropoutAfterValidation::On;
    let (layers, heads, mlp, epsilon) = (1, 2, 12, 1e-12);
    vit(&mut config).weights = Weights::Random(VitShape {
        image: [16, 16],
        patch: 8,
        channels: 3,
        width: 8,
        layers,
        heads,
        mlp,
        epsilon,
        dropout: 0.0,
        attention_dropout: 0.0,
        ..VitShape::base_16_384()
    });
    vit(&mut config).image_size = 16;
    let attention_dropout = dropout;
    bert(&mut config).weights = Weights::Random(BertShape {
        vocabulary: 30,
        positions: 10,
        kinds: 2,
        width: 8,
        layers,
        heads,
        mlp,
        epsilon,
        dropout,
        attention_dropout,
    });
    bert(&mut config).max_length = 6;
    config
}

pub(super) fn new(config: &FneConfig) -> Fne {
    Fne::new(config, 0, 30, &Device::flex()).unwrap()
}

pub(super) fn pictures(which: &[usize], size: usize) -> PictureBatch {
    let pixel =
        |image: usize, k: usize| ((image * 31 + k * 7 * (image + 1)) % 23) as f32 / 9.0 - 1.2;
    let values = which.iter().flat_map(|&p| (0..3 * size * size).map(move |k| pixel(p / 2, k)));
    PictureBatch { images: which.len(), size, values: values.collect() }
}

pub(super) fn picture_step(fne: &mut Fne, which: &[usize], seed: u64) -> Result<StepReport> {
    let size = vit(&mut fne.config().clone()).image_size;
    let (pictures, texts) = (pictures(which, size), which.iter().map(|&p| CAPTIONS[p]));
    let batch = Batch {
        images: Images::from(&pictures),
        texts: &texts.collect::<Vec<_>>(),
        image_ids: &which.iter().map(|&p| p as i64 / 2).collect::<Vec<_>>(),
        caption_ids: &which.iter().map(|&p| p as i64).collect::<Vec<_>>(),
        train: None,
    };
    observed(fne, &batch, &Chance::seeded(seed))
}

pub(super) const PAIRS: [usize; 4] = [0, 2, 5, 7];

/// Losses of three steps, and all embeddings after them.
pub(super) fn output(config: &FneConfig) -> (Vec<f64>, Vec<f32>) {
    let mut fne = new(config);
    let losses = (0..3).map(|s| picture_step(&mut fne, &PAIRS, s).unwrap().loss).collect();
    let size = vit(&mut config.clone()).image_size;
    let images = fne.embed_pictures(pictures(&PAIRS, size)).unwrap();
    (losses, [images, fne.embed_texts(&CAPTIONS).unwrap()].concat())
}

/// P1–P5: every option of the encoders gives another loss in training.
#[test]
fn every_option_of_the_encoders_changes_the_output() {
    type Change = fn(&mut FneConfig);
    let changes: [(&str, Change); 7] = [
        ("P1 model.image.pool = patches", |c| vit(c).pool = ImagePool::Patches),
        ("P1 model.image.pool = class", |c| vit(c).pool = ImagePool::Class),
        ("P1 model.text.pool = words", |c| bert(c).pool = PiecePool::Words),
        ("P1 P2 model.text.pool = all", |c| bert(c).pool = PiecePool::All),
        ("P3 model.text.train_truncate = off", |c| bert(c).train_truncate = TrainTruncate::Off),
        ("P4 projection = linear", |c| {
            (vit(c).projection, bert(c).projection) = (JointLayer::Linear, JointLayer::Linear);
        }),
        ("P5 model.image.image_size = 24", |c| vit(c).image_size = 24),
    ];
    let base = output(&small(Preset::Default, 0.0));
    assert_eq!(base, output(&small(Preset::Default, 0.0)), "a function of the configuration");
    for (name, change) in changes {
        let mut config = small(Preset::Default, 0.0);
        change(&mut config);
        let got = output(&config);
        assert!((got.0[0] - base.0[0]).abs() > 1e-5, "{name}: {:?} and {:?}", got.0, base.0);
        assert!(got.1 != base.1, "{name}");
    }
}

/// The first loss stays, because the decay acts on updates; a decay of 1 moves no bit.
#[test]
fn layer_decay_changes_what_is_learnt() {
    let of = |decay| {
        let mut config = small(Preset::Default, 0.0);
        config.train.layer_decay = decay;
        output(&config)
    };
    let (plain, slow) = (of(None), of(Some(0.5)));
    assert!(plain == of(Some(1.0)));
    assert!(plain.0[0] == slow.0[0] && plain.1 != slow.1);
}

/// P2 and trap 15. With `all` a caption's embedding depends on how wide its batch is; in evaluation every batch is as wide
/// as `max_length`. With `masked` and `words` padding does not matter.
#[test]
fn trap_15_padding_counts_with_all_alone() {
    let (alone, beside) = ([CAPTIONS[0]], [CAPTIONS[0], CAPTIONS[6]]);
    for (pool, moves) in
        [(PiecePool::Masked, false), (PiecePool::Words, false), (PiecePool::All, true)]
    {
        let mut config = small(Preset::Default, 0.0);
        bert(&mut config).pool = pool;
        let fne = new(&config);
        let of = |texts: &[&[u32]]| host(fne.online().texts(texts, TowerDropout::OFF));
        let off = far(&of(&alone), &of(&beside)[..8]);
        assert_eq!(off > 1e-4, moves, "{pool:?}: {off:e}");

        let all = fne.embed_texts(&CAPTIONS).unwrap();
        for (i, caption) in CAPTIONS.iter().enumerate() {
            let off = far(&fne.embed_texts(&[caption]).unwrap(), &all[8 * i..8 * i + 8]);
            assert!(off < 1e-5, "{pool:?}, caption {i} in evaluation: {off:e}");
        }
        let wide = fne.online().text.read(&[CAPTIONS[0]], Some(6));
        let wide = host(fne.online().text.encode(&wide, TowerDropout::OFF));
        assert!(far(&wide, &all[..8]) < 1e-5, "{pool:?}: evaluation pads to max_length");
    }
}

/// P3. Evaluation always cuts. Training cuts with `on`: then the last pieces before `[SEP]` get no gradient.
#[test]
fn captions_are_cut_in_training_too_unless_told_otherwise() {
    for (truncate, learns) in [(TrainTruncate::On, false), (TrainTruncate::Off, true)] {
        let mut config = small(Preset::Default, 0.0);
        bert(&mut config).train_truncate = truncate;
        let mut fne = new(&config);
        let word = |fne: &Fne| match &fne.online().text {
            TextEncoder::Bert(bert) => host(bert.bert.words.val())[24 * 8..25 * 8].to_vec(),
            other => panic!("{other:?}"),
        };
        let before = word(&fne); // piece 24 is the sixth of the last caption
        picture_step(&mut fne, &PAIRS, 1).unwrap();
        assert_eq!(word(&fne) != before, learns, "{truncate:?}");
        let cut: &[u32] = &[2, 20, 21, 22, 23, 3];
        let of = |caption| fne.embed_texts(&[caption]).unwrap();
        assert!(far(&of(cut), &of(CAPTIONS[7])) < 1e-6);
    }
}

/// P4. The projections are part of the encoders: they have a momentum copy and a gradient, start within ±1/√8, and give the bank
/// its width.
#[test]
fn projections_belong_to_the_encoders() {
    let config = small(Preset::Paper, 0.0);
    let mut fne = new(&config);
    assert_eq!((config.model.embed_dim, fne.bank().width()), (6, 6));
    let weight = |encoders: &Encoders| match (&encoders.image, &encoders.text) {
        (ImageEncoder::Vit(image), TextEncoder::Bert(text)) => {
            let of = |linear: &Option<itm_kernels::Linear>| {
                let linear = linear.as_ref().unwrap();
                [host(linear.weight.val()), host(linear.bias.val())].concat()
            };
            [of(&image.projection), of(&text.projection)].concat()
        }
        other => panic!("{other:?}"),
    };
    let before = weight(fne.online());
    assert_eq!(before.len(), 2 * (8 * 6 + 6));
    let largest = before.iter().fold(0.0f32, |m, w| m.max(w.abs()));
    assert!((0.3..=8f32.sqrt().recip()).contains(&largest), "{largest}");
    assert_eq!(weight(fne.momentum()), before);
    picture_step(&mut fne, &PAIRS, 1).unwrap();
    assert!(far(&weight(fne.online()), &before) > 1e-3);
    assert!(far(&weight(fne.momentum()), &before) < 1e-6, "trap 9");
}

/// P24, by hand. Epochs of 6 steps are validated after steps 2, 4, 6, 8, … Epochs of 7 steps are too, so the second epoch (steps
/// 8 to 14) loses its dropout after its first step. Without dropout the seed changes neither the loss nor the bank, which holds
/// embeddings of the momentum encoders.
#[test]
fn dropout_ends_with_the_first_validation_of_an_epoch() {
    let on = |steps: usize, mode| {
        let mut config = small(Preset::Default, 0.5);
        config.sampler.negatives = NegativeChoice::Hardest;
        config.train.dropout_after_validation = mode;
        let mut fne = new(&config).with_epochs_of(steps);
        let mut drops = vec![];
        for step in 0..2 * steps {
            if step % steps == 0 {
                begin(&mut fne, step / steps);
            }
            let mut other = fne.clone();
            let [a, b] = [(&mut fne, 1), (&mut other, 2)].map(|(fne, seed)| {
                let report = picture_step(fne, &PAIRS, seed).unwrap();
                (report.loss, fne.bank().state().texts)
            });
            assert_eq!(a.0 != b.0, a.1 != b.1, "online and momentum encoders have one mode");
            drops.push(a.0 != b.0);
        }
        drops.iter().map(|&on| if on { '+' } else { '-' }).collect::<String>()
    };
    assert_eq!(on(6, DropoutAfterValidation::Off), "++----++----");
    assert_eq!(on(7, DropoutAfterValidation::Off), "++-----+------");
    assert_eq!(on(2, DropoutAfterValidation::Off), "++++", "too short for a validation within it");
    assert_eq!(on(3, DropoutAfterValidation::On), "++++++");

    let mut config = small(Preset::Default, 0.5);
    config.train.dropout_after_validation = DropoutAfterValidation::Off;
    let e = picture_step(&mut new(&config), &PAIRS, 1).unwrap_err().to_string();
    assert!(e.starts_with("train.dropout_after_validation: expected the number of steps"), "{e}");
}

/// Any image side goes with any text side.
#[test]
fn kinds_of_encoders_can_be_mixed() {
    let whole = small(Preset::Default, 0.1);
    let plain = crate::ModelConfig::new(8, 5);
    for (image, text) in [
        (whole.model.image.clone(), plain.text.clone()),
        (plain.image.clone(), whole.model.text.clone()),
    ] {
        let mut config = whole.clone();
        (config.model.image, config.model.text) = (image, text);
        config.train.dropout = 0.1;
        let mut fne = Fne::new(&config, DIM, 30, &Device::flex()).unwrap();
        let (pictures, data) = (pictures(&PAIRS, 16), data());
        let features: Vec<f32> =
            PAIRS.iter().flat_map(|&p| data.features[p * DIM..(p + 1) * DIM].to_vec()).collect();
        let images = match config.model.image {
            ImageConfig::Features(_) => Images::Features(&features),
            _ => Images::from(&pictures),
        };
        let texts = PAIRS.map(|p| CAPTIONS[p]);
        let ids = [0, 1, 2, 3];
        let batch =
            Batch { images, texts: &texts, image_ids: &ids, caption_ids: &ids, train: None };
        let before = values(fne.online());
        fne.step(&batch, 1, Observe::Off).unwrap();
        assert!(far(&values(fne.online()), &before) > 1e-4);
    }
}

/// ViT's own dropout acts in training, in both encoders, and not in evaluation.
#[test]
fn vit_drops_what_its_weights_say() {
    let with = |rate| {
        let mut config = small(Preset::Default, 0.0);
        if let Weights::Random(shape) = &mut vit(&mut config).weights {
            shape.dropout = rate;
        }
        let mut fne = new(&config);
        let images = fne.embed_pictures(pictures(&PAIRS, 16)).unwrap();
        let loss = picture_step(&mut fne, &PAIRS, 1).unwrap().loss;
        (images, loss, fne.bank().state().images[..32].to_vec())
    };
    let (none, some) = (with(0.0), with(0.4));
    assert_eq!(none.0, some.0, "evaluation");
    assert!((none.1 - some.1).abs() > 1e-4 && far(&none.2, &some.2) > 1e-3);
}
