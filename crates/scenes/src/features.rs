//! Pixels → global and region features. The descriptor is fixed: it learns nothing and reads only pixels.

use std::sync::LazyLock;

use image::RgbImage;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use itm_core::data::Bounds;

const GRID: usize = 4;
const HUES: usize = 8;
const COLOURS: usize = HUES + 4;
const ANGLES: usize = 8;
const FIRST: usize = 16;
const SECOND: usize = 64;

// Scales that bring the norms of the blocks to one order of magnitude. They are constants and depend on no split.
const EDGE: f32 = 16.0;
const MEAN: f32 = 3.0;
const MAXIMUM: f32 = 0.5;

/// Width of a global feature or a region feature.
pub const WIDTH: usize = GRID * GRID * (COLOURS + ANGLES) + SECOND * 6;

/// The feature of a whole image, [`WIDTH`] values: a fixed, seeded descriptor, as of each region; every value is ≥ 0.
///
/// | block        | values                                                                            | width |
/// |--------------|-----------------------------------------------------------------------------------|-------|
/// | colours      | share of 8 hues and 4 greys in each cell of a 4 × 4 grid                          | 192   |
/// | edges        | mean gradient in 8 orientations in each cell of the same grid                     | 128   |
/// | convolutions | two layers of random filters: mean and maximum over all, maxima of four quarters | 384   |
///
/// The filters are drawn from a constant seed: every world, split and machine has the same filters.
pub(crate) fn global(image: &RgbImage) -> Vec<f32> {
    maps(image).describe(&WHOLE)
}

/// Rows with one weight per filter.
type Filters<const N: usize> = Vec<[f32; N]>;

/// The filters of the two layers, `[5 · 5 · 3]` and `[3 · 3 · 16]` rows.
static FILTERS: LazyLock<(Filters<FIRST>, Filters<SECOND>)> = LazyLock::new(|| {
    let mut rng = ChaCha8Rng::seed_from_u64(0x5ce9e5);
    (filters(&mut rng, 75), filters(&mut rng, 9 * FIRST))
});

/// The regions of one image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Regions {
    /// `COUNT` boxes: first the given boxes, then the fill of [`regions`].
    pub boxes: Vec<Bounds>,
    /// `COUNT ·` [`WIDTH`] values, row-major.
    pub features: Vec<f32>,
}

impl Regions {
    /// Number of regions per image.
    pub(crate) const COUNT: usize = 12;

    /// The mean of all regions, [`WIDTH`] values.
    pub(crate) fn mean(&self) -> Vec<f32> {
        let mut mean = vec![0.0; WIDTH];
        for region in self.features.chunks_exact(WIDTH) {
            mean.iter_mut().zip(region).for_each(|(m, x)| *m += x / Self::COUNT as f32);
        }
        mean
    }
}

/// One region per box, then the whole picture, the centre and a 3 × 3 grid, up to `Regions::COUNT` regions.
///
/// # Panics
/// If there are more boxes than regions.
pub(crate) fn regions(image: &RgbImage, boxes: &[Bounds]) -> Regions {
    assert!(boxes.len() <= Regions::COUNT, "{} boxes, {} regions", boxes.len(), Regions::COUNT);
    let maps = maps(image);
    let grid = (0..9).map(|i| {
        let (x, y) = ((i % 3) as f32 / 3.0, (i / 3) as f32 / 3.0);
        Bounds { x1: x, y1: y, x2: x + 1.0 / 3.0, y2: y + 1.0 / 3.0 }
    });
    let fill = [WHOLE, WHOLE.scaled(0.5)].into_iter().chain(grid).cycle();
    let boxes: Vec<_> = boxes.iter().copied().chain(fill).take(Regions::COUNT).collect();
    let features = boxes.iter().flat_map(|b| maps.describe(b)).collect();
    Regions { boxes, features }
}

fn maps(image: &RgbImage) -> Maps {
    let side = image.width() as usize;
    let (colours, light) = colours(image);
    let input: Vec<_> = image.iter().map(|&v| v as f32 / 127.5 - 1.0).collect();
    let (first, half) = convolve::<5, 2, FIRST>(&input, side, 3, &FILTERS.0);
    let (pooled, quarter) = pool(&first, half);
    let (second, _) = convolve::<3, 1, SECOND>(&pooled, quarter, FIRST, &FILTERS.1);
    Maps { side, colours, edges: edges(&light, side), quarter, second }
}

