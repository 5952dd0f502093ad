//! The matrix product of a convolution: the only unsafe code of the vision module.

use gemm::Parallelism;

/// Adds a product to the values in `out`, on this thread.
///
/// ```text
/// out[i, j] += Σₖ rows[i, k] · weights[k, j]       rows: [n, depth]   weights: [depth, width]   out: [n, width]
/// ```
///
/// # Panics
/// If the lengths do not fit `width`.
#[allow(unsafe_code)] // gemm takes pointers
pub(in crate::vision) fn product(rows: &[f32], weights: &[f32], width: usize, out: &mut [f32]) {
    assert!(
        width > 0 && weights.len().is_multiple_of(width),
        "{} weights of {width}",
        weights.len()
    );
    let (n, depth) = (out.len() / width, weights.len() / width);
    assert_eq!(out.len(), n * width, "out of rows of {width}");
    assert_eq!(rows.len(), n * depth, "{n} rows of {depth} for a product");
    if n == 0 || depth == 0 {
        return;
    }
    // SAFETY: element (j, k) of the left operand is `weights[k · width + j]`, (k, i) of the right one `rows[i · depth + k]`, and
    // (j, i) of the destination `out[i · width + j]`, for j < width, k < depth, i < n: all inside the slices, whose lengths
    // are depth · width, n · depth and n · width by the assertions above. `out` is borrowed mutably, so it overlaps neither.
    // All values are initialised.
    unsafe {
        gemm::gemm(
            width,
            n,
            depth,
            out.as_mut_ptr(),
            width as isize,
            1,
            true,
            weights.as_ptr(),
            width as isize,
            1,
            rows.as_ptr(),
            depth as isize,
            1,
            1.0, // keeps the values in `out`
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products of small integers are exact. The slices are parts of longer slices filled with NaN, so that the test
    /// detects a read or write past an end, or a swapped stride.
    #[test]
    fn small_integers_are_exact_and_nothing_else_is_touched() {
        for (n, depth, width) in [(1, 1, 1), (1, 5, 3), (2, 3, 16), (49, 27, 33), (65, 600, 24)] {
            let integer = |i: usize| ((i * 7 + i / 5) % 9) as f32 - 4.0;
            let within = |len: usize, shift: usize| -> Vec<f32> {
                let nan = std::iter::repeat_n(f32::NAN, 64);
                nan.clone().chain((0..len).map(|i| integer(i + shift))).chain(nan).collect()
            };
            let rows = within(n * depth, 1);
            let weights = within(depth * width, 2);
            let mut out = within(n * width, 3);
            let before = out.clone();
            product(
                &rows[64..64 + n * depth],
                &weights[64..64 + depth * width],
                width,
                &mut out[64..64 + n * width],
            );
            for i in 0..n {
                for j in 0..width {
                    let term = |k| rows[64 + i * depth + k] * weights[64 + k * width + j];
                    let want = before[64 + i * width + j] + (0..depth).map(term).sum::<f32>();
                    assert_eq!(out[64 + i * width + j], want, "{n} × {depth} × {width}");
                }
            }
            assert!(out[..64].iter().chain(&out[64 + n * width..]).all(|v| v.is_nan()));
        }
    }

    #[test]
    #[should_panic(expected = "2 rows of 3 for a product")]
    fn lengths_that_do_not_fit_are_refused() {
        product(&[0.0; 5], &[0.0; 12], 4, &mut [0.0; 8]);
    }
}
