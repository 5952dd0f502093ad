//! Checkpoints as Hugging Face folders keep them: `config.json` beside `model.safetensors`, shards with an index, or
//! `pytorch_model.bin`.
//!
//! | step | here |
//! |---|---|
//! | a path, or `org/name@revision` from a cache | [`Hub::folder`] |
//! | the tensors of a folder, read one at a time | [`WeightFiles`] |
//! | what was missing, misshaped or not needed | [`LoadReport`] |
//! | a model with these weights (feature `burn`) | `encoders::Vit::open`, `encoders::Bert::open` |

mod files;
mod hub;
#[cfg(any(feature = "burn", test))]
pub(crate) mod names;
mod report;
mod safe;

pub use files::WeightFiles;
pub use hub::{Hub, Network};
pub use report::{LoadReport, Misshaped};