const WHOLE: Bounds = Bounds { x1: 0.0, y1: 0.0, x2: 1.0, y2: 1.0 };

/// Two neighbouring bins and their weights.
type Bins = [(u8, f32); 2];

/// The descriptor's values at each pixel of an image; windows pool over them.
struct Maps {
    side: usize,
    colours: Vec<Bins>,
    edges: Vec<Bins>,
    quarter: usize,
    second: Vec<[f32; SECOND]>, // [quarter · quarter]
}

impl Maps {
    fn describe(&self, window: &Bounds) -> Vec<f32> {
        let mut out = vec![0.0; WIDTH];
        let (colours, rest) = out.split_at_mut(GRID * GRID * COLOURS);
        let (edges, filters) = rest.split_at_mut(GRID * GRID * ANGLES);
        let columns = cut(window.x1, window.x2, self.side, GRID);
        let rows = cut(window.y1, window.y2, self.side, GRID);
        for (r, ys) in rows.iter().enumerate() {
            for (c, xs) in columns.iter().enumerate() {
                let cell = r * GRID + c;
                let scale = 1.0 / (ys.len() * xs.len()) as f32;
                let colours = &mut colours[cell * COLOURS..][..COLOURS];
                let edges = &mut edges[cell * ANGLES..][..ANGLES];
                for i in ys.clone().flat_map(|y| xs.clone().map(move |x| y * self.side + x)) {
                    self.colours[i].iter().for_each(|&(b, w)| colours[b as usize] += w * scale);
                    self.edges[i].iter().for_each(|&(b, w)| edges[b as usize] += w * scale);
                }
            }
        }
        self.describe_filters(window, filters);
        out
    }

    /// `[6, SECOND]`: mean, maximum, maxima of the quarters.
    fn describe_filters(&self, window: &Bounds, out: &mut [f32]) {
        let columns = cut(window.x1, window.x2, self.quarter, 2);
        let rows = cut(window.y1, window.y2, self.quarter, 2);
        let mut mean = [0.0; SECOND];
        let mut count = 0;
        let (summary, quarters) = out.split_at_mut(2 * SECOND);
        for (q, best) in quarters.chunks_exact_mut(SECOND).enumerate() {
            for y in rows[q / 2].clone() {
                for x in columns[q % 2].clone() {
                    let at = &self.second[y * self.quarter + x];
                    best.iter_mut().zip(at).for_each(|(b, v)| *b = b.max(*v));
                    mean.iter_mut().zip(at).for_each(|(m, v)| *m += v);
                    count += 1;
                }
            }
        }
        for k in 0..SECOND {
            summary[k] = MEAN * mean[k] / count as f32;
            summary[SECOND + k] = (0..4).map(|q| quarters[q * SECOND + k]).fold(0.0, f32::max);
        }
        out[SECOND..].iter_mut().for_each(|v| *v *= MAXIMUM);
    }
}

/// Cuts `from..to` (of 0 to 1) of `side` pixels into `parts` ranges of at least one pixel each.
fn cut(from: f32, to: f32, side: usize, parts: usize) -> Vec<std::ops::Range<usize>> {
    let at = |i: usize| {
        let edge = from + (to - from) * i as f32 / parts as f32;
        ((edge * side as f32).round().max(0.0) as usize).min(side)
    };
    let range = |i| {
        let start = at(i).min(side - 1);
        start..at(i + 1).max(start + 1)
    };
    (0..parts).map(range).collect()
}

/// Hue and grey bins of every pixel, and its lightness from 0 to 1.
fn colours(pixels: &[u8]) -> (Vec<Bins>, Vec<f32>) {
    pixels.chunks_exact(3).map(|p| colour(p[0] as f32, p[1] as f32, p[2] as f32)).unzip()
}

fn colour(r: f32, g: f32, b: f32) -> (Bins, f32) {
    let (max, min) = (r.max(g).max(b), r.min(g).min(b));
    let (chroma, light) = (max - min, (0.299 * r + 0.587 * g + 0.114 * b) / 255.0);
    // Nearly grey pixels count as grey; pixels between grey and vivid count partly as both.
    let vivid = ((chroma / max.max(40.0) - 0.15) / 0.2).clamp(0.0, 1.0);
    let hue = if chroma <= 0.0 {
        0.0
    } else if max == r {
        ((g - b) / chroma).rem_euclid(6.0)
    } else if max == g {
        (b - r) / chroma + 2.0
    } else {
        (r - g) / chroma + 4.0
    };
    let hue = (hue * HUES as f32 / 6.0) as usize % HUES;
    let grey = ((light * 4.0) as usize).min(3);
    ([(hue as u8, vivid), ((HUES + grey) as u8, 1.0 - vivid)], light)
}

