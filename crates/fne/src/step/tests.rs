mod accumulation;
mod not_finite;
mod options;
mod picture_traps;
mod pictures;
mod reference;
mod refused;
mod resume;
mod starts;
mod states;

use std::path::Path;

use burn::tensor::Tensor;
use itm_core::audit::{NegativeSet, PairIds};
use itm_core::data::Features;
use itm_core::learn::{ImageItems, Images, Items, Method, PictureItems};
use itm_core::vision::PictureBatch;
use itm_core::{Pairs, WarmupLoss, host};
use proptest::prelude::*;

use super::*;
use crate::Preset;
use crate::checks::NEVER;
use crate::config::tests::tiny;
use crate::config::{Enqueue, Exclude, NegativeChoice, Positive};
use crate::golden::{floats, golden};

const DIM: usize = 5;

/// Eight pairs of four images. A text has one to three words from a vocabulary of twelve.
struct Data {
    features: Vec<f32>,
    texts: Vec<Vec<u32>>,
}

fn data() -> Data {
    let feature = |k: usize| ((k * 37 % 23) as f32 - 11.0) / 7.0;
    let image = |pair: usize| (0..DIM).map(move |k| feature(pair / 2 * DIM + k));
    let text =
        |pair: usize| (0..1 + pair % 3).map(|k| 2 + (pair * 5 + k * 3) as u32 % 10).collect();
    Data { features: (0..8).flat_map(image).collect(), texts: (0..8).map(text).collect() }
}

fn fne(config: &FneConfig) -> Fne {
    Fne::new(config, DIM, 12, &Device::flex()).unwrap()
}

/// The config with another seed, and so with other weights before the first step.
fn seeded(config: &FneConfig, seed: u64) -> FneConfig {
    let mut config = config.clone();
    config.train.seed = seed;
    config
}

/// The report of a step and the statistics after it.
#[derive(Debug)]
struct StepReport {
    loss: f64,
    grad_norm: f64,
    active: f64,
    statistics: Snapshot,
    negatives: Option<[NegativeSet; 2]>,
}

fn observed(fne: &mut Fne, batch: &Batch, chance: &Chance) -> Result<StepReport> {
    let Step { loss, grad_norm, active, negatives, .. } =
        fne.step_by(batch, chance, Observe::Negatives)?;
    Ok(StepReport { loss, grad_norm, active, statistics: fne.statistics(), negatives })
}

/// The column that each anchor drew: the only one that has a weight.
fn chosen(o: &NegativeSet) -> Vec<usize> {
    let drawn = |row: &[f32]| row.iter().position(|&w| w > 0.0).unwrap();
    o.weights.chunks(o.candidates.len()).map(drawn).collect()
}

/// Starts an epoch. FNE does not read the items.
fn begin(fne: &mut Fne, epoch: usize) {
    let (features, pairs) = (Features { dim: 1, values: vec![] }, Pairs::uniform(0, 1));
    let images = ImageItems::Features(&features);
    fne.begin_epoch(epoch, Items { images, texts: &[], pairs: &pairs }).unwrap();
}

/// The files of a state.
fn files(fne: &Fne) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![];
    fne.save(&mut |name, contents| {
        files.push((name.to_owned(), contents.to_vec()));
        Ok(())
    })
    .unwrap();
    files
}

fn save(fne: &Fne, folder: &Path) {
    files(fne)
        .iter()
        .for_each(|(name, contents)| std::fs::write(folder.join(name), contents).unwrap());
}

/// One step with the pairs `which`.
fn step(fne: &mut Fne, which: &[usize], seed: u64) -> Result<StepReport> {
    let data = data();
    let features: Vec<f32> =
        which.iter().flat_map(|&p| data.features[p * DIM..(p + 1) * DIM].to_vec()).collect();
    let texts: Vec<&[u32]> = which.iter().map(|&p| data.texts[p].as_slice()).collect();
    let image_ids: Vec<i64> = which.iter().map(|&p| p as i64 / 2).collect();
    let caption_ids: Vec<i64> = which.iter().map(|&p| p as i64).collect();
    let batch = Batch {
        images: Images::Features(&features),
        texts: &texts,
        image_ids: &image_ids,
        caption_ids: &caption_ids,
        train: None,
    };
    observed(fne, &batch, &Chance::seeded(seed))
}

