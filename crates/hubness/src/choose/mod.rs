//! Choosing parameters without fooling yourself.
//!
//! The best of many settings on a test set owes part of its lead to luck. [`cross_fit`] chooses on one part of the images
//! and counts on the other; [`choose_on_validation`] chooses on separate data. Both read a [`HitTable`]: hits are counted
//! once for every setting, against the *full* gallery, because a smaller gallery has another optimum.
//!
//! Settings are chosen for each direction. With the test queries as a bank the corrections stay transductive: cross-fitting hides
//! labels, not queries.
//!
//! ```
//! use hubness::choose::{Goal, HitTable, FoldSplit, cross_fit};
//!
//! // Four images, two settings; hits at 1, 5, 10 of each image's one query.
//! let mut table = HitTable::default();
//! table.push("nns", 0.0, vec![[0, 1, 1], [0, 0, 1], [1, 1, 1], [0, 1, 1]])?;
//! table.push("csls k=10", 1.0, vec![[1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]])?;
//! let split = FoldSplit::hashed(&["cat.jpg", "dog.jpg", "car.jpg", "hat.jpg"], 2, 0)?;
//! let fit = cross_fit(&table, &split, Goal::Sum)?;
//! assert_eq!(fit.chosen, [Some(1), Some(1)]);
//! assert_eq!(fit.hits, [[1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]]); // R@1 is 75 %
//! # Ok::<(), hubness::Error>(())
//! ```

mod cross_fit;
mod split;
mod table;

#[cfg(test)]
mod tests;

pub use cross_fit::{CrossFit, choose_on_validation, cross_fit};
pub use split::FoldSplit;
use table::Candidate;
pub use table::{Goal, HitTable, joined_hits};
