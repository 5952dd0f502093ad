//! Hubs: how many queries find each item, how unequal these counts are, and which queries a hub wins wrongly.
//!
//! ```
//! use hubness::hubs::Counts;
//! use hubness::{Direction, TopLists};
//!
//! // Three queries and the one item each finds: text 0 is a hub.
//! let top = TopLists::new(Direction::I2t, 1, vec![0, 0, 0], vec![0.9, 0.7, 0.8]);
//! let counts = Counts::top(3, 1, &top);
//! assert_eq!(counts.values, [3, 0, 0]);
//! assert!((counts.skewness() - 0.5f64.sqrt()).abs() < 1e-12);
//! assert!((counts.robin_hood() - 2.0 / 3.0).abs() < 1e-12);
//! ```

mod counts;
mod histogram;
mod measures;
mod nearest;
mod worst;

#[cfg(test)]
mod tests;

pub use counts::Counts;
pub use histogram::{Bar, Histogram};
pub use measures::HubMeasures;
pub use nearest::{Nearest, bootstrap_difference};
pub use worst::{Hub, Victim, worst_hubs};
