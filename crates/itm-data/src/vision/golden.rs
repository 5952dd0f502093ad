//! Compares with Pillow and the Python twins; `tests/reference/vision.py` wrote the golden file.

use image::{RgbImage, imageops};
use serde::Deserialize;

use super::augment::{Crop, Draw};
use super::operations::Operation;
use super::*;

#[derive(Deserialize)]
pub(super) struct Golden {
    resize: Vec<Resize>,
    operations: Vec<Operations>,
    chain: Vec<Chain>,
    pub(super) files: Vec<PictureFile>,
}

#[derive(Deserialize)]
pub(super) struct Pixels {
    width: u32,
    height: u32,
    pixels: String,
}

#[derive(Deserialize)]
struct Resize {
    from: Pixels,
    bilinear: bool,
    to: Pixels,
}

#[derive(Deserialize)]
struct Operations {
    from: Pixels,
    to: Vec<Applied>,
}

#[derive(Deserialize)]
struct Applied {
    operation: String,
    variant: String,
    picture: Pixels,
}

#[derive(Deserialize)]
struct Chain {
    crop: [u32; 4],
    flip: bool,
    operations: Vec<(String, String)>,
    size: u32,
    picture: Pixels,
    floats: Vec<f32>,
}

#[derive(Deserialize)]
pub(super) struct PictureFile {
    pub(super) name: String,
    bytes: String,
    pub(super) picture: Pixels,
    pub(super) within: u8,
}

impl Golden {
    pub(super) fn read() -> Self {
        serde_json::from_str(include_str!("../../tests/golden/vision.json")).unwrap()
    }
}

impl Pixels {
    pub(super) fn image(&self) -> RgbImage {
        RgbImage::from_raw(self.width, self.height, bytes(&self.pixels)).unwrap()
    }
}

impl PictureFile {
    pub(super) fn bytes(&self) -> Vec<u8> {
        bytes(&self.bytes)
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().as_chunks::<2>().0.iter();
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn operation(name: &str) -> Operation {
    *Operation::ALL.iter().find(|o| format!("{o:?}") == name).unwrap()
}

fn sign(name: &str) -> f64 {
    if name == "Minus" { -1.0 } else { 1.0 }
}

/// The pixels in which two pictures differ, for the message of an assertion.
fn differences(got: &RgbImage, want: &RgbImage) -> Vec<(u32, u32, [u8; 3], [u8; 3])> {
    assert_eq!(got.dimensions(), want.dimensions());
    let both = got.enumerate_pixels().zip(want.pixels());
    both.filter(|((_, _, a), b)| a != b).map(|((x, y, a), b)| (x, y, a.0, b.0)).collect()
}

#[test]
fn resizes_equal_pillows() {
    for Resize { from, bilinear, to } in Golden::read().resize {
        let (from, to) = (from.image(), to.image());
        let filter = if bilinear { Resampling::Bilinear } else { Resampling::Bicubic };
        let got = resize(&from, to.width(), to.height(), filter);
        assert_eq!(differences(&got, &to), [], "{:?}", from.dimensions());
    }
}

/// A picture that becomes a hundred times as long took gigabytes before its centre was cut out.
#[test]
fn a_part_equals_that_part_of_the_whole() {
    let from = Golden::read().resize[0].from.image();
    for (size, part) in [([40, 23], [3..9, 0..23]), ([5, 61], [0..5, 30..31])] {
        let whole = resize(&from, size[0], size[1], Resampling::Bicubic);
        let [x, y] = &part;
        let want = imageops::crop_imm(&whole, x.start, y.start, x.len() as u32, y.len() as u32);
        let got = resize::resize_part(&from, size, part.clone(), Resampling::Bicubic);
        assert_eq!(differences(&got, &want.to_image()), [], "{size:?} {part:?}");
    }
    let fit = Fit::Crop { shorter: 224, rounding: CropRounding::Down };
    let thin = RgbImage::from_pixel(16_384, 1, image::Rgb([255; 3]));
    let transform = Transform { size: 224, fit, ..Transform::default() };
    assert!(transform.fitted(&thin).as_raw().iter().all(|&v| v == 255));
}

#[test]
fn operations_equal_their_definitions() {
    let mut seen = Vec::new();
    for Operations { from, to } in Golden::read().operations {
        let from = from.image();
        for Applied { operation: name, variant, picture } in to {
            let overflow = if variant == "wrap" { Overflow::Wrap } else { Overflow::Saturate };
            let got = operation(&name).apply(&from, sign(&variant), overflow);
            assert_eq!(differences(&got, &picture.image()), [], "{name} {variant}");
            seen.push((name, variant));
        }
    }
    // On each of two pictures: ten operations, five of them with a second sign, two of the others also with
    // wrap-around.
    assert_eq!(seen.len(), 2 * (10 + 5 + 2));
}

/// The option changes the results of two operations and of no other.
#[test]
fn wrapping_changes_two_operations_alone() {
    let from = Golden::read().operations[0].from.image();
    for op in Operation::ALL {
        let [a, b] = [Overflow::Saturate, Overflow::Wrap].map(|o| op.apply(&from, 1.0, o));
        let wraps = matches!(op, Operation::AutoContrast | Operation::Sharpness);
        assert_eq!(a != b, wraps, "{op:?}");
    }
    // The second channel of the golden picture has no 0, so with wrap-around it becomes white.
    let white = Operation::AutoContrast.apply(&from, 1.0, Overflow::Wrap);
    assert!(white.pixels().all(|p| p.0[1] == 255) && white.pixels().any(|p| p.0[0] < 100));
}

#[test]
fn the_chain_equals_its_twin() {
    let b = Golden::read().operations[1].from.image();
    let a = Golden::read().operations[0].from.image();
    for (from, chain) in [&b, &b, &a].into_iter().zip(Golden::read().chain) {
        let [left, top, width, height] = chain.crop;
        let draw = Draw {
            crop: Crop { left, top, width, height },
            flip: chain.flip,
            operations: chain.operations.iter().map(|(o, s)| (operation(o), sign(s))).collect(),
        };
        let transform = Transform { size: chain.size, ..Transform::default() };
        let augment = Augment { transform, ..Augment::default() };
        let got = augment.picture(from, &draw);
        assert_eq!(differences(&got, &chain.picture.image()), [], "{draw:?}");
        let mut floats = vec![0.0; transform.len()];
        transform.floats(&got, &mut floats);
        for (got, want) in floats.iter().step_by(7).zip(&chain.floats) {
            assert!((got - want).abs() < 2e-6, "{draw:?}: {got}, want {want}");
        }
    }
}
