//! Whether a file is a whole picture.

use std::path::Path;

use crate::files::{self, contents};
use crate::{Error, Result};

/// The largest image file that is read: photographs have a few megabytes.
pub const LARGEST_IMAGE_FILE: u64 = 64 << 20;
/// The largest width and height of a picture, in pixels.
pub(crate) const LARGEST_IMAGE_SIDE: u32 = 16_384;
/// The most pixels of a picture: a hundred megapixels. A few kilobytes can claim more.
pub(crate) const MOST_PIXELS: u64 = 100_000_000;

/// What an image file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// How it is written.
    pub format: ImageFormat,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// How its EXIF data tell to turn or mirror it, 1 to 8: 1 is upright. Only [`upright_image`](super::upright_image) follows
    /// them; the programs of the papers do not.
    pub orientation: u8,
}

/// The formats of pictures that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Flickr and COCO.
    Jpeg,
    /// Scenes.
    Png,
    /// Photographs from elsewhere.
    WebP,
}

impl ImageFormat {
    /// The media type, as a page names it.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
        }
    }
}

/// Whether a file's name ends like a picture: `.jpg`, `.jpeg`, `.png`, `.webp`, in small or capital letters.
pub fn is_picture(name: impl AsRef<Path>) -> bool {
    let end = name.as_ref().extension().unwrap_or_default().to_ascii_lowercase();
    ["jpg", "jpeg", "png", "webp"].iter().any(|known| end == *known)
}

/// What a reader of a report must know about pictures with an EXIF rotation.
pub fn turned_pictures(count: usize) -> String {
    format!(
        "{count} pictures have an EXIF rotation, which is not applied: their pixels are taken as stored"
    )
}

/// Reads a picture's structure from first marker to last, without decoding pixels.
///
/// Decoders fill the missing part of a truncated JPEG with grey and report success; here the end marker must exist.
///
/// # Errors
/// If the file is missing, larger than [`LARGEST_IMAGE_FILE`], truncated, or neither JPEG nor PNG nor WebP, or if a side is 0 or
/// above 16,384, or if there are more than 100 million pixels.
pub fn probe_image(path: impl AsRef<Path>) -> Result<ImageInfo> {
    let path = path.as_ref();
    probe_bytes(&path.display().to_string(), &files::read(path, LARGEST_IMAGE_FILE)?)
}

pub(crate) fn probe_bytes(place: &str, bytes: &[u8]) -> Result<ImageInfo> {
    let (format, structure) = if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        (ImageFormat::Jpeg, jpeg(bytes))
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        (ImageFormat::Png, png(bytes))
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        (ImageFormat::WebP, webp(bytes))
    } else {
        return Err(Error::invalid(place, "a JPEG, PNG or WebP image", contents(bytes)));
    };
    let Some((width, height, exif)) = structure else {
        let got = format!("a truncated or damaged file ({} bytes)", bytes.len());
        return Err(Error::invalid(place, "a whole image", got));
    };
    check_sides(place, width, height)?;
    Ok(ImageInfo { format, width, height, orientation: orientation(exif).unwrap_or(1) })
}

/// # Errors
/// If a side is 0 or too large, or there are too many pixels.
pub(super) fn check_sides(place: &str, width: u32, height: u32) -> Result<()> {
    let fits = [width, height].iter().all(|side| (1..=LARGEST_IMAGE_SIDE).contains(side));
    let expected = format_args!("sides of 1 to {LARGEST_IMAGE_SIDE} pixels");
    Error::unless(fits, place, expected, format_args!("{width} × {height}"))?;
    let pixels = u64::from(width) * u64::from(height);
    let got = format_args!("{width} × {height} = {pixels} pixels");
    Error::unless(pixels <= MOST_PIXELS, place, format_args!("at most {MOST_PIXELS} pixels"), got)
}

/// Width, height and EXIF data; the data are empty if there are none.
type Structure<'a> = (u32, u32, &'a [u8]);

/// What a JPEG says of itself, if all segments up to the end marker exist.
fn jpeg(bytes: &[u8]) -> Option<Structure<'_>> {
    let (mut at, mut size, mut exif) = (2, None, None);
    loop {
        // A marker is 0xff (any number of them) and a code.
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let code = *bytes.get(at + 1)?;
        match code {
            0xff => at += 1,
            0xd9 => return size.map(|(width, height)| (width, height, exif.unwrap_or_default())), // end of image
            0x01 | 0xd0..=0xd7 => at += 2, // no length
            0x00 | 0xd8 => return None,
            _ => {
                let length = number(bytes, at + 2, 2, true)? as usize;
                let frame = matches!(code, 0xc0..=0xcf) && ![0xc4, 0xc8, 0xcc].contains(&code);
                if frame {
                    let side = |at| number(bytes, at, 2, true);
                    size = Some((side(at + 7)?, side(at + 5)?));
                }
                let data = bytes.get(at + 4..at + 2 + length).unwrap_or_default();
                if code == 0xe1 && data.starts_with(b"Exif\0\0") {
                    exif.get_or_insert(data);
                }
                at += 2 + length.max(2);
                if code == 0xda {
                    exif.get_or_insert(&[]); // EXIF data come before the compressed data
                    at = end_of_scan(bytes, at)?; // start of scan: compressed data until the next marker
                }
            }
        }
    }
}

