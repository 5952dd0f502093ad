//! Checkpoints as Hugging Face folders keep them: `config.json` beside `model.safetensors`, shards with an index, or
//! `pytorch_model.bin`.
//!
//! | step | here |
//! |---|---|
//! | one file of tensors, by itself | [`WeightFiles::open`] |
//! | a path, or `org/name@revision` from a cache | [`Hub::folder`] |
//! | the tensors of a folder, read one at a time | [`WeightFiles`] |
//! | what was missing, misshaped or not needed | [`LoadReport`] |
//! | a model with these weights (feature `burn`) | `encoders::Vit::open`, `encoders::Bert::open` |

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
pub use hub::{Hub, Network};
#[cfg(feature = "burn")]
pub use load::load;
#[cfg(feature = "burn")]
pub use names::{Names, Unknown};
pub use report::{LoadReport, Misshaped};
#[cfg(feature = "burn")]
pub use save::{save, save_file};

/// Shape of a parameter in the file, where it is not the one that follows from ours.
#[cfg(feature = "burn")]
pub type Reshaped<'a> = &'a dyn Fn(&str) -> Option<Vec<usize>>;

/// Whether a matrix stands in the file as `[out, in]`: linear maps do, tables of rows do not.
#[cfg(feature = "burn")]
fn transposed(name: &str) -> bool {
    name.ends_with(".weight")
}
