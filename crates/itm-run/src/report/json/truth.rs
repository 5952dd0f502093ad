//! Measures that need data with a complete truth.

use std::collections::BTreeMap;

use super::Fluency;
pub use itm_core::audit::ReliabilityBin;
use serde::{Deserialize, Serialize};

pub use itm_core::significance::Share;

/// Measures against the complete truth, means over seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// mAP@R, mean of both directions, `[0, 1]`.
    pub map_at_r: Option<f64>,
    /// R-precision, mean of both directions, `[0, 1]`.
    pub r_precision: Option<f64>,
    /// Area under the ROC curve of the posterior as a detector of false negatives, on
    /// candidates that survive the margin cut. The prior does not change it.
    pub posterior_auc: Option<f64>,
    /// Brier skill of the posterior at the config's prior, against a constant forecast of the
    /// base rate: 1 is perfect, 0 is no better than that forecast, a negative value is worse.
    pub brier_skill: Option<f64>,
    /// The prior of `brier_skill`, the paper's p: 1e-4.
    pub prior: Option<f64>,
    /// Brier skill with the base rate itself as the prior.
    pub brier_skill_at_base_rate: Option<f64>,
    /// Share of false negatives among the candidates that survive the margin cut.
    pub base_rate: Option<f64>,
    /// Candidates behind these numbers, summed over seeds.
    pub candidates: Option<u64>,
    /// Share of drawn negatives that were truly false negatives.
    pub drawn_true_share: Option<f64>,
    /// The same share if one candidate per row were drawn uniformly.
    pub uniform_true_share: Option<f64>,
    /// The same share if the hardest candidate per row were taken.
    pub hardest_true_share: Option<f64>,
    /// Draws behind `drawn_true_share`, summed over seeds.
    pub draws: Option<u64>,
    /// Reliability of the posterior: one entry per prior.
    pub reliability: Vec<Reliability>,
    /// The same share for other ways of drawing from the same candidates, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_true_shares: BTreeMap<String, f64>,
    /// The shares epoch by epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<EpochDraws>,
    /// Precision and recall of the posterior over the last epoch: one entry per prior and threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detection: Vec<DetectionAt>,
    /// Whether the patch closest to a word lies on what the word names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointing: Option<Pointing>,
    /// Whether the region that a word attends to most is what the word names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounding: Option<Pointing>,
    /// Whether the row separates words that do not match an image from words that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Mismatch>,
    /// Share of the synthetic sentences with a meaning that are false of their images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic_truly_false: Option<Share>,
    /// Share of the changed words of these false sentences that the model calls mismatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wod_accuracy: Option<Share>,
    /// Share of the same words for which the model proposes the caption's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woc_accuracy: Option<Share>,
    /// Further measures of these sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<SyntheticSentences>,
}

/// Sentences that a model makes of the test captions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticSentences {
    /// Share that are not sentences of the built-in world: nobody can say whether they are false.
    pub unparsed: Share,
    /// Share of truly false sentences among the sentences with one changed word, by the kind of that word.
    pub by_kind: BTreeMap<String, Share>,
    /// Share of the unchanged words of false sentences that the model calls matched.
    pub kept_words_match: Option<Share>,
    /// Share that the model scores below their captions.
    pub scored_below: Option<Share>,
    /// Fluency of the sentences under a trigram model of the training captions, mean over seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fluency: Option<Fluency>,
}

/// Share of words whose closest patch or most attended region hits one of the word's boxes, over all test images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointing {
    /// In annotated pairs.
    pub annotated: Pointed,
    /// In one false negative per caption; `null` if there is none.
    pub false_negatives: Option<Pointed>,
}

/// Pointing over one kind of pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointed {
    /// Share of the words that have a box, over all seeds.
    pub share: f64,
    /// The same share for a patch or region that is drawn at random.
    pub chance: f64,
    /// 95 % interval `[lo, hi]` of `share`: bootstrap over test images and seeds.
    pub ci95: [f64; 2],
    /// Number of words with a box over all pairs of one seed.
    pub words: u64,
    /// Share of the words that attend to no region, over all seeds; each counts as off target.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle: f64,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Words that do not match an image beside words that match, by the kind of image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    /// In annotated pairs, where every word matches.
    pub own: Detected,
    /// Each caption with the image of the highest score among the images that it is false of.
    pub hardest: Detected,
    /// Each caption with a random image that it is false of.
    pub random: Detected,
}

/// How well the row separates mismatched words from matched ones in one kind of pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detected {
    /// By what a word takes from the score; `null` if words have no such effect or one kind of words is missing.
    pub by_negative_effect: Option<Auc>,
    /// Only by the cosine of a word's best region.
    pub by_best_region: Option<Auc>,
    /// Share of mismatched words that take something from the score, over all seeds.
    pub mismatched_losing: Option<f64>,
    /// Share of matched words that take something from the score by mistake.
    pub matched_losing: Option<f64>,
    /// Mismatched words behind these numbers, summed over seeds.
    pub mismatched: u64,
    /// Matched words: objects and backgrounds. Function words are neither matched nor mismatched.
    pub matched: u64,
}

/// Area under the ROC curve: 0.5 is chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auc {
    /// Mean over seeds.
    pub value: f64,
    /// 95 % interval `[lo, hi]`: bootstrap over test images and seeds.
    pub ci95: [f64; 2],
}

/// Shares of false negatives among the negatives of one epoch, means over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochDraws {
    /// The epoch, counted from 1.
    pub epoch: u32,
    /// Share of drawn negatives.
    pub drawn: f64,
    /// The same share if one candidate per row were drawn uniformly.
    pub uniform: f64,
    /// The same share if the hardest candidate per row were taken.
    pub hardest: f64,
    /// The same share for other ways to draw, by name; a way is missing where its share was not known yet.
    pub others: BTreeMap<String, f64>,
    /// Precision and recall of the posterior: one entry per prior and threshold; nothing where there is no posterior.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detection: Vec<DetectionAt>,
}

/// Candidates whose posterior exceeds a threshold are flagged as false negatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionAt {
    /// What the prior is, `p = 1e-4`.
    pub name: String,
    /// The prior.
    pub prior: f64,
    /// λ.
    pub threshold: f64,
    /// Share of candidates that are flagged.
    pub flagged: f64,
    /// Share of true pairs among the flagged candidates; `null` if there are none.
    pub precision: Option<f64>,
    /// Share of true pairs that are flagged; `null` without true pairs.
    pub recall: Option<f64>,
}

/// Whether a share x of the candidates with predicted probability x are false negatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// What the prior is, `p = 1e-4`.
    pub name: String,
    /// The prior.
    pub prior: f64,
    /// Bins of candidates by predicted probability; empty bins are left out.
    pub bins: Vec<ReliabilityBin>,
}