/// The EXIF orientation, 1 to 8: the entry of tag 0x0112 in the first directory of TIFF data. 1 is upright.
fn orientation(exif: &[u8]) -> Option<u8> {
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif); // in a chunk only some programs write the prefix
    let big = tiff.starts_with(b"MM");
    let number = |at: usize, count: usize| number(tiff, at, count, big);
    let start = number(4, 4)? as usize;
    let entries = (0..number(start, 2)? as usize).map(|entry| start + 2 + 12 * entry);
    let found = entries.map_while(|at| Some((number(at, 2)?, number(at + 8, 2)?)));
    let value = found.into_iter().find(|(tag, _)| *tag == 0x0112)?.1;
    u8::try_from(value).ok().filter(|orientation| (1..=8).contains(orientation))
}

/// What a WebP says of itself, if the file is as long as its head says.
fn webp(bytes: &[u8]) -> Option<Structure<'_>> {
    let le = |at: usize, count: usize| number(bytes, at, count, false);
    bytes.get(..(le(4, 4)? as usize).checked_add(8)?)?;
    let (width, height) = match bytes.get(12..16)? {
        b"VP8X" => (1 + le(24, 3)?, 1 + le(27, 3)?),
        b"VP8L" => {
            let sides = le(21, 4)?; // 14 bits each
            (1 + (sides & 0x3fff), 1 + (sides >> 14 & 0x3fff))
        }
        b"VP8 " => (le(26, 2)? & 0x3fff, le(28, 2)? & 0x3fff),
        _ => return None,
    };
    let mut at = 12;
    let mut chunks = std::iter::from_fn(|| {
        let (kind, length) = (bytes.get(at..at + 4)?, le(at + 4, 4)? as usize);
        let data = bytes.get(at + 8..)?.get(..length)?;
        at += 8 + length.next_multiple_of(2);
        Some((kind, data))
    });
    let exif = chunks.find(|(kind, _)| is_exif(kind));
    Some((width, height, exif.map(|(_, data)| data).unwrap_or_default()))
}

/// Whether a chunk of a PNG or a WebP holds EXIF data.
fn is_exif(kind: &[u8]) -> bool {
    matches!(kind, b"eXIf" | b"EXIF")
}

/// Where compressed data ends: at a marker that is neither a stuffed 0xff nor a restart.
fn end_of_scan(bytes: &[u8], from: usize) -> Option<usize> {
    let pairs = bytes.get(from..)?.windows(2);
    let end = |w: &[u8]| w[0] == 0xff && !matches!(w[1], 0x00 | 0xd0..=0xd7 | 0xff);
    pairs.enumerate().find(|(_, w)| end(w)).map(|(i, _)| from + i)
}

/// What a PNG says of itself, if all chunks up to `IEND` exist.
fn png(bytes: &[u8]) -> Option<Structure<'_>> {
    let (mut at, mut size, mut exif) = (8, None, None);
    let be32 = |at: usize| number(bytes, at, 4, true);
    loop {
        let length = be32(at)? as usize;
        let kind = bytes.get(at + 4..at + 8)?;
        let chunk = bytes.get(at..)?.get(..length.checked_add(12)?)?; // length, kind, data, checksum
        match kind {
            b"IHDR" if length == 13 => size = Some((be32(at + 8)?, be32(at + 12)?)),
            b"IEND" => {
                return size.map(|(width, height)| (width, height, exif.unwrap_or_default()));
            }
            _ if is_exif(kind) => _ = exif.get_or_insert(&chunk[8..8 + length]),
            _ => {}
        }
        at += length + 12;
    }
}

