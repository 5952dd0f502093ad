//! Checkpoints in the layout of Hugging Face folders: `config.json` with `model.safetensors`, shards with an index, or
//! `pytorch_model.bin`.
//!
//! | step | here |
//! |---|---|
//! | a single file of tensors | [`WeightFiles::open`] |
//! | a path, or `org/name@revision` from a cache | [`Hub::folder`] |
//! | the tensors of a folder, read one at a time | [`WeightFiles`] |
//! | missing, misshaped and unused tensors | [`LoadReport`] |

mod files;
mod hub;
mod report;
mod safe;

pub use files::{OPEN_CLIP_CONFIG, WeightFiles, is_of_open_clip, open_clip_weights};
pub use hub::{Hub, SMALL_FILES};
pub use report::LoadReport;
