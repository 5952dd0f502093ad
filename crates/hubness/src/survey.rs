//! One pass over all scores that serves many corrections: nearest neighbours, sums of exponentials.

use itm_core::scored::{Scored, visit};
use itm_core::tiles::{BothSides, ExpSums, Maxima, Side, Top, TopK};
use itm_core::{Error, Result};

use crate::csls::{check_bank, means};
use crate::directed::positive;
use crate::inverted_softmax::{check_queries, with_fine};
use crate::{Affine, Correction, Direction, Transductive};

/// The results of one pass over the test scores: enough for nearest neighbours, N_k, CSLS for every `k` up to a bound, and
/// IS for some β.
///
/// ```
/// use hubness::{Direction, ScoreMatrix, Survey};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
/// let survey = Survey::fit(&scores, 2, &[30.0])?;
/// assert_eq!(survey.nearest(Direction::I2t).items(1), [0, 1]); // text 0 outbids the image's own text
/// let fair = survey.csls(Direction::I2t, 2)?.apply(&scores)?;
/// assert_eq!(fair.ranking(1)[0], 1);
/// # Ok::<(), hubness::Error>(())
/// ```
pub struct Survey<'s> {
    scores: &'s dyn Scored,
    texts: TopK,  // of every image
    images: TopK, // of every text
    betas: Vec<f64>,
    sums: Vec<BothSides<f64>>,
    largest: Option<BothSides<f32>>, // none without β
}

impl<'s> Survey<'s> {
    /// Reads every score once. Keeps `k` neighbours of every image and text, and a sum for every β.
    ///
    /// # Errors
    /// If a score is not finite, or a β is not above 0 and below 1e200.
    pub fn fit(scores: &'s dyn Scored, k: usize, betas: &[f64]) -> Result<Self> {
        betas.iter().try_for_each(|&beta| positive("β", beta))?;
        let sums: Vec<_> = betas.iter().map(|&beta| ExpSums::new(beta)).collect();
        let top = (Top::new(Side::Images, k), Top::new(Side::Texts, k));
        // Only IS needs the maxima.
        let maxima = if betas.is_empty() { vec![] } else { vec![Maxima] };
        let ((texts, images), (sums, largest)) = visit(scores, &(top, (sums, maxima)))?;
        let largest = largest.into_iter().next();
        Ok(Self { scores, texts, images, betas: betas.to_vec(), sums, largest })
    }

    /// The nearest items of every query.
    pub fn nearest(&self, direction: Direction) -> &TopK {
        direction.queries(&self.texts, &self.images)
    }

    /// CSLS for a direction, as [`csls`](crate::csls).
    ///
    /// # Errors
    /// If `k` is 0, or larger than the number of neighbours kept although there are more, or there is no query.
    pub fn csls(&self, direction: Direction, k: usize) -> Result<Correction<Transductive>> {
        let top = self.nearest(direction.reversed());
        let queries = direction.queries(self.scores.images(), self.scores.texts());
        let fits = k > 0 && (k <= top.k() || top.k() >= queries);
        let expected = format_args!("1 to {} neighbours, as many as were kept", top.k());
        Error::unless(fits, "k", expected, k)?;
        check_bank(queries)?;
        Ok(Correction::new(direction, Affine::of_items(2.0, means(top, k))))
    }

    /// The inverted softmax for a direction, as [`inverted_softmax`](crate::inverted_softmax).
    ///
    /// # Errors
    /// If no sum was kept for this β, or there are fewer than two queries.
    pub fn inverted_softmax(
        &self,
        direction: Direction,
        beta: f64,
    ) -> Result<Correction<Transductive>> {
        check_queries(direction.queries(self.scores.images(), self.scores.texts()))?;
        let at = self.betas.iter().position(|&b| b == beta);
        let (Some(at), Some(largest)) = (at, &self.largest) else {
            return Err(Error::invalid("β", format!("one of {:?}", self.betas), beta));
        };
        let items = direction.items(&self.sums[at].images, &self.sums[at].texts).clone();
        let largest = direction.items(&largest.images, &largest.texts);
        let affine = with_fine(self.scores, direction, beta, items, largest)?;
        Ok(Correction::new(direction, affine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScoreMatrix, TestQueries, csls, inverted_softmax};

    /// The fits of one survey equal the fits that make their own pass.
    #[test]
    fn a_survey_fits_as_single_passes_do() {
        let values = (0..40 * 60).map(|at| ((at * 7919) % 1009) as f32 / 1009.0).collect();
        let scores = ScoreMatrix::new(40, 60, values).unwrap();
        let survey = Survey::fit(&scores, 10, &[5.0, 30.0]).unwrap();
        let bank = TestQueries(&scores);
        for direction in Direction::BOTH {
            for k in [1, 3, 10] {
                let want = csls(&bank, direction, k).unwrap();
                let got = survey.csls(direction, k).unwrap();
                assert_eq!(got.map().affine(), want.map().affine());
            }
            for beta in [5.0, 30.0] {
                let want = inverted_softmax(&bank, direction, beta).unwrap();
                let got = survey.inverted_softmax(direction, beta).unwrap();
                assert_eq!(got.map().affine(), want.map().affine());
            }
        }
        let error = survey.csls(Direction::I2t, 11).unwrap_err().to_string();
        assert_eq!(error, "k: expected 1 to 10 neighbours, as many as were kept, got 11");
        let error = survey.inverted_softmax(Direction::I2t, 7.0).unwrap_err().to_string();
        assert_eq!(error, "β: expected one of [5.0, 30.0], got 7");
    }

    /// A mean over an infinite score has no use.
    #[test]
    fn infinite_scores_are_refused() {
        for value in [f32::NEG_INFINITY, f32::INFINITY] {
            let scores = ScoreMatrix::from_rows([[0.5, value], [0.25, 0.0]]);
            let line = Survey::fit(&scores, 2, &[]).err().unwrap().to_string();
            let want = "scores of image 0 and text 1: expected a finite number";
            assert_eq!(line, format!("{want}, got {value}"));
        }
    }

    /// The correction was one of no items.
    #[test]
    fn without_queries_no_item_has_neighbours() {
        let scores = ScoreMatrix::new(0, 2, vec![]).unwrap();
        let got = Survey::fit(&scores, 1, &[]).unwrap().csls(Direction::I2t, 1).unwrap_err();
        let want = csls(&TestQueries(&scores), Direction::I2t, 1).unwrap_err();
        assert_eq!(got.to_string(), want.to_string());
    }

    #[test]
    fn all_neighbours_serve_every_k() {
        let scores = ScoreMatrix::from_rows([[0.5, 0.25], [0.25, 0.0]]);
        let survey = Survey::fit(&scores, 10, &[]).unwrap();
        let (got, want) =
            (survey.csls(Direction::T2i, 99), csls(&TestQueries(&scores), Direction::T2i, 2));
        assert_eq!(got.unwrap().map().affine(), want.unwrap().map().affine());
    }
}
