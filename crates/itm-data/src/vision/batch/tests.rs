use std::fs;
use std::path::Path;

use super::super::golden::Golden;
use super::*;
use crate::vision::{Ahead, Prefetch};

/// The structure of a JPEG of 2 × 1 pixels without tables: start, frame header, scan, end.
const HOLLOW: &[u8] = &[
    0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 1, 0, 2, 1, 1, 0x11, 0, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63,
    0, 0x12, 0xff, 0x00, 0x34, 0xff, 0xd0, 0x56, 0xff, 0xd9,
];

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in Golden::read().files {
        fs::write(dir.path().join(&file.name), file.bytes()).unwrap();
    }
    dir
}

fn pictures(dir: &Path, names: &[&str]) -> Vec<Picture> {
    let picture = |(i, name): (usize, &&str)| Picture {
        source: PictureSource::File(dir.join(name)),
        seed: i as u64,
    };
    names.iter().enumerate().map(picture).collect()
}

fn small() -> Transform {
    Transform { size: 7, ..Transform::default() }
}

/// As in Pillow's `convert("RGB")`: grey is repeated, alpha dropped, 16 bits rounded to 8, a palette looked up, CMYK
/// converted.
#[test]
fn other_kinds_of_pictures_have_a_meaning() {
    let dir = folder();
    for file in Golden::read().files {
        let got = decode_image(dir.path().join(&file.name)).unwrap();
        let want = file.picture.image();
        assert_eq!(got.dimensions(), want.dimensions(), "{}", file.name);
        let worst = got.iter().zip(want.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst <= file.within, "{}: {worst} levels", file.name);
    }
}

/// A batch holds its pictures one after the other and does not depend on the number of workers.
#[test]
fn batches_are_the_same_whatever_the_workers() {
    let dir = folder();
    let names = ["rgb.jpg", "grey.png", "pixel.png", "alpha.png", "cmyk.jpg", "sixteen.png"];
    let all = pictures(dir.path(), &names);
    let augment = Augment { transform: small(), ..Augment::default() };
    let whole = PictureBatch::training(&all, &augment).unwrap();
    assert_eq!((whole.images, whole.size, whole.values.len()), (6, 7, 6 * 3 * 49));
    for workers in [1, 3] {
        let batches: Vec<_> = all.chunks(2).map(<[_]>::to_vec).collect();
        let ahead = Ahead { workers, results: 2 };
        let got = Prefetch::new(batches, ahead, move |p| PictureBatch::training(&p, &augment));
        let values: Vec<_> = got.flat_map(|batch| batch.unwrap().values).collect();
        assert_eq!(values, whole.values);
    }
    let plain = PictureBatch::evaluation(&all, &small()).unwrap();
    assert_ne!(plain, whole);
    let mut second = vec![0.0; 3 * 49];
    small().apply(&decode_image(dir.path().join("grey.png")).unwrap(), &mut second);
    assert_eq!(plain.values[3 * 49..2 * 3 * 49], second);
}

/// For every kind of damage, the error is one line that names the file.
#[test]
fn a_bad_picture_is_named() {
    let dir = folder();
    let whole = fs::read(dir.path().join("rgb.jpg")).unwrap();
    let mut cases = vec![("cut.jpg", whole[..whole.len() / 2].to_vec(), "a whole image")];
    // The structure is whole, but the tables for the compressed data are missing.
    cases.push(("hollow.jpg", HOLLOW.to_vec(), "an image"));
    cases.push(("page.jpg", b"<html>".to_vec(), "a JPEG, PNG or WebP image"));
    cases.push(("empty.png", Vec::new(), "a JPEG, PNG or WebP image"));
    for (name, bytes, expected) in cases {
        fs::write(dir.path().join(name), bytes).unwrap();
        let batch = vec![pictures(dir.path(), &["grey.png", name])];
        let ahead = Ahead { workers: 2, results: 2 };
        let mut got =
            Prefetch::new(batch, ahead, |p| PictureBatch::evaluation(&p, &Transform::default()));
        let line = got.next().unwrap().map(|_| ()).unwrap_err().to_string();
        let place = dir.path().join(name).display().to_string();
        assert!(line.starts_with(&place) && line.contains(expected), "{line}");
        assert_eq!(line.lines().count(), 1);
        assert!(got.next().is_none());
    }
}

/// No picture was read, and the batch was whole.
#[test]
fn a_size_of_0_is_refused() {
    let nowhere = pictures(Path::new("nowhere"), &["1.jpg"]);
    let none = Transform { size: 0, ..Transform::default() };
    let line = PictureBatch::evaluation(&nowhere, &none).unwrap_err().to_string();
    assert_eq!(line, "size of pictures: expected at least 1, got 0");
}

#[test]
fn a_panic_names_the_picture() {
    let dir = folder();
    let all = pictures(dir.path(), &["grey.png", "pixel.png"]);
    let line = PictureBatch::of(&all, small(), |image, _, _| {
        assert!(image.width() > 1, "one column");
    });
    let line = line.unwrap_err().to_string();
    assert!(
        line.ends_with("pixel.png: expected work that ends, got a panic: one column"),
        "{line}"
    );
}
