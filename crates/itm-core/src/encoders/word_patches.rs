//! Similarities between the words of a caption and the patches of a picture.

use std::ops::Range;

use crate::data::{Bounds, mean_row};

/// The positions of a map's places in a picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Places {
    /// Patches of a square picture.
    Patches(PatchGrid),
    /// The box of each region, in shares of the picture; empty if the boxes are unknown.
    Boxes(Vec<Bounds>),
}

/// The patches of a square picture, row by row from the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchGrid {
    /// Number of patches across, which is also the number down.
    pub side: usize,
    /// Side of a patch, in pixels.
    pub patch: usize,
    /// Side of the picture, in pixels. Pixels at the right and the bottom that do not fill a patch have none.
    pub size: usize,
}

impl PatchGrid {
    /// The grid of a picture of `size` pixels with patches of `patch` pixels.
    ///
    /// # Panics
    /// If `patch` is 0, or `size` is 2³² or more.
    pub fn new(size: usize, patch: usize) -> Self {
        let fits = patch > 0 && u32::try_from(size).is_ok();
        assert!(fits, "patches of {patch} pixels in a picture of {size}");
        Self { side: size / patch, patch, size }
    }

    /// Number of patches.
    pub fn len(&self) -> usize {
        self.side * self.side
    }

    /// Whether the picture is smaller than a patch.
    pub fn is_empty(&self) -> bool {
        self.side == 0
    }

    /// Column and row of a patch.
    ///
    /// # Panics
    /// If there is no such patch.
    pub fn place(&self, patch: usize) -> [usize; 2] {
        assert!(patch < self.len(), "patch {patch} of {}", self.len());
        [patch % self.side, patch / self.side]
    }

    /// Centre of a patch, x and y, in shares of the picture's side.
    ///
    /// # Panics
    /// If there is no such patch.
    pub fn centre(&self, patch: usize) -> [f32; 2] {
        self.place(patch).map(|at| (at as f32 + 0.5) * self.patch as f32 / self.size as f32)
    }
}

/// Cosine of each word of a caption with each patch of a picture. The states of both encoders are in one space.
///
/// ```text
/// m_jk = ⟨w_j, v_k⟩ / (‖w_j‖ ‖v_k‖),   w_j = 1/|P_j| Σ_{i ∈ P_j} W_i
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | v_k | `patches` | `[n, d]` |
/// | W | `pieces` | `[l, d]` |
/// | P_j | `words[j]` | pieces of word j |
/// | m | result | `[words, n]`: one map per word |
///
/// # Panics
/// If the states are not whole rows of width `dim`, or a word has no piece or a piece outside the states.
///
/// # Departures
/// FNE shows such maps (Figures 3 and 7) as "cross-attention maps" and does not say how they were computed. Its model
/// has no attention between the sides. The maps here are cosines of the same states that the model pools and compares.
///
/// ```
/// use itm_core::encoders::word_patches;
///
/// let patches = [1.0, 0.0, /**/ 0.0, 2.0];
/// let pieces = [9.0, 9.0, /**/ 3.0, 4.0, /**/ -1.0, 0.0]; // the first belongs to no word
/// assert_eq!(word_patches(&patches, &pieces, &[1..2, 2..3], 2), [0.6, 0.8, -1.0, 0.0]);
/// ```
pub fn word_patches(
    patches: &[f32],
    pieces: &[f32],
    words: &[Range<usize>],
    dim: usize,
) -> Vec<f32> {
    let whole = |name: &str, values: &[f32]| {
        let n = values.len();
        assert!(dim > 0 && n.is_multiple_of(dim), "{name}: {n} values in rows of {dim}");
    };
    whole("patches", patches);
    whole("pieces", pieces);
    let mut out = Vec::with_capacity(words.len() * patches.len() / dim);
    for word in words {
        let there = word.start < word.end && word.end <= pieces.len() / dim;
        assert!(there, "a word of the pieces {word:?} of {}", pieces.len() / dim);
        let state = mean_row(&pieces[word.start * dim..word.end * dim], dim);
        out.extend(patches.chunks_exact(dim).map(|patch| cosine(&state, patch)));
    }
    out
}

/// Cosine of two rows; 0 if one of them is all zeros.
fn cosine(a: &[f64], b: &[f32]) -> f32 {
    let (mut product, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        let b = f64::from(b);
        product += a * b;
        of_a += a * a;
        of_b += b * b;
    }
    let norms = f64::sqrt(of_a).max(1e-12) * f64::sqrt(of_b).max(1e-12);
    (product / norms) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: one word has the pieces (3, 0) and (0, 3), whose mean (1.5, 1.5) has the direction (1, 1). The other
    /// has (0, −2).
    #[test]
    fn golden_two_words_four_patches() {
        let patches = [2.0, 0.0, 0.0, 0.5, 3.0, 3.0, 0.0, 0.0];
        let pieces = [7.0, 1.0, 3.0, 0.0, 0.0, 3.0, 0.0, -2.0, 5.0, 5.0];
        let maps = word_patches(&patches, &pieces, &[1..3, 3..4], 2);
        let half = 0.5f32.sqrt();
        let want = [half, half, 1.0, 0.0, 0.0, -1.0, -half, 0.0];
        assert_eq!(maps.len(), want.len());
        for (got, want) in maps.iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{maps:?}");
        }
    }

    /// The mean of states is not the mean of their directions: (8, 0) and (0, 6) give (4, 3).
    #[test]
    fn pieces_count_by_their_length() {
        let maps =
            word_patches(&[1.0, 0.0], &[8.0, 0.0, 0.0, 6.0], std::slice::from_ref(&(0..2)), 2);
        assert!((maps[0] - 0.8).abs() < 1e-6, "{maps:?}");
    }

    /// 20 px in patches of 8: two patches across, four pixels left over, centres at 4 and 12 of 20.
    #[test]
    fn patches_lie_row_by_row() {
        let grid = PatchGrid::new(20, 8);
        assert_eq!((grid.side, grid.len(), grid.is_empty()), (2, 4, false));
        assert_eq!([0, 1, 2, 3].map(|k| grid.place(k)), [[0, 0], [1, 0], [0, 1], [1, 1]]);
        assert_eq!(grid.centre(1), [0.6, 0.2]);
        assert_eq!(grid.centre(2), [0.2, 0.6]);
        assert!(PatchGrid::new(7, 8).is_empty());
    }

    #[test]
    #[should_panic(expected = "a word of the pieces 1..3 of 2")]
    fn a_piece_that_is_not_there_is_named() {
        word_patches(&[1.0], &[1.0, 2.0], std::slice::from_ref(&(1..3)), 1);
    }

    #[test]
    #[should_panic(expected = "patches: 3 values in rows of 2")]
    fn half_a_patch_is_refused() {
        word_patches(&[1.0; 3], &[1.0, 2.0], &[], 2);
    }
}
