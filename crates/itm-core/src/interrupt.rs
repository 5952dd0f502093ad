//! Ends long passes from another thread, for programs that must answer Ctrl-C themselves.
//!
//! A pass looks at the flag between tiles, and a bootstrap between replicates. If the flag is set, the pass unwinds with [`Interrupted`], and prints
//! nothing. Whoever sets the flag catches it.
//!
//! ```standalone_crate
//! use itm_core::interrupt::{self, Interrupted};
//! use itm_core::tiles::{Embeddings, Maxima, Tiles};
//!
//! let rows = Embeddings::new("rows", 2, 1, &[1.0, 2.0])?;
//! let tiles = Tiles::new(rows, rows)?;
//! interrupt::set(true);
//! let ended = std::panic::catch_unwind(|| tiles.run(&Maxima));
//! interrupt::set(false);
//! assert!(ended.unwrap_err().is::<Interrupted>());
//! # Ok::<(), itm_core::Error>(())
//! ```

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

static FLAG: AtomicBool = AtomicBool::new(false);

/// What a pass that was ended unwinds with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// Whether passes shall end: all of this process.
pub fn set(end: bool) {
    FLAG.store(end, Ordering::Relaxed);
}

/// Unwinds if the flag is set: for long loops that are no pass.
///
/// # Panics
/// With [`Interrupted`] as the payload, and without a message.
#[inline]
pub fn check() {
    if FLAG.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Interrupted));
    }
}
