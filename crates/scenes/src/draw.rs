//! Facts → pixels: background, objects with outline and pattern, and nuisance variation as in real pictures.

use image::RgbImage;
use image::codecs::png::PngEncoder;
use rand::{Rng, RngExt};
use tiny_skia::{Color, FillRule, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};

use super::shapes::{Ink, Outline, parts};
use super::world::{Background, Colour, Object, Pattern, Scene};

/// A picture as a PNG file.
pub(super) fn png(picture: &RgbImage) -> Vec<u8> {
    let mut file = Vec::new();
    picture.write_with_encoder(PngEncoder::new(&mut file)).expect("a PNG in memory");
    file
}

type Rgb = [f32; 3]; // 0 to 255

/// Draws a scene. `rng` decides only the nuisance variation: hue, brightness, mirroring, texture, noise.
pub(super) fn draw(scene: &Scene, side: u32, rng: &mut impl Rng) -> RgbImage {
    let mut canvas = Pixmap::new(side, side).expect("a picture has a size");
    background(&mut canvas, scene.background, rng);
    for object in &scene.objects {
        draw_object(&mut canvas, object, rng);
    }
    RgbImage::from_raw(side, side, develop(&canvas, rng)).expect("three bytes per pixel")
}

fn rgb(colour: Colour) -> Rgb {
    match colour {
        Colour::Red => [214.0, 38.0, 38.0],
        Colour::Blue => [38.0, 76.0, 212.0],
        Colour::Yellow => [246.0, 214.0, 44.0],
        Colour::Green => [34.0, 150.0, 54.0],
        Colour::White => [246.0, 246.0, 246.0],
        Colour::Orange => [246.0, 130.0, 22.0],
        Colour::Black => [34.0, 33.0, 38.0],
        Colour::Purple => [136.0, 48.0, 172.0],
    }
}

fn draw_object(canvas: &mut Pixmap, object: &Object, rng: &mut impl RngExt) {
    let side = canvas.width() as f32;
    let mut body = rgb(object.colour);
    body.iter_mut().for_each(|v| *v = (*v + rng.random_range(-14.0..14.0)).clamp(0.0, 255.0));
    let b = &object.bounds;
    let (width, height) = (b.width() * side, b.height() * side);
    let mirrored = rng.random_bool(0.5);
    let placed = if mirrored {
        Transform::from_row(-width, 0.0, 0.0, height, b.x2 * side, b.y1 * side)
    } else {
        Transform::from_row(width, 0.0, 0.0, height, b.x1 * side, b.y1 * side)
    };
    let edge = if luminance(body) > 90.0 {
        mix(body, [0.0; 3], 0.75)
    } else {
        mix(body, [255.0; 3], 0.55)
    };
    let shift = (rng.random::<f32>(), rng.random::<f32>());
    for part in parts(object.kind) {
        let path = part.path.clone().transform(placed).expect("a box with an area");
        let fill = match part.ink {
            Ink::Body => body,
            Ink::Shade(f) if f < 1.0 => mix(body, [0.0; 3], 1.0 - f),
            Ink::Shade(f) => mix(body, [255.0; 3], f - 1.0),
            Ink::Fixed(rgb) => rgb.map(f32::from),
        };
        if !matches!(part.ink, Ink::Fixed(_)) {
            // The fill then covers half of the line, so no seams show where the circles of a tree meet.
            let stroke = Stroke { width: side * 0.018, ..Stroke::default() };
            canvas.stroke_path(&path, &paint(edge, 0.8), &stroke, Transform::identity(), None);
        }
        canvas.fill_path(&path, &paint(fill, 1.0), part.rule, Transform::identity(), None);
        if part.ink == Ink::Body && object.pattern != Pattern::Plain {
            let longer = width.max(height);
            cover(canvas, part, &path, object.pattern, second(body), (longer, shift));
        }
    }
}

