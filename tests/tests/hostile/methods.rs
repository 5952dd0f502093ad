//! Losses, samplers, banks, masks and models of the four methods.

use burn::tensor::Tensor;
use fne::{
    Bank, BankRows, BankState, CandidatePool, Draws, Fne, Gaussian, Online, Posterior, Reset,
    Snapshot, Statistics, Variance, draw, drawn_hinges, in_batch_hinges, memory_loss, row_dots,
    weights,
};
use hubness::losses::{
    AaaiOptions, BankOptions, BankScores, BankWeights, HubOptions, aaai_bank, aaai_local, hal,
    hub_factors, max, max_hal, sum,
};
use hubness::training::{Hal, HalConfig, Objective};
use itm_core::contrastive::{
    Contrast, ContrastiveOptions, Learnt, Temperature, info_nce, sigmoid_pairs,
};
use itm_core::learn::{Batch, Images};
use itm_core::{AllNegatives, Block, Hardest, NegativeSampler, Pairs, Siblings, triplet};
use naaf::{
    Boundary, CrossProducts, CrossScores, Form, MiningBatch, Naaf, Phase, ScoreDistribution,
    WordPool, effects, ln_alpha_star, lower_bound, mine, optimal, word_scores,
};
use tags_dc::losses::{correction, cross_entropy, discrimination, hinges, masked_words};
use tags_dc::model::{At, RegionBatch, Uniter, UniterShape};
use tags_dc::{
    CaptionWords, CorrectionTargets, Filter, MaskBy, Masker, Masking, Purpose, Refill, Repeat,
    accuracy, draw_images, draw_texts, hardest, label_probabilities, stayed,
};

use crate::HUGE;
use crate::layers::{device, ones};

const NAN: f64 = f64::NAN;

fn square() -> Tensor<2> {
    Tensor::from_floats([[1.0, 0.0], [0.0, 1.0]], &device())
}

fn block() -> Block {
    Block::in_batch(square())
}

fn pool(scores: &'static [f32], positive: &'static [f32]) -> CandidatePool<'static> {
    CandidatePool { scores, positive, excluded: &[false; 2] }
}

fn rule() -> fne::SamplerConfig {
    fne::SamplerConfig::preset(fne::Preset::Default)
}

fn statistics() -> Statistics {
    Statistics::new(Variance::Official, Reset::Epoch)
}

fn bank() -> Bank {
    Bank::new(2, 2, 7, &device())
}

fn push(
    mut bank: Bank,
    rows: usize,
    width: usize,
    ids: &[i64],
    captions: &[i64],
) -> fne::Result<()> {
    bank.push(BankRows { images: ones([rows, width]), texts: ones([rows, width]), ids, captions })
}

fn loss(
    width: usize,
    ids: &[i64],
    bank: &Bank,
    rule: &fne::SamplerConfig,
) -> fne::Result<Tensor<1>> {
    let online = Online { images: ones([2, width]), texts: ones([2, width]), ids };
    memory_loss(online, bank, &Draws { rule, statistics: &statistics(), seed: 7 })
}

fn pushed() -> Bank {
    let mut bank = bank();
    bank.push(BankRows { images: square(), texts: square(), ids: &[0, 1], captions: &[0, 1] })
        .unwrap();
    bank
}

fn attention() -> naaf::Attention {
    naaf::NaafConfig::preset(naaf::Preset::Default).attention
}

fn mining() -> naaf::MiningConfig {
    naaf::MiningConfig::preset(naaf::Preset::Default)
}

fn mined(
    config: &naaf::MiningConfig,
    lengths: &[usize],
    own: &[usize],
    scores: Vec<f32>,
) -> naaf::Result<naaf::Sampling> {
    let batch = MiningBatch { lengths, own, epoch: 0, seed: 7 };
    mine(&mut Boundary::default(), config, &batch, |_, _| scores.clone(), |_, _, _| vec![0.5])
}

fn products() -> CrossProducts {
    CrossProducts::new(ones([1, 2, 3]), &[2], ones([1, 2, 3]), &[2])
}

fn distribution(mean: f64, deviation: f64) -> ScoreDistribution {
    ScoreDistribution { mean, deviation, count: 9 }
}

fn masker() -> Masker {
    Masker::new(MaskBy::Phrases, 0.15, 9, 0..9).unwrap()
}

fn refill() -> Refill {
    Refill { draws: 1, temperature: 1.0, forbid: vec![] }
}

fn masking() -> Masking {
    Masking { ids: vec![1, 9, 2], labels: vec![None, Some(3), None] }
}

fn shape() -> UniterShape {
    let mut shape = UniterShape::of_width(4, 2, 1, 9);
    shape.features = 2;
    shape.text.positions = 8;
    shape
}

fn uniter(shape: &UniterShape) -> Uniter {
    Uniter::seeded(shape, 7, &device())
}

fn regions() -> RegionBatch {
    RegionBatch::new(2, vec![1], vec![1.0; 2], vec![0.5; 7]).unwrap()
}