/// Unsigned gradient orientations by central differences, split between neighbouring bins.
fn edges(light: &[f32], side: usize) -> Vec<Bins> {
    let at = |x: usize, y: usize| light[y.min(side - 1) * side + x.min(side - 1)];
    let edge = |i: usize| {
        let (x, y) = (i % side, i / side);
        let dx = at(x + 1, y) - at(x.saturating_sub(1), y);
        let dy = at(x, y + 1) - at(x, y.saturating_sub(1));
        let strength = (dx * dx + dy * dy).sqrt();
        let angle = (dy.atan2(dx) / std::f32::consts::PI).rem_euclid(1.0) * ANGLES as f32;
        let (low, share) = (angle as usize % ANGLES, angle.fract());
        [
            (low as u8, EDGE * strength * (1.0 - share)),
            (((low + 1) % ANGLES) as u8, EDGE * strength * share),
        ]
    };
    (0..light.len()).map(edge).collect()
}

/// Filters of zero mean and unit norm, drawn uniformly: they respond to edges and blobs, not to brightness.
fn filters<const OUT: usize>(rng: &mut ChaCha8Rng, inputs: usize) -> Filters<OUT> {
    let mut all = vec![[0.0; OUT]; inputs];
    for filter in 0..OUT {
        let draw: Vec<f32> = (0..inputs).map(|_| rng.random_range(-1.0..1.0)).collect();
        let mean = draw.iter().sum::<f32>() / inputs as f32;
        let norm = draw.iter().map(|v| (v - mean).powi(2)).sum::<f32>().sqrt();
        all.iter_mut().zip(&draw).for_each(|(row, v)| row[filter] = (v - mean) / norm);
    }
    all
}

/// `K × K` convolution with zero padding and a stride, then ReLU. Returns the map and its side.
fn convolve<const K: usize, const STRIDE: usize, const OUT: usize>(
    input: &[f32],
    side: usize,
    channels: usize,
    weights: &[[f32; OUT]],
) -> (Vec<[f32; OUT]>, usize) {
    let out_side = side.div_ceil(STRIDE);
    let mut out = vec![[0.0; OUT]; out_side * out_side];
    for (i, sum) in out.iter_mut().enumerate() {
        let (x, y) = (i % out_side * STRIDE, i / out_side * STRIDE);
        for ky in (0..K).filter(|ky| (K / 2..side + K / 2).contains(&(y + ky))) {
            for kx in (0..K).filter(|kx| (K / 2..side + K / 2).contains(&(x + kx))) {
                let from = (y + ky - K / 2) * side + x + kx - K / 2;
                let values = &input[from * channels..][..channels];
                let rows = &weights[(ky * K + kx) * channels..][..channels];
                for (value, row) in values.iter().zip(rows) {
                    sum.iter_mut().zip(row).for_each(|(s, w)| *s += value * w);
                }
            }
        }
        sum.iter_mut().for_each(|s| *s = s.max(0.0));
    }
    (out, out_side)
}

