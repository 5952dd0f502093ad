//! What the command line reads: embeddings, score matrices, run files, pairs and names.
//!
//! | input | formats | reader |
//! |---|---|---|
//! | embeddings, score matrices | `.npy`, `.npz`, `.safetensors`; f16, bf16 (safetensors), f32, f64, bytes with a scale | [`Array`] |
//! | the same, and names, with the feature `parquet` | a column of a `.parquet` table | |
//! | runs | TREC's `qid Q0 docid rank score tag` | [`Run`] |
//! | pairs | `.npy` integers, lines, JSON lists, TREC's qrels | [`PairList`], [`Qrels`] |
//! | names | lines, a field of `.jsonl` | [`parse_names`] |
//!
//! [`load`] puts them together. Every error is one line: place, expected, got. A guess gives a note, and odd data give a
//! warning with counts ([`Messages`]). No reader trusts a size that a file states.

mod args;
mod array;
mod assemble;
mod clip_retrieval;
mod element;
mod loaded;
mod location;
mod messages;
mod names;
#[cfg(not(feature = "parquet"))]
mod no_table;
mod npz;
mod pairs;
mod qrels;
mod rows;
mod run;
mod runs;
mod safetensors;
mod scale;
#[cfg(feature = "parquet")]
mod table;
#[cfg(test)]
mod tests;
mod text;
mod torch;

#[cfg(not(feature = "parquet"))]
use no_table as table;

pub use args::InputArgs;
pub use array::Array;
pub(crate) use assemble::{Arrays, arrays, load_rows, other};
pub use assemble::{load, load_from};
pub(crate) use loaded::view;
pub use loaded::{InputData, InputScores};
pub use location::Location;
pub use messages::Messages;
pub use names::{NameFormat, parse_names};
pub use pairs::{PairFormat, PairList};
pub use qrels::{Judgement, Qrels};
pub(crate) use rows::some_rows;
pub use run::Run;
pub(crate) use run::{RankedList, run_text};

/// Whether this build reads Parquet tables.
const READS_TABLES: bool = cfg!(feature = "parquet");
/// The build that does.
const BUILD_WITH_TABLES: &str =
    "a build with the feature `parquet`: cargo install --features cli,parquet";