/// Draws stripes or dots, clipped to a part.
fn cover(
    canvas: &mut Pixmap,
    part: &Outline,
    path: &Path,
    pattern: Pattern,
    colour: Rgb,
    (longer, shift): (f32, (f32, f32)),
) {
    let Some(figure) = figure(path.bounds(), pattern, longer, shift) else { return };
    let Some(mut mask) = Mask::new(canvas.width(), canvas.height()) else { return };
    mask.fill_path(path, part.rule, true, Transform::identity());
    let paint = paint(colour, 1.0);
    canvas.fill_path(&figure, &paint, FillRule::Winding, Transform::identity(), Some(&mask));
}

/// Stripes or dots that cover a rectangle; their period is proportional to the size of the object.
fn figure(area: Rect, pattern: Pattern, longer: f32, (u, v): (f32, f32)) -> Option<Path> {
    let mut p = PathBuilder::new();
    let (left, top) = (area.left(), area.top());
    match pattern {
        Pattern::Plain => return None,
        Pattern::Striped => {
            let period = 0.24 * longer;
            let height = area.height();
            let mut x = left - height - u * period;
            while x < area.right() {
                // Slanted by 45 degrees: the bottom edge is at x, the top edge at x + height.
                p.move_to(x, area.bottom());
                p.line_to(x + height, top);
                p.line_to(x + height + 0.5 * period, top);
                p.line_to(x + 0.5 * period, area.bottom());
                p.close();
                x += period;
            }
        }
        Pattern::Dotted => {
            let period = 0.26 * longer;
            let mut y = top - v * period;
            let mut odd = 0.0;
            while y < area.bottom() + period {
                let mut x = left - (u + odd) * period;
                while x < area.right() + period {
                    p.push_circle(x, y, 0.3 * period);
                    x += period;
                }
                y += 0.85 * period;
                odd = 0.5 - odd;
            }
        }
    }
    p.finish()
}

/// The second shade of a patterned body: the same hue, far lighter or far darker.
fn second(body: Rgb) -> Rgb {
    if luminance(body) < 120.0 { mix(body, [255.0; 3], 0.62) } else { mix(body, [20.0; 3], 0.52) }
}

fn background(canvas: &mut Pixmap, background: Background, rng: &mut impl RngExt) {
    let side = canvas.width() as f32;
    let mut base: Rgb = match background {
        Background::Grass => [128.0, 178.0, 88.0],
        Background::Sand => [224.0, 200.0, 150.0],
        Background::Water => [92.0, 164.0, 204.0],
        Background::Table => [164.0, 116.0, 74.0],
        Background::Snow => [226.0, 233.0, 240.0],
        Background::Night => [24.0, 28.0, 62.0],
    };
    base.iter_mut().for_each(|v| *v = (*v + rng.random_range(-9.0..9.0)).clamp(0.0, 255.0));
    let [r, g, b] = base.map(|v| v / 255.0);
    canvas.fill(Color::from_rgba(r, g, b, 1.0).expect("a colour in range"));
    let (mut dark, mut light) = (PathBuilder::new(), PathBuilder::new());
    let mut at = || (rng.random::<f32>() * side, rng.random::<f32>() * side);
    let dot = |p: &mut PathBuilder, (x, y): (f32, f32), r: f32| p.push_circle(x, y, r * side);
    let line = |p: &mut PathBuilder, x1: f32, y1: f32, x2: f32, y2: f32| {
        p.move_to(x1, y1);
        p.line_to(x2, y2);
    };
    let mut lines = true;
    match background {
        Background::Grass => {
            for i in 0..70 {
                let (x, y) = at();
                let blades = if i % 2 == 0 { &mut dark } else { &mut light };
                line(blades, x, y, x + 0.012 * side, y - 0.035 * side);
            }
        }
        Background::Water => {
            for i in 0..14 {
                let (x, y) = at();
                let (waves, w) = (if i % 2 == 0 { &mut dark } else { &mut light }, 0.07 * side);
                waves.move_to(x - w, y);
                waves.quad_to(x - 0.5 * w, y - 0.5 * w, x, y);
                waves.quad_to(x + 0.5 * w, y + 0.5 * w, x + w, y);
            }
        }
        Background::Table => {
            let (offset, _) = at();
            for k in 0..6 {
                let y = (offset + k as f32 * side / 5.0) % (side * 1.2);
                line(&mut dark, 0.0, y, side, y);
                let (x, y) = at();
                line(&mut light, x, y, x + 0.3 * side, y);
            }
        }
        Background::Sand | Background::Snow | Background::Night => {
            lines = false;
            let (darks, lights, large) = match background {
                Background::Sand => (60, 40, 0.006),
                Background::Snow => (9, 12, 0.022),
                _ => (0, 30, 0.005),
            };
            (0..darks).for_each(|_| dot(&mut dark, at(), large));
            (0..lights).for_each(|_| dot(&mut light, at(), large));
        }
    }
    let stroke = Stroke { width: 0.011 * side, ..Stroke::default() };
    let strong = if background == Background::Night { 0.8 } else { 0.4 };
    for (path, target) in [(dark, [0.0; 3]), (light, [255.0; 3])] {
        let weak = if background == Background::Snow { 0.07 } else { 0.25 };
        let paint = paint(mix(base, target, if target[0] > 0.0 { strong } else { weak }), 0.8);
        match path.finish() {
            Some(p) if lines => {
                canvas.stroke_path(&p, &paint, &stroke, Transform::identity(), None)
            }
            Some(p) => canvas.fill_path(&p, &paint, FillRule::Winding, Transform::identity(), None),
            None => {}
        }
    }
}

