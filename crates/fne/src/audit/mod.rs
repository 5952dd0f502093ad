//! What the sampler did, beside what was true: pure functions over [`Observation`]s.
//!
//! Only data with a known truth (the built-in scenes) can answer them. `truth(image, caption)` says
//! whether a caption is true of an image.

mod candidates;

pub use candidates::{Candidates, Reliability};

use crate::statistics::Snapshot;
use crate::weights::{Excluded, Pool};

/// Which side the anchors are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Anchors are images, candidates texts.
    ImageToText,
    /// Anchors are texts, candidates images.
    TextToImage,
}

/// One side of a pair: numbers of an image and of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Image id.
    pub image: i64,
    /// Caption number.
    pub caption: i64,
}

/// The candidates of one direction in one step, and the choice made.
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
    /// Whether a candidate is no negative of an anchor, `[b, n]`.
    pub excluded: Vec<bool>,
    /// The column chosen for each anchor, `[b]`.
    pub chosen: Vec<usize>,
}

/// Both directions of one step, and the statistics its weights were computed with.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Images as anchors.
    pub image_to_text: Observed,
    /// Texts as anchors.
    pub text_to_image: Observed,
    /// Statistics after this batch, as the weights saw them.
    pub statistics: Snapshot,
}

/// How often the negatives were false ones, over rows whose candidates are not all masked.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Rows looked at.
    pub rows: usize,
    /// Share of chosen candidates that were true.
    pub chosen: f64,
    /// Share expected of a uniform draw among the candidates of other images.
    pub uniform: f64,
    /// Share had each row taken its most violating candidate.
    pub hardest: f64,
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

    /// Share of rows whose chosen candidate was true, among rows whose choice is not masked.
    pub fn drawn_true_share(&self, truth: &impl Fn(i64, i64) -> bool) -> f64 {
        self.share_of(&self.chosen, truth)
    }

    /// Share of true candidates a uniform draw would meet: the mean over rows of the share among
    /// the candidates of other images.
    pub fn uniform_true_share(&self, truth: &impl Fn(i64, i64) -> bool) -> f64 {
        mean((0..self.anchors.len()).filter_map(|i| {
            mean_of_bools(
                (0..self.candidates.len())
                    .filter(|&j| !self.excluded(i, j))
                    .map(|j| self.is_true(i, j, truth)),
            )
        }))
        .unwrap_or(0.0)
    }

    /// Share of rows whose most violating candidate is true.
    pub fn hardest_true_share(&self, margin: f64, truth: &impl Fn(i64, i64) -> bool) -> f64 {
        let pool = Pool {
            scores: &self.scores,
            positive: &self.positive,
            excluded: Excluded::Mask(&self.excluded),
        };
        self.share_of(&pool.hardest(margin), truth)
    }

    /// Scores and truth of the candidates that another image gave and that survive the margin cut
    /// `s > μ⁺ − γ`: those among which the posterior has to tell false negatives.
    pub fn survivors<'a>(
        &'a self,
        statistics: &Snapshot,
        margin: f64,
        truth: &'a impl Fn(i64, i64) -> bool,
    ) -> impl Iterator<Item = (f32, bool)> + 'a {
        let (n, cut) = (self.candidates.len(), (statistics.positive.mean - margin) as f32);
        self.scores.iter().enumerate().filter_map(move |(k, &s)| {
            let (i, j) = (k / n, k % n);
            (s > cut && !self.excluded(i, j)).then(|| (s, self.is_true(i, j, truth)))
        })
    }

    fn share_of(&self, columns: &[usize], truth: &impl Fn(i64, i64) -> bool) -> f64 {
        mean_of_bools(
            columns
                .iter()
                .enumerate()
                .filter(|&(i, &j)| !self.excluded(i, j))
                .map(|(i, &j)| self.is_true(i, j, truth)),
        )
        .unwrap_or(0.0)
    }
}

impl Observation {
    /// The candidates of both directions that survive the margin cut, by their log-likelihood ratio; `None` as long as
    /// there are no more than `min_count` pairs in the statistics, and no posterior.
    pub fn candidates(
        &self,
        margin: f64,
        min_count: u64,
        truth: &impl Fn(i64, i64) -> bool,
    ) -> Option<Candidates> {
        let posterior = self.statistics.posterior(0.5, min_count)?; // a prior of one half adds no odds
        let mut candidates = Candidates::default();
        for side in [&self.image_to_text, &self.text_to_image] {
            for (score, is_true) in side.survivors(&self.statistics, margin, truth) {
                candidates.push(posterior.log_odds(f64::from(score)), is_true);
            }
        }
        Some(candidates)
    }

    /// The three shares over both directions.
    pub fn shares(&self, margin: f64, truth: &impl Fn(i64, i64) -> bool) -> Shares {
        let sides = [&self.image_to_text, &self.text_to_image];
        let both = |f: &dyn Fn(&Observed) -> f64| sides.iter().map(|o| f(o)).sum::<f64>() / 2.0;
        Shares {
            rows: sides.iter().map(|o| o.anchors.len()).sum(),
            chosen: both(&|o| o.drawn_true_share(truth)),
            uniform: both(&|o| o.uniform_true_share(truth)),
            hardest: both(&|o| o.hardest_true_share(margin, truth)),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0usize), |(sum, n), x| (sum + x, n + 1));
    (n > 0).then(|| sum / n as f64)
}

fn mean_of_bools(values: impl Iterator<Item = bool>) -> Option<f64> {
    mean(values.map(|b| f64::from(u8::from(b))))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::statistics::Moments;

    /// Images 1 and 2; caption 10 of image 1, 20 of image 2, 30 of image 3, which is true of 1 too.
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

    /// By hand. Row 1 has {20, 30, −} of which 30 is true; row 2 has {10, 30, −}, none true.
    #[test]
    fn golden_shares() {
        let o = observed();
        assert_eq!(o.drawn_true_share(&truth), 0.5);
        assert!((o.uniform_true_share(&truth) - 1.0 / 6.0).abs() < 1e-12);
        // Hinges at γ = 0.2: row 1 takes 30 (0.1). Row 2 has none active: column 0, not true.
        assert_eq!(o.hardest_true_share(0.2, &truth), 0.5);
        let mut masked = o.clone();
        masked.chosen = vec![0, 0];
        assert_eq!(masked.drawn_true_share(&truth), 0.0, "a masked choice is no draw");
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
        let positive = Moments { count: 1, sum: 0.6, mean: 0.6, squares: 0.0 };
        let seen = Snapshot { positive, ..Snapshot::default() };
        let o = observed();
        let got: Vec<_> = o.survivors(&seen, 0.2, &truth).collect();
        assert_eq!(got, [(0.8, true), (0.5, false)], "0.4 ≤ 0.6 − 0.2 is cut, 0.9 are masked");
    }
}
