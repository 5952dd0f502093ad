//! Losses of a step, differentiable: Eq. 1 (masked words), Eq. 3 to 5 (retrieved pairs) and Eq. 7 to 9 (synthetic sentences).

use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Tensor, TensorData};
use itm_core::data::Regions;
use itm_core::encoders::TokenBatch;
use itm_core::learn::{Items, Numbers};
use itm_core::{Result, host};
use itm_kernels::{Noise, embedding};

use super::Marks;
use super::retrieval::{Anchors, numbered};
use super::synthetic::{MaskedText, Pool};
use crate::config::{Corrected, LossConfig};
use crate::model::{At, Joint, RegionBatch, Uniter};

/// The least log-probability of Eq. 8 and 9: below it there is no gradient.
const LEAST: f64 = -23.025_850_929_940_457; // ln 1e-10

/// What a step adds up.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) value: Option<Tensor<1>>,
    pub(super) numbers: Numbers,
    /// Share of the hinges that pull.
    pub(super) active: f64,
}

impl Losses {
    fn add(&mut self, name: &str, weight: f64, loss: Tensor<1>) {
        let value = f64::from(host(loss.clone().inner())[0]);
        self.numbers.add(&Numbers::from([(name, value)]));
        let loss = loss * weight;
        self.value = Some(match self.value.take() {
            Some(sum) => sum + loss,
            None => loss,
        });
    }

    /// Eq. 5: the mean hinge of each anchor, added up over both kinds, the mean over the anchors of a kind.
    ///
    /// ```text
    /// L_ITM = 1/b Σ_anchors 1/h Σ_h max(a − s(I,T) + s(I,T⁻_h), 0) + the same with images,     s = σ(logit)
    /// ```
    pub(super) fn retrieved(
        &mut self,
        model: &Uniter,
        anchors: &Anchors,
        (regions, marks, train): (&Regions, Marks, &Items),
        config: &LossConfig,
        noise: Noise,
    ) -> Result<()> {
        let per_kind = anchors.0.len() / 2;
        let (mut pairs, mut hinges) = (vec![], vec![]); // positive, negative, weight
        for anchor in &anchors.0 {
            let positive = pairs.len();
            pairs.push((anchor.image, anchor.text));
            let weight = |h: usize| 1.0 / (h * per_kind) as f32;
            let first = pairs.len();
            pairs.extend(anchor.negatives());
            let h = pairs.len() - first;
            hinges.extend((first..pairs.len()).map(|negative| (positive, negative, weight(h))));
        }
        let (images, texts): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let (images, rows) = numbered(&images);
        let embedded = model.embed_regions(&RegionBatch::of(regions, &images)?);
        let texts: Vec<_> = texts.iter().map(|&text| marks.around(&train.texts[text])).collect();
        let joint = model.join(&TokenBatch::new(&texts), &embedded, &rows, noise);
        let scores = model.match_scores(&joint);
        let (loss, active) = hinge(scores, &hinges, config.margin);
        self.active = active;
        self.add("itm", config.itm, loss);
        Ok(())
    }

    /// Eq. 1: the mean over all targets of a caption, the mean over the captions. Returns the logits, `[targets, tokens]`.
    ///
    /// ```text
    /// L_MLM = 1/b Σ_captions 1/Σ_k|P_k| Σ_{k, p ∈ P_k} −log softmax(a_{k,p})_{y_p}
    /// ```
    pub(super) fn masked(
        &mut self,
        model: &Uniter,
        captions: &[MaskedText],
        regions: &Regions,
        weight: f64,
        noise: Noise,
    ) -> Result<Vec<f32>> {
        let logits = word_logits(model, captions, regions, noise)?;
        let values = host(logits.clone().inner());
        let targets = captions.iter().flat_map(|caption| {
            let weight = 1.0 / (caption.targets() * captions.len()) as f32;
            let labels = caption.rows.iter().flat_map(|masked| masked.labels.iter().flatten());
            labels.map(move |&label| (label, weight))
        });
        let targets: Vec<(u32, f32)> = targets.collect();
        self.numbers.add(&Numbers::from([("words_right", share_right(&values, &targets))]));
        self.add("mlm", weight, cross_entropy(logits, &targets, None));
        Ok(values)
    }

