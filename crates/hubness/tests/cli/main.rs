//! The binary `hubness`, run as its users run it, on small made data.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which may")]

mod bad_input;
mod choosing;
mod common;
mod dual_parts;
mod export;
mod formulas;
mod options;
mod parts;
mod report;
mod rescore;
mod runs;
mod scan;
