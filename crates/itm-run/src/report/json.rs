//! `report.json`: what a run measured, as plain data.

use std::collections::BTreeMap;

use itm_core::Error;
use itm_core::cca::BestPoint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Claim;

/// Numbers of measures, by key.
pub(crate) type Numbers = BTreeMap<String, Value>;

/// The version this program writes; a change that breaks a reader raises it.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What the numbers of [`Measured::ci95`] are; the file has it as `ci95_unit`.
pub(crate) const CI95_UNIT: &str =
    "rSum (0 to 600); 95 % percentile bootstrap that resamples test images and seeds";

/// One run of one target: the content of `report.json`.
///
/// Recalls are in percent, rSum in percentage points (0 to 600), shares and probabilities in
/// `[0, 1]`, times in seconds, memory in bytes. `null` means "not measured", never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// [`SCHEMA_VERSION`].
    pub(crate) schema_version: u32,
    /// Name of the target, `fne-flickr`.
    pub(crate) target: String,
    /// The data measured here, as a reader would call it: `Scenes`, `Flickr8k (features)`.
    pub(crate) dataset: String,
    /// Whether `dataset` stands in for data that was not found.
    pub(crate) substituted: bool,
    /// One line for a reader: what was missing and how to get it; `null` when nothing was.
    pub(crate) substitution: Option<String>,
    /// Commit that the program was built from, with `+dirty` if it was changed; `unknown` if `cargo xtask` did not start it.
    pub(crate) commit: String,
    /// Compute backend and device, `flex (cpu)`.
    pub(crate) backend: String,
    /// Threads the run was allowed.
    pub(crate) threads: usize,
    /// The target's name once more, which earlier reports have here.
    pub(crate) preset: String,
    /// Seeds of the trained rows.
    pub(crate) seeds: Vec<u64>,
    /// The command line that repeats the run.
    pub(crate) command: String,
    /// What `measured.ci95` is; normally [`CI95_UNIT`].
    pub(crate) ci95_unit: String,
    /// How equal scores are ranked, `smaller index first`.
    pub(crate) tie_policy: String,
    /// The claim that the run is judged by.
    pub(crate) claim: Claim,
    /// Baselines first, then the target's rows in the order of its config.
    pub(crate) rows: Vec<Row>,
    /// Paired differences between rows.
    pub(crate) comparisons: Vec<Comparison>,
    /// The paper's numbers on the paper's data, if `dataset` is other data. Otherwise `null`, and
    /// each row's `paper` has the numbers.
    pub(crate) paper_reference: Option<PaperReference>,
    /// The curve of the paper whose points are these rows, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) figure: Option<Figure>,
    /// Facts that a reader must know and the numbers do not show: one sentence each.
    pub(crate) notes: Vec<String>,
    /// Wall-clock time of the whole run.
    pub(crate) seconds: f64,
    /// Largest resident memory of the process.
    pub(crate) peak_memory_bytes: u64,
    /// SHA-256 of the resolved config, hexadecimal.
    pub(crate) config_sha256: String,
    /// SHA-256 over the data files read, or over the generator's parameters, hexadecimal.
    pub(crate) data_sha256: String,
    /// Numbers of measures.
    #[serde(flatten)]
    pub(crate) more: Numbers,
}

/// A figure of the paper: recall over a number that differs between rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Its number in the paper.
    pub(crate) number: u32,
    /// What is on the x axis: the key of the rows' configuration, `train.batch`.
    pub(crate) x: String,
    /// By ascending x.
    pub(crate) points: Vec<FigurePoint>,
}

/// A point of a figure. Its y values are in the row's `measured`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FigurePoint {
    /// The row.
    pub(crate) row: String,
    /// Its position on the x axis.
    pub(crate) x: f64,
}

/// One line of the tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// As in the paper's table; `chance` and `CCA (closed form)` for the baselines.
    pub(crate) name: String,
    /// Whether the row was trained or is a baseline.
    pub(crate) kind: RowKind,
    /// What was ranked: `test_1k`, `500 images, 5 captions each`.
    pub(crate) protocol: String,
    /// Precision of the operands of products in the model's blocks, if it is not f32: `bf16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<String>,
    /// The closed form's ridges, power and width, which the validation split chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chosen: Option<BestPoint>,
    /// The paper's numbers for this row on the same data; `null` on other data or if not printed.
    pub(crate) paper: Option<PaperNumbers>,
    /// What was measured here: the mean over seeds of the selected checkpoints.
    pub(crate) measured: Measured,
    /// Numbers of measures that need data with a complete truth (Scenes).
    pub(crate) truth: Option<Numbers>,
    /// Numbers of other measures.
    #[serde(flatten)]
    pub(crate) more: Numbers,
}

/// What kind of line a [`Row`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowKind {
    /// Not trained by gradient steps: `chance`, `CCA (closed form)`.
    Baseline,
    /// Trained, once per seed.
    #[default]
    Trained,
}