fn options() -> ContrastiveOptions {
    ContrastiveOptions { temperature: 0.07, bias: 0.0, learn: Learnt::Fixed }
}

fn features<'a>(values: &'a [f32], texts: &'a [&'a [u32]], ids: &'a [i64]) -> Batch<'a> {
    Batch { images: Images::Features(values), texts, image_ids: ids, caption_ids: ids, train: None }
}

#[test]
fn losses() {
    panics! {
        "in-batch scores of shape [2, 3] are not square": Block::in_batch(ones([2, 3])),
        "a batch has at least one pair": Block::in_batch(ones([0, 0])),
        "positives of shape [2, 1] for scores of shape [3, 2]": Block::new(ones([2, 1]), ones([3, 2]), block().excluded),
        "exclusions of shape [2, 2] for scores of shape [2, 3]": Block::new(ones([2, 1]), ones([2, 3]), block().excluded),
        "1 image ids of 2 pairs": Siblings::Masked(&[1]).masked(2, &device()),
        "0 image ids of 9223372036854775808 pairs": Siblings::Masked(&[]).masked(HUGE, &device()),
        "a margin of at least 0, got NaN": triplet(&block(), &mut Hardest, NAN),
        "a margin of at least 0, got 1000": triplet(&block(), &mut Hardest, 1e39),
        "a margin of at least 0, got inf": triplet(&block(), &mut AllNegatives, f64::INFINITY),
        "a margin of at least 0, got -1": triplet(&block(), &mut AllNegatives, -1.0),
        "positives of shape [3, 1] for scores of shape [2, 2]": triplet(&Block { positive: ones([3, 1]), ..block() }, &mut AllNegatives, 0.2),
        "exclusions of shape [2, 2] for scores of shape [2, 3]": triplet(&Block { scores: ones([2, 3]), ..block() }, &mut AllNegatives, 0.2),
        "exclusions of shape [2, 2] for scores of shape [2, 3]": Hardest.select(&Block { scores: ones([2, 3]), ..block() }),
        "in-batch scores of shape [2, 3] are not square": info_nce(ones([2, 3]), &Temperature::Fixed(1.0), Siblings::Negatives),
        "in-batch scores of shape [2, 1] are not square": info_nce(ones([2, 1]), &Temperature::Fixed(1.0), Siblings::Masked(&[0, 1])),
        "a batch has at least one pair": info_nce(ones([0, 0]), &Temperature::Fixed(1.0), Siblings::Negatives),
        "a temperature above 0, got NaN": info_nce(square(), &Temperature::Fixed(NAN), Siblings::Negatives),
        "a temperature above 0, got": info_nce(square(), &Temperature::Fixed(1e-320), Siblings::Negatives),
        "1 image ids of 2 pairs": info_nce(square(), &Temperature::Fixed(1.0), Siblings::Masked(&[1])),
        "a temperature above 0, got 0": Temperature::learned(0.0, &device()),
        "a temperature above 0, got -1": Temperature::learned(-1.0, &device()),
        "a temperature above 0, got NaN": Temperature::learned(NAN, &device()),
        "a temperature above 0, got inf": Temperature::learned(f64::INFINITY, &device()),
        "in-batch scores of shape [2, 3] are not square": sigmoid_pairs(ones([2, 3]), &Temperature::Fixed(1.0), ones([1]), Siblings::Negatives),
        "a temperature above 0, got 0": sigmoid_pairs(square(), &Temperature::Fixed(0.0), ones([1]), Siblings::Negatives),
        "a bias of shape [2], not [1]": sigmoid_pairs(square(), &Temperature::Fixed(1.0), ones([2]), Siblings::Negatives),
        "a bias of shape [3], not [1]": sigmoid_pairs(square(), &Temperature::Fixed(1.0), ones([3]), Siblings::Negatives),
        "contrastive.temperature: expected above 0, and neither it nor its inverse beyond f32, got 0": Contrast::new(&ContrastiveOptions { temperature: 0.0, ..options() }, &device()),
        "contrastive.temperature: expected above 0, and neither it nor its inverse beyond f32, got NaN": Contrast::new(&ContrastiveOptions { temperature: NAN, learn: Learnt::Learned, ..options() }, &device()),
        "contrastive.bias: expected a number of f32, got NaN": Contrast::new(&ContrastiveOptions { bias: NAN, ..options() }, &device()),
        "in-batch scores of shape [2, 3] are not square": Contrast::new(&options(), &device()).info_nce(ones([2, 3]), Siblings::Negatives),
        "a batch has at least one pair": Contrast::new(&options(), &device()).sigmoid(ones([0, 0]), Siblings::Negatives),
        "a batch has at least one pair": Contrast::new(&options(), &device()).info_nce(ones([0, 0]), Siblings::Negatives),
        "a batch has at least one pair": in_batch_hinges(ones([0, 2]), ones([0, 2]), 0.2, fne::WarmupLoss::Sum, None),
        "texts of shape [2, 3] for images of [2, 2]": in_batch_hinges(ones([2, 2]), ones([2, 3]), 0.2, fne::WarmupLoss::Sum, None),
        "1 image ids of 2 pairs": in_batch_hinges(ones([2, 2]), ones([2, 2]), 0.2, fne::WarmupLoss::Sum, Some(&[1])),
        "a margin of at least 0, got NaN": in_batch_hinges(ones([2, 2]), ones([2, 2]), NAN, fne::WarmupLoss::Sum, None),
        "positives of shape [2, 2] for 2 anchors": drawn_hinges(ones([2, 2]), ones([2, 2]), ones([2, 2]), &[false; 2], 0.2),
        "row products of rows of shape [2, 2] and [2, 3]": drawn_hinges(ones([2, 2]), ones([2, 1]), ones([2, 3]), &[false; 2], 0.2),
        "a mask of 0 values for 2 anchors": drawn_hinges(ones([2, 2]), ones([2, 1]), ones([2, 2]), &[], 0.2),
        "a margin of at least 0, got NaN": drawn_hinges(ones([2, 2]), ones([2, 1]), ones([2, 2]), &[false; 2], NAN),
        "row products of rows of shape [2, 2] and [2, 3]": row_dots(ones([2, 2]), ones([2, 3])),
        "in-batch scores of shape [2, 3] are not square": sum(ones([2, 3]), 0.2, Siblings::Negatives),
        "a margin of at least 0, got NaN": sum(square(), NAN, Siblings::Negatives),
        "a margin of at least 0, got -inf": max(square(), f64::NEG_INFINITY, Siblings::Negatives),
        "in-batch scores of shape [2, 3] are not square": hal(ones([2, 3]), 0.2, Siblings::Negatives, &HubOptions::default()),
        "neighbours: expected at least 1, got 0": max_hal(square(), 0.2, Siblings::Negatives, &HubOptions { neighbours: 0, ..HubOptions::default() }),
        "in-batch scores of shape [2, 3] are not square": hub_factors(ones([2, 3]), &HubOptions::default()),
        "in-batch scores of shape [2, 3] are not square": aaai_local(ones([2, 3]), &AaaiOptions::COCO),
        "a batch has at least one pair": aaai_local(ones([0, 0]), &AaaiOptions::COCO),
        "local_alpha: expected a finite number above 0, got 0": aaai_local(square(), &AaaiOptions { local_alpha: 0.0, local_ep: 0.3 }),
        "local_alpha: expected a finite number above 0, got 1000": aaai_local(square(), &AaaiOptions { local_alpha: 1e39, local_ep: 0.3 }),
        "local_ep: expected a finite number, got NaN": aaai_local(square(), &AaaiOptions { local_alpha: 30.0, local_ep: NAN }),
        "to_texts: 4 scores of 2 pairs and 3 entries": aaai_bank(square(), &bank_scores(3), &AaaiOptions::COCO, &BankOptions::default()),
        "to_texts: 4 scores of 2 pairs and 9223372036854775808": aaai_bank(square(), &bank_scores(HUGE), &AaaiOptions::COCO, &BankOptions::default()),
        "alpha: expected a finite number, got NaN": aaai_bank(square(), &bank_scores(2), &AaaiOptions::COCO, &BankOptions { alpha: NAN, ..BankOptions::default() }),
        "ep2: expected a finite number, got inf": aaai_bank(square(), &bank_scores(2), &AaaiOptions::COCO, &BankOptions { ep2: f64::INFINITY, ..BankOptions::default() }),
        "mb_k: expected at least 1, got 0": BankWeights::new(&[1.0; 4], &bank_scores(2), &BankOptions { mb_k: 0, ..BankOptions::default() }),
        "5 scores are not square": BankWeights::new(&[1.0; 5], &bank_scores(2), &BankOptions::default()),
        "to_texts: 0 scores of 2 pairs and 0 entries": BankWeights::new(&[1.0; 4], &BankScores::default(), &BankOptions::default()),
    }
    errors! {
        "triplet 0: expected rows below 2, the number of scores,": hinges(ones([2]), &[[0, 2]], &[1], 0.2),
        "triplet 0: expected rows below 2, the number of scores,": hinges(ones([2]), &[[0, HUGE]], &[1], 0.2),
        "sum of per_anchor: expected 1, the rows, got 2": hinges(ones([2]), &[[0, 1]], &[2], 0.2),
        "sum of per_anchor: expected 1, the rows, got more than": hinges(ones([2]), &[[0, 1]], &[HUGE, HUGE], 0.2),
        "margin: expected a number of at least 0, got NaN": hinges(ones([2]), &[[0, 1]], &[1], NAN),
        "score 0: expected a finite number, got NaN": hinges(ones([2]) * f32::NAN, &[[0, 1]], &[1], 0.2),
        "triplet 0: expected rows below 2, the number of scores,": cross_entropy(ones([2]), &[[HUGE, 0]], &[1]),
        "sum of per_anchor: expected 1, the rows, got more than": cross_entropy(ones([2]), &[[0, 1]], &[HUGE, HUGE]),
        "score 0: expected a finite number, got inf": cross_entropy(ones([2]) * f32::INFINITY, &[[0, 1]], &[1]),
        "target 0: expected below 3, got 3": masked_words(ones([1, 3]), &[3], &[1]),
        "targets: expected 1, one per row of logits, got 2": masked_words(ones([1, 3]), &[1, 1], &[2]),
        "sum of per_anchor: expected 1, the rows, got 0": masked_words(ones([1, 3]), &[1], &[]),
        "target 0: expected below 0, got 0": masked_words(ones([1, 0]), &[0], &[1]),
        "logits of target 0: expected numbers whose softmax": masked_words(ones([1, 3]) * f32::NAN, &[1], &[1]),
        "logits of a token: expected 2 of them, got 3": discrimination(ones([1, 3]), &[1], &[1], [1.0; 2]),
        "weight of class 0: expected a number of at least 0, got": discrimination(ones([1, 2]), &[1], &[1], [NAN; 2]),
        "weight of class 1: expected a number of at least 0, got": discrimination(ones([1, 2]), &[1], &[1], [1.0, 1e300]),
        "target 0: expected below 2, got 2": discrimination(ones([1, 2]), &[2], &[1], [1.0; 2]),
        "logits of target 0: expected numbers whose softmax": correction(ones([1, 3]) * f32::NAN, &[1], &[1]),
        "contrastive.temperature: expected above 0, and neither it nor its inverse beyond f32, got NaN": ContrastiveOptions { temperature: NAN, ..options() }.validate(),
        "texts of the batch: expected 1, one per pair, got 0": features(&[], &[], &[0]).pairs(),
        "image 0 of the batch: expected finite values, got NaN": features(&[f32::NAN], &[&[1]], &[0]).pairs(),
    }
}

