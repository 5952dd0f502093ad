//! The losses of a step and the choice of their negatives: in the batch, and over the memory.

use burn::tensor::Tensor;
use itm_core::audit::{NegativeSet, PairIds};
use itm_core::tiles::Side;
use itm_core::towers::derive;
use itm_core::{Result, Siblings, WarmupLoss, host};
use itm_kernels::matmul;

use super::{Batch, Fne, Observe, StepLoss, stream};
use crate::audit::with_posterior;
use crate::bank::BankRows;
use crate::config::{self, Enqueue, Exclude, NegativeChoice, Positive};
use crate::draw::draw;
use crate::loss::{drawn_hinges, gather, in_batch_hinges, masked_hinges, row_dots};
use crate::weights::{CandidatePool, same_image, weights};

/// The rows of the bank for a batch: its momentum embeddings, images and texts.
pub(super) fn entries<'a>([images, texts]: [Tensor<2>; 2], batch: &Batch<'a>) -> BankRows<'a> {
    BankRows { images, texts, ids: batch.image_ids, captions: batch.caption_ids }
}

/// Determines a step's noise and negatives.
pub(crate) struct Chance {
    pub(super) seed: u64,
    /// The chosen columns for images as anchors and for texts as anchors, if a test gives the draws of a reference.
    pub(super) columns: Option<[Vec<usize>; 2]>,
}

impl Chance {
    /// Noise and negatives as a function of the seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { seed, columns: None }
    }
}

/// Candidates of one direction: the rows of one or two tables in turn. The tables are never concatenated.
struct CandidateTables(Vec<Tensor<2>>);

impl CandidateTables {
    fn new(batch: &Tensor<2>, bank: Tensor<2>, enqueue: Enqueue) -> Self {
        match enqueue {
            Enqueue::Before => Self(vec![bank]),
            Enqueue::After => Self(vec![batch.clone(), bank]),
        }
    }

    /// S, `[b, n]` row-major.
    fn scores(&self, anchors: &Tensor<2>) -> Vec<f32> {
        let b = anchors.dims()[0];
        let scores = |table: &Tensor<2>| host(matmul(anchors.clone(), table.clone().transpose()));
        let tables: Vec<Vec<f32>> = self.0.iter().map(scores).collect();
        let row = |i: usize| tables.iter().map(move |s| &s[i * (s.len() / b)..][..s.len() / b]);
        (0..b).flat_map(row).collect::<Vec<_>>().concat()
    }

    /// The rows of these columns, `[b, d]`.
    fn rows(&self, columns: &[usize]) -> Tensor<2> {
        let row = |&column: &usize| {
            let n = self.0[0].dims()[0];
            let (table, at) = if column < n { (0, column) } else { (1, column - n) };
            self.0[table].clone().narrow(0, at, 1)
        };
        Tensor::cat(columns.iter().map(row).collect(), 0)
    }
}

/// Scores of one direction on the host, and the choice made.
struct DirectionScores {
    scores: Vec<f32>,
    positive: Vec<f32>,
    chosen: Vec<usize>,
    /// The candidates that are never negatives of an anchor, `[b, n]`.
    excluded: Vec<bool>,
}