/// Weights and bank before the first step are a function of `train.seed`, as the config documents.
#[test]
fn the_seed_of_the_config_is_that_of_weights_and_bank() {
    let config = tiny(Preset::Default);
    let of = |seed| {
        let model = fne(&seeded(&config, seed));
        (values(model.online()), model.bank().state().images)
    };
    assert_eq!(of(7), of(7));
    let (a, b) = (of(7), of(8));
    assert!(a.0 != b.0 && a.1 != b.1);
}

/// All weights are 1 and both masks are equal, so with one seed both directions would draw the same columns.
#[test]
fn the_two_directions_draw_by_seeds_of_their_own() {
    let mut config = tiny(Preset::Default);
    (config.sampler.warmup_epochs, config.sampler.bank_size) = (0, 200);
    config.sampler.negatives = NegativeChoice::Uniform;
    for seed in 0..5 {
        let seen = step(&mut fne(&config), &EVEN, seed).unwrap().negatives.unwrap();
        assert_ne!(chosen(&seen[0]), chosen(&seen[1]), "seed {seed}");
    }
}

const EVEN: [usize; 4] = [0, 2, 4, 6];

/// Parameters of a module, flat.
fn values(encoders: &Encoders) -> Vec<f32> {
    use burn::module::{ModuleVisitor, Param};
    struct All(Vec<f32>);
    impl ModuleVisitor for All {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(host(param.val().inner()));
        }
    }
    let mut all = All(vec![]);
    encoders.visit(&mut all);
    all.0
}

fn far(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).max_by(f32::total_cmp).unwrap()
}

#[test]
fn trap_02_epoch_start_resets_statistics_and_keeps_the_bank() {
    let mut config = tiny(Preset::Default);
    config.sampler.warmup_epochs = 0;
    let mut fne = fne(&config);
    for seed in 0..6 {
        step(&mut fne, &EVEN, seed).unwrap();
    }
    let bank = fne.bank().state();
    assert!(fne.statistics().positive.count > 0 && bank.cursor > 0 || bank.ids[0] != NEVER);
    begin(&mut fne, 1);
    assert_eq!(fne.statistics(), Snapshot::default());
    assert_eq!(fne.bank().state(), bank);
}

/// The scores against the batch are online × momentum: they change when only the momentum encoder
/// changes. The momentum encoder gets no gradient: see the goldens of `loss`.
#[test]
fn trap_08_positive_is_online_times_momentum() {
    for (positive, moves) in [(Positive::Momentum, true), (Positive::Online, false)] {
        let mut config = tiny(Preset::Default);
        config.sampler.warmup_epochs = 0;
        config.sampler.momentum = 1.0;
        config.sampler.positive = positive;
        let plain = step(&mut fne(&config), &EVEN, 1).unwrap().negatives.unwrap();
        let mut other = fne(&config);
        other.momentum = Encoders::open(&config.model, DIM, 12, 99, &Device::flex()).unwrap().0;
        let moved = step(&mut other, &EVEN, 1).unwrap().negatives.unwrap();
        for (a, b) in plain.iter().zip(&moved) {
            assert_eq!(far(&a.positive, &b.positive) > 1e-3, moves, "{positive:?}");
            assert!(far(&a.scores[..4], &b.scores[..4]) > 1e-3, "candidates are momentum rows");
            for i in 0..4 {
                let own = a.scores[i * a.candidates.len() + i];
                assert!((a.positive[i] - own).abs() < 1e-5 || positive == Positive::Online);
            }
        }
    }
}