fn bank_scores(entries: usize) -> BankScores {
    BankScores { entries, to_texts: vec![0.5; 4], to_images: vec![0.5; 4] }
}

#[test]
fn samplers_and_banks_of_fne() {
    errors! {
        "weights: expected whole rows of 0 columns, at least one": draw(&[1.0], 0, 7),
        "weights: expected whole rows of 2 columns, at least one": draw(&[1.0], 2, 7),
        "weights: expected whole rows of 9223372036854775808": draw(&[1.0], HUGE, 7),
        "weights of row 0: expected a sum above 0, got 0": draw(&[0.0], 1, 7),
        "weight of row 0, column 0: expected a finite number of": draw(&[f32::NAN], 1, 7),
        "weight of row 0, column 1: expected a finite number of": draw(&[f32::MAX, f32::INFINITY], 2, 7),
        "scores: expected rows of equal length, at least one": weights(&pool(&[], &[1.0]), &rule(), &Snapshot::default()),
        "scores: expected rows of equal length, at least one": weights(&pool(&[1.0; 2], &[]), &rule(), &Snapshot::default()),
        "scores: expected rows of equal length, at least one": weights(&pool(&[1.0; 3], &[1.0; 2]), &rule(), &Snapshot::default()),
        "score of anchor 0 and candidate 0: expected a finite": weights(&pool(&[f32::NAN, 1.0], &[1.0]), &rule(), &Snapshot::default()),
        "positive score of anchor 0: expected a finite number,": weights(&pool(&[1.0; 2], &[f32::NAN]), &rule(), &Snapshot::default()),
        "rule.prior: expected a number above 0 and below 1, got 0": weights(&pool(&[1.0; 2], &[1.0]), &fne::SamplerConfig { prior: 0.0, ..rule() }, &Snapshot::default()),
        "rule.tau: expected from 0 to 1e30, got NaN": weights(&pool(&[1.0; 2], &[1.0]), &fne::SamplerConfig { tau: NAN, ..rule() }, &Snapshot::default()),
        "rule.tau: expected from 0 to 1e30, got": weights(&pool(&[1.0; 2], &[1.0]), &fne::SamplerConfig { tau: 1e300, ..rule() }, &seen()),
        "rule.alpha: expected from 0 to 1e30, got": weights(&pool(&[1.0; 2], &[1.0]), &fne::SamplerConfig { alpha: 1e300, ..rule() }, &Snapshot::default()),
        "margin: expected at least 0, got NaN": pool(&[1.0; 2], &[1.0]).hardest(NAN),
        "margin: expected at least 0, got -1": pool(&[1.0; 2], &[1.0]).hardest(-1.0),
        "mask: expected 3 values, one per score, got 2": pool(&[1.0; 3], &[1.0]).uniform(),
        "scores of the batch: expected 4 values, one for each of": statistics().update(&[1.0], 2),
        "scores of the batch: expected 18446744073709551615": statistics().update(&[], HUGE),
        "scores of the batch: expected 18446744073709551615": statistics().update(&[], 1 << 32),
        "score of image 0 and text 0 of the batch: expected a": statistics().update(&[f32::NAN], 1),
        "images of the bank: expected 2 rows of 2 values, got 1": Bank::of_state(BankState { images: vec![1.0], ..bank().state() }, 2, &device()),
        "images of the bank: expected 2 rows of": Bank::of_state(BankState { images: vec![], texts: vec![], ..bank().state() }, HUGE, &device()),
        "cursor of the bank: expected a row below 2, got 2": Bank::of_state(BankState { cursor: 2, ..bank().state() }, 2, &device()),
        "texts of the bank, row 0: expected finite numbers, got": Bank::of_state(BankState { texts: vec![f32::NAN; 4], ..bank().state() }, 2, &device()),
        "images of the batch: expected 2 rows of width 2, got 2": push(bank(), 2, 3, &[0, 1], &[0, 1]),
        "images of the batch: expected 1 rows of width 2, got 2": push(bank(), 2, 2, &[0], &[0]),
        "caption numbers: expected 2 values, one per pair, got 1": push(bank(), 2, 2, &[0, 1], &[0]),
        "batch row 1: expected an image id, got -100, which": push(bank(), 2, 2, &[0, fne::NEVER], &[0, 1]),
        "bank: expected at least 1 pair that was pushed into it,": loss(2, &[0, 1], &bank(), &rule()),
        "images: expected 2 rows of width 2, got 2 of 3": loss(3, &[0, 1], &pushed(), &rule()),
        "images: expected 1 rows of width 2, got 2 of 2": loss(2, &[0], &pushed(), &rule()),
        "bank: expected at least 1 row, got 0": loss(2, &[0, 1], &Bank::new(0, 2, 7, &device()), &rule()),
        "rule.margin: expected at least 0, got NaN": loss(2, &[0, 1], &pushed(), &fne::SamplerConfig { margin: NAN, ..rule() }),
        "google/vit-base-patch16-384@main: expected a download,": Fne::new(&fne::FneConfig::preset(fne::Preset::Default), 0, 9, &device()),
        "google/vit-base-patch16-384@main: expected a download,": Fne::new(&fne::FneConfig::preset(fne::Preset::Default), 4, 0, &device()),
        "google/vit-base-patch16-384@main: expected a download,": Fne::new(&fne::FneConfig::preset(fne::Preset::Default), HUGE, 9, &device()),
        "google/vit-base-patch16-384@main: expected a download,": Fne::new(&fne::FneConfig::preset(fne::Preset::Default), 4, HUGE, &device()),
        "image_dim, the width of a row of features: expected 1": Hal::new(&HalConfig::new(Objective::Hal), 0, 9, &device(), 7),
        "image_dim, the width of a row of features: expected 1": Hal::new(&HalConfig::new(Objective::Hal), HUGE, 9, &device(), 7),
        "vocabulary: expected 1 to 16777216, got": Hal::new(&HalConfig::new(Objective::Hal), 4, HUGE, &device(), 7),
    }
    panics! {
        "a bank of 9223372036854775808 rows of 2 values": Bank::new(HUGE, 2, 7, &device()),
        "a bank of 1099511627776 rows of 1024 values": Bank::new(1 << 40, 1 << 10, 7, &device()),
        "a bank of 2 rows of 9223372036854775808 values": Bank::new(2, HUGE, 7, &device()),
        "a bank of 2 rows of 0 values": Bank::new(2, 0, 7, &device()),
        "anchor 0 of 1, candidate 2 of 2": pool(&[1.0; 2], &[1.0]).excluded(0, 2),
        "anchor 0 of 2, candidate 1 of 1": pool(&[1.0; 2], &[1.0; 2]).excluded(0, 1),
        "a density of mean NaN and variance 1": Gaussian::new(NAN, 1.0),
        "a density of mean 0 and variance NaN": Gaussian::new(0.0, NAN),
        "a density of mean 0 and variance -1": Gaussian::new(0.0, -1.0),
        "a density of mean 0 and variance inf": Gaussian::new(0.0, f64::INFINITY),
        "a prior above 0 and below 1, got 0": posterior(0.0).log_odds(0.5),
        "a prior above 0 and below 1, got 2": posterior(2.0).probability(0.5),
        "a prior above 0 and below 1, got NaN": posterior(NAN).probability(0.5),
        "deviations above 0, got 0 and 1": Posterior { prior: 0.1, positive: Gaussian { mean: 0.5, deviation: 0.0 }, negative: Gaussian::new(0.0, 1.0) }.probability(0.5),
        "a prior above 0 and below 1, got NaN": seen().posterior(NAN, 0),
        "a prior above 0 and below 1, got 0": seen().posterior(0.0, 0),
        "a prior above 0 and below 1, got 1": seen().posterior(1.0, 0),
    }
}

