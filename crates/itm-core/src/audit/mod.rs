//! Compares the training pairs of a method with the ground truth: pure functions over the candidates and choices of a step.
//!
//! These functions need data with a known truth (the built-in scenes). `truth(image, caption)` says whether a caption is
//! true of an image. Their results must never influence training.

mod candidates;
mod draws;

pub use candidates::{Candidates, Detection, ReliabilityBin};
pub use draws::{Draws, Shares};

/// Which side the anchors are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Anchors are images, candidates texts.
    ImageToText,
    /// Anchors are texts, candidates images.
    TextToImage,
}

/// A pair: the numbers of an image and of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Image id.
    pub image: i64,
    /// Caption number.
    pub caption: i64,
}

/// The candidates of one direction in one step, and the chosen ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Which side the anchors are on.
    pub direction: Direction,
    /// The pair of each anchor, `[b]`.
    pub anchors: Vec<Pair>,
    /// The pair of each candidate, `[n]`; `None` for a bank row that was never written.
    pub candidates: Vec<Option<Pair>>,
    /// Similarities, `[b, n]`.
    pub scores: Vec<f32>,
    /// Similarity of each anchor to its partner, `[b]`.
    pub positive: Vec<f32>,
    /// Whether a candidate is masked as a negative of an anchor, `[b, n]`.
    pub excluded: Vec<bool>,
    /// The column chosen for each anchor, `[b]`. A loss over several negatives per anchor has no such column: see
    /// [`expected_true_share`](Self::expected_true_share).
    pub chosen: Vec<usize>,
}

impl Observed {
    /// Whether candidate `j` is masked for anchor `i`.
    pub fn excluded(&self, i: usize, j: usize) -> bool {
        self.excluded[i * self.candidates.len() + j]
    }

    /// Whether candidate `j` matches anchor `i`; an unwritten row matches nothing.
    pub fn is_true(&self, i: usize, j: usize, truth: &impl Fn(i64, i64) -> bool) -> bool {
        self.candidates[j].is_some_and(|c| match self.direction {
            Direction::ImageToText => truth(self.anchors[i].image, c.caption),
            Direction::TextToImage => truth(c.image, self.anchors[i].caption),
        })
    }

    /// Sums over the anchors of this direction: for the chosen, a uniformly drawn and the most violating candidate.
    pub fn draws(&self, margin: f64, truth: &impl Fn(i64, i64) -> bool) -> Draws {
        let anchors = self.anchors.len() as f64;
        Draws {
            anchors,
            drawn: anchors * self.drawn_true_share(truth),
            uniform: anchors * self.uniform_true_share(truth),
            hardest: anchors * self.hardest_true_share(margin, truth),
            ..Draws::default()
        }
    }

    /// Share of rows whose chosen candidate is true, among rows whose choice is not masked.
    pub fn drawn_true_share(&self, truth: &impl Fn(i64, i64) -> bool) -> f64 {
        self.share_of(&self.chosen, truth)
    }

    /// Expected share of true candidates under a uniform draw: the mean over rows of the share among
    /// the candidates that are not masked.
    pub fn uniform_true_share(&self, truth: &impl Fn(i64, i64) -> bool) -> f64 {
        self.expected_true_share(&vec![1.0; self.scores.len()], truth)
    }

    /// Expected share of true candidates under a draw by `weights`, `[b, n]`.
    ///
    /// ```text
    /// share = mean over rows i of  Σ_j w_ij · true_ij / Σ_j w_ij      j over the candidates that are not masked
    /// ```
    ///
    /// A row without weight is left out. To audit a loss that sums over hinges, give weight 1 where a hinge is positive.
    ///
    /// # Panics
    /// If there is not one weight per score.
    pub fn expected_true_share(&self, weights: &[f32], truth: &impl Fn(i64, i64) -> bool) -> f64 {
        assert_eq!(weights.len(), self.scores.len(), "one weight per score");
        let n = self.candidates.len();
        let share = |i: usize| {
            let (mut all, mut of_true) = (0.0, 0.0);
            for j in (0..n).filter(|&j| !self.excluded(i, j)) {
                let weight = f64::from(weights[i * n + j]);
                all += weight;
                of_true += if self.is_true(i, j, truth) { weight } else { 0.0 };
            }
            (all > 0.0).then(|| of_true / all)
        };
        mean((0..self.anchors.len()).filter_map(share)).unwrap_or(0.0)
    }

    /// Share of rows whose most violating candidate is true.
    pub fn hardest_true_share(&self, margin: f64, truth: &impl Fn(i64, i64) -> bool) -> f64 {
        self.share_of(&self.hardest(margin), truth)
    }

    /// For each anchor, the first candidate with the largest hinge `[γ + s − s⁺]₊`; the hinge of a masked candidate counts
    /// as 0. If no hinge is active, column 0.
    pub fn hardest(&self, margin: f64) -> Vec<usize> {
        let n = self.candidates.len();
        let of_row = |i: usize| {
            let (mut best, mut column) = (0.0, 0);
            let slack = margin as f32 - self.positive[i];
            for (j, &s) in self.scores[i * n..(i + 1) * n].iter().enumerate() {
                if slack + s > best && !self.excluded(i, j) {
                    (best, column) = (slack + s, j);
                }
            }
            column
        };
        (0..self.anchors.len()).map(of_row).collect()
    }