/// Maxima of 2 × 2, as one flat map of `FIRST` channels.
fn pool(map: &[[f32; FIRST]], side: usize) -> (Vec<f32>, usize) {
    let half = side.div_ceil(2);
    let mut out = vec![0.0f32; half * half * FIRST];
    for (i, values) in map.iter().enumerate() {
        let at = (i / side / 2 * half + i % side / 2) * FIRST;
        out[at..at + FIRST].iter_mut().zip(values).for_each(|(o, v)| *o = o.max(*v));
    }
    (out, half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(side: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> RgbImage {
        RgbImage::from_fn(side, side, |x, y| image::Rgb(pixel(x, y)))
    }

    #[test]
    fn hues_and_greys_by_hand() {
        for (rgb, bin) in [
            ([255.0, 0.0, 0.0], 0),
            ([0.0, 255.0, 0.0], 2), // 120 degrees of 360: 2.67 of 8
            ([0.0, 0.0, 255.0], 5), // 240 degrees: 5.33
            ([0.0, 0.0, 0.0], 8),
            ([100.0, 100.0, 100.0], 9),
            ([255.0, 255.0, 255.0], 11),
        ] {
            let (bins, _) = colour(rgb[0], rgb[1], rgb[2]);
            let most = bins.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("two bins");
            assert_eq!((most.0, most.1), (bin, 1.0), "{rgb:?}");
        }
    }

    #[test]
    fn edges_know_their_orientation() {
        let steps = |vertical: bool| {
            let light: Vec<f32> = (0..64)
                .map(|i| if (if vertical { i % 8 } else { i / 8 }) < 4 { 0.0 } else { 1.0 })
                .collect();
            let mut sum = [0.0; ANGLES];
            edges(&light, 8).iter().flatten().for_each(|&(b, w)| sum[b as usize] += w);
            sum
        };
        // 16 pixels beside the step have gradient 1, weighted by EDGE.
        assert_eq!(steps(true), [256.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(steps(false), [0.0, 0.0, 0.0, 0.0, 256.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_cell_tells_its_own_colour() {
        // Left half red, right half white.
        let halves = image(96, |x, _| if x < 48 { [255, 0, 0] } else { [255, 255, 255] });
        let feature = global(&halves);
        assert_eq!(feature.len(), WIDTH);
        for cell in 0..GRID * GRID {
            let bins = &feature[cell * COLOURS..][..COLOURS];
            let bin = if cell % GRID < 2 { 0 } else { 11 };
            assert!((bins[bin] - 1.0).abs() < 1e-4, "cell {cell}: {bins:?}");
        }
        assert!(feature.iter().all(|v| v.is_finite() && *v >= 0.0));
    }

    #[test]
    fn convolution_by_definition() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let input: Vec<f32> = (0..7 * 7 * 3).map(|_| rng.random_range(-1.0..1.0)).collect();
        let weights = filters::<4>(&mut rng, 75);
        let (out, side) = convolve::<5, 2, 4>(&input, 7, 3, &weights);
        assert_eq!(side, 4);
        for (x, y, k) in [(0, 0, 0), (1, 2, 1), (3, 3, 2), (3, 0, 3)] {
            let mut sum = 0.0;
            for (i, j, c) in (0..75).map(|n| (n / 15, n / 3 % 5, n % 3)) {
                let (v, u) = (2 * y as i32 + i - 2, 2 * x as i32 + j - 2);
                if (0..7).contains(&v) && (0..7).contains(&u) {
                    sum += input[((v * 7 + u) * 3 + c) as usize]
                        * weights[((i * 5 + j) * 3 + c) as usize][k];
                }
            }
            assert!((out[y * 4 + x][k] - sum.max(0.0)).abs() < 1e-5);
        }
    }

    #[test]
    fn windows_are_cut_without_gap_or_overlap() {
        assert_eq!(cut(0.25, 0.75, 16, 4), [4..6, 6..8, 8..10, 10..12]);
        assert_eq!(cut(0.0, 1.0, 6, 4), [0..2, 2..3, 3..5, 5..6]); // edges at 0, 1.5, 3, 4.5, 6
        assert_eq!(cut(0.98, 1.0, 10, 2), [9..10, 9..10]); // never empty, never outside
    }

    #[test]
    fn pooling_takes_maxima_of_two_by_two() {
        let map: Vec<_> = (0..9).map(|i| [i as f32; FIRST]).collect();
        let (pooled, side) = pool(&map, 3);
        let first: Vec<_> = pooled.iter().step_by(FIRST).copied().collect();
        assert_eq!((first, side), (vec![4.0, 5.0, 7.0, 8.0], 2));
    }

    #[test]
    fn regions_see_only_their_box() {
        let corner = Bounds { x1: 0.0, y1: 0.0, x2: 0.25, y2: 0.25 };
        let with_dot = |at: u32| {
            let red = move |x: u32, y: u32| x.abs_diff(at) < 5 && y.abs_diff(at) < 5;
            image(96, move |x, y| if red(x, y) { [255, 0, 0] } else { [200, 200, 200] })
        };
        let of = |at| regions(&with_dot(at), &[corner]);
        let (inside, outside, far) = (of(12), of(70), of(80));
        assert_eq!(inside.boxes.len(), Regions::COUNT);
        assert_eq!(inside.features.len(), Regions::COUNT * WIDTH);
        assert_ne!(inside.features[..WIDTH], outside.features[..WIDTH]);
        assert_eq!(outside.features[..WIDTH], far.features[..WIDTH]);
        assert_eq!(inside.boxes[..2], [corner, WHOLE]);
        assert_eq!(inside.features[WIDTH..2 * WIDTH], global(&with_dot(12))[..]);
    }
}
