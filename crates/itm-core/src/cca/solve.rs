//! Solves the regularised problem. The larger side is inverted once per ridge. The smaller side is in its eigenbasis,
//! where a ridge is a diagonal scaling.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::ComputeEigenvectors::Yes;
use faer::linalg::evd::{self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, Mat, MatRef, Par, Spec};

use super::moments::PairMoments;
use super::parallel;
use crate::{Error, Result};

/// Correlations below this share of the largest are rounding errors (`s²` carries 1e-16, so `s` 1e-8).
const RANK: f64 = 1e-6;

/// Variances below this share of the largest are rounding errors; such directions are dropped.
const VARIANCE: f64 = 1e-10;

/// Rows have unit length, so a variance below this is the rounding error of a constant.
const CONSTANT: f64 = 1e-24;

/// The covariances and the eigenbasis of side `a`; `a` is the smaller side and `b` the larger side.
///
/// ```text
/// Caa = Qa · diag(λa) · Qaᵀ     for a ridge of b:  W = (Cbb + rb)⁻¹ · Cba,   G = Qaᵀ · Cab · W · Qa
/// for a ridge of a:  Aa = (λa + ra)^(−1/2),   Aa · G · Aa = U · diag(s²) · Uᵀ
/// Wa = Qa · Aa · U,   Wb = (Cbb + rb)^(−1/2) · V = W · Wa / s
/// ```
///
/// The larger side needs only one Cholesky factor per ridge.
pub(super) struct Problem<'a> {
    moments: &'a PairMoments,
    basis: Basis,
}

/// Eigenvalues and eigenvectors of a covariance.
pub(super) struct Basis {
    values: Vec<f64>,
    vectors: Mat<f64>,
}

impl<'a> Problem<'a> {
    /// Decomposes the covariance of the smaller side, once.
    pub(super) fn new(moments: &'a PairMoments) -> Result<Self> {
        let small = if moments.images_are_fewer() { &moments.xx } else { &moments.yy };
        let basis = eigen(small.as_ref())?;
        Ok(Self { moments, basis })
    }

    /// `Qa`, `[a, a]`.
    pub(super) fn basis(&self) -> MatRef<'_, f64> {
        self.basis.vectors.as_ref()
    }

    /// Turns `[images, texts]` into `[smaller side, larger side]`, and back.
    pub(super) fn turned<T>(&self, [first, second]: [T; 2]) -> [T; 2] {
        if self.moments.images_are_fewer() { [first, second] } else { [second, first] }
    }

    /// Inverts the larger side under a ridge relative to its mean eigenvalue: `W`, `[b, a]`, and `G`, `[a, a]`.
    pub(super) fn half(&self, ridge: f64) -> Result<(Mat<f64>, Mat<f64>)> {
        let moments = self.moments;
        let [_, cbb] = self.turned([&moments.xx, &moments.yy]);
        let cxy = moments.xy.as_ref();
        let [_, cba] = self.turned([cxy, cxy.transpose()]);
        let (inverse, gram) = inverse_times(cbb, ridge, cba.to_owned())?;
        let core = product(product(self.basis().transpose(), gram.as_ref()).as_ref(), self.basis());
        Ok((inverse, core))
    }

    /// The `keep` largest correlations under a ridge of the smaller side, in descending order, and `Aa · U`, `[a, k]`, one
    /// column per correlation; fewer if the rank is smaller.
    pub(super) fn correlations(
        &self,
        core: &Mat<f64>,
        ridge: f64,
        keep: usize,
    ) -> Result<(Vec<f64>, Mat<f64>)> {
        let (a, n) = (self.basis.whitening(ridge), self.basis.values.len());
        let scaled = Mat::from_fn(n, n, |i, j| a[i] * core[(i, j)] * a[j]);
        let Basis { values, vectors } = eigen(scaled.as_ref())?;
        let s: Vec<f64> = values.iter().rev().map(|v| v.max(0.0).sqrt()).collect();
        let rank = s.iter().take(keep).take_while(|&&v| v > RANK * s[0]).count();
        let directions = Mat::from_fn(n, rank, |i, k| a[i] * vectors[(i, n - 1 - k)]);
        Ok((s[..rank].to_vec(), directions))
    }

    /// The `keep` largest correlations under the ridges of images and texts, in descending order, and the maps of images and
    /// texts, `[dx, k]` and `[dy, k]`, one column per correlation; fewer if the rank is smaller.
    pub(super) fn solve(&self, ridges: [f64; 2], keep: usize) -> Result<(Vec<f64>, [Mat<f64>; 2])> {
        let [small, large] = self.turned(ridges);
        let (inverse, core) = self.half(large)?;
        let (s, directions) = self.correlations(&core, small, keep)?;
        let a = product(self.basis(), directions.as_ref());
        let mut b = product(inverse.as_ref(), a.as_ref());
        divide_columns(&mut b, &s);
        Ok((s, self.turned([a, b])))
    }
}

