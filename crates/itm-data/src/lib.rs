#![doc = include_str!("../README.md")]

mod error;
mod fields;
mod pairs;
mod relevance;

#[cfg(feature = "arrays")]
pub mod arrays;
pub mod data;
pub mod files;
pub mod output;
pub mod text;
pub mod threads;
#[cfg(feature = "images")]
pub mod vision;
#[cfg(feature = "weights")]
pub mod weights;

pub use error::{Error, Result};
pub use fields::Fields;
pub use pairs::Pairs;
pub use relevance::Relevance;