impl Fne {
    /// Hinges within the batch. The bank and the statistics do not change.
    pub(super) fn in_batch(
        &self,
        batch: &Batch,
        [images, texts]: [Tensor<2>; 2],
        observe: Observe,
    ) -> Result<StepLoss> {
        let (b, sampler) = (batch.image_ids.len(), &self.config.sampler);
        let warming = self.learner.epoch < sampler.warmup_epochs;
        let kind = if warming { sampler.warmup_loss } else { WarmupLoss::Hardest };
        let (masked, margin) = (sampler.mask_same_image_everywhere, sampler.margin);
        let pool = (batch.image_ids, batch.caption_ids);
        let truth = [Side::Images, Side::Texts];
        let truth = truth.map(|side| self.true_pairs(batch, pool, side));
        let negatives = if observe == Observe::Negatives && kind == WarmupLoss::Hardest {
            let scores = host(matmul(images.clone().inner(), texts.clone().inner().transpose()));
            self.finite(&scores)?;
            let weights = [(); 2].map(|()| vec![0.0; b * b]);
            let mut sets = NegativeSet::in_batch(pool.into(), &scores, masked, weights, margin);
            for (set, truth) in sets.iter_mut().zip(&truth) {
                truth.iter().for_each(|mask| set.excluded.clone_from(mask));
                let hardest = set.hardest().into_iter().enumerate();
                hardest.for_each(|(i, j)| set.weights[i * b + j] = 1.0);
            }
            let seen = self.statistics.snapshot();
            Some(sets.map(|set| with_posterior(set, &seen, sampler.min_count)))
        } else {
            None
        };
        let hinges = match truth {
            [Some(i2t), Some(t2i)] => masked_hinges(images, texts, margin, kind, [i2t, t2i]),
            _ => in_batch_hinges(images, texts, margin, kind, masked.then_some(batch.image_ids)),
        };
        let each = if kind == WarmupLoss::Sum { (b - 1).max(1) } else { 1 };
        Ok(reduce(hinges, each, negatives))
    }

    /// Eq. 15 with negatives from momentum embeddings: batch (`kept`, images and texts) and bank, or only the bank.
    pub(super) fn with_memory(
        &mut self,
        batch: &Batch,
        [images, texts]: [Tensor<2>; 2],
        kept: [Tensor<2>; 2],
        chance: &Chance,
        observe: Observe,
    ) -> Result<StepLoss> {
        let enqueue = self.config.sampler.enqueue;
        if enqueue == Enqueue::Before {
            self.bank.enqueue(entries(kept.clone(), batch)); // undone if a score is not finite
        }
        let own = if enqueue == Enqueue::After { batch.image_ids.len() } else { 0 };
        let ids = [&batch.image_ids[..own], self.bank.ids()].concat();
        let captions = [&batch.caption_ids[..own], self.bank.captions()].concat();
        let [own_images, own_texts] = kept;
        let to_texts = CandidateTables::new(&own_texts, self.bank.texts(), enqueue);
        let to_images = CandidateTables::new(&own_images, self.bank.images(), enqueue);
        let (v, w) = (images.clone().inner(), texts.clone().inner());
        self.observe_statistics(batch, &host(matmul(v.clone(), w.clone().transpose())))?;

        let (positive_i2t, positive_t2i) = match self.config.sampler.positive {
            Positive::Online => {
                let positive = row_dots(images.clone(), texts.clone());
                (positive.clone(), positive)
            }
            Positive::Momentum => {
                (row_dots(images.clone(), own_texts), row_dots(texts.clone(), own_images))
            }
        };
        let plain = |positive: &Tensor<2>| host(positive.clone().inner());
        let i2t = (to_texts.scores(&v), plain(&positive_i2t));
        let pool = (&ids[..], &captions[..]);
        let (i2t, no_text) = self.choose(batch, pool, i2t, Side::Images, chance)?;
        let t2i = (to_images.scores(&w), plain(&positive_t2i));
        let (t2i, no_image) = self.choose(batch, pool, t2i, Side::Texts, chance)?;

        let margin = self.config.sampler.margin;
        let (texts_drawn, images_drawn) = (to_texts.rows(&i2t.chosen), to_images.rows(&t2i.chosen));
        drop((to_texts, to_images)); // otherwise the next write would copy the bank
        let h = drawn_hinges(images, positive_i2t, texts_drawn, &no_text, margin);
        let g = drawn_hinges(texts, positive_t2i, images_drawn, &no_image, margin);
        let negatives = (observe == Observe::Negatives)
            .then(|| self.negatives(batch, (&ids, &captions), [i2t, t2i]));
        Ok(reduce([h, g], 1, negatives))
    }

