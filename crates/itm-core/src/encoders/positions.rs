//! Resizes the position embeddings of a grid to another grid.

use burn::tensor::{Tensor, TensorData};

/// Bicubic interpolation of a grid of rows, `[h·w, d]` to `[h'·w', d]`, as in PyTorch: a = −0.75, no antialiasing,
/// pixel centres at ½; points outside the grid repeat its border.
///
/// ```text
/// P'[y, x] = Σ k(j − v) k(i − u) P[j, i],   v = (y + ½) h/h' − ½,   u = (x + ½) w/w' − ½
/// k(t) = (a+2)|t|³ − (a+3)t² + 1   for |t| ≤ 1;   a|t|³ − 5at² + 8a|t| − 4a   for |t| < 2
/// ```
///
/// It is one product with a constant matrix `[h'·w', h·w]`, so that the gradient reaches the old grid.
///
/// # Panics
/// If the number of rows does not fit the grid `from`, a size is 0, or memory cannot hold the matrix.
pub fn resize_positions(positions: Tensor<2>, from: [usize; 2], to: [usize; 2]) -> Tensor<2> {
    let [rows, _] = positions.dims();
    let fits = from[0].checked_mul(from[1]) == Some(rows);
    assert!(fits, "{rows} position embeddings for a grid of {from:?}");
    assert!(to[0] > 0 && to[1] > 0 && rows > 0, "a grid of {from:?} resized to {to:?}");
    if from == to {
        return positions;
    }
    let values = from.iter().chain(&to).try_fold(1usize, |n, &side| n.checked_mul(side));
    let fits = values.is_some_and(|n| n <= 1 << 32);
    assert!(fits, "no memory to resize a grid of {from:?} to {to:?}");
    let axis = [0, 1].map(|k| weights(from[k], to[k]));
    let mut matrix = vec![0.0f32; to[0] * to[1] * rows];
    for (y, down) in axis[0].chunks_exact(from[0]).enumerate() {
        for (x, across) in axis[1].chunks_exact(from[1]).enumerate() {
            let row = &mut matrix[(y * to[1] + x) * rows..][..rows];
            for (out, &weight) in row.chunks_exact_mut(from[1]).zip(down) {
                out.iter_mut().zip(across).for_each(|(o, w)| *o = (weight * w) as f32);
            }
        }
    }
    let matrix = TensorData::new(matrix, [to[0] * to[1], rows]);
    Tensor::<2>::from_data(matrix, &positions.device()).matmul(positions)
}

/// Weights of one axis, `[new, old]`.
fn weights(old: usize, new: usize) -> Vec<f64> {
    const A: f64 = -0.75;
    let kernel = |t: f64| match t.abs() {
        t if t <= 1.0 => ((A + 2.0) * t - (A + 3.0)) * t * t + 1.0,
        t if t < 2.0 => ((A * t - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A,
        _ => 0.0,
    };
    let step = old as f64 / new as f64;
    let mut out = vec![0.0; new * old];
    for (point, row) in out.chunks_exact_mut(old).enumerate() {
        let at = (point as f64 + 0.5) * step - 0.5;
        for tap in -1..=2 {
            let place = at.floor() + f64::from(tap);
            row[place.clamp(0.0, (old - 1) as f64) as usize] += kernel(place - at);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// By hand: two points to four, step ½. The first new point is at −¼. Its taps are at −1¾, −¾, ¼ and 1¼ from it,
    /// where k is −0.03515625, 0.26171875, 0.87890625, −0.10546875; the first old point gets the first three. The
    /// second new point is at ¼. Its taps are at −1¼, −¼, ¾ and 1¾ from it; each old point gets two.
    #[test]
    fn golden_two_points_to_four() {
        let got = weights(2, 4);
        assert_eq!(got[..4], [1.10546875, -0.10546875, 0.7734375, 0.2265625]);
        let mirrored: Vec<_> = got[..4].iter().rev().copied().collect();
        assert_eq!(got[4..], mirrored);
    }

    #[test]
    fn every_point_weighs_one() {
        for (old, new) in [(4, 6), (4, 3), (24, 14), (1, 5), (5, 1)] {
            let all = weights(old, new);
            assert!(all.chunks(old).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12));
        }
    }

    #[test]
    #[should_panic(expected = "5 position embeddings for a grid of [2, 3]")]
    fn another_grid_is_refused() {
        let rows = Tensor::zeros([5, 2], &Device::flex());
        resize_positions(rows, [2, 3], [4, 6]);
    }
}
