//! Two stages: a cheap model selects candidates, and a costly model ranks them.

use std::ops::Range;

use super::Scored;
use crate::{Error, Result, ScoreMatrix};

/// Pairs that are no candidates score at most −1024, and every costly score must be above −1024. Cheap scores just below
/// −1024 keep a resolution of 1.2e-4 in f32.
const BEHIND: f32 = 1024.0;

/// The scores of a costly model for candidates, and below all of them the scores of a cheap model for the other pairs.
///
/// ```text
/// candidate(i, t):  i is among the k best images of t, or t is among the k best texts of i, by the cheap scores
/// s(i, t) = costly(i, t)                       for a candidate
/// s(i, t) = cheap(i, t) − max cheap − 1024     otherwise
/// ```
///
/// A recall from these scores depends on which true pairs the cheap model lets through: **it is not a number of a protocol
/// that scores all pairs**. A page that shows this recall must say so. If k covers all items, every pair is a candidate.
///
/// ```
/// use itm_core::ScoreMatrix;
/// use itm_core::scored::{Scored, TwoStage};
///
/// let cheap = ScoreMatrix::from_rows([[0.9, 0.1, 0.2], [0.3, 0.8, 0.1]]);
/// let costly = ScoreMatrix::from_rows([[5.0, 7.0, -1.0], [6.0, 4.0, 9.0]]);
/// let both = TwoStage::new(cheap, Box::new(costly), 1)?;
/// // Best images: 0 of text 0, 1 of text 1, 0 of text 2; best texts: 0 of image 0, 1 of image 1.
/// assert_eq!(both.candidates(), 3);
/// let scores = both.matrix()?;
/// assert_eq!((scores.row(0)[0], scores.row(0)[2], scores.row(1)[1]), (5.0, -1.0, 4.0));
/// assert!(scores.row(1)[2] < -1024.0);
/// # Ok::<(), itm_core::Error>(())
/// ```
pub struct TwoStage<'a> {
    costly: Box<dyn Scored + 'a>,
    /// Cheap scores of all pairs, shifted so that the largest is 0.
    cheap: ScoreMatrix,
    /// Whether each pair is a candidate; row-major, as the scores.
    candidate: Vec<bool>,
}

impl<'a> TwoStage<'a> {
    /// The `k` best items of each query of both directions are candidates; on ties the items with the smaller index.
    ///
    /// # Errors
    /// If k is 0, the two models differ in shape, or the largest cheap score is infinite.
    pub fn new(cheap: ScoreMatrix, costly: Box<dyn Scored + 'a>, k: usize) -> Result<Self> {
        let (n, m) = (costly.images(), costly.texts());
        if k == 0 {
            return Err(Error::invalid("candidates", "at least 1", k));
        }
        if (cheap.images(), cheap.texts()) != (n, m) {
            let got = format!("{} × {}", cheap.images(), cheap.texts());
            return Err(Error::invalid("scores of the first stage", format!("{n} × {m}"), got));
        }
        let mut candidate = vec![false; n * m];
        for image in 0..n {
            let row = cheap.row(image);
            best(m, k, |text| row[text]).for_each(|text| candidate[image * m + text] = true);
        }
        for text in 0..m {
            let score = |image: usize| cheap.row(image)[text];
            best(n, k, score).for_each(|image| candidate[image * m + text] = true);
        }
        let most = cheap.values().iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let cheap = cheap.values().iter().map(|score| score - most).collect();
        Ok(Self { costly, cheap: ScoreMatrix::new(n, m, cheap)?, candidate })
    }

    /// Pairs that the costly model scores.
    pub fn candidates(&self) -> usize {
        self.candidate.iter().filter(|candidate| **candidate).count()
    }
}

/// The `k` best of `0..n`, in no order.
fn best(n: usize, k: usize, score: impl Fn(usize) -> f32) -> impl Iterator<Item = usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let better = |a: &usize, b: &usize| score(*b).total_cmp(&score(*a)).then(a.cmp(b));
    if k < n {
        order.select_nth_unstable_by(k, better);
        order.truncate(k);
    }
    order.into_iter()
}

