//! `report.json`: what a run measured, as plain data.

mod hubs;
mod truth;

use std::collections::BTreeMap;

use itm_core::Error;
use serde::{Deserialize, Serialize};

pub use self::hubs::{Distribution, DistributionOf, HubCounts, HubDifference, RowHubs, Spread};
pub use self::truth::{
    Auc, Detected, DetectionAt, EpochDraws, Mismatch, Pointed, Pointing, Reliability,
    ReliabilityBin, Share, SyntheticSentences, Truth,
};

/// The version this program writes; a change that breaks a reader raises it.
pub const SCHEMA_VERSION: u32 = 1;

/// What the numbers of [`Measured::ci95`] are; the file has it as `ci95_unit`.
pub const CI95_UNIT: &str =
    "rSum (0 to 600); 95 % percentile bootstrap that resamples test images and seeds";

/// One run of one target: the content of `report.json`.
///
/// Recalls are in percent, rSum in percentage points (0 to 600), shares and probabilities in
/// `[0, 1]`, times in seconds, memory in bytes. `null` means "not measured", never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the target, `fne-flickr`.
    pub target: String,
    /// The data measured here, as a reader would call it: `Scenes`, `Flickr8k (features)`.
    pub dataset: String,
    /// Whether `dataset` stands in for data that was not found.
    pub substituted: bool,
    /// One line for a reader: what was missing and how to get it; `null` when nothing was.
    pub substitution: Option<String>,
    /// Version control commit of the program, with `+dirty` if it was changed; `unknown` outside.
    pub commit: String,
    /// Compute backend and device, `flex (cpu)`.
    pub backend: String,
    /// Threads the run was allowed.
    pub threads: usize,
    /// `official`, `paper`, `default`, or the name of a small-data preset.
    pub preset: String,
    /// Seeds of the trained rows.
    pub seeds: Vec<u64>,
    /// The command line that repeats the run.
    pub command: String,
    /// What `measured.ci95` is; normally [`CI95_UNIT`].
    pub ci95_unit: String,
    /// How equal scores are ranked, `smaller index first`.
    pub tie_policy: String,
    /// The claim that the run is judged by.
    pub claim: Claim,
    /// Baselines first, then the target's rows in the order of its config.
    pub rows: Vec<Row>,
    /// Paired differences between rows.
    pub comparisons: Vec<Comparison>,
    /// The paper's numbers on the paper's data, if `dataset` is other data. Otherwise `null`, and
    /// each row's `paper` has the numbers.
    pub paper_reference: Option<PaperReference>,
    /// The curve of the paper whose points are these rows, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// The distributions of the paper that these rows draw, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// Hubs of every row except chance, where they were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<RowHubs>,
    /// Paired differences of hubs: the claim's row minus each row that it should beat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hub_differences: Vec<HubDifference>,
    /// Every trained row under corrections for hubs, if the command names any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rescored: Vec<Rescored>,
    /// Facts that a reader must know and the numbers do not show: one sentence each.
    pub notes: Vec<String>,
    /// Wall-clock time of the whole run.
    pub seconds: f64,
    /// Largest resident memory of the process.
    pub peak_memory_bytes: u64,
    /// SHA-256 of the resolved config, hexadecimal.
    pub config_sha256: String,
    /// SHA-256 over the data files read, or over the generator's parameters, hexadecimal.
    pub data_sha256: String,
}

/// "`row` is above every row in `against`": what the first line of `report.md` answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The method's row, `Full`.
    pub row: String,
    /// Rows it should be above: `w/o FNE`, `CCA (closed form)`.
    pub against: Vec<String>,
}

/// A figure of the paper: recall over a number that differs between rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its number in the paper.
    pub number: u32,
    /// What is on the x axis: the key of the rows' configuration, `train.batch`.
    pub x: String,
    /// By ascending x.
    pub points: Vec<FigurePoint>,
}

/// A point of a figure. Its y values are in the row's `measured`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigurePoint {
    /// The row.
    pub row: String,
    /// Its position on the x axis.
    pub x: f64,
}

