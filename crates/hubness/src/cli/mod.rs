//! What the binary `hubness` is made of (feature `cli`).

mod analysis;
pub mod args;
mod check;
pub mod commands;
pub mod input;
pub mod methods;
pub mod report;
