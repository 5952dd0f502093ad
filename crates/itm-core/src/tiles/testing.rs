//! Helpers of the engine's tests.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Embeddings, Tiles};

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