#[test]
fn trap_09_momentum_moves_before_the_optimiser() {
    let config = tiny(Preset::Default);
    let mut fne = fne(&config);
    let start = values(fne.online());
    step(&mut fne, &EVEN, 1).unwrap();
    let first = values(fne.online());
    assert!(far(&first, &start) > 1e-3);
    assert!(far(&values(fne.momentum()), &start) < 1e-6, "after step 1: the initial weights");
    step(&mut fne, &EVEN, 2).unwrap();
    let want: Vec<f32> = start.iter().zip(&first).map(|(s, f)| 0.995 * s + 0.005 * f).collect();
    assert!(far(&values(fne.momentum()), &want) < 1e-6, "after step 2: θ₁ with weight 0.005");
    assert!(far(&want, &start) > 1e-5, "the tolerance separates this from no update");
}

/// `tests/reference/fne.py`, `ema`: four updates, and a thousand against the closed form.
#[test]
fn trap_10_momentum_follows_the_closed_form() {
    use burn::module::{Module, Param};
    #[derive(Module, Debug)]
    struct One {
        theta: Param<Tensor<1>>,
    }
    let one =
        |v: &[f32]| One { theta: Param::from_tensor(Tensor::from_floats(v, &Device::flex())) };
    let golden = &golden()["ema"];
    let m = golden["m"].as_f64().unwrap();
    let mut theta = one(&floats(&golden["start"]));
    for s in golden["steps"].as_array().unwrap() {
        theta = ema(theta, &one(&floats(&s["online"])), m);
        assert!(far(&host(theta.theta.val()), &floats(&s["momentum"])) < 1e-6);
    }
    let (mut theta, target) = (one(&floats(&golden["start"])), one(&floats(&golden["target"])));
    for _ in 0..1000 {
        theta = ema(theta, &target, m);
    }
    assert!(far(&host(theta.theta.val()), &floats(&golden["after_1000"])) < 5e-5);
}

#[test]
fn trap_12_warm_up_does_not_enqueue() {
    for negatives in [NegativeChoice::Fne, NegativeChoice::InBatch] {
        let mut config = tiny(Preset::Default);
        config.sampler.negatives = negatives;
        let mut fne = fne(&config);
        begin(&mut fne, 0);
        step(&mut fne, &EVEN, 1).unwrap();
        assert_eq!((fne.bank().cursor, fne.statistics()), (0, Snapshot::default()));
        assert!(fne.bank().ids().iter().all(|&id| id == NEVER));
        begin(&mut fne, 1);
        let report = step(&mut fne, &EVEN, 2).unwrap();
        assert!(report.negatives.is_some());
        let written = fne.bank().ids().iter().filter(|&&id| id != NEVER).count();
        assert_eq!(written, if negatives == NegativeChoice::InBatch { 0 } else { 4 });
    }
}

/// Without dropout and with θᵐ = θ both encoders give the same embeddings. With dropout the momentum
/// encoder is in training mode too, with its own masks.
#[test]
fn trap_16_momentum_has_the_mode_of_the_online_encoder() {
    let mut config = tiny(Preset::Default);
    config.sampler.warmup_epochs = 0;
    config.sampler.momentum = 1.0;
    let positives = |config: &FneConfig| {
        let seen = step(&mut fne(config), &EVEN, 1).unwrap().negatives.unwrap();
        seen.map(|o| o.positive).into()
    };
    let (i2t, t2i) = positives(&config);
    assert!(far(&i2t, &t2i) < 1e-6, "v·wᵐ = w·vᵐ when both encoders agree");
    config.train.dropout = 0.4;
    let (i2t, t2i) = positives(&config);
    assert!(far(&i2t, &t2i) > 1e-3, "masks differ");
    assert_eq!((i2t, t2i), positives(&config), "and follow the seed");

    // The bank holds the output of the momentum encoder, including dropout.
    let bank = |config: &FneConfig| {
        let mut fne = fne(config);
        step(&mut fne, &EVEN, 1).unwrap();
        fne.bank().state().images[..8].to_vec()
    };
    let noisy = bank(&config);
    config.train.dropout = 0.0;
    assert!(far(&noisy, &bank(&config)) > 1e-3);
}

