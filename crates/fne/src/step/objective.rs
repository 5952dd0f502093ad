//! The losses of a step, and the choices they take: in the batch, and over the memory.

use burn::tensor::{Device, Tensor, TensorData};
use itm_core::Result;

use super::{Batch, Fne, Observe, stream};
use crate::audit::{Direction, Observation, Observed, Pair};
use crate::bank::{Bank, Entries};
use crate::config::{Enqueue, Negatives, Positive, WarmupLoss};
use crate::draw::draw;
use crate::host::host;
use crate::loss::{drawn_hinges, gather, in_batch_hinges, row_dots};
use crate::model::derive;
use crate::weights::{Excluded, Pool, weights};

/// Momentum embeddings of the batch.
pub(super) struct Kept {
    pub(super) images: Vec<f32>,
    pub(super) texts: Vec<f32>,
}

/// What the anchors of a step choose from.
struct Choices {
    images: Vec<f32>,
    texts: Vec<f32>,
    ids: Vec<i64>,
    captions: Vec<i64>,
}

impl Choices {
    fn of_bank(bank: &Bank) -> Self {
        Self {
            images: bank.images.clone(),
            texts: bank.texts.clone(),
            ids: bank.ids.clone(),
            captions: bank.captions.clone(),
        }
    }

    fn of_batch_and_bank(batch: Entries, bank: &Bank) -> Self {
        Self {
            images: [batch.images, &bank.images].concat(),
            texts: [batch.texts, &bank.texts].concat(),
            ids: [batch.ids, &bank.ids].concat(),
            captions: [batch.captions, &bank.captions].concat(),
        }
    }
}

/// Scores of one direction on the host, and the choice made.
struct Side {
    scores: Vec<f32>,
    positive: Vec<f32>,
    chosen: Vec<usize>,
}

impl Fne {
    /// Hinges within the batch; bank and statistics stay as they are.
    pub(super) fn in_batch(
        &self,
        batch: &Batch,
        images: Tensor<2>,
        texts: Tensor<2>,
        observe: Observe,
    ) -> (Tensor<1>, f64, Option<Observation>) {
        let (b, sampler) = (batch.image_ids.len(), &self.config.sampler);
        let warming = self.epoch < sampler.warmup_epochs;
        let kind = if warming { sampler.warmup_loss } else { WarmupLoss::Hardest };
        let ids = sampler.mask_same_image_everywhere.then_some(batch.image_ids);
        let observation = (observe == Observe::On && kind == WarmupLoss::Hardest).then(|| {
            let scores = host(images.clone().inner().matmul(texts.clone().inner().transpose()));
            let skip = |i: usize, j: usize| i == j || ids.is_some_and(|ids| ids[i] == ids[j]);
            let excluded: Vec<bool> = (0..b * b).map(|k| skip(k / b, k % b)).collect();
            let side = |scores: Vec<f32>| {
                let positive: Vec<f32> = (0..b).map(|i| scores[i * b + i]).collect();
                let excluded = Excluded::Mask(&excluded);
                let pool = Pool { scores: &scores, positive: &positive, excluded };
                let chosen = pool.hardest(sampler.margin);
                Side { scores, positive, chosen }
            };
            let other = side(transposed(&scores, b));
            let sides = [side(scores), other];
            self.observation(batch, (batch.image_ids, batch.caption_ids), sides, &skip)
        });
        let [rows, columns] = in_batch_hinges(images, texts, sampler.margin, kind, ids);
        let active = [&rows, &columns].map(count_active).iter().sum::<usize>();
        let terms = if kind == WarmupLoss::Sum { 2 * b * (b - 1).max(1) } else { 2 * b };
        let loss = (rows.sum() + columns.sum()) / b as f64;
        (loss, active as f64 / terms as f64, observation)
    }

