//! The regularised problem in the eigenbases of both covariances, where every ridge is a diagonal scaling.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::ComputeEigenvectors::Yes;
use faer::linalg::evd::{self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Spec};

use super::moments::Moments;
use super::parallel;
use crate::{Error, Result};

/// Correlations below this share of the largest are rounding errors (`s²` carries 1e-16, so `s` 1e-8).
const RANK: f64 = 1e-6;

/// Variances below this share of the largest are rounding errors: such directions are dropped.
const VARIANCE: f64 = 1e-10;

/// Rows have unit length: a variance below this is the rounding of a constant.
const CONSTANT: f64 = 1e-24;

/// Eigenvalues and eigenvectors of a covariance.
struct Basis {
    values: Vec<f64>,
    vectors: Mat<f64>,
}

/// Both bases and `M₀ = Qxᵀ Cxy Qy`: all that the ridges leave unchanged.
pub(super) struct Problem {
    x: Basis,
    y: Basis,
    core: Mat<f64>, // [dx, dy]
}

/// Canonical correlations, descending, and the two maps, one column a correlation.
pub(super) struct Solution {
    pub(super) s: Vec<f64>,
    pub(super) wx: Mat<f64>, // [dx, k]
    pub(super) wy: Mat<f64>, // [dy, k]
}

impl Problem {
    /// Decomposes both covariances, once.
    pub(super) fn new(moments: &Moments) -> Result<Self> {
        let (x, y) = (eigen(moments.xx.as_ref())?, eigen(moments.yy.as_ref())?);
        let core = product(x.vectors.transpose(), moments.xy.as_ref());
        let core = product(core.as_ref(), y.vectors.as_ref());
        Ok(Self { x, y, core })
    }

    /// The `keep` largest correlations, or fewer where the rank is smaller, under ridges relative to the mean eigenvalue.
    pub(super) fn solve(&self, ridge_x: f64, ridge_y: f64, keep: usize) -> Result<Solution> {
        let (ax, ay) = (self.x.whitening(ridge_x), self.y.whitening(ridge_y));
        let (dx, dy) = (ax.len(), ay.len());
        let t = Mat::from_fn(dx, dy, |i, j| ax[i] * self.core[(i, j)] * ay[j]);

        // The smaller side: T Tᵀ = U s² Uᵀ, V = Tᵀ U / s; or the same with the sides exchanged.
        let t = if dx <= dy { t.as_ref() } else { t.transpose() };
        let Basis { values, vectors } = eigen(product(t, t.transpose()).as_ref())?;
        let last = values.len();
        let s: Vec<f64> = values.iter().rev().map(|v| v.max(0.0).sqrt()).collect();
        let rank = s.iter().take(keep).take_while(|&&v| v > RANK * s[0]).count();
        let u = Mat::from_fn(last, rank, |i, k| vectors[(i, last - 1 - k)]);
        let mut v = product(t.transpose(), u.as_ref());
        (0..rank).for_each(|k| v.col_as_slice_mut(k).iter_mut().for_each(|value| *value /= s[k]));

        let (u, v) = if dx <= dy { (u, v) } else { (v, u) };
        let scale = |a: &[f64], m: &Mat<f64>| Mat::from_fn(a.len(), rank, |i, k| a[i] * m[(i, k)]);
        Ok(Solution {
            wx: product(self.x.vectors.as_ref(), scale(&ax, &u).as_ref()),
            wy: product(self.y.vectors.as_ref(), scale(&ay, &v).as_ref()),
            s: s[..rank].to_vec(),
        })
    }
}

impl Basis {
    /// `A = (λ + r · mean λ)^(−1/2)`; zero where nothing varies.
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

/// Ascending eigenvalues and their vectors.
///
/// On one thread: the products gain from several without changing a bit, this does not.
fn eigen(matrix: MatRef<'_, f64>) -> Result<Basis> {
    let n = matrix.nrows();
    let (mut values, mut vectors) = (Diag::zeros(n), Mat::zeros(n, n));
    let scratch = self_adjoint_evd_scratch::<f64>(n, Yes, Par::Seq, Spec::default());
    let mut memory = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut memory);
    let (s, u) = (values.as_mut(), Some(vectors.as_mut()));
    self_adjoint_evd(matrix, s, u, Par::Seq, stack, Spec::default()).map_err(|_| {
        Error::invalid("CCA, covariance", "finite values", "an eigenproblem that does not converge")
    })?;
    Ok(Basis { values: values.column_vector().iter().copied().collect(), vectors })
}

fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, 1.0, parallel());
    c
}
