//! Matrix products of slices.

use gemm::Parallelism;

/// A matrix in a slice, as it lies or transposed.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix that fills `data`.
    ///
    /// # Panics
    /// If `data` has another length.
    pub(crate) fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows} × {cols} matrix in {} values", data.len());
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// Rows become columns; nothing moves.
    pub(crate) fn t(self) -> Self {
        let Self { data, rows, cols, row_stride, col_stride } = self;
        Self { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }
}

/// What becomes of the values that stand in the destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Replace,
    Add,
}

/// `to = a · b` or `to += a · b`, row-major, on all threads of the current pool.
///
/// # Panics
/// If the shapes do not fit.
#[allow(unsafe_code)] // gemm takes pointers
pub(crate) fn product(to: &mut [f32], how: Into, a: Matrix, b: Matrix) {
    assert_eq!(a.cols, b.rows, "product of {} × {} and {} × {}", a.rows, a.cols, b.rows, b.cols);
    assert_eq!(to.len(), a.rows * b.cols, "{} × {} values of a product", a.rows, b.cols);
    let add = how == Into::Add;
    // SAFETY: a `Matrix` can only be made by `new`, which checks that `data` holds rows × cols values, and turned by `t`,
    // which swaps counts together with strides: (rows − 1)·row_stride + (cols − 1)·col_stride is inside `data`. `to` has
    // a.rows × b.cols values with strides b.cols and 1, by the assertion above, and is borrowed mutably, so it overlaps
    // neither operand. All values are initialised f32.
    unsafe {
        gemm::gemm(
            a.rows,
            b.cols,
            a.cols,
            to.as_mut_ptr(),
            1,
            b.cols as isize,
            add,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            if add { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(0),
        );
    }
}

/// The transpose of a row-major `rows × cols` matrix, written out.
pub(crate) fn transposed(data: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    const BLOCK: usize = 32; // both sides stay in the first-level cache
    let mut to = vec![0.0; rows * cols];
    for i0 in (0..rows).step_by(BLOCK) {
        for j0 in (0..cols).step_by(BLOCK) {
            for i in i0..(i0 + BLOCK).min(rows) {
                for j in j0..(j0 + BLOCK).min(cols) {
                    to[j * rows + i] = data[i * cols + j];
                }
            }
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [1 2; 3 4; 5 6] · [1 0 2; 0 1 3] by hand, and each operand transposed in place or written out.
    #[test]
    fn golden_and_transposes() {
        let (a, b) = ([1., 2., 3., 4., 5., 6.], [1., 0., 2., 0., 1., 3.]);
        let (at, bt) = (transposed(&a, 3, 2), transposed(&b, 2, 3));
        assert_eq!(at, [1., 3., 5., 2., 4., 6.]);
        let want = [1., 2., 8., 3., 4., 18., 5., 6., 28.];
        for left in [Matrix::new(&a, 3, 2), Matrix::new(&at, 2, 3).t()] {
            for right in [Matrix::new(&b, 2, 3), Matrix::new(&bt, 3, 2).t()] {
                let mut to = [f32::NAN; 9]; // must not be read
                product(&mut to, Into::Replace, left, right);
                assert_eq!(to, want);
                product(&mut to, Into::Add, left, right);
                assert_eq!(to, want.map(|v| 2.0 * v));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a 2 × 3 matrix in 5 values")]
    fn a_short_operand_is_refused() {
        Matrix::new(&[0.0; 5], 2, 3);
    }

    #[test]
    #[should_panic(expected = "2 × 2 values of a product")]
    fn a_short_destination_is_refused() {
        let a = [0.0; 4];
        product(&mut [0.0; 3], Into::Replace, Matrix::new(&a, 2, 2), Matrix::new(&a, 2, 2));
    }

    #[test]
    #[should_panic(expected = "product of 2 × 2 and 1 × 4")]
    fn operands_that_do_not_fit_are_refused() {
        let a = [0.0; 4];
        product(&mut [0.0; 8], Into::Replace, Matrix::new(&a, 2, 2), Matrix::new(&a, 1, 4));
    }
}