    /// A loss over all pairs of the batch, which the paper does not have. Every negative counts.
    pub(super) fn contrastive(&self, batch: &Batch, [images, texts]: [Tensor<2>; 2]) -> StepLoss {
        let contrast = self.online().contrast.as_ref().expect("made for this loss");
        let masked = self.config.sampler.mask_same_image_everywhere.then_some(batch.image_ids);
        let siblings = masked.map_or(Siblings::Negatives, Siblings::Masked);
        let scores = matmul(images, texts.transpose());
        let value = match self.config.train.loss {
            config::Loss::Sigmoid => contrast.sigmoid(scores, siblings),
            config::Loss::InfoNce | config::Loss::Triplet => contrast.info_nce(scores, siblings),
        };
        StepLoss { value, active: 1.0, negatives: None }
    }

    /// Eq. 15 with the batch as the pool, both sides online: the paper's "w/o MMM".
    pub(super) fn without_memory(
        &mut self,
        batch: &Batch,
        [images, texts]: [Tensor<2>; 2],
        chance: &Chance,
        observe: Observe,
    ) -> Result<StepLoss> {
        let b = batch.image_ids.len();
        let scores = host(matmul(images.clone().inner(), texts.clone().inner().transpose()));
        self.observe_statistics(batch, &scores)?;
        let positive: Vec<f32> = (0..b).map(|i| scores[i * b + i]).collect();
        let across = (0..b * b).map(|k| scores[(k % b) * b + k / b]).collect();
        let pool = (batch.image_ids, batch.caption_ids);
        let i2t = (scores, positive.clone());
        let (i2t, no_text) = self.choose(batch, pool, i2t, Side::Images, chance)?;
        let t2i = (across, positive);
        let (t2i, no_image) = self.choose(batch, pool, t2i, Side::Texts, chance)?;
        let positive = row_dots(images.clone(), texts.clone());
        let to_texts = gather(texts.clone(), &i2t.chosen);
        let to_images = gather(images.clone(), &t2i.chosen);
        let margin = self.config.sampler.margin;
        let h = drawn_hinges(images, positive.clone(), to_texts, &no_text, margin);
        let g = drawn_hinges(texts, positive, to_images, &no_image, margin);
        let negatives =
            (observe == Observe::Negatives).then(|| self.negatives(batch, pool, [i2t, t2i]));
        Ok(reduce([h, g], 1, negatives))
    }

    fn observe_statistics(&mut self, batch: &Batch, scores: &[f32]) -> Result<()> {
        self.finite(scores)?;
        let ids = batch.image_ids;
        let everywhere = self.config.sampler.mask_same_image_everywhere;
        let skip = |i: usize, j: usize| everywhere && i != j && ids[i] == ids[j];
        self.statistics.update_masked(scores, ids.len(), skip)
    }

    /// Refuses scores if one is not finite, because nothing can be chosen by such a score.
    fn finite(&self, scores: &[f32]) -> Result<()> {
        if scores.iter().fold(true, |all, s| all & s.is_finite()) {
            return Ok(());
        }
        let bad = scores.iter().find(|s| !s.is_finite()).expect("one is not finite");
        Err(self.learner.refuse("finite scores", f64::from(*bad)))
    }

    /// Chooses one candidate per anchor, and says whether each chosen candidate is excluded. An excluded candidate has hinge 0.
    ///
    /// # Errors
    /// If a score is not finite.
    fn choose(
        &self,
        batch: &Batch,
        (candidates, captions): (&[i64], &[i64]),
        (scores, positive): (Vec<f32>, Vec<f32>),
        anchor_side: Side,
        chance: &Chance,
    ) -> Result<(DirectionScores, Vec<bool>)> {
        self.finite(&scores)?;
        self.finite(&positive)?;
        let truth = self.true_pairs(batch, (candidates, captions), anchor_side);
        let excluded = truth.map_or_else(|| same_image(batch.image_ids, candidates), Ok)?;
        let pool = CandidatePool { scores: &scores, positive: &positive, excluded: &excluded };
        let (sampler, n) = (&self.config.sampler, candidates.len());
        let side = usize::from(anchor_side == Side::Texts);
        let seed = derive(chance.seed, stream::DRAWS[side]);
        let chosen = match (&chance.columns, sampler.negatives) {
            (Some(columns), _) => columns[side].clone(),
            (None, NegativeChoice::Fne) => {
                draw(&weights(&pool, sampler, &self.statistics.snapshot())?, n, seed)?
            }
            (None, NegativeChoice::Uniform) => draw(&pool.uniform()?, n, seed)?,
            (None, NegativeChoice::Hardest | NegativeChoice::InBatch) => {
                pool.hardest(sampler.margin)?
            }
        };
        let masked = chosen.iter().enumerate().map(|(i, &j)| pool.excluded(i, j)).collect();
        Ok((DirectionScores { scores, positive, chosen, excluded }, masked))
    }

