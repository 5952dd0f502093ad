//! Compares the negatives of a training step with the ground truth: pure functions over what a step reports.
//!
//! These functions need data with a known truth (the built-in scenes): a [`Relevance`] of the images and captions that the
//! numbers of a step stand for. Only the caller of a step has the truth: a method never sees it.

mod candidates;
mod draws;

use crate::Relevance;
use crate::tiles::Side;

pub use candidates::{Candidates, Detection, ReliabilityBin};
pub use draws::{Draws, Shares};

/// A pair: the numbers of an image and of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairIds {
    /// Image id.
    pub image: i64,
    /// Caption number.
    pub caption: i64,
}

/// The negatives of one direction in one step: the candidates of each anchor, and how much the step used each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct NegativeSet {
    /// The side of the anchors. The candidates are on the other.
    pub side: Side,
    /// The pair of each anchor, `[b]`.
    pub anchors: Vec<PairIds>,
    /// The pair of each candidate, `[n]`; `None` for a bank row that was never written.
    pub candidates: Vec<Option<PairIds>>,
    /// Similarities, `[b, n]`.
    pub scores: Vec<f32>,
    /// Similarity of each anchor to its partner, `[b]`.
    pub positive: Vec<f32>,
    /// Whether a candidate is masked as a negative of an anchor, `[b, n]`.
    pub excluded: Vec<bool>,
    /// How much each candidate pulls, `[b, n]`: 1 for the only negative of its anchor; in a sum over hinges, 1 or a factor
    /// where a hinge is positive; 0 where nothing pulls. The weight of a masked candidate does not count.
    pub weights: Vec<f32>,
    /// Margin γ of the hinge by which candidates are compared.
    pub margin: f64,
    /// The weights of other ways to draw from the same candidates, `[b, n]` each, by name.
    pub others: Vec<(&'static str, Vec<f32>)>,
    /// The candidates that a posterior must separate, as `anchor · n + candidate`, each with its log-likelihood ratio
    /// `ln f(s|c) − ln f(s|c̄)`. Empty without a posterior.
    pub log_ratios: Vec<(usize, f64)>,
}

impl NegativeSet {
    /// Both directions of a loss over the pairs of a batch, images as anchors first.
    ///
    /// | argument | what | shape |
    /// |---|---|---|
    /// | `ids` | image ids and caption numbers | `[b]` each |
    /// | `scores` | images × texts, matched pairs on the diagonal | `[b, b]` |
    /// | `masked` | whether other captions of the same image are no negatives | |
    /// | `weights` | as [`weights`](Self::weights), anchors in rows | `[b, b]` each |
    ///
    /// # Panics
    /// If there is not one caption number per image id, or not one score per pair of both.
    pub fn in_batch(
        ids: [&[i64]; 2],
        scores: &[f32],
        masked: bool,
        weights: [Vec<f32>; 2],
        margin: f64,
    ) -> [Self; 2] {
        let ([images, captions], b) = (ids, ids[0].len());
        assert_eq!((captions.len(), scores.len()), (b, b * b), "{b} captions, {b} × {b} scores");
        let pair = |i: usize| PairIds { image: images[i], caption: captions[i] };
        let anchors: Vec<PairIds> = (0..b).map(pair).collect();
        let excluded = |k: usize| k / b == k % b || masked && images[k / b] == images[k % b];
        let excluded: Vec<bool> = (0..b * b).map(excluded).collect();
        let positive: Vec<f32> = (0..b).map(|i| scores[i * b + i]).collect();
        let turned = (0..b * b).map(|k| scores[k % b * b + k / b]).collect();
        let [of_images, of_texts] = weights;
        let of = |side, scores, weights| Self {
            side,
            candidates: anchors.iter().copied().map(Some).collect(),
            anchors: anchors.clone(),
            scores,
            positive: positive.clone(),
            excluded: excluded.clone(),
            weights,
            margin,
            others: vec![],
            log_ratios: vec![],
        };
        [of(Side::Images, scores.to_vec(), of_images), of(Side::Texts, turned, of_texts)]
    }

    /// The fields are public, so the parts may have any sizes.
    fn check(&self) {
        let (b, n) = (self.anchors.len(), self.candidates.len());
        let got = [self.scores.len(), self.excluded.len(), self.positive.len()];
        let fit = got == [b * n, b * n, b];
        assert!(fit, "{b} anchors and {n} candidates with {got:?} scores, masks and positives");
        let most = self.log_ratios.iter().map(|&(k, _)| k).max();
        let is_score = most.is_none_or(|most| most < b * n);
        assert!(is_score, "a log-ratio of score {most:?} of {}", b * n);
    }