fn posterior(prior: f64) -> Posterior {
    Posterior { prior, positive: Gaussian::new(0.6, 0.01), negative: Gaussian::new(0.2, 0.01) }
}

fn seen() -> Snapshot {
    let mut statistics = statistics();
    statistics.update(&[0.9, 0.2, 0.3, 0.8], 2).unwrap();
    statistics.snapshot()
}

#[test]
fn attention_and_boundaries_of_naaf() {
    errors! {
        "own images of the captions: expected 1, one per": mined(&mining(), &[1], &[0, 0], vec![0.5]),
        "scores of caption 0: expected at least": mined(&mining(), &[1], &[HUGE], vec![0.5]),
        "scores of caption 0: expected at least": mined(&mining(), &[1], &[usize::MAX], vec![0.5]),
        "scores of caption 0: expected finite numbers, got NaN": mined(&mining(), &[1, 1], &[0, 1], vec![f32::NAN, 0.5]),
        "scores of caption 0: expected at least 1, one per": mined(&mining(), &[1], &[0], vec![]),
        "words of caption 0 with image 0: expected 2 numbers,": mined(&mining(), &[2, 2], &[0, 0], vec![0.5, 0.1]),
        "mining.alpha: expected above 0, got NaN": mined(&naaf::MiningConfig { alpha: NAN, ..mining() }, &[1], &[0], vec![0.5]),
        "mining.smoothing: expected in (0, 1], got NaN": mined(&naaf::MiningConfig { smoothing: NAN, ..mining() }, &[1], &[0], vec![0.5]),
        "boundary: expected a finite number, got NaN": CrossScores::new((vec![1.0], &[1]), (vec![1.0], &[1]), 1, f32::NAN, &attention()),
        "image 0, region 0, column 0: expected a finite number,": CrossScores::new((vec![f32::NAN], &[1]), (vec![1.0], &[1]), 1, 0.5, &attention()),
        "text 0: expected at least 1 word, got 0": CrossScores::new((vec![1.0], &[1]), (vec![1.0], &[0, 1]), 1, 0.5, &attention()),
        "regions: expected 1 × 0 values, at least 1 wide, got 1": CrossScores::new((vec![1.0], &[1]), (vec![1.0], &[1]), 0, 0.5, &attention()),
        "regions: expected rows of 0 values, at least 1, got 1": effects(&[1.0], &[1.0], 0, 0.5, &attention()),
        "regions: expected rows of 1 values, at least 1, got 0": effects(&[], &[1.0], 1, 0.5, &attention()),
        "word 0, column 0: expected a finite number, got NaN": effects(&[1.0], &[f32::NAN], 1, 0.5, &attention()),
        "boundary: expected finite, got inf": effects(&[1.0], &[1.0], 1, f32::INFINITY, &attention()),
        "regions: expected rows of 9223372036854775808 values,": effects(&[1.0], &[1.0], HUGE, 0.5, &attention()),
        "region_dim, the width of a region: expected 1 to": Naaf::new(&naaf::NaafConfig::preset(naaf::Preset::Default), 0, 9, &device()),
        "region_dim, the width of a region: expected 1 to": Naaf::new(&naaf::NaafConfig::preset(naaf::Preset::Default), HUGE, 9, &device()),
        "vocabulary: expected 1 to 16777216, got": Naaf::new(&naaf::NaafConfig::preset(naaf::Preset::Default), 4, HUGE, &device()),
        "vocabulary: expected 1 to 16777216, got 0": Naaf::new(&naaf::NaafConfig::preset(naaf::Preset::Default), 4, 0, &device()),
    }
    panics! {
        "a sampled score of NaN": ScoreDistribution::of(&[f32::NAN]),
        "a sampled score of inf": ScoreDistribution::of(&[f32::INFINITY, 1.0]),
        "scores of mean NaN and deviation 0.1": optimal(&distribution(NAN, 0.1), &distribution(0.2, 0.1), 0.0, Form::Stable),
        "scores of mean 0.6 and deviation NaN": optimal(&distribution(0.6, NAN), &distribution(0.2, 0.1), 0.0, Form::Stable),
        "scores of mean 0.6 and deviation -0.1": optimal(&distribution(0.6, -0.1), &distribution(0.2, 0.1), 0.0, Form::Stable),
        "ln α of NaN": optimal(&distribution(0.6, 0.1), &distribution(0.2, 0.1), NAN, Form::Stable),
        "scores of mean 0.6 and deviation NaN": lower_bound(&distribution(0.6, NAN)),
        "scores of mean NaN and deviation 0.1": ln_alpha_star(&distribution(NAN, 0.1), &distribution(0.2, 0.1)),
        "image 1 of 1, text 0 of 1": word_scores(&products().host(), 1, 0, WordPool::Max),
        "image 0 of 1, text 1 of 1": word_scores(&products().host(), 0, 1, WordPool::Max),
        "image 9223372036854775808 of 1, text 0 of 1": word_scores(&products().host(), HUGE, 0, WordPool::Mean),
        "thresholds of the texts": products().scores(&attention().rule(Phase::Inference), &[]),
        "a threshold of NaN": products().scores(&attention().rule(Phase::Inference), &[f32::NAN]),
        "text 1 of 1": products().host().column(&attention().rule(Phase::Inference), 1, 0.5),
        "a threshold of NaN": products().host().column(&attention().rule(Phase::Inference), 0, f32::NAN),
    }
}

