//! The scores of one query.

use rayon::prelude::*;

use super::kernel::chains;

/// Rows that are multiplied side by side: a chain of multiply-adds waits for its last sum, sixteen chains do not.
const SIDE_BY_SIDE: usize = 16;
/// Rows of one piece of work.
const PIECE: usize = 1024;

/// The scores of one row against many, `[rows]`: for a search, where a tile would be almost empty. With at least 3 values a row, the bits
/// are the bits of [`Tiles`](super::Tiles).
///
/// ```
/// let rows = [1.0, 0.0, 0.0, 0.0, 0.6, 0.8];
/// assert_eq!(itm_core::tiles::scores_of_rows(&[0.0, 1.0, 0.0], &rows), [0.0, 0.6]);
/// ```
///
/// # Panics
/// If the query is empty, or the rows have another width.
pub fn scores_of_rows(query: &[f32], rows: &[f32]) -> Vec<f32> {
    let d = query.len();
    assert!(d > 0 && rows.len().is_multiple_of(d), "rows of {d} values, got {} values", rows.len());
    let mut scores = vec![0.0; rows.len() / d];
    scores.par_chunks_mut(PIECE).zip(rows.par_chunks(PIECE * d)).for_each(|(scores, rows)| {
        for (scores, rows) in scores.chunks_mut(SIDE_BY_SIDE).zip(rows.chunks(SIDE_BY_SIDE * d)) {
            match scores.first_chunk_mut::<SIDE_BY_SIDE>() {
                Some(scores) => {
                    let row = |k: usize| [&rows[k * d..(k + 1) * d], query];
                    *scores = chains::<SIDE_BY_SIDE>(std::array::from_fn(row));
                }
                None => scores.iter_mut().zip(rows.chunks_exact(d)).for_each(|(score, row)| {
                    [*score] = chains([[row, query]]);
                }),
            }
        }
    });
    scores
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::tiles::{Embeddings, Tiles};

    #[test]
    fn the_bits_are_the_bits_of_tiles() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for (n, d) in [(1, 3), (15, 5), (16, 300), (17, 512), (33, 513), (1500, 1025)] {
            let mut draw =
                |n: usize| (0..n).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
            let (rows, query) = (draw(n * d), draw(d));
            let images = Embeddings::new("images", n, d, &rows).unwrap();
            let text = Embeddings::new("text", 1, d, &query).unwrap();
            let want = Tiles::new(images, text).unwrap().scores();
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&scores_of_rows(&query, &rows)), bits(want.values()), "{n} × {d}");
        }
        assert!(scores_of_rows(&[1.0], &[]).is_empty());
    }
}
