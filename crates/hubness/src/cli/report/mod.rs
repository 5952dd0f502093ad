//! What `hubness report` shows: a [`Report`](crate::report::Report) as JSON, as text for a terminal, as one HTML file.
//!
//! The numbers come from elsewhere; here they are only shown. All three say the same: the report is what `--json` prints,
//! [`fn@terminal`] and [`fn@html`] are drawn from it alone.

mod histogram;
mod html;
mod methods;
mod plots;
#[cfg(test)]
pub(crate) mod sample;
mod table;
mod terminal;
mod verdict;

pub use html::render as html;
pub use terminal::render as terminal;
