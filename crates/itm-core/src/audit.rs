//! The negatives of a step, beside what was true of them.
//!
//! Only data with a known truth can answer: `truth(image, caption)` says whether a caption is true of an image. Without one
//! an observation is just a record of the scores.

/// Which side the anchors are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Anchors are images, candidates texts.
    ImageToText,
    /// Anchors are texts, candidates images.
    TextToImage,
}

/// One pair of a batch: numbers of an image and of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Image id.
    pub image: i64,
    /// Caption number.
    pub caption: i64,
}

/// The negatives of one direction in one step.
///
/// | field | shape | |
/// |---|---|---|
/// | `anchors` | `[b]` | |
/// | `candidates` | `[n]` | |
/// | `scores` | `[b, n]` | similarities |
/// | `excluded` | `[b, n]` | no negative of this anchor |
/// | `hardest` | `[b]` | the most violating negative; none where all are excluded |
/// | `weights` | `[b, n]` | what each negative's score is multiplied by in the gradient; 0 where it has none |
#[derive(Debug, Clone, PartialEq)]
pub struct Negatives {
    /// Which side the anchors are on.
    pub direction: Direction,
    /// The pair of each anchor.
    pub anchors: Vec<Pair>,
    /// The pair of each candidate.
    pub candidates: Vec<Pair>,
    /// Similarities.
    pub scores: Vec<f32>,
    /// Whether a candidate is no negative of an anchor.
    pub excluded: Vec<bool>,
    /// The column of each anchor's hardest negative.
    pub hardest: Vec<Option<usize>>,
    /// How much each negative pulls.
    pub weights: Vec<f32>,
}

/// How often negatives are false ones: shares of true pairs. `None` where there was nothing to look at.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FalseShares {
    /// Anchors with at least one negative.
    pub anchors: usize,
    /// Among the hardest negatives.
    pub hardest: Option<f64>,
    /// Among all negatives: what a uniform draw meets.
    pub uniform: Option<f64>,
    /// Among all negatives by weight: the share of the loss's pull that goes the wrong way.
    pub weighted: Option<f64>,
}

impl Negatives {
    /// Whether candidate `j` is true of anchor `i`.
    pub fn is_true(&self, i: usize, j: usize, truth: &impl Fn(i64, i64) -> bool) -> bool {
        let (anchor, candidate) = (self.anchors[i], self.candidates[j]);
        match self.direction {
            Direction::ImageToText => truth(anchor.image, candidate.caption),
            Direction::TextToImage => truth(candidate.image, anchor.caption),
        }
    }

    /// The shares, each the mean over anchors that have a negative; `weighted` over all negatives at once.
    pub fn false_shares(&self, truth: &impl Fn(i64, i64) -> bool) -> FalseShares {
        let n = self.candidates.len();
        let (mut hardest, mut uniform) = (Mean::default(), Mean::default());
        let (mut pull, mut wrong) = (0.0, 0.0);
        for i in 0..self.anchors.len() {
            let mut row = Mean::default();
            for j in (0..n).filter(|&j| !self.excluded[i * n + j]) {
                let (is_true, weight) =
                    (self.is_true(i, j, truth), f64::from(self.weights[i * n + j]));
                row.push(f64::from(u8::from(is_true)));
                pull += weight;
                wrong += if is_true { weight } else { 0.0 };
            }
            row.value().into_iter().for_each(|share| uniform.push(share));
            if let Some(j) = self.hardest[i] {
                hardest.push(f64::from(u8::from(self.is_true(i, j, truth))));
            }
        }
        FalseShares {
            anchors: uniform.count,
            hardest: hardest.value(),
            uniform: uniform.value(),
            weighted: (pull > 0.0).then(|| wrong / pull),
        }
    }
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn push(&mut self, x: f64) {
        self.sum += x;
        self.count += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Images 1, 2 and 3; caption 10 of image 1 and so on; caption 30 is true of image 1 too.
    fn truth(image: i64, caption: i64) -> bool {
        image == caption / 10 || (image, caption) == (1, 30)
    }

    fn negatives(direction: Direction) -> Negatives {
        let pairs: Vec<_> = (1..=3).map(|image| Pair { image, caption: 10 * image }).collect();
        Negatives {
            direction,
            anchors: pairs.clone(),
            candidates: pairs,
            scores: vec![0.9, 0.4, 0.8, 0.5, 0.9, 0.3, 0.2, 0.1, 0.9],
            excluded: vec![true, false, false, false, true, false, false, false, true],
            hardest: vec![Some(2), Some(0), Some(0)],
            weights: vec![0.0, 1.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0],
        }
    }

    /// By hand. i2t: image 1 has {20, 30}, of which 30 is true; the others have no true one. t2i: only caption 30 of image
    /// 3's pair has a true image among its negatives, image 1, which is also its hardest.
    #[test]
    fn golden_shares() {
        let i2t = negatives(Direction::ImageToText).false_shares(&truth);
        assert_eq!((i2t.anchors, i2t.hardest), (3, Some(1.0 / 3.0)));
        assert!((i2t.uniform.unwrap() - 0.5 / 3.0).abs() < 1e-12);
        assert_eq!(i2t.weighted, Some(3.0 / 8.0));
        let t2i = negatives(Direction::TextToImage).false_shares(&truth);
        assert_eq!(t2i.hardest, Some(1.0 / 3.0));
        assert_eq!(t2i.weighted, Some(4.0 / 8.0));
    }

    #[test]
    fn without_negatives_there_are_no_shares() {
        let mut none = negatives(Direction::ImageToText);
        none.excluded = vec![true; 9];
        none.hardest = vec![None; 3];
        none.weights = vec![0.0; 9];
        assert_eq!(none.false_shares(&truth), FalseShares::default());
    }
}
