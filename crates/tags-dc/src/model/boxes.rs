//! The seven numbers that describe a region's box.

use itm_core::data::Bounds;
use itm_core::{Error, Result};

/// How many numbers describe a box.
pub(crate) const BOX_NUMBERS: usize = 7;

/// x1, y1, x2, y2, w, h and w·h of a box, as shares of its picture.
///
/// ```
/// use itm_core::data::Bounds;
/// use tags_dc::model::box_numbers;
///
/// let half = Bounds { x1: 0.25, y1: 0.0, x2: 0.75, y2: 0.5 };
/// assert_eq!(box_numbers(&half), [0.25, 0.0, 0.75, 0.5, 0.5, 0.5, 0.25]);
/// ```
pub fn box_numbers(bounds: &Bounds) -> [f32; BOX_NUMBERS] {
    let Bounds { x1, y1, x2, y2 } = *bounds;
    let (w, h) = (bounds.width(), bounds.height());
    [x1, y1, x2, y2, w, h, w * h]
}

/// The seven numbers of a stored `norm_bb` row. The row holds the first six, as the detector wrote them.
pub fn box_numbers_of_six([x1, y1, x2, y2, w, h]: [f32; 6]) -> [f32; BOX_NUMBERS] {
    [x1, y1, x2, y2, w, h, w * h]
}

/// The seven numbers of a box in pixels, x1, y1, x2, y2, in a picture of this width and height.
///
/// # Errors
/// If the picture has no area, or the box does not lie inside the picture.
///
/// ```
/// use tags_dc::model::box_numbers_of_pixels;
///
/// let numbers = box_numbers_of_pixels([100.0, 0.0, 300.0, 150.0], [400.0, 300.0])?;
/// assert_eq!(numbers, [0.25, 0.0, 0.75, 0.5, 0.5, 0.5, 0.25]);
/// # Ok::<(), itm_core::Error>(())
/// ```
pub fn box_numbers_of_pixels(
    edges: [f32; 4],
    [width, height]: [f32; 2],
) -> Result<[f32; BOX_NUMBERS]> {
    let fits = width.is_finite() && height.is_finite() && width > 0.0 && height > 0.0;
    Error::unless(fits, "picture", "a width and a height", format_args!("{width} × {height}"))?;
    let [x1, y1, x2, y2] = edges;
    let inside = 0.0 <= x1 && x1 <= x2 && x2 <= width && 0.0 <= y1 && y1 <= y2 && y2 <= height;
    let expected = format_args!("x1, y1, x2, y2 in a picture of {width} × {height} pixels");
    Error::unless(inside, "box", expected, format_args!("{edges:?}"))?;
    let bounds = Bounds { x1: x1 / width, y1: y1 / height, x2: x2 / width, y2: y2 / height };
    Ok(box_numbers(&bounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the box's width is a share of the picture's width, its height a share of the picture's height, and the last number is their
    /// product.
    #[test]
    fn golden_a_box_in_pixels() {
        let got = box_numbers_of_pixels([20.0, 30.0, 120.0, 90.0], [200.0, 120.0]).unwrap();
        assert_eq!(got, [0.1, 0.25, 0.6, 0.75, 0.5, 0.5, 0.25]);
        assert_eq!(box_numbers_of_six([0.0, 0.0, 0.5, 1.0, 0.5, 0.25]).last(), Some(&0.125));
    }

    #[test]
    fn a_box_outside_or_a_picture_without_area_is_refused() {
        let refused = |edges, size| box_numbers_of_pixels(edges, size).unwrap_err().to_string();
        assert_eq!(
            refused([0.0, 0.0, 101.0, 5.0], [100.0, 50.0]),
            "box: expected x1, y1, x2, y2 in a picture of 100 × 50 pixels, got [0.0, 0.0, 101.0, 5.0]"
        );
        for edges in [[5.0, 0.0, 4.0, 1.0], [-1.0, 0.0, 4.0, 1.0], [0.0, f32::NAN, 1.0, 1.0]] {
            assert!(refused(edges, [100.0, 50.0]).starts_with("box: "));
        }
        assert!(refused([0.0; 4], [0.0, 50.0]).starts_with("picture: expected a width"));
    }
}
