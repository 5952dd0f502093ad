//! Pillow's antialiased resize; every byte equals Pillow's.

use std::fmt;
use std::ops::Range;

use image::RgbImage;

use itm_kernels::widest;

/// Pillow's fixed point: a weight of 1 is 2²².
const PRECISION: u32 = 22;

/// Rows that the horizontal pass processes together; 3 · 16 bytes fill whole registers.
const BAND: usize = 16;

/// Bytes of a row that the vertical pass sums in registers.
const BLOCK: usize = 64;

/// The kernel k of a resize.
///
/// ```text
/// bicubic, a = −0.5:  k(x) = 1.5·x³ − 2.5·x² + 1          for x = |x| < 1
///                          = −0.5·x³ + 2.5·x² − 4·x + 2   for 1 ≤ x < 2
/// bilinear:           k(x) = 1 − x                        for x = |x| < 1
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resampling {
    /// `Image.Resampling.BICUBIC`, 3 in published files: FNE, CLIP, SigLIP, DINOv2.
    #[default]
    Bicubic,
    /// `Image.Resampling.BILINEAR`, 2 in published files: ViT, SigLIP 2.
    Bilinear,
}

impl Resampling {
    /// Where the kernel ends.
    fn support(self) -> f64 {
        match self {
            Self::Bicubic => 2.0,
            Self::Bilinear => 1.0,
        }
    }

    /// k(x), in Pillow's order of operations.
    fn kernel(self, x: f64) -> f64 {
        const A: f64 = -0.5;
        let x = x.abs();
        match self {
            Self::Bicubic if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            Self::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
            Self::Bilinear if x < 1.0 => 1.0 - x,
            _ => 0.0,
        }
    }
}

impl fmt::Display for Resampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Resizes the whole picture without keeping the aspect ratio.
///
/// ```text
/// out[i] = Σₓ k((x + ½ − c)/f) · in[x] / Σₓ k((x + ½ − c)/f)      c = (i + ½) · s,  s = size in / size out,  f = max(s, 1)
/// ```
///
/// The horizontal pass comes first; its result is rounded to 8 bits; then comes the vertical pass. Weights have 22
/// fractional bits, so that every byte of the result equals Pillow's
/// `Image.resize((width, height), filter)`. Where the width grows and the height shrinks, Pillow 13 does the
/// vertical pass first; there every byte equals Pillow 12.
///
/// # Panics
/// If a side of the picture or of the result is 0.
///
/// ```
/// use image::RgbImage;
/// use itm_data::vision::{Resampling, resize};
///
/// let picture = RgbImage::from_raw(2, 1, vec![0, 0, 0, 200, 100, 50]).unwrap();
/// assert_eq!(resize(&picture, 1, 1, Resampling::Bilinear).into_raw(), [100, 50, 25]);
/// ```
pub fn resize(image: &RgbImage, width: u32, height: u32, filter: Resampling) -> RgbImage {
    resize_part(image, [width, height], [0..width, 0..height], filter)
}

/// The columns and rows `part` of the picture resized to `size`. What lies outside is not computed: a thin picture may become very long.
///
/// # Panics
/// If a side of the picture, of the size or of the part is 0, or the part reaches beyond the size.
pub(super) fn resize_part(
    image: &RgbImage,
    size: [u32; 2],
    part: [Range<u32>; 2],
    filter: Resampling,
) -> RgbImage {
    let (w, h) = image.dimensions();
    assert!(w > 0 && h > 0, "a picture of {w} × {h}");
    let [width, height] = [&part[0], &part[1]].map(|part| part.len());
    assert!(width > 0 && height > 0, "a picture of {width} × {height}");
    assert!(part[0].end <= size[0] && part[1].end <= size[1], "{part:?} of a picture of {size:?}");
    let [columns, rows] = part;
    let across = Taps::new(filter, w, size[0], columns);
    let down = Taps::new(filter, h, size[1], rows);
    let mut wide = vec![0; 3 * width * h as usize];
    let mut out = vec![0; 3 * width * height];
    widest(
        #[inline(always)]
        || {
            horizontal(image.as_raw(), w as usize, &across, &mut wide);
            vertical(&wide, 3 * width, &down, &mut out);
        },
    );
    RgbImage::from_raw(width as u32, height as u32, out).expect("three bytes per pixel")
}

