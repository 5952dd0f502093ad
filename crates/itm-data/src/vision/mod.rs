//! Pictures for the encoders: Pillow's resize, FNE's transforms, prefetched batches.
//!
//! | step | here |
//! |---|---|
//! | file → 8-bit RGB | [`decode_image`](crate::data::decode_image): grey is repeated, alpha dropped, 16 bits rounded to 8 |
//! | 8-bit RGB → n × n | [`resize()`]: Pillow's, equal in every byte |
//! | evaluation: → floats | [`Transform`], also as a published folder asks for |
//! | training: crop, flip, two random operations → floats | [`Augment`], a function of a seed |
//! | batches prepared ahead on worker threads | [`Prefetch`], [`PictureBatch`] |

mod augment;
mod batch;
mod folder;
mod operations;
mod prefetch;
mod resize;
mod transform;

pub use augment::Augment;
pub use batch::{Picture, PictureBatch, PictureSource};
pub use operations::Overflow;
pub use prefetch::{Ahead, Prefetch};
pub use resize::{Resampling, resize};
pub use transform::{CropRounding, Fit, Normalization, Transform};

#[cfg(test)]
mod golden;
