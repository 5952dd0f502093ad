use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::scored::Scored;

/// Images × texts × width: unaligned, tall, wide, narrow and empty; lanes along both axes.
pub(super) const SHAPES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (3, 7, 2),
    (1, 600, 3),
    (257, 1031, 16),
    (1100, 130, 1),
    (193, 65, 33),
    (64, 256, 520),
    (0, 5, 4),
    (5, 0, 4),
];

/// Rows of about unit length.
pub(super) fn unit(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let scale = (3.0 / dim as f32).sqrt();
    (0..rows * dim).map(|_| rng.random_range(-1.0..1.0) * scale).collect()
}

/// Integers in `−most ..= most`: products are exact, and ties are frequent.
pub(super) fn grid(values: usize, most: i32, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..values).map(|_| rng.random_range(-most..=most) as f32).collect()
}

pub(super) fn tiles<'a>(images: &'a [f32], texts: &'a [f32], dim: usize) -> Tiles<'a> {
    let images = Embeddings::new("images", images.len() / dim, dim, images).unwrap();
    let texts = Embeddings::new("texts", texts.len() / dim, dim, texts).unwrap();
    Tiles::new(images, texts).unwrap()
}

/// Runs a check under several tile sizes and numbers of threads.
pub(super) fn everywhere(tiles: &Tiles<'_>, check: impl Fn(&Tiles<'_>) + Sync) {
    for (threads, (rows, cols)) in [(1, (64, 64)), (2, (1, 512)), (3, (512, 100)), (2, (192, 256))]
    {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check(&tiles.with_tile(rows, cols)));
    }
}

#[test]
fn the_matrix_is_the_product() {
    for (n, m, d) in [(1, 1, 1), (3, 7, 2), (70, 33, 5), (257, 300, 64)] {
        let (v, w) = (grid(n * d, 3, 1), grid(m * d, 3, 2));
        let scores = self::tiles(&v, &w, d).scores();
        for i in 0..n {
            for j in 0..m {
                let want: f32 = (0..d).map(|k| v[i * d + k] * w[j * d + k]).sum();
                assert_eq!(scores.row(i)[j], want, "{n} × {m} × {d} at {i}, {j}");
            }
        }
    }
}

/// Keeps every score, to compare streaming with dense scores bit by bit.
struct Copy;

impl Consumer for Copy {
    type State = Vec<(usize, usize, f32)>;
    type Output = Self::State;
    fn start(&self, _: Range<usize>, _: Range<usize>) -> Self::State {
        Vec::new()
    }
    fn tile(&self, state: &mut Self::State, tile: &Tile<'_>) {
        for (image, row) in tile.rows() {
            state.extend(tile.texts().zip(row).map(|(text, &s)| (image, text, s)));
        }
    }
    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        total.extend(lane);
    }
    fn finish(&self, mut total: Self::State) -> Self::Output {
        total.sort_by_key(|&(i, j, _)| (i, j));
        total
    }
}

#[test]
fn every_score_is_shown_once_with_the_bits_of_the_matrix() {
    for (n, m, d) in SHAPES {
        let (v, w) = (unit(n, d, 1), unit(m, d, 2));
        let tiles = self::tiles(&v, &w, d);
        let scores = tiles.scores();
        assert_eq!(scores.run(&Copy).unwrap(), tiles.run(&Copy), "a matrix shows the same");
        everywhere(&tiles, |tiles| {
            assert_eq!(tiles.scores(), scores);
            let seen = tiles.run(&Copy);
            assert_eq!(seen.len(), n * m);
            for (at, &(i, j, s)) in seen.iter().enumerate() {
                assert_eq!((i, j), (at / m, at % m));
                assert_eq!(s.to_bits(), scores.row(i)[j].to_bits());
            }
        });
    }
}

#[test]
fn pair_scores_have_the_bits_of_the_matrix() {
    for (n, m, d) in SHAPES.into_iter().filter(|&(n, m, _)| n * m > 0) {
        let (v, w) = (unit(n, d, 3), unit(m, d, 4));
        let tiles = self::tiles(&v, &w, d);
        let scores = tiles.scores();
        let images: Vec<_> = (0..500).map(|p| p * 31 % n).collect();
        let texts: Vec<_> = (0..500).map(|p| p * 17 % m).collect();
        for (p, s) in tiles.pair_scores(&images, &texts).into_iter().enumerate() {
            assert_eq!(s.to_bits(), scores.row(images[p])[texts[p]].to_bits(), "{n} × {m} × {d}");
        }
    }
}

#[test]
fn scores_of_some_rows_have_the_bits_of_the_matrix() {
    for (n, m, d) in SHAPES.into_iter().filter(|&(n, m, _)| n * m > 0) {
        let (v, w) = (unit(n, d, 3), unit(m, d, 4));
        let tiles = self::tiles(&v, &w, d);
        let scores = tiles.scores();
        let images: Vec<_> = (0..70).map(|p| p * 31 % n).collect();
        let texts: Vec<_> = (0..70).map(|p| p * 17 % m).collect();
        let rows = tiles.scores_of(Side::Images, &images).unwrap();
        let columns = tiles.scores_of(Side::Texts, &texts).unwrap();
        assert_eq!((rows.images(), columns.texts()), (70, 70));
        for (p, (&image, &text)) in images.iter().zip(&texts).enumerate() {
            assert_eq!(rows.row(p), scores.row(image), "{n} × {m} × {d}");
            let column: Vec<_> = (0..n).map(|i| scores.row(i)[text]).collect();
            assert!(columns.values().iter().skip(p).step_by(70).eq(&column));
        }
    }
}

#[test]
fn other_widths_and_overflow_are_refused() {
    let v = Embeddings::new("images", 1, 2, &[1e30, 0.0]).unwrap();
    let w = Embeddings::new("texts", 2, 1, &[1.0, 1.0]).unwrap();
    let error = Tiles::new(v, w).unwrap_err().to_string();
    assert_eq!(error, "texts: expected the images' width 2, got 1");
    let w = Embeddings::new("texts", 1, 2, &[-1e10, 0.0]).unwrap();
    let error = Tiles::new(v, w).unwrap_err().to_string();
    assert!(error.starts_with("images · texts: expected d · max|v| · max|w| below"), "{error}");
}
