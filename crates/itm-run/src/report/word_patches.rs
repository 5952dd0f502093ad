//! Pictures with the maps of words laid over them, rows beside each other.

use std::fmt::Write;

use itm_core::data::Bounds;
use itm_core::encoders::{PatchGrid, Places};
use itm_report::html::scroll;
use maud::{Markup, html};

use super::examples::data_url;
use super::{PairKind, PairMaps};

/// Number of steps of darkness. Step 0 is a map's largest value, the last step its smallest value.
const STEPS: usize = 12;
/// Opacity of the last step.
const DARKEST: f64 = 0.84;

/// Renders nothing if no pair has patches.
pub(super) fn render(pairs: &[PairMaps]) -> Markup {
    let grid = |pair: &PairMaps| match pair.places {
        Places::Patches(grid) => Some(grid),
        Places::Boxes(_) => None,
    };
    let pairs: Vec<_> = pairs.iter().filter_map(|pair| Some((pair, grid(pair)?))).collect();
    html! {
        @if !pairs.is_empty() {
            p.note {
                "How close a word is to each patch of the picture: cosine of their last hidden states in the joint space (the \
                 paper does not say how its maps were made). Each map has its own scale, bright is close, the circle marks the \
                 closest patch; dashed: what the word is about, where that is known. The picture is shown as the encoder sees \
                 it: squeezed to a square, or its centre."
            }
            div.pairs { @for (k, (pair, grid)) in pairs.iter().enumerate() { (one(pair, *grid, &format!("pair-{k}"))) } }
        }
    }
}

/// What an image and a caption are to each other, in words.
pub(crate) fn kind(kind: PairKind) -> &'static str {
    match kind {
        PairKind::Annotated => "annotated pair",
        PairKind::FalseNegative => "false negative: true, not annotated",
        PairKind::MostSimilar => "most similar image that is not annotated",
        PairKind::Asked => "not annotated",
    }
}