    /// Whether candidate `j` matches anchor `i`; an unwritten row matches nothing.
    fn is_true(&self, i: usize, j: usize, truth: &Relevance) -> bool {
        let anchor = self.anchors[i];
        self.candidates[j].is_some_and(|candidate| {
            let (image, caption) = match self.side {
                Side::Images => (anchor.image, candidate.caption),
                Side::Texts => (candidate.image, anchor.caption),
            };
            truth.contains(image as usize, caption as usize)
        })
    }

    /// Sums over the anchors of this direction: for the negatives that the step used, for uniformly drawn ones, for the most
    /// violating candidates and for the other ways to draw.
    ///
    /// ```text
    /// sum = b · mean over rows i of  Σ_j w_ij · true_ij / Σ_j w_ij      j over the candidates that are not masked
    /// ```
    ///
    /// with the weights w of a way to draw. A row without weight is left out of the mean.
    ///
    /// # Panics
    /// If the parts do not fit together, a weight is not finite, a hinge is NaN, or the truth has no such image or text.
    pub fn draws(&self, truth: &Relevance) -> Draws {
        self.check();
        let (b, n) = (self.anchors.len(), self.candidates.len());
        let anchors = b as f64;
        let is_true: Vec<bool> = (0..b * n).map(|k| self.is_true(k / n, k % n, truth)).collect();
        let sum = |weights: &[f32]| anchors * self.true_share(weights, &is_true);
        let hardest = self.hardest().into_iter().enumerate().map(|(i, j)| i * n + j);
        let hardest = hardest.filter(|&k| self.excluded.get(k) == Some(&false));
        let hardest = hardest.map(|k| f64::from(u8::from(is_true[k])));
        Draws {
            anchors,
            drawn: sum(&self.weights),
            uniform: sum(&vec![1.0; b * n]),
            hardest: anchors * mean(hardest).unwrap_or(0.0),
            others: self.others.iter().map(|(name, w)| ((*name).to_owned(), sum(w))).collect(),
            others_anchors: if self.others.is_empty() { 0.0 } else { anchors },
        }
    }

    /// Expected share of true candidates under a draw by `weights`, `[b, n]`.
    fn true_share(&self, weights: &[f32], is_true: &[bool]) -> f64 {
        assert_eq!(weights.len(), self.scores.len(), "one weight per score");
        let n = self.candidates.len();
        let share = |i: usize| {
            let (mut all, mut of_true) = (0.0, 0.0);
            for k in i * n..(i + 1) * n {
                // Most weights of a draw are 0: they are not worth an addition.
                if weights[k] == 0.0 {
                    continue;
                }
                assert!(weights[k].is_finite(), "weights, got {}", weights[k]);
                let weight = if self.excluded[k] { 0.0 } else { f64::from(weights[k]) };
                all += weight;
                of_true += if is_true[k] { weight } else { 0.0 };
            }
            (all > 0.0).then(|| of_true / all)
        };
        mean((0..self.anchors.len()).filter_map(share)).unwrap_or(0.0)
    }

    /// The candidates that a posterior must separate, each with its truth.
    ///
    /// # Panics
    /// If the parts do not fit together, a log-ratio is NaN, or the truth has no such image or text.
    pub fn candidates(&self, truth: &Relevance) -> Candidates {
        let n = self.candidates.len();
        self.check();
        let mut candidates = Candidates::default();
        for &(k, log_ratio) in &self.log_ratios {
            candidates.push(log_ratio, self.is_true(k / n, k % n, truth));
        }
        candidates
    }

    /// For each anchor, the first candidate with the largest hinge `[γ + s − s⁺]₊`; the hinge of a masked candidate counts
    /// as 0. If no hinge is active, column 0.
    ///
    /// # Panics
    /// If the parts do not fit together, or a hinge is NaN.
    pub fn hardest(&self) -> Vec<usize> {
        let n = self.candidates.len();
        self.check();
        let of_row = |i: usize| {
            let slack = self.margin as f32 - self.positive[i];
            let row = i * n..(i + 1) * n;
            let (scores, excluded) = (&self.scores[row.clone()], &self.excluded[row]);
            let is_nan = |j: usize| !excluded[j] && (slack + scores[j]).is_nan();
            assert!(!(0..n).any(is_nan), "hinge of anchor {i}, got NaN");
            hardest(scores, slack, |j| excluded[j])
        };
        (0..self.anchors.len()).map(of_row).collect()
    }
}