impl Scored for TwoStage<'_> {
    fn images(&self) -> usize {
        self.cheap.images()
    }

    fn texts(&self) -> usize {
        self.cheap.texts()
    }

    fn costly(&self) -> bool {
        self.costly.costly()
    }

    /// # Errors
    /// As the costly model, and if a costly score is −1024 or lower: it could rank among pairs that are no candidates.
    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        let (m, width) = (self.texts(), texts.len());
        let mut values = Vec::with_capacity(images.len() * width);
        let (mut at, mut of_images, mut of_texts) = (vec![], vec![], vec![]);
        for image in images.clone() {
            for text in texts.clone() {
                if self.candidate[image * m + text] {
                    at.push(values.len());
                    of_images.push(image);
                    of_texts.push(text);
                }
                values.push(self.cheap.row(image)[text] - BEHIND);
            }
        }
        let scores = self.costly.pairs(&of_images, &of_texts)?;
        for ((at, score), (image, text)) in
            at.into_iter().zip(scores).zip(of_images.iter().zip(&of_texts))
        {
            if score <= -BEHIND {
                let place = format!("score of image {image} and text {text}");
                return Err(Error::invalid(place, format!("above {}", -BEHIND), score));
            }
            values[at] = score;
        }
        ScoreMatrix::new(images.len(), width, values)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Pairs;

    fn matrix(n: usize, m: usize, shift: f32) -> ScoreMatrix {
        let value = |k: usize| (k as f32 * 0.731 + shift).sin();
        ScoreMatrix::new(n, m, (0..n * m).map(value).collect()).unwrap()
    }

    /// Counts the pairs that it scores.
    struct Counted<'a>(ScoreMatrix, &'a Cell<usize>);

    impl Scored for Counted<'_> {
        fn images(&self) -> usize {
            self.0.images()
        }

        fn texts(&self) -> usize {
            self.0.texts()
        }

        fn costly(&self) -> bool {
            true
        }

        fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
            self.1.set(self.1.get() + images.len() * texts.len());
            self.0.block(images, texts)
        }
    }

    #[test]
    fn only_candidates_are_scored_and_come_first() {
        let asked = Cell::new(0);
        let (cheap, costly) = (matrix(6, 10, 0.0), matrix(6, 10, 2.0));
        let both =
            TwoStage::new(cheap.clone(), Box::new(Counted(costly.clone(), &asked)), 2).unwrap();
        let all = both.matrix().unwrap();
        assert!(both.costly() && asked.get() == both.candidates() && asked.get() < 60);
        for image in 0..6 {
            let mut order: Vec<usize> = (0..10).collect();
            order.sort_by(|a, b| cheap.row(image)[*b].total_cmp(&cheap.row(image)[*a]));
            let candidates: Vec<usize> =
                (0..10).filter(|&t| all.row(image)[t] == costly.row(image)[t]).collect();
            assert!(order[..2].iter().all(|text| candidates.contains(text)));
            let worst = candidates.iter().map(|&t| all.row(image)[t]).fold(f32::INFINITY, f32::min);
            let others = || (0..10).filter(|text| !candidates.contains(text));
            assert!(others().all(|text| all.row(image)[text] < worst));
            for (a, b) in others().zip(others().skip(1)) {
                let [near, far] = [&all, &cheap].map(|s| s.row(image)[a] - s.row(image)[b]);
                assert!((near - far).abs() < 2.5e-4);
            }
        }
        for text in 0..10 {
            let of = |image: usize| cheap.row(image)[text];
            let nearest = (0..6).max_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap();
            assert_eq!(all.row(nearest)[text], costly.row(nearest)[text], "text {text}");
        }
        // Every block gives the same scores.
        let part = both.block(2..5, 3..7).unwrap();
        assert_eq!(part.row(1), &all.row(3)[3..7]);
    }

    #[test]
    fn with_all_as_candidates_it_is_the_costly_model() {
        let costly = matrix(4, 8, 1.0);
        let both = TwoStage::new(matrix(4, 8, 0.0), Box::new(costly.clone()), 8).unwrap();
        assert_eq!((both.matrix().unwrap(), both.candidates()), (costly.clone(), 32));
        let pairs = Pairs::uniform(4, 2);
        assert_eq!(both.ranks(&pairs).unwrap(), costly.ranks(&pairs).unwrap());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let line = |cheap, costly: ScoreMatrix, k| {
            TwoStage::new(cheap, Box::new(costly), k).err().unwrap().to_string()
        };
        assert!(line(matrix(2, 3, 0.0), matrix(2, 3, 0.0), 0).starts_with("candidates: "));
        let shape = line(matrix(2, 3, 0.0), matrix(3, 2, 0.0), 1);
        assert_eq!(shape, "scores of the first stage: expected 3 × 2, got 2 × 3");
        let low = ScoreMatrix::from_rows([[-2000.0]]);
        let both = TwoStage::new(matrix(1, 1, 0.0), Box::new(low), 1).unwrap();
        let line = both.matrix().unwrap_err().to_string();
        assert_eq!(line, "score of image 0 and text 0: expected above -1024, got -2000");
    }
}
