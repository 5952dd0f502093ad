use super::*;
use crate::fakes::{Colours, World, jpeg};

/// A value of a TIFF directory, written by hand.
enum Field {
    Short(u16),
    Long(u32),
    Text(&'static str),
    Rationals(Vec<[u32; 2]>),
}

/// A directory at `start`, little-endian, with its end and the values that are longer than four bytes behind it.
fn directory(start: u32, fields: &[(u16, Field)], end: &[u8]) -> Vec<u8> {
    let mut head = (fields.len() as u16).to_le_bytes().to_vec();
    let mut tail: Vec<u8> = vec![];
    let values = start + 2 + (12 * fields.len() + end.len()) as u32;
    for (tag, field) in fields {
        let (kind, count, mut bytes): (u16, u32, Vec<u8>) = match field {
            Field::Short(value) => (3, 1, value.to_le_bytes().to_vec()),
            Field::Long(value) => (4, 1, value.to_le_bytes().to_vec()),
            Field::Text(text) => (2, text.len() as u32 + 1, [text.as_bytes(), &[0]].concat()),
            Field::Rationals(parts) => {
                let bytes = parts.iter().flatten().flat_map(|part| part.to_le_bytes()).collect();
                (5, parts.len() as u32, bytes)
            }
        };
        if bytes.len() > 4 {
            let at = values + tail.len() as u32;
            tail.extend(std::mem::replace(&mut bytes, at.to_le_bytes().to_vec()));
        }
        bytes.resize(4, 0);
        head.extend(
            tag.to_le_bytes().into_iter().chain(kind.to_le_bytes()).chain(count.to_le_bytes()),
        );
        head.extend(bytes);
    }
    head.extend(end);
    head.extend(tail);
    head
}

/// The place of the next directory: there is none.
const LAST: [u8; 4] = [0; 4];

/// A JPEG with a segment of EXIF data: model and orientation, when the file was written, when the picture was taken, and where. `end`
/// stands behind the parts Exif and GPS.
fn photograph(
    orientation: u16,
    dates: [&'static str; 2],
    [ns, ew]: [&'static str; 2],
    end: &[u8],
) -> Vec<u8> {
    let ([first, second, third], [written, taken]) = ([8u32, 200, 400], dates);
    let degrees = |d, m, s| Field::Rationals(vec![[d, 1], [m, 1], [s, 100]]);
    let mut tiff = [b"II*\0".as_slice(), &first.to_le_bytes()].concat();
    for (at, fields) in [
        (
            first,
            vec![
                (0x0110, Field::Text("Camera of Tests 7")),
                (0x0112, Field::Short(orientation)),
                (0x0132, Field::Text(written)),
                (0x8769, Field::Long(second)),
                (0x8825, Field::Long(third)),
            ],
        ),
        (second, vec![(0x9003, Field::Text(taken))]),
        (
            third,
            vec![
                (1, Field::Text(ns)),
                (2, degrees(47, 22, 3000)),
                (3, Field::Text(ew)),
                (4, degrees(8, 30, 0)),
            ],
        ),
    ] {
        tiff.resize(at as usize, 0);
        tiff.extend(directory(at, &fields, if at == first { &LAST } else { end }));
    }
    let file = jpeg([200, 40, 40], [48, 32]);
    let length = (tiff.len() + 8) as u16;
    [&file[..2], &[0xff, 0xe1], &length.to_be_bytes(), b"Exif\0\0", &tiff, &file[2..]].concat()
}

/// What a camera writes whose clock was never set.
const BLANK: &str = "    :  :     :  :  ";

#[test]
fn date_camera_place_and_rotation_are_read() {
    let world = World::new();
    world.write("a/a.jpg", &photograph(6, [BLANK, "2024:05:01 12:30:00"], ["N", "E"], &LAST));
    world.write("a/b.jpg", &photograph(1, [BLANK, "2024:13:01 12:30:00"], ["S", "W"], &LAST));
    let damaged = photograph(1, ["2024:05:01 12:30:00"; 2], ["N", "E"], &LAST);
    world.write("a/c.jpg", &[&damaged[..30], &[0xee; 200], &damaged[230..]].concat());
    world.write("a/d.jpg", &photograph(1, ["2023:04:05 06:07:08", BLANK], ["N", "E"], &LAST));
    // piexif writes no place of a next directory: values stand there.
    world.write("a/e.jpg", &photograph(1, [BLANK, "2024:05:01 12:30:00"], ["N", "E"], &[]));
    world.update(&Colours::default()).unwrap();
    let index = world.index();
    let [a, b, c, d, e] = ["a/a.jpg", "a/b.jpg", "a/c.jpg", "a/d.jpg", "a/e.jpg"]
        .map(|path| index.pictures().iter().position(|picture| picture.path == path).unwrap());
    let about = |k: usize| &index.pictures()[k];
    assert_eq!(about(a).taken.as_deref(), Some("2024-05-01T12:30:00"));
    assert_eq!(about(a).camera.as_deref(), Some("Camera of Tests 7"));
    let [north, east] = about(a).place.unwrap();
    assert!(
        (north - (47.0 + 22.0 / 60.0 + 30.0 / 3600.0)).abs() < 1e-9 && (east - 8.5).abs() < 1e-9
    );
    assert_eq!(about(b).taken, None); // there is no thirteenth month
    assert_eq!(about(d).taken.as_deref(), Some("2023-04-05T06:07:08")); // a clock that was never set
    assert_eq!(about(b).place, Some([-north, -east]));
    assert_eq!((&about(c).taken, &about(c).camera, about(c).place), (&None, &None, None));
    let facts = |k: usize| (&about(k).taken, &about(k).camera, about(k).place);
    assert_eq!(facts(e), facts(a));
    // Orientation 6 turns the picture, its thumbnail and its preview.
    assert_eq!((about(a).size, about(b).size), ([32, 48], [48, 32]));
    for file in [index.thumbnail(a).unwrap(), index.preview(a).unwrap()] {
        let image = image::load_from_memory(&file).unwrap();
        assert_eq!((image.width(), image.height()), (32, 48));
        assert!(
            !file.windows(4).any(|bytes| bytes == b"Exif"),
            "where a photograph was taken stays here"
        );
    }
}

#[test]
fn dates_are_checked() {
    assert_eq!(iso("2024:05:01 12:30:00").as_deref(), Some("2024-05-01T12:30:00"));
    for bad in [
        "",
        "0000:00:00 00:00:00",
        "2024-05-01 12:30:00",
        "2024:13:01 12:30:00",
        "2023:02:29 12:30:00",
        BLANK,
    ] {
        assert_eq!(iso(bad), None, "{bad}");
    }
}
