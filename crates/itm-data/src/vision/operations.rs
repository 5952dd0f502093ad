//! The ten operations of FNE's training transform, at magnitude 7 of 10.

use image::RgbImage;

/// Grey level outside the picture.
const OUTSIDE: f64 = 128.0;

/// Pixels of a translation: magnitude 7 of 10 gives 7 of 10 pixels, for pictures of any size.
const SHIFT: f64 = 7.0;

/// An operation on a training picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// Nothing.
    Identity,
    /// Stretches every channel to 0..255.
    AutoContrast,
    /// Flattens the histogram of every channel.
    Equalize,
    /// Multiplies by 1.36.
    Brightness,
    /// Multiplies the distance from the blurred picture by 1.36.
    Sharpness,
    /// Moves each pixel horizontally by 0.21 of its row number.
    ShearX,
    /// Moves each pixel vertically by 0.21 of its column number.
    ShearY,
    /// Moves by 7 pixels horizontally.
    TranslateX,
    /// Moves by 7 pixels vertically.
    TranslateY,
    /// Rotates by 21°.
    Rotate,
}

/// What happens to results outside 0..255 in the operations that stretch the contrast or sharpen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// They are clamped to the range.
    #[default]
    Saturate,
    /// They wrap around, as in FNE's program, which uses unsigned bytes by mistake. Auto-contrast makes a channel white
    /// if its minimum is above 0. Sharpness keeps the result modulo 256.
    Wrap,
}

impl Operation {
    /// All operations, in the order that [`Augment`](super::Augment) draws from.
    pub(crate) const ALL: [Self; 10] = [
        Self::Identity,
        Self::AutoContrast,
        Self::Equalize,
        Self::Brightness,
        Self::Sharpness,
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
        Self::Rotate,
    ];

    /// The picture after the operation. `sign`, 1 or −1, is the direction of a geometric operation; the others have none.
    ///
    /// | operation | result |
    /// |---|---|
    /// | AutoContrast | ⌊255 · (p − min) / (max − min)⌋; constant channels do not change |
    /// | Equalize | (step/2 + number of pixels below p) / step, step = (number of pixels − pixels of the highest level) / 255, all whole; unchanged if step = 0 |
    /// | Brightness | ⌊1.36 · p⌋ |
    /// | Sharpness | ⌊d + 1.36 · (p − d)⌋, d = round((Σ of 8 neighbours + 5 · p)/13); the outermost pixels do not change |
    /// | ShearX, ShearY | (x, y) goes to (x ± 0.21 · y, y) or (x, y ± 0.21 · x) |
    /// | TranslateX, TranslateY | plus: 7 pixels to the left, or up |
    /// | Rotate | plus: counter-clockwise by 21° about (w/2, h/2) |
    ///
    /// Geometric operations look up every pixel in the source with bilinear interpolation and round to the nearest
    /// level. Pixels outside the source are grey 128.
    pub(crate) fn apply(self, image: &RgbImage, sign: f64, overflow: Overflow) -> RgbImage {
        let (shear, shift) = (0.21 * sign, -SHIFT * sign);
        match self {
            Self::Identity => image.clone(),
            Self::AutoContrast => by_table(image, |channel| auto_contrast(channel, overflow)),
            Self::Equalize => by_table(image, equalize),
            Self::Brightness => {
                by_table(image, |_| std::array::from_fn(|v| (v * 34 / 25).min(255) as u8))
            }
            Self::Sharpness => sharpen(image, overflow),
            Self::ShearX => warp(image, |x, y| (x - shear * y, y)),
            Self::ShearY => warp(image, |x, y| (x, y - shear * x)),
            Self::TranslateX => warp(image, |x, y| (x - shift, y)),
            Self::TranslateY => warp(image, |x, y| (x, y - shift)),
            Self::Rotate => rotate(image, 21.0 * sign),
        }
    }
}

/// Maps every channel with a table that is made from the channel's histogram.
fn by_table(image: &RgbImage, table: impl Fn(&[u32; 256]) -> [u8; 256]) -> RgbImage {
    let mut histograms = [[0u32; 256]; 3];
    for pixel in image.as_raw().as_chunks::<3>().0 {
        for c in 0..3 {
            histograms[c][usize::from(pixel[c])] += 1;
        }
    }
    let tables = histograms.each_ref().map(table);
    let mut out = image.clone();
    for pixel in out.as_chunks_mut::<3>().0 {
        for c in 0..3 {
            pixel[c] = tables[c][usize::from(pixel[c])];
        }
    }
    out
}

