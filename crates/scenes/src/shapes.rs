//! The outlines of the kinds, in the unit square (y downwards).

use std::sync::OnceLock;

use tiny_skia::{FillRule, Path, PathBuilder, Rect};

use super::world::Kind;

/// What a part is painted with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ink {
    /// The object's colour and pattern.
    Body,
    /// The object's colour, darker (below 1) or lighter.
    Shade(f32),
    /// A fixed colour, whatever the object's colour.
    Fixed([u8; 3]),
}

/// One filled outline.
pub(super) struct Outline {
    pub(super) path: Path,
    pub(super) ink: Ink,
    pub(super) rule: FillRule,
}

const DARK: Ink = Ink::Fixed([52, 44, 44]);
const BROWN: Ink = Ink::Fixed([104, 70, 44]);
const PALE: Ink = Ink::Fixed([206, 222, 230]);
const LEAF: Ink = Ink::Fixed([58, 112, 58]);

/// The parts of a kind, back to front.
pub(super) fn parts(kind: Kind) -> &'static [Outline] {
    static PARTS: OnceLock<Vec<Vec<Outline>>> = OnceLock::new();
    &PARTS.get_or_init(|| Kind::ALL.iter().map(|&k| build(k)).collect())[kind as usize]
}

fn build(kind: Kind) -> Vec<Outline> {
    use Ink::{Body, Shade};
    match kind {
        Kind::Ball => {
            vec![oval(Body, [0.0, 0.0, 1.0, 1.0]), oval(Shade(1.6), [0.22, 0.16, 0.44, 0.36])]
        }
        Kind::House => vec![
            rect(Body, [0.1, 0.42, 0.9, 1.0]),
            poly(Shade(0.6), &[(0.0, 0.45), (0.5, 0.0), (1.0, 0.45)]),
            rect(DARK, [0.42, 0.66, 0.58, 1.0]),
            rect(PALE, [0.19, 0.56, 0.34, 0.71]),
            rect(PALE, [0.66, 0.56, 0.81, 0.71]),
        ],
        Kind::Tree => vec![
            rect(BROWN, [0.42, 0.6, 0.58, 1.0]),
            ovals(
                Body,
                &[[0.0, 0.22, 0.62, 0.72], [0.38, 0.22, 1.0, 0.72], [0.17, 0.0, 0.83, 0.52]],
            ),
        ],
        Kind::Car => vec![
            poly(
                Body,
                &[
                    (0.0, 0.52),
                    (0.06, 0.4),
                    (0.18, 0.4),
                    (0.32, 0.0),
                    (0.7, 0.0),
                    (0.84, 0.4),
                    (0.96, 0.44),
                    (1.0, 0.6),
                    (1.0, 0.82),
                    (0.0, 0.82),
                ],
            ),
            poly(PALE, &[(0.27, 0.38), (0.37, 0.1), (0.49, 0.1), (0.49, 0.38)]),
            poly(PALE, &[(0.54, 0.38), (0.54, 0.1), (0.66, 0.1), (0.75, 0.38)]),
            oval(DARK, [0.12, 0.6, 0.35, 1.0]),
            oval(DARK, [0.65, 0.6, 0.88, 1.0]),
        ],
        Kind::Cube => vec![
            poly(Body, &[(0.0, 0.25), (0.75, 0.25), (0.75, 1.0), (0.0, 1.0)]),
            poly(Shade(1.35), &[(0.0, 0.25), (0.25, 0.0), (1.0, 0.0), (0.75, 0.25)]),
            poly(Shade(0.6), &[(0.75, 0.25), (1.0, 0.0), (1.0, 0.75), (0.75, 1.0)]),
        ],
        Kind::Boat => vec![
            rect(BROWN, [0.47, 0.0, 0.52, 0.7]),
            poly(Body, &[(0.54, 0.04), (0.54, 0.64), (0.98, 0.64)]),
            poly(Body, &[(0.45, 0.14), (0.45, 0.64), (0.08, 0.64)]),
            poly(Shade(0.6), &[(0.0, 0.7), (1.0, 0.7), (0.82, 1.0), (0.18, 1.0)]),
        ],
        Kind::Star => vec![poly(Body, &star())],
        Kind::Bird => vec![
            poly(Shade(0.7), &[(0.3, 0.6), (0.0, 0.42), (0.06, 0.76)]),
            ovals(Body, &[[0.14, 0.42, 0.82, 1.0], [0.6, 0.2, 0.92, 0.62]]),
            poly(Ink::Fixed([220, 150, 50]), &[(0.9, 0.34), (1.0, 0.43), (0.9, 0.5)]),
            poly(Shade(0.65), &[(0.32, 0.62), (0.26, 0.0), (0.64, 0.58)]),
            oval(DARK, [0.74, 0.3, 0.81, 0.39]),
        ],
        Kind::Fish => vec![
            poly(Shade(0.7), &[(0.6, 0.5), (1.0, 0.0), (0.9, 0.5), (1.0, 1.0)]),
            oval(Body, [0.0, 0.06, 0.76, 0.94]),
            poly(Shade(0.65), &[(0.36, 0.5), (0.58, 0.3), (0.54, 0.5), (0.58, 0.7)]),
            oval(Ink::Fixed([240, 240, 240]), [0.1, 0.28, 0.22, 0.48]),
            oval(DARK, [0.13, 0.33, 0.19, 0.43]),
        ],
        Kind::Flower => vec![
            rect(LEAF, [0.46, 0.5, 0.54, 1.0]),
            oval(LEAF, [0.54, 0.7, 0.88, 0.83]),
            outline(Body, |p| {
                for k in 0..5 {
                    let (s, c) = (k as f32 * 1.256_637 - std::f32::consts::FRAC_PI_2).sin_cos();
                    let (x, y) = (0.5 + 0.29 * c, 0.33 + 0.2 * s);
                    p.push_oval(rectangle([x - 0.2, y - 0.14, x + 0.2, y + 0.14]));
                }
            }),
            oval(BROWN, [0.36, 0.23, 0.64, 0.43]),
        ],
        Kind::Cup => vec![
            hollow(ovals(Body, &[[0.48, 0.22, 1.0, 0.78], [0.6, 0.35, 0.88, 0.65]])),
            poly(Body, &[(0.0, 0.1), (0.7, 0.1), (0.62, 1.0), (0.08, 1.0)]),
            oval(Shade(0.55), [0.0, 0.0, 0.7, 0.2]),
        ],
        Kind::Ring => {
            vec![hollow(ovals(Body, &[[0.0, 0.0, 1.0, 1.0], [0.13, 0.13, 0.87, 0.87]]))]
        }
        Kind::Heart => vec![outline(Body, |p| {
            p.move_to(0.5, 0.28);
            p.cubic_to(0.5, 0.1, 0.38, 0.0, 0.25, 0.0);
            p.cubic_to(0.1, 0.0, 0.0, 0.12, 0.0, 0.3);
            p.cubic_to(0.0, 0.6, 0.35, 0.78, 0.5, 1.0);
            p.cubic_to(0.65, 0.78, 1.0, 0.6, 1.0, 0.3);
            p.cubic_to(1.0, 0.12, 0.9, 0.0, 0.75, 0.0);
            p.cubic_to(0.62, 0.0, 0.5, 0.1, 0.5, 0.28);
            p.close();
        })],
        Kind::Umbrella => vec![
            rect(DARK, [0.47, 0.0, 0.53, 0.94]),
            poly(
                DARK,
                &[(0.53, 0.94), (0.53, 1.0), (0.34, 1.0), (0.34, 0.86), (0.4, 0.86), (0.4, 0.94)],
            ),
            outline(Body, |p| {
                p.move_to(0.0, 0.52);
                p.cubic_to(0.02, 0.18, 0.25, 0.06, 0.5, 0.06);
                p.cubic_to(0.75, 0.06, 0.98, 0.18, 1.0, 0.52);
                for x in [1.0, 0.75, 0.5, 0.25] {
                    p.quad_to(x - 0.125, 0.4, x - 0.25, 0.52);
                }
                p.close();
            }),
        ],
        Kind::Kite => vec![
            poly(
                DARK,
                &[
                    (0.48, 0.76),
                    (0.34, 0.86),
                    (0.6, 0.92),
                    (0.48, 1.0),
                    (0.7, 0.92),
                    (0.44, 0.86),
                    (0.54, 0.76),
                ],
            ),
            poly(Body, &[(0.5, 0.0), (1.0, 0.32), (0.5, 0.8), (0.0, 0.32)]),
            poly(Shade(0.6), &[(0.48, 0.02), (0.52, 0.02), (0.52, 0.78), (0.48, 0.78)]),
            poly(Shade(0.6), &[(0.02, 0.305), (0.98, 0.305), (0.98, 0.335), (0.02, 0.335)]),
        ],
        Kind::Hat => vec![
            oval(Body, [0.0, 0.62, 1.0, 1.0]),
            outline(Body, |p| {
                p.move_to(0.2, 0.82);
                p.line_to(0.27, 0.1);
                p.quad_to(0.5, -0.1, 0.73, 0.1);
                p.line_to(0.8, 0.82);
                p.quad_to(0.5, 0.96, 0.2, 0.82);
                p.close();
            }),
            poly(Shade(0.4), &[(0.225, 0.54), (0.775, 0.54), (0.8, 0.76), (0.2, 0.76)]),
        ],
        Kind::Cone => vec![outline(Body, |p| {
            p.move_to(0.5, 0.0);
            p.line_to(1.0, 0.86);
            p.quad_to(0.5, 1.14, 0.0, 0.86);
            p.close();
        })],
        Kind::Mushroom => vec![
            poly(
                Ink::Fixed([222, 204, 176]),
                &[(0.37, 0.45), (0.63, 0.45), (0.7, 1.0), (0.3, 1.0)],
            ),
            outline(Body, |p| {
                p.move_to(0.0, 0.54);
                p.cubic_to(0.0, 0.12, 0.24, 0.0, 0.5, 0.0);
                p.cubic_to(0.76, 0.0, 1.0, 0.12, 1.0, 0.54);
                p.quad_to(0.5, 0.68, 0.0, 0.54);
                p.close();
            }),
        ],
        Kind::Frame => vec![hollow(outline(Body, |p| {
            p.push_rect(rectangle([0.0, 0.0, 1.0, 1.0]));
            p.push_rect(rectangle([0.16, 0.16, 0.84, 0.84]));
        }))],
    }
}

