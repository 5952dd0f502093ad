//! HAL and its baselines as losses of a batch: SUM, MAX, HAL, MAX + HAL and the later (AAAI) loss. Also the similarity
//! of order embeddings. Needs the feature `burn`.
//!
//! | loss | here | reduction |
//! |---|---|---|
//! | SUM, Eq. 2 | [`sum`] | sum |
//! | MAX, Eq. 3 | [`max`] | sum |
//! | HAL, Eq. 4 in Eq. 2 | [`hal`] | sum |
//! | MAX + HAL, Eq. 4 in Eq. 3 | [`max_hal`] | sum |
//! | AAAI, within the batch | [`aaai_local`] | mean |
//! | AAAI, with a memory bank | [`aaai_bank`] | mean |
//!
//! All take the scores of a batch: rows are images, columns are texts, and true pairs are on the diagonal. They return
//! their terms; the caller applies the reduction.

mod aaai;
mod hinges;
mod reweight;
mod select;

pub use aaai::{AaaiOptions, BankOptions, BankScores, BankWeights, aaai_bank, aaai_local};
pub use hinges::{hal, max, max_hal, sum};
pub use itm_core::Siblings;
pub use itm_kernels::order_similarity;
pub use reweight::{Exclusion, HubOptions, ReweightScope, hub_factors, reweighted};

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;
