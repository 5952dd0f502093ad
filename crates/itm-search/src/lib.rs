#![doc = include_str!("../README.md")]

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
pub use image;
pub use index::Index;
pub use itm_core::{Error, Result};
pub use picture::Picture;
pub use query::{Query, Term, What};
pub use search::{Answer, Filter, Hit, Options, Searcher, Why};
pub use update::{Sources, Update, check_out, update};