/// One line of the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// As in the paper's table; `chance` and `CCA (closed form)` for the baselines.
    pub name: String,
    /// Whether the row was trained or is a baseline.
    pub kind: Kind,
    /// What was ranked: `test_1k`, `500 images, 5 captions each`.
    pub protocol: String,
    /// Precision of the operands of products in the model's blocks, if it is not f32: `bf16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// The paper's numbers for this row on the same data; `null` on other data or if not printed.
    pub paper: Option<PaperNumbers>,
    /// What was measured here: the mean over seeds of the selected checkpoints.
    pub measured: Measured,
    /// Measures that need data with a complete truth (Scenes).
    pub truth: Option<Truth>,
    /// How the row scores captions with one change, if the target measures that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<EditedCaptions>,
}

/// Perplexity of some sentences by a trigram model of the training captions, averaged in three ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fluency {
    /// Mean perplexity of the sentences.
    pub mean_perplexity: f64,
    /// `exp` of the mean over sentences of a sentence's mean −ln p.
    pub of_mean_sentence: f64,
    /// `exp` of the mean −ln p of all words.
    pub of_mean_word: f64,
    /// Number of sentences.
    pub sentences: u64,
}

/// Test captions with one change by VSE-C's rules, against the captions themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditedCaptions {
    /// Share that scores below its caption with the same image; the kind of the change is drawn for each caption.
    pub below: Share,
    /// The same share for one change of each kind.
    pub by_kind: BTreeMap<String, Share>,
    /// Changed captions with the same score as their caption, summed over seeds. They do not count as below.
    pub ties: u64,
    /// Captions that no rule changes.
    pub without: u64,
    /// Fluency of the captions under a trigram model of the training captions.
    pub fluency_of_captions: Option<Fluency>,
    /// Fluency of the changed captions.
    pub fluency: Option<Fluency>,
}

/// What kind of line a [`Row`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Not trained by gradient steps: `chance`, `CCA (closed form)`.
    Baseline,
    /// Trained, once per seed.
    Trained,
}

/// Recalls of one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Image to text.
    pub i2t: Recalls,
    /// Text to image.
    pub t2i: Recalls,
    /// Sum of the six recalls.
    pub rsum: f64,
    /// 95 % interval `[lo, hi]` of `rsum`; [`Report::ci95_unit`] says its unit.
    pub ci95: Option<[f64; 2]>,
    /// 95 % intervals of the six recalls, made the same way.
    pub ci95_recalls: Option<RecallIntervals>,
    /// Each seed's numbers; empty for a row without seeds.
    pub per_seed: Vec<SeedResult>,
    /// Mean over seeds of the best rSum on the validation split, which chose the checkpoint.
    pub validation_rsum: Option<f64>,
    /// Number of queries whose result the tie policy decided, over both directions and all seeds.
    pub ties_decided: Option<u64>,
    /// Training and evaluation of this row, all seeds.
    pub seconds: Option<f64>,
}

/// R@1, R@5 and R@10 in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recalls {
    /// Share of queries with a true item ranked first.
    pub r1: f64,
    /// … among the first five.
    pub r5: f64,
    /// … among the first ten.
    pub r10: f64,
}

impl Recalls {
    /// The three values in order.
    pub fn values(&self) -> [f64; 3] {
        [self.r1, self.r5, self.r10]
    }
}

/// 95 % intervals `[lo, hi]` of the six recalls, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallIntervals {
    /// R@1, R@5, R@10 of image to text.
    pub i2t: [[f64; 2]; 3],
    /// R@1, R@5, R@10 of text to image.
    pub t2i: [[f64; 2]; 3],
}

/// One seed of a trained row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// Image to text.
    pub i2t: Recalls,
    /// Text to image.
    pub t2i: Recalls,
    /// Sum of the six recalls.
    pub rsum: f64,
    /// rSum on the validation split of the checkpoint that validation chose.
    pub validation_rsum: Option<f64>,
    /// The epoch of that checkpoint, counted from 1.
    pub best_epoch: Option<u32>,
}