impl Basis {
    /// `A = (λ + r · mean λ)^(−1/2)`; zero for directions without variance.
    fn whitening(&self, ridge: f64) -> Vec<f64> {
        let mean = self.values.iter().sum::<f64>() / self.values.len() as f64;
        let floor = self.values.iter().fold(CONSTANT, |floor, value| floor.max(VARIANCE * value));
        let scale = |&value: &f64| {
            let regular = value + ridge * mean;
            if regular > floor { regular.sqrt().recip() } else { 0.0 }
        };
        self.values.iter().map(scale).collect()
    }
}

/// `C⁻¹ R` and `Rᵀ C⁻¹ R` for a covariance `C` with a ridge relative to its mean eigenvalue.
///
/// If the ridge lifts all variances above rounding errors, a Cholesky factor is enough. Otherwise the eigenbasis shows
/// which directions must be dropped.
fn inverse_times(c: &Mat<f64>, ridge: f64, mut right: Mat<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
    let n = c.nrows();
    let trace: f64 = (0..n).map(|i| c[(i, i)]).sum();
    let ridge_of_all = ridge * trace / n as f64;
    if ridge_of_all <= CONSTANT.max(VARIANCE * trace) {
        let basis = eigen(c.as_ref())?;
        let a = basis.whitening(ridge);
        let mut half = product(basis.vectors.transpose(), right.as_ref());
        scale_rows(&mut half, &a);
        let gram = product(half.transpose(), half.as_ref());
        scale_rows(&mut half, &a);
        return Ok((product(basis.vectors.as_ref(), half.as_ref()), gram));
    }
    let mut l = c.clone();
    (0..n).for_each(|i| l[(i, i)] += ridge_of_all);
    let mut memory =
        MemBuffer::new(cholesky_in_place_scratch::<f64>(n, parallel(), Spec::default()));
    let stack = MemStack::new(&mut memory);
    cholesky_in_place(l.as_mut(), Default::default(), parallel(), stack, Spec::default())
        .map_err(|_| unsolved("one that is not positive definite"))?;
    solve_lower_triangular_in_place(l.as_ref(), right.as_mut(), parallel()); // L⁻¹ R
    let gram = product(right.transpose(), right.as_ref());
    solve_upper_triangular_in_place(l.transpose(), right.as_mut(), parallel());
    Ok((right, gram))
}

/// Eigenvalues in ascending order and their eigenvectors.
///
/// It runs on one thread, because its bits would depend on the number of threads. The bits of products do not.
fn eigen(matrix: MatRef<'_, f64>) -> Result<Basis> {
    let n = matrix.nrows();
    let (mut values, mut vectors) = (Diag::zeros(n), Mat::zeros(n, n));
    let scratch = self_adjoint_evd_scratch::<f64>(n, Yes, Par::Seq, Spec::default());
    let mut memory = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut memory);
    let (s, u) = (values.as_mut(), Some(vectors.as_mut()));
    self_adjoint_evd(matrix, s, u, Par::Seq, stack, Spec::default())
        .map_err(|_| unsolved("an eigenproblem that does not converge"))?;
    Ok(Basis { values: values.column_vector().iter().copied().collect(), vectors })
}

fn unsolved(got: &str) -> Error {
    Error::invalid("CCA, covariance", "finite values", got)
}

fn scale_rows(m: &mut Mat<f64>, by: &[f64]) {
    for k in 0..m.ncols() {
        m.col_as_slice_mut(k).iter_mut().zip(by).for_each(|(value, by)| *value *= by);
    }
}

/// Divides each column by its number.
pub(super) fn divide_columns(m: &mut Mat<f64>, by: &[f64]) {
    for (k, by) in by.iter().enumerate() {
        m.col_as_slice_mut(k).iter_mut().for_each(|value| *value /= by);
    }
}

/// `A · B`.
pub(super) fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, 1.0, parallel());
    c
}
