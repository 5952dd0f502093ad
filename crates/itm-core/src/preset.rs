//! Named sets of values.

use serde::{Deserialize, Serialize};

/// The named sets of values that every method has. The configuration of a method says what they are: `FneConfig::preset`,
/// `NaafConfig::preset`, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The program that the authors released, quirks included.
    Official,
    /// The values that the paper prints, with misprints corrected.
    Paper,
    /// The released program without its defects.
    Default,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Official, Self::Default];
}
