//! Losses of a step: which rows of a UNITER go into Eq. 1, 5 and 7 to 9. The equations are in [`losses`].

use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;
use itm_core::data::Regions;
use itm_core::encoders::TokenBatch;
use itm_core::learn::{Items, Numbers};
use itm_core::{Error, Result, host};
use itm_kernels::Noise;

use super::retrieval::Anchors;
use super::synthetic::TextMaskings;
use super::{Marks, Pool, PoolRows};
use crate::config::{LossConfig, RankingLoss};
use crate::model::{Joint, RegionBatch, Uniter, numbered};
use crate::{Masking, accuracy, losses};

/// The weighted sum of a step's losses, and its numbers.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) value: Option<Tensor<1>>,
    pub(super) numbers: Numbers,
    /// Share of the retrieved negatives that are too high: hinges that pull, or negatives above the true pair.
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

    /// Eq. 5: the mean hinge of each anchor, averaged over the anchors of a kind, and summed over both kinds. With
    /// [`RankingLoss::CrossEntropy`], here and in Eq. 7, an anchor has one loss in place of its hinges.
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
        let (mut pairs, mut triplets, mut per_anchor) = (vec![], vec![], vec![]);
        for anchor in &anchors.0 {
            let positive = pairs.len();
            pairs.push((anchor.image, anchor.text));
            pairs.extend(&anchor.negatives);
            triplets.extend((positive + 1..pairs.len()).map(|negative| [positive, negative]));
            per_anchor.push(pairs.len() - positive - 1);
        }
        let (images, texts): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let marked: Vec<_> = texts.iter().map(|&text| marks.around(&train.texts[text])).collect();
        model.shape.check_texts(&marked, |row| format!("caption {}", texts[row]))?;
        let (images, rows) = numbered(&images);
        let embedded = model.embed_regions(&RegionBatch::of(regions, &images)?);
        let joint = model.join(&TokenBatch::new(&marked), &embedded, &rows, noise);
        let both = ranked(model.match_logits(&joint), &triplets, &per_anchor, config);
        let (mean, active) = both.map_err(Error::inside("loss.itm"))?;
        let loss = mean * 2.0; // each kind has half of the anchors
        self.active = active;
        self.add("itm", config.itm, loss);
        Ok(())
    }

    /// Eq. 1: the mean over all targets of a caption, then over the captions. Without regions the captions are alone. Returns the logits,
    /// `[targets, tokens]`.
    ///
    /// ```text
    /// L_MLM = 1/b Σ_captions 1/Σ_k|P_k| Σ_{k, p ∈ P_k} −log softmax(a_{k,p})_{y_p}
    /// ```
    pub(super) fn masked(
        &mut self,
        model: &Uniter,
        captions: &[TextMaskings],
        regions: Option<&Regions>,
        weight: f64,
        noise: Noise,
    ) -> Result<Vec<f32>> {
        let logits = word_logits(model, captions, regions, noise)?;
        let values = host(logits.clone().inner());
        let labels = captions.iter().flat_map(|caption| &caption.rows).flat_map(|row| &row.labels);
        let words: Vec<u32> = labels.flatten().copied().collect();
        let per_anchor: Vec<usize> = captions.iter().map(TextMaskings::targets).collect();
        let loss =
            losses::masked_words(logits, &words, &per_anchor).map_err(Error::inside("loss.mlm"))?;
        self.numbers.add(&Numbers::from([("words_right", accuracy(&values, &words)?)]));
        self.add("mlm", weight, loss);
        Ok(values)
    }

    /// Eq. 7 to 9: each is the mean over a pool, then over the captions. A caption whose pool is empty counts as 0.
    ///
    /// ```text
    /// L_ISTM = 1/b Σ_captions 1/m Σ_t max(a − s(I,T) + s(I,T⁻_t), 0)
    /// L_WoD  = 1/b Σ_captions 1/(m |T|) Σ_{t,j} −w_G max(log softmax(d_tj)_G, log 1e-10)
    /// L_WoC  = 1/b Σ_captions 1/#targets Σ_{t,j} −max(log softmax(c_tj)_{T_j}, log 1e-10)
    /// ```
    ///
    /// With `share` one pass serves all three losses. Without it the word losses have their own pass, with the second noise.
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
            return Ok(()); // without survivors: no loss, and no NaN
        }
        let (images, of) = numbered(&rows.images);
        let embedded = model.embed_regions(&RegionBatch::of(regions, &images)?);
        let texts = TokenBatch::new(&rows.texts);
        let positives = if released { &rows.positives[..] } else { &[] };
        let first = model.join_as_released(&texts, &embedded, &of, noise[0], positives);
        if config.istm > 0.0 {
            let (triplets, per_anchor) = rows.triplets();
            let logits = model.match_logits(&first);
            let values = host(sigmoid(logits.clone().inner()));
            let loss = ranked(logits, &triplets, &per_anchor, config);
            let (loss, active) = loss.map_err(Error::inside("loss.istm"))?;
            let gap = gap(&values, &triplets);
            self.numbers.add(&Numbers::from([("istm_active", active), ("istm_gap", gap)]));
            self.add("istm", config.istm, loss);
        }
        if config.words() {
            let joint = match share {
                true => first,
                false => model.join(&texts, &embedded, &of, noise[1]),
            };
            self.words(model, &joint, &rows, config)?;
        }
        Ok(())
    }

    /// Eq. 8 and 9 for the rows of the negatives.
    fn words(
        &mut self,
        model: &Uniter,
        joint: &Joint,
        rows: &PoolRows,
        config: &LossConfig,
    ) -> Result<()> {
        if config.wod > 0.0 {
            let (asked, classes, per_anchor) = rows.discriminated()?;
            let logits = model.discrimination_logits(joint, &asked);
            let values = host(logits.clone().inner());
            let weights = config.wod_weights;
            let loss = losses::discrimination(logits, &classes, &per_anchor, weights);
            let loss = loss.map_err(Error::inside("loss.wod"))?;
            self.numbers.add(&Numbers::from([("wod_right", accuracy(&values, &classes)?)]));
            self.add("wod", config.wod, loss);
        }
        if config.woc == 0.0 {
            return Ok(());
        }
        let (asked, words, per_anchor) = rows.corrected(config.woc_targets)?;
        if !asked.is_empty() {
            let logits = model.correction_logits(joint, &asked);
            let values = host(logits.clone().inner());
            let loss = losses::correction(logits, &words, &per_anchor);
            let loss = loss.map_err(Error::inside("loss.woc"))?;
            self.numbers.add(&Numbers::from([("woc_right", accuracy(&values, &words)?)]));
            self.add("woc", config.woc, loss);
        }
        Ok(())
    }
}