/// Applies uneven light and mild noise, then rounds to bytes.
fn develop(canvas: &Pixmap, rng: &mut impl Rng) -> Vec<u8> {
    let side = canvas.width();
    let brightness = rng.random_range(0.86..1.1);
    let (slope_x, slope_y) = (rng.random_range(-0.1..0.1), rng.random_range(-0.1..0.1));
    let mut pixels = vec![0; 3 * canvas.pixels().len()];
    rng.fill_bytes(&mut pixels);
    for (i, (out, pixel)) in pixels.chunks_exact_mut(3).zip(canvas.pixels()).enumerate() {
        let (x, y) = (i as u32 % side, i as u32 / side);
        let along = |v: u32| v as f32 / side as f32 - 0.5;
        let light: f32 = brightness * (1.0 + slope_x * along(x) + slope_y * along(y));
        for (byte, value) in out.iter_mut().zip([pixel.red(), pixel.green(), pixel.blue()]) {
            // The sum of two four-bit numbers: a triangular distribution with standard deviation 6.5.
            let noise = (*byte & 15) as f32 + (*byte >> 4) as f32 - 15.0;
            *byte = (value as f32 * light + noise).round().clamp(0.0, 255.0) as u8;
        }
    }
    pixels
}

fn paint(colour: Rgb, alpha: f32) -> Paint<'static> {
    let [r, g, b] = colour.map(|v| v.round() as u8);
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, (alpha * 255.0) as u8);
    paint
}

fn mix(a: Rgb, b: Rgb, share: f32) -> Rgb {
    std::array::from_fn(|i| a[i] + (b[i] - a[i]) * share)
}

fn luminance([r, g, b]: Rgb) -> f32 {
    0.299 * r + 0.587 * g + 0.114 * b
}

#[cfg(test)]
mod tests {
    use super::super::world::{Kind, Size};
    use super::*;
    use itm_core::data::Bounds;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn cube(colour: Colour, pattern: Pattern) -> Scene {
        let bounds = Bounds::around(0.5, 0.5, 0.4, 0.4);
        let object = Object { kind: Kind::Frame, colour, size: Size::Large, pattern, bounds };
        Scene { background: Background::Snow, objects: vec![object] }
    }

    fn drawn(scene: &Scene) -> RgbImage {
        draw(scene, 96, &mut ChaCha8Rng::seed_from_u64(3))
    }

    /// The mean colour of the frame's left bar, 0.30–0.36 of the width.
    fn bar(image: &RgbImage) -> Rgb {
        let mut sum = [0.0; 3];
        for y in 35..60 {
            for x in 30..34 {
                let pixel = image.get_pixel(x, y);
                (0..3).for_each(|c| sum[c] += pixel[c] as f32 / 100.0);
            }
        }
        sum
    }