    /// Eq. 15 with negatives from momentum embeddings: batch and bank, or the bank alone.
    pub(super) fn with_memory(
        &mut self,
        batch: &Batch,
        images: Tensor<2>,
        texts: Tensor<2>,
        kept: &Kept,
        seed: u64,
        observe: Observe,
    ) -> Result<(Tensor<1>, f64, Option<Observation>)> {
        let device = images.device();
        let d = self.bank.width();
        let entries = Entries {
            images: &kept.images,
            texts: &kept.texts,
            ids: batch.image_ids,
            captions: batch.caption_ids,
        };
        let enqueue = self.config.sampler.enqueue;
        if enqueue == Enqueue::Before {
            self.bank.push(entries)?;
        }
        let pool = match enqueue {
            Enqueue::Before => Choices::of_bank(&self.bank),
            Enqueue::After => Choices::of_batch_and_bank(entries, &self.bank),
        };
        let (v, w) = (images.clone().inner(), texts.clone().inner());
        let (host_v, host_w) = (host(v.clone()), host(w.clone()));
        self.observe_statistics(batch, &host(v.clone().matmul(w.clone().transpose())));

        let plain = v.device();
        let scores = |anchors: Tensor<2>, candidates: &[f32]| {
            let table = table(candidates, d, &plain);
            host(anchors.matmul(table.transpose()))
        };
        let online = self.config.sampler.positive == Positive::Online;
        let (own_w, own_v) = if online { (&host_w, &host_v) } else { (&kept.texts, &kept.images) };
        let i2t = self.side(
            batch,
            &pool.ids,
            scores(v, &pool.texts),
            dots(&host_v, own_w, d),
            derive(seed, stream::IMAGE_TO_TEXT),
        );
        let t2i = self.side(
            batch,
            &pool.ids,
            scores(w, &pool.images),
            dots(&host_w, own_v, d),
            derive(seed, stream::TEXT_TO_IMAGE),
        );

        let (positive_i2t, positive_t2i) = if online {
            let positive = row_dots(images.clone(), texts.clone());
            (positive.clone(), positive)
        } else {
            (
                row_dots(images.clone(), table(&kept.texts, d, &device)),
                row_dots(texts.clone(), table(&kept.images, d, &device)),
            )
        };
        let negatives = |rows: &[f32], side: &Side| {
            let rows = side.chosen.iter().flat_map(|&j| rows[j * d..(j + 1) * d].to_vec());
            table(&rows.collect::<Vec<f32>>(), d, &device)
        };
        let to_texts = negatives(&pool.texts, &i2t);
        let to_images = negatives(&pool.images, &t2i);
        let margin = self.config.sampler.margin;
        let h = drawn_hinges(images, positive_i2t, to_texts, &i2t.masked(batch, &pool.ids), margin);
        let g = drawn_hinges(texts, positive_t2i, to_images, &t2i.masked(batch, &pool.ids), margin);
        if enqueue == Enqueue::After {
            self.bank.push(entries)?;
        }
        let observation = (observe == Observe::On).then(|| {
            let same = |i: usize, j: usize| batch.image_ids[i] == pool.ids[j];
            self.observation(batch, (&pool.ids, &pool.captions), [i2t, t2i], &same)
        });
        let (loss, active) = reduce(h, g);
        Ok((loss, active, observation))
    }

    /// Eq. 15 with the batch as the pool, both sides online: the paper's "w/o MMM".
    pub(super) fn without_memory(
        &mut self,
        batch: &Batch,
        images: Tensor<2>,
        texts: Tensor<2>,
        seed: u64,
        observe: Observe,
    ) -> (Tensor<1>, f64, Option<Observation>) {
        let b = batch.image_ids.len();
        let scores = host(images.clone().inner().matmul(texts.clone().inner().transpose()));
        self.observe_statistics(batch, &scores);
        let positive: Vec<f32> = (0..b).map(|i| scores[i * b + i]).collect();
        let ids = batch.image_ids;
        let across = transposed(&scores, b);
        let i2t =
            self.side(batch, ids, scores, positive.clone(), derive(seed, stream::IMAGE_TO_TEXT));
        let t2i = self.side(batch, ids, across, positive, derive(seed, stream::TEXT_TO_IMAGE));
        let positive = row_dots(images.clone(), texts.clone());
        let to_texts = gather(texts.clone(), &i2t.chosen);
        let to_images = gather(images.clone(), &t2i.chosen);
        let margin = self.config.sampler.margin;
        let h = drawn_hinges(images, positive.clone(), to_texts, &i2t.masked(batch, ids), margin);
        let g = drawn_hinges(texts, positive, to_images, &t2i.masked(batch, ids), margin);
        let observation = (observe == Observe::On).then(|| {
            let same = |i: usize, j: usize| ids[i] == ids[j];
            self.observation(batch, (ids, batch.caption_ids), [i2t, t2i], &same)
        });
        let (loss, active) = reduce(h, g);
        (loss, active, observation)
    }