/// `row` minus `minus`, paired over the same queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The row that is expected to be above.
    pub row: String,
    /// The row subtracted from it.
    pub minus: String,
    /// Difference of rSum.
    pub rsum: f64,
    /// 95 % interval of the difference, made like `measured.ci95`, with the same images for both rows.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided p-value of `test`.
    pub p_value: Option<f64>,
    /// Which test, `paired randomisation over images, 10,000 draws`.
    pub test: Option<String>,
}

/// A trained row under one correction for hubs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rescored {
    /// The row.
    pub row: String,
    /// The correction, `csls+rgm`; `nns` for none.
    pub method: String,
    /// Whether the correction saw the other test queries.
    pub transductive: bool,
    /// Sum of the six recalls, mean over seeds.
    pub rsum: f64,
    /// The sum of each seed, or of each seed and fold if the test split is evaluated by folds.
    pub per_seed: Vec<f64>,
    /// rSum minus the rSum of nearest neighbours, mean over seeds; `null` for nearest neighbours themselves.
    pub difference: Option<f64>,
    /// The smallest interval that holds each seed's 95 % interval of the difference (bootstrap over test images).
    pub ci95: Option<[f64; 2]>,
    /// The largest of the seeds' p-values (paired randomisation over images, two-sided, Holm's correction over methods).
    pub largest_p: Option<f64>,
    /// Number of seeds (and folds) with which it is above nearest neighbours at p < 0.05.
    pub above: u64,
    /// Number of seeds (and folds) with which it is below nearest neighbours at p < 0.05.
    pub below: u64,
    /// Sum of the skewness of N_1, N_5 and N_10 over both directions.
    pub skewness: Option<f64>,
    /// λ of RGM with the first seed, chosen on the validation split.
    pub lambda: Option<String>,
}

/// Printed numbers of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperNumbers {
    /// Number of the paper's table.
    pub table: u32,
    /// Image to text.
    pub i2t: PaperRecalls,
    /// Text to image.
    pub t2i: PaperRecalls,
    /// Our sum of the six printed recalls; `null` if one is missing.
    pub rsum: Option<f64>,
}

/// R@1, R@5 and R@10 in percent as printed; `null` where the paper prints nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRecalls {
    /// R@1.
    pub r1: Option<f64>,
    /// R@5.
    pub r5: Option<f64>,
    /// R@10.
    pub r10: Option<f64>,
}

impl PaperRecalls {
    /// The three values in order.
    pub fn values(&self) -> [Option<f64>; 3] {
        [self.r1, self.r5, self.r10]
    }
}

/// The paper's rows on data that was not measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperReference {
    /// The paper's data, `Flickr30K`.
    pub dataset: String,
    /// The paper's protocol, `test_1k`.
    pub protocol: String,
    /// Number of the paper's table.
    pub table: u32,
    /// The printed rows.
    pub rows: Vec<PaperRow>,
}

/// A named line of [`PaperReference`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Name of the row, the same as in [`Report::rows`].
    pub name: String,
    /// Its numbers.
    pub numbers: PaperNumbers,
}

impl Report {
    /// The row of that name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The paired comparison `row − minus`, if it was made.
    pub fn comparison(&self, row: &str, minus: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|c| c.row == row && c.minus == minus)
    }

    /// The text of `report.json`.
    ///
    /// # Errors
    /// If a number is not finite: JSON has no such numbers, and `null` would mean "not measured".
    pub fn to_json(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::invalid("report.json", "serialisable values", e))?;
        if Self::from_json(&text)? == *self {
            return Ok(text + "\n");
        }
        Err(Error::invalid("report.json", "finite numbers", "NaN or an infinity"))
    }

    /// Reads what [`Report::to_json`] wrote.
    ///
    /// # Errors
    /// If `text` is not JSON, or misses or adds a key, or has another `schema_version`.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let report: Self = serde_json::from_str(text)
            .map_err(|e| Error::invalid("report.json", "a report without NaN", e))?;
        if report.schema_version != SCHEMA_VERSION {
            let expected = format!("schema_version {SCHEMA_VERSION}");
            return Err(Error::invalid("report.json", expected, report.schema_version));
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