fn star() -> [(f32, f32); 10] {
    std::array::from_fn(|k| {
        let radius = if k % 2 == 0 { 0.54 } else { 0.22 };
        let (s, c) = (k as f32 * 0.628_318_5 - std::f32::consts::FRAC_PI_2).sin_cos();
        ((0.5 + radius * c).clamp(0.0, 1.0), (0.54 + radius * s).clamp(0.0, 1.0))
    })
}

fn outline(ink: Ink, draw: impl FnOnce(&mut PathBuilder)) -> Outline {
    let mut builder = PathBuilder::new();
    draw(&mut builder);
    Outline { path: builder.finish().expect("a shape with an area"), ink, rule: FillRule::Winding }
}

/// With a hole where parts of the outline overlap.
fn hollow(outline: Outline) -> Outline {
    Outline { rule: FillRule::EvenOdd, ..outline }
}

fn poly(ink: Ink, points: &[(f32, f32)]) -> Outline {
    outline(ink, |p| {
        p.move_to(points[0].0, points[0].1);
        points[1..].iter().for_each(|&(x, y)| p.line_to(x, y));
        p.close();
    })
}

fn rect(ink: Ink, bounds: [f32; 4]) -> Outline {
    outline(ink, |p| p.push_rect(rectangle(bounds)))
}

fn oval(ink: Ink, bounds: [f32; 4]) -> Outline {
    ovals(ink, &[bounds])
}

fn ovals(ink: Ink, all: &[[f32; 4]]) -> Outline {
    outline(ink, |p| all.iter().for_each(|&bounds| p.push_oval(rectangle(bounds))))
}

fn rectangle([x1, y1, x2, y2]: [f32; 4]) -> Rect {
    Rect::from_ltrb(x1, y1, x2, y2).expect("corners in order")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box is true of the picture only if the shape fills the box.
    #[test]
    fn every_shape_fills_its_box() {
        for &kind in Kind::ALL {
            let mut all = PathBuilder::new();
            parts(kind).iter().for_each(|p| all.push_path(&p.path));
            let bounds = all.finish().and_then(|p| p.compute_tight_bounds()).expect("a shape");
            let sides = [bounds.left(), bounds.top(), 1.0 - bounds.right(), 1.0 - bounds.bottom()];
            assert!(sides.iter().all(|s| s.abs() <= 0.041), "{kind:?}: {sides:?}");
            assert!(parts(kind).iter().any(|p| p.ink == Ink::Body), "{kind:?} shows its colour");
        }
    }
}
