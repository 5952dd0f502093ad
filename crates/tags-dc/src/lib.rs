#![doc = include_str!("../README.md")]

#[cfg(feature = "cli")]
pub mod cli;
pub mod inflect;
pub mod phrases;
