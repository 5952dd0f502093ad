//! Compares the sampler's choices with the truth: pure functions over [`Observation`]s.
//!
//! They need data with a known truth (the built-in scenes). `truth(image, caption)` says whether a
//! caption is true of an image. The parts that other methods share are in [`itm_core::audit`].

use itm_core::audit::{Candidates, Draws, Observed};

use crate::config::Preset;
use crate::statistics::Snapshot;
use crate::weights::{Excluded, Pool, Rule, weights};

/// Presets that an audit compares the draw with, each with its name in reports.
pub(crate) const PRESETS: [(&str, Preset); 2] =
    [("FNE official", Preset::Official), ("FNE paper", Preset::Paper)];

/// Both directions of one step, and the statistics that its weights were computed with.
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
    /// The candidates of both directions that belong to another image and survive the margin cut `s > μ⁺ − γ`, each with its
    /// log-likelihood ratio. The posterior must find the false negatives among them. `None` while the statistics hold at most
    /// `min_count` pairs, because then there is no posterior.
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

    /// Both directions against the truth: negatives as drawn, uniform negatives, hardest negatives. If the statistics hold more
    /// than `min_count` pairs, also what each of [`PRESETS`] is expected to draw from the same candidates.
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

    /// Expected share of true pairs among draws by a rule's weights, in one direction. `None` while the rule has no posterior.
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