fn identity() -> [u8; 256] {
    std::array::from_fn(|v| v as u8)
}

fn auto_contrast(histogram: &[u32; 256], overflow: Overflow) -> [u8; 256] {
    let low = histogram.iter().position(|&n| n > 0).unwrap_or(0);
    let high = histogram.iter().rposition(|&n| n > 0).unwrap_or(0);
    if high <= low {
        return identity();
    }
    if overflow == Overflow::Wrap && low > 0 {
        return [255; 256]; // −low as a byte is 256 − low, so every level of the channel becomes more than 255
    }
    std::array::from_fn(|v| (255 * v.saturating_sub(low) / (high - low)).min(255) as u8)
}

/// Pillow's rule: `step` is 1/255 of the number of pixels below the highest level.
fn equalize(histogram: &[u32; 256]) -> [u8; 256] {
    let total: u32 = histogram.iter().sum();
    let last = histogram.iter().rev().find(|&&n| n > 0).copied().unwrap_or(0);
    let step = (total - last) / 255;
    if step == 0 {
        return identity();
    }
    let mut below = step / 2;
    histogram.map(|count| {
        let level = (below / step).min(255) as u8;
        below += count;
        level
    })
}

fn sharpen(image: &RgbImage, overflow: Overflow) -> RgbImage {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let mut out = image.clone();
    let source = image.as_raw();
    let row = 3 * width;
    for y in 1..height.saturating_sub(1) {
        for at in y * row + 3..(y + 1) * row - 3 {
            let line = |from: usize| -> i32 {
                i32::from(source[from - 3]) + i32::from(source[from]) + i32::from(source[from + 3])
            };
            let p = i32::from(source[at]);
            let sum = line(at - row) + line(at) + line(at + row) + 4 * p;
            let blurred = (2 * sum + 13) / 26; // rounded to the nearest: thirteenths have no halves
            let sharp = (34 * p - 9 * blurred) / 25; // towards zero; d + 34/25 · (p − d)
            out.as_mut()[at] = match overflow {
                Overflow::Saturate => sharp.clamp(0, 255) as u8,
                Overflow::Wrap => sharp as u8,
            };
        }
    }
    out
}

/// Rotates counter-clockwise as seen on a screen (rows go down), about (w/2, h/2) in coordinates of pixel centres.
///
/// ```text
/// source = R(x − c) + c,   R = [cos θ  −sin θ; sin θ  cos θ]
/// ```
fn rotate(image: &RgbImage, degrees: f64) -> RgbImage {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (cx, cy) = (f64::from(image.width()) / 2.0, f64::from(image.height()) / 2.0);
    warp(image, |x, y| {
        let (dx, dy) = (x - cx, y - cy);
        (cos * dx - sin * dy + cx, sin * dx + cos * dy + cy)
    })
}

/// `source` gives the place in the picture of each pixel of the result. Interpolates bilinearly and rounds to the nearest level,
/// halves up.
fn warp(image: &RgbImage, source: impl Fn(f64, f64) -> (f64, f64)) -> RgbImage {
    let (width, height) = image.dimensions();
    let pixels = image.as_raw().as_chunks::<3>().0;
    let pixel = |x: i64, y: i64| -> [f64; 3] {
        let inside = (0..i64::from(width)).contains(&x) && (0..i64::from(height)).contains(&y);
        if inside {
            pixels[y as usize * width as usize + x as usize].map(f64::from)
        } else {
            [OUTSIDE; 3]
        }
    };
    let mut out = RgbImage::new(width, height);
    for (i, out) in out.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        let (x, y) = (i % width as usize, i / width as usize);
        let (sx, sy) = source(x as f64, y as f64);
        let (fx, fy) = (sx.floor(), sy.floor());
        let (ax, ay) = (sx - fx, sy - fy);
        let (x, y) = (fx as i64, fy as i64);
        let [a, b] = [pixel(x, y), pixel(x + 1, y)];
        let [c, d] = [pixel(x, y + 1), pixel(x + 1, y + 1)];
        for (k, out) in out.iter_mut().enumerate() {
            let above = a[k] + ax * (b[k] - a[k]);
            let below = c[k] + ax * (d[k] - c[k]);
            let value = above + ay * (below - above);
            // The weights of a shear are hundredths, so exact halves are common. Rounding errors must not decide how a
            // half rounds.
            *out = (value + 0.5 + 1e-9) as u8;
        }
    }
    out
}