    #[test]
    fn each_colour_is_drawn_nearest_to_itself() {
        for &colour in Colour::ALL {
            let got = bar(&drawn(&cube(colour, Pattern::Plain)));
            let distance =
                |c: Colour| -> f32 { rgb(c).iter().zip(got).map(|(a, b)| (a - b).powi(2)).sum() };
            let nearest = Colour::ALL.iter().min_by(|a, b| distance(**a).total_cmp(&distance(**b)));
            assert_eq!(nearest, Some(&colour), "{got:?}");
        }
    }

    #[test]
    fn only_the_box_changes_with_the_object() {
        let with = drawn(&cube(Colour::Red, Pattern::Plain));
        let other = drawn(&cube(Colour::Green, Pattern::Striped));
        for y in 0..96 {
            for x in 0..96 {
                let at = [x as f32 / 96.0, y as f32 / 96.0];
                let outside = at.iter().any(|v| !(0.28..0.71).contains(v));
                let hole = at.iter().all(|v| (0.39..0.61).contains(v));
                if outside || hole {
                    assert_eq!(with.get_pixel(x, y), other.get_pixel(x, y), "pixel {x}, {y}");
                }
            }
        }
        assert_ne!(with, other);
    }

    /// The same facts drawn twice differ everywhere, but mildly, in noise and light.
    #[test]
    fn nuisance_changes_pixels_and_not_what_is_seen() {
        let scene = cube(Colour::Red, Pattern::Plain);
        let (a, b) = (drawn(&scene), draw(&scene, 96, &mut ChaCha8Rng::seed_from_u64(4)));
        let differ = a.iter().zip(b.iter()).filter(|(p, q)| p != q).count();
        assert!(differ > a.len() / 2, "{differ} bytes");
        // Noise within one picture, where the background is even.
        let corner: Vec<f32> = (0..100).map(|i| a.get_pixel(i % 10, i / 10)[1] as f32).collect();
        let mean = corner.iter().sum::<f32>() / 100.0;
        let deviation = (corner.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / 99.0).sqrt();
        assert!((3.0..12.0).contains(&deviation), "{deviation}");
        let (p, q) = (bar(&a), bar(&b));
        assert!(p.iter().zip(q).all(|(p, q)| (p - q).abs() < 60.0), "{p:?} against {q:?}");
    }

    #[test]
    fn kinds_patterns_and_backgrounds_look_different() {
        let mut seen: Vec<RgbImage> = Vec::new();
        for &kind in Kind::ALL {
            let mut scene = cube(Colour::Blue, Pattern::Plain);
            scene.objects[0].kind = kind;
            seen.push(drawn(&scene));
        }
        seen.extend([Pattern::Striped, Pattern::Dotted].map(|p| drawn(&cube(Colour::Blue, p))));
        for &background in Background::ALL {
            seen.push(drawn(&Scene { background, ..cube(Colour::Orange, Pattern::Plain) }));
        }
        for (i, a) in seen.iter().enumerate() {
            for b in &seen[..i] {
                let differ = a.iter().zip(b.iter()).filter(|(p, q)| p.abs_diff(**q) > 40);
                assert!(differ.count() > 250, "image {i} against an earlier one");
            }
        }
    }

    #[test]
    fn the_last_object_is_in_front() {
        let mut scene = cube(Colour::White, Pattern::Plain);
        let mut front = scene.objects[0];
        (front.kind, front.colour) = (Kind::Ball, Colour::Black);
        scene.objects.push(front);
        assert!(luminance(drawn(&scene).get_pixel(40, 60).0.map(f32::from)) < 80.0);
        scene.objects.swap(0, 1);
        assert!(luminance(bar(&drawn(&scene))) > 180.0);
    }

    #[test]
    fn png_gives_the_pixels_back() {
        let image = drawn(&cube(Colour::Red, Pattern::Dotted));
        let read = image::load_from_memory(&png(&image)).expect("a PNG").to_rgb8();
        assert_eq!((read.dimensions(), &read), ((96, 96), &image));
    }
}
