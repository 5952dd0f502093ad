//! The evaluation transform: resizes to one size and gives floats as the encoder expects them.

use image::RgbImage;

use super::resize::{Resampling, resize, resize_part};

/// Mean and standard deviation of each channel, for values scaled to 0..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalization {
    /// Subtracted.
    pub mean: [f32; 3],
    /// Divisor.
    pub std: [f32; 3],
}

impl Normalization {
    /// CLIP's constants, which FNE's program uses.
    pub const CLIP: Self = Self {
        mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
        std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
    };
    /// Maps to −1..1, as for the training of ViT's published weights.
    pub const HALF: Self = Self { mean: [0.5; 3], std: [0.5; 3] };
}

/// How a picture gets its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Both sides are resized, and the aspect ratio is lost: FNE, SigLIP.
    #[default]
    Squash,
    /// The shorter side is resized to `shorter`, the longer side to `floor(shorter · long / short)`; then the centre is cut out:
    /// CLIP, DINOv2.
    Crop {
        /// Size of the shorter side.
        shorter: u32,
        /// Where the centre begins if an odd number r of pixels is left over.
        rounding: CropRounding,
    },
}

/// Where the centre of a picture begins if an odd number r of pixels is left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CropRounding {
    /// At ⌊r/2⌋: `transformers`.
    Down,
    /// At r/2, half to even: OpenAI's program and open_clip.
    HalfEven,
}

impl CropRounding {
    pub(super) fn start(self, left_over: u32) -> u32 {
        match self {
            Self::HalfEven if left_over % 4 == 3 => left_over / 2 + 1,
            _ => left_over / 2,
        }
    }
}

/// 8-bit RGB of any size → `[3, size, size]` floats.
///
/// ```text
/// out[c, y, x] = (fit(image)[y, x, c] / 255 − mean[c]) / std[c]
/// ```
///
/// # Departures
/// FNE normalises with CLIP's constants although its ViT expects 0.5/0.5. Both are available here; CLIP's are the
/// default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transform {
    /// Width and height of the result; 384 by default.
    pub size: u32,
    /// Mean and standard deviation of the channels; [`Normalization::CLIP`] by default.
    pub normalization: Normalization,
    /// How a picture gets its size; [`Fit::Squash`] by default.
    pub fit: Fit,
    /// The kernel of the resize; [`Resampling::Bicubic`] by default.
    pub filter: Resampling,
}

impl Default for Transform {
    fn default() -> Self {
        let (normalization, fit) = (Normalization::CLIP, Fit::Squash);
        Self { size: 384, normalization, fit, filter: Resampling::Bicubic }
    }
}

impl Transform {
    /// Number of values of a result: `3 · size · size`.
    pub fn len(&self) -> usize {
        3 * (self.size as usize).pow(2)
    }

    /// Whether a result would be empty: only for size 0.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Resizes, crops if [`fit`](Self::fit) says so, and writes the floats to `out`.
    ///
    /// # Panics
    /// If `out` does not have the length [`Transform::len`], a side is 0, or the shorter side is less than the size.
    pub fn apply(&self, image: &RgbImage, out: &mut [f32]) {
        self.floats(&self.fitted(image), out);
    }

    /// The picture in its size, as bytes.
    ///
    /// # Panics
    /// If a side is 0, or the shorter side is less than the size.
    pub(crate) fn fitted(&self, image: &RgbImage) -> RgbImage {
        let Fit::Crop { shorter, rounding } = self.fit else {
            return resize(image, self.size, self.size, self.filter);
        };
        assert!(shorter >= self.size, "a shorter side of {shorter} for a crop of {}", self.size);
        let (w, h) = image.dimensions();
        let longer = |side: u32| {
            let longer = u64::from(shorter) * u64::from(side) / u64::from(w.min(h));
            u32::try_from(longer).expect("a side that fits 32 bits")
        };
        let size = if w <= h { [shorter, longer(h)] } else { [longer(w), shorter] };
        let centre = size.map(|side| {
            let start = rounding.start(side - self.size);
            start..start + self.size
        });
        resize_part(image, size, centre, self.filter)
    }

    /// The floats of a picture that already has the size.
    pub(super) fn floats(&self, image: &RgbImage, out: &mut [f32]) {
        let side = self.size;
        assert_eq!(image.dimensions(), (side, side), "a picture for size {side}");
        assert_eq!(out.len(), self.len(), "out for [3, {side}, {side}]");
        let Normalization { mean, std } = self.normalization;
        let plane = (side * side) as usize;
        for (c, out) in out.chunks_exact_mut(plane).enumerate() {
            let table: [f32; 256] = std::array::from_fn(|v| (v as f32 / 255.0 - mean[c]) / std[c]);
            for (value, pixel) in out.iter_mut().zip(image.as_raw().as_chunks::<3>().0) {
                *value = table[usize::from(pixel[c])];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (p/255 − m)/s by hand. Red 255 with CLIP's constants: (1 − 0.48145466)/0.26862954 = 1.930336. Blue 51 with
    /// halves: (0.2 − 0.5)/0.5 = −0.6.
    #[test]
    fn golden_normalisation_and_channel_order() {
        let pixels = [[255, 0, 51], [0, 255, 51], [255, 0, 51], [0, 0, 51]];
        let image = RgbImage::from_raw(2, 2, pixels.concat()).unwrap();
        let mut out = [0.0; 12];
        Transform { size: 2, ..Transform::default() }.apply(&image, &mut out);
        let (low, high) = (-0.481_454_66 / 0.268_629_54, 1.930_336_3);
        for (got, want) in out.iter().zip([high, low, high, low]) {
            assert!((got - want).abs() < 1e-6, "{out:?}");
        }
        Transform { size: 2, normalization: Normalization::HALF, ..Transform::default() }
            .apply(&image, &mut out);
        let want = [1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0, -0.6, -0.6, -0.6, -0.6];
        assert!(out.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-6), "{out:?}");
    }

    #[test]
    fn the_defaults_are_fnes() {
        let Transform { size, normalization, fit, filter } = Transform::default();
        assert_eq!((size, normalization, fit), (384, Normalization::CLIP, Fit::Squash));
        assert_eq!(filter, Resampling::Bicubic);
        assert_eq!(Transform::default().len(), 3 * 384 * 384);
    }

    #[test]
    #[should_panic(expected = "out for [3, 2, 2]")]
    fn a_short_buffer_is_refused() {
        let transform =
            Transform { size: 2, normalization: Normalization::HALF, ..Transform::default() };
        transform.apply(&RgbImage::new(1, 1), &mut [0.0; 11]);
    }
}
