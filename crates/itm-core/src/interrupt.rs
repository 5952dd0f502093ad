//! Ends long passes from another thread, for programs that must answer Ctrl-C themselves.
//!
//! A pass looks at the flag between tiles or bands of scores, and a bootstrap between replicates. If the flag is set, the pass unwinds with [`Interrupted`], and prints
//! nothing. Whoever sets the flag catches it.
//!
//! ```standalone_crate
//! use itm_core::interrupt::{self, Interrupted};
//! use itm_core::scored::{EmbeddingRows, Scored, Similarity};
//! use itm_core::tiles::{Embeddings, Maxima, Tiles};
//! use itm_core::{Pairs, Relevance, ScoreMatrix};
//!
//! let rows = Embeddings::new("rows", 2, 1, &[1.0, 2.0])?;
//! let (tiles, scores) = (Tiles::new(rows, rows)?, ScoreMatrix::from_rows([[1.0]]));
//! let similarity = Similarity::Order; // its scores come in bands
//! let bands = EmbeddingRows { dim: 1, images: vec![1.0], texts: vec![1.0], similarity };
//! let truth = Relevance::new(1, vec![vec![0]]);
//! interrupt::set(true);
//! let ended = [
//!     std::panic::catch_unwind(|| drop(tiles.run(&Maxima))),
//!     std::panic::catch_unwind(|| drop(scores.run(&Maxima))),
//!     std::panic::catch_unwind(|| drop(bands.ranks(&Pairs::uniform(1, 1)))),
//!     std::panic::catch_unwind(|| drop(<dyn Scored>::evaluate_multi(&scores, &truth))),
//! ];
//! interrupt::set(false);
//! assert!(ended.into_iter().all(|ended| ended.unwrap_err().is::<Interrupted>()));
//! # Ok::<(), itm_core::Error>(())
//! ```

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

static FLAG: AtomicBool = AtomicBool::new(false);

/// What a pass that was ended unwinds with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// Whether passes shall end: all of this process.
pub fn set(end: bool) {
    FLAG.store(end, Ordering::Relaxed);
}

fn is_set() -> bool {
    FLAG.load(Ordering::Relaxed)
}

/// Unwinds if the flag is set: for long loops that are no pass.
///
/// # Panics
/// With [`Interrupted`] as the payload, and without a message.
#[inline]
pub fn check() {
    if is_set() {
        resume_unwind(Box::new(Interrupted));
    }
}

/// Many small results of numbers below `count`, made in parallel, in their order.
///
/// # Panics
/// As [`check`]. It unwinds once: a parallel loop whose every step unwinds is split until it has as many pieces as steps.
pub fn each<T: Send>(count: u64, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let one = |number| (!is_set()).then(|| of(number));
    let all: Vec<T> = (0..count).into_par_iter().map(one).while_some().collect();
    if (all.len() as u64) < count {
        resume_unwind(Box::new(Interrupted));
    }
    all
}