/// The source pixels of each pixel of the part along one line, and their weights.
struct Taps {
    starts: Vec<usize>,
    counts: Vec<usize>,
    /// `stride` weights per pixel of the result.
    weights: Vec<i32>,
    stride: usize,
}

impl Taps {
    fn new(filter: Resampling, size: u32, out: u32, part: Range<u32>) -> Self {
        let scale = f64::from(size) / f64::from(out);
        let wider = scale.max(1.0);
        let support = filter.support() * wider;
        let stride = support.ceil() as usize * 2 + 1;
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        let mut weights = vec![0; stride * part.len()];
        let mut exact = vec![0.0; stride];
        for (i, weights) in part.zip(weights.chunks_exact_mut(stride)) {
            let centre = (f64::from(i) + 0.5) * scale;
            let start = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(size as usize);
            let exact = &mut exact[..end - start];
            for (x, weight) in exact.iter_mut().enumerate() {
                *weight = filter.kernel(((x + start) as f64 - centre + 0.5) * (1.0 / wider));
            }
            let sum: f64 = exact.iter().sum();
            for (fixed, weight) in weights.iter_mut().zip(exact.iter()) {
                let scaled = weight / sum * f64::from(1 << PRECISION);
                *fixed = (scaled + 0.5f64.copysign(scaled)) as i32; // towards zero: half away from it
            }
            starts.push(start);
            counts.push(end - start);
        }
        Self { starts, counts, weights, stride }
    }

    /// Start and weights of one pixel of the result.
    #[inline(always)]
    fn of(&self, i: usize) -> (usize, &[i32]) {
        (self.starts[i], &self.weights[i * self.stride..][..self.counts[i]])
    }
}

#[inline(always)]
fn to_byte(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Resizes rows of `width` pixels to the width of `taps`. A band of rows is transposed first, so that neighbours in
/// memory have the same weight.
#[inline(always)]
fn horizontal(rows: &[u8], width: usize, taps: &Taps, out: &mut [u8]) {
    let out_width = taps.starts.len();
    let mut columns = vec![[0u8; 3 * BAND]; width];
    for (band, out) in rows.chunks(BAND * 3 * width).zip(out.chunks_mut(BAND * 3 * out_width)) {
        for (r, row) in band.chunks_exact(3 * width).enumerate() {
            for (column, pixel) in columns.iter_mut().zip(row.as_chunks::<3>().0) {
                column[3 * r..3 * r + 3].copy_from_slice(pixel);
            }
        }
        for i in 0..out_width {
            let (start, weights) = taps.of(i);
            let mut sums = [1 << (PRECISION - 1); 3 * BAND];
            for (&weight, column) in weights.iter().zip(&columns[start..]) {
                for (sum, &v) in sums.iter_mut().zip(column) {
                    *sum += weight * i32::from(v);
                }
            }
            let bytes = sums.map(to_byte);
            for (row, pixel) in out.chunks_exact_mut(3 * out_width).zip(bytes.as_chunks::<3>().0) {
                row[3 * i..3 * i + 3].copy_from_slice(pixel);
            }
        }
    }
}

/// Resizes columns to the height of `taps`. Rows have `length` bytes.
#[inline(always)]
fn vertical(rows: &[u8], length: usize, taps: &Taps, out: &mut [u8]) {
    for (i, out) in out.chunks_exact_mut(length).enumerate() {
        let (start, weights) = taps.of(i);
        let rows = &rows[start * length..];
        let whole = length - length % BLOCK;
        let (blocks, rest) = out.split_at_mut(whole);
        for (b, out) in blocks.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            let mut sums = [1 << (PRECISION - 1); BLOCK];
            for (&weight, row) in weights.iter().zip(rows.chunks_exact(length)) {
                let bytes = &row[b * BLOCK..][..BLOCK];
                for (sum, &v) in sums.iter_mut().zip(bytes) {
                    *sum += weight * i32::from(v);
                }
            }
            *out = sums.map(to_byte);
        }
        for (j, out) in rest.iter_mut().enumerate() {
            let terms = weights.iter().zip(rows.chunks_exact(length));
            let sum: i32 = terms.map(|(&weight, row)| weight * i32::from(row[whole + j])).sum();
            *out = to_byte(sum + (1 << (PRECISION - 1)));
        }
    }
}