#[test]
fn masks_refills_and_models_of_tags_dc() {
    errors! {
        "masking.rate: expected a share in (0, 1], got 0": Masker::new(MaskBy::Phrases, 0.0, 9, 0..9),
        "masking.rate: expected a share in (0, 1], got NaN": Masker::new(MaskBy::Phrases, NAN, 9, 0..9),
        "masking.range: expected at least one token, got 9..9": Masker::new(MaskBy::Phrases, 0.15, 9, 9..9),
        "sentence: expected a token between [CLS] and [SEP], got": masker().maskings(&[1, 2], &[], 1, &mut Purpose::Masks.stream(0, 0)),
        "phrase 0: expected positions below 1, got 1": masker().maskings(&[1, 3, 2], &[vec![1]], 1, &mut Purpose::Masks.stream(0, 0)),
        "phrase 0: expected positions below 1, got": masker().maskings(&[1, 3, 2], &[vec![usize::MAX]], 1, &mut Purpose::Masks.stream(0, 0)),
        "maskings: expected at most 1000000, got": masker().maskings(&[1, 3, 2], &[vec![0]], usize::MAX, &mut Purpose::Masks.stream(0, 0)),
        "words: expected at most 16777216, got": label_probabilities(&[], HUGE, 0.5),
        "words: expected at most 16777216, got": label_probabilities(&[vec![0]], HUGE, 0.5),
        "masking.rate: expected a share in (0, 1], got NaN": label_probabilities(&[], 0, NAN),
        "score 0: expected a number, got NaN": hardest(&[0], &[f32::NAN], 1),
        "scores: expected 1, one per item, got 0": hardest(&[1], &[], 1),
        "image: expected a number below 2, got 2": draw_texts(&Pairs::uniform(2, 1), 2, 1, &mut Purpose::Masks.stream(0, 0)),
        "text: expected a number below 2, got 9223372036854775808": draw_images(&Pairs::uniform(2, 1), HUGE, 1, &mut Purpose::Masks.stream(0, 0)),
        "refill.draws: expected 1 to 1000000, got 0": Refill { draws: 0, ..refill() }.draw(&[masking()], &[0.0; 4], 4, &mut Purpose::Masks.stream(0, 0)),
        "refill.draws: expected 1 to 1000000, got": Refill { draws: usize::MAX, ..refill() }.draw(&[masking()], &[0.0; 4], 4, &mut Purpose::Masks.stream(0, 0)),
        "refill.temperature: expected a number above zero, got 0": Refill { temperature: 0.0, ..refill() }.draw(&[masking()], &[0.0; 4], 4, &mut Purpose::Masks.stream(0, 0)),
        "refill.temperature: expected a number above zero, got": Refill { temperature: NAN, ..refill() }.draw(&[masking()], &[0.0; 4], 4, &mut Purpose::Masks.stream(0, 0)),
        "refill.forbid: expected tokens below 4, got 9": Refill { forbid: vec![9], ..refill() }.draw(&[masking()], &[0.0; 4], 4, &mut Purpose::Masks.stream(0, 0)),
        "refill: expected 1 × 9223372036854775808 logits, got 4": refill().draw(&[masking()], &[0.0; 4], HUGE, &mut Purpose::Masks.stream(0, 0)),
        "row 0, position 1: expected finite logits, got NaN for": refill().draw(&[masking()], &[f32::NAN; 4], 4, &mut Purpose::Masks.stream(0, 0)),
        "row 0: expected 3 labels, one per token, got 0": refill().draw(&[Masking { labels: vec![], ..masking() }], &[], 4, &mut Purpose::Masks.stream(0, 0)),
        "negative: expected 1 tokens, as the caption, got 0": CorrectionTargets::Masked.positions(&[1], &[], &[true]),
        "negative: expected 1 tokens, as the caption, got 2": stayed(&[1], &[1, 2]),
        "classes: expected at least one, got none": accuracy(&[1.0], &[]),
        "class 0: expected below 1, got 1": accuracy(&[1.0], &[1]),
        "row 0, logit 0: expected a number, got NaN": accuracy(&[f32::NAN], &[0]),
        "regions: expected at least 1 image, got 0": RegionBatch::new(2, vec![], vec![], vec![]),
        "image 0: expected at least 1 region, got 0": RegionBatch::new(2, vec![0], vec![], vec![]),
        "features of regions: expected 1 × 0 values, at least 1": RegionBatch::new(0, vec![1], vec![], vec![0.5; 7]),
        "features of regions: expected too many × 2 values, at": RegionBatch::new(2, vec![HUGE, HUGE], vec![], vec![]),
        "features of regions: expected 2 × 9223372036854775808": RegionBatch::new(HUGE, vec![2], vec![], vec![0.5; 14]),
        "image 0, region 0, features: expected finite values,": RegionBatch::new(1, vec![1], vec![f32::NAN], vec![0.5; 7]),
        "initializer_range: expected a number above 0, got NaN": UniterShape { initializer_range: NAN, ..shape() }.check(),
        "vocabulary, positions, width, layers, heads, mlp,": UniterShape { features: 0, ..shape() }.check(),
        "vocabulary, positions, width, layers, heads, mlp,": tags_dc::train::TagsDc::new(&tags_dc::config::TagsDcConfig::tags_dc(tags_dc::Preset::Default), 0, tags_dc::train::Marks::of_words(9).unwrap(), 1, &device()),
        "vocabulary: expected at most 4294967292 words, got": tags_dc::train::Marks::of_words(HUGE),
        "vocabulary, positions, width, layers, heads, mlp,": tags_dc::train::TagsDc::new(&tags_dc::config::TagsDcConfig::tags_dc(tags_dc::Preset::Default), HUGE, tags_dc::train::Marks::of_words(9).unwrap(), 1, &device()),
    }
    panics! {
        "length of row 0 and of the positive": Filter::Paper.verdicts(&[1], &[vec![1, 2]], &CaptionWords::default(), Repeat::First),
        "vocabulary, positions, width, layers, heads, mlp,": uniter(&UniterShape { features: 0, ..shape() }),
        "initializer_range: expected a number above 0, got NaN": uniter(&UniterShape { initializer_range: NAN, ..shape() }),
        "vocabulary, positions, width, layers, heads, mlp,": uniter(&UniterShape { features: HUGE, ..shape() }),
        "regions of width 3 for a map from 2": uniter(&shape()).embed_regions(&RegionBatch::new(3, vec![1], vec![1.0; 3], vec![0.5; 7]).unwrap()),
        "caption 0, word 0: 9 of 9 words": joined(&[&[9]], &[0]),
        "captions of 9 word pieces for 8 positions": joined(&[&[1; 9]], &[0]),
        "image 1 of 1": joined(&[&[1]], &[1]),
        "one image for each text": joined(&[&[1]], &[]),
        "row 1 of a batch of 1": asked(At { row: 1, position: 0 }),
        "position 9 of a text of 2": asked(At { row: 0, position: 9 }),
        "row 9223372036854775808 of a batch of 1": asked(At { row: HUGE, position: 2 }),
        "a model with the heads of phase 2": discriminated(),
    }
}

