//! Search in your own photographs: by a sentence, by another photograph, by sums of both.
//!
//! [`update`] makes an [`Index`] of a folder with any [`Encoder`]; [`Searcher`] answers queries. Scores are cosines; a correction for hubs,
//! fitted on a bank of ordinary queries, takes from each picture what it gets from any query. This crate has no encoder of its own
//! and no deep-learning framework: the binary `itm` brings published models and finished trainings.
//!
//! | symbol | name | shape |
//! |---|---|---|
//! | `n`, `d` | pictures, width of a row | |
//! | `v_j` | unit row of picture `j` | `[n, d]` |
//! | `q` | unit row of a query: the weighted sum of its terms | `[d]` |
//! | `b_j` | what picture `j` gets from any query of the bank ([`hubness::export::biases`]), less the mean over pictures | `[n]` |
//!
//! ```text
//! cosine = ⟨q, v_j⟩        score = cosine − b_j
//! ```

mod bank;
mod encoder;
mod exif;
#[cfg(test)]
mod fakes;
mod folder;
mod index;
mod journal;
mod levels;
mod pass;
mod picture;
mod query;
mod search;
#[cfg(feature = "serve")]
pub mod serve;
mod store;
mod update;

pub use bank::ordinary_queries;
pub use encoder::{Encoder, Model, Patches};
pub use index::Index;
pub use picture::Picture;
pub use query::{Query, Term, What};
pub use search::{Answer, Filter, Hit, Options, Searcher, Why};
pub use update::{Sources, Update, check_out, update};
