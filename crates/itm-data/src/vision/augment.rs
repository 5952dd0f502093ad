//! FNE's training transform: a random crop, a random flip, and up to two random operations.

use image::RgbImage;
use image::imageops::{crop_imm, flip_horizontal_in_place};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::operations::{Operation, Overflow};
use super::resize::resize;
use super::transform::Transform;

/// Least and greatest area of a crop, as a share of the picture's area.
const AREA: (f64, f64) = (0.5, 1.0);
/// Least and greatest width of a crop, as a multiple of its height.
const RATIO: (f64, f64) = (3.0 / 4.0, 4.0 / 3.0);
/// Number of crops that are tried before the central crop is used.
const TRIES: usize = 10;
/// Number of operations that are drawn, with replacement.
const OPERATIONS: usize = 2;

/// The transform of training pictures. A seed decides everything that is random.
///
/// ```text
/// crop:      area A = U(0.5, 1) · w·h, ratio r = exp U(ln ¾, ln 4⁄3); sides √(A·r), √(A/r) rounded, corner uniform;
///            if ten tries do not fit, the largest central part within the ratios; then bicubic resize to size × size
/// flip:      horizontal, probability ½
/// operations: two of the ten, with replacement, each applied with probability ½, with a random sign
/// floats:    as [`Transform`]
/// ```
///
/// # Departures
/// In FNE's program, two operations wrap around at 256 by mistake. Here they saturate; [`Overflow::Wrap`] gives the
/// program's result. In geometric operations, the program rounds positions to 1/32 of a pixel; here positions are
/// exact.
///
/// ```
/// use image::RgbImage;
/// use itm_data::vision::{Augment, Transform};
///
/// let augment = Augment { transform: Transform { size: 8, ..Transform::default() }, ..Augment::default() };
/// let picture = RgbImage::from_fn(20, 10, |x, y| image::Rgb([12 * x as u8, 25 * y as u8, 9]));
/// let (mut a, mut b) = (vec![0.0; 3 * 8 * 8], vec![0.0; 3 * 8 * 8]);
/// augment.apply(&picture, 1, &mut a);
/// augment.apply(&picture, 1, &mut b);
/// assert_eq!(a, b);
/// augment.apply(&picture, 2, &mut b);
/// assert_ne!(a, b);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Augment {
    /// Size and normalisation.
    pub transform: Transform,
    /// What two of the operations do with results outside 0..255.
    pub overflow: Overflow,
}

/// A part of a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crop {
    /// First column.
    pub left: u32,
    /// First row.
    pub top: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// The random choices for one picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draw {
    /// The part that is taken.
    pub crop: Crop,
    /// Whether it is mirrored.
    pub flip: bool,
    /// The operations that are applied, in order, each with its sign; at most two.
    pub operations: Vec<(Operation, f64)>,
}

impl Draw {
    /// The draw of a seed for a picture of this size.
    ///
    /// # Panics
    /// If a side is 0.
    pub(crate) fn new(width: u32, height: u32, seed: u64) -> Self {
        assert!(width > 0 && height > 0, "a picture of {width} × {height}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let crop = draw_crop(width, height, &mut rng);
        let flip = rng.random_bool(0.5);
        let mut operations = Vec::new();
        for _ in 0..OPERATIONS {
            let operation = Operation::ALL[rng.random_range(0..Operation::ALL.len())];
            let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
            if rng.random_bool(0.5) {
                operations.push((operation, sign));
            }
        }
        Self { crop, flip, operations }
    }
}

impl Augment {
    /// Applies crop, flip and operations of a given draw; the result is `size × size`, 8 bits.
    ///
    /// # Panics
    /// If the crop is not inside the picture.
    pub(super) fn picture(&self, image: &RgbImage, draw: &Draw) -> RgbImage {
        let Crop { left, top, width, height } = draw.crop;
        let (w, h) = image.dimensions();
        assert!(left + width <= w && top + height <= h, "{:?} of {w} × {h}", draw.crop);
        let size = self.transform.size;
        let crop = crop_imm(image, left, top, width, height).to_image();
        let mut picture = resize(&crop, size, size, self.transform.filter);
        if draw.flip {
            flip_horizontal_in_place(&mut picture);
        }
        for &(operation, sign) in &draw.operations {
            picture = operation.apply(&picture, sign, self.overflow);
        }
        picture
    }

    /// Applies the whole transform with the draw of a seed; `out` is `[3, size, size]`.
    ///
    /// # Panics
    /// If `out` has another length, or a side is 0.
    pub fn apply(&self, image: &RgbImage, seed: u64, out: &mut [f32]) {
        let draw = Draw::new(image.width(), image.height(), seed);
        self.transform.floats(&self.picture(image, &draw), out);
    }
}

fn draw_crop(width: u32, height: u32, rng: &mut impl Rng) -> Crop {
    let (w, h) = (f64::from(width), f64::from(height));
    for _ in 0..TRIES {
        let area = w * h * rng.random_range(AREA.0..AREA.1);
        let ratio = rng.random_range(RATIO.0.ln()..RATIO.1.ln()).exp();
        let size = ((area * ratio).sqrt().round() as u32, (area / ratio).sqrt().round() as u32);
        if (1..=width).contains(&size.0) && (1..=height).contains(&size.1) {
            let left = rng.random_range(0..=width - size.0);
            let top = rng.random_range(0..=height - size.1);
            return Crop { left, top, width: size.0, height: size.1 };
        }
    }
    central(width, height)
}

/// The largest central part whose ratio is within the bounds.
fn central(width: u32, height: u32) -> Crop {
    let w = width.min((f64::from(height) * RATIO.1).round() as u32);
    let h = height.min((f64::from(width) / RATIO.0).round() as u32);
    Crop { left: (width - w) / 2, top: (height - h) / 2, width: w, height: h }
}

#[cfg(test)]
mod tests;
