//! The command line `hubness`.

pub mod input;
