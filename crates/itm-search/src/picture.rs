//! One picture of an index.

use serde::{Deserialize, Serialize};

/// A picture. Its number is its place in [`Index::pictures`](crate::Index::pictures), which is in the order of paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Below the folder of the photographs, with `/`.
    pub path: String,
    /// Length of the file.
    pub bytes: u64,
    /// When the file was written, in nanoseconds since 1970.
    pub modified: i64,
    /// Of the file's bytes.
    pub sha256: String,
    /// Width and height, upright.
    pub size: [u32; 2],
    /// When the photograph was taken, by its EXIF data: `2024-05-01T12:30:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// The camera.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<String>,
    /// Latitude and longitude in degrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<[f64; 2]>,
}
