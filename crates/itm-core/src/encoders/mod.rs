//! Encoders that several methods share. They return rows of unit length.

mod gru_text;
mod projection;
mod tokens;

pub use gru_text::{GruText, GruTextShape, TextPool};
pub use projection::Projection;
pub use tokens::TokenBatch;
