//! What an audit of a step needs beside its draw: the weights of other presets over the same candidates, and the
//! log-likelihood ratios by which the posterior separates them. [`itm_core::audit`] compares them with a truth, which no step
//! sees.

use itm_core::audit::NegativeSet;

use crate::config::SamplerConfig;
use crate::statistics::Snapshot;
use crate::weights::{CandidatePool, weights};
use itm_core::Preset;

/// Presets that an audit compares the draw with, each with its name in reports.
pub(crate) const PRESETS: [(&str, Preset); 2] =
    [("FNE official", Preset::Official), ("FNE paper", Preset::Paper)];

/// The negatives with what the statistics of their step say about them: the weights by each of [`PRESETS`], and the ratio of
/// each candidate of another image that survives the margin cut `s > μ⁺ − γ`. Nothing is added while the statistics hold at
/// most `min_count` pairs, because then there is no posterior.
pub(crate) fn with_posterior(
    mut negatives: NegativeSet,
    statistics: &Snapshot,
    min_count: u64,
) -> NegativeSet {
    let margin = negatives.margin;
    let pool = CandidatePool {
        scores: &negatives.scores,
        positive: &negatives.positive,
        excluded: &negatives.excluded,
    };
    let of = |(name, preset): (&'static str, Preset)| {
        let rule = SamplerConfig { margin, min_count, ..SamplerConfig::preset(preset) };
        statistics.posterior(rule.prior, rule.min_count)?;
        let rho = weights(&pool, &rule, statistics).expect("a step's scores are finite");
        Some((name, rho))
    };
    negatives.others = PRESETS.into_iter().filter_map(of).collect();
    if let Some(posterior) = statistics.posterior(0.5, min_count) {
        // A prior of one half adds no odds.
        let cut = (statistics.positive.mean - margin) as f32;
        let survives = |&(k, &s): &(usize, &f32)| s > cut && !negatives.excluded[k];
        let all = negatives.scores.iter().enumerate().filter(survives);
        negatives.log_ratios = all.map(|(k, &s)| (k, posterior.log_odds(f64::from(s)))).collect();
    }
    negatives
}

#[cfg(test)]
mod tests;