/// The number of at most 4 bytes at a place, with its `big` end first or last.
fn number(bytes: &[u8], at: usize, count: usize, big: bool) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(count)?)?;
    let fold = |n: u32, byte: &u8| n << 8 | u32::from(*byte);
    Some(if big { raw.iter().fold(0, fold) } else { raw.iter().rev().fold(0, fold) })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::data::tests::JPEG;

    /// 3 × 2, grey, written by Pillow.
    const PNG: &[u8] = &[
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 3, 0, 0, 0, 2, 8, 0,
        0, 0, 0, 184, 31, 57, 198, 0, 0, 0, 16, 73, 68, 65, 84, 120, 156, 99, 100, 103, 96, 96, 98,
        96, 96, 0, 0, 0, 73, 0, 11, 203, 10, 231, 106, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96,
        130,
    ];

    /// 3 × 2, written by Pillow: without loss, and with loss.
    const WEBP: [&[u8]; 2] = [
        &[
            82, 73, 70, 70, 36, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 76, 24, 0, 0, 0, 47, 2, 64, 0,
            0, 23, 16, 243, 47, 32, 40, 242, 127, 180, 249, 15, 218, 224, 2, 16, 17, 253, 15, 1,
        ],
        &[
            82, 73, 70, 70, 56, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 32, 44, 0, 0, 0, 112, 1, 0,
            157, 1, 42, 3, 0, 2, 0, 7, 64, 150, 37, 168, 2, 116, 1, 64, 0, 0, 254, 238, 82, 147,
            170, 167, 5, 195, 149, 203, 197, 84, 111, 202, 126, 202, 68, 149, 47, 217, 69, 0, 0,
        ],
    ];

    /// A JPEG with EXIF data of one entry, in either byte order.
    fn with_orientation(orientation: u8, big: bool) -> Vec<u8> {
        oriented(JPEG, orientation, big)
    }

    fn oriented(jpeg: &[u8], orientation: u8, big: bool) -> Vec<u8> {
        let exif = [b"Exif\0\0", &*tiff(orientation, big)].concat();
        let length = (exif.len() + 2) as u16;
        [&jpeg[..2], &[0xff, 0xe1], &length.to_be_bytes(), &exif, &jpeg[2..]].concat()
    }

    /// A PNG or a WebP with EXIF data behind its pixels. No reader here looks at a chunk's checksum or at the flags of `VP8X`.
    fn with_chunk(file: &[u8], exif: &[u8]) -> Vec<u8> {
        let length = exif.len() as u32;
        if file.starts_with(b"RIFF") {
            let riff = file.len() as u32 + length; // 8 less for RIFF's own head, 8 more for the chunk's
            let head = [&riff.to_le_bytes()[..], &file[8..]].concat();
            return [b"RIFF", &*head, b"EXIF", &length.to_le_bytes(), exif].concat();
        }
        let (pixels, end) = file.split_at(file.len() - 12);
        [pixels, &length.to_be_bytes(), b"eXIf", exif, &[0; 4], end].concat()
    }

    fn tiff(orientation: u8, big: bool) -> Vec<u8> {
        let tiff: &[u8] = match big {
            true => &[
                b'M',
                b'M',
                0,
                42,
                0,
                0,
                0,
                8,
                0,
                1,
                1,
                0x12,
                0,
                3,
                0,
                0,
                0,
                1,
                0,
                orientation,
                0,
                0,
            ],
            false => &[
                b'I',
                b'I',
                42,
                0,
                8,
                0,
                0,
                0,
                1,
                0,
                0x12,
                1,
                3,
                0,
                1,
                0,
                0,
                0,
                orientation,
                0,
                0,
                0,
            ],
        };
        tiff.to_vec()
    }

    #[test]
    fn a_rotation_is_seen() {
        let turned = |bytes: &[u8]| probe_bytes("x", bytes).unwrap().orientation != 1;
        assert!(!turned(JPEG) && !turned(PNG));
        for big in [true, false] {
            let of = |orientation: u8| turned(&with_orientation(orientation, big));
            assert_eq!([0, 1, 2, 6, 8, 9].map(of), [false, false, true, true, true, false]);
            let whole = with_orientation(6, big);
            assert!(turned(&[&whole[..2], &[0xff; 3], &whole[2..]].concat()), "fill bytes");
            for cut in 4..36 {
                let _ = probe_bytes("x", &whole[..cut]);
            }
            for file in [PNG, WEBP[0], WEBP[1]] {
                for prefix in [&b""[..], b"Exif\0\0"] {
                    let of = |o: u8| with_chunk(file, &[prefix, &*tiff(o, big)].concat());
                    assert_eq!([1, 6, 9].map(|o| turned(&of(o))), [false, true, false]);
                    let whole = of(6);
                    (0..whole.len()).for_each(|cut| _ = probe_bytes("x", &whole[..cut]));
                }
            }
        }
    }

    /// By hand: 6 is a quarter turn to the right, so the left pixel comes to the top.
    #[cfg(feature = "images")]
    #[test]
    fn a_picture_is_turned_as_its_orientation_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jpg");
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let decoded = crate::data::decode_image(&path).unwrap();
            (decoded, crate::data::upright_image(&path).unwrap())
        };
        let mut jpeg = vec![];
        let image = image::RgbImage::from_fn(16, 8, |x, _| image::Rgb([x as u8 * 16; 3]));
        image::codecs::jpeg::JpegEncoder::new(&mut jpeg).encode_image(&image).unwrap();
        let (plain, upright) = of(&jpeg);
        assert_eq!(plain, upright);
        let (plain, upright) = of(&oriented(&jpeg, 6, true));
        assert_eq!((plain.dimensions(), upright.dimensions()), ((16, 8), (8, 16)));
        for k in 0..16 {
            assert_eq!(upright.get_pixel(7, k), plain.get_pixel(k, 0));
        }
        let mut png = std::io::Cursor::new(vec![]);
        image.write_to(&mut png, image::ImageFormat::Png).unwrap();
        let mut webp = std::io::Cursor::new(vec![]);
        image.write_to(&mut webp, image::ImageFormat::WebP).unwrap();
        for file in [png, webp] {
            let (_, upright) = of(&with_chunk(&file.into_inner(), &tiff(6, true)));
            assert_eq!(
                (upright.dimensions(), upright.get_pixel(7, 15)),
                ((8, 16), &image::Rgb([240; 3]))
            );
        }
        let (plain, upright) = of(&oriented(&jpeg, 3, false));
        assert_eq!(upright.get_pixel(0, 0), plain.get_pixel(15, 7));
    }

    fn error(bytes: &[u8]) -> String {
        probe_bytes("x.jpg", bytes).unwrap_err().to_string()
    }

    #[test]
    fn whole_pictures_say_their_size() {
        let info = probe_bytes("x", JPEG).unwrap();
        assert_eq!((info.format, info.width, info.height), (ImageFormat::Jpeg, 2, 1));
        let info = probe_bytes("x", PNG).unwrap();
        assert_eq!((info.format, info.width, info.height), (ImageFormat::Png, 3, 2));
        for bytes in WEBP {
            let info = probe_bytes("x", bytes).unwrap();
            assert_eq!((info.format, info.width, info.height), (ImageFormat::WebP, 3, 2));
        }
        // Bytes after the end are common and harmless.
        assert!(probe_bytes("x", &[JPEG, b"trailer"].concat()).is_ok());
    }

    #[test]
    fn every_truncation_is_found() {
        for bytes in [JPEG, PNG, WEBP[0], WEBP[1]] {
            for length in 0..bytes.len() {
                assert!(probe_bytes("x", &bytes[..length]).is_err(), "{length}");
            }
        }
        let line = error(&JPEG[..JPEG.len() - 2]);
        assert_eq!(
            line,
            "x.jpg: expected a whole image, got a truncated or damaged file (32 bytes)"
        );
    }

    /// A thumbnail inside a segment has its own end marker, which must not count.
    #[test]
    fn an_end_inside_a_segment_is_no_end() {
        let thumbnail =
            [&JPEG[..2], &[0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9], &JPEG[2..]].concat();
        assert!(probe_bytes("x", &thumbnail).is_ok());
        assert!(probe_bytes("x", &thumbnail[..thumbnail.len() - 2]).is_err());
    }

    #[test]
    fn what_is_no_image_says_so() {
        assert!(
            error(b"<html>not found")
                .contains("expected a JPEG, PNG or WebP image, got an HTML page")
        );
        assert!(error(b"").contains("an empty file"));
        let mut wide = JPEG.to_vec();
        wide[9] = 0x7f; // width 0x7f02
        assert_eq!(error(&wide), "x.jpg: expected sides of 1 to 16384 pixels, got 32514 × 1");
        wide[7..11].copy_from_slice(&[0x40, 0, 0x40, 0]); // 16,384 × 16,384
        let want = "x.jpg: expected at most 100000000 pixels, got 16384 × 16384 = 268435456 pixels";
        assert_eq!(error(&wide), want);
        assert!(
            probe_image("no/such.jpg").unwrap_err().to_string().starts_with("no/such.jpg: No such")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in vec(any::<u8>(), 0..300), start in 0..3usize) {
            let start: &[u8] = [b"".as_slice(), &[0xff, 0xd8, 0xff], b"\x89PNG\r\n\x1a\n"][start];
            let _ = probe_bytes("x", &[start, &bytes].concat());
        }

        #[test]
        fn a_changed_picture_gives_an_answer(at in 0..JPEG.len(), byte: u8, png in 8..PNG.len()) {
            let mut bytes = JPEG.to_vec();
            bytes[at] = byte;
            let _ = probe_bytes("x", &bytes);
            let mut bytes = PNG.to_vec();
            bytes[png] = byte;
            let _ = probe_bytes("x", &bytes);
        }
    }
}
