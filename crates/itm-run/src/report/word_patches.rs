//! Pictures with the maps of words laid over them, rows beside each other.

use std::fmt::Write;

use itm_core::encoders::PatchGrid;
use itm_core::scenes::Bounds;

use super::examples::base64;
use super::html::escape;
use super::{PairKind, PairMaps};
use crate::pointing::largest;

/// Steps of darkness: 0 is a map's largest value, the last its smallest.
const STEPS: usize = 12;
/// How dark the last is.
const DARKEST: f64 = 0.84;

pub(super) fn render(out: &mut String, pairs: &[PairMaps]) {
    if pairs.is_empty() {
        return;
    }
    *out += "<p class=\"note\">How close a word is to each patch of the picture: cosine of their last hidden states in the \
             joint space (the paper does not say how its maps were made). Each map has its own scale, bright is close, the \
             circle marks the closest patch; dashed: what the word is about, where that is known. The picture is shown as \
             the encoder sees it, squeezed to a square.</p>\n<div class=\"pairs\">\n";
    for (k, pair) in pairs.iter().enumerate() {
        one(out, pair, &format!("pair-{k}"));
    }
    *out += "</div>\n";
}

fn one(out: &mut String, pair: &PairMaps, id: &str) {
    let kind = match pair.kind {
        PairKind::Annotated => "annotated pair",
        PairKind::FalseNegative => "false negative: true, not annotated",
        PairKind::MostSimilar => "most similar image that is not annotated",
    };
    let name = escape(&pair.picture.name);
    *out += &format!("<article>\n<p class=\"by\">{kind} · {name}</p>\n<div class=\"whole\">");
    *out += &format!("{}<g id=\"{id}\">{}</g></svg>", open(pair.grid, &name), picture(pair));
    *out += &format!(
        "</div>\n<p><q>{}</q></p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>",
        escape(&pair.caption)
    );
    for word in &pair.words {
        *out += &format!("<th scope=\"col\">{}</th>", escape(word));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in &pair.rows {
        let label = format!("{}, seed {}", row.row, row.seed);
        *out += &format!("<tr><th scope=\"row\">{}</th>", escape(&label));
        for ((word, boxes), map) in pair.words.iter().zip(&pair.boxes).zip(&row.maps) {
            let closest = map.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let title = escape(&format!("{label}: {word}, closest {closest:.2}"));
            *out += &format!("<td>{}<use href=\"#{id}\"/>", open(pair.grid, &title));
            overlay(out, pair.grid, map, boxes);
            *out += &format!("</svg><span class=\"score\">{closest:.2}</span></td>");
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table></div>\n</article>\n";
}

fn open(grid: PatchGrid, title: &str) -> String {
    let size = grid.size;
    format!(
        "<svg viewBox=\"0 0 {size} {size}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>"
    )
}

fn picture(pair: &PairMaps) -> String {
    let (size, picture) = (pair.grid.size, &pair.picture);
    if picture.bytes.is_empty() {
        return format!("<rect class=\"absent-picture\" width=\"{size}\" height=\"{size}\"/>");
    }
    format!(
        "<image width=\"{size}\" height=\"{size}\" preserveAspectRatio=\"none\" href=\"data:{};base64,{}\"/>",
        escape(picture.mime),
        base64(&picture.bytes)
    )
}

/// A shade over each patch, one path a step of darkness; the boxes; a circle round the closest patch.
fn overlay(out: &mut String, grid: PatchGrid, map: &[f32], boxes: &[Bounds]) {
    let side = grid.patch;
    for step in 1..=STEPS {
        let mut path = String::new();
        for patch in (0..map.len()).filter(|&k| darkness(map, k) == step) {
            let [x, y] = grid.place(patch).map(|at| at * side);
            _ = write!(path, "M{x} {y}h{side}v{side}h-{side}z");
        }
        if !path.is_empty() {
            let opacity = DARKEST * step as f64 / STEPS as f64;
            *out += &format!("<path class=\"shade\" fill-opacity=\"{opacity:.2}\" d=\"{path}\"/>");
        }
    }
    for b in boxes {
        let [x, y, w, h] = [b.x1, b.y1, b.width(), b.height()].map(|v| v * grid.size as f32);
        *out += &format!(
            "<rect class=\"box\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"/>"
        );
    }
    let [x, y] = grid.centre(largest(map)).map(|v| v * grid.size as f32);
    let r = side as f32 * 0.45;
    *out += &format!("<circle class=\"peak\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>");
}

/// 0 at the largest value of a map, [`STEPS`] at its smallest; 0 everywhere in a map of one value, or of values that are no
/// numbers.
fn darkness(map: &[f32], patch: usize) -> usize {
    let of = |f: fn(f32, f32) -> f32| map.iter().copied().reduce(f).unwrap_or(0.0);
    let (low, high) = (of(f32::min), of(f32::max));
    let share = (high - map[patch]) / (high - low);
    if share.is_finite() { (share * STEPS as f32).round() as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// By hand: 0.5 of 0.1 to 0.9 is half way.
    #[test]
    fn darkness_by_hand() {
        let map = [0.1, 0.9, 0.5, 0.9];
        assert_eq!([0, 1, 2, 3].map(|k| darkness(&map, k)), [STEPS, 0, STEPS / 2, 0]);
        assert_eq!(darkness(&[0.3; 4], 2), 0);
        assert_eq!(darkness(&[f32::NAN; 4], 2), 0);
    }

    #[test]
    fn both_rows_stand_there_and_text_is_never_markup() {
        let pairs = sample::input(1.0, 1.0, &[1]).figures.word_patches;
        let mut out = String::new();
        render(&mut out, &pairs);
        let rows: Vec<_> =
            out.match_indices("<th scope=\"row\">").map(|(at, _)| &out[at + 16..at + 22]).collect();
        assert_eq!(rows, ["Full, ", "w/o FN", "Full, ", "w/o FN"]);
        assert!(out.contains("A &lt;b&gt;ball&lt;/b&gt; &amp; a cup") && !out.contains("<b>"));
        assert!(out.contains("&lt;cup&gt;") && !out.contains("<cup>"));
        for kind in ["annotated pair", "false negative: true, not annotated"] {
            assert!(out.contains(kind), "{kind}");
        }
        // A picture once a pair, however many maps lie over it; two words and two rows each.
        assert_eq!(out.matches("data:image/svg+xml;base64,").count(), 2);
        assert_eq!(out.matches("<use href=\"#pair-0\"/>").count(), 4);
        assert_eq!(out.matches("<use href=\"#pair-1\"/>").count(), 4);
    }

    /// By hand: 2 × 2 patches of 4 px. The first map is largest at patch 2, lower left: a circle at (2, 6), and the other three
    /// as dark as can be; the box around (0.25, 0.75), half as wide as the picture.
    #[test]
    fn shade_circle_and_box_lie_where_they_should() {
        let pair = &sample::input(1.0, 1.0, &[1]).figures.word_patches[0];
        let mut out = String::new();
        overlay(&mut out, pair.grid, &pair.rows[0].maps[0], &pair.boxes[0]);
        let shade = "fill-opacity=\"0.84\" d=\"M0 0h4v4h-4zM4 0h4v4h-4zM4 4h4v4h-4z\"/>";
        assert!(out.contains(shade) && out.matches("<path").count() == 1, "{out}");
        assert!(out.contains("cx=\"2.0\" cy=\"6.0\""), "{out}");
        assert!(out.contains("x=\"0.0\" y=\"4.4\" width=\"4.0\" height=\"3.2\""), "{out}");
    }

    #[test]
    fn a_picture_that_is_not_there_leaves_its_maps() {
        let mut pair = sample::input(1.0, 1.0, &[1]).figures.word_patches.remove(0);
        pair.picture.bytes.clear();
        let mut out = String::new();
        one(&mut out, &pair, "pair-0");
        assert!(
            !out.contains("<image")
                && out.contains("absent-picture")
                && out.contains("class=\"peak\"")
        );
    }
}