/// Recalls of one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Image to text.
    pub(crate) i2t: Recalls,
    /// Text to image.
    pub(crate) t2i: Recalls,
    /// Sum of the six recalls.
    pub(crate) rsum: f64,
    /// 95 % interval `[lo, hi]` of `rsum`; [`Report::ci95_unit`] says its unit.
    pub(crate) ci95: Option<[f64; 2]>,
    /// 95 % intervals of the six recalls, made the same way.
    pub(crate) ci95_recalls: Option<RecallIntervals>,
    /// Each seed's numbers; empty for a row without seeds.
    pub(crate) per_seed: Vec<SeedResult>,
    /// Mean over seeds of the best rSum on the validation split, which chose the checkpoint.
    pub(crate) validation_rsum: Option<f64>,
    /// Number of queries whose result the tie policy decided, over both directions and all seeds.
    pub(crate) ties_decided: Option<u64>,
    /// Training and evaluation of this row, all seeds.
    pub(crate) seconds: Option<f64>,
}

/// R@1, R@5 and R@10 in percent. As printed, `null` stands where the paper prints nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recalls<T = f64> {
    /// Share of queries with a true item ranked first.
    pub(crate) r1: T,
    /// … among the first five.
    pub(crate) r5: T,
    /// … among the first ten.
    pub(crate) r10: T,
}

impl<T> Recalls<T> {
    /// The three values in order.
    pub(crate) fn values(self) -> [T; 3] {
        [self.r1, self.r5, self.r10]
    }
}

/// 95 % intervals `[lo, hi]` of the six recalls, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecallIntervals {
    /// R@1, R@5, R@10 of image to text.
    pub(crate) i2t: [[f64; 2]; 3],
    /// R@1, R@5, R@10 of text to image.
    pub(crate) t2i: [[f64; 2]; 3],
}

/// One seed of a trained row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeedResult {
    /// The seed.
    pub(crate) seed: u64,
    /// Image to text.
    pub(crate) i2t: Recalls,
    /// Text to image.
    pub(crate) t2i: Recalls,
    /// Sum of the six recalls.
    pub(crate) rsum: f64,
    /// rSum on the validation split of the checkpoint that validation chose.
    pub(crate) validation_rsum: Option<f64>,
    /// The epochs that were done at that checkpoint; 0 before the end of the first.
    pub(crate) best_epoch: Option<u32>,
}

/// `row` minus `minus`, paired over the same queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// The row that is expected to be above.
    pub(crate) row: String,
    /// The row subtracted from it.
    pub(crate) minus: String,
    /// Difference of rSum.
    pub(crate) rsum: f64,
    /// 95 % interval of the difference, made like `measured.ci95`, with the same images for both rows.
    pub(crate) ci95: [f64; 2],
    /// Two-sided p-value of `test`.
    pub(crate) p_value: f64,
    /// Which test, `paired randomisation over images, 10,000 draws`.
    pub(crate) test: String,
}

/// Printed numbers of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PaperNumbers {
    /// Number of the paper's table.
    pub(crate) table: u32,
    /// Image to text.
    pub(crate) i2t: Recalls<Option<f64>>,
    /// Text to image.
    pub(crate) t2i: Recalls<Option<f64>>,
    /// Our sum of the six printed recalls; `null` if one is missing.
    pub(crate) rsum: Option<f64>,
}

/// The paper's rows on data that was not measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PaperReference {
    /// The paper's data, `Flickr30K`.
    pub(crate) dataset: String,
    /// The paper's protocol, `test_1k`.
    pub(crate) protocol: String,
    /// Number of the paper's table.
    pub(crate) table: u32,
    /// The printed rows.
    pub(crate) rows: Vec<PaperRow>,
}

/// A named line of [`PaperReference`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PaperRow {
    /// Name of the row, the same as in [`Report::rows`].
    pub(crate) name: String,
    /// Its numbers.
    pub(crate) numbers: PaperNumbers,
}

impl Report {
    /// The row of that name.
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The paired comparison `row − minus`, if it was made.
    pub(crate) fn comparison(&self, row: &str, minus: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|c| c.row == row && c.minus == minus)
    }

    /// rSum of `row` minus rSum of `minus`, paired if they were compared; `None` if a row is missing.
    pub(crate) fn difference(&self, row: &str, minus: &str) -> Option<f64> {
        let paired = self.comparison(row, minus).map(|c| c.rsum);
        let rsum = |name: &str| Some(self.row(name)?.measured.rsum);
        paired.or_else(|| Some(rsum(row)? - rsum(minus)?))
    }

    /// The text of `report.json`.
    ///
    /// # Errors
    /// If a number is not finite: JSON has no such numbers, and `null` would mean "not measured".
    pub(crate) fn to_json(&self) -> Result<String, Error> {
        let fits = finite_json(self).is_some();
        Error::unless(fits, "report.json", "finite numbers", "NaN or an infinity")?;
        Ok(serde_json::to_string_pretty(self).expect("numbers and texts") + "\n")
    }
}

/// The value as JSON, if reading it gives the value again: JSON has no NaN and no infinity.
pub(super) fn finite_json<T>(value: &T) -> Option<Value>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let json = serde_json::to_value(value).ok()?;
    T::deserialize(&json).is_ok_and(|same| same == *value).then_some(json)
}

#[cfg(test)]
mod tests;
