//! The grid search over ridges, powers and widths by the rSum of the validation split.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::projection::Projection;
use super::recalls::rsum_by_width;
use super::rows::SparseRow;
use super::solve::{Problem, divide_columns, product};
use super::{BestPoint, CcaOptions, weights};
use crate::{Pairs, Result};

/// The point with the highest rSum; among equals, the first in the order of the lists, and the smallest width. `None` if a point has no
/// correlation.
///
/// The validation split is its rows of both sides, the means of the training rows, and its pairs.
///
/// The larger side is inverted once per ridge of that side. The ridges of the smaller side run in parallel, one per
/// thread, so that memory grows only with `min(threads, ridges of the smaller side)`.
pub(super) fn search(
    problem: &Problem<'_>,
    (rows, means, pairs): ([Vec<SparseRow>; 2], [&[f64]; 2], &Pairs),
    options: &CcaOptions,
) -> Result<Option<(f64, BestPoint)>> {
    let [small_rows, large_rows] = problem.turned(rows);
    let [small_mean, large_mean] = problem.turned(means);
    let [small_ridges, large_ridges] = problem.turned([&options.ridge_image, &options.ridge_text]);

    let small = mapped(problem.basis(), small_mean, &small_rows); // [rows of a, a]
    let mut best: Option<(f64, BestPoint)> = None;
    for &large_ridge in large_ridges {
        let (inverse, core) = problem.half(large_ridge)?;
        let of_inverse = mapped(inverse.as_ref(), large_mean, &large_rows);
        drop(inverse);
        let large = product(of_inverse.as_ref(), problem.basis()); // [rows of b, a]
        drop(of_inverse);
        let points =
            small_ridges.par_iter().map(|&small_ridge| -> Result<Option<(f64, BestPoint)>> {
                let (s, directions) = problem.correlations(&core, small_ridge, widest(options))?;
                if s.is_empty() {
                    return Ok(None);
                }
                let a = on_one_thread(small.as_ref(), directions.as_ref());
                let mut b = on_one_thread(large.as_ref(), directions.as_ref());
                divide_columns(&mut b, &s);
                let (rsum, power, dims) = best_of(&s, problem.turned([a, b]), pairs, options);
                let [image, text] = problem.turned([small_ridge, large_ridge]);
                Ok(Some((rsum, BestPoint { ridge_image: image, ridge_text: text, power, dims })))
            });
        for point in points.collect::<Result<Vec<_>>>()? {
            let Some(point) = point else { return Ok(None) };
            if best.is_none_or(|best| goes_before(&point, &best, options)) {
                best = Some(point);
            }
        }
    }
    Ok(best)
}

/// The greatest width of the grid.
fn widest(options: &CcaOptions) -> usize {
    options.dims.iter().copied().max().unwrap_or_default()
}

/// Whether `a` has a higher rSum than `b`, or the same rSum and an earlier place in the lists.
fn goes_before(a: &(f64, BestPoint), b: &(f64, BestPoint), options: &CcaOptions) -> bool {
    let at = |ridges: &[f64], ridge: f64| ridges.iter().position(|r| *r == ridge);
    let place = |of: &BestPoint| {
        (at(&options.ridge_image, of.ridge_image), at(&options.ridge_text, of.ridge_text))
    };
    a.0 > b.0 || (a.0 == b.0 && place(&a.1) < place(&b.1))
}

/// `(rows − mean) · W`.
fn mapped(w: MatRef<'_, f64>, mean: &[f64], rows: &[SparseRow]) -> Mat<f64> {
    Projection::new(w, mean, &vec![1.0; w.ncols()]).matrix(rows)
}

fn on_one_thread(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, 1.0, Par::Seq);
    c
}

/// The highest rSum of a pair of ridges, with its power and number of dimensions; among equals, the first.
fn best_of(
    s: &[f64],
    rows: [Mat<f64>; 2],
    pairs: &Pairs,
    options: &CcaOptions,
) -> (f64, f64, usize) {
    let mut dims: Vec<_> = options.dims.iter().map(|&d| d.min(s.len())).collect(); // the rank
    dims.sort_unstable();
    dims.dedup();

    let mut best = (f64::NEG_INFINITY, 0.0, 0);
    for &power in &options.power {
        let weights = weights(s, power);
        let scale =
            |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, k| m[(i, k)] * weights[k]);
        let [images, texts] = rows.each_ref().map(scale);
        let rsums = rsum_by_width(images.as_ref(), texts.as_ref(), pairs, &dims);
        for (&dims, rsum) in dims.iter().zip(rsums) {
            if rsum > best.0 {
                best = (rsum, power, dims);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Among equal points, the order of the images' ridges decides first, whichever side is smaller.
    #[test]
    fn equal_points_keep_the_order_of_the_lists() {
        let (ridge_image, ridge_text) = (vec![3.0, 1.0], vec![0.5, 2.0]);
        let options = CcaOptions { ridge_image, ridge_text, ..CcaOptions::default() };
        let point = |rsum, ridge_image, ridge_text| {
            (rsum, BestPoint { ridge_image, ridge_text, power: 1.0, dims: 2 })
        };
        let before = |a, b| goes_before(&a, &b, &options);
        assert!(before(point(9.0, 3.0, 2.0), point(9.0, 1.0, 0.5)));
        assert!(!before(point(9.0, 1.0, 0.5), point(9.0, 3.0, 2.0)));
        assert!(before(point(9.0, 1.0, 0.5), point(9.0, 1.0, 2.0)));
        assert!(before(point(9.5, 1.0, 2.0), point(9.0, 3.0, 0.5)));
    }
}