#[test]
fn trap_06_reserved_id_is_refused_and_captions_of_an_image_are_masked() {
    let mut config = tiny(Preset::Default);
    config.sampler.warmup_epochs = 0;
    let mut model = fne(&config);
    let ids = [3, -100];
    let data = data();
    let texts = [data.texts[0].as_slice(), data.texts[1].as_slice()];
    let batch = Batch {
        images: Images::Features(&data.features[..2 * DIM]),
        texts: &texts,
        image_ids: &ids,
        caption_ids: &[0, 1],
        train: None,
    };
    let e = model.step(&batch, 1, Observe::Off).unwrap_err().to_string();
    assert!(e.contains("row 1") && e.contains("-100"), "{e}");

    step(&mut model, &[0, 2, 4, 6], 1).unwrap();
    let seen = step(&mut model, &[1, 0, 4, 6], 2).unwrap().negatives.unwrap();
    let o = &seen[0];
    // Batch columns 0 and 1 are captions of image 0, and so is the bank's first row, column 4.
    assert_eq!(o.excluded[..5], [true, true, false, false, true]);
    assert_eq!(o.candidates.len(), 4 + 12);
    assert!(o.candidates[8].is_none() && !o.excluded[8], "unwritten rows are candidates");
    for o in &seen {
        let n = o.candidates.len();
        for (i, j) in chosen(o).into_iter().enumerate() {
            assert!(!o.excluded[i * n + j] || row_has_no_hinge(o, i, 0.2));
        }
    }
}

fn row_has_no_hinge(o: &NegativeSet, i: usize, margin: f32) -> bool {
    let n = o.candidates.len();
    (i * n..(i + 1) * n).all(|k| o.excluded[k] || margin + o.scores[k] - o.positive[i] <= 0.0)
}

/// From scratch, the sum of hinges separates matching pairs from the rest. No choice of negatives and
/// candidates undoes this. (`positive = "online"` does on such small data: attraction moves both sides,
/// but repulsion from a bank moves only the anchor. Its gradients are goldens of `loss`.)
#[test]
fn every_row_of_the_ablation_learns() {
    type Change = fn(&mut FneConfig);
    let change: [(&str, Change); 9] = [
        ("full", |_| ()),
        ("w/o FNE", |c| c.sampler.negatives = NegativeChoice::Hardest),
        ("w/o MMM", |c| c.sampler.bank_size = 0),
        ("w/o MMM+FNE", |c| c.sampler.negatives = NegativeChoice::InBatch),
        ("uniform", |c| c.sampler.negatives = NegativeChoice::Uniform),
        ("before", |c| c.sampler.enqueue = Enqueue::Before),
        ("no cut", |c| c.sampler.margin_cut = false),
        ("sum", |c| c.sampler.warmup_epochs = 2),
        ("masked", |c| c.sampler.mask_same_image_everywhere = true),
    ];
    for (name, change) in change {
        let mut config = tiny(Preset::Default);
        config.sampler.warmup_epochs = 1;
        config.sampler.warmup_loss = WarmupLoss::Sum;
        config.sampler.margin = 0.4;
        config.sampler.momentum = 0.9;
        config.train.learning_rate = 0.003; // at 0.01 rounding on another processor changes the outcome
        change(&mut config);
        let mut fne = fne(&config);
        let mut epoch = |number| {
            begin(&mut fne, number);
            for s in 0..200 {
                let pairs = if s % 2 == 0 { EVEN } else { [1, 3, 5, 7] };
                step(&mut fne, &pairs, 1000 * number as u64 + s).unwrap();
            }
            gap(&fne)
        };
        let (before, after) = (epoch(0), epoch(1));
        assert!(before > 0.3 && after > 0.15, "{name}: {before} → {after}");
    }
}

