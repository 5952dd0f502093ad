//! The pixels of a picture.

use std::io::Cursor;
use std::path::Path;
use std::sync::{Condvar, Mutex};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use super::images::{ImageInfo, LARGEST_IMAGE_FILE, check_sides, probe_bytes};
use crate::files;
use crate::{Error, Result};

/// The most bytes that the pixels of one picture may take as they are decoded: a hundred megapixels of four channels, and some.
const MOST_BYTES: u64 = 512 << 20;
/// The bytes that all threads together decode at a time. A picture waits until it fits; a picture alone always does.
const MOST_AT_ONCE: u64 = 1 << 30;

/// Decodes a picture to 8-bit RGB, after [`probe_image`](super::probe_image) found it whole.
///
/// # Errors
/// As [`probe_image`](super::probe_image); if the pixels would take more than 512 MiB; and if they cannot be decoded.
pub fn decode_image(path: impl AsRef<Path>) -> Result<RgbImage> {
    let path = path.as_ref();
    decode_bytes(&path.display().to_string(), &files::read(path, LARGEST_IMAGE_FILE)?)
}

/// [`decode_image`], turned as its EXIF orientation says: as a person sees the photograph.
///
/// # Errors
/// As [`decode_image`].
pub fn upright_image(path: impl AsRef<Path>) -> Result<RgbImage> {
    let path = path.as_ref();
    upright_bytes(&path.display().to_string(), &files::read(path, LARGEST_IMAGE_FILE)?)
}

/// [`upright_image`] of a file's bytes; errors call it `place`.
///
/// # Errors
/// As [`decode_image`].
pub fn upright_bytes(place: &str, bytes: &[u8]) -> Result<RgbImage> {
    let (image, info) = decoded(place, bytes)?;
    let mut image = DynamicImage::ImageRgb8(image);
    image.apply_orientation(Orientation::from_exif(info.orientation).expect("1 to 8"));
    Ok(image.into_rgb8())
}

/// [`decode_image`] of a file's bytes; errors call it `place`.
///
/// # Errors
/// As [`decode_image`].
pub fn decode_bytes(place: &str, bytes: &[u8]) -> Result<RgbImage> {
    decoded(place, bytes).map(|(image, _)| image)
}

fn decoded(place: &str, bytes: &[u8]) -> Result<(RgbImage, ImageInfo)> {
    let info = probe_bytes(place, bytes)?;
    let format = ImageFormat::from_mime_type(info.format.mime()).expect("a format of the library");
    let refused = |e| Error::invalid(place, "an image", e);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(refused)?;
    let ((width, height), taken) = (decoder.dimensions(), decoder.total_bytes());
    // `probe_bytes` and the decoder may have read two heads.
    let same = (width, height) == (info.width, info.height);
    let expected = format_args!("one head, of {} × {} pixels", info.width, info.height);
    Error::unless(same, place, expected, format_args!("another of {width} × {height}"))?;
    let expected = format_args!("at most {MOST_BYTES} bytes of pixels");
    let got = format_args!("{width} × {height} pixels of {taken} bytes");
    Error::unless(taken <= MOST_BYTES, place, expected, got)?;
    let as_rgb = 3 * u64::from(width) * u64::from(height);
    let _part = Permit::wait(&DECODED, taken + as_rgb);
    Ok((DynamicImage::from_decoder(decoder).map_err(refused)?.into_rgb8(), info))
}

/// A picture from 8-bit RGB pixels `[height, width, 3]`, row by row; errors call it `place`.
///
/// # Errors
/// If a side is 0 or above 16384, there are more than a hundred million pixels, or `pixels` has not 3 × height × width values.
pub fn image_of_pixels(
    place: &str,
    [height, width]: [usize; 2],
    pixels: &[u8],
) -> Result<RgbImage> {
    let [w, h] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    check_sides(place, w, h)?;
    let (got, all) = (pixels.len(), 3 * height * width); // check_sides bounds it
    Error::unless(got == all, place, format_args!("{all} values, 3 × {height} × {width}"), got)?;
    Ok(RgbImage::from_raw(w, h, pixels.to_vec()).expect("as many values as the sides say"))
}

/// Bytes that are being decoded, over all threads.
struct Decoded {
    bytes: Mutex<u64>,
    fewer: Condvar,
}

static DECODED: Decoded = Decoded { bytes: Mutex::new(0), fewer: Condvar::new() };

/// A picture's part of them.
struct Permit<'a> {
    of: &'a Decoded,
    bytes: u64,
}

