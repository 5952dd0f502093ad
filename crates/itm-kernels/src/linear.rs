//! A linear map of rows: matrix products that include the bias.
//!
//! ```text
//! y = x W + b;   dx = g Wᵀ,   dW = xᵀ g,   db = Σ_rows g
//! ```

use rayon::prelude::*;

use crate::bf16::product_new as rounded_product;
use crate::bf16::{LeftOperand, RightOperand, pack_both};
use crate::blocks::written;
use crate::matrix::Matrix;
use crate::product::{Into, Threads, product, product_new};
use crate::transpose::with_transposed;

/// `x W + b`: `[n, i]` and `[i, o]` to `[n, o]`.
///
/// # Panics
/// If a shape does not fit the others.
pub fn forward(x: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
    let (n, i, o) = sizes(x, weight, bias.len());
    let mut y = written(n * o, o, |_, row| row.copy_from_slice(bias));
    product(Threads::All, &mut y, Into::Add, Matrix::new(x, n, i), Matrix::new(weight, i, o));
    y
}

/// The gradient of the input, `g Wᵀ`.
///
/// A weight that is at least as wide as high is transposed first. Without this, the product reads across rows whose
/// distance is large and often a power of two, and takes up to twice as long.
///
/// # Panics
/// If the gradient or the weight does not consist of whole rows of `o` values, or `o` is 0.
pub fn input_gradient(grad: &[f32], weight: &[f32], o: usize) -> Vec<f32> {
    assert!(o > 0, "a map to 0 outputs");
    let (n, i) = (grad.len() / o, weight.len() / o);
    let grad = Matrix::new(grad, n, o);
    if o >= i {
        with_transposed(weight, i, o, |w| product_new(Threads::All, grad, Matrix::new(w, o, i)))
    } else {
        product_new(Threads::All, grad, Matrix::new(weight, i, o).t())
    }
}

/// The gradient of the weight, `xᵀ g`. Without rows it is empty, because nothing tells the width of the input.
///
/// # Panics
/// If the rows of the gradient do not divide the values of the input evenly, or `o` is 0.
pub fn weight_gradient(x: &[f32], grad: &[f32], o: usize) -> Vec<f32> {
    assert!(o > 0, "a map to 0 outputs");
    let n = grad.len() / o;
    let i = x.len().checked_div(n).unwrap_or(0);
    product_new(Threads::All, Matrix::new(x, n, i).t(), Matrix::new(grad, n, o))
}

/// The gradient of the bias: sums of the columns, in a fixed order.
///
/// # Panics
/// If the gradient does not consist of whole rows of `o` values.
pub fn bias_gradient(grad: &[f32], o: usize) -> Vec<f32> {
    assert!(o > 0 && grad.len().is_multiple_of(o), "{} values in rows of {o}", grad.len());
    column_sums(grad, o, 32)
}

/// Sums of the columns: first within blocks of `rows` rows, then over the blocks in their order, for any number of threads.
/// So errors grow with the number of blocks, not of rows.
pub(crate) fn column_sums(values: &[f32], cols: usize, rows: usize) -> Vec<f32> {
    let sums = |values: &[f32]| {
        let mut sums = vec![0.0; cols];
        for row in values.chunks_exact(cols) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        sums
    };
    let blocks: Vec<Vec<f32>> = values.par_chunks(rows * cols).map(sums).collect();
    sums(&blocks.concat())
}

/// [`forward`] with both operands rounded to bf16; see [`crate::bf16`].
///
/// # Panics
/// If a shape does not fit the others.
pub(crate) fn forward_bf16(x: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
    let (n, i, o) = sizes(x, weight, bias.len());
    let (x, weight) =
        (LeftOperand::pack(Matrix::new(x, n, i)), RightOperand::pack(Matrix::new(weight, i, o)));
    rounded_product(Some(bias), &x, &weight)
}

/// The operands of a linear map, rounded to bf16 and packed for its gradients. They take half the bytes of f32.
#[derive(Debug, Clone)]
pub(crate) struct RoundedOperands {
    /// `xᵀ`
    x: LeftOperand,
    /// `Wᵀ`
    weight: RightOperand,
}

impl RoundedOperands {
    /// [`forward_bf16`], and the packed operands for [`gradients`](Self::gradients). Each operand is read only once.
    ///
    /// # Panics
    /// If a shape does not fit the others.
    pub(crate) fn forward(x: &[f32], weight: &[f32], bias: &[f32]) -> (Vec<f32>, Self) {
        let (n, i, o) = sizes(x, weight, bias.len());
        let (rows, x) = pack_both(Matrix::new(x, n, i));
        let (columns, weight) = pack_both(Matrix::new(weight, i, o).t());
        (rounded_product(Some(bias), &rows, &columns), Self { x, weight })
    }

    /// Width of the input.
    pub(crate) fn inputs(&self) -> usize {
        self.x.lanes()
    }

