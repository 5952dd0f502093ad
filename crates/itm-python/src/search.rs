//! The best items of every query.

use hubness::{
    Affine, AnyCorrection, Candidates, Direction, GreedyOptions, Setting, greedy_matching, pass,
};
use itm_core::tiles::Tiles;
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
        let Some(bias) = bias else {
            let top = tiles.top_texts(k);
            let of = |query| (top.items(query), top.scores(query));
            let mut found = FlatLists::default();
            for (ids, scores) in (0..queries.rows).map(of) {
                found.push(ids, scores.iter().copied().map(f64::from));
            }
            return Ok(found);
        };
        corrected(&tiles, &biased(bias, items.rows)?, k)
    })?;
    found.arrays(py, [queries.rows, k.min(items.rows)])
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
        let [candidates] = Candidates::new(&tiles, [&correction], k)?;
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
    if bias.len() != items {
        let expected = format!("one number for each of {items} items");
        return Err(Error::invalid("bias", expected, bias.len()));
    }
    let map = Box::new(Affine::of_items(1.0, bias));
    Ok(AnyCorrection::new(Direction::I2t, Setting::Plain, map))
}

/// The lists of all queries, one after the other.
#[derive(Default)]
pub(crate) struct FlatLists {
    ids: Vec<i64>,
    scores: Vec<f64>,
}

impl FlatLists {
    /// Appends the list of a query.
    pub(crate) fn push(&mut self, ids: &[u32], scores: impl Iterator<Item = f64>) {
        self.ids.extend(ids.iter().map(|&id| i64::from(id)));
        self.scores.extend(scores);
    }

    /// One row for each query, `k` columns.
    pub(crate) fn arrays(self, py: Python<'_>, shape: [usize; 2]) -> PyResult<QueryLists<'_>> {
        let ids = PyArray1::from_vec(py, self.ids).reshape(shape)?;
        Ok((ids, PyArray1::from_vec(py, self.scores).reshape(shape)?))
    }
}

/// Lists under a correction that serves any queries.
pub(crate) fn corrected(
    tiles: &Tiles<'_>,
    correction: &AnyCorrection,
    k: usize,
) -> Result<FlatLists> {
    let top = pass::top(tiles, correction, k)?;
    let mut found = FlatLists::default();
    for query in 0..top.queries() {
        found.push(top.items(query), top.scores(query).iter().copied());
    }
    Ok(found)
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
