//! A method's row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{HubMeasures, PerDirection};
use crate::Setting;

/// The results of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportRow {
    /// The method's name: `nns`, `csls`, `is`, `csls+rgm`, …
    pub method: String,
    /// The method's parameters, always by direction: `{"i2t": {"k": 10}, "t2i": {"k": 10}}`.
    pub params: PerDirection<Params>,
    /// Who chose the parameters.
    pub chosen: ChoiceOrigin,
    /// Whether `setting` is [`Setting::Transductive`].
    pub transductive: bool,
    /// What the method saw besides the query.
    pub setting: Setting,
    /// `i2t` and `t2i`: the recalls of each direction.
    #[serde(flatten)]
    pub recalls: PerDirection<Recalls>,
    /// The sum of the recalls: six, or three if only one direction was measured.
    pub rsum: f64,
    /// 95 % interval of `rsum`.
    pub ci95: Option<[f64; 2]>,
    /// 95 % interval of each recall.
    pub ci95_recalls: PerDirection<RecallIntervals>,
    /// This row minus nearest neighbours; `null` for nearest neighbours.
    pub difference: Option<Difference>,
    /// p-value of the two-sided paired randomisation test of `rsum` against nearest neighbours, not corrected for the number
    /// of rows.
    pub p_value: Option<f64>,
    /// Hub measures of the method's lists, one entry for each k.
    pub hubs_after: PerDirection<Vec<HubMeasures>>,
}

/// Parameters by name.
pub type Params = BTreeMap<String, Param>;

/// A parameter's value. `∞` and words are text (`"inf"`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param {
    /// A count: `10`.
    Count(u64),
    /// Any other finite number.
    Number(f64),
    /// A word: `"item"`, `"inf"`.
    Word(String),
    /// One value for each fold, or one for each of R@1, R@5, R@10.
    Each(Vec<Param>),
}

impl From<f64> for Param {
    fn from(v: f64) -> Self {
        match v {
            v if !v.is_finite() => Self::Word(v.to_string()),
            v if v >= 0.0 && v.fract() == 0.0 && v < 9e15 => Self::Count(v as u64),
            v => Self::Number(v),
        }
    }
}

/// Who chose a row's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceOrigin {
    /// Nobody: the documented defaults, or nothing to choose.
    Default,
    /// The user.
    Given,
    /// Two halves of the images, each for the other.
    CrossFitted,
    /// The validation set.
    Validation,
}

/// Recalls of one direction, in percent; ranks count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recalls {
    /// R@1.
    pub r1: f64,
    /// R@5.
    pub r5: f64,
    /// R@10.
    pub r10: f64,
    /// `null` after RGM, whose lists end before every item is ranked.
    pub median_rank: Option<f64>,
    /// `null` after RGM.
    pub mean_rank: Option<f64>,
    /// Mean AP@R in percent, if the pairs are judgements; `null` after RGM.
    pub map_at_r: Option<f64>,
    /// R-precision in percent, if the pairs are judgements; `null` after RGM.
    pub r_precision: Option<f64>,
    /// How many queries have a true item: the recalls are over these.
    pub queries: u64,
    /// How many queries hit or miss at 1, 5 or 10 by the order of equal scores alone; `null` after RGM.
    pub decided_by_ties: Option<u64>,
}

impl Recalls {
    /// R@1, R@5 and R@10.
    pub(crate) fn values(&self) -> [f64; 3] {
        [self.r1, self.r5, self.r10]
    }
}

/// 95 % intervals of one direction's recalls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecallIntervals {
    /// Interval of R@1.
    pub r1: [f64; 2],
    /// Interval of R@5.
    pub r5: [f64; 2],
    /// Interval of R@10.
    pub r10: [f64; 2],
}

impl RecallIntervals {
    /// The intervals of R@1, R@5 and R@10.
    pub fn values(&self) -> [[f64; 2]; 3] {
        [self.r1, self.r5, self.r10]
    }
}

/// A row minus nearest neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// In points of `rsum`.
    pub rsum: f64,
    /// 95 % interval from the paired bootstrap.
    pub ci95: Option<[f64; 2]>,
    /// The row's `p_value` corrected for the number of rows by Holm's method.
    pub p_holm: Option<f64>,
}
