//! What the sampler did, beside what was true: pure functions over [`Observation`]s.
//!
//! Only data with a known truth (the built-in scenes) can answer them. `truth(image, caption)` says
//! whether a caption is true of an image. What other methods are audited by too is in [`itm_core::audit`].

use itm_core::audit::{Candidates, Draws, Observed};

use crate::config::Preset;
use crate::statistics::Snapshot;
use crate::weights::{Excluded, Pool, Rule, weights};

/// Presets whose draw an audit compares with, by the name they have in reports.
pub(crate) const PRESETS: [(&str, Preset); 2] =
    [("FNE official", Preset::Official), ("FNE paper", Preset::Paper)];

/// Both directions of one step, and the statistics its weights were computed with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    /// Images as anchors.
    pub(crate) image_to_text: Observed,
    /// Texts as anchors.
    pub(crate) text_to_image: Observed,
    /// Statistics after this batch, as the weights saw them.
    pub(crate) statistics: Snapshot,
}

impl Observation {
    /// The candidates of both directions that another image gave and that survive the margin cut `s > μ⁺ − γ`: those among
    /// which the posterior has to tell false negatives. By their log-likelihood ratio; `None` as long as there are no more
    /// than `min_count` pairs in the statistics, and no posterior.
    pub(crate) fn candidates(
        &self,
        margin: f64,
        min_count: u64,
        truth: &impl Fn(i64, i64) -> bool,
    ) -> Option<Candidates> {
        let posterior = self.statistics.posterior(0.5, min_count)?; // a prior of one half adds no odds
        let cut = (self.statistics.positive.mean - margin) as f32;
        let mut candidates = Candidates::default();
        for side in self.sides() {
            for (score, is_true) in side.above(cut, truth) {
                candidates.push(posterior.log_odds(f64::from(score)), is_true);
            }
        }
        Some(candidates)
    }

    /// Both directions against the truth: as drawn, uniform, hardest; and what the weights of each of [`PRESETS`] are
    /// expected to draw from the same candidates, with more than `min_count` pairs in the statistics.
    pub(crate) fn draws(
        &self,
        margin: f64,
        min_count: u64,
        truth: &impl Fn(i64, i64) -> bool,
    ) -> Draws {
        let mut draws = Draws::default();
        for side in self.sides() {
            draws.add(&side.draws(margin, truth));
            for (name, preset) in PRESETS {
                let rule = Rule { margin, min_count, ..preset.sampler().rule() };
                let Some(share) = self.expected_true_share(side, &rule, truth) else { continue };
                *draws.others.entry(name.into()).or_default() += share * side.anchors.len() as f64;
            }
        }
        draws.others_anchors = if draws.others.is_empty() { 0.0 } else { draws.anchors };
        draws
    }

    /// Share of true pairs that drawing by a rule's weights is expected to meet in one direction; `None` as long as the
    /// rule has no posterior.
    pub(crate) fn expected_true_share(
        &self,
        side: &Observed,
        rule: &Rule,
        truth: &impl Fn(i64, i64) -> bool,
    ) -> Option<f64> {
        self.statistics.posterior(rule.prior, rule.min_count)?;
        let excluded = Excluded::Mask(&side.excluded);
        let pool = Pool { scores: &side.scores, positive: &side.positive, excluded };
        let rho =
            weights(&pool, rule, &self.statistics).expect("a step that was made has finite scores");
        Some(side.expected_true_share(&rho, truth))
    }

    fn sides(&self) -> [&Observed; 2] {
        [&self.image_to_text, &self.text_to_image]
    }
}

#[cfg(test)]
mod tests;
