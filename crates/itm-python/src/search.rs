//! The best items of every query.

use hubness::{
    Affine, AnyCorrection, Candidates, Direction, GreedyOptions, Setting, greedy_matching, pass,
};
use itm_core::tiles::{Side, TopK};
use itm_core::{Error, Result};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Array, Rows, run};

/// Items and scores of every query.
pub(crate) type QueryLists<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>);

/// The `k` items with the largest `score − bias`.
#[pyfunction]
pub(crate) fn search<'py>(
    py: Python<'py>,
    queries: Array<'py>,
    items: Array<'py>,
    k: usize,
    bias: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<QueryLists<'py>> {
    let (queries, items) = (Rows::new("queries", &queries)?, Rows::new("items", &items)?);
    let bias = bias.map(|bias| bias.as_array().to_vec());
    let found = run(py, || {
        let tiles = queries.tiles(items)?;
        match bias {
            None => Ok(flat(&tiles.top(Side::Images, k))),
            Some(bias) => Ok(flat(&*pass::top(&tiles, &biased(bias, items.rows)?, k)?)),
        }
    })?;
    arrays(py, found, [queries.rows, k.min(items.rows)])
}

/// A matching of queries and items, in `min(k, items)` columns: each query gets at most `k` items, each item serves at most `relaxation` times its fair share.
#[pyfunction]
pub(crate) fn matching<'py>(
    py: Python<'py>,
    queries: Array<'py>,
    items: Array<'py>,
    k: usize,
    relaxation: f64,
    bias: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let (queries, items) = (Rows::new("queries", &queries)?, Rows::new("items", &items)?);
    let bias = bias.map_or_else(|| vec![0.0; items.rows], |bias| bias.as_array().to_vec());
    let k = k.min(items.rows);
    let ids = run(py, || {
        let (tiles, correction) = (queries.tiles(items)?, biased(bias, items.rows)?);
        let candidates = Candidates::new(&tiles, &correction, k)?;
        let matching = greedy_matching(&candidates, &GreedyOptions::new(k, relaxation))?;
        let list = |query| {
            let items = matching.items(query).iter().map(|&item| i64::from(item));
            items.chain(std::iter::repeat(-1)).take(k)
        };
        Ok((0..queries.rows).flat_map(list).collect())
    })?;
    PyArray1::from_vec(py, ids).reshape([queries.rows, k])
}

/// The score minus a number of each item.
fn biased(bias: Vec<f64>, items: usize) -> Result<AnyCorrection> {
    let expected = format_args!("one number for each of {items} items");
    Error::unless(bias.len() == items, "bias", expected, bias.len())?;
    let map = Box::new(Affine::of_items(1.0, bias));
    Ok(AnyCorrection::new(Direction::I2t, Setting::Plain, map))
}

/// Items and scores of all queries, one list after the other.
pub(crate) type FlatLists = (Vec<i64>, Vec<f64>);

/// The lists of a pass.
pub(crate) fn flat<S: Copy + Into<f64>>(top: &TopK<S>) -> FlatLists {
    let queries = || 0..top.queries();
    let ids = queries().flat_map(|query| top.items(query)).map(|&id| i64::from(id));
    let scores = queries().flat_map(|query| top.scores(query)).map(|&score| score.into());
    (ids.collect(), scores.collect())
}

/// One row for each query, `k` columns.
pub(crate) fn arrays(
    py: Python<'_>,
    (ids, scores): FlatLists,
    shape: [usize; 2],
) -> PyResult<QueryLists<'_>> {
    let ids = PyArray1::from_vec(py, ids).reshape(shape)?;
    Ok((ids, PyArray1::from_vec(py, scores).reshape(shape)?))
}

/// Rows of unit length; rows of zeros stay zero.
#[pyfunction]
pub(crate) fn unit<'py>(py: Python<'py>, rows: Array<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let rows = Rows::new("rows", &rows)?;
    let unit = run(py, || {
        rows.embeddings()?; // the checks
        Ok(hubness::rows::unit(rows.dim, rows.values))
    })?;
    PyArray1::from_vec(py, unit).reshape([rows.rows, rows.dim])
}