    /// Which candidates an anchor truly matches, `[b, n]`, with [`Exclude::Truth`].
    fn true_pairs(
        &self,
        batch: &Batch,
        (ids, captions): (&[i64], &[i64]),
        anchor_side: Side,
    ) -> Option<Vec<bool>> {
        let truth =
            self.truth.as_ref().filter(|_| self.config.sampler.exclude == Exclude::Truth)?;
        let (b, n) = (batch.image_ids.len(), ids.len());
        let matches = |k: usize| {
            let (i, j) = (k / n, k % n);
            let written = ids[j] != crate::NEVER;
            let (image, caption) = match anchor_side {
                Side::Images => (batch.image_ids[i], captions[j]),
                Side::Texts => (ids[j], batch.caption_ids[i]),
            };
            batch.image_ids[i] == ids[j]
                || written && truth.contains(image as usize, caption as usize)
        };
        Some((0..b * n).map(matches).collect())
    }

    /// The negatives of both directions: for each anchor, the chosen candidate with weight 1.
    fn negatives(
        &self,
        batch: &Batch,
        (ids, captions): (&[i64], &[i64]),
        [i2t, t2i]: [DirectionScores; 2],
    ) -> [NegativeSet; 2] {
        let pairs = |images: &[i64], captions: &[i64]| -> Vec<PairIds> {
            let pair = |(&image, &caption): (&i64, &i64)| PairIds { image, caption };
            images.iter().zip(captions).map(pair).collect()
        };
        let anchors = pairs(batch.image_ids, batch.caption_ids);
        let written = |p: PairIds| (p.image != crate::NEVER).then_some(p);
        let candidates: Vec<_> = pairs(ids, captions).into_iter().map(written).collect();
        let (b, n) = (anchors.len(), candidates.len());
        let (statistics, sampler) = (self.statistics.snapshot(), &self.config.sampler);
        let of = |anchor_side, side: DirectionScores| {
            let mut weights = vec![0.0; b * n];
            side.chosen.iter().enumerate().for_each(|(i, &j)| weights[i * n + j] = 1.0);
            let negatives = NegativeSet {
                side: anchor_side,
                anchors: anchors.clone(),
                candidates: candidates.clone(),
                scores: side.scores,
                positive: side.positive,
                excluded: side.excluded,
                weights,
                margin: sampler.margin,
                others: vec![],
                log_ratios: vec![],
            };
            with_posterior(negatives, &statistics, sampler.min_count)
        };
        [of(Side::Images, i2t), of(Side::Texts, t2i)]
    }
}

/// Sum over both directions and mean over anchors; the share of hinges above 0, of `each` hinges per anchor and direction.
fn reduce(hinges: [Tensor<2>; 2], each: usize, negatives: Option<[NegativeSet; 2]>) -> StepLoss {
    let (b, values) = (hinges[0].dims()[0], hinges.clone().map(|h| host(h.inner())));
    let active = values.iter().flatten().filter(|&&h| h > 0.0).count();
    let [i2t, t2i] = hinges.map(Tensor::sum);
    let value = (i2t + t2i) / b as f64;
    StepLoss { value, active: active as f64 / (2 * b * each) as f64, negatives }
}