fn joined(texts: &[&[u32]], images: &[usize]) {
    let model = uniter(&shape());
    let regions = model.embed_regions(&regions());
    let texts = itm_core::encoders::TokenBatch::new(texts);
    model.join(&texts, &regions, images, itm_kernels::Noise::Off);
}

fn asked(at: At) {
    let model = uniter(&shape());
    let regions = model.embed_regions(&regions());
    let texts = itm_core::encoders::TokenBatch::new(&[&[1, 2]]);
    let joint = model.join(&texts, &regions, &[0], itm_kernels::Noise::Off);
    model.word_logits(&joint, &[at]);
}

fn discriminated() {
    let model = uniter(&shape());
    let regions = model.embed_regions(&regions());
    let texts = itm_core::encoders::TokenBatch::new(&[&[1, 2]]);
    let joint = model.join(&texts, &regions, &[0], itm_kernels::Noise::Off);
    model.discrimination_logits(&joint, &joint.every_token());
}

/// A loss of a NaN is NaN, so that a step refuses it.
#[test]
fn what_is_not_a_number_stays_visible() {
    let scores = || Tensor::<2>::from_floats([[f32::NAN, 0.1], [0.2, 0.9]], &device());
    let both = |[a, b]: [Tensor<2>; 2]| a.sum() + b.sum();
    let contrast = Contrast::new(&options(), &device());
    let hubs = HubOptions::default();
    for (name, loss) in [
        ("SUM", both(sum(scores(), 0.2, Siblings::Negatives))),
        ("MAX", both(max(scores(), 0.2, Siblings::Negatives))),
        ("HAL", both(hal(scores(), 0.2, Siblings::Negatives, &hubs))),
        ("AAAI", aaai_local(scores(), &AaaiOptions::COCO).sum()),
        (
            "bank",
            aaai_bank(scores(), &bank_scores(2), &AaaiOptions::COCO, &BankOptions::default()).sum(),
        ),
        ("InfoNCE", contrast.info_nce(scores(), Siblings::Negatives)),
        ("sigmoid", contrast.sigmoid(scores(), Siblings::Negatives)),
    ] {
        let value = loss.into_scalar::<f32>();
        assert!(value.is_nan(), "{name}: {value}");
    }
    assert!(
        BankWeights::new(&[f32::NAN; 4], &bank_scores(2), &BankOptions::default()).positives[0]
            .is_nan()
    );
}
