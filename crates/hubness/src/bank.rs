//! What a correction has seen, in its type.

use std::fmt;

use itm_core::scored::Scored;
use serde::{Deserialize, Serialize};

/// What a correction has seen besides the query that it ranks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Nothing: it keeps the scores as they are, or uses only the query's own scores.
    Plain,
    /// A bank of queries (or items) that are not in the test.
    HeldOut,
    /// The other test queries, without their labels: results depend on which queries come together.
    Transductive,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::HeldOut => "held-out bank",
            Self::Transductive => "transductive",
        })
    }
}

/// A [`Setting`] as a type: [`Plain`], [`HeldOut`] or [`Transductive`].
pub trait Knowledge: Send + Sync + 'static {
    /// The setting as a value, for reports.
    const SETTING: Setting;
}

/// Has seen only the query.
#[derive(Debug, Clone, Copy)]
pub enum Plain {}

/// Has seen a held-out bank.
#[derive(Debug, Clone, Copy)]
pub enum HeldOut {}

/// Has seen all test queries.
#[derive(Debug, Clone, Copy)]
pub enum Transductive {}

impl Knowledge for Plain {
    const SETTING: Setting = Setting::Plain;
}

impl Knowledge for HeldOut {
    const SETTING: Setting = Setting::HeldOut;
}

impl Knowledge for Transductive {
    const SETTING: Setting = Setting::Transductive;
}

/// Scores that a correction is fitted on. Banks differ only in their queries.
///
/// The items are always the test items; the queries are the bank. In direction t2i the bank is the *texts* of the
/// matrix, in direction i2t its *images*.
pub trait Bank {
    /// What a correction that is fitted on this bank has seen.
    type Knowledge: Knowledge;

    /// Bank queries against the test items.
    fn scores(&self) -> &dyn Scored;
}

/// The test queries themselves as the bank: a transductive correction.
#[derive(Clone, Copy)]
pub struct TestQueries<'a>(pub &'a dyn Scored);

/// Queries (or items) that are not in the test, drawn from training data: `texts` of the matrix for t2i, `images` for i2t.
///
/// Do not draw it from the validation set on which you choose parameters: there the correction would be transductive.
#[derive(Clone, Copy)]
pub struct HeldOutBank<'a>(pub &'a dyn Scored);

impl Bank for TestQueries<'_> {
    type Knowledge = Transductive;

    fn scores(&self) -> &dyn Scored {
        self.0
    }
}

impl Bank for HeldOutBank<'_> {
    type Knowledge = HeldOut;

    fn scores(&self) -> &dyn Scored {
        self.0
    }
}