fn embed_features(fne: &Fne, values: &[f32]) -> Vec<f32> {
    let features = Features { dim: DIM, values: values.to_vec() };
    fne.embed_images(ImageItems::Features(&features)).unwrap()
}

impl Fne {
    /// v̄ of pictures.
    fn embed_pictures(&self, pictures: PictureBatch) -> Result<Vec<f32>> {
        self.embed_images(ImageItems::Pictures(&OneBatch(pictures)))
    }
}

/// All pictures in one batch.
struct OneBatch(PictureBatch);

impl PictureItems for OneBatch {
    fn len(&self) -> usize {
        self.0.images
    }

    fn batch(&self) -> usize {
        self.0.images
    }

    fn some(&self, _: &[usize]) -> Box<dyn Iterator<Item = Result<PictureBatch>> + '_> {
        Box::new(std::iter::once(Ok(self.0.clone())))
    }
}

/// Mean similarity of matching pairs minus the mean similarity of the others.
fn gap(fne: &Fne) -> f32 {
    let data = data();
    let images = embed_features(fne, &data.features);
    let texts = fne.embed_texts(&data.texts).unwrap();
    let (mut own, mut other) = (0.0, 0.0);
    for i in 0..8 {
        for j in 0..8 {
            let (v, w) = (&images[i * 8..(i + 1) * 8], &texts[j * 8..(j + 1) * 8]);
            let s: f32 = v.iter().zip(w).map(|(v, w)| v * w).sum();
            if i / 2 == j / 2 { own += s / 16.0 } else { other += s / 48.0 }
        }
    }
    own - other
}

/// The hinges that a step reports equal the hinges of its negatives, computed again on the host.
#[test]
fn the_loss_is_that_of_the_chosen_candidates() {
    for (bank_size, preset) in [(12, Preset::Default), (12, Preset::Paper), (0, Preset::Default)] {
        let mut config = tiny(preset);
        config.sampler.warmup_epochs = 0;
        config.sampler.bank_size = bank_size;
        let mut fne = fne(&config);
        for seed in 0..5 {
            let report = step(&mut fne, &[0, 1, 4, 7, 5], seed).unwrap();
            let seen = report.negatives.unwrap();
            let (mut loss, mut active) = (0.0, 0);
            for o in &seen {
                let n = o.candidates.len();
                for (i, j) in chosen(o).into_iter().enumerate() {
                    let h = 0.2 + f64::from(o.scores[i * n + j]) - f64::from(o.positive[i]);
                    if h > 0.0 && !o.excluded[i * n + j] {
                        loss += h / 5.0;
                        active += 1;
                    }
                }
            }
            assert!((report.loss - loss).abs() < 1e-5, "{} against {loss}", report.loss);
            assert!((report.active - f64::from(active) / 10.0).abs() < 1e-9);
        }
    }
}

#[test]
fn enqueue_before_makes_the_bank_the_pool() {
    let mut config = tiny(Preset::Paper);
    config.sampler.bank_size = 12;
    let seen = step(&mut fne(&config), &EVEN, 1).unwrap().negatives.unwrap();
    assert_eq!(seen[0].candidates.len(), 12);
    let first = seen[0].candidates[1].unwrap();
    assert_eq!(first, PairIds { image: 1, caption: 2 }, "the bank holds the batch already");
}

#[test]
fn embeddings_are_unit_rows_in_the_given_order() {
    let fne = fne(&tiny(Preset::Default));
    let data = data();
    let all = fne.embed_texts(&data.texts).unwrap();
    for (i, text) in data.texts.iter().enumerate() {
        let alone = fne.embed_texts(&[text]).unwrap();
        assert!(far(&alone, &all[i * 8..(i + 1) * 8]) < 1e-6, "text {i}");
        assert!((alone.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let images = embed_features(&fne, &data.features);
    assert_eq!(images.len(), 8 * 8);
    assert_eq!(images[..8], images[8..16], "one image twice");
    assert!(fne.embed_texts::<Vec<u32>>(&[]).unwrap().is_empty());
}