impl<'a> Permit<'a> {
    fn wait(of: &'a Decoded, bytes: u64) -> Self {
        let all = of.bytes.lock().expect("no panic under this lock");
        let is_full = |all: &mut u64| *all > 0 && *all + bytes > MOST_AT_ONCE;
        *of.fewer.wait_while(all, is_full).expect("no panic under this lock") += bytes;
        Self { of, bytes }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.of.bytes.lock().expect("no panic under this lock") -= self.bytes;
        self.of.fewer.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use image::RgbImage;

    use super::*;
    use crate::data::tests::JPEG;

    /// Many decoders fill truncated data with grey; here half a picture must be an error.
    #[test]
    fn decoding_refuses_half_a_picture() {
        let mut pixels = RgbImage::new(64, 48);
        pixels.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [(4 * x) as u8, (5 * y) as u8, 9]);
        for format in [image::ImageFormat::Jpeg, image::ImageFormat::Png] {
            let mut file = Cursor::new(Vec::new());
            pixels.write_to(&mut file, format).unwrap();
            let bytes = file.into_inner();
            let decoded = decode_bytes("x", &bytes).unwrap();
            assert_eq!(decoded.dimensions(), (64, 48));
            let near = decoded.get_pixel(60, 40).0.iter().zip([240, 200, 9]);
            assert!(near.clone().all(|(&a, b)| a.abs_diff(b) < 16), "{near:?}");
            assert!(decode_bytes("x", &bytes[..bytes.len() / 2]).is_err());
        }
        assert!(decode_bytes("x", JPEG).is_err()); // whole in structure, but without tables
    }

    #[test]
    fn pixels_must_fit_their_sides() {
        let image = image_of_pixels("picture 3", [2, 1], &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!((image.dimensions(), image.get_pixel(0, 1).0), ((1, 2), [4, 5, 6]));
        for few_or_many in [5, 7] {
            let error = image_of_pixels("picture 3", [2, 1], &vec![0; few_or_many]).unwrap_err();
            let want = format!("picture 3: expected 6 values, 3 × 2 × 1, got {few_or_many}");
            assert_eq!(error.to_string(), want);
        }
    }

    fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
        let (length, named) = ((data.len() as u32).to_be_bytes(), [kind, data].concat());
        [&length[..], &named, &crc32(&named).to_be_bytes()].concat()
    }

    fn head(side: u32, depth: u8, colours: u8) -> Vec<u8> {
        let sides = [side.to_be_bytes(), side.to_be_bytes()].concat();
        chunk(b"IHDR", &[&sides[..], &[depth, colours, 0, 0, 0]].concat())
    }

    /// A PNG without pixels, whose other chunks stand before its end.
    fn png(head: &[u8], others: &[u8]) -> Vec<u8> {
        let parts = [&chunk(b"IDAT", &[]), others, &chunk(b"IEND", &[])].concat();
        [b"\x89PNG\r\n\x1a\n", head, &parts].concat()
    }

    /// The head of a PNG, whose pixels are not there: nothing is decoded before the sizes are checked.
    #[test]
    fn the_bytes_of_the_pixels_are_limited() {
        let png = |side, depth, colours| png(&head(side, depth, colours), &[]);
        let line = |bytes: &[u8]| decode_bytes("x.png", bytes).unwrap_err().to_string();
        let want = "x.png: expected at most 536870912 bytes of pixels, got 10000 × 10000 pixels of 800000000 bytes";
        assert_eq!(line(&png(10_000, 16, 6)), want);
        let want = "x.png: expected at most 100000000 pixels, got 10001 × 10001 = 100020001 pixels";
        assert_eq!(line(&png(10_001, 8, 0)), want);
        assert!(line(&png(10_000, 8, 2)).starts_with("x.png: expected an image, got "));
    }

    /// The decoder believes the first head, and who asks for the size got the last one.
    #[test]
    fn a_second_head_is_refused() {
        for (side, other) in [(10_001, 1), (1, 2)] {
            let line = decode_bytes("x.png", &png(&head(side, 8, 0), &head(other, 8, 0)));
            let want = format!(
                "x.png: expected one head, of {other} × {other} pixels, got another of {side} × {side}"
            );
            assert_eq!(line.unwrap_err().to_string(), want);
        }
    }

    /// The checksum of PNG, bit by bit.
    fn crc32(bytes: &[u8]) -> u32 {
        let step = |crc: u32, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
        !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
    }

    #[test]
    fn threads_share_the_bytes_that_are_decoded() {
        let (decoded, most) =
            (Decoded { bytes: Mutex::new(0), fewer: Condvar::new() }, AtomicU64::new(0));
        let part = |bytes: u64| {
            for _ in 0..50 {
                let _part = Permit::wait(&decoded, bytes);
                std::thread::sleep(std::time::Duration::from_micros(200));
                most.fetch_max(*decoded.bytes.lock().unwrap(), Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| {
            for share in [2, 2, 3, 3] {
                scope.spawn(move || part(MOST_AT_ONCE / share));
            }
        });
        assert!(most.into_inner() <= MOST_AT_ONCE);
        assert_eq!(*decoded.bytes.lock().unwrap(), 0);
        drop(Permit::wait(&decoded, 2 * MOST_AT_ONCE)); // alone
    }
}
