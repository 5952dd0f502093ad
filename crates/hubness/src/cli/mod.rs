//! What the binary `hubness` is made of (feature `cli`).

pub mod report;
//! The command line `hubness`.

pub mod input;
