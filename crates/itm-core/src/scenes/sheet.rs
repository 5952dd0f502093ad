//! A contact sheet: scenes with two captions each, for a person to look at.

use super::Split;
use super::draw::png;
use super::font::{HIGH, WIDE, letter};

const COLUMNS: u32 = 4;
const ROWS: u32 = 4;
/// Pixels of the sheet for one of the picture: sharp, not smoothed.
const ZOOM: u32 = 3;
/// Pixels of the sheet for one of the font.
const INK: u32 = 2;
const MARGIN: u32 = 16;
const LINES: u32 = 8;

/// The first images of a split (16 at most), each three times enlarged over two of its captions, as a PNG file.
///
/// # Panics
/// If the split is empty.
pub fn sheet(split: &Split) -> Vec<u8> {
    assert!(!split.is_empty(), "an empty split has no contact sheet");
    let side = (split.image(0).side * ZOOM).max(200);
    let line = HIGH as u32 * INK + 4;
    let (cell_w, cell_h) = (side + MARGIN, side + 8 + LINES * line + MARGIN);
    let count = (split.len() as u32).min(COLUMNS * ROWS);
    let (columns, rows) = (COLUMNS.min(count), count.div_ceil(COLUMNS));
    let mut paper = Paper::new(columns * cell_w + MARGIN, rows * cell_h + MARGIN);
    for i in 0..count {
        let (left, top) = (MARGIN + i % COLUMNS * cell_w, MARGIN + i / COLUMNS * cell_h);
        let image = split.image(i as usize);
        for (x, y) in (0..side * side).map(|p| (p % side, p / side)) {
            let pixel = image.pixel(x * image.side / side, y * image.side / side);
            paper.set(left + x, top + y, pixel);
        }
        let mut y = top + side + 8;
        for &t in &split.pairs.texts_of(i as usize)[..2] {
            let fit = (side / letter_width()) as usize;
            let lines = wrap(&split.captions[t].text, fit);
            for text in lines.into_iter().take(LINES as usize / 2) {
                paper.write(left, y, &text);
                y += line;
            }
            y += line / 3;
        }
    }
    png(paper.width, paper.height, &paper.pixels)
}

fn letter_width() -> u32 {
    (WIDE as u32 + 1) * INK
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

struct Paper {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Paper {
    fn new(width: u32, height: u32) -> Self {
        Self { width, height, pixels: vec![250; (3 * width * height) as usize] }
    }

    fn set(&mut self, x: u32, y: u32, rgb: [u8; 3]) {
        if x < self.width && y < self.height {
            let at = 3 * (y * self.width + x) as usize;
            self.pixels[at..at + 3].copy_from_slice(&rgb);
        }
    }

    fn write(&mut self, left: u32, top: u32, text: &str) {
        for (i, character) in text.chars().enumerate() {
            let left = left + i as u32 * letter_width();
            for (row, bits) in letter(character).into_iter().enumerate() {
                for column in (0..WIDE).filter(|c| bits >> (WIDE - 1 - c) & 1 == 1) {
                    let (x, y) = (left + column as u32 * INK, top + row as u32 * INK);
                    for (dx, dy) in (0..INK * INK).map(|p| (p % INK, p / INK)) {
                        self.set(x + dx, y + dy, [40, 40, 40]);
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
        let middle = split.image(0).pixel(48, 48);
        assert_eq!(image.get_pixel(16 + 3 * 48 + 1, 16 + 3 * 48 + 1).0, middle);
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
