//! Checkpoints in the layout of Hugging Face folders: `config.json` with `model.safetensors`, shards with an index, or
//! `pytorch_model.bin`.
//!
//! | step | here |
//! |---|---|
//! | a single file of tensors | [`WeightFiles::open`] |
//! | a path, or `org/name@revision` from a cache | [`Hub::folder`] |
//! | the tensors of a folder, read one at a time | [`WeightFiles`] |
//! | missing, misshaped and unused tensors | [`LoadReport`] |
//! | a model with these weights (feature `burn`) | `encoders::Vit::open`, `encoders::Bert::open` |

#[cfg(feature = "burn")]
pub(crate) mod adapter;
mod files;
mod hub;
#[cfg(feature = "burn")]
mod load;
#[cfg(feature = "burn")]
mod names;
mod report;
mod safe;
#[cfg(feature = "burn")]
mod save;

pub use files::WeightFiles;
#[cfg(feature = "burn")]
pub(crate) use files::{OPEN_CLIP_CONFIG, is_of_open_clip, open_clip_weights};
pub use hub::Hub;
#[cfg(feature = "burn")]
pub use load::load;
#[cfg(feature = "burn")]
pub use names::{TensorNames, Unknown};
pub use report::{LoadReport, ShapeMismatch};
#[cfg(feature = "burn")]
pub(crate) use save::write_json;
#[cfg(feature = "burn")]
pub use save::{save, save_file};

/// Shape of a parameter in the file, if it does not follow from the shape of our parameter.
#[cfg(feature = "burn")]
type ShapeInFile<'a> = &'a dyn Fn(&str) -> Option<Vec<usize>>;
