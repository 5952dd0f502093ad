//! The corrected scores of every query's true items: the thresholds of its ranks.

use itm_core::scored::Scored;
use itm_core::tiles::Targets;
use itm_core::{Pairs, Result};

use super::filter::TileFilter;

/// The best true item of each query: the largest corrected score, the smaller index on ties.
#[derive(Debug)]
pub(super) struct Thresholds {
    pub(super) targets: Targets<f64>,
    pub(super) near: Vec<f32>, // their scores, rounded
}

impl Thresholds {
    pub(super) fn new(scores: &dyn Scored, pairs: &Pairs, filter: &TileFilter<'_>) -> Result<Self> {
        let shape = (scores.images(), scores.texts());
        assert_eq!(shape, (pairs.images(), pairs.texts()), "scores and pairs of one shape");
        let (images, texts) = pairs.list();
        let plain = scores.pairs(images, &texts)?;
        let listed = images.iter().zip(&texts).zip(plain);
        let exact = listed.map(|((&image, &text), score)| filter.exact(image, text, score));
        let [of_images, of_texts] = Targets::of_pairs(pairs, &exact.collect::<Vec<_>>());
        let targets = filter.direction.queries(of_images, of_texts);
        let near = targets.score.iter().map(|&score| score as f32).collect();
        Ok(Self { targets, near })
    }
}
