//! Fused operations that make [burn](https://burn.dev) train fast on a CPU.
//!
//! Two halves. The vector half ([`gru`], [`rows`], [`math`]) works on slices and knows no framework. The burn half
//! (feature `burn`) makes each operation one node of the autodiff graph on every backend: fused where this crate
//! has a kernel (feature `flex`, the CPU), composed of burn's own operations elsewhere.
//!
//! | operation | vector half | burn half |
//! |---|---|---|
//! | gated recurrent unit over whole sequences | [`gru::forward`], [`gru::backward`] | `Gru` |
//! | rows of unit length | [`rows::normalize`] | `normalize_rows` |
//! | mean over the real steps of padded sequences | [`rows::masked_mean`] | `masked_mean` |
//!
//! The instruction set (AVX-512, AVX2 with FMA, or what the target guarantees) is chosen at run time. Sums have a fixed
//! order: results do not depend on the number of threads.

mod dispatch;
pub mod gru;
pub mod math;
mod product;
pub mod random;
pub mod rows;

#[cfg(feature = "burn")]
mod composed;
#[cfg(feature = "burn")]
mod layers;
#[cfg(feature = "burn")]
// Without a backend the generated dispatch has no arm that would use the arguments.
#[cfg_attr(not(any(feature = "flex", feature = "cube", feature = "tch")), allow(unused_variables))]
mod ops;

#[cfg(feature = "burn")]
pub use layers::{Gru, masked_mean, normalize_rows, uniform};
#[cfg(feature = "burn")]
pub use ops::FusedOps;