fn one(pair: &PairMaps, grid: PatchGrid, id: &str) -> Markup {
    let maps = html! {
        table {
            thead { tr { th {} @for word in &pair.words { th scope="col" { (word) } } } }
            tbody {
                @for row in &pair.rows {
                    tr {
                        th scope="row" { (row.name) }
                        @for ((word, boxes), map) in pair.words.iter().zip(&pair.boxes).zip(&row.maps) {
                            @let closest = map.best();
                            td {
                                (svg(grid.size, &format!("{}: {word}, closest {closest:.2}", row.name), html! {
                                    use href={ "#" (id) } {}
                                    (overlay(grid, &map.values, boxes))
                                }))
                                span.score { (format!("{closest:.2}")) }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        article {
            p.by { (kind(pair.kind)) " · " (pair.picture.name) }
            div.whole { (svg(grid.size, &pair.picture.name, html! { g id=(id) { (picture(pair, grid.size)) } })) }
            p { q { (pair.caption) } }
            (scroll("Maps of words", maps))
        }
    }
}

/// A square drawing with a title; `size` is its side.
pub(super) fn svg(size: usize, title: &str, content: Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (size) " " (size) } role="img" aria-label=(title) { title { (title) } (content) }
    }
}

/// A box in a drawing of this size.
pub(super) fn rect(b: &Bounds, class: &str, size: usize) -> Markup {
    let [x, y, w, h] = [b.x1, b.y1, b.width(), b.height()].map(|share| tenths(share, size));
    html! { rect class=(class) x=(x) y=(y) width=(w) height=(h) {} }
}

/// A share of a side as a coordinate, with one decimal.
pub(super) fn tenths(share: f32, size: usize) -> String {
    format!("{:.1}", share * size as f32)
}

pub(super) fn picture(pair: &PairMaps, size: usize) -> Markup {
    // What lies outside of the drawing is not shown.
    let side = size as f32 / pair.crop.unwrap_or(1.0);
    let (at, fit) = ((size as f32 - side) / 2.0, pair.crop.map_or("none", |_| "xMidYMid slice"));
    html! {
        @if pair.picture.bytes.is_empty() {
            rect.absent-picture width=(size) height=(size) {}
        } @else {
            image x=(at) y=(at) width=(side) height=(side) preserveAspectRatio=(fit) href=(data_url(&pair.picture)) {}
        }
    }
}

/// A shade over each patch (one path per step of darkness), the boxes, and a circle around the closest patch.
fn overlay(grid: PatchGrid, map: &[f32], boxes: &[Bounds]) -> Markup {
    let side = grid.patch;
    let shade = |step: usize| {
        let mut path = String::new();
        for patch in (0..map.len()).filter(|&k| darkness(map, k) == step) {
            let [x, y] = grid.place(patch).map(|at| at * side);
            _ = write!(path, "M{x} {y}h{side}v{side}h-{side}z");
        }
        (!path.is_empty()).then(|| (format!("{:.2}", DARKEST * step as f64 / STEPS as f64), path))
    };
    let [x, y] = grid.centre(largest(map)).map(|share| tenths(share, grid.size));
    html! {
        @for (opacity, path) in (1..=STEPS).filter_map(shade) {
            path.shade fill-opacity=(opacity) d=(path) {}
        }
        @for b in boxes { (rect(b, "box", grid.size)) }
        circle.peak cx=(x) cy=(y) r=(format!("{:.1}", side as f32 * 0.45)) {}
    }
}

/// 0 at the largest value of a map, [`STEPS`] at its smallest. 0 everywhere if all values are equal or no numbers.
fn darkness(map: &[f32], patch: usize) -> usize {
    let of = |f: fn(f32, f32) -> f32| map.iter().copied().reduce(f).unwrap_or(0.0);
    let (low, high) = (of(f32::min), of(f32::max));
    let share = (high - map[patch]) / (high - low);
    if share.is_finite() { (share * STEPS as f32).round() as usize } else { 0 }
}

/// The place of a map's largest value; the first of equal values.
pub(crate) fn largest(map: &[f32]) -> usize {
    (1..map.len()).fold(0, |best, k| if map[k] > map[best] { k } else { best })
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
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
        let pairs = sample::pairs();
        let out = render(&pairs).into_string();
        let rows: Vec<_> =
            out.match_indices("<th scope=\"row\">").map(|(at, _)| &out[at + 16..at + 22]).collect();
        assert_eq!(rows, ["Full, ", "w/o FN", "Full, ", "w/o FN"]);
        assert!(out.contains("A &lt;b&gt;ball&lt;/b&gt; &amp; a cup") && !out.contains("<b>"));
        assert!(out.contains("&lt;cup&gt;") && !out.contains("<cup>"));
        for kind in ["annotated pair", "false negative: true, not annotated"] {
            assert!(out.contains(kind), "{kind}");
        }
        // The page holds a picture once per pair. Each pair has four maps: two words of two rows.
        assert_eq!(out.matches("data:image/svg+xml;base64,").count(), 2);
        assert_eq!(out.matches("<use href=\"#pair-0\"></use>").count(), 4);
        assert_eq!(out.matches("<use href=\"#pair-1\"></use>").count(), 4);
    }

    /// By hand: 2 × 2 patches of 4 px. The first map is largest at patch 2, lower left: a circle at (2, 6). The other
    /// three patches are darkest. The box is around (0.25, 0.75), half as wide as the picture.
    #[test]
    fn shade_circle_and_box_lie_where_they_should() {
        let pair = &sample::pairs()[0];
        let map = &pair.rows[0].maps[0].values;
        let out = overlay(PatchGrid::new(8, 4), map, &pair.boxes[0]).into_string();
        let shade = "fill-opacity=\"0.84\" d=\"M0 0h4v4h-4zM4 0h4v4h-4zM4 4h4v4h-4z\"></path>";
        assert!(out.contains(shade) && out.matches("<path").count() == 1, "{out}");
        assert!(out.contains("cx=\"2.0\" cy=\"6.0\""), "{out}");
        assert!(out.contains("x=\"0.0\" y=\"4.4\" width=\"4.0\" height=\"3.2\""), "{out}");
    }

    /// By hand: half of the shorter side fills 8 px, so that side has 16 px, 4 of them before the drawing.
    #[test]
    fn an_encoder_of_the_centre_shows_the_centre() {
        let mut pair = sample::pairs().remove(0);
        let drawn = |pair: &PairMaps| picture(pair, 8).into_string();
        let whole = "x=\"0\" y=\"0\" width=\"8\" height=\"8\" preserveAspectRatio=\"none\"";
        assert!(drawn(&pair).contains(whole), "{}", drawn(&pair));
        pair.crop = Some(0.5);
        let centre =
            "x=\"-4\" y=\"-4\" width=\"16\" height=\"16\" preserveAspectRatio=\"xMidYMid slice\"";
        assert!(drawn(&pair).contains(centre), "{}", drawn(&pair));
    }

    #[test]
    fn a_picture_that_is_not_there_leaves_its_maps() {
        let mut pair = sample::pairs().remove(0);
        pair.picture.bytes.clear();
        let out = one(&pair, PatchGrid::new(8, 4), "pair-0").into_string();
        assert!(
            !out.contains("<image")
                && out.contains("absent-picture")
                && out.contains("class=\"peak\"")
        );
    }
}