    fn observe_statistics(&mut self, batch: &Batch, scores: &[f32]) {
        let ids = batch.image_ids;
        let everywhere = self.config.sampler.mask_same_image_everywhere;
        let skip = |i: usize, j: usize| everywhere && i != j && ids[i] == ids[j];
        self.statistics.update_masked(scores, ids.len(), skip);
    }

    /// Chooses one candidate per anchor.
    fn side(
        &self,
        batch: &Batch,
        candidates: &[i64],
        scores: Vec<f32>,
        positive: Vec<f32>,
        seed: u64,
    ) -> Side {
        let excluded = Excluded::SameImage { anchors: batch.image_ids, candidates };
        let pool = Pool { scores: &scores, positive: &positive, excluded };
        let sampler = &self.config.sampler;
        let chosen = match sampler.negatives {
            Negatives::Fne => {
                let rho = weights(&pool, &sampler.rule(), &self.statistics.snapshot());
                draw(&rho, candidates.len(), seed)
            }
            Negatives::Uniform => draw(&pool.uniform(), candidates.len(), seed),
            Negatives::Hardest | Negatives::InBatch => pool.hardest(sampler.margin),
        };
        Side { scores, positive, chosen }
    }

    fn observation(
        &self,
        batch: &Batch,
        (ids, captions): (&[i64], &[i64]),
        [i2t, t2i]: [Side; 2],
        excluded: &dyn Fn(usize, usize) -> bool,
    ) -> Observation {
        let pairs = |images: &[i64], captions: &[i64]| -> Vec<Pair> {
            let pair = |(&image, &caption): (&i64, &i64)| Pair { image, caption };
            images.iter().zip(captions).map(pair).collect()
        };
        let anchors = pairs(batch.image_ids, batch.caption_ids);
        let written = |p: Pair| (p.image != crate::NEVER).then_some(p);
        let candidates: Vec<_> = pairs(ids, captions).into_iter().map(written).collect();
        let (b, n) = (anchors.len(), candidates.len());
        let excluded: Vec<bool> = (0..b * n).map(|k| excluded(k / n, k % n)).collect();
        let observed = |direction, side: Side| Observed {
            direction,
            anchors: anchors.clone(),
            candidates: candidates.clone(),
            scores: side.scores,
            positive: side.positive,
            excluded: excluded.clone(),
            chosen: side.chosen,
        };
        Observation {
            image_to_text: observed(Direction::ImageToText, i2t),
            text_to_image: observed(Direction::TextToImage, t2i),
            statistics: self.statistics.snapshot(),
        }
    }
}

impl Side {
    /// Whether each chosen candidate is a masked one, whose hinge counts 0.
    fn masked(&self, batch: &Batch, candidates: &[i64]) -> Vec<bool> {
        self.chosen.iter().zip(batch.image_ids).map(|(&j, &id)| id == candidates[j]).collect()
    }
}

/// Sum over both directions and mean over anchors; share of hinges above 0.
fn reduce(i2t: Tensor<2>, t2i: Tensor<2>) -> (Tensor<1>, f64) {
    let b = i2t.dims()[0];
    let active = count_active(&i2t) + count_active(&t2i);
    ((i2t.sum() + t2i.sum()) / b as f64, active as f64 / (2 * b) as f64)
}

fn count_active(hinges: &Tensor<2>) -> usize {
    host(hinges.clone().inner()).iter().filter(|&&h| h > 0.0).count()
}

fn table(rows: &[f32], width: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(rows.to_vec(), [rows.len() / width, width]), device)
}

/// a_i · c_i of each row, summed in f64.
pub(super) fn dots(a: &[f32], c: &[f32], width: usize) -> Vec<f32> {
    let dot = |(a, c): (&[f32], &[f32])| {
        a.iter().zip(c).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum::<f64>() as f32
    };
    a.chunks_exact(width).zip(c.chunks_exact(width)).map(dot).collect()
}

fn transposed(scores: &[f32], b: usize) -> Vec<f32> {
    (0..b * b).map(|k| scores[(k % b) * b + k / b]).collect()
}
