//! The options of `scan`.

use clap::Args;

use super::super::input::{InputArgs, Location};
use crate::Direction;
use crate::scan::Budget;

/// `hubness scan`
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// Image embeddings, one row per image
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub images: Location,
    /// Text embeddings of the same width
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub texts: Location,
    /// Leave rows as they are: inner products instead of cosines
    #[arg(long, help_heading = "Input")]
    pub raw: bool,
    /// Which side holds the queries; the other side is scanned
    #[arg(long, value_enum, default_value = "t2i", help_heading = "Input")]
    pub direction: Direction,
    /// New items, each judged alone against the items: the output says which are refused
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub admit: Option<Location>,
    /// Number of items per query that are counted
    #[arg(long, default_value_t = 10, value_name = "K", help_heading = "Scan")]
    pub top: usize,
    /// The number of natural items that may be expected among the alerts
    #[arg(long, default_value_t = 0.1, value_name = "NUMBER", help_heading = "Scan")]
    pub false_alarms: f64,
    /// Instead: the N most suspicious items
    #[arg(long, value_name = "N", conflicts_with = "false_alarms", help_heading = "Scan")]
    pub alerts: Option<usize>,
    /// Prints JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl ScanArgs {
    /// The files of images and texts.
    pub(crate) fn input(&self) -> InputArgs {
        InputArgs {
            images: Some(self.images.clone()),
            texts: Some(self.texts.clone()),
            raw: self.raw,
            ..InputArgs::default()
        }
    }

    /// What is an alert.
    pub(crate) fn budget(&self) -> Budget {
        self.alerts.map_or(Budget::FalseAlarms(self.false_alarms), Budget::Items)
    }
}