    /// `g Wᵀ` and `xᵀ g`, each only if it is wanted, with every operand rounded to bf16.
    ///
    /// # Panics
    /// If the gradient is not as long as the output.
    pub(crate) fn gradients(&self, grad: &[f32], wanted: [bool; 2]) -> [Option<Vec<f32>>; 2] {
        let grad = Matrix::new(grad, self.x.depth(), self.weight.depth());
        let to_x = |rows: &LeftOperand| rounded_product(None, rows, &self.weight);
        let to_weight = |columns: &RightOperand| rounded_product(None, &self.x, columns);
        match wanted {
            [true, true] => {
                let (rows, columns) = pack_both(grad);
                [Some(to_x(&rows)), Some(to_weight(&columns))]
            }
            [to, also] => [
                to.then(|| to_x(&LeftOperand::pack(grad))),
                also.then(|| to_weight(&RightOperand::pack(grad))),
            ],
        }
    }
}

fn sizes(x: &[f32], weight: &[f32], o: usize) -> (usize, usize, usize) {
    assert!(o > 0 && weight.len().is_multiple_of(o), "{} weights for {o} outputs", weight.len());
    let i = weight.len() / o;
    assert!(i > 0 && x.len().is_multiple_of(i), "{} inputs in rows of {i}", x.len());
    (x.len() / i, i, o)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: x = [1 2; 3 4; 5 6], W = [1 0 2; 0 1 3], b = (10, 20, 30); the gradient is 1 in its first column, 2 in its last.
    #[test]
    fn golden() {
        let (x, w) = ([1., 2., 3., 4., 5., 6.], [1., 0., 2., 0., 1., 3.]);
        let y = forward(&x, &w, &[10., 20., 30.]);
        assert_eq!(y, [11., 22., 38., 13., 24., 48., 15., 26., 58.]);
        let g = [1., 0., 2., 1., 0., 2., 1., 0., 2.];
        assert_eq!(input_gradient(&g, &w, 3), [5., 6., 5., 6., 5., 6.]);
        assert_eq!(weight_gradient(&x, &g, 3), [9., 0., 18., 12., 0., 24.]);
        assert_eq!(bias_gradient(&g, 3), [3., 0., 6.]);
    }

    /// A weight higher than wide, by hand: W = [1 0; 0 2; 3 1], g = [1 2; 0 1].
    #[test]
    fn a_high_weight_is_read_as_it_lies() {
        let d = input_gradient(&[1., 2., 0., 1.], &[1., 0., 0., 2., 3., 1.], 2);
        assert_eq!(d, [1., 4., 5., 0., 2., 1.]);
    }

    /// bf16 holds every number of the golden example, so the results have the same bits, with one gradient or both.
    #[test]
    fn bf16_keeps_small_whole_numbers() {
        let (x, w, b) = ([1., 2., 3., 4., 5., 6.], [1., 0., 2., 0., 1., 3.], [10., 20., 30.]);
        let g = [1., 0., 2., 1., 0., 2., 1., 0., 2.];
        let (y, kept) = RoundedOperands::forward(&x, &w, &b);
        assert_eq!((&y, &forward_bf16(&x, &w, &b)), (&forward(&x, &w, &b), &y));
        let [d_x, d_w] = [input_gradient(&g, &w, 3), weight_gradient(&x, &g, 3)].map(Some);
        assert_eq!(kept.gradients(&g, [true, true]), [d_x.clone(), d_w.clone()]);
        assert_eq!(kept.gradients(&g, [true, false]), [d_x, None]);
        assert_eq!(kept.gradients(&g, [false, true]), [None, d_w]);
        assert_eq!((kept.inputs(), kept.gradients(&g, [false; 2])), (2, [None, None]));
    }

    /// 257 has nine significant bits, so bf16 rounds it to 256 in input, weight and gradient. The bias is not rounded.
    #[test]
    fn bf16_rounds_operands_and_no_bias() {
        let (y, kept) = RoundedOperands::forward(&[257.], &[1.], &[257.]);
        assert_eq!(y, [256. + 257.]);
        assert_eq!(kept.gradients(&[257.], [true; 2]), [Some(vec![256.]), Some(vec![65536.])]);
        assert_eq!(forward_bf16(&[1.], &[257.], &[0.5]), [256.5]);
    }

    /// Sums over several blocks of rows.
    #[test]
    fn many_rows_are_as_few() {
        const ROWS: usize = 2048;
        let row = [1., 0., -1., 2., 1.];
        assert_eq!(bias_gradient(&row.repeat(ROWS), 5), row.map(|v| v * ROWS as f32));
    }

    #[test]
    fn no_rows_are_no_sum() {
        assert!(forward(&[], &[1.0; 6], &[0.0; 3]).is_empty());
        assert_eq!(bias_gradient(&[], 3), [0.0; 3]);
        let (y, kept) = RoundedOperands::forward(&[], &[1.0; 6], &[0.0; 3]);
        assert_eq!(
            (y, kept.gradients(&[], [true; 2])),
            (vec![], [Some(vec![]), Some(vec![0.0; 6])])
        );
    }

    #[test]
    #[should_panic(expected = "7 inputs in rows of 2")]
    fn a_broken_input_is_refused() {
        forward(&[0.0; 7], &[1.0; 6], &[0.0; 3]);
    }
}