    /// Eq. 7 to 9: each the mean over a pool, the mean over the captions; a caption whose pool is empty counts 0.
    ///
    /// ```text
    /// L_ISTM = 1/b Σ_captions 1/m Σ_t max(a − s(I,T) + s(I,T⁻_t), 0)
    /// L_WoD  = 1/b Σ_captions 1/(m |T|) Σ_{t,j} −w_G max(log softmax(d_tj)_G, log 1e-10)
    /// L_WoC  = 1/b Σ_captions 1/#targets Σ_{t,j} −max(log softmax(c_tj)_{T_j}, log 1e-10)
    /// ```
    ///
    /// With `share` one pass serves all three; else the word losses have their own, with the second noise.
    pub(super) fn synthetic(
        &mut self,
        model: &Uniter,
        pools: &[Pool],
        regions: &Regions,
        config: &LossConfig,
        (share, released): (bool, bool),
        noise: [Noise; 2],
    ) -> Result<()> {
        let rows = PoolRows::new(pools);
        if rows.texts.is_empty() {
            return Ok(()); // no survivor: no loss, and no NaN
        }
        let (images, of) = numbered(&rows.images);
        let embedded = model.embed_regions(&RegionBatch::of(regions, &images)?);
        let texts = TokenBatch::new(&rows.texts);
        let first = match released {
            true => model.join_as_released(&texts, &embedded, &of, noise[0], &rows.positives),
            false => model.join(&texts, &embedded, &of, noise[0]),
        };
        if config.istm > 0.0 {
            let hinges = rows.hinges(pools.len());
            let (loss, active) = hinge(model.match_scores(&first), &hinges, config.margin);
            self.numbers.add(&Numbers::from([("istm_active", active)]));
            self.add("istm", config.istm, loss);
        }
        if config.words() {
            let joint = match share {
                true => first,
                false => model.join(&texts, &embedded, &of, noise[1]),
            };
            self.words(model, &joint, &rows, pools, config);
        }
        Ok(())
    }

    /// Eq. 8 and 9 of the negatives' rows.
    fn words(
        &mut self,
        model: &Uniter,
        joint: &Joint,
        rows: &PoolRows,
        pools: &[Pool],
        config: &LossConfig,
    ) {
        if config.wod > 0.0 {
            let (asked, targets) = rows.discriminated(pools, config.wod_weights.map(|w| w as f32));
            let logits = model.discrimination_logits(joint, &asked);
            let values = host(logits.clone().inner());
            self.numbers.add(&Numbers::from([("wod_right", share_right(&values, &targets))]));
            self.add("wod", config.wod, cross_entropy(logits, &targets, Some(LEAST)));
        }
        let (asked, targets) = rows.corrected(pools, config.woc_targets);
        if config.woc > 0.0 && !asked.is_empty() {
            let logits = model.correction_logits(joint, &asked);
            let values = host(logits.clone().inner());
            self.numbers.add(&Numbers::from([("woc_right", share_right(&values, &targets))]));
            self.add("woc", config.woc, cross_entropy(logits, &targets, Some(LEAST)));
        }
    }
}

/// Logits at all targets of all maskings, `[targets, tokens]`, caption after caption.
///
/// # Errors
/// If a region cannot be read.
pub(super) fn word_logits(
    model: &Uniter,
    captions: &[MaskedText],
    regions: &Regions,
    noise: Noise,
) -> Result<Tensor<2>> {
    let images: Vec<usize> = captions.iter().map(|caption| caption.image).collect();
    let (images, of) = numbered(&images);
    let embedded = model.embed_regions(&RegionBatch::of(regions, &images)?);
    let (mut texts, mut beside, mut asked) = (vec![], vec![], vec![]);
    for (caption, &image) in captions.iter().zip(&of) {
        for masked in &caption.rows {
            let row = texts.len();
            asked.extend(masked.targets().map(|position| At { row, position }));
            texts.push(&masked.ids[..]);
            beside.push(image);
        }
    }
    let joint = model.join(&TokenBatch::new(&texts), &embedded, &beside, noise);
    Ok(model.word_logits(&joint, &asked))
}

/// The rows of a batch: each caption that has negatives, and these behind it.
struct PoolRows<'a> {
    texts: Vec<&'a [u32]>,
    /// Of each row.
    images: Vec<usize>,
    /// The captions' rows.
    positives: Vec<usize>,
    /// Pool and first negative's row of each of these.
    of: Vec<(usize, usize)>,
}

impl<'a> PoolRows<'a> {
    fn new(pools: &'a [Pool]) -> Self {
        let mut new = Self { texts: vec![], images: vec![], positives: vec![], of: vec![] };
        for (number, pool) in
            pools.iter().enumerate().filter(|(_, pool)| !pool.negatives.is_empty())
        {
            new.positives.push(new.texts.len());
            new.texts.push(&pool.positive);
            new.of.push((number, new.texts.len()));
            new.texts.extend(pool.negatives.iter().map(|negative| &negative.tokens[..]));
            new.images.resize(new.texts.len(), pool.image);
        }
        new
    }

