//! A contact sheet for people: pictures with two captions each.

use image::{Rgb, RgbImage};

use super::ScenesSplit;
use super::draw::png;
use super::font::{HIGH, WIDE, letter};

const COLUMNS: usize = 4;
const MOST: usize = 16;
/// Sheet pixels per picture pixel: enlarged without smoothing.
const ZOOM: u32 = 3;
/// Sheet pixels per font pixel.
const INK: u32 = 2;
const MARGIN: u32 = 16;
/// Width of a letter with the space behind it.
const LETTER: u32 = (WIDE as u32 + 1) * INK;
const LINE: u32 = HIGH as u32 * INK + 4;

/// The first images of a split (at most 16) as a PNG file. Each image is enlarged three times (to at least 200 pixels)
/// and has two of its captions below it.
///
/// # Panics
/// If the split is empty.
pub fn sheet(split: &ScenesSplit) -> Vec<u8> {
    assert!(!split.is_empty(), "an empty split has no contact sheet");
    let side = (split.image(0).width() * ZOOM).max(200);
    let cells: Vec<_> = (0..split.len().min(MOST)).collect();
    let texts: Vec<_> = cells.iter().map(|&i| texts(split, i, side)).collect();
    let heights: Vec<u32> = texts
        .chunks(COLUMNS)
        .map(|row| row.iter().map(|t| t.len() as u32 * LINE).max().unwrap_or(0) + side + 2 * MARGIN)
        .collect();
    let columns = COLUMNS.min(cells.len()) as u32;
    let width = columns * (side + MARGIN) + MARGIN;
    let height = heights.iter().sum::<u32>() + MARGIN;
    let mut paper = RgbImage::from_pixel(width, height, Rgb([250; 3]));
    for (&i, lines) in cells.iter().zip(&texts) {
        let left = MARGIN + (i % COLUMNS) as u32 * (side + MARGIN);
        let top = MARGIN + heights[..i / COLUMNS].iter().sum::<u32>();
        let image = split.image(i);
        for (x, y) in (0..side * side).map(|p| (p % side, p / side)) {
            let [x_of, y_of] = [x, y].map(|at| at * image.width() / side);
            paper.put_pixel(left + x, top + y, *image.get_pixel(x_of, y_of));
        }
        for (k, line) in lines.iter().enumerate() {
            write(&mut paper, left, top + side + MARGIN / 2 + k as u32 * LINE, line);
        }
    }
    png(&paper)
}

/// The lines of the first two captions of an image.
fn texts(split: &ScenesSplit, image: usize, side: u32) -> Vec<String> {
    let captions = split.pairs.texts_of(image)[..2].iter().map(|&t| &split.captions[t].text);
    captions.flat_map(|text| wrap(text, (side / LETTER) as usize)).collect()
}

/// Breaks a text at spaces into lines of at most `fit` characters; the first begins with a dash.
fn wrap(text: &str, fit: usize) -> Vec<String> {
    let mut lines = vec!["-".to_owned()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("a line");
        if last.len() + 1 + word.len() <= fit {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

/// Draws a line of text; what stands beyond the edge of the paper is left out.
fn write(paper: &mut RgbImage, left: u32, top: u32, text: &str) {
    for (i, character) in text.chars().enumerate() {
        let left = left + i as u32 * LETTER;
        for (row, bits) in letter(character).into_iter().enumerate() {
            for column in (0..WIDE).filter(|c| bits >> (WIDE - 1 - c) & 1 == 1) {
                let (x, y) = (left + column as u32 * INK, top + row as u32 * INK);
                for (dx, dy) in (0..INK * INK).map(|p| (p % INK, p / INK)) {
                    if let Some(pixel) = paper.get_pixel_mut_checked(x + dx, y + dy) {
                        *pixel = Rgb([40; 3]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scenes, Sizes};
    use super::*;

    #[test]
    fn the_sheet_shows_pictures_and_ink() {
        let split = Scenes::generate(5, Sizes { train: 0, val: 6, test: 0, pixels: 96 }).val;
        let image = image::load_from_memory(&sheet(&split)).expect("a PNG").to_rgb8();
        assert_eq!(image.width(), 4 * (288 + 16) + 16);
        // The middle of the first picture, then its first caption's ink.
        let middle = *split.image(0).get_pixel(48, 48);
        assert_eq!(*image.get_pixel(16 + 3 * 48 + 1, 16 + 3 * 48 + 1), middle);
        let text = (16..16 + 288).flat_map(|x| (312..334).map(move |y| (x, y)));
        let ink = text.filter(|&(x, y)| image.get_pixel(x, y).0 == [40; 3]).count();
        assert!(ink > 300, "{ink} pixels of ink");
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(
            wrap("a tiny red ball sits here", 12),
            ["- a tiny red", "  ball sits", "  here"]
        );
    }
}
