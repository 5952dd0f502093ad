//! What the binary `hubness` is made of (feature `cli`).

pub mod args;
pub mod commands;
pub mod input;
pub mod report;