    /// Score and truth of the candidates that are not masked and are more similar than `cut`.
    pub fn above<'a>(
        &'a self,
        cut: f32,
        truth: &'a impl Fn(i64, i64) -> bool,
    ) -> impl Iterator<Item = (f32, bool)> + 'a {
        let n = self.candidates.len();
        self.scores.iter().enumerate().filter_map(move |(k, &s)| {
            let (i, j) = (k / n, k % n);
            (s > cut && !self.excluded(i, j)).then(|| (s, self.is_true(i, j, truth)))
        })
    }

    fn share_of(&self, columns: &[usize], truth: &impl Fn(i64, i64) -> bool) -> f64 {
        let kept = columns.iter().enumerate().filter(|&(i, &j)| !self.excluded(i, j));
        mean(kept.map(|(i, &j)| f64::from(u8::from(self.is_true(i, j, truth))))).unwrap_or(0.0)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0usize), |(sum, n), x| (sum + x, n + 1));
    (n > 0).then(|| sum / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captions 10, 20 and 30 belong to images 1, 2 and 3; caption 30 is true of image 1, too.
    fn truth(image: i64, caption: i64) -> bool {
        image == caption / 10 || (image, caption) == (1, 30)
    }

    fn observed() -> Observed {
        let pair = |image| Pair { image, caption: 10 * image };
        Observed {
            direction: Direction::ImageToText,
            anchors: vec![pair(1), pair(2)],
            candidates: vec![Some(pair(1)), Some(pair(2)), Some(pair(3)), None],
            scores: vec![0.9, 0.4, 0.8, 0.1, /* image 2 */ 0.5, 0.9, 0.3, 0.0],
            positive: vec![0.9, 0.9],
            excluded: vec![true, false, false, false, /* image 2 */ false, true, false, false],
            chosen: vec![2, 0],
        }
    }

    /// By hand. Row 1 has {20, 30, −}, and 30 is true; row 2 has {10, 30, −}, and none is true.
    #[test]
    fn golden_shares() {
        let o = observed();
        assert_eq!(o.drawn_true_share(&truth), 0.5);
        assert!((o.uniform_true_share(&truth) - 1.0 / 6.0).abs() < 1e-12);
        // Hinges at γ = 0.2: row 1 takes 30 (0.1). Row 2 has none active: column 0, not true.
        assert_eq!(o.hardest_true_share(0.2, &truth), 0.5);
        assert_eq!(o.hardest(0.2), [2, 0]);
        let Draws { anchors, drawn, uniform, hardest, .. } = o.draws(0.2, &truth);
        assert_eq!((anchors, drawn, hardest), (2.0, 1.0, 1.0));
        assert!((uniform - 1.0 / 3.0).abs() < 1e-12);
        let mut weak = o.clone();
        weak.scores[4] = 0.1; // row 2: 0.3 is the largest, and 0.2 + 0.3 < 0.9
        assert_eq!(weak.hardest(0.2), [2, 0], "no hinge is active: column 0");
        assert_eq!(weak.hardest(0.7), [2, 2], "0.7 + 0.3 > 0.9");
        let mut masked = o.clone();
        masked.chosen = vec![0, 0];
        assert_eq!(masked.drawn_true_share(&truth), 0.0, "a masked choice is no draw");
    }

    /// By hand. Row 1: caption 30, the true one, weighs 3 of 1 + 3 + 2; the masked column's 100 do not count. Row 2 has
    /// weight only on its masked column and is left out; with 5 on a false candidate the mean is the mean of 0.5 and 0.
    #[test]
    fn golden_expected_share() {
        let o = observed();
        let mut weights = [100.0, 1.0, 3.0, 2.0, /* image 2 */ 0.0, 7.0, 0.0, 0.0];
        assert_eq!(o.expected_true_share(&weights, &truth), 0.5);
        weights[4] = 5.0;
        assert_eq!(o.expected_true_share(&weights, &truth), 0.25);
        assert_eq!(o.expected_true_share(&[0.0; 8], &truth), 0.0);
    }

    /// The same pairs seen from the other side.
    #[test]
    fn texts_as_anchors_ask_for_their_own_caption() {
        let mut o = observed();
        o.direction = Direction::TextToImage;
        assert!(!o.is_true(0, 2, &truth), "caption 10 is not true of image 3");
        o.anchors[0] = Pair { image: 3, caption: 30 };
        assert!(o.is_true(0, 0, &truth), "caption 30 is true of image 1");
        assert!(!o.is_true(0, 3, &truth), "an unwritten row matches nothing");
    }

    #[test]
    fn survivors_pass_cut_and_mask() {
        let o = observed();
        let got: Vec<_> = o.above(0.4, &truth).collect();
        assert_eq!(got, [(0.8, true), (0.5, false)], "0.4 is cut, 0.9 are masked");
    }
}
