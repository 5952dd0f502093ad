//! Shears, translations and rotations: every pixel of the result is looked up in the source.

use image::RgbImage;

/// Grey level outside the picture.
const OUTSIDE: f64 = 128.0;

/// Pixels of a translation: magnitude 7 of 10 gives 7 of 10 pixels, for pictures of any size.
pub(super) const SHIFT: f64 = 7.0;

/// Rotates counter-clockwise as seen on a screen (rows go down), about (w/2, h/2) in coordinates of pixel centres.
///
/// ```text
/// source = R(x − c) + c,   R = [cos θ  −sin θ; sin θ  cos θ]
/// ```
pub(super) fn rotate(image: &RgbImage, degrees: f64) -> RgbImage {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (cx, cy) = (f64::from(image.width()) / 2.0, f64::from(image.height()) / 2.0);
    warp(image, |x, y| {
        let (dx, dy) = (x - cx, y - cy);
        (cos * dx - sin * dy + cx, sin * dx + cos * dy + cy)
    })
}

/// `source` gives the place in the picture of each pixel of the result. Interpolates bilinearly and rounds to the nearest level,
/// halves up.
pub(super) fn warp(image: &RgbImage, source: impl Fn(f64, f64) -> (f64, f64)) -> RgbImage {
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
