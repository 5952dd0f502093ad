//! What `hubness report` shows: a [`Report`] as JSON, as text for a terminal, as one HTML file.
//!
//! The numbers come from elsewhere; here they are only shown. All three say the same: [`Report`] is what `--json` prints,
//! [`terminal()`] and [`html()`] are drawn from it alone.

mod canvas;
mod format;
mod histogram;
mod html;
mod methods;
mod model;
mod plots;
#[cfg(test)]
mod sample;
mod table;
mod terminal;
mod verdict;

pub use model::{
    Chosen, Curve, Data, Difference, Directed, File, Histogram, Hub, HubMeasures, HubSide, Hubs,
    Param, Params, RecallIntervals, Recalls, Report, Row, Seen, Settings, Victim,
};
pub use terminal::Palette;
pub use verdict::{Outcome, Verdict};

/// The report as text no wider than `width` columns (at least 60 are taken).
pub fn terminal(report: &Report, width: usize, palette: Palette) -> String {
    terminal::render(report, width, palette)
}

/// The report as one HTML file that needs nothing else: no script, no network, light and dark.
pub fn html(report: &Report) -> String {
    html::render(report)
}

/// What the report says in a sentence or two: the best row, how sure it is, and what became of the hubs.
pub fn verdict(report: &Report) -> Verdict {
    verdict::of(report)
}
