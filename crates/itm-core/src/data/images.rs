//! Whether a file is a whole picture.

use std::path::Path;

use super::files;
use crate::{Error, Result};

/// The longest image file that is read: photographs have a few megabytes.
pub const LARGEST_IMAGE_FILE: u64 = 64 << 20;
/// The widest and highest picture that is decoded, in pixels.
pub const LARGEST_IMAGE_SIDE: u32 = 16_384;

/// What an image file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// JPEG or PNG.
    pub format: ImageFormat,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

/// The formats of the data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Flickr and COCO.
    Jpeg,
    /// Scenes.
    Png,
}

/// Reads a picture's structure from first marker to last, without decoding pixels.
///
/// Decoders fill what a truncated JPEG lacks with grey and report success; here its end marker must be there.
///
/// # Errors
/// A missing, overlong or truncated file, or one that is neither JPEG nor PNG; sides of 0 or over
/// [`LARGEST_IMAGE_SIDE`].
pub fn probe_image(path: impl AsRef<Path>) -> Result<ImageInfo> {
    let path = path.as_ref();
    probe_bytes(&path.display().to_string(), &files::read(path, LARGEST_IMAGE_FILE)?)
}

pub(crate) fn probe_bytes(place: &str, bytes: &[u8]) -> Result<ImageInfo> {
    let (format, size) = if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        (ImageFormat::Jpeg, jpeg(bytes))
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        (ImageFormat::Png, png(bytes))
    } else if bytes.is_empty() {
        return Err(Error::invalid(place, "a JPEG or PNG image", "an empty file"));
    } else {
        let got = format!("a file beginning {:02x?}", &bytes[..bytes.len().min(8)]);
        return Err(Error::invalid(place, "a JPEG or PNG image", got));
    };
    match size {
        None => {
            let got = format!("a file that breaks off or is damaged ({} bytes)", bytes.len());
            Err(Error::invalid(place, "a whole image", got))
        }
        Some((width, height)) => {
            if [width, height].iter().any(|side| !(1..=LARGEST_IMAGE_SIDE).contains(side)) {
                let expected = format!("sides of 1 to {LARGEST_IMAGE_SIDE} pixels");
                return Err(Error::invalid(place, expected, format!("{width} × {height}")));
            }
            Ok(ImageInfo { format, width, height })
        }
    }
}

/// Width and height, if all segments up to the end marker are there.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let (mut at, mut size) = (2, None);
    loop {
        // A marker is 0xff (any number of them) and a code.
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let code = *bytes.get(at + 1)?;
        match code {
            0xff => at += 1,
            0xd9 => return size,           // end of image
            0x01 | 0xd0..=0xd7 => at += 2, // no length
            0x00 | 0xd8 => return None,
            _ => {
                let length = be16(bytes, at + 2)?;
                let frame = matches!(code, 0xc0..=0xcf) && ![0xc4, 0xc8, 0xcc].contains(&code);
                if frame {
                    size = Some((be16(bytes, at + 7)? as u32, be16(bytes, at + 5)? as u32));
                }
                at += 2 + length.max(2);
                if code == 0xda {
                    at = end_of_scan(bytes, at)?; // start of scan: compressed data until the next marker
                }
            }
        }
    }
}

/// Where compressed data ends: at a marker that is neither a stuffed 0xff nor a restart.
fn end_of_scan(bytes: &[u8], from: usize) -> Option<usize> {
    let pairs = bytes.get(from..)?.windows(2);
    let end = |w: &[u8]| w[0] == 0xff && !matches!(w[1], 0x00 | 0xd0..=0xd7 | 0xff);
    pairs.enumerate().find(|(_, w)| end(w)).map(|(i, _)| from + i)
}

/// Width and height, if all chunks up to `IEND` are there.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let (mut at, mut size) = (8, None);
    loop {
        let length = be32(bytes, at)? as usize;
        let kind = bytes.get(at + 4..at + 8)?;
        bytes.get(at..)?.get(..length.checked_add(12)?)?; // length, kind, data, checksum
        match kind {
            b"IHDR" if length == 13 => size = Some((be32(bytes, at + 8)?, be32(bytes, at + 12)?)),
            b"IEND" => return size,
            _ => {}
        }
        at += length + 12;
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..at + 2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]])))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// Decodes a picture to 8-bit RGB, after [`probe_image`] found it whole.
///
/// # Errors
/// As [`probe_image`], and pixels that cannot be decoded.
#[cfg(feature = "images")]
pub fn decode_image(path: impl AsRef<Path>) -> Result<image::RgbImage> {
    let path = path.as_ref();
    let bytes = files::read(path, LARGEST_IMAGE_FILE)?;
    decode_bytes(&path.display().to_string(), &bytes)
}

#[cfg(feature = "images")]
pub(crate) fn decode_bytes(place: &str, bytes: &[u8]) -> Result<image::RgbImage> {
    let info = probe_bytes(place, bytes)?;
    let format = match info.format {
        ImageFormat::Jpeg => image::ImageFormat::Jpeg,
        ImageFormat::Png => image::ImageFormat::Png,
    };
    let mut reader = image::ImageReader::with_format(std::io::Cursor::new(bytes), format);
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(LARGEST_IMAGE_SIDE);
    limits.max_image_height = Some(LARGEST_IMAGE_SIDE);
    limits.max_alloc = Some(1 << 30);
    reader.limits(limits);
    let image = reader.decode().map_err(|e| Error::invalid(place, "an image", e))?;
    Ok(image.into_rgb8())
}
