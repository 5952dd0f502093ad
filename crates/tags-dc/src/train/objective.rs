//! Losses of a step, differentiable: Eq. 1 (masked words) and Eq. 3 to 5 (retrieved pairs).

use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Tensor, TensorData};
use itm_core::data::Regions;
use itm_core::encoders::TokenBatch;
use itm_core::learn::{Items, Numbers};
use itm_core::{Result, host};
use itm_kernels::{Noise, embedding};

use super::Marks;
use super::retrieval::{Anchors, numbered};
use crate::Masked;
use crate::config::LossConfig;
use crate::model::{At, RegionBatch, Uniter};

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

    /// Eq. 1: the mean over all targets of an anchor, the mean over the anchors.
    ///
    /// ```text
    /// L_MLM = 1/b Σ_anchors 1/Σ_k|P_k| Σ_{k, p ∈ P_k} −log softmax(a_{k,p})_{y_p}
    /// ```
    pub(super) fn masked(
        &mut self,
        model: &Uniter,
        anchors: &[(usize, Vec<Masked>)],
        regions: &Regions,
        weight: f64,
        noise: Noise,
    ) -> Result<()> {
        let images: Vec<usize> = anchors.iter().map(|(image, _)| *image).collect();
        let (images, rows) = numbered(&images);
        let embedded = model.embed_regions(&RegionBatch::of(regions, &images)?);
        let (mut texts, mut beside, mut asked, mut targets) = (vec![], vec![], vec![], vec![]);
        for ((_, maskings), &row) in anchors.iter().zip(&rows) {
            let all: usize = maskings.iter().map(|masked| masked.targets().count()).sum();
            for masked in maskings {
                for position in masked.targets() {
                    asked.push(At { row: texts.len(), position });
                    let label = masked.labels[position].expect("a target has a label");
                    targets.push((label, 1.0 / (all * anchors.len()) as f32));
                }
                texts.push(&masked.ids[..]);
                beside.push(row);
            }
        }
        let joint = model.join(&TokenBatch::new(&texts), &embedded, &beside, noise);
        let logits = model.word_logits(&joint, &asked);
        let (loss, right) = cross_entropy(logits, &targets);
        self.numbers.add(&Numbers::from([("words_right", right)]));
        self.add("mlm", weight, loss);
        Ok(())
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

/// Σ w · (−log softmax(row)_y) over the rows' (y, w), and the share of rows whose largest logit is y.
pub(super) fn cross_entropy(logits: Tensor<2>, targets: &[(u32, f32)]) -> (Tensor<1>, f64) {
    let [n, v] = logits.dims();
    let device = logits.device();
    let values = host(logits.clone().inner());
    let right = values.chunks_exact(v).zip(targets).filter(|(row, (label, _))| {
        let own = row[*label as usize];
        row.iter().all(|&other| other <= own)
    });
    let share = right.count() as f64 / n.max(1) as f64;
    let flat: Vec<u32> =
        targets.iter().enumerate().map(|(row, &(label, _))| (row * v) as u32 + label).collect();
    let picked = embedding(log_softmax(logits, 1).reshape([n * v, 1]), &flat, None);
    let weights: Vec<f32> = targets.iter().map(|target| -target.1).collect();
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [n, 1]), &device);
    ((picked * weights).sum(), share)
}