/// The loss of the true pairs above their negatives, and the share of the negatives that are still too high.
fn ranked(
    logits: Tensor<1>,
    triplets: &[[usize; 2]],
    per_anchor: &[usize],
    config: &LossConfig,
) -> Result<(Tensor<1>, f64)> {
    match config.ranking {
        RankingLoss::Hinge => losses::hinges(sigmoid(logits), triplets, per_anchor, config.margin),
        RankingLoss::CrossEntropy => losses::cross_entropy(logits, triplets, per_anchor),
    }
}

/// The mean of `s(I, T⁻) − s(I, T)` over triplets: Figure 3.
fn gap(scores: &[f32], triplets: &[[usize; 2]]) -> f64 {
    let of = |&[caption, negative]: &[usize; 2]| {
        f64::from(scores[negative]) - f64::from(scores[caption])
    };
    triplets.iter().map(of).sum::<f64>() / triplets.len() as f64
}

/// Logits at all targets of all maskings, `[targets, tokens]`, caption after caption: beside their images, or alone.
///
/// # Errors
/// If a region cannot be read.
pub(super) fn word_logits(
    model: &Uniter,
    captions: &[TextMaskings],
    regions: Option<&Regions>,
    noise: Noise,
) -> Result<Tensor<2>> {
    let rows: Vec<&Masking> = captions.iter().flat_map(|caption| &caption.rows).collect();
    let image = |caption: &TextMaskings| vec![caption.image; caption.rows.len()];
    let (images, of) = numbered(&captions.iter().flat_map(image).collect::<Vec<_>>());
    let batch = regions.map(|regions| RegionBatch::of(regions, &images)).transpose()?;
    let embedded = batch.map(|batch| model.embed_regions(&batch));
    let beside = embedded.as_ref().map(|embedded| (embedded, &of[..]));
    Ok(model.target_logits(&rows, beside, noise))
}