    /// Positive, negative and weight.
    fn hinges(&self, captions: usize) -> Vec<(usize, usize, f32)> {
        let ends = self.positives.iter().skip(1).copied().chain([self.texts.len()]);
        let of = |((&(_, first), &positive), end): ((&(usize, usize), &usize), usize)| {
            let weight = 1.0 / ((end - first) * captions) as f32;
            (first..end).map(move |negative| (positive, negative, weight))
        };
        self.of.iter().zip(&self.positives).zip(ends).flat_map(of).collect()
    }

    /// Every token of the negatives: 1 where it is the caption's.
    fn discriminated(&self, pools: &[Pool], weights: [f32; 2]) -> (Vec<At>, Vec<(u32, f32)>) {
        let (mut asked, mut targets) = (vec![], vec![]);
        for &(number, first) in &self.of {
            let Pool { positive, negatives, .. } = &pools[number];
            let share = 1.0 / (negatives.len() * positive.len() * pools.len()) as f32;
            for (row, negative) in (first..).zip(negatives) {
                for (position, (own, new)) in positive.iter().zip(&negative.tokens).enumerate() {
                    let stayed = u32::from(own == new);
                    asked.push(At { row, position });
                    targets.push((stayed, weights[stayed as usize] * share));
                }
            }
        }
        (asked, targets)
    }

    /// The tokens of the negatives that are corrected, each to the caption's.
    fn corrected(&self, pools: &[Pool], which: Corrected) -> (Vec<At>, Vec<(u32, f32)>) {
        let (mut asked, mut targets) = (vec![], vec![]);
        for &(number, first) in &self.of {
            let Pool { positive, negatives, .. } = &pools[number];
            let before = asked.len();
            for (row, negative) in (first..).zip(negatives) {
                let is_target = |position: usize| match which {
                    Corrected::Masked => negative.masked[position],
                    Corrected::Changed => positive[position] != negative.tokens[position],
                    Corrected::All => true,
                };
                let of_row = (0..positive.len()).filter(|&position| is_target(position));
                asked.extend(of_row.map(|position| At { row, position }));
            }
            let weight = 1.0 / ((asked.len() - before) * pools.len()) as f32;
            targets.extend(asked[before..].iter().map(|at| (positive[at.position], weight)));
        }
        (asked, targets)
    }
}

/// Σ w · max(a − s_p + s_n, 0) over (p, n, w), and the share that is above 0.
pub(super) fn hinge(
    scores: Tensor<1>,
    hinges: &[(usize, usize, f32)],
    margin: f64,
) -> (Tensor<1>, f64) {
    if hinges.is_empty() {
        return (scores.sum() * 0.0, 0.0); // no negative: no loss, and no NaN
    }
    let [n] = scores.dims();
    let device = scores.device();
    let table = scores.reshape([n, 1]);
    let of = |side: fn(&(usize, usize, f32)) -> usize| {
        let ids: Vec<u32> = hinges.iter().map(|hinge| side(hinge) as u32).collect();
        embedding(table.clone(), &ids, None)
    };
    let each = relu(of(|h| h.1) - of(|h| h.0) + margin); // [hinges, 1]
    let above = host(each.clone().inner()).into_iter().filter(|&x| x > 0.0).count();
    let weights: Vec<f32> = hinges.iter().map(|hinge| hinge.2).collect();
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [hinges.len(), 1]), &device);
    ((each * weights).sum(), above as f64 / hinges.len() as f64)
}

/// Σ w · (−log softmax(row)_y) over the rows' (y, w), no log-probability taken below `least`.
pub(super) fn cross_entropy(
    logits: Tensor<2>,
    targets: &[(u32, f32)],
    least: Option<f64>,
) -> Tensor<1> {
    let [n, v] = logits.dims();
    let device = logits.device();
    let flat: Vec<u32> =
        targets.iter().enumerate().map(|(row, &(label, _))| (row * v) as u32 + label).collect();
    let picked = embedding(log_softmax(logits, 1).reshape([n * v, 1]), &flat, None);
    let picked = match least {
        Some(least) => picked.clamp_min(least),
        None => picked,
    };
    let weights: Vec<f32> = targets.iter().map(|target| -target.1).collect();
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [n, 1]), &device);
    (picked * weights).sum()
}

/// The share of rows, `[targets, _]`, whose largest logit is their target's.
pub(super) fn share_right(logits: &[f32], targets: &[(u32, f32)]) -> f64 {
    let v = logits.len() / targets.len().max(1);
    let right = logits.chunks_exact(v.max(1)).zip(targets).filter(|(row, (label, _))| {
        let own = row[*label as usize];
        row.iter().all(|&other| other <= own)
    });
    right.count() as f64 / targets.len().max(1) as f64
}
