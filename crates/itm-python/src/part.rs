//! Parts of a pass.

use itm_core::eval::TiePolicy;
use itm_core::tiles::{Reduction, Side};
use itm_core::{Error, Pairs, Result};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{Array, Rows, TruePairs, named, raised, run};
use crate::evaluation::numbers;
use crate::search::{QueryLists, arrays, flat};

/// What a rectangle of the scores gives.
#[pyclass(name = "Part", frozen, module = "itmatch._itmatch")]
pub(crate) struct PyPart(itm_core::tiles::Part);

type Scores<'py> = PyReadonlyArray1<'py, f32>;

/// Makes a part of the scores that begin at `origin`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the Python half names them")]
pub(crate) fn part<'py>(
    py: Python<'py>,
    images: Array<'py>,
    texts: Array<'py>,
    origin: (usize, usize),
    whole: (usize, usize),
    keep: &str,
    k: usize,
    beta: f64,
    pairs: Option<TruePairs<'py>>,
    scores: Option<Scores<'py>>,
) -> PyResult<PyPart> {
    let (images, texts) = (Rows::new("images", &images)?, Rows::new("texts", &texts)?);
    let pairs = pairs.map(|pairs| pairs.pairs(whole.0)).transpose()?;
    let scores = scores.map(|scores| scores.as_array().to_vec());
    let reduction =
        reduction(keep, (k, beta), pairs.as_ref(), scores.as_deref()).map_err(raised)?;
    run(py, || images.tiles(texts)?.part(reduction, origin, whole)).map(PyPart)
}

fn reduction<'a>(
    keep: &str,
    (k, beta): (usize, f64),
    pairs: Option<&'a Pairs>,
    scores: Option<&'a [f32]>,
) -> Result<Reduction<'a>> {
    match (keep, pairs, scores) {
        ("top_texts", ..) => Ok(Reduction::TopTexts(k)),
        ("top_images", ..) => Ok(Reduction::TopImages(k)),
        ("sums_of_images", ..) => Ok(Reduction::ExpSums(Side::Images, beta)),
        ("sums_of_texts", ..) => Ok(Reduction::ExpSums(Side::Texts, beta)),
        ("moments_of_images", ..) => Ok(Reduction::Moments(Side::Images)),
        ("moments_of_texts", ..) => Ok(Reduction::Moments(Side::Texts)),
        ("pair_scores", Some(pairs), _) => Ok(Reduction::PairScores(pairs)),
        ("ranks", Some(pairs), Some(scores)) => Ok(Reduction::Ranks(pairs, scores)),
        ("ranks", Some(_), None) => {
            Err(Error::invalid("pair_scores", "the scores of all true pairs", "none"))
        }
        _ => {
            let expected = "top_texts, top_images, pair_scores, ranks, sums_of_images, sums_of_texts, \
                            moments_of_images or moments_of_texts";
            Err(Error::invalid("keep", expected, keep))
        }
    }
}

#[pymethods]
impl PyPart {
    fn join(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        run(py, || self.0.clone().join(other.0.clone())).map(Self)
    }

    fn whole(&self) -> (usize, usize) {
        self.0.whole().into()
    }

    fn has_ranks(&self) -> bool {
        self.0.has_ranks()
    }

    fn covered(&self) -> Vec<[(usize, usize); 2]> {
        let ends = |range: &std::ops::Range<usize>| (range.start, range.end);
        self.0.covered().iter().map(|[rows, columns]| [ends(rows), ends(columns)]).collect()
    }

    /// The lists of the best items, if the part has lists.
    fn lists<'py>(&self, py: Python<'py>) -> PyResult<Option<QueryLists<'py>>> {
        let Some([queries, _]) = self.0.sides() else { return Ok(None) };
        let (k, found) = run(py, || {
            let top = self.0.top()?;
            Ok((top.k(), flat(&top)))
        })?;
        arrays(py, found, [queries, k]).map(Some)
    }

    /// The sums, or means and deviations, if the part has them.
    fn sums<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyArray1<f64>>>>> {
        let found = if self.0.has_log_sums() {
            vec![self.0.log_sums().map_err(raised)?]
        } else if self.0.has_moments() {
            let moments = self.0.moments().map_err(raised)?;
            let mean = moments.iter().map(|moment| moment.mean).collect();
            vec![mean, moments.iter().map(|moment| moment.deviation()).collect()]
        } else {
            return Ok(None);
        };
        Ok(Some(found.into_iter().map(|values| PyArray1::from_vec(py, values)).collect()))
    }

    fn pair_scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_vec(py, self.0.pair_scores().map_err(raised)?))
    }

    /// As `evaluate`, without R-precision and mAP@R, which need lists.
    fn ranks<'py>(
        &self,
        py: Python<'py>,
        pairs: TruePairs<'py>,
        images: usize,
        scores: Scores<'py>,
        k: Vec<u32>,
        ties: &str,
    ) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
        let (pairs, scores) = (pairs.pairs(images)?, scores.as_array().to_vec());
        let policy: TiePolicy = named("ties", ties).map_err(raised)?;
        let ranks = run(py, || self.0.ranks(&pairs, &scores))?;
        numbers(py, &[ranks], &k, policy, ties)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[staticmethod]
    fn of_bytes(bytes: &[u8]) -> PyResult<Self> {
        itm_core::tiles::Part::from_bytes("part", bytes).map(Self).map_err(raised)
    }
}
