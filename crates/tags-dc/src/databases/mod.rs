//! Reads the databases that UNITER and TAGS-DC are distributed with, without conversion.
//!
//! | part | here |
//! |---|---|
//! | sentences as word pieces, their images, their phrases | [`TextDatabase`], [`Text`] |
//! | regions of images, with boxes | [`ImageDatabase`], [`ImageValue`] |
//! | which tokens are around a sentence | [`Meta`] |
//!
//! Each database is an LMDB environment with JSON files beside it. It is opened without a lock file, so nobody may write to it while it is
//! open. Neither pages nor values are trusted: a damaged page is an error that names the page, a wrong length costs no memory, and an array
//! of another type or shape is an error that names the array.
//!
//! ```no_run
//! use tags_dc::databases::{Detections, ImageDatabase, TextDatabase};
//!
//! let texts = TextDatabase::open("itm_flickr30k_test.db")?;
//! let images = ImageDatabase::open("flickr30k", Detections::default())?;
//! let split = texts.read(None)?;
//! println!("{} sentences of {} images", split.ids.len(), split.images.len());
//! println!("{} regions", images.image(&split.images[0])?.rows());
//! # Ok::<(), itm_core::Error>(())
//! ```

mod environment;
mod images;
#[cfg(test)]
mod tests;
mod texts;
mod value;

pub use images::{Detections, ImageDatabase, ImageValue};
pub use texts::{LONGEST_IN_TRAINING, Meta, Text, TextDatabase, Texts};