/// The first candidate of an anchor with the largest hinge `[γ + s − s⁺]₊`, where `slack` is `γ − s⁺`; the hinge of an excluded
/// candidate counts as 0. If no hinge is above 0, candidate 0.
///
/// ```
/// use itm_core::audit::hardest;
///
/// assert_eq!(hardest(&[0.9, 0.4, 0.8, 0.8], -0.7, |j| j == 0), 2);
/// assert_eq!(hardest(&[0.9, 0.4, 0.8, 0.8], -0.8, |j| j == 0), 0);
/// ```
pub fn hardest(scores: &[f32], slack: f32, is_excluded: impl Fn(usize) -> bool) -> usize {
    let (mut best, mut column) = (0.0, 0);
    for (j, &s) in scores.iter().enumerate() {
        if slack + s > best && !is_excluded(j) {
            (best, column) = (slack + s, j);
        }
    }
    column
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0usize), |(sum, n), x| (sum + x, n + 1));
    (n > 0).then(|| sum / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captions 10, 20 and 30 belong to images 1, 2 and 3; caption 30 is true of image 1, too.
    fn truth() -> Relevance {
        Relevance::new(31, vec![vec![], vec![10, 30], vec![20], vec![30]])
    }

    fn negatives() -> NegativeSet {
        let pair = |image| PairIds { image, caption: 10 * image };
        NegativeSet {
            side: Side::Images,
            anchors: vec![pair(1), pair(2)],
            candidates: vec![Some(pair(1)), Some(pair(2)), Some(pair(3)), None],
            scores: vec![0.9, 0.4, 0.8, 0.1, /* image 2 */ 0.5, 0.9, 0.3, 0.0],
            positive: vec![0.9, 0.9],
            excluded: vec![true, false, false, false, /* image 2 */ false, true, false, false],
            weights: vec![0.0, 0.0, 1.0, 0.0, /* image 2 */ 1.0, 0.0, 0.0, 0.0],
            margin: 0.2,
            others: vec![("other", vec![0.0, 1.0, 3.0, 0.0, /* image 2 */ 1.0, 0.0, 0.0, 0.0])],
            log_ratios: vec![(2, 1.5), (4, -0.5)],
        }
    }

    /// By hand. Row 1 has {20, 30, −}, and 30 is true; row 2 has {10, 30, −}, and none is true.
    #[test]
    fn golden_shares() {
        // Hinges at γ = 0.2: row 1 takes 30 (0.1). Row 2 has none active: column 0, not true.
        let o = negatives();
        assert_eq!(o.hardest(), [2, 0]);
        let Draws { anchors, drawn, uniform, hardest, others, others_anchors } = o.draws(&truth());
        assert_eq!((anchors, drawn, hardest), (2.0, 1.0, 1.0));
        assert!((uniform - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((others["other"], others_anchors), (0.75, 2.0)); // row 1: 3 of 4; row 2: none
        let mut weak = o.clone();
        weak.scores[4] = 0.1; // row 2: 0.3 is the largest, and 0.2 + 0.3 < 0.9
        assert_eq!(weak.hardest(), [2, 0], "no hinge is active: column 0");
        weak.margin = 0.7;
        assert_eq!(weak.hardest(), [2, 2], "0.7 + 0.3 > 0.9");
        let masked = [1.0, 0.0, 0.0, 0.0, /* image 2 */ 1.0, 0.0, 0.0, 0.0];
        let masked = NegativeSet { weights: masked.into(), ..o.clone() };
        assert_eq!(masked.draws(&truth()).drawn, 0.0, "a masked choice is no draw");
        let mut plain = o;
        plain.others.clear();
        assert_eq!(plain.draws(&truth()).others_anchors, 0.0);
    }

    /// By hand. Row 1: caption 30, the true one, weighs 3 of 1 + 3 + 2; the masked column's 100 do not count. Row 2 has
    /// weight only on its masked column and is left out; with 5 on a false candidate the mean is the mean of 0.5 and 0.
    #[test]
    fn golden_expected_share() {
        let mut o = negatives();
        o.weights = vec![100.0, 1.0, 3.0, 2.0, /* image 2 */ 0.0, 7.0, 0.0, 0.0];
        assert_eq!(o.draws(&truth()).drawn, 2.0 * 0.5);
        o.weights[4] = 5.0;
        assert_eq!(o.draws(&truth()).drawn, 2.0 * 0.25);
        o.weights.fill(0.0);
        assert_eq!(o.draws(&truth()).drawn, 0.0);
    }

    /// A step whose bank is still empty has anchors and no candidate.
    #[test]
    fn without_candidates_nothing_is_drawn() {
        let none = NegativeSet {
            candidates: vec![],
            scores: vec![],
            excluded: vec![],
            weights: vec![],
            others: vec![],
            log_ratios: vec![],
            ..negatives()
        };
        assert_eq!(none.draws(&truth()).drawn, 0.0);
        assert_eq!(none.candidates(&truth()), Candidates::default());
        let odd = NegativeSet { log_ratios: vec![(0, 1.0)], ..none };
        assert!(std::panic::catch_unwind(|| odd.candidates(&truth())).is_err());
    }

    /// The line of the panic over a set that was changed.
    fn refused(change: fn(&mut NegativeSet)) -> String {
        let mut o = negatives();
        change(&mut o);
        let panic = std::panic::catch_unwind(|| o.draws(&truth())).unwrap_err();
        *panic.downcast::<String>().unwrap()
    }

    #[test]
    fn weights_that_are_not_finite_are_refused() {
        assert_eq!(refused(|o| o.weights[2] = f32::INFINITY), "weights, got inf");
        assert_eq!(refused(|o| o.weights[2] = f32::NAN), "weights, got NaN");
        assert_eq!(refused(|o| o.others[0].1[1] = f32::NEG_INFINITY), "weights, got -inf");
    }

    #[test]
    fn a_hinge_of_nan_is_refused() {
        assert_eq!(refused(|o| o.scores[6] = f32::NAN), "hinge of anchor 1, got NaN");
        assert_eq!(refused(|o| o.positive[1] = f32::NAN), "hinge of anchor 1, got NaN");
        assert_eq!(refused(|o| o.margin = f64::NAN), "hinge of anchor 0, got NaN");
        let mut o = negatives();
        o.scores[0] = f32::NAN;
        assert_eq!(o.draws(&truth()), negatives().draws(&truth()), "a masked score does not count");
    }

    /// The same pairs seen from the other side.
    #[test]
    fn texts_as_anchors_ask_for_their_own_caption() {
        let mut o = negatives();
        o.side = Side::Texts;
        assert!(!o.is_true(0, 2, &truth()), "caption 10 is not true of image 3");
        o.anchors[0] = PairIds { image: 3, caption: 30 };
        assert!(o.is_true(0, 0, &truth()), "caption 30 is true of image 1");
        assert!(!o.is_true(0, 3, &truth()), "an unwritten row matches nothing");
    }

    /// Captions 30 (true of image 1) and 10 (false of image 2) have a ratio: any posterior tells them apart.
    #[test]
    fn candidates_are_counted_by_their_truth() {
        let candidates = negatives().candidates(&truth());
        assert_eq!((candidates.count(), candidates.auc()), (2, Some(1.0)));
        let mut turned = negatives();
        turned.log_ratios = vec![(2, -0.5), (4, 1.5)];
        assert_eq!(turned.candidates(&truth()).auc(), Some(0.0));
    }

    /// Pairs 0 and 1 are of one image. Each direction has its anchors in rows.
    #[test]
    fn a_batch_is_its_own_pool() {
        let scores = [0.9, 0.1, 0.2, 0.3, 0.8, 0.4, 0.5, 0.6, 0.7];
        let weights = [1.0, 2.0].map(|w| vec![w; 9]);
        for masked in [false, true] {
            let ids: [&[i64]; 2] = [&[4, 4, 5], &[40, 41, 50]];
            let [i2t, t2i] = NegativeSet::in_batch(ids, &scores, masked, weights.clone(), 0.2);
            assert_eq!((i2t.side, t2i.side), (Side::Images, Side::Texts));
            assert_eq!(i2t.scores, scores);
            assert_eq!(t2i.scores, [0.9, 0.3, 0.5, 0.1, 0.8, 0.6, 0.2, 0.4, 0.7]);
            assert_eq!((i2t.positive, t2i.positive.clone()), (t2i.positive, vec![0.9, 0.8, 0.7]));
            assert_eq!(i2t.candidates[1], Some(PairIds { image: 4, caption: 41 }));
            let m = masked;
            assert_eq!(i2t.excluded, [true, m, false, m, true, false, false, false, true]);
            assert_eq!([i2t.weights, t2i.weights], weights);
        }
    }
}
