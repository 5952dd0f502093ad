//! The corrections that take a bank: golden values, identities that tie them together, and the traps of each.
#![allow(clippy::unwrap_used)] // helpers of tests are outside of test functions

mod common;
mod dual_bank;
mod golden;
mod identities;
mod laws;
mod local_scaling;
mod mutual_proximity;
mod nnn;
mod querybank;
mod service;
mod sinkhorn;
