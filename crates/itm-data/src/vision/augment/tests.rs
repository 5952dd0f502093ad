use super::*;

const N: u64 = 20_000;

fn draws(width: u32, height: u32) -> impl Iterator<Item = Draw> {
    (0..N).map(move |seed| Draw::new(width, height, seed))
}

/// For a picture of 640 × 480, area and ratio of every crop are within the bounds, up to rounding of the sides.
#[test]
fn crops_keep_to_area_and_ratio() {
    let (mut least, mut most) = (f64::MAX, 0.0f64);
    let (mut narrow, mut wide) = (f64::MAX, 0.0f64);
    let mut corners = [0u32; 4];
    for Draw { crop, .. } in draws(640, 480) {
        let Crop { left, top, width, height } = crop;
        assert!(left + width <= 640 && top + height <= 480, "{crop:?}");
        let area = f64::from(width * height) / (640.0 * 480.0);
        let ratio = f64::from(width) / f64::from(height);
        assert!((0.498..=1.0).contains(&area), "{crop:?}: area {area}");
        assert!((0.747..1.338).contains(&ratio), "{crop:?}: ratio {ratio}");
        (least, most) = (least.min(area), most.max(area));
        (narrow, wide) = (narrow.min(ratio), wide.max(ratio));
        corners[0] += u32::from(left == 0);
        corners[1] += u32::from(left + width == 640);
        corners[2] += u32::from(top == 0);
        corners[3] += u32::from(top + height == 480);
    }
    assert!(least < 0.51 && most > 0.97, "area {least} to {most}");
    assert!(narrow < 0.78 && wide > 1.32, "ratio {narrow} to {wide}");
    assert!(corners.iter().all(|&n| n > 50), "edges reached {corners:?}");
}

/// In a square of 1,000 pixels, an area of at most ¾ fits with every ratio. So below ¾ the area is uniform and
/// ln(ratio) symmetric.
#[test]
fn area_is_uniform_and_ratio_log_uniform() {
    let small: Vec<_> = draws(1000, 1000)
        .map(|d| d.crop)
        .map(|c| (f64::from(c.width * c.height) / 1e6, f64::from(c.width) / f64::from(c.height)))
        .filter(|&(area, _)| area < 0.75)
        .collect();
    let n = small.len() as f64;
    // Half of all first tries are below ¾. The share is higher, because tries above ¾ that do not fit are drawn again.
    assert!((0.5..0.7).contains(&(n / N as f64)), "{n}");
    // Uniform on 0.5..0.75: mean 0.625, deviation 0.25/√12; four standard errors.
    let mean = small.iter().map(|s| s.0).sum::<f64>() / n;
    assert!((mean - 0.625).abs() < 4.0 * 0.25 / (12.0 * n).sqrt() + 1e-3, "area {mean}");
    // Log-uniform on ±ln 4⁄3: mean 0, second moment (ln 4⁄3)²/3; |ln r| is below ½ ln 4⁄3 in half of the draws.
    let logs: Vec<_> = small.iter().map(|s| s.1.ln() / (4.0f64 / 3.0).ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    assert!(mean.abs() < 4.0 / (3.0 * n).sqrt(), "log ratio {mean}");
    let half = logs.iter().filter(|l| l.abs() < 0.5).count() as f64 / n;
    assert!((half - 0.5).abs() < 4.0 * 0.5 / n.sqrt() + 2e-3, "central half {half}");
}

/// Binomial with n = 20,000: four standard errors are 0.0141 at ½ and 0.0044 at 1/40.
#[test]
fn flips_operations_and_signs_have_their_probabilities() {
    let mut flips = 0;
    let mut counts = [0; 3];
    let mut operations = [[0; 2]; 10];
    let mut twice = 0;
    for Draw { flip, operations: drawn, .. } in draws(64, 64) {
        flips += u32::from(flip);
        counts[drawn.len()] += 1;
        for &(op, sign) in &drawn {
            let at = Operation::ALL.iter().position(|&o| o == op).unwrap();
            operations[at][usize::from(sign < 0.0)] += 1;
        }
        twice += u32::from(drawn.len() == 2 && drawn[0].0 == drawn[1].0);
    }
    let share = |n: u32| f64::from(n) / N as f64;
    assert!((share(flips) - 0.5).abs() < 0.0142, "flips {flips}");
    // Zero, one or two operations are applied with probability ¼, ½, ¼.
    for (count, want) in counts.into_iter().zip([0.25, 0.5, 0.25]) {
        assert!((share(count) - want).abs() < 0.0142, "{counts:?}");
    }
    // Each operation with each sign: 2 draws · ½ · 1/10 · ½ = 1/20 per picture. The same operation comes twice in ¼ ·
    // 1/10 of the pictures, because draws are with replacement.
    for count in operations.as_flattened() {
        assert!((share(*count) - 0.05).abs() < 0.0065, "{operations:?}");
    }
    assert!((share(twice) - 0.025).abs() < 0.0045, "twice {twice}");
}

/// Worked by hand: 300 × 100 has ratio 3 > 4⁄3, so the crop is 133 × 100 in the middle, from column ⌊(300 − 133)/2⌋ =
/// 83.
#[test]
fn golden_central_crops() {
    let crop = |left, top, width, height| Crop { left, top, width, height };
    assert_eq!(central(300, 100), crop(83, 0, 133, 100));
    assert_eq!(central(100, 300), crop(0, 83, 100, 133));
    assert_eq!(central(100, 90), crop(0, 0, 100, 90));
    // No area of at least half of 1,000 × 10 has a ratio within the bounds: ten tries fail, whatever the seed.
    assert!((0..50).all(|seed| Draw::new(1000, 10, seed).crop == central(1000, 10)));
    assert_eq!(central(1000, 10), crop(493, 0, 13, 10));
}

#[test]
fn one_pixel_is_a_picture() {
    let augment =
        Augment { transform: Transform { size: 5, ..Transform::default() }, ..Augment::default() };
    let image = RgbImage::from_pixel(1, 1, image::Rgb([255, 0, 128]));
    for seed in 0..200 {
        let mut out = [f32::NAN; 75];
        augment.apply(&image, seed, &mut out);
        assert!(out.iter().all(|v| v.is_finite()));
    }
    let mut out = [0.0; 75];
    augment.transform.apply(&image, &mut out);
    let level = |c: usize| out[25 * c..25 * (c + 1)].iter().all(|v| *v == out[25 * c]);
    assert!((0..3).all(level));
}

/// A draw is a function of the picture's size and the seed. Neighbouring seeds give different draws.
#[test]
fn a_draw_is_a_function_of_its_seed() {
    for seed in [0, 1, u64::MAX] {
        assert_eq!(Draw::new(640, 480, seed), Draw::new(640, 480, seed));
    }
    let crops: std::collections::HashSet<_> =
        draws(640, 480).take(100).map(|d| (d.crop.left, d.crop.width, d.crop.height)).collect();
    assert!(crops.len() > 95, "{}", crops.len());
}
