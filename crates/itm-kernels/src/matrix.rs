//! A matrix in a slice.

/// The longest side of a matrix. A product of two sides then fits 64 bits: the size of a product is computed without a check.
const LONGEST: usize = (1 << 32) - 1;

/// A matrix of `f32` in a slice, with any stride of rows and of columns.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix that fills `data`.
    ///
    /// # Panics
    /// If `data` has another length, or a side is 2³² or longer.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        let fits = rows.checked_mul(cols) == Some(data.len()) && rows.max(cols) <= LONGEST;
        assert!(fits, "a {rows} × {cols} matrix in {} values", data.len());
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// Value `(i, j)` is at `i · row_stride + j · col_stride`. The arguments are `[rows, cols]` and the two strides.
    ///
    /// # Panics
    /// If `data` ends before the last value, or a side is 2³² or longer.
    pub fn strided(
        data: &'a [f32],
        [rows, cols]: [usize; 2],
        [row_stride, col_stride]: [usize; 2],
    ) -> Self {
        let sane = rows.max(cols) <= LONGEST && rows.checked_mul(cols).is_some();
        assert!(sane, "a {rows} × {cols} matrix: more than memory can hold");
        if rows > 0 && cols > 0 {
            let by_rows = (rows - 1).checked_mul(row_stride);
            let by_cols = (cols - 1).checked_mul(col_stride);
            let last = by_rows.zip(by_cols).and_then(|(rows, cols)| rows.checked_add(cols));
            let (n, last) = (data.len(), last.unwrap_or(usize::MAX));
            assert!(last < n, "the last of {rows} × {cols} is value {last} of {n}");
        }
        Self { data, rows, cols, row_stride, col_stride }
    }

    /// The transpose; no value moves.
    pub fn t(self) -> Self {
        let Self { data, rows, cols, row_stride, col_stride } = self;
        Self { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }

    /// Whether the values of a column, and not the values of a row, are neighbours.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_column_major(&self) -> bool {
        self.row_stride == 1 && self.col_stride != 1
    }

    /// At most `size` rows and columns from `(i, j)` on. `(i, j)` must be inside the matrix.
    pub(crate) fn part(self, [i, j]: [usize; 2], size: usize) -> Self {
        let data = &self.data[i * self.row_stride + j * self.col_stride..];
        Self { data, rows: size.min(self.rows - i), cols: size.min(self.cols - j), ..self }
    }

    /// Value `(i, j)`, or 0 beyond the matrix.
    #[inline(always)]
    pub(crate) fn get(&self, i: usize, j: usize) -> f32 {
        let inside = i < self.rows && j < self.cols;
        if inside { self.data[i * self.row_stride + j * self.col_stride] } else { 0.0 }
    }

    /// Whether the values of a row are neighbours.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_rows(&self) -> bool {
        self.col_stride == 1
    }

    /// Row `i` if its values are neighbours; empty if not, and beyond the matrix.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &'a [f32] {
        let neighbours = self.has_rows() && i < self.rows && self.cols > 0;
        if neighbours { &self.data[i * self.row_stride..][..self.cols] } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With sides of 2³², the 2⁶⁴ values of a product would count as none, and the product would write outside of its memory.
    #[test]
    fn a_product_of_two_sides_is_counted() {
        let refused = |side: usize| {
            let made = [
                std::panic::catch_unwind(|| Matrix::new(&[], side, 0)).is_err(),
                std::panic::catch_unwind(|| Matrix::new(&[], 0, side)).is_err(),
                std::panic::catch_unwind(|| Matrix::strided(&[], [0, side], [1, 1])).is_err(),
            ];
            assert!(made.iter().all(|&one| one == made[0]), "{made:?}");
            made[0]
        };
        assert!(refused(1 << 32) && refused(usize::MAX) && !refused(LONGEST) && !refused(0));
        assert!(LONGEST.checked_mul(LONGEST).is_some());
    }
}
