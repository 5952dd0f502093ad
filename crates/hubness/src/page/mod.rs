//! What `hubness report` shows: a [`Report`](crate::report::Report) as JSON, as text for a terminal, as one HTML file.
//!
//! This module only shows numbers that other modules computed. All three forms say the same: `--json` prints the report, and
//! [`fn@terminal`] and [`fn@html`] draw only from the report.

mod histogram;
mod html;
mod methods;
mod plots;
mod table;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
mod verdict;

pub use html::render as html;
pub use terminal::render as terminal;
