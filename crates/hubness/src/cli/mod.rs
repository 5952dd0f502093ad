//! The parts of the binary `hubness` (feature `cli`).

pub mod args;
pub mod commands;
mod doubt;
pub mod input;
