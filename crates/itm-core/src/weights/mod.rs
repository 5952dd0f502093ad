//! Checkpoints in the layout of Hugging Face folders, as `itm_data::weights` reads them, and modules with these weights:
//! `encoders::Vit::open`, `encoders::Bert::open`, `load`, `save_file` (feature `burn`).

#[cfg(feature = "burn")]
pub(crate) mod adapter;
#[cfg(feature = "burn")]
mod load;
#[cfg(feature = "burn")]
mod names;
#[cfg(feature = "burn")]
mod save;

pub use itm_data::weights::*;
#[cfg(feature = "burn")]
pub use load::load;
#[cfg(feature = "burn")]
pub use names::{TensorNames, Unknown};
#[cfg(feature = "burn")]
pub(crate) use save::save;
#[cfg(feature = "burn")]
pub use save::save_file;

/// Shape of a parameter in the file, if it does not follow from the shape of our parameter.
#[cfg(feature = "burn")]
type ShapeInFile<'a> = &'a dyn Fn(&str) -> Option<Vec<usize>>;
