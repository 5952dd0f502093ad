//! Matrix products of slices.

use gemm::Parallelism;

use crate::blocks::{room, zeros};
use crate::matrix::Matrix;

/// Whether a product replaces the values in the destination or is added to them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Replace,
    Add,
}

/// The threads that compute a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// Only the calling thread, which is one of many.
    This,
    /// All threads of the current pool. Their number changes no bit, because no sum is split.
    All,
}

/// `a · b`, row-major; the memory is written once.
///
/// # Panics
/// If the shapes do not fit, or memory cannot hold the product.
#[allow(unsafe_code)] // the product writes every value
pub(crate) fn product_new(threads: Threads, a: Matrix, b: Matrix) -> Vec<f32> {
    let n = a.rows * b.cols;
    if a.cols == 0 {
        return zeros(n);
    }
    let mut to = room(n);
    // SAFETY: the pointer is valid for n values; with `Replace` no value is read and all n values are written.
    unsafe {
        product_at(threads, to.as_mut_ptr(), Into::Replace, a, b);
        to.set_len(n);
    }
    to
}

/// `to = a · b` or `to += a · b`, row-major.
///
/// # Panics
/// If the shapes do not fit.
#[allow(unsafe_code)] // gemm takes pointers
pub(crate) fn product(threads: Threads, to: &mut [f32], how: Into, a: Matrix, b: Matrix) {
    assert_eq!(to.len(), a.rows * b.cols, "{} × {} values of a product", a.rows, b.cols);
    if how == Into::Replace && a.cols == 0 {
        return to.fill(0.0); // an empty sum: nothing to ask gemm for
    }
    // SAFETY: `to` has a.rows × b.cols initialised values, by the assertion above.
    unsafe { product_at(threads, to.as_mut_ptr(), how, a, b) }
}

/// # Safety
/// `to` must be valid for writes of `a.rows × b.cols` values. With `Into::Add` these values must be initialised.
#[allow(unsafe_code)] // gemm takes pointers
unsafe fn product_at(threads: Threads, to: *mut f32, how: Into, a: Matrix, b: Matrix) {
    assert_eq!(a.cols, b.rows, "product of {} × {} and {} × {}", a.rows, a.cols, b.rows, b.cols);
    let add = how == Into::Add;
    // SAFETY: whatever makes a `Matrix` checks that `data` holds its last value. So (rows − 1)·row_stride + (cols − 1)·col_stride is inside `data`. By the contract of
    // this function, `to` is valid for writes of a.rows × b.cols values with strides b.cols and 1. So it overlaps no
    // operand, because operands are borrowed. All values read are initialised f32.
    unsafe {
        gemm::gemm(
            a.rows,
            b.cols,
            a.cols,
            to,
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
            match threads {
                Threads::This => Parallelism::None,
                Threads::All => Parallelism::Rayon(0),
            },
        );
    }
}

/// A copy of the transpose of a matrix, made on the calling thread.
pub(crate) fn transposed_here(from: Matrix) -> Vec<f32> {
    let mut to = vec![0.0; from.rows * from.cols];
    for (j, to) in to.chunks_exact_mut(from.rows.max(1)).enumerate() {
        for (i, to) in to.iter_mut().enumerate() {
            *to = from.data[i * from.row_stride + j * from.col_stride];
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [1 2; 3 4; 5 6] · [1 0 2; 0 1 3] by hand, with each operand also as a transposed view.
    #[test]
    fn golden_and_transposes() {
        let (a, b) = ([1., 2., 3., 4., 5., 6.], [1., 0., 2., 0., 1., 3.]);
        let at = transposed_here(Matrix::new(&a, 3, 2));
        let bt = transposed_here(Matrix::new(&b, 2, 3));
        assert_eq!(at, [1., 3., 5., 2., 4., 6.]);
        let want = [1., 2., 8., 3., 4., 18., 5., 6., 28.];
        for left in [Matrix::new(&a, 3, 2), Matrix::new(&at, 2, 3).t()] {
            for right in [Matrix::new(&b, 2, 3), Matrix::new(&bt, 3, 2).t()] {
                let mut to = [f32::NAN; 9]; // must not be read
                product(Threads::All, &mut to, Into::Replace, left, right);
                assert_eq!(to, want);
                product(Threads::All, &mut to, Into::Add, left, right);
                assert_eq!(to, want.map(|v| 2.0 * v));
            }
        }
    }

    /// A panic, not the end of the process: without a term and with one.
    #[test]
    fn products_beyond_memory_are_refused() {
        for depth in [0, 1] {
            let panic = std::panic::catch_unwind(|| {
                let a = Matrix::strided(&[1.0], [1 << 23, depth], [0, 0]);
                product_new(Threads::This, a, a.t())
            });
            let text = panic.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(*text, "no memory for 70368744177664 values");
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
        product(
            Threads::All,
            &mut [0.0; 3],
            Into::Replace,
            Matrix::new(&a, 2, 2),
            Matrix::new(&a, 2, 2),
        );
    }

    #[test]
    #[should_panic(expected = "product of 2 × 2 and 1 × 4")]
    fn operands_that_do_not_fit_are_refused() {
        let a = [0.0; 4];
        product(
            Threads::All,
            &mut [0.0; 8],
            Into::Replace,
            Matrix::new(&a, 2, 2),
            Matrix::new(&a, 1, 4),
        );
    }
}
