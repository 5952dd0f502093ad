//! What the command line reads: embeddings, score matrices, run files, pairs and names.
//!
//! | input | formats | reader |
//! |---|---|---|
//! | embeddings, score matrices | `.npy`, `.safetensors`; f16, bf16 (safetensors), f32, f64 | [`Array`] |
//! | runs | TREC's `qid Q0 docid rank score tag` | [`Run`] |
//! | pairs | `.npy` integers, lines, JSON lists, TREC's qrels | [`PairList`], [`Qrels`] |
//! | names | lines, a field of `.jsonl` | [`parse_names`] |
//!
//! [`load`] puts them together. Every error is one line: place, expected, got. A guess gives a note, and odd data give a
//! warning with counts ([`Messages`]). No reader trusts a size that a file states.

mod args;
mod array;
mod assemble;
mod loaded;
mod location;
mod messages;
mod names;
mod npz;
mod pairs;
mod qrels;
mod rows;
mod run;
mod runs;
mod safetensors;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;

pub use args::InputArgs;
pub use array::Array;
pub use assemble::{load, load_from};
pub use loaded::{Loaded, LoadedBank, LoadedScores};
pub use location::Location;
pub use messages::Messages;
pub use names::{NameFormat, parse_names};
pub use pairs::{PairFormat, PairList};
pub use qrels::{Judged, Qrels};
pub use run::{Entry, Run, write_run};

use crate::rows::Length;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Where scores come from.
    pub source: Source,
    /// Which texts belong to which image.
    pub pairs: Option<Location>,
    /// Names of images.
    pub image_names: Option<Location>,
    /// Names of texts.
    pub text_names: Option<Location>,
    /// Whether embeddings are scaled to unit length; matrices and runs stay as they are.
    pub length: Length,
    /// Held-out images.
    pub bank_images: Option<Location>,
    /// Held-out texts.
    pub bank_texts: Option<Location>,
}

impl Request {
    /// A request with this source and nothing else.
    pub fn of(source: Source) -> Self {
        Self {
            source,
            pairs: None,
            image_names: None,
            text_names: None,
            length: Length::default(),
            bank_images: None,
            bank_texts: None,
        }
    }
}

/// Where scores come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// One row per image, one row per text.
    Embeddings {
        /// The file of the images.
        images: Location,
        /// The file of the texts.
        texts: Location,
    },
    /// A matrix: rows are images, columns are texts.
    Matrix(Location),
    /// One TREC run per direction, at least one.
    Runs {
        /// The run whose queries are images.
        i2t: Option<Location>,
        /// The run whose queries are texts.
        t2i: Option<Location>,
    },
}
